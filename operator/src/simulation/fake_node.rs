//! Edge (writes). Simulates the node of the server: marked and drained, lost and back.
//!
//! The behaviour of evictions, the scheduler and the node controller was measured or read (`kubernetes-notes.md` of the
//! design, K14).

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1;
use serde_json::{Value, json};

use super::cluster::SimCluster;
use super::fake_kubelet::Phase;
use super::objects::{Key, is_being_deleted};
use crate::clock::now;
use crate::server::observe::pending::Lack;

/// The interval between two tries of `kubectl drain`.
const EVICTION_RETRY_INTERVAL: SignedDuration = SignedDuration::from_secs(5);
/// A node without a report for this long is not ready, and neither are its pods.
const NODE_MONITOR_GRACE_PERIOD: SignedDuration = SignedDuration::from_secs(40);
/// After this time its pods are deleted, which the lost node cannot carry out: `tolerationSeconds` of every pod without
/// another value.
const TOLERATION: SignedDuration = SignedDuration::from_mins(5);

/// The node that pods of the server are placed on.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// Nodes with lower numbers were lost forever.
    number: u32,
    is_cordoned: bool,
    pub(super) is_lost: bool,
    /// When the drain requests an eviction again.
    pub(super) next_eviction_at: Option<Timestamp>,
    /// Since when it is being drained.
    pub(super) drained_at: Option<Timestamp>,
}

impl Node {
    /// The node with this number.
    pub(super) fn with_number(number: u32) -> Self {
        Self { number, ..Self::default() }
    }

    /// The object in the API.
    pub(super) fn to_object(&self) -> v1::Node {
        let object = json!({"metadata": {"name": self.name()}, "spec": {"unschedulable": self.is_cordoned}});
        serde_json::from_value(object).expect("a node")
    }

    pub(super) fn name(&self) -> String {
        format!("node-{}", self.number)
    }
}

impl SimCluster {
    /// The node for a new pod. `None` if the current node takes no pods.
    pub(super) fn node_for_new_pod(&mut self) -> Option<String> {
        if self.node.is_lost {
            // A user has deleted the earlier pod, knowing that the machine is off.
            self.node = Node { number: self.node.number + 1, ..Node::default() };
        }
        (!self.node.is_cordoned && self.scripted.lack != Some(Lack::Node)).then(|| self.node.name())
    }

    /// Simulates `kubectl drain`.
    pub(super) fn drain(&mut self) {
        if !self.node.is_lost {
            (self.node.is_cordoned, self.node.next_eviction_at) = (true, Some(now()));
            self.node.drained_at = Some(now());
            self.has_changes = true;
        }
    }

    /// Simulates `kubectl uncordon`.
    pub(super) fn uncordon(&mut self) {
        (self.node.is_cordoned, self.node.next_eviction_at) = (false, None);
        self.has_changes = true;
        self.place_pending();
    }

    /// Places a pending pod on this node, if the node takes pods.
    pub(super) fn place_pending(&mut self) {
        if self.node.is_lost || self.node.is_cordoned || self.scripted.lack == Some(Lack::Node) {
            return;
        }
        let name = self.node.name();
        let soon = now() + self.seconds(1, 4);
        if let Some(pod) = self.pod.as_mut().filter(|pod| pod.phase == Phase::Pending) {
            pod.taken_at = now();
            pod.prepare_from(soon);
            self.objects.change(&self.pod_key(), now(), |pod| pod["spec"]["nodeName"] = json!(name));
            self.write_status();
            self.mark_changed();
        }
    }

    /// The drain requests the pod's eviction.
    pub(super) fn request_eviction(&mut self) {
        if self.node.next_eviction_at.is_none_or(|at| now() < at) {
            return;
        }
        self.node.next_eviction_at = Some(now() + EVICTION_RETRY_INTERVAL);
        let Ok(pod) = self.objects.get(&self.pod_key()) else { return };
        let is_on_node = pod["spec"]["nodeName"] == self.node.name().as_str();
        let is_ready = is_ready(pod);
        let budget = self.objects.get(&Key::new("poddisruptionbudgets", self.scenario.server_index.name)).ok();
        let is_refused = is_ready && budget.is_some_and(|budget| budget["spec"]["maxUnavailable"] == 0);
        if !is_on_node || is_being_deleted(pod) || is_refused {
            return;
        }
        if is_ready {
            self.check(self.scenario.eviction != Some("Never"), "`eviction: Never` prevents evictions");
            if self.scenario.announces_evictions() {
                self.check_stop(&["drain/"]);
            }
        }
        self.delete_pod("API server: evicts the pod");
    }

    /// The machine is switched off without a shutdown.
    pub(super) fn lose_node(&mut self) {
        (self.node.is_lost, self.forced) = (true, None);
        self.lose_unsaved();
        if let Some(pod) = self.pod.as_mut().filter(|pod| pod.phase != Phase::Pending) {
            (pod.phase, pod.due, pod.hangs_until) = (Phase::NodeLost, Some(now() + NODE_MONITOR_GRACE_PERIOD), None);
            pod.agent.lose_with_node();
        }
    }

    /// The node has sent no report.
    pub(super) fn mark_node_not_ready(&mut self) {
        let pod = self.pod.as_mut().expect("a pod on the lost node");
        if std::mem::replace(&mut pod.is_node_unready, true) {
            pod.due = None;
            return self
                .delete_pod("node controller: deletes the pod of the lost node, which stays until the node returns");
        }
        pod.due = Some(now() + TOLERATION);
        self.trace("node: is no longer Ready");
        self.objects.change(&self.pod_key(), now(), |pod| pod["status"]["conditions"] = conditions(false));
        self.mark_changed();
    }

    /// The machine is on again: deleted pods end, and others start.
    pub(super) fn recover_node(&mut self) {
        if !std::mem::take(&mut self.node.is_lost) {
            return;
        }
        self.place_pending();
        let soon = now() + self.seconds(1, 10);
        let ends = self.objects.get(&self.pod_key()).is_ok_and(is_being_deleted);
        let Some(pod) = self.pod.as_mut().filter(|pod| pod.phase == Phase::NodeLost) else { return };
        pod.prepare_again(soon);
        if ends {
            pod.phase = Phase::Stopping;
        }
        self.write_status();
        self.mark_changed();
    }
}

/// Whether a pod is Ready, as the controllers of Kubernetes read it.
pub(super) fn is_ready(pod: &Value) -> bool {
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// The conditions of a pod that is Ready, or is not.
pub(super) fn conditions(ready: bool) -> Value {
    json!([{"type": "Ready", "status": if ready { "True" } else { "False" }}])
}
