//! Edge (writes). Tests that a staged update succeeds while the server's pod has no network connection.

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::Api;

use crate::cluster::manifests::{AFTER, ALWAYS, BEFORE, FAR, LOBBY, TO_AFTER, server, viabackwards};
use crate::cluster::node::block_all_but;
use crate::cluster::server::Server;
use crate::cluster::update::updated;
use crate::cluster::upstream;
use crate::cluster::wait::{SOON, until};
use crate::cluster::witness::ServerObserver;
use crate::cluster::world::alone_in_a_world;

#[tokio::test(flavor = "multi_thread")]
async fn staged_update_completes_without_network() {
    // Alone, because the address of the new pod is not known beforehand, so all pods except two are blocked.
    alone_in_a_world("offline", BEFORE, &[], async |world| {
        world.apply(&[server(LOBBY, FAR), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        world.upstream.set_now(AFTER).await;
        lobby.planned(&TO_AFTER).await;
        let witness = ServerObserver::of(&lobby).await;

        let (operator, upstream) = (world.operator().await, world.upstream_pod().await);
        let node = operator.spec.as_ref().unwrap().node_name.clone().unwrap();
        let node = Api::<Node>::all(world.client.clone()).get(&node).await.unwrap();
        let pods = node.spec.unwrap().pod_cidr.expect("the node has a network for its pods");
        let free = [address(&operator), address(&upstream)];
        let reaches = async || {
            let ask =
                format!("nc -w 2 {} {} </dev/null >/dev/null 2>&1 && echo yes || echo no", free[1], upstream::PORT);
            lobby.shell(&ask).await.trim() == "yes"
        };
        assert!(reaches().await, "as long as nothing is blocked");
        let blocked = block_all_but("offline", &pods, &free);
        until("the server's pod reaches nobody", SOON, async || {
            if reaches().await { Err("it does".to_owned()) } else { Ok(()) }
        })
        .await;
        lobby.set_window(ALWAYS).await;
        updated(world, &lobby).await;
        assert!(!reaches().await, "nor does the new one");
        drop(blocked);
        assert_eq!(lobby.set().await.plugins["ViaVersion"], "5.7.1");
        witness.assert_order(&[(0, "Closing Server"), (1, "Done (")]);
    })
    .await;
}

fn address(pod: &Pod) -> String {
    pod.status.as_ref().and_then(|status| status.pod_ip.clone()).expect("it has an address")
}
