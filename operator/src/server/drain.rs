//! Edge (reads). Determines whether the server's pod may be evicted, and whether its node is marked for removal. [`scheduler::rollout`]
//! decides about the consequences, and the `PodDisruptionBudget` follows from its decision.

use crds::paper_mc_server;
use scheduler::observation::{EvictionPolicy, NodeState, PlayerPolicy};
use scheduler::rollout::{Step, WaitingOn};

use super::observe::Observed;
use crate::context::Context;
use crate::node_watch::{DrainMark, NodeObservation};
use validate::{CheckedServer, Violation};

/// A server's eviction setting and its node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Drain {
    pub(crate) eviction: EvictionPolicy,
    /// The node of the pod. `None` if no pod is scheduled.
    pub(crate) node: Option<String>,
    pub(crate) observation: NodeObservation,
}

/// The required state of the `PodDisruptionBudget`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DisruptionBudget {
    /// Unchanged, because the state of the node is unknown.
    Unchanged,
    /// No budget, so the pod may be evicted at any time.
    None,
    /// The budget rejects evictions.
    Shut,
    /// The budget allows evictions.
    Open,
}

/// Reads the state of the server's node and registers the server for changes of it.
pub(crate) fn observe(ctx: &Context, server: &CheckedServer, observed: &Observed) -> Result<Drain, Violation> {
    let eviction = eviction_policy(server.players.eviction, server.players.policy, ctx.nodes.are_watched())?;
    let node = observed.pod.as_ref().and_then(|pod| pod.spec.as_ref()?.node_name.clone());
    let key = (server.namespace.clone(), server.name.clone());
    // Registered first, so that a mark set after the read wakes this server.
    match &node {
        Some(node) => ctx.caches.server_nodes.put(key, node.clone()),
        None => drop(ctx.caches.server_nodes.remove(&key)),
    }
    Ok(Drain { eviction, observation: ctx.nodes.observe(node.as_deref()), node })
}

/// Whether the pod may be evicted. Without a setting, a server that waits until it is empty does so for drains as well, if nodes can be
/// read.
fn eviction_policy(
    requested: Option<paper_mc_server::Eviction>,
    policy: PlayerPolicy,
    reads_nodes: bool,
) -> Result<EvictionPolicy, Violation> {
    use paper_mc_server::Eviction;
    match (requested, policy) {
        (Some(Eviction::OnUpgrade), _) if !reads_nodes => Err(Violation {
            path: "spec.eviction".to_owned(),
            problem: "`OnUpgrade` needs the operator to read nodes, which it may not: set `watchNodes: true` in the \
            values of its chart, or write `Always` (evicted at any time) or `Never` (an admin deletes the pod)"
                .to_owned(),
        }),
        (Some(Eviction::OnUpgrade), _) => Ok(EvictionPolicy::Announced),
        (Some(Eviction::Never), _) => Ok(EvictionPolicy::Never),
        (None, PlayerPolicy::WaitForEmpty { .. }) if reads_nodes => Ok(EvictionPolicy::Announced),
        (Some(Eviction::Always), _)
        | (None, PlayerPolicy::WaitForEmpty { .. } | PlayerPolicy::Announce | PlayerPolicy::Ignore) => {
            Ok(EvictionPolicy::Always)
        }
    }
}

impl Drain {
    /// A server that may be evicted at any time, on a node whose state is unknown.
    pub(crate) fn unknown() -> Self {
        Self { eviction: EvictionPolicy::Always, node: None, observation: NodeObservation::Unknown }
    }

    /// The state of the node in the rollout's types.
    pub(crate) fn node_state(&self) -> NodeState {
        match self.observation {
            NodeObservation::Unknown => NodeState::Unknown,
            NodeObservation::Unmarked => NodeState::NotDraining,
            NodeObservation::Marked(_) => NodeState::Draining,
        }
    }

    /// The node and its mark, if it has one.
    pub(crate) fn marked(&self) -> Option<(&str, DrainMark)> {
        match self.observation {
            NodeObservation::Marked(mark) => Some((self.node.as_deref()?, mark)),
            NodeObservation::Unknown | NodeObservation::Unmarked => None,
        }
    }

    /// The budget that follows from the step.
    pub(crate) fn budget(&self, step: Step) -> DisruptionBudget {
        match (self.eviction, self.observation) {
            (EvictionPolicy::Always, _) => DisruptionBudget::None,
            (EvictionPolicy::Announced, NodeObservation::Unknown) => DisruptionBudget::Unchanged,
            (EvictionPolicy::Announced, _) if step == Step::Wait(WaitingOn::Eviction) => DisruptionBudget::Open,
            (EvictionPolicy::Never, _)
            | (EvictionPolicy::Announced, NodeObservation::Unmarked | NodeObservation::Marked(_)) => {
                DisruptionBudget::Shut
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use paper_mc_server::Eviction;

    const PATIENT: PlayerPolicy = PlayerPolicy::WaitForEmpty { deadline: SignedDuration::from_mins(45) };

    #[test]
    fn eviction_default_depends_on_player_policy_and_node_access() {
        for reads_nodes in [true, false] {
            assert_eq!(eviction_policy(None, PlayerPolicy::Announce, reads_nodes), Ok(EvictionPolicy::Always));
            assert_eq!(eviction_policy(None, PlayerPolicy::Ignore, reads_nodes), Ok(EvictionPolicy::Always));
            assert_eq!(
                eviction_policy(Some(Eviction::Always), PATIENT, reads_nodes),
                Ok(EvictionPolicy::Always),
                "an explicit setting has priority"
            );
            assert_eq!(eviction_policy(Some(Eviction::Never), PATIENT, reads_nodes), Ok(EvictionPolicy::Never));
        }
        assert_eq!(eviction_policy(None, PATIENT, true), Ok(EvictionPolicy::Announced));
        assert_eq!(eviction_policy(None, PATIENT, false), Ok(EvictionPolicy::Always));
        assert_eq!(
            eviction_policy(Some(Eviction::OnUpgrade), PlayerPolicy::Ignore, true),
            Ok(EvictionPolicy::Announced)
        );
    }

    #[test]
    fn eviction_that_needs_nodes_names_missing_setting() {
        let message =
            eviction_policy(Some(Eviction::OnUpgrade), PlayerPolicy::Announce, false).unwrap_err().to_string();
        assert!(message.starts_with("spec.eviction: `OnUpgrade`"), "{message}");
        assert!(message.contains("`watchNodes: true`") && !message.contains("  "), "{message}");
    }

    #[test]
    fn disruption_budget_opens_only_while_rollout_awaits_eviction() {
        let drain = |eviction, observation| Drain { eviction, node: Some("a".to_owned()), observation };
        let marked = NodeObservation::Marked(DrainMark::Cordoned);
        let ready = Step::Wait(WaitingOn::Eviction);
        for observation in [NodeObservation::Unknown, NodeObservation::Unmarked, marked] {
            assert_eq!(drain(EvictionPolicy::Always, observation).budget(Step::UpToDate), DisruptionBudget::None);
            assert_eq!(drain(EvictionPolicy::Never, observation).budget(Step::UpToDate), DisruptionBudget::Shut);
        }
        assert_eq!(drain(EvictionPolicy::Announced, marked).budget(ready), DisruptionBudget::Open);
        assert_eq!(drain(EvictionPolicy::Announced, marked).budget(Step::EndDrain), DisruptionBudget::Shut);
        assert_eq!(
            drain(EvictionPolicy::Announced, NodeObservation::Unmarked).budget(Step::UpToDate),
            DisruptionBudget::Shut
        );
        assert_eq!(
            drain(EvictionPolicy::Announced, NodeObservation::Unknown).budget(Step::UpToDate),
            DisruptionBudget::Unchanged
        );
    }
}
