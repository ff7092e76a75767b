//! Edge (writes). Simulates the node of the server: marked and drained, lost and back.
//!
//! The behaviour of evictions, the scheduler and the node controller was measured or read (`kubernetes-notes.md` of the
//! design, K14).

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1;
use serde_json::{Value, json};

use super::cluster::SimCluster;
use super::fake_kubelet::Phase;
use super::objects::{Key, is_stopping};
use crate::clock::now;

/// The interval between two tries of `kubectl drain`.
const ASKS_AGAIN: SignedDuration = SignedDuration::from_secs(5);
/// A node without a report for this long is not ready, and neither are its pods.
const UNHEARD: SignedDuration = SignedDuration::from_secs(40);
/// After this time its pods are deleted, which the lost node cannot carry out: `tolerationSeconds` of every pod without
/// another value.
const TOLERATED: SignedDuration = SignedDuration::from_mins(5);

/// The node that pods of the server are placed on.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// Nodes with lower numbers were lost forever.
    number: u32,
    is_cordoned: bool,
    pub(super) is_lost: bool,
    /// When the drain requests an eviction again.
    pub(super) evicts_at: Option<Timestamp>,
    /// Since when it is being drained.
    pub(super) drained_at: Option<Timestamp>,
}

impl Node {
    /// The node with this number.
    pub(super) fn numbered(number: u32) -> Self {
        Self { number, ..Self::default() }
    }

    /// The object in the API.
    pub(super) fn object(&self) -> v1::Node {
        let object = json!({"metadata": {"name": self.name()}, "spec": {"unschedulable": self.is_cordoned}});
        serde_json::from_value(object).expect("a node")
    }

    pub(super) fn name(&self) -> String {
        format!("node-{}", self.number)
    }
}

impl SimCluster {
    /// The node for a new pod. `None` if the current node takes no pods.
    pub(super) fn place(&mut self) -> Option<String> {
        if self.node.is_lost {
            // A user has deleted the earlier pod, knowing that the machine is off.
            self.node = Node { number: self.node.number + 1, ..Node::default() };
        }
        (!self.node.is_cordoned).then(|| self.node.name())
    }

    /// Simulates `kubectl drain`.
    pub(super) fn drain(&mut self) {
        if !self.node.is_lost {
            (self.node.is_cordoned, self.node.evicts_at) = (true, Some(now()));
            self.node.drained_at = Some(now());
            self.news = true;
        }
    }

    /// Simulates `kubectl uncordon`.
    pub(super) fn uncordon(&mut self) {
        (self.node.is_cordoned, self.node.evicts_at) = (false, None);
        self.news = true;
        self.place_pending();
    }

    /// Places a pending pod on this node, if the node takes pods.
    fn place_pending(&mut self) {
        if self.node.is_lost || self.node.is_cordoned {
            return;
        }
        let name = self.node.name();
        let soon = now() + self.seconds(1, 4);
        if let Some(pod) = self.pod.as_mut().filter(|pod| pod.phase == Phase::Pending) {
            (pod.phase, pod.due) = (Phase::Preparing, Some(soon));
            self.objects.change(&self.key_of_pod(), now(), |pod| pod["spec"]["nodeName"] = json!(name));
            self.write_status();
            self.changed();
        }
    }

    /// The drain requests the pod's eviction.
    pub(super) fn ask_for_eviction(&mut self) {
        if self.node.evicts_at.is_none_or(|at| now() < at) {
            return;
        }
        self.node.evicts_at = Some(now() + ASKS_AGAIN);
        let Ok(pod) = self.objects.get(&self.key_of_pod()) else { return };
        let is_on_it = pod["spec"]["nodeName"] == self.node.name().as_str();
        let is_ready = is_ready(pod);
        let budget = self.objects.get(&Key::new("poddisruptionbudgets", self.scenario.seat.name)).ok();
        let is_refused = is_ready && budget.is_some_and(|budget| budget["spec"]["maxUnavailable"] == 0);
        if !is_on_it || is_stopping(pod) || is_refused {
            return;
        }
        if is_ready {
            self.must(self.scenario.eviction != Some("Never"), "a server is evicted whose owner said never");
            if self.scenario.announces_evictions() {
                self.check_stop(&["drain/"]);
            }
        }
        self.end_pod("API server: evicts the pod");
    }

    /// The machine is switched off without a shutdown.
    pub(super) fn lose_node(&mut self) {
        (self.node.is_lost, self.forced) = (true, None);
        self.lose_unsaved();
        if let Some(pod) = self.pod.as_mut().filter(|pod| pod.phase != Phase::Pending) {
            (pod.phase, pod.due, pod.hangs_until) = (Phase::Lost, Some(now() + UNHEARD), None);
            pod.agent.vanish();
        }
    }

    /// The node has sent no report.
    pub(super) fn miss_node(&mut self) {
        let pod = self.pod.as_mut().expect("it is on that node");
        if std::mem::replace(&mut pod.is_missed, true) {
            pod.due = None;
            return self
                .end_pod("node controller: deletes the pod of the lost node, which stays until the node returns");
        }
        pod.due = Some(now() + TOLERATED);
        self.tell("node: is not Ready any more");
        self.objects.change(&self.key_of_pod(), now(), |pod| pod["status"]["conditions"] = conditions(false));
        self.changed();
    }

    /// The machine is on again: deleted pods end, and others start.
    pub(super) fn find_node(&mut self) {
        if !std::mem::take(&mut self.node.is_lost) {
            return;
        }
        self.place_pending();
        let soon = now() + self.seconds(1, 10);
        let ends = self.objects.get(&self.key_of_pod()).is_ok_and(is_stopping);
        let Some(pod) = self.pod.as_mut().filter(|pod| pod.phase == Phase::Lost) else { return };
        pod.prepare_again(soon);
        if ends {
            pod.phase = Phase::Stopping;
        }
        self.write_status();
        self.changed();
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
