//! Pure. Reads the state of images from the status of a pod.
//!
//! The kubelet pulls an image before any other work on a container. Any later state of the container therefore proves that its image is
//! present, even if the image lacks the command or the container has exited.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

/// Reasons of a waiting container whose image the kubelet could not get (`pkg/kubelet/images/types.go`).
const PULL_FAILURE_REASONS: [&str; 7] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImageInspectError",
    "RegistryUnavailable",
    "SignatureValidationFailed",
];

/// Reasons of a waiting container that could not be created or started although its image is present (`pkg/kubelet/kuberuntime`).
const PULLED_REASONS: [&str; 5] = [
    "CreateContainerConfigError",
    "CreateContainerError",
    "PreStartHookError",
    "RunContainerError",
    "CrashLoopBackOff",
];

/// Prefixes of the reasons with which a kubelet rejects a pod for lack of resources, whatever its images are (`pkg/kubelet/lifecycle`,
/// `pkg/kubelet/cm/topologymanager`). Rejections because of a full disk are not among them, because an image would not fit either.
const NO_CAPACITY_PREFIXES: [&str; 2] = ["OutOf", "TopologyAffinityError"];

/// The state of the images of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PullStatus {
    /// All of them are on its node.
    Pulled,
    /// The result is not known yet.
    Pending,
    /// The result is not known yet, and no kubelet has noticed the pod.
    Unnoticed,
    /// The node rejects such a pod, whatever its images are. Holds the kubelet's message.
    NoCapacity(String),
    /// This image could not be pulled.
    Failed {
        /// `None` if the pod failed as a whole.
        image: Option<String>,
        /// The kubelet's message.
        why: String,
    },
}

/// The kubelet's message if it could not get the image of this container.
pub(crate) fn pull_failure(container: &ContainerStatus) -> Option<String> {
    let waiting = container.state.as_ref()?.waiting.as_ref()?;
    let reason = waiting.reason.as_deref().filter(|reason| PULL_FAILURE_REASONS.contains(reason))?;
    Some(format_failure(reason, waiting.message.as_deref()))
}

/// Whether the image is present. The state `terminated` alone proves nothing: a pod that failed before it created a container has it, too.
pub(crate) fn is_pulled(container: &ContainerStatus) -> bool {
    let state = container.state.as_ref();
    let reason = state.and_then(|state| state.waiting.as_ref()?.reason.as_deref());
    !container.image_id.is_empty()
        || container.container_id.as_ref().is_some_and(|id| !id.is_empty())
        || state.is_some_and(|state| state.running.is_some())
        || reason.is_some_and(|reason| PULLED_REASONS.contains(&reason))
}

/// The state of the images of a pull pod.
pub(crate) fn pull_status(pod: &Pod) -> PullStatus {
    let status = pod.status.as_ref();
    let statuses = status.and_then(|status| status.container_statuses.as_deref()).unwrap_or_default();
    let containers = pod.spec.as_ref().map_or(&[][..], |spec| spec.containers.as_slice());
    let of = |name: &str| statuses.iter().find(|status| status.name == name);
    let failed = containers.iter().find_map(|container| {
        let why = pull_failure(of(&container.name)?)?;
        Some(PullStatus::Failed { image: container.image.clone(), why })
    });
    if let Some(failed) = failed {
        return failed;
    }
    if !containers.is_empty() && containers.iter().all(|container| of(&container.name).is_some_and(is_pulled)) {
        return PullStatus::Pulled;
    }
    match status {
        // Rejected by the kubelet, or past its deadline.
        Some(status) if matches!(status.phase.as_deref(), Some("Failed" | "Succeeded")) => {
            let reason = status.reason.as_deref().unwrap_or("the pod has ended");
            let why = format_failure(reason, status.message.as_deref());
            if NO_CAPACITY_PREFIXES.iter().any(|prefix| reason.starts_with(prefix)) {
                PullStatus::NoCapacity(why)
            } else {
                PullStatus::Failed { image: None, why }
            }
        }
        // The start time is the first field that a kubelet writes.
        Some(status) if status.start_time.is_some() || !statuses.is_empty() => PullStatus::Pending,
        Some(_) | None => PullStatus::Unnoticed,
    }
}

fn format_failure(reason: &str, message: Option<&str>) -> String {
    match message.map(str::trim).filter(|message| !message.is_empty()) {
        Some(message) => format!("{reason}: {message}"),
        None => reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn status_of(phase: &str, of_each: &[Value]) -> PullStatus {
        let of = |name: usize| format!("image-{name}");
        let containers: Vec<_> = (0..2).map(|at| json!({"name": of(at), "image": format!("game:{at}")})).collect();
        let statuses = of_each.iter().enumerate().map(|(at, state)| {
            let mut status = json!({"name": of(at), "image": "", "imageID": "", "ready": false, "restartCount": 0});
            status.as_object_mut().unwrap().append(state.clone().as_object_mut().unwrap());
            status
        });
        let whole = json!({"phase": phase, "containerStatuses": statuses.collect::<Vec<_>>()});
        pull_status(&serde_json::from_value(json!({"spec": {"containers": containers}, "status": whole})).unwrap())
    }

    fn waiting(reason: &str, message: &str) -> Value {
        json!({"state": {"waiting": {"reason": reason, "message": message}}})
    }

    /// As containerd reports it: `terminated`, with a container ID.
    fn ended(reason: &str) -> Value {
        let terminated = json!({"reason": reason, "exitCode": 128, "containerID": "containerd://c"});
        json!({"imageID": "sha256:1", "containerID": "containerd://c", "state": {"terminated": terminated}})
    }

    #[test]
    fn container_that_ran_proves_its_image_is_present() {
        let creating = || waiting("ContainerCreating", "");
        for done in [
            ended("Completed"),
            ended("StartError"),
            json!({"imageID": "sha256:1", "state": {"running": {}}}),
            waiting("RunContainerError", "no such file"),
            waiting("CreateContainerError", "no such file"),
            waiting("CreateContainerConfigError", "runs as root"),
        ] {
            assert_eq!(status_of("Pending", &[done.clone(), ended("Completed")]), PullStatus::Pulled, "{done}");
            assert_eq!(status_of("Pending", &[done.clone(), creating()]), PullStatus::Pending, "{done}");
            assert_eq!(status_of("Running", &[done]), PullStatus::Pending, "the second container has no status yet");
        }
        assert_eq!(status_of("Pending", &[]), PullStatus::Unnoticed);
        assert_eq!(
            status_of("Failed", &[ended("StartError"), ended("StartError")]),
            PullStatus::Pulled,
            "both images lack the command"
        );
    }

    #[test]
    fn image_pull_failure_keeps_kubelet_message() {
        for reason in PULL_FAILURE_REASONS {
            let failed = PullStatus::Failed { image: Some("game:1".to_owned()), why: format!("{reason}: not found") };
            assert_eq!(status_of("Pending", &[ended("Completed"), waiting(reason, "not found")]), failed);
        }
        let silent = PullStatus::Failed { image: Some("game:0".to_owned()), why: "ErrImagePull".to_owned() };
        assert_eq!(status_of("Pending", &[waiting("ErrImagePull", ""), waiting("ContainerCreating", "")]), silent);
    }

    #[test]
    fn pod_that_ended_without_container_counts_as_failure() {
        let unknown = || json!({"state": {"terminated": {"reason": "ContainerStatusUnknown", "exitCode": 137}}});
        let failed = |why: &str| PullStatus::Failed { image: None, why: why.to_owned() };
        assert_eq!(status_of("Failed", &[unknown(), unknown()]), failed("the pod has ended"));
        let disk = "Pod was rejected: The node had condition: [DiskPressure]";
        assert_eq!(rejected("Evicted", disk), failed(&format!("Evicted: {disk}")), "an image would not fit either");
    }

    fn rejected(reason: &str, message: &str) -> PullStatus {
        let status = json!({"phase": "Failed", "reason": reason, "message": message});
        let pod = json!({"status": status, "spec": {"containers": [{"name": "image-0"}]}});
        pull_status(&serde_json::from_value(pod).unwrap())
    }

    #[test]
    fn pod_rejected_for_capacity_is_inconclusive() {
        for reason in ["OutOfpods", "OutOfcpu", "OutOfmemory", "OutOfephemeral-storage", "TopologyAffinityError"] {
            assert_eq!(rejected(reason, "no room"), PullStatus::NoCapacity(format!("{reason}: no room")));
        }
    }

    #[test]
    fn pod_untaken_by_kubelet_differs_from_pending() {
        let of = |status: Value| {
            pull_status(
                &serde_json::from_value(json!({"spec": {"containers": [{"name": "image-0"}]}, "status": status}))
                    .unwrap(),
            )
        };
        assert_eq!(of(json!({"phase": "Pending", "qosClass": "Guaranteed"})), PullStatus::Unnoticed);
        assert_eq!(of(json!({"phase": "Pending", "startTime": "2026-11-22T03:00:00Z"})), PullStatus::Pending);
    }
}
