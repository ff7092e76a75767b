//! Pure. Keeps which nodes are to be drained, and no other data of a node. [`watcher`] reads the nodes.
//!
//! A refused eviction leaves no trace anywhere (measured). The marks of the nodes are therefore how the operator
//! notices that a server has to leave its node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use k8s_openapi::api::core::v1;
use kube::ResourceExt as _;
use kube::runtime::watcher::Event;

pub(crate) mod watcher;

/// Why a node is to be drained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DrainMark {
    /// The scheduler places no new pods on it. `kubectl drain` begins with that.
    Cordoned,
    /// The cluster autoscaler is about to remove it.
    ClusterAutoscaler,
    /// Karpenter is about to remove it.
    Karpenter,
}

impl DrainMark {
    /// The text that follows the name of the node.
    pub(crate) fn phrase(self) -> &'static str {
        match self {
            Self::Cordoned => "is cordoned",
            Self::ClusterAutoscaler => "is about to be removed by the cluster autoscaler",
            Self::Karpenter => "is about to be removed by Karpenter",
        }
    }
}

/// The taints of nodes that an autoscaler has begun to drain. The taint of a node that it only considers is not listed.
const TAINTS: [(&str, DrainMark); 3] = [
    ("ToBeDeletedByClusterAutoscaler", DrainMark::ClusterAutoscaler),
    ("karpenter.sh/disrupted", DrainMark::Karpenter),
    // Its name before Karpenter 1.0.
    ("karpenter.sh/disruption", DrainMark::Karpenter),
];

/// The mark of a node, if it has one. A user, an autoscaler or both may cordon a node, so a taint takes precedence over
/// the cordon.
fn mark_of(node: &v1::Node) -> Option<DrainMark> {
    let spec = node.spec.as_ref()?;
    let has = |key: &str| spec.taints.iter().flatten().any(|taint| taint.key == key);
    let by_taint = TAINTS.into_iter().find(|(key, _)| has(key)).map(|(_, mark)| mark);
    by_taint.or_else(|| (spec.unschedulable == Some(true)).then_some(DrainMark::Cordoned))
}

/// The state of one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeObservation {
    /// Nodes are not watched, or have not been read yet.
    Unknown,
    /// It has no mark, or the server is on no node.
    Unmarked,
    /// It has a mark.
    Marked(DrainMark),
}

/// All nodes with a mark.
pub(crate) struct Nodes {
    are_watched: bool,
    state: Mutex<MarkedNodes>,
}

#[derive(Debug, Default)]
struct MarkedNodes {
    is_read: bool,
    marked: BTreeMap<String, DrainMark>,
    /// The marks of a list that is still being read.
    listed: BTreeMap<String, DrainMark>,
}

/// The nodes whose servers have to be requeued.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    Nodes(BTreeSet<String>),
    /// All nodes: their first list is complete.
    All,
}

impl Nodes {
    pub(crate) fn new(are_watched: bool) -> Self {
        Self { are_watched, state: Mutex::default() }
    }

    /// Whether the operator is configured to watch nodes.
    pub(crate) fn are_watched(&self) -> bool {
        self.are_watched
    }

    /// The state of this node.
    pub(crate) fn observe(&self, node: Option<&str>) -> NodeObservation {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.is_read {
            return NodeObservation::Unknown;
        }
        node.and_then(|node| state.marked.get(node))
            .map_or(NodeObservation::Unmarked, |mark| NodeObservation::Marked(*mark))
    }

    /// Takes in an event of the watch.
    pub(crate) fn handle_event(&self, event: Event<v1::Node>) -> Changed {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).handle_event(event)
    }
}

impl MarkedNodes {
    fn handle_event(&mut self, event: Event<v1::Node>) -> Changed {
        match event {
            Event::Init => {
                self.listed.clear();
                Changed::Nodes(BTreeSet::new())
            }
            Event::InitApply(node) => {
                self.listed.extend(mark_of(&node).map(|mark| (node.name_any(), mark)));
                Changed::Nodes(BTreeSet::new())
            }
            Event::InitDone => {
                let before = std::mem::replace(&mut self.marked, std::mem::take(&mut self.listed));
                if !std::mem::replace(&mut self.is_read, true) {
                    return Changed::All;
                }
                let names = before.keys().chain(self.marked.keys());
                Changed::Nodes(names.filter(|name| before.get(*name) != self.marked.get(*name)).cloned().collect())
            }
            Event::Apply(node) => self.set_mark(node.name_any(), mark_of(&node)),
            Event::Delete(node) => self.set_mark(node.name_any(), None),
        }
    }

    fn set_mark(&mut self, node: String, mark: Option<DrainMark>) -> Changed {
        let before = match mark {
            Some(mark) => self.marked.insert(node.clone(), mark),
            None => self.marked.remove(&node),
        };
        Changed::Nodes(if before == mark { BTreeSet::new() } else { BTreeSet::from([node]) })
    }
}

#[cfg(test)]
mod tests;
