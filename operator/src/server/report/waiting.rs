//! Pure. Renders why a pending update waits: a window, a blackout, an approval, the followed server, a crash loop, an update slot or players.

use jiff::Timestamp;
use scheduler::maintenance::Gate;
use scheduler::observation::Partition;
use scheduler::rollout::LATEST_START;

use super::context::{MAX_MESSAGE_LENGTH, PassReport};
use super::format::format_time;
use crate::error_chain::cut;
use crate::server::changes;
use crate::server::check::CheckedServer;
use crate::server::crash_loop::CRASH_LOOP;
use crate::server::follows::FollowWait;
use crate::server::next_window::{NO_USABLE_WINDOW, SUSPENDED};
use crate::server::partial::urgent::UrgentUpdate;
use crate::server::plan::Plan;
use crate::update_slots::SlotUnavailable;

/// Number of servers ahead of this one that are named.
const MAX_NAMED: usize = 5;

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

/// The servers that are being updated, and those ahead of this one. Servers of other namespaces are only counted, because their names must
/// not be visible here.
fn update_slot_message(
    SlotUnavailable { updating, updating_on_node, queued_before }: &SlotUnavailable,
    checked: &CheckedServer,
) -> String {
    let servers = |count: usize| if count == 1 { "1 server is".to_owned() } else { format!("{count} servers are") };
    let updating = match updating_on_node {
        Some(on_node) => format!("{} being updated on its node (`maxConcurrentUpdatesPerNode`)", servers(*on_node)),
        None => format!("{} being updated (`maxConcurrentUpdates`)", servers(*updating)),
    };
    let same_namespace =
        queued_before.iter().filter(|(namespace, _)| *namespace == checked.namespace).map(|(_, name)| name.as_str());
    let named: Vec<_> = same_namespace.take(MAX_NAMED).collect();
    match (queued_before.len(), &named[..]) {
        (0, _) => format!("{updating}. This server is next."),
        (count, []) => format!("{updating}. Ahead of this server: {count} of other namespaces."),
        (count, named) => format!("{updating}. Ahead of this server: {count}, of this namespace {}.", named.join(", ")),
    }
}

/// The reason of `Updating` while a countdown is in progress that a joining player cancels.
pub(crate) const COUNTDOWN_WHILE_EMPTY: &str = "CountdownWhileEmpty";

pub(crate) fn waiting_for_window(
    opens: Option<Timestamp>,
    checked: &CheckedServer,
    report: &PassReport<'_>,
) -> (bool, &'static str, String) {
    let plan = report.plan;
    let next_window = &plan.next_window;
    if plan.approval.needs_approval {
        let message = format!("The version set {} is not approved. See ApprovalNeeded.", plan.record.files.lock);
        return (false, "ApprovalNeeded", message);
    }
    let apply_hint = "To apply the update anyway, annotate nightshift.dev/apply-now.";
    if plan.held_by_crashes {
        let message = format!("The server is in a crash loop. See {CRASH_LOOP}. {apply_hint}");
        return (false, "WaitingForServer", message);
    }
    if let Some(waits) = plan.leader_wait() {
        let message = format!("{} {apply_hint}", follow_wait_message(waits, checked, report.now));
        return (false, "WaitingForLeaderServer", cut(&message, MAX_MESSAGE_LENGTH));
    }
    if let Some(unavailable) = &plan.slot_unavailable {
        let open = match plan.opportunistic.reason {
            Some(_) => "No window is needed.",
            None => "The window is open.",
        };
        return (
            false,
            "WaitingForUpdateSlot",
            cut(&format!("{open} {}", update_slot_message(unavailable, checked)), MAX_MESSAGE_LENGTH),
        );
    }
    let next = match opens {
        Some(opens) => match plan.partial.urgent().and_then(UrgentUpdate::own_window) {
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
        return (false, "Blackout", format!("Blackout `{name}` lasts until {until}. {next}"));
    }
    let next = format!("{next}{}", plan.opportunistic.window_suffix());
    match plan.gate {
        Gate::NoNewStarts { .. } => {
            let message = format!("No update starts in this last part of the window (`latestStart`). {next}");
            (false, "WaitingForWindow", message)
        }
        Gate::Shut { opens: None } if next_window.is_suspended => (false, "Suspended", format!("{next} {apply_hint}")),
        Gate::Shut { opens: None } => (false, "WaitingForWindow", format!("{next} {apply_hint}")),
        Gate::Open { .. } | Gate::Shut { opens: Some(_) } => (false, "WaitingForWindow", next),
    }
}

/// The changes that need approval, with the command.
pub(crate) fn approval_needed(server: &CheckedServer, plan: &Plan) -> String {
    let CheckedServer { name, namespace, .. } = server;
    format!(
        "{}: approve it with `kubectl -n {namespace} annotate papermcserver {name} --overwrite {}={}`",
        cut(&changes::format_changes(&plan.changes), 640),
        crds::annotations::APPROVE,
        plan.record.files.lock
    )
}

/// The followed server and the missing condition.
pub(crate) fn follow_wait_message(waits: &FollowWait, server: &CheckedServer, now: Timestamp) -> String {
    waits.message(|at| format_time(at, &server.zone, now))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::server::check::check;
    use crate::server::check::tests::server;
    use crate::server::report::tests::Pass;

    #[test]
    fn update_slot_message_names_limit_and_servers_ahead() {
        let lobby = check(&server(json!({}))).unwrap();
        let of = |updating, on_its_node, before: &[(&str, &str)]| {
            let before = before.iter().map(|(namespace, name)| ((*namespace).to_owned(), (*name).to_owned())).collect();
            update_slot_message(
                &SlotUnavailable { updating, updating_on_node: on_its_node, queued_before: before },
                &lobby,
            )
        };
        let own_namespace = lobby.namespace.as_str();
        assert_eq!(of(1, None, &[]), "1 server is being updated (`maxConcurrentUpdates`). This server is next.");
        assert_eq!(
            of(2, None, &[(own_namespace, "creative"), ("others", "secret"), (own_namespace, "hub")]),
            "2 servers are being updated (`maxConcurrentUpdates`). Ahead of this server: 3, of this namespace \
            creative, hub."
        );
        assert_eq!(
            of(5, Some(1), &[("others", "secret")]),
            "1 server is being updated on its node (`maxConcurrentUpdatesPerNode`). Ahead of this server: 1 of other \
            namespaces."
        );
    }

    #[test]
    fn scaled_to_zero_message_announces_update_in_window() {
        let mut pass = Pass::new();
        let mut sleeps = |partition| {
            pass.plan.observation.stateful_set = pass.plan.observation.stateful_set.map(|stateful_set| {
                scheduler::observation::StatefulSetView { partition, scaled_to_zero: true, ..stateful_set }
            });
            scaled_to_zero_message(&pass.report())
        };
        let waits = sleeps(Partition::Closed);
        assert!(
            waits.contains("A due update is applied in a window") && waits.contains("also while no pod runs"),
            "{waits}"
        );
        assert!(sleeps(Partition::Open).ends_with("is applied when the server is scaled up."));
    }
}
