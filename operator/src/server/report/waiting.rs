//! Pure. Renders the reason for which a pending update waits (update slot or players), and the effect of a server that is scaled to zero.

use jiff::Timestamp;
use scheduler::maintenance::Gate;
use scheduler::observation::Partition;
use scheduler::rollout::LATEST_START;

use super::PassReport;
use crate::server::check::CheckedServer;
use crate::update_slots::SlotUnavailable;

/// Number of servers ahead of this one that are named.
const NAMED_BEFORE: usize = 5;

/// The wait for players lasts until the deadline, if the window is long enough.
pub(super) fn players_in_words(until: Timestamp, report: &PassReport<'_>) -> String {
    let needs = until + report.plan.goal.notice + LATEST_START;
    match report.plan.gate {
        Gate::Open { until: shuts, .. } | Gate::NoNewStarts { until: shuts, .. }
            if shuts < needs && report.plan.is_update() =>
        {
            format!(
                "somebody is on, and players are waited for until {until} at most (`players.deadline`), but the window ends at {shuts}: while \
                 anybody plays nothing comes in it. Make the deadline shorter or the window longer"
            )
        }
        Gate::Open { .. } | Gate::NoNewStarts { .. } | Gate::Shut { .. } => {
            format!("somebody is on; waiting until {until} at most")
        }
    }
}

/// An update of a server that is scaled to zero is applied in a window. The server then starts with it, however much later.
pub(super) fn asleep_in_words(report: &PassReport<'_>) -> &'static str {
    let is_open = report.plan.seen.set.is_some_and(|set| set.door == Partition::Open);
    if is_open {
        "scaled to 0; what has begun comes when the server wakes, whenever that is"
    } else {
        "scaled to 0; what is due comes in a window (or by `updateSchedule.opportunistic`), also while the server sleeps, \
         and it wakes with that"
    }
}

/// The servers that are being updated, and those ahead of this one. Servers of other namespaces are only counted, because their names must
/// not be visible here.
pub(super) fn turn_in_words(
    SlotUnavailable { at_it, on_its_node, before }: &SlotUnavailable,
    checked: &CheckedServer,
) -> String {
    let servers = |count: usize| if count == 1 { "1 server is".to_owned() } else { format!("{count} servers are") };
    let at_it = match on_its_node {
        Some(here) => format!("{} being updated on its node (`maxConcurrentUpdatesPerNode`)", servers(*here)),
        None => format!("{} being updated (`maxConcurrentUpdates`)", servers(*at_it)),
    };
    let ours = before.iter().filter(|(namespace, _)| *namespace == checked.namespace).map(|(_, name)| name.as_str());
    let named: Vec<_> = ours.take(NAMED_BEFORE).collect();
    match (before.len(), &named[..]) {
        (0, _) => format!("{at_it}; this one is next"),
        (count, []) => format!("{at_it}; before this one come {count} of other namespaces"),
        (count, named) => format!("{at_it}; before this one come {count}, of this namespace {}", named.join(", ")),
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
        let of = |at_it, on_its_node, before: &[(&str, &str)]| {
            let before = before.iter().map(|(namespace, name)| ((*namespace).to_owned(), (*name).to_owned())).collect();
            turn_in_words(&SlotUnavailable { at_it, on_its_node, before }, &lobby)
        };
        let ours = lobby.namespace.as_str();
        assert_eq!(of(1, None, &[]), "1 server is being updated (`maxConcurrentUpdates`); this one is next");
        assert_eq!(
            of(2, None, &[(ours, "creative"), ("others", "secret"), (ours, "hub")]),
            "2 servers are being updated (`maxConcurrentUpdates`); before this one come 3, of this namespace creative, hub"
        );
        assert_eq!(
            of(5, Some(1), &[("others", "secret")]),
            "1 server is being updated on its node (`maxConcurrentUpdatesPerNode`); before this one come 1 of other namespaces"
        );
    }

    #[test]
    fn scaled_to_zero_message_announces_update_in_window() {
        let mut pass = Pass::new();
        let mut sleeps = |door| {
            pass.plan.seen.set =
                pass.plan.seen.set.map(|set| scheduler::observation::StatefulSetView { door, asleep: true, ..set });
            asleep_in_words(&pass.report())
        };
        let waits = sleeps(Partition::Closed);
        assert!(waits.contains("in a window") && waits.contains("also while the server sleeps"), "{waits}");
        assert!(sleeps(Partition::Open).ends_with("comes when the server wakes, whenever that is"));
    }
}
