//! Edge (reads). Determines whether the server's pod may be evicted, and whether its node is marked for removal. [`scheduler::rollout`]
//! decides about the consequences, and the `PodDisruptionBudget` follows from its decision.

use crds::paper_mc_server;
use scheduler::observation::{EvictionSeen, NodeState, PlayerPolicy};
use scheduler::rollout::{Step, WaitingOn};

use super::check::{CheckedServer, Complaint};
use super::observe::Observed;
use crate::context::Context;
use crate::node_watch::{DrainMark, NodeObservation};

/// A server's eviction setting and its node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Drain {
    pub(crate) eviction: EvictionSeen,
    /// The node of the pod. `None` if no pod is scheduled.
    pub(crate) node: Option<String>,
    pub(crate) look: NodeObservation,
}

/// The required state of the `PodDisruptionBudget`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DisruptionBudget {
    /// Unchanged, because the state of the node is unknown.
    AsItStands,
    /// No budget, so the pod may be evicted at any time.
    None,
    /// The budget rejects evictions.
    Shut,
    /// The budget allows evictions.
    Open,
}

/// Reads the state of the server's node and registers the server for changes of it.
pub(crate) fn look(ctx: &Context, server: &CheckedServer, seen: &Observed) -> Result<Drain, Complaint> {
    let eviction = eviction_of(server.eviction, server.policy, ctx.nodes.are_watched())?;
    let node = seen.pod.as_ref().and_then(|pod| pod.spec.as_ref()?.node_name.clone());
    let key = (server.namespace.clone(), server.name.clone());
    // Registered first, so that a mark set after the read wakes this server.
    match &node {
        Some(node) => ctx.memory.placed.put(key, node.clone()),
        None => drop(ctx.memory.placed.remove(&key)),
    }
    Ok(Drain { eviction, look: ctx.nodes.look(node.as_deref()), node })
}

/// Whether the pod may be evicted. Without a setting, a server that waits until it is empty does so for drains as well, if nodes can be
/// read.
fn eviction_of(
    wish: Option<paper_mc_server::Eviction>,
    policy: PlayerPolicy,
    reads_nodes: bool,
) -> Result<EvictionSeen, Complaint> {
    use paper_mc_server::Eviction as Wish;
    match (wish, policy) {
        (Some(Wish::OnUpgrade), _) if !reads_nodes => Err(Complaint {
            path: "spec.eviction".to_owned(),
            problem: "`OnUpgrade` begins when the node is cordoned, and this operator may not read nodes: set `watchNodes: true` in the values of \
                      its chart, or write `Always` (evicted at any time) or `Never` (a person deletes the pod)"
                .to_owned(),
        }),
        (Some(Wish::OnUpgrade), _) => Ok(EvictionSeen::Announced),
        (Some(Wish::Never), _) => Ok(EvictionSeen::Never),
        (None, PlayerPolicy::WaitForEmpty { .. }) if reads_nodes => Ok(EvictionSeen::Announced),
        (Some(Wish::Always), _) | (None, PlayerPolicy::WaitForEmpty { .. } | PlayerPolicy::Announce | PlayerPolicy::Ignore) => {
            Ok(EvictionSeen::Always)
        }
    }
}

impl Drain {
    /// The state of the node in the rollout's types.
    pub(crate) fn seen(&self) -> NodeState {
        match self.look {
            NodeObservation::Unknown => NodeState::Unknown,
            NodeObservation::Stays => NodeState::Stays,
            NodeObservation::Leaves(_) => NodeState::Leaves,
        }
    }

    /// The node and its mark, if it has one.
    pub(crate) fn marked(&self) -> Option<(&str, DrainMark)> {
        match self.look {
            NodeObservation::Leaves(mark) => Some((self.node.as_deref()?, mark)),
            NodeObservation::Unknown | NodeObservation::Stays => None,
        }
    }

    /// The budget that follows from the step.
    pub(crate) fn budget(&self, step: Step) -> DisruptionBudget {
        match (self.eviction, self.look) {
            (EvictionSeen::Always, _) => DisruptionBudget::None,
            (EvictionSeen::Announced, NodeObservation::Unknown) => DisruptionBudget::AsItStands,
            (EvictionSeen::Announced, _) if step == Step::Wait(WaitingOn::Eviction) => DisruptionBudget::Open,
            (EvictionSeen::Never, _)
            | (EvictionSeen::Announced, NodeObservation::Stays | NodeObservation::Leaves(_)) => DisruptionBudget::Shut,
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use paper_mc_server::Eviction as Wish;

    const PATIENT: PlayerPolicy = PlayerPolicy::WaitForEmpty { deadline: SignedDuration::from_mins(45) };

    #[test]
    fn eviction_default_depends_on_player_policy_and_node_access() {
        for reads_nodes in [true, false] {
            assert_eq!(eviction_of(None, PlayerPolicy::Announce, reads_nodes), Ok(EvictionSeen::Always));
            assert_eq!(eviction_of(None, PlayerPolicy::Ignore, reads_nodes), Ok(EvictionSeen::Always));
            assert_eq!(
                eviction_of(Some(Wish::Always), PATIENT, reads_nodes),
                Ok(EvictionSeen::Always),
                "a word is a word"
            );
            assert_eq!(eviction_of(Some(Wish::Never), PATIENT, reads_nodes), Ok(EvictionSeen::Never));
        }
        assert_eq!(eviction_of(None, PATIENT, true), Ok(EvictionSeen::Announced));
        assert_eq!(eviction_of(None, PATIENT, false), Ok(EvictionSeen::Always));
        assert_eq!(eviction_of(Some(Wish::OnUpgrade), PlayerPolicy::Ignore, true), Ok(EvictionSeen::Announced));
    }

    #[test]
    fn eviction_that_needs_nodes_names_missing_setting() {
        let said = eviction_of(Some(Wish::OnUpgrade), PlayerPolicy::Announce, false).unwrap_err().to_string();
        assert!(said.starts_with("spec.eviction: `OnUpgrade`"), "{said}");
        assert!(said.contains("`watchNodes: true`") && !said.contains("  "), "{said}");
    }

    #[test]
    fn disruption_budget_opens_only_while_rollout_awaits_eviction() {
        let drain = |eviction, look| Drain { eviction, node: Some("a".to_owned()), look };
        let marked = NodeObservation::Leaves(DrainMark::Cordoned);
        let ready = Step::Wait(WaitingOn::Eviction);
        for look in [NodeObservation::Unknown, NodeObservation::Stays, marked] {
            assert_eq!(drain(EvictionSeen::Always, look).budget(Step::Settled), DisruptionBudget::None);
            assert_eq!(drain(EvictionSeen::Never, look).budget(Step::Settled), DisruptionBudget::Shut);
        }
        assert_eq!(drain(EvictionSeen::Announced, marked).budget(ready), DisruptionBudget::Open);
        assert_eq!(drain(EvictionSeen::Announced, marked).budget(Step::EndDrain), DisruptionBudget::Shut);
        assert_eq!(
            drain(EvictionSeen::Announced, NodeObservation::Stays).budget(Step::Settled),
            DisruptionBudget::Shut
        );
        assert_eq!(
            drain(EvictionSeen::Announced, NodeObservation::Unknown).budget(Step::Settled),
            DisruptionBudget::AsItStands
        );
    }
}
