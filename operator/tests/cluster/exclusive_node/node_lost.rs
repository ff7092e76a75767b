//! Edge (writes). Tests a lost node: no pod is deleted by force, no second server starts, and the server returns as it
//! ran.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt as _;
use kube::api::Api;
use serde_json::json;

use crate::cluster::eventually::{SHORT_LIMIT, wait_until};
use crate::cluster::manifests::{
    AFTER_RELEASE, BEFORE_RELEASE, LOBBY, NEVER_OPEN, RELEASE_CHANGES, server, viabackwards,
};
use crate::cluster::node::{disconnect_node, processes};
use crate::cluster::observer::ServerObserver;
use crate::cluster::server::Server;
use crate::cluster::test_env::{TestEnv, in_exclusive_test_env, uid_of};

/// Kubernetes considers a node ready for 50 s after its last report.
const UNREACHABLE_LIMIT: Duration = Duration::from_mins(2);
/// The grace period of a server with the shortest stop (255 s), and the minute after it.
const NODE_LOST_LIMIT: Duration = Duration::from_mins(7);

#[tokio::test(flavor = "multi_thread")]
async fn server_on_lost_node_returns_unchanged() {
    in_exclusive_test_env("node-lost", BEFORE_RELEASE, &[], async |env| {
        let mut object = server(LOBBY, NEVER_OPEN);
        // By default Kubernetes waits five more minutes before it deletes the pods of such a node.
        object["spec"]["podTemplate"]["spec"]["tolerations"] = json!([{
            "key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1,
        }]);
        env.apply(&[object, viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        env.upstream.set_now(AFTER_RELEASE).await;
        lobby.wait_until_planned(&RELEASE_CHANGES).await;
        let (version_set, before, template) = (lobby.version_set().await, lobby.pod().await.unwrap(), lobby.stateful_set().await.spec);
        let observer = ServerObserver::start(&lobby).await;
        lobby.send_command("build 500").await;

        let node = before.spec.clone().unwrap().node_name.unwrap();
        let disconnected = disconnect_node(&node);
        wait_until("the node is unreachable", UNREACHABLE_LIMIT, async || match ready(env, &node).await.as_deref() {
            Some("Unknown") => Ok(()),
            other => Err(format!("ready: {other:?}")),
        })
        .await;
        disconnected.evict().await;
        wait_until("the pod of the unreachable node is being deleted", SHORT_LIMIT, async || {
            match env.api::<Pod>().get(&lobby.pod_name()).await.unwrap().metadata.deletion_timestamp {
                Some(_) => Ok(()),
                None => Err("no deletion timestamp".to_owned()),
            }
        })
        .await;
        let message = wait_until("the node is reported as lost", NODE_LOST_LIMIT, async || {
            let found = lobby.condition("Updating").await;
            match found {
                Some(found) if found.reason == "NodeLost" => Ok(found.message),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
        assert!(
            message.contains(&format!("kubectl taint nodes {node} node.kubernetes.io/out-of-service=nodeshutdown:NoExecute")),
            "{message}"
        );
        assert_eq!(processes(&uid_of(&before), "/fake-paper").len(), 1, "the server still runs");
        let pod = env.api::<Pod>().get(&lobby.pod_name()).await.unwrap();
        assert_eq!(pod.uid(), before.uid(), "the operator deletes no pod by force");
        assert_eq!(lobby.stateful_set().await.spec, template);

        drop(disconnected);
        lobby.wait_for_new_pod(&before).await;
        assert_eq!(lobby.version_set().await, version_set);
        assert!(lobby.saved_blocks().await >= 500, "no block is lost");
        assert_eq!(observer.pods(), 2);
        // The update is still planned.
        lobby.wait_until_planned(&RELEASE_CHANGES).await;
    })
    .await;
}

/// The Ready status of a node: `True`, `False` or `Unknown`.
async fn ready(env: &TestEnv, node: &str) -> Option<String> {
    let node = Api::<Node>::all(env.client.clone()).get(node).await.unwrap();
    let conditions = node.status?.conditions?;
    conditions.into_iter().find(|condition| condition.type_ == "Ready").map(|condition| condition.status)
}
