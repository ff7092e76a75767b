//! Pure. Renders why a pending update waits for a window, a blackout or players. A constraint that delays it is reported first.

use jiff::Timestamp;
use scheduler::maintenance::Gate;
use scheduler::observation::Partition;
use scheduler::rollout::LATEST_START;

use super::context::PassReport;
use crate::server::constraints;
use crate::server::next_window::{NO_USABLE_WINDOW, SUSPENDED};
use crate::server::partial::urgent::UrgentUpdate;
use crate::server::plan::constraint::{APPLY_NOW_HINT, Wait};

/// The wait for players lasts until the deadline, if the window is long enough.
pub(super) fn players_message(until: Timestamp, report: &PassReport<'_>) -> String {
    let needs = until + report.plan.goal.notice + LATEST_START;
    match report.plan.gate {
        Gate::Open { until: shuts, .. } | Gate::NoNewStarts { until: shuts, .. }
            if shuts < needs && report.plan.is_update() =>
        {
            format!(
                "Players are online. Nightshift waits for them until {until} at the latest (`players.deadline`), but \
                the window ends at {shuts}. While they play, no update is applied in it. Shorten the deadline or \
                extend the window."
            )
        }
        Gate::Open { .. } | Gate::NoNewStarts { .. } | Gate::Shut { .. } => {
            format!("Players are online. Waiting for them until {until} at the latest.")
        }
    }
}

/// An update of a server that is scaled to zero is applied in a window. The server then starts with it, however much later.
pub(super) fn scaled_to_zero_message(report: &PassReport<'_>) -> &'static str {
    let is_open =
        report.plan.observation.stateful_set.is_some_and(|stateful_set| stateful_set.partition == Partition::Open);
    if is_open {
        "Scaled to 0. The update that has begun is applied when the server is scaled up."
    } else {
        "Scaled to 0. A due update is applied in a window (or by `updateSchedule.opportunistic`), also while no pod \
        runs. The server then starts with it."
    }
}

/// The reason of `Updating` while a countdown is in progress that a joining player cancels.
pub(crate) const COUNTDOWN_WHILE_EMPTY: &str = "CountdownWhileEmpty";

/// Why no update begins now: reason and message.
pub(crate) fn waiting_for_window(opens: Option<Timestamp>, report: &PassReport<'_>) -> (&'static str, String) {
    let plan = report.plan;
    let next_window = &plan.next_window;
    if let Some(Wait { reason, message, .. }) = constraints::wait(report) {
        return (reason, message);
    }
    let next = match opens {
        Some(opens) => match plan.selection.partial.urgent().and_then(UrgentUpdate::own_window) {
            Some(own_window) if plan.gate == own_window.gate => {
                format!("The window of {} opens at {opens}.", own_window.scope)
            }
            Some(_) | None => format!("The window opens at {opens}."),
        },
        None if plan.gate.is_open() => "The rest of the window is too short for the countdown.".to_owned(),
        None if next_window.is_suspended => SUSPENDED.to_owned(),
        None if next_window.has_no_usable_window => NO_USABLE_WINDOW.to_owned(),
        None => "No window opens automatically.".to_owned(),
    };
    if let Some((name, until)) = &next_window.blackout {
        return ("Blackout", format!("Blackout `{name}` lasts until {until}. {next}"));
    }
    let next = format!("{next}{}", plan.opportunistic.window_suffix());
    match plan.gate {
        Gate::NoNewStarts { .. } => {
            let message = format!("No update starts in this last part of the window (`latestStart`). {next}");
            ("WaitingForWindow", message)
        }
        Gate::Shut { opens: None } if next_window.is_suspended => ("Suspended", format!("{next} {APPLY_NOW_HINT}")),
        Gate::Shut { opens: None } => ("WaitingForWindow", format!("{next} {APPLY_NOW_HINT}")),
        Gate::Open { .. } | Gate::Shut { opens: Some(_) } => ("WaitingForWindow", next),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::report::tests::Pass;

    #[test]
    fn scaled_to_zero_message_announces_update_in_window() {
        let mut pass = Pass::new();
        let mut message_at = |partition| {
            pass.plan.observation.stateful_set = pass.plan.observation.stateful_set.map(|stateful_set| {
                scheduler::observation::StatefulSetView { partition, scaled_to_zero: true, ..stateful_set }
            });
            scaled_to_zero_message(&pass.report())
        };
        let waits = message_at(Partition::Closed);
        assert!(
            waits.contains("A due update is applied in a window") && waits.contains("also while no pod runs"),
            "{waits}"
        );
        assert!(message_at(Partition::Open).ends_with("is applied when the server is scaled up."));
    }
}
