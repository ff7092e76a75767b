//! Pure. Renders the reason for which a pending update waits (update slot or players), and the effect of a server that is scaled to zero.

use jiff::Timestamp;
use scheduler::maintenance::Gate;
use scheduler::observation::Partition;
use scheduler::rollout::LATEST_START;

use super::PassReport;
use crate::server::check::CheckedServer;
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
pub(super) fn update_slot_message(
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
