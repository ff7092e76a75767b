//! Pure. Checks an object in a file as the API server would at its admission: the rules that are in no schema (CEL), and those of the operator.

use crds::{PaperMCServer, Plugin};

use super::{SOFTWARE, Violation, Violations, check};

/// The longest name of a server. Service, pod and label names contain it.
const LONGEST_SERVER_NAME: usize = 40;

/// The longest name of a Plugin. Labels contain it.
pub const LONGEST_PLUGIN_NAME: usize = 63;

/// All violations of a server in a file. Its schema has been checked.
pub fn check_server(server: &PaperMCServer) -> Vec<Violation> {
    let mut violations = Violations::default();
    let name = server.metadata.name.as_deref().unwrap_or_default();
    if !is_valid_server_name(name) {
        violations.add(
            "metadata.name",
            format_args!(
                "cannot be `{name}`: write at most {LONGEST_SERVER_NAME} lower-case letters, digits and dashes, beginning with a letter. The \
                Service, the pod and labels use it"
            ),
        );
    }
    let spec = &server.spec;
    let backup = spec.backup.as_ref().map(|backup| &backup.storage);
    for (path, claim, class) in [
        ("spec.storage.storageClassName", &spec.storage.existing_claim, &spec.storage.storage_class_name),
        (
            "spec.backup.storage.storageClassName",
            backup.map_or(&None, |storage| &storage.existing_claim),
            backup.map_or(&None, |storage| &storage.storage_class_name),
        ),
    ] {
        if claim.is_some() && class.is_some() {
            violations.add(path, "cannot be combined with `existingClaim`, which has its class: remove it");
        }
    }
    check_window(server, &mut violations);
    violations.0.extend(check_for_answer(server));
    violations.0
}

/// All violations of a server that also prevent an answer of the command `resolver`, which answers for other software too.
pub fn check_for_answer(server: &PaperMCServer) -> Vec<Violation> {
    let violations = check(server).err().unwrap_or_default();
    violations.into_iter().filter(|violation| violation.path != SOFTWARE).collect()
}

/// All violations of a Plugin in a file. Its schema has been checked.
pub fn check_plugin(plugin: &Plugin) -> Vec<Violation> {
    let mut violations = Violations::default();
    let length = plugin.metadata.name.as_deref().unwrap_or_default().len();
    if length > LONGEST_PLUGIN_NAME {
        let problem =
            format!("has {length} characters: write at most {LONGEST_PLUGIN_NAME}, because labels contain it");
        violations.add("metadata.name", problem);
    }
    violations.0.extend(super::windows::check_plugin_windows(plugin, "UTC").1);
    violations.0
}

/// Whether a server may have this name.
pub fn is_valid_server_name(name: &str) -> bool {
    name.len() <= LONGEST_SERVER_NAME
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-')
}

/// An object from before this rule has no window, and is never updated automatically.
fn check_window(server: &PaperMCServer, violations: &mut Violations) {
    const PATH: &str = "spec.updateSchedule.maintenanceWindow";
    let schedule = &server.spec.update_schedule;
    match &schedule.maintenance_window {
        None if schedule.windows.is_empty() => violations.add(
            PATH,
            "write when the server may restart: `maintenanceWindow: {cron: \"0 4 * * 0\"}` for Sundays at 04:00, or `{enabled: false}` for no \
            automatic restart",
        ),
        Some(window) if window.enabled && window.cron.is_empty() => violations.add(
            &format!("{PATH}.cron"),
            "write when the server may restart: `cron: \"0 4 * * 0\"` for Sundays at 04:00",
        ),
        None | Some(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn violations(name: &str, more: &Value) -> Vec<String> {
        let mut spec = json!({"updateStrategy": "auto", "updateSchedule": {"maintenanceWindow": {"cron": "@daily"}}});
        for (key, value) in more.as_object().unwrap() {
            spec[key] = value.clone();
        }
        // Without a UID and a namespace, as in a file.
        let server = serde_json::from_value(json!({
            "apiVersion": "nightshift.dev/v1alpha1", "kind": "PaperMCServer", "metadata": {"name": name}, "spec": spec,
        }));
        check_server(&server.unwrap()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn server_name_must_fit_derived_names() {
        assert_eq!(violations("lobby-2", &json!({})), [""; 0]);
        for wrong in ["2b2t", "Lobby", "lobby-", &"a".repeat(41)] {
            assert!(violations(wrong, &json!({})).concat().contains("at most 40"), "{wrong}");
        }
    }

    #[test]
    fn schedule_needs_window_or_is_disabled() {
        let of = |schedule: Value| violations("lobby", &json!({"updateSchedule": schedule})).concat();
        assert_eq!(of(json!({"maintenanceWindow": {"enabled": false}})), "");
        assert_eq!(of(json!({"windows": [{"name": "night", "cron": "@daily"}]})), "");
        assert!(of(json!({})).contains("spec.updateSchedule.maintenanceWindow: write when the server may restart"));
        let without_cron = of(json!({"maintenanceWindow": {"enabled": true}}));
        assert!(without_cron.contains("spec.updateSchedule.maintenanceWindow.cron: write when"), "{without_cron}");
    }

    #[test]
    fn existing_claim_excludes_storage_class() {
        let both = json!({"existingClaim": "a", "storageClassName": "b"});
        let found = violations("lobby", &json!({"storage": both, "backup": {"storage": both}}));
        assert!(found.iter().any(|line| line.starts_with("spec.storage.storageClassName: cannot be")), "{found:?}");
        assert!(
            found.iter().any(|line| line.starts_with("spec.backup.storage.storageClassName: cannot be")),
            "{found:?}"
        );
    }

    #[test]
    fn rules_of_operator_apply_to_files_except_software() {
        assert_eq!(violations("lobby", &json!({"software": "Folia"})), [""; 0]);
        let found = violations("lobby", &json!({"timeZone": "Europe/Berlim", "follows": {"server": "lobby"}}));
        let expected = [
            "spec.timeZone: `Europe/Berlim` is not a time zone: write `Europe/Berlin`",
            "spec.follows.server: a server cannot follow itself: name the server that is updated first, or remove `follows`",
        ];
        assert_eq!(found, expected);
    }
}
