//! Edge (writes). Simulates a cluster that cannot run a new pod: it has no node, cannot mount a volume, or cannot pull the image of the server.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::cluster::SimCluster;
use super::fake_kubelet::Phase;
use crate::clock::now;
use crate::server::observe::pending::Lack;
use validate::image_contract::{PREPARE_CONTAINER, SERVER_CONTAINER};

impl SimCluster {
    /// From now on new pods lack this. `None`: the cluster runs all pods.
    pub(super) fn set_lack(&mut self, lack: Option<Lack>) {
        self.scripted.lack = lack;
        let Some(pod) = self.pod.as_ref().filter(|pod| pod.phase == Phase::Pending && lack.is_none()) else { return };
        let is_prepared = pod.prepared_at.is_some();
        let is_placed = self.objects.get(&self.pod_key()).is_ok_and(|pod| pod["spec"].get("nodeName").is_some());
        if !is_placed {
            return self.place_pending();
        }
        if is_prepared {
            self.boot();
        } else {
            let soon = now() + self.seconds(1, 4);
            self.pod.as_mut().expect("the pod exists").prepare_from(soon);
        }
        self.write_status();
        self.mark_changed();
    }

    /// Writes the status of a pod whose next container cannot be started, as the Kubernetes scheduler and the kubelet do.
    pub(super) fn write_pending_status(&mut self) {
        let Some(pod) = &self.pod else { return };
        let is_placed = self.objects.get(&self.pod_key()).is_ok_and(|pod| pod["spec"].get("nodeName").is_some());
        if !is_placed {
            let why = if self.scripted.lack == Some(Lack::Node) {
                "1 Insufficient memory"
            } else {
                "1 node(s) were unschedulable"
            };
            let condition = json!({
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                "message": format!("0/1 nodes are available: {why}."), "lastTransitionTime": pod.taken_at.to_string(),
            });
            let status = json!({"phase": "Pending", "conditions": [condition]});
            return self.objects.change(&self.pod_key(), now(), |pod| pod["status"] = status);
        }
        let at = |at: Timestamp| (at + self.scenario.node_clock_offset).to_string();
        let container = |name: &str, state: &Value| {
            json!({
                "name": name, "image": "", "imageID": "", "state": state, "lastState": {},
                "started": false, "ready": false, "restartCount": 0,
            })
        };
        let initializing = json!({"waiting": {"reason": "PodInitializing"}});
        let no_image =
            json!({"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image: no such host"}});
        let (prepare, server) = match pod.prepared_at {
            Some(done) => (json!({"terminated": {"exitCode": 0, "finishedAt": at(done)}}), no_image),
            None => (initializing.clone(), initializing),
        };
        let is_mounted = if pod.prepared_at.is_some() { "True" } else { "False" };
        let status = json!({
            "phase": "Pending", "podIP": self.scenario.address.to_string(), "startTime": at(pod.taken_at),
            "conditions": [{"type": "PodReadyToStartContainers", "status": is_mounted}, {"type": "Ready", "status": "False"}],
            "initContainerStatuses": [container(PREPARE_CONTAINER, &prepare)],
            "containerStatuses": [container(SERVER_CONTAINER, &server)],
        });
        self.objects.change(&self.pod_key(), now(), |pod| pod["status"] = status);
    }
}
