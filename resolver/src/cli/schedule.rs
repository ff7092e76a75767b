//! Pure. When a server may be restarted: its windows as they are written, and the next one as the operator tells it.
//!
//! Windows are computed in one place, the operator's scheduler. This command only repeats what it said.

use crds::PaperMCServer;
use crds::paper_mc_server::{MaintenanceWindow, NamedWindow};
use jiff::Timestamp;

/// When a server may be restarted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Schedule {
    /// `0 4 * * 0 Europe/Berlin, for 2h`; empty: never by itself.
    pub(super) windows: Vec<String>,
    /// The next opening, with the operator's words for it.
    pub(super) next: Option<(Timestamp, String)>,
    /// The operator says that one is open.
    pub(super) is_open: bool,
}

/// What the object says.
pub(super) fn of(server: &PaperMCServer) -> Schedule {
    let spec = &server.spec;
    let maintenance = spec.update_schedule.maintenance_window.as_ref();
    if maintenance.is_some_and(|window| !window.enabled) {
        return Schedule::default();
    }
    let in_words = |cron: &str, length: &str, zone: Option<&String>| {
        format!("{cron} {}, for {length}", zone.unwrap_or(&spec.time_zone))
    };
    let of_maintenance = maintenance.map(|MaintenanceWindow { enabled: _, cron, duration, time_zone }| {
        in_words(cron, duration, time_zone.as_ref())
    });
    let further = spec.update_schedule.windows.iter();
    let further =
        further.map(|NamedWindow { name: _, cron, duration, time_zone }| in_words(cron, duration, time_zone.as_ref()));
    let windows = of_maintenance.into_iter().chain(further).collect();
    let status = server.status.as_ref();
    // A status about an older spec may speak of windows that are no more. Manifests do not tell their generation.
    let counts =
        |observed: &Option<i64>| server.metadata.generation.is_none() || *observed == server.metadata.generation;
    let status = status.filter(|status| counts(&status.observed_generation));
    Schedule {
        windows,
        next: status.and_then(|status| Some((status.next_window_at?, status.next_window.clone()?))),
        is_open: status.is_some_and(|status| status.next_window.as_deref() == Some("now")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn server(schedule: &Value, observed: i64) -> PaperMCServer {
        serde_json::from_value(json!({
            "metadata": {"name": "lobby", "generation": 3},
            "spec": {"updateStrategy": "auto", "timeZone": "Europe/Berlin", "updateSchedule": schedule},
            "status": {
                "observedGeneration": observed, "nextWindow": "Sun 25 Jan 04:00 CET", "nextWindowAt": "2026-01-25T03:00:00Z",
            },
        }))
        .unwrap()
    }

    #[test]
    fn windows_are_named_as_they_are_written_and_the_next_as_the_operator_tells_it() {
        let schedule = json!({
            "maintenanceWindow": {"cron": "0 4 * * 0", "duration": "2h"},
            "windows": [{"name": "night", "cron": "@daily", "timeZone": "UTC"}],
        });
        let told = of(&server(&schedule, 3));
        assert_eq!(told.windows, ["0 4 * * 0 Europe/Berlin, for 2h", "@daily UTC, for 1h"]);
        let (at, words) = told.next.unwrap();
        assert_eq!((at.to_string().as_str(), words.as_str()), ("2026-01-25T03:00:00Z", "Sun 25 Jan 04:00 CET"));
        assert_eq!(of(&server(&schedule, 2)).next, None, "the status is about an older spec");
    }

    #[test]
    fn a_window_that_is_switched_off_means_never_by_itself() {
        let off = of(&server(&json!({"maintenanceWindow": {"enabled": false}}), 3));
        assert_eq!(off, Schedule::default());
    }
}
