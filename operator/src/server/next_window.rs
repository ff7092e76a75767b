//! Pure. Determines when a server may be updated next, and what prevents that apart from its windows.

use jiff::Timestamp;

use super::check::CheckedServer;

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
    pub(crate) is_spoilt: bool,
}

impl NextWindow {
    /// The next window of this server.
    pub(crate) fn of(server: &CheckedServer, now: Timestamp) -> Self {
        let windows = &server.windows;
        let by_itself = server.changes_by_itself();
        let next_opening = if by_itself { windows.next_opening(now) } else { None };
        Self {
            next_opening,
            is_suspended: server.suspended,
            blackout: windows.blackout_at(now).map(|(blackout, until)| (blackout.name().to_owned(), until)),
            is_spoilt: by_itself && next_opening.is_none() && !windows.blackouts.is_empty(),
        }
    }

    /// The same for an update that may also begin in a window of its Plugin.
    pub(crate) fn with_window_of_a_plugin(self, opens: Option<Timestamp>) -> Self {
        Self { next_opening: self.next_opening.into_iter().chain(opens).min(), ..self }
    }
}

/// Message for a suspended server, for a condition and an Event.
pub(crate) const SUSPENDED: &str =
    "`spec.suspend` is true: updates are planned and staged, and not applied by themselves";

/// Message about blackouts that cover all windows, for a condition and an Event.
pub(crate) const SPOILT: &str = "`spec.updateSchedule.blackouts` leave nothing of the next windows, hundreds of them: updates are planned and never \
     applied by themselves; shorten a blackout or move a window";

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::server::check::check;
    use crate::server::check::tests::server;

    fn outlook(schedule: &Value) -> NextWindow {
        let server = check(&server(json!({"updateSchedule": schedule}))).unwrap();
        NextWindow::of(&server, "2026-11-22T12:00:00Z".parse().unwrap())
    }

    #[test]
    fn next_window_skips_blackouts() {
        let christmas = json!({"name": "event", "from": "2026-11-22T00:00:00Z", "to": "2026-12-01T00:00:00Z"});
        let told = outlook(&json!({"maintenanceWindow": {"cron": "0 4 * * 0"}, "blackouts": [christmas]}));
        let until: Timestamp = "2026-12-01T00:00:00Z".parse().unwrap();
        assert_eq!(told.next_opening.unwrap().to_string(), "2026-12-06T04:00:00Z");
        assert_eq!((told.blackout, told.is_spoilt), (Some(("event".to_owned(), until)), false));
    }

    #[test]
    fn suspended_server_has_no_next_window() {
        let spec = json!({"updateSchedule": {"maintenanceWindow": {"cron": "0 4 * * 0"}}, "suspend": true});
        let server = check(&server(spec)).unwrap();
        let now = "2026-11-22T04:30:00Z".parse().unwrap();
        let told = NextWindow::of(&server, now);
        assert!(told.is_suspended && told.next_opening.is_none() && !told.is_spoilt);
        let shut = scheduler::maintenance::Gate::Shut { opens: None };
        let said_nothing =
            crate::server::approval::ApprovalState { needs_approval: false, apply_since: None, applies_another: None };
        let gate = |by_hand| crate::server::plan::gate(&server, &said_nothing, by_hand, now);
        assert_eq!(gate(None), shut, "although a window is open");
        let by_hand = scheduler::maintenance::Gate::by_hand(now, false, now);
        assert_eq!(Some(gate(by_hand)), by_hand, "a person may all the same");
    }

    #[test]
    fn blackouts_that_cover_all_windows_are_reported() {
        let always = json!([{"name": "nights", "cron": "0 3 * * *", "duration": "3h"}]);
        let spoilt = outlook(&json!({"maintenanceWindow": {"cron": "0 4 * * 0"}, "blackouts": always}));
        assert!(spoilt.is_spoilt && spoilt.next_opening.is_none() && spoilt.blackout.is_none());
        let off = json!({"maintenanceWindow": {"enabled": false, "cron": "0 4 * * 0"}, "blackouts": always});
        assert!(!outlook(&off).is_spoilt);
        assert!(!outlook(&json!({"maintenanceWindow": {"cron": "0 4 * * 0"}})).is_spoilt);
    }
}
