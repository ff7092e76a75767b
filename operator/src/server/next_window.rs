//! Pure. Determines when a server may be updated next, and what prevents that apart from its windows.

use jiff::Timestamp;

use validate::CheckedServer;

/// When a server may be updated, at one instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NextWindow {
    /// When an automatic update may begin next. While an opening is in progress, this is the next one after it. `None` if never.
    pub(crate) next_opening: Option<Timestamp>,
    /// `spec.suspend`: no automatic update begins.
    pub(crate) is_suspended: bool,
    /// The active blackout: its name and its end.
    pub(crate) blackout: Option<(String, Timestamp)>,
    /// Whether there are enabled windows, and blackouts cover every opening that was checked.
    pub(crate) has_no_usable_window: bool,
}

impl NextWindow {
    /// The next window of this server.
    pub(crate) fn new(server: &CheckedServer, now: Timestamp) -> Self {
        let windows = &server.updates.windows;
        let by_itself = server.updates_automatically();
        let next_opening = if by_itself { windows.next_opening(now) } else { None };
        Self {
            next_opening,
            is_suspended: server.updates.suspended,
            blackout: windows.blackout_at(now).map(|(blackout, until)| (blackout.name().to_owned(), until)),
            has_no_usable_window: by_itself && next_opening.is_none() && !windows.blackouts.is_empty(),
        }
    }

    /// The same for an update that may also begin in a window of its Plugin.
    pub(crate) fn with_plugin_window(self, opens: Option<Timestamp>) -> Self {
        Self { next_opening: self.next_opening.into_iter().chain(opens).min(), ..self }
    }
}

/// Message for a suspended server, for a condition and an Event.
pub(crate) const SUSPENDED: &str =
    "`spec.suspend` is true. Updates are planned and staged, but not applied automatically.";

/// Message about blackouts that cover all windows, for a condition and an Event.
pub(crate) const NO_USABLE_WINDOW: &str = "`spec.updateSchedule.blackouts` cover all of the next windows, hundreds of \
them. Updates are planned but never applied automatically. Shorten a blackout or move a window.";

#[cfg(test)]
mod tests {
    use crate::server::plan::gate::gate;
    use serde_json::{Value, json};

    use super::*;
    use crate::server::test_server::server;
    use validate::check;

    fn next_window(schedule: &Value) -> NextWindow {
        let server = check(&server(json!({"updateSchedule": schedule}))).unwrap();
        NextWindow::new(&server, "2026-11-22T12:00:00Z".parse().unwrap())
    }

    #[test]
    fn next_window_skips_blackouts() {
        let christmas = json!({"name": "event", "from": "2026-11-22T00:00:00Z", "to": "2026-12-01T00:00:00Z"});
        let next_window = next_window(&json!({"maintenanceWindow": {"cron": "0 4 * * 0"}, "blackouts": [christmas]}));
        let until: Timestamp = "2026-12-01T00:00:00Z".parse().unwrap();
        assert_eq!(next_window.next_opening.unwrap().to_string(), "2026-12-06T04:00:00Z");
        assert_eq!(
            (next_window.blackout, next_window.has_no_usable_window),
            (Some(("event".to_owned(), until)), false)
        );
    }

    #[test]
    fn suspended_server_has_no_next_window() {
        let spec = json!({"updateSchedule": {"maintenanceWindow": {"cron": "0 4 * * 0"}}, "suspend": true});
        let server = check(&server(spec)).unwrap();
        let now = "2026-11-22T04:30:00Z".parse().unwrap();
        let next_window = NextWindow::new(&server, now);
        assert!(next_window.is_suspended && next_window.next_opening.is_none() && !next_window.has_no_usable_window);
        let shut = scheduler::maintenance::Gate::Shut { opens: None };
        assert_eq!(gate(&server, None, now), shut, "although a window is open");
        let manual_gate = scheduler::maintenance::Gate::on_request(now, false, now);
        assert_eq!(Some(gate(&server, manual_gate, now)), manual_gate, "a user's request opens the gate");
    }

    #[test]
    fn blackouts_that_cover_all_windows_are_reported() {
        let always = json!([{"name": "nights", "cron": "0 3 * * *", "duration": "3h"}]);
        let spoilt = next_window(&json!({"maintenanceWindow": {"cron": "0 4 * * 0"}, "blackouts": always}));
        assert!(spoilt.has_no_usable_window && spoilt.next_opening.is_none() && spoilt.blackout.is_none());
        let off = json!({"maintenanceWindow": {"enabled": false, "cron": "0 4 * * 0"}, "blackouts": always});
        assert!(!next_window(&off).has_no_usable_window);
        assert!(!next_window(&json!({"maintenanceWindow": {"cron": "0 4 * * 0"}})).has_no_usable_window);
    }
}
