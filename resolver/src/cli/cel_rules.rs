//! Pure. Checks the rules that the API server enforces with CEL and that no schema contains, where an answer depends on
//! them.

use crds::paper_mc_server::{GracefulShutdown, PaperMCServerSpec, RCON_REQUIRED_MESSAGE, UpdateSchedule};
use crds::{PaperMCServer, Plugin, duration};
use jiff::tz;

use crate::from_api::{Violation, plugin_name, server_name};
use crate::model::did_you_mean::nearest;

mod blackouts;

/// The longest name of a server. Service, pod and label names contain it.
const LONGEST_SERVER_NAME: usize = 40;

/// The longest name of a Plugin. Labels contain it.
pub(super) const LONGEST_PLUGIN_NAME: usize = 63;

/// Violations of a server that its schema does not detect.
pub(super) fn check_server(server: &PaperMCServer) -> Vec<Violation> {
    let spec = &server.spec;
    let mut checker =
        CelViolations { object: format!("PaperMCServer {}", server_name(server)), violations: Vec::new() };
    let name = server.metadata.name.as_deref().unwrap_or_default();
    if !is_valid_server_name(name) {
        let fix = format!(
            "write at most {LONGEST_SERVER_NAME} lower-case letters, digits and dashes, beginning with a letter: \
             the Service, the pod and labels use it"
        );
        checker.add("metadata.name", &format!("cannot be `{name}`"), &fix);
    }
    if spec.storage.existing_claim.is_some() && spec.storage.storage_class_name.is_some() {
        checker.add(
            "spec.storage.storageClassName",
            "cannot be combined with `existingClaim`",
            "leave it out: an existing claim has its class",
        );
    }
    let backup_storage = spec.backup.as_ref().map(|backup| &backup.storage);
    if backup_storage.is_some_and(|storage| storage.existing_claim.is_some() && storage.storage_class_name.is_some()) {
        checker.add(
            "spec.backup.storage.storageClassName",
            "cannot be combined with `existingClaim`",
            "leave it out: an existing claim has its class",
        );
    }
    if let Some(backup) = &spec.backup
        && let Some(schedule) = &backup.schedule
    {
        if !backup.enabled {
            checker.add(
                "spec.backup.schedule",
                "has no effect with `enabled: false`",
                "leave one of the two out: no backups are taken while it is false",
            );
        }
        checker.check_zone("spec.backup.schedule.timeZone", schedule.time_zone.as_ref());
    }
    if spec.follows.as_ref().is_some_and(|follows| follows.server == name) {
        checker.add(
            "spec.follows.server",
            "is the server itself",
            "name the server that is updated first, or leave it out",
        );
    }
    checker.check_stop(spec);
    checker.check_zone("spec.timeZone", Some(&spec.time_zone));
    checker.check_schedule(&spec.update_schedule);
    checker.violations
}

/// Violations of a Plugin that its schema does not detect.
pub(super) fn check_plugin(plugin: &Plugin) -> Vec<Violation> {
    let mut checker = CelViolations { object: format!("Plugin {}", plugin_name(plugin)), violations: Vec::new() };
    let length = plugin.metadata.name.as_deref().unwrap_or_default().len();
    if length > LONGEST_PLUGIN_NAME {
        let fix = format!("write at most {LONGEST_PLUGIN_NAME}: labels contain it");
        checker.add("metadata.name", &format!("has {length} characters"), &fix);
    }
    checker.violations
}

/// Whether a server may have this name.
pub(super) fn is_valid_server_name(name: &str) -> bool {
    name.len() <= LONGEST_SERVER_NAME
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-')
}

/// Collects the violations of one object.
struct CelViolations {
    object: String,
    violations: Vec<Violation>,
}

impl CelViolations {
    fn add(&mut self, path: &str, problem: &str, fix: &str) {
        let (object, path) = (self.object.clone(), path.to_owned());
        self.violations.push(Violation { object, path, problem: problem.to_owned(), fix: fix.to_owned() });
    }

    fn check_stop(&mut self, spec: &PaperMCServerSpec) {
        let timeout = &spec.graceful_shutdown.timeout;
        // The schema check reports an unreadable value.
        if duration::parse(timeout).is_ok_and(|timeout| timeout < GracefulShutdown::MIN_TIMEOUT) {
            self.add(
                "spec.gracefulShutdown.timeout",
                &format!("is `{timeout}`"),
                "write 60s or more: otherwise the server is killed while it still writes the world, and one tick of a busy \
                 server may take a minute. The default is 5m",
            );
        }
        if spec.is_missing_rcon() {
            self.add("spec.rcon.enabled", "is `false`", RCON_REQUIRED_MESSAGE);
        }
    }

    fn check_schedule(&mut self, schedule: &UpdateSchedule) {
        const PATH: &str = "spec.updateSchedule.maintenanceWindow";
        match &schedule.maintenance_window {
            None if schedule.windows.is_empty() => {
                let fix = "write when the server may restart: `maintenanceWindow: {cron: \"0 4 * * 0\"}` for Sundays at \
                           04:00, or `{enabled: false}` for no automatic restart";
                self.add(PATH, "is missing", fix);
            }
            None => {}
            Some(window) => {
                if window.enabled && window.cron.is_empty() {
                    let fix = "write when the server may restart: `cron: \"0 4 * * 0\"` for Sundays at 04:00";
                    self.add(&format!("{PATH}.cron"), "is missing", fix);
                }
                self.check_zone(&format!("{PATH}.timeZone"), window.time_zone.as_ref());
            }
        }
        for (at, window) in schedule.windows.iter().enumerate() {
            self.check_zone(&format!("spec.updateSchedule.windows[{at}].timeZone"), window.time_zone.as_ref());
        }
        for (at, blackout) in schedule.blackouts.iter().enumerate() {
            self.check_blackout(&format!("spec.updateSchedule.blackouts[{at}]"), blackout);
        }
    }

    fn check_zone(&mut self, path: &str, zone: Option<&String>) {
        let Some(zone) = zone else { return };
        if let Some(fix) = suggest_zone(zone) {
            self.add(path, &format!("is `{zone}`, which is not a time zone"), &fix);
        }
    }
}

/// Suggests a replacement for an unknown time zone. `None` when the zone exists.
fn suggest_zone(zone: &str) -> Option<String> {
    // UTC is the default of servers. It is accepted first, because a lookup of any zone lists all zone directories.
    if zone == "UTC" || tz::db().get(zone).is_ok() {
        return None;
    }
    // Opens the file of every zone, which costs more than all other checks. It runs only for an unknown zone.
    let zones: Vec<String> = tz::db().available().map(|name| name.to_string()).collect();
    // A machine without zone files cannot decide. The API server can.
    if zones.is_empty() {
        return None;
    }
    Some(nearest(zone, zones.iter().map(String::as_str)).next().map_or_else(
        || "write one such as `Europe/Berlin`".to_owned(),
        |suggestion| format!("did you mean `{suggestion}`?"),
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn violations(name: &str, more: &serde_json::Value) -> String {
        let mut spec = json!({"updateStrategy": "auto", "updateSchedule": {"maintenanceWindow": {"cron": "@daily"}}});
        for (key, value) in more.as_object().unwrap() {
            spec[key] = value.clone();
        }
        let server = serde_json::from_value(json!({
            "apiVersion": "nightshift.dev/v1alpha1", "kind": "PaperMCServer", "metadata": {"name": name}, "spec": spec,
        }));
        let lines: Vec<String> = check_server(&server.unwrap()).iter().map(ToString::to_string).collect();
        lines.join("\n")
    }

    #[test]
    fn server_name_must_fit_derived_names() {
        assert_eq!(violations("lobby-2", &json!({})), "");
        for wrong in ["2b2t", "Lobby", "lobby-", &"a".repeat(41)] {
            assert!(violations(wrong, &json!({})).contains("at most 40"), "{wrong}");
        }
    }

    #[test]
    fn backup_schedule_requires_backups_and_existing_zone() {
        let of = |enabled: bool, zone: &str| {
            let schedule = json!({"cron": "@daily", "timeZone": zone});
            violations("lobby", &json!({"backup": {"enabled": enabled, "schedule": schedule}}))
        };
        assert_eq!(of(true, "Europe/Berlin"), "");
        assert!(of(false, "Europe/Berlin").contains("`spec.backup.schedule` has no effect with `enabled: false`"));
        assert!(of(true, "Europe/Berlim").contains("`spec.backup.schedule.timeZone` is `Europe/Berlim`"));
    }

    #[test]
    fn stop_timeout_must_cover_longest_tick() {
        let of = |timeout: &str| violations("lobby", &json!({"gracefulShutdown": {"timeout": timeout}}));
        assert_eq!([of("60s"), of("1m")].concat(), "");
        for short in ["30s", "59s"] {
            let message = of(short);
            assert!(message.contains(&format!("`spec.gracefulShutdown.timeout` is `{short}`")), "{message}");
            assert!(message.contains("Write 60s or more") && message.contains("may take a minute"), "{message}");
        }
    }

    #[test]
    fn server_cannot_follow_itself() {
        let of = |server: &str| violations("lobby", &json!({"follows": {"server": server}}));
        assert_eq!(of("staging"), "");
        assert!(of("lobby").contains("`spec.follows.server` is the server itself"), "{}", of("lobby"));
    }

    #[test]
    fn misspelt_time_zone_gets_nearest_suggestion() {
        assert_eq!(violations("lobby", &json!({"timeZone": "Europe/Berlin"})), "");
        let window = json!({"maintenanceWindow": {"cron": "@daily", "timeZone": "America/NewYork"}});
        insta::assert_snapshot!(violations("lobby", &json!({"timeZone": "Europe/Berlim", "updateSchedule": window})), @r##"
        PaperMCServer lobby: `spec.timeZone` is `Europe/Berlim`, which is not a time zone. Did you mean `Europe/Berlin`?
        PaperMCServer lobby: `spec.updateSchedule.maintenanceWindow.timeZone` is `America/NewYork`, which is not a time zone. Did you mean `America/New_York`?
        "##);
    }
}
