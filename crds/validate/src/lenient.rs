//! Pure. Extracts from an invalid spec what a rollout in progress needs.

use crds::PaperMCServer;
use crds::paper_mc_server::{GracefulShutdown, Jvm, KeepPluginData, PlayersPolicy, Rcon, Software, UpdateSchedule};

use super::{CheckedServer, check};

/// Reads the identity of the server, its announcements and the timeout of a stop from a possibly invalid spec. A part with a violation is
/// replaced by its defaults. The faulty value may be the one that matters, and the defaults warn all players. `None` if even the rest is
/// invalid.
///
/// All other fields are cleared, so that nothing can depend on them.
pub fn check_leniently(server: &PaperMCServer) -> Option<CheckedServer> {
    let violations = match check(server) {
        Ok(checked) => return Some(checked),
        Err(violations) => violations,
    };
    let is_wrong = |part: &str| violations.iter().any(|violation| violation.path.starts_with(part));
    let mut server = server.clone();
    let spec = &mut server.spec;
    if is_wrong("spec.players") {
        spec.players = PlayersPolicy::default();
    }
    if is_wrong("spec.gracefulShutdown") {
        spec.graceful_shutdown = GracefulShutdown::default();
    }
    if is_wrong("spec.backup") {
        spec.backup = None;
    }
    if is_wrong("spec.timeZone") {
        "UTC".clone_into(&mut spec.time_zone);
    }
    spec.software = Software::default();
    spec.update_schedule = UpdateSchedule::default();
    (spec.rcon, spec.jvm, spec.keep_plugin_data) = (Rcon::default(), Jvm::default(), KeepPluginData::default());
    (spec.restart, spec.follows, spec.restore_from, spec.pod_template) = (None, None, None, None);
    check(&server).ok()
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use serde_json::{Value, json};

    use super::*;
    use crate::tests::server;

    fn read(spec: Value) -> CheckedServer {
        let server = server(spec);
        assert!(check(&server).is_err(), "{:?}", server.spec);
        check_leniently(&server).unwrap()
    }

    /// One example of each violation.
    fn violations() -> Vec<Value> {
        let container = |field: &str, value: Value| json!({"name": "papermc", field: value});
        let pod = |spec: Value| json!({"podTemplate": {"spec": spec}});
        vec![
            json!({"updateSchedule": {"maintenanceWindow": {"cron": "61 4 * * 0"}}}),
            json!({"updateSchedule": {"blackouts": [{"name": "xmas", "from": "soon", "to": "later"}]}}),
            json!({"updateSchedule": {"opportunistic": {"emptyFor": "long"}}}),
            json!({"software": "Folia"}),
            json!({"timeZone": "Mars"}),
            json!({"restart": {"cron": "never"}}),
            json!({"follows": {"server": "lobby"}}),
            json!({"rcon": {"enabled": false}}),
            json!({"jvm": {"heap": "lots"}}),
            json!({"keepPluginData": {"maxSize": "lots"}}),
            json!({"restoreFrom": {"backup": "../x"}}),
            json!({"backup": {"retention": {"maxAge": "long"}}}),
            json!({"gracefulShutdown": {"timeout": "1s"}}),
            json!({"players": {"notice": "soon"}}),
            json!({"players": {"show": []}}),
            pod(json!({"containers": [container("command", json!(["x"]))]})),
            pod(json!({"hostNetwork": true, "containers": []})),
        ]
    }

    #[test]
    fn invalid_spec_does_not_stop_rollout_or_change_notice() {
        for violation in violations() {
            let mut spec = json!({"players": {"notice": "9m", "text": "Down in {in}"}});
            let is_about_players = violation.get("players").is_some();
            spec.as_object_mut().unwrap().extend(violation.as_object().unwrap().clone());
            let read = read(spec);
            let (notice, text) = if is_about_players { (5, "The server restarts") } else { (9, "Down in {in}") };
            assert_eq!(read.players.notice, SignedDuration::from_mins(notice), "{violation}");
            assert!(read.players.announcement.text.starts_with(text), "{violation}");
            assert!(!read.players.show.is_empty() && read.pod.stop_timeout > SignedDuration::ZERO, "{violation}");
        }
    }

    #[test]
    fn invalid_spec_suppresses_scheduled_actions() {
        let read = read(json!({
            "jvm": {"heap": "lots"}, "restart": {"cron": "* * * * *"},
            "updateSchedule": {"maintenanceWindow": {"cron": "* * * * *"}},
        }));
        assert!(read.players.restart.is_none() && !read.updates_automatically());
    }
}
