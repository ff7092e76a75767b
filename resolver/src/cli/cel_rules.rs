//! Pure. Checks the rules that the API server enforces with CEL and that no schema contains, where an answer depends on
//! them.

use crds::paper_mc_server::{GracefulShutdown, NEEDS_RCON, PaperMCServerSpec, UpdateSchedule};
use crds::{PaperMCServer, Plugin, duration};
use jiff::tz;

use crate::did_you_mean::nearest;
use crate::from_api::{Complaint, plugin_name, server_name};

mod blackouts;

/// The longest name of a server. Service, pod and label names contain it.
const LONGEST_SERVER_NAME: usize = 40;

/// The longest name of a Plugin. Labels contain it.
const LONGEST_PLUGIN_NAME: usize = 63;

/// Violations of a server that its schema does not detect.
pub(super) fn check_server(server: &PaperMCServer) -> Vec<Complaint> {
    let spec = &server.spec;
    let mut desk = CelViolations { object: format!("PaperMCServer {}", server_name(server)), complaints: Vec::new() };
    let name = server.metadata.name.as_deref().unwrap_or_default();
    if !can_name_a_server(name) {
        let fix = format!(
            "write at most {LONGEST_SERVER_NAME} lower-case letters, digits and dashes, beginning with a letter: \
             Service, pod and label are made of it"
        );
        desk.complain("metadata.name", &format!("cannot be `{name}`"), &fix);
    }
    if spec.storage.existing_claim.is_some() && spec.storage.storage_class_name.is_some() {
        desk.complain(
            "spec.storage.storageClassName",
            "is one too many",
            "leave it out: a claim that exists has its class",
        );
    }
    let copies = spec.backup.as_ref().map(|backup| &backup.storage);
    if copies.is_some_and(|storage| storage.existing_claim.is_some() && storage.storage_class_name.is_some()) {
        desk.complain(
            "spec.backup.storage.storageClassName",
            "is one too many",
            "leave it out: a claim that exists has its class",
        );
    }
    if let Some(backup) = &spec.backup
        && let Some(schedule) = &backup.schedule
    {
        if !backup.enabled {
            desk.complain(
                "spec.backup.schedule",
                "stands beside `enabled: false`",
                "leave one of the two out: no copies are taken while it is false",
            );
        }
        desk.zone("spec.backup.schedule.timeZone", schedule.time_zone.as_ref());
    }
    if spec.follows.as_ref().is_some_and(|follows| follows.server == name) {
        desk.complain(
            "spec.follows.server",
            "is the server itself",
            "name the one that is to go first, or leave it out",
        );
    }
    desk.stop(spec);
    desk.zone("spec.timeZone", Some(&spec.time_zone));
    desk.schedule(&spec.update_schedule);
    desk.complaints
}

/// Violations of a Plugin that its schema does not detect.
pub(super) fn check_plugin(plugin: &Plugin) -> Vec<Complaint> {
    let mut desk = CelViolations { object: format!("Plugin {}", plugin_name(plugin)), complaints: Vec::new() };
    let length = plugin.metadata.name.as_deref().unwrap_or_default().len();
    if length > LONGEST_PLUGIN_NAME {
        let fix = format!("write at most {LONGEST_PLUGIN_NAME}: labels carry it");
        desk.complain("metadata.name", &format!("has {length} characters"), &fix);
    }
    desk.complaints
}

/// Whether a server may have this name.
pub(super) fn can_name_a_server(name: &str) -> bool {
    name.len() <= LONGEST_SERVER_NAME
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-')
}

/// Collects the violations of one object.
struct CelViolations {
    object: String,
    complaints: Vec<Complaint>,
}

impl CelViolations {
    fn complain(&mut self, path: &str, problem: &str, fix: &str) {
        let (object, path) = (self.object.clone(), path.to_owned());
        self.complaints.push(Complaint { object, path, problem: problem.to_owned(), fix: fix.to_owned() });
    }

    fn stop(&mut self, spec: &PaperMCServerSpec) {
        let timeout = &spec.graceful_shutdown.timeout;
        // The schema check reports an unreadable value.
        if duration::parse(timeout).is_ok_and(|timeout| timeout < GracefulShutdown::LEAST) {
            self.complain(
                "spec.gracefulShutdown.timeout",
                &format!("is `{timeout}`"),
                "write 60s or more: the server would be killed while it still writes the world, and one tick of a busy \
                 server may take a minute. The default is 5m",
            );
        }
        if spec.lacks_rcon() {
            self.complain("spec.rcon.enabled", "is `false`", NEEDS_RCON);
        }
    }

    fn schedule(&mut self, schedule: &UpdateSchedule) {
        const PATH: &str = "spec.updateSchedule.maintenanceWindow";
        match &schedule.maintenance_window {
            None if schedule.windows.is_empty() => {
                let fix = "write when the server may restart: `maintenanceWindow: {cron: \"0 4 * * 0\"}` for Sundays at \
                           04:00, or `{enabled: false}` for never by itself";
                self.complain(PATH, "is missing", fix);
            }
            None => {}
            Some(window) => {
                if window.enabled && window.cron.is_empty() {
                    let fix = "write when the server may restart: `cron: \"0 4 * * 0\"` for Sundays at 04:00";
                    self.complain(&format!("{PATH}.cron"), "is missing", fix);
                }
                self.zone(&format!("{PATH}.timeZone"), window.time_zone.as_ref());
            }
        }
        for (at, window) in schedule.windows.iter().enumerate() {
            self.zone(&format!("spec.updateSchedule.windows[{at}].timeZone"), window.time_zone.as_ref());
        }
        for (at, blackout) in schedule.blackouts.iter().enumerate() {
            self.blackout(&format!("spec.updateSchedule.blackouts[{at}]"), blackout);
        }
    }

    fn zone(&mut self, path: &str, zone: Option<&String>) {
        let Some(zone) = zone else { return };
        if let Some(fix) = fix_zone(zone) {
            self.complain(path, &format!("is `{zone}`, which is no time zone"), &fix);
        }
    }
}

/// Suggests a replacement for an unknown time zone. `None` when the zone exists.
fn fix_zone(zone: &str) -> Option<String> {
    // UTC is the default of servers. It is accepted first, because a lookup of any zone lists all zone directories.
    if zone == "UTC" || tz::db().get(zone).is_ok() {
        return None;
    }
    // Opens the file of every zone, which costs more than all other checks. It runs only for an unknown zone.
    let known: Vec<String> = tz::db().available().map(|name| name.to_string()).collect();
    // A machine without zone files cannot decide. The API server can.
    if known.is_empty() {
        return None;
    }
    Some(
        nearest(zone, known.iter().map(String::as_str))
            .next()
            .map_or_else(|| "write one such as `Europe/Berlin`".to_owned(), |meant| format!("did you mean `{meant}`?")),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn complaints(name: &str, more: &serde_json::Value) -> String {
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
        assert_eq!(complaints("lobby-2", &json!({})), "");
        for wrong in ["2b2t", "Lobby", "lobby-", &"a".repeat(41)] {
            assert!(complaints(wrong, &json!({})).contains("at most 40"), "{wrong}");
        }
    }

    #[test]
    fn backup_schedule_requires_backups_and_existing_zone() {
        let of = |enabled: bool, zone: &str| {
            let schedule = json!({"cron": "@daily", "timeZone": zone});
            complaints("lobby", &json!({"backup": {"enabled": enabled, "schedule": schedule}}))
        };
        assert_eq!(of(true, "Europe/Berlin"), "");
        assert!(of(false, "Europe/Berlin").contains("`spec.backup.schedule` stands beside `enabled: false`"));
        assert!(of(true, "Europe/Berlim").contains("`spec.backup.schedule.timeZone` is `Europe/Berlim`"));
    }

    #[test]
    fn stop_timeout_must_cover_longest_tick() {
        let of = |timeout: &str| complaints("lobby", &json!({"gracefulShutdown": {"timeout": timeout}}));
        assert_eq!([of("60s"), of("1m")].concat(), "");
        for short in ["30s", "59s"] {
            let said = of(short);
            assert!(said.contains(&format!("`spec.gracefulShutdown.timeout` is `{short}`")), "{said}");
            assert!(said.contains("write 60s or more") && said.contains("may take a minute"), "{said}");
        }
    }

    #[test]
    fn server_cannot_follow_itself() {
        let of = |server: &str| complaints("lobby", &json!({"follows": {"server": server}}));
        assert_eq!(of("staging"), "");
        assert!(of("lobby").contains("`spec.follows.server` is the server itself"), "{}", of("lobby"));
    }

    #[test]
    fn misspelt_time_zone_gets_nearest_suggestion() {
        assert_eq!(complaints("lobby", &json!({"timeZone": "Europe/Berlin"})), "");
        let window = json!({"maintenanceWindow": {"cron": "@daily", "timeZone": "America/NewYork"}});
        insta::assert_snapshot!(complaints("lobby", &json!({"timeZone": "Europe/Berlim", "updateSchedule": window})), @r##"
        PaperMCServer lobby: `spec.timeZone` is `Europe/Berlim`, which is no time zone; did you mean `Europe/Berlin`?
        PaperMCServer lobby: `spec.updateSchedule.maintenanceWindow.timeZone` is `America/NewYork`, which is no time zone; did you mean `America/New_York`?
        "##);
    }
}
