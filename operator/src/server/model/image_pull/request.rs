//! Pure. Determines which images the server's node needs before the server is stopped for its next set.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Container, ContainerStatus, ImageVolumeSource, Pod, PodSpec, PodTemplateSpec};
use kube::ResourceExt as _;
use serde_json::json;

use super::pod_status::pull_failure;
use crate::template_revision::digest;

/// The pull policy with which each start asks the registry.
const ALWAYS: &str = "Always";
const NEVER: &str = "Never";

/// One request to one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PullRequest {
    pub(crate) node: String,
    /// Pull policy by image.
    pub(crate) images: BTreeMap<String, String>,
    /// 16 hex digits. A different pod, node, image or credential makes a different request.
    pub(crate) digest: String,
}

impl PullRequest {
    /// The images of the goal that the current pod does not run. `None` if there are none, or the pod is on no node yet.
    pub(crate) fn from_goal(goal: &PodTemplateSpec, pod: &Pod) -> Option<Self> {
        let node = pod.spec.as_ref()?.node_name.clone()?;
        let goal = goal.spec.as_ref()?;
        let running = running_images(pod);
        let mut images: BTreeMap<String, String> = BTreeMap::new();
        for (image, policy) in needed_images(goal) {
            let (Some(image), Some(policy)) = (image, policy) else { continue };
            // Each start of a container with `Always` asks the registry, so a running container proves nothing.
            if policy != ALWAYS && running.contains(image.as_str()) {
                continue;
            }
            let merged = images.entry(image.clone()).or_insert_with(|| policy.clone());
            if policy == ALWAYS || merged == NEVER {
                merged.clone_from(policy);
            }
        }
        if images.is_empty() {
            return None;
        }
        let all = json!([pod.uid(), node, images, goal.image_pull_secrets, goal.service_account_name]);
        Some(Self { node, images, digest: hex::encode(&digest(&all)[..8]) })
    }

    /// Whether a start asks the registry, whatever the node has.
    pub(crate) fn is_always_pulled(&self) -> bool {
        self.images.values().any(|policy| policy == ALWAYS)
    }

    /// The images as text.
    pub(crate) fn description(&self) -> String {
        self.images.keys().map(|image| format!("`{image}`")).collect::<Vec<_>>().join(", ")
    }
}

fn containers(spec: &PodSpec) -> impl Iterator<Item = &Container> {
    spec.init_containers.iter().flatten().chain(&spec.containers)
}

/// Images that are mounted and not run (KEP 4639). The kubelet pulls them in the same way, with the same credentials.
fn image_volumes(spec: &PodSpec) -> impl Iterator<Item = &ImageVolumeSource> {
    spec.volumes.iter().flatten().filter_map(|volume| volume.image.as_ref())
}

/// All images that a pod of this spec needs, each with its policy.
fn needed_images(spec: &PodSpec) -> impl Iterator<Item = (Option<&String>, Option<&String>)> {
    let run = containers(spec).map(|container| (container.image.as_ref(), container.image_pull_policy.as_ref()));
    run.chain(image_volumes(spec).map(|volume| (volume.reference.as_ref(), volume.pull_policy.as_ref())))
}

/// The images that this pod runs or mounts, or that its node is pulling for it. Images that the node reports as not pullable are excluded.
/// A container that waits for a mounted image reports that image's failure as its own.
fn running_images(pod: &Pod) -> BTreeSet<&str> {
    let status = pod.status.as_ref();
    let init = status.and_then(|status| status.init_container_statuses.as_ref());
    let main = status.and_then(|status| status.container_statuses.as_ref());
    let statuses: Vec<&ContainerStatus> = init.into_iter().chain(main).flatten().collect();
    let is_refused =
        |of: &Container| statuses.iter().any(|status| status.name == of.name && pull_failure(status).is_some());
    let runs = pod.spec.iter().flat_map(containers).filter(|container| !is_refused(container));
    let waits = statuses.iter().any(|status| pull_failure(status).is_some());
    let mounts =
        pod.spec.iter().flat_map(image_volumes).filter(|_| !waits).filter_map(|volume| volume.reference.as_deref());
    runs.filter_map(|container| container.image.as_deref()).chain(mounts).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::Value;

    use super::*;

    /// A pod of `lobby` with this game image on `node-a`, which runs it and the agent.
    pub(crate) fn pod(image: &str) -> Value {
        let status =
            |name: &str| json!({"name": name, "image": "", "imageID": "sha256:0", "ready": true, "restartCount": 0});
        json!({
            "metadata": {"name": "lobby-0", "namespace": "games", "uid": "u-1"},
            "spec": {
                "nodeName": "node-a",
                "initContainers": [{"name": "prepare", "image": "agent:1"}, {"name": "agent", "image": "agent:1"}],
                "containers": [{"name": "papermc", "image": image}],
            },
            "status": {
                "initContainerStatuses": [status("prepare"), status("agent")],
                "containerStatuses": [status("papermc")],
            },
        })
    }

    /// A template with this game image and this agent, as the API server returns it.
    pub(crate) fn goal(game: (&str, &str), agent: &str) -> PodTemplateSpec {
        let container =
            |name: &str, image: &str, policy: &str| json!({"name": name, "image": image, "imagePullPolicy": policy});
        serde_json::from_value(json!({"spec": {
            "initContainers": [container("prepare", agent, "IfNotPresent"), container("agent", agent, "IfNotPresent")],
            "containers": [container("papermc", game.0, game.1)],
        }}))
        .unwrap()
    }

    fn pull_request(goal: &PodTemplateSpec, pod: &Value) -> Option<PullRequest> {
        PullRequest::from_goal(goal, &serde_json::from_value(pod.clone()).unwrap())
    }

    fn images(goal: &PodTemplateSpec, pod: &Value) -> Vec<(String, String)> {
        pull_request(goal, pod).map_or_else(Vec::new, |question| question.images.into_iter().collect())
    }

    fn pair(image: &str, policy: &str) -> (String, String) {
        (image.to_owned(), policy.to_owned())
    }

    #[test]
    fn image_pull_requests_only_images_the_pod_lacks() {
        let policy = "IfNotPresent";
        assert_eq!(images(&goal(("game:1", policy), "agent:1"), &pod("game:1")), []);
        assert_eq!(images(&goal(("game:2", policy), "agent:1"), &pod("game:1")), [pair("game:2", policy)]);
        let both = [pair("agent:2", policy), pair("game:2", policy)];
        assert_eq!(images(&goal(("game:2", policy), "agent:2"), &pod("game:1")), both, "each image occurs once");
        let question = pull_request(&goal(("game:2", policy), "agent:2"), &pod("game:1")).unwrap();
        assert_eq!(question.node, "node-a");
        assert_eq!(question.description(), "`agent:2`, `game:2`");
    }

    #[test]
    fn image_with_always_policy_is_pulled_even_if_running() {
        let question = pull_request(&goal(("game:latest", "Always"), "agent:1"), &pod("game:latest")).unwrap();
        assert_eq!(question.images.into_iter().collect::<Vec<_>>(), [pair("game:latest", "Always")]);
        let both = goal(("agent:1", "Always"), "agent:1");
        assert_eq!(images(&both, &pod("game:1")), [pair("agent:1", "Always")], "one container with `Always` is enough");
        assert!(pull_request(&both, &pod("game:1")).unwrap().is_always_pulled());
        assert!(!pull_request(&goal(("game:2", "Never"), "agent:1"), &pod("game:1")).unwrap().is_always_pulled());
    }

    #[test]
    fn image_missing_in_running_pod_is_pulled_unless_starting() {
        let mut waits = pod("game:2");
        waits["status"]["containerStatuses"][0]["imageID"] = json!("");
        let goal = goal(("game:2", "IfNotPresent"), "agent:1");
        assert_eq!(images(&goal, &waits), [], "the container is being started");
        let mut made = waits.clone();
        made["status"] = json!({});
        assert_eq!(images(&goal, &made), [], "the node has not reported yet");
        waits["status"]["containerStatuses"][0]["state"] = json!({"waiting": {"reason": "ErrImagePull"}});
        assert_eq!(images(&goal, &waits), [pair("game:2", "IfNotPresent")]);
        waits["spec"].as_object_mut().unwrap().remove("nodeName");
        assert_eq!(pull_request(&goal, &waits), None);
    }

    #[test]
    fn mounted_image_is_pulled_like_container_image() {
        let with = |mut of: Value, at: &str, reference: &str, policy: &str| {
            let volume = json!({"name": "maps", "image": {"reference": reference, "pullPolicy": policy}});
            let spec = of.pointer_mut(at).unwrap().as_object_mut().unwrap();
            spec.insert("volumes".to_owned(), json!([{"name": "shared", "emptyDir": {}}, volume]));
            of
        };
        let template = |reference: &str, policy: &str| -> PodTemplateSpec {
            let goal = serde_json::to_value(goal(("game:1", "IfNotPresent"), "agent:1")).unwrap();
            serde_json::from_value(with(goal, "/spec", reference, policy)).unwrap()
        };
        let policy = "IfNotPresent";
        assert_eq!(images(&template("maps:1", policy), &pod("game:1")), [pair("maps:1", policy)]);
        let mounts = with(pod("game:1"), "/spec", "maps:1", policy);
        assert_eq!(images(&template("maps:1", policy), &mounts), [], "the pod mounts the image");
        assert_eq!(images(&template("maps:2", policy), &mounts), [pair("maps:2", policy)]);
        assert_eq!(images(&template("maps:1", "Always"), &mounts), [pair("maps:1", "Always")]);
        let mut waits = mounts;
        waits["status"]["containerStatuses"][0]["state"] = json!({"waiting": {"reason": "ErrImagePull"}});
        assert!(images(&template("maps:1", policy), &waits).contains(&pair("maps:1", policy)), "it cannot be pulled");
    }

    #[test]
    fn pull_request_digest_depends_on_pod_node_and_credentials() {
        let goal = goal(("game:2", "IfNotPresent"), "agent:1");
        let digest = |goal: &PodTemplateSpec, pod: &Value| pull_request(goal, pod).unwrap().digest;
        let first = digest(&goal, &pod("game:1"));
        assert_eq!((first.len(), digest(&goal, &pod("game:1"))), (16, first.clone()));
        for (at, value) in [("/metadata/uid", "u-2"), ("/spec/nodeName", "node-b")] {
            let mut other = pod("game:1");
            *other.pointer_mut(at).unwrap() = json!(value);
            assert_ne!(digest(&goal, &other), first, "{at}");
        }
        let mut with_secret = goal.clone();
        let secret = serde_json::from_value(json!([{"name": "registry"}])).unwrap();
        with_secret.spec.as_mut().unwrap().image_pull_secrets = secret;
        assert_ne!(digest(&with_secret, &pod("game:1")), first);
    }
}
