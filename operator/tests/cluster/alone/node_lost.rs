//! Edge (writes). Tests a lost node: no pod is deleted by force, no second server starts, and the server returns as it
//! ran.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt as _;
use kube::api::Api;
use serde_json::json;

use crate::cluster::manifests::{AFTER, BEFORE, FAR, LOBBY, TO_AFTER, server, viabackwards};
use crate::cluster::node::{lose, processes};
use crate::cluster::server::Server;
use crate::cluster::wait::{SOON, until};
use crate::cluster::witness::ServerObserver;
use crate::cluster::world::{World, alone_in_a_world, uid_of};

/// Kubernetes considers a node ready for 50 s after its last report.
const GIVEN_UP: Duration = Duration::from_mins(2);
/// The grace period of a server with the shortest stop (165 s), and the minute after it.
const TAKEN_FOR_LOST: Duration = Duration::from_mins(5);

#[tokio::test(flavor = "multi_thread")]
async fn server_on_lost_node_returns_unchanged() {
    alone_in_a_world("node-lost", BEFORE, &[], async |world| {
        let mut object = server(LOBBY, FAR);
        // By default Kubernetes waits five more minutes before it deletes the pods of such a node.
        object["spec"]["podTemplate"]["spec"]["tolerations"] = json!([{
            "key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1,
        }]);
        world.apply(&[object, viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        world.upstream.set_now(AFTER).await;
        lobby.planned(&TO_AFTER).await;
        let (set, before, template) = (lobby.set().await, lobby.pod().await.unwrap(), lobby.stateful_set().await.spec);
        let witness = ServerObserver::of(&lobby).await;
        lobby.order("build 500").await;

        let node = before.spec.clone().unwrap().node_name.unwrap();
        let lost = lose(&node);
        until("the node is not heard of", GIVEN_UP, async || match ready(world, &node).await.as_deref() {
            Some("Unknown") => Ok(()),
            other => Err(format!("ready: {other:?}")),
        })
        .await;
        lost.evict().await;
        until("the pod is deleted, as its node is not heard of", SOON, async || {
            match world.api::<Pod>().get(&lobby.pod_name()).await.unwrap().metadata.deletion_timestamp {
                Some(_) => Ok(()),
                None => Err("it is not".to_owned()),
            }
        })
        .await;
        let message = until("the server's node is taken for lost", TAKEN_FOR_LOST, async || {
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
        assert_eq!(processes(&uid_of(&before), "/paper-stand-in").len(), 1, "the server itself runs on");
        let pod = world.api::<Pod>().get(&lobby.pod_name()).await.unwrap();
        assert_eq!(pod.uid(), before.uid(), "nobody forces a pod off a node that may be running it");
        assert_eq!(lobby.stateful_set().await.spec, template);

        drop(lost);
        lobby.back_after(&before).await;
        assert_eq!(lobby.set().await, set);
        assert!(lobby.saved_blocks().await >= 500, "nothing is lost");
        assert_eq!(witness.pods(), 2);
        // The update is still planned.
        lobby.planned(&TO_AFTER).await;
    })
    .await;
}

/// The Ready status of a node: `True`, `False` or `Unknown`.
async fn ready(world: &World, node: &str) -> Option<String> {
    let node = Api::<Node>::all(world.client.clone()).get(node).await.unwrap();
    let conditions = node.status?.conditions?;
    conditions.into_iter().find(|condition| condition.type_ == "Ready").map(|condition| condition.status)
}
