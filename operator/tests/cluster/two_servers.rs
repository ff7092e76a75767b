//! Edge (writes). Nobody opens a world twice.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use serde_json::json;
use tokio::task::JoinHandle;

use super::manifests::{BEFORE, FAR, LOBBY, server, viabackwards};
use super::node::processes;
use super::server::Server;
use super::world::{World, in_a_world, uid_of};

/// How often a pod is deleted for a new one that meets the old server.
const TRIES: usize = 3;

/// Counts server processes of a namespace for as long as it is asked to.
struct Counter {
    stop: Arc<AtomicBool>,
    task: JoinHandle<usize>,
}

impl Counter {
    fn of(world: &World) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let task = tokio::spawn(count(world.api(), Arc::clone(&stop)));
        Self { stop, task }
    }

    /// The most that ran at the same time.
    async fn most(self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        self.task.await.unwrap()
    }
}

async fn count(pods: Api<Pod>, stop: Arc<AtomicBool>) -> usize {
    let mut known = BTreeSet::new();
    let mut most = 0;
    while !stop.load(Ordering::Relaxed) {
        // A pod that was force-deleted is gone from the API while its processes live.
        known.extend(pods.list(&ListParams::default()).await.unwrap().items.iter().map(uid_of));
        let running = known.iter().map(|uid| processes(uid, "/paper-stand-in").len()).sum();
        most = most.max(running);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    most
}

async fn started<'w>(world: &'w World, access_mode: &str) -> Server<'w> {
    let mut object = server(LOBBY, FAR);
    object["spec"]["storage"]["accessMode"] = json!(access_mode);
    world.apply(&[object, viabackwards()]).await;
    let lobby = Server::new(world, LOBBY);
    lobby.settled().await;
    lobby
}

/// Force-deletes the pod of a server that takes its time to stop. The most servers at a time, and what the new one's init
/// container wrote.
async fn force_delete(world: &World, lobby: &Server<'_>) -> (usize, String) {
    let (set, before) = (lobby.set().await, lobby.pod().await.unwrap());
    lobby.order("build 500").await;
    // As long as the kubelet lets it: the old server is still there when the new one wants to start.
    lobby.order("fault slow-stop 20").await;
    let counter = Counter::of(world);
    world.kubectl(&["delete", "pod", "lobby-0", "--force", "--grace-period=0"], "").await;
    lobby.back_after(&before).await;
    let most = counter.most().await;
    assert_eq!(lobby.set().await, set);
    (most, lobby.log("prepare").await)
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_force_delete_a_volume_for_one_pod_keeps_the_new_server_out_until_the_old_one_is_gone() {
    in_a_world("one-pod", BEFORE, async |world| {
        let lobby = started(world, "ReadWriteOncePod").await;
        let (most, _) = force_delete(world, &lobby).await;
        assert_eq!(most, 1, "servers at the same time");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_force_delete_on_a_volume_for_one_node_the_init_container_waits_for_the_old_server() {
    in_a_world("one-node", BEFORE, async |world| {
        let lobby = started(world, "ReadWriteOnce").await;
        let mut logs = Vec::new();
        // Seldom the API server does not let the kubelet see the claim of so new a pod ("no relationship found between node
        // and this object"); the kubelet tries again after the old server has gone, and there is nothing to wait for.
        for _ in 0..TRIES {
            let (most, log) = force_delete(world, &lobby).await;
            assert_eq!(most, 1, "servers at the same time");
            let waited = log.contains("waiting: another server has this world open");
            logs.push(log);
            if waited {
                return;
            }
        }
        panic!("nobody waited for the old server: {logs:#?}");
    })
    .await;
}
