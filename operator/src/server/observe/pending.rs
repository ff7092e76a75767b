//! Pure. Determines what a pod lacks that only the cluster can provide: a node, its volumes or an image. The server's process cannot run before,
//! so this says nothing about its version set, and no deadline counts.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

use super::{last_termination, pod_condition, server_status, was_started};
use crate::server::model::image_pull::pod_status::{is_pulled, pull_failure};

/// The missing part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lack {
    Node,
    Volumes,
    Image,
}

/// A pod in which the server's process has never run, and cannot run yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PendingPod {
    pub(crate) lack: Lack,
    /// By the clock of the API server for a node, and by that of the node for the rest.
    pub(crate) since: Timestamp,
    /// The message of the Kubernetes scheduler or the kubelet. `None` if they report no problem, as during a normal start.
    pub(crate) problem: Option<String>,
}

impl PendingPod {
    /// `None` if the containers of the pod run, or have run, as far as the order of their starts allows.
    pub(crate) fn from_pod(pod: &Pod) -> Option<Self> {
        let status = pod.status.as_ref().filter(|status| status.phase.as_deref() == Some("Pending"))?;
        if pod.metadata.deletion_timestamp.is_some() || was_started(pod) {
            return None;
        }
        let unscheduled = pod_condition(pod, "PodScheduled").filter(|condition| condition.status == "False");
        // The start time is the first field that a kubelet writes.
        let taken_at = status.start_time.as_ref().filter(|_| unscheduled.is_none());
        let Some(taken_at) = taken_at else {
            let unscheduled_at = unscheduled.and_then(|condition| condition.last_transition_time.as_ref());
            let since = unscheduled_at.or(pod.metadata.creation_timestamp.as_ref());
            let problem =
                unscheduled.and_then(|condition| condition.message.clone().or_else(|| condition.reason.clone()));
            return Some(Self { lack: Lack::Node, since: since.map_or(Timestamp::UNIX_EPOCH, |at| at.0), problem });
        };
        let next = next_container(pod).filter(|next| !has_run(next) && !is_pulled(next))?;
        let init = || status.init_container_statuses.iter().flatten();
        let problem = pull_failure(next);
        // The kubelet pulls no image before the volumes are mounted.
        let is_mounted =
            pod_condition(pod, "PodReadyToStartContainers").is_some_and(|condition| condition.status == "True");
        let lack = if is_mounted || problem.is_some() || init().any(has_run) { Lack::Image } else { Lack::Volumes };
        let before = init().filter_map(|container| last_termination(container)?.finished_at.as_ref());
        let since = before.map(|at| at.0).fold(taken_at.0, Ord::max);
        Some(Self { lack, since, problem })
    }
}

/// The container that has to run next: the first init container that is not done, else the server's.
fn next_container(pod: &Pod) -> Option<&ContainerStatus> {
    let mut init = pod.status.as_ref()?.init_container_statuses.iter().flatten();
    init.find(|container| !is_done(pod, container)).or_else(|| server_status(pod))
}

/// Whether the containers after this init container may start.
fn is_done(pod: &Pod, container: &ContainerStatus) -> bool {
    let ended = container.state.as_ref().and_then(|state| state.terminated.as_ref());
    ended.is_some_and(|ended| ended.exit_code == 0)
        || container.started == Some(true) && is_sidecar(pod, &container.name)
}

fn is_sidecar(pod: &Pod, name: &str) -> bool {
    let mut init = pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
    init.any(|container| container.name == name && container.restart_policy.as_deref() == Some("Always"))
}

fn has_run(container: &ContainerStatus) -> bool {
    let runs = container.state.as_ref().is_some_and(|state| state.running.is_some());
    runs || container.restart_count > 0 || last_termination(container).is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const CREATED: &str = "2026-11-22T03:00:00Z";

    fn minute(of: i64) -> Timestamp {
        CREATED.parse::<Timestamp>().unwrap() + jiff::SignedDuration::from_mins(of)
    }

    fn pending(status: &Value) -> Option<(Lack, i64, Option<String>)> {
        let pod = json!({
            "metadata": {"name": "lobby-0", "creationTimestamp": CREATED},
            "spec": {"containers": [], "initContainers": [{"name": "prepare"}, {"name": "agent", "restartPolicy": "Always"}]},
            "status": status,
        });
        let found = PendingPod::from_pod(&serde_json::from_value(pod).unwrap())?;
        Some((found.lack, found.since.duration_since(minute(0)).as_mins(), found.problem))
    }

    fn container(name: &str, state: &Value) -> Value {
        json!({"name": name, "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state})
    }

    fn waiting(reason: &str) -> Value {
        json!({"waiting": {"reason": reason, "message": "no such tag"}})
    }

    /// A pod that a kubelet took after an hour, with these states of `prepare`, the agent and the server.
    fn taken(prepare: &Value, agent: &Value, server: &Value) -> Value {
        let mut agent_status = container("agent", agent);
        agent_status["started"] = json!(agent["running"].is_object());
        json!({
            "phase": "Pending", "startTime": minute(60).to_string(),
            "initContainerStatuses": [container("prepare", prepare), agent_status],
            "containerStatuses": [container("papermc", server)],
        })
    }

    #[test]
    fn pod_without_node_is_pending_since_scheduler_said_so() {
        let message = "0/1 nodes are available: 1 Insufficient memory.";
        let condition = json!({
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message,
            "lastTransitionTime": minute(1).to_string(),
        });
        let unscheduled = json!({"phase": "Pending", "conditions": [condition]});
        assert_eq!(pending(&unscheduled), Some((Lack::Node, 1, Some(message.to_owned()))));
        assert_eq!(pending(&json!({"phase": "Pending"})), Some((Lack::Node, 0, None)), "no kubelet has taken it");
        assert_eq!(pending(&json!({})), None);
    }

    #[test]
    fn pod_without_volumes_is_pending_until_prepare_runs() {
        let init = waiting("PodInitializing");
        let mut status = taken(&init, &init, &init);
        assert_eq!(pending(&status), Some((Lack::Volumes, 60, None)));
        status["conditions"] = json!([{"type": "PodReadyToStartContainers", "status": "True"}]);
        assert_eq!(pending(&status), Some((Lack::Image, 60, None)), "the kubelet pulls the image of `prepare`");
        assert_eq!(pending(&taken(&json!({"running": {}}), &init, &init)), None);
        let failed = json!({"terminated": {"exitCode": 1, "finishedAt": minute(61).to_string()}});
        assert_eq!(pending(&taken(&failed, &init, &init)), None, "`prepare` has failed");
    }

    #[test]
    fn pod_without_image_is_pending_whichever_container_lacks_it() {
        let (init, done) =
            (waiting("PodInitializing"), json!({"terminated": {"exitCode": 0, "finishedAt": minute(70).to_string()}}));
        let runs = json!({"running": {}});
        for reason in ["ErrImagePull", "ImagePullBackOff"] {
            let problem = Some(format!("{reason}: no such tag"));
            assert_eq!(pending(&taken(&waiting(reason), &init, &init)), Some((Lack::Image, 60, problem.clone())));
            assert_eq!(pending(&taken(&done, &waiting(reason), &init)), Some((Lack::Image, 70, problem.clone())));
            assert_eq!(pending(&taken(&done, &runs, &waiting(reason))), Some((Lack::Image, 70, problem)));
        }
        assert_eq!(pending(&taken(&done, &runs, &init)), Some((Lack::Image, 70, None)), "it is being pulled");
        assert_eq!(pending(&taken(&done, &runs, &waiting("CreateContainerError"))), None, "the image is present");
        assert_eq!(pending(&taken(&done, &runs, &runs)), None);
        let mut started = taken(&done, &runs, &waiting("ImagePullBackOff"));
        started["containerStatuses"][0]["lastState"] = json!({"terminated": {"exitCode": 1}});
        assert_eq!(pending(&started), None, "its process has run");
        let mut agent_fails = taken(&done, &runs, &init);
        agent_fails["initContainerStatuses"][1]["started"] = json!(false);
        assert_eq!(pending(&agent_fails), None, "the agent runs, and has not started");
    }
}
