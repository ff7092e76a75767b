//! Edge (writes). Tests that a staged update succeeds while the server's pod has no network connection.

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::Api;

use crate::cluster::eventually::{SHORT_LIMIT, wait_until};
use crate::cluster::manifests::{
    AFTER_RELEASE, ALWAYS_OPEN, BEFORE_RELEASE, LOBBY, NEVER_OPEN, RELEASE_CHANGES, server, viabackwards,
};
use crate::cluster::node::block_all_but;
use crate::cluster::observer::ServerObserver;
use crate::cluster::server::Server;
use crate::cluster::test_env::in_exclusive_test_env;
use crate::cluster::update::wait_until_updated;
use crate::cluster::upstream;

#[tokio::test(flavor = "multi_thread")]
async fn staged_update_completes_without_network() {
    // Alone, because the address of the new pod is not known beforehand, so all pods except two are blocked.
    in_exclusive_test_env("offline", BEFORE_RELEASE, &[], async |env| {
        env.apply(&[server(LOBBY, NEVER_OPEN), viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        env.upstream.set_now(AFTER_RELEASE).await;
        lobby.wait_until_planned(&RELEASE_CHANGES).await;
        let observer = ServerObserver::start(&lobby).await;

        let (operator, upstream) = (env.operator().await, env.upstream_pod().await);
        let node = operator.spec.as_ref().unwrap().node_name.clone().unwrap();
        let node = Api::<Node>::all(env.client.clone()).get(&node).await.unwrap();
        let pods = node.spec.unwrap().pod_cidr.expect("the node has a pod network");
        let free = [address(&operator), address(&upstream)];
        let reaches = async || {
            let probe =
                format!("nc -w 2 {} {} </dev/null >/dev/null 2>&1 && echo yes || echo no", free[1], upstream::PORT);
            lobby.shell(&probe).await.trim() == "yes"
        };
        assert!(reaches().await, "the upstream is reachable before the block");
        let blocked = block_all_but("offline", &pods, &free);
        wait_until("the server's pod has no connection", SHORT_LIMIT, async || {
            if reaches().await { Err("it has".to_owned()) } else { Ok(()) }
        })
        .await;
        lobby.set_window(ALWAYS_OPEN).await;
        wait_until_updated(env, &lobby).await;
        assert!(!reaches().await, "the new pod has no connection either");
        drop(blocked);
        assert_eq!(lobby.version_set().await.plugins["ViaVersion"], "5.7.1");
        observer.assert_order(&[(0, "Closing Server"), (1, "Done (")]);
    })
    .await;
}

fn address(pod: &Pod) -> String {
    pod.status.as_ref().and_then(|status| status.pod_ip.clone()).expect("the pod has an address")
}
