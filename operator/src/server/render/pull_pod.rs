//! Pure. Renders the pod that makes a node pull images. It runs no workload. A kubelet pulls the images of the pods on its node, and has no
//! other API for that.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Container, Pod, PodSecurityContext, PodSpec, PodTemplateSpec, ResourceRequirements, Toleration,
};

use super::child_meta;
use super::pod::{confined, quantities, runtime_default};
use crate::k8s::labels;
use crate::server::model::image_pull::request::PullRequest;
use crate::server::model::image_pull::state::PULL_TIMEOUT;
use validate::CheckedServer;
use validate::image_contract::SERVER_CONTAINER;

/// User ID where the server's image runs as root, or its user is unknown.
const NOBODY_UID: i64 = 65_534;

/// Resources of each container of the pod.
const PULL_RESOURCES: [(&str, &str); 2] = [("cpu", "20m"), ("memory", "32Mi")];

/// The name of the pull pod. It cannot collide with a pod of a `StatefulSet`, whose name ends in a number.
pub(crate) fn pull_name(server: &str) -> String {
    format!("{server}-images")
}

/// The pod that makes `request.node` pull the requested images, as the pods of `goal` would.
pub(crate) fn build_pull(server: &CheckedServer, goal: &PodTemplateSpec, request: &PullRequest, agent: &str) -> Pod {
    let mut metadata = child_meta(server, pull_name(&server.name));
    // It differs from the name label of a server, by which Service, StatefulSet and budget select.
    metadata.labels.get_or_insert_default().insert(labels::NAME.to_owned(), "papermc-images".to_owned());
    metadata.annotations = Some(BTreeMap::from([(labels::IMAGES.to_owned(), request.digest.clone())]));
    let goal = goal.spec.as_ref();
    let containers = request.images.iter().enumerate().map(|(at, (image, policy))| Container {
        name: format!("image-{at}"),
        image: Some(image.clone()),
        image_pull_policy: Some(policy.clone()),
        // A command that exits at once. An image without it was pulled all the same, which is the purpose.
        command: Some(if image == agent {
            vec!["/agent".to_owned(), "--version".to_owned()]
        } else {
            vec!["/bin/true".to_owned()]
        }),
        // A namespace with a quota requires both, and one with limits may require a ratio, so they are equal. They are small because a node
        // may be full of servers, and just large enough to start a process.
        resources: Some(ResourceRequirements {
            requests: Some(quantities(&PULL_RESOURCES)),
            limits: Some(quantities(&PULL_RESOURCES)),
            ..ResourceRequirements::default()
        }),
        security_context: Some(confined()),
        ..Container::default()
    });
    Pod {
        metadata,
        spec: Some(PodSpec {
            containers: containers.collect(),
            // The node is set directly, without the scheduler: no other node helps. The pod tolerates every taint that the server may
            // tolerate.
            node_name: Some(request.node.clone()),
            tolerations: Some(vec![Toleration { operator: Some("Exists".to_owned()), ..Toleration::default() }]),
            // The kubelet uses these credentials with the registry. No token is mounted.
            image_pull_secrets: goal.and_then(|spec| spec.image_pull_secrets.clone()),
            service_account_name: goal.and_then(|spec| spec.service_account_name.clone()),
            automount_service_account_token: Some(false),
            runtime_class_name: goal.and_then(|spec| spec.runtime_class_name.clone()),
            restart_policy: Some("Never".to_owned()),
            enable_service_links: Some(false),
            // The limit applies if no operator is left to delete the pod.
            active_deadline_seconds: Some(PULL_TIMEOUT.as_secs()),
            termination_grace_period_seconds: Some(1),
            security_context: Some(PodSecurityContext {
                run_as_non_root: Some(true),
                run_as_user: Some(goal.map_or(NOBODY_UID, server_user)),
                seccomp_profile: Some(runtime_default()),
                ..PodSecurityContext::default()
            }),
            ..PodSpec::default()
        }),
        ..Pod::default()
    }
}

/// The user of the server. A namespace with a range of users admits it.
fn server_user(goal: &PodSpec) -> i64 {
    let game = goal.containers.iter().find(|container| container.name == SERVER_CONTAINER);
    let server_uid = game.and_then(|game| game.security_context.as_ref()?.run_as_user);
    let of_pod = || goal.security_context.as_ref().and_then(|context| context.run_as_user);
    server_uid.or_else(of_pod).filter(|user| *user != 0).unwrap_or(NOBODY_UID)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::server::model::image_pull::request::tests::goal;
    use crate::server::model::image_pull::request::tests::pod;
    use crate::server::test_server::server;
    use validate::check;

    fn built(goal: &PodTemplateSpec) -> Pod {
        let request = PullRequest::from_goal(goal, &serde_json::from_value(pod("game:1")).unwrap()).unwrap();
        build_pull(&check(&server(json!({}))).unwrap(), goal, &request, "agent:2")
    }

    fn new_images() -> PodTemplateSpec {
        goal(("game:2", "IfNotPresent"), "agent:2")
    }

    #[test]
    fn pull_pod_bypasses_scheduler_and_ends_by_itself() {
        let pod = built(&new_images());
        assert_eq!(pod.metadata.name.as_deref(), Some("lobby-images"));
        let owners = pod.metadata.owner_references.unwrap();
        assert_eq!((owners.len(), owners[0].controller), (1, Some(true)), "`kubectl drain` requires a controller");
        let spec = serde_json::to_value(pod.spec.unwrap()).unwrap();
        assert_eq!(spec["nodeName"], "node-a");
        assert_eq!(spec["restartPolicy"], "Never");
        assert_eq!(spec["activeDeadlineSeconds"], 3_600);
        assert_eq!(spec["tolerations"], json!([{"operator": "Exists"}]));
        assert_eq!(spec.get("volumes"), None);
        let of = |at: usize, field: &str| spec["containers"][at][field].clone();
        assert_eq!((of(0, "image"), of(0, "command")), (json!("agent:2"), json!(["/agent", "--version"])));
        assert_eq!((of(1, "image"), of(1, "command")), (json!("game:2"), json!(["/bin/true"])));
        assert_eq!(of(1, "imagePullPolicy"), "IfNotPresent");
    }

    #[test]
    fn pull_pod_is_not_selected_by_server_objects() {
        let labels = built(&new_images()).metadata.labels.unwrap();
        assert!(labels::selector("lobby").iter().any(|(key, value)| labels.get(key) != Some(value)), "{labels:?}");
        assert_eq!(labels.get(labels::MANAGED_BY.0).map(String::as_str), Some(labels::MANAGED_BY.1));
        assert_eq!(labels.get(labels::SERVER).map(String::as_str), Some("lobby"));
    }

    /// The requirements of `restricted` in the Pod Security Standards.
    #[test]
    fn pull_pod_meets_restricted_standard_without_token() {
        let spec = serde_json::to_value(built(&new_images()).spec.unwrap()).unwrap();
        assert_eq!(spec["automountServiceAccountToken"], false);
        assert_eq!(spec["securityContext"]["runAsNonRoot"], true);
        assert_eq!(spec["securityContext"]["seccompProfile"], json!({"type": "RuntimeDefault"}));
        for container in spec["containers"].as_array().unwrap() {
            let context = &container["securityContext"];
            assert_eq!(context["allowPrivilegeEscalation"], false);
            assert_eq!(context["capabilities"], json!({"drop": ["ALL"]}));
            let of = |at: &str| container["resources"][at].clone();
            assert!(
                of("limits")["memory"] != Value::Null && of("limits")["cpu"] != Value::Null,
                "a quota may require them"
            );
            assert_eq!(of("requests"), of("limits"), "a `LimitRange` may require a ratio");
        }
    }

    #[test]
    fn pull_pod_uses_server_credentials_and_non_root_user() {
        let mut goal = new_images();
        let user_of = |goal: &PodTemplateSpec| built(goal).spec.unwrap().security_context.unwrap().run_as_user;
        assert_eq!(user_of(&goal), Some(NOBODY_UID));
        let spec = goal.spec.as_mut().unwrap();
        spec.image_pull_secrets = serde_json::from_value(json!([{"name": "registry"}])).unwrap();
        spec.service_account_name = Some("games".to_owned());
        spec.security_context = serde_json::from_value(json!({"runAsUser": 1000})).unwrap();
        assert_eq!(user_of(&goal), Some(1_000));
        let built = built(&goal).spec.unwrap();
        assert_eq!(built.image_pull_secrets.unwrap()[0].name, "registry");
        assert_eq!(built.service_account_name.as_deref(), Some("games"));
        let spec = goal.spec.as_mut().unwrap();
        spec.containers[0].security_context = serde_json::from_value(json!({"runAsUser": 0})).unwrap();
        assert_eq!(user_of(&goal), Some(NOBODY_UID), "`restricted` namespaces reject root");
    }
}
