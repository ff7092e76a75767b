//! Pure. Reports that an update waits for a free update slot (`maxConcurrentUpdates`). `server/update_slot.rs` acquires the slot when the
//! update is about to begin, because that changes the slots of the whole process.

use crate::server::plan::constraint::{Constraint, Wait};
use crate::server::report::context::PassReport;
use crate::update_slots::SlotUnavailable;
use validate::CheckedServer;

/// The reason of `Updating` while an update waits for a slot.
pub(crate) const UPDATE_SLOT: &str = "WaitingForUpdateSlot";
/// Number of servers ahead of this one that are named.
const MAX_NAMED: usize = 5;

pub(crate) struct UpdateSlot;

impl Constraint for UpdateSlot {
    fn wait(&self, report: &PassReport<'_>) -> Option<Wait> {
        let unavailable = report.plan.constraints.slot_unavailable.as_ref()?;
        let message = update_slot_message(unavailable, report.pass.checked);
        Some(Wait { reason: UPDATE_SLOT, message, short: None })
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::server::test_server::server;
    use validate::check;

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
}
