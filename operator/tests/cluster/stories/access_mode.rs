//! Edge (writes). Deletes a pod by force while its server still runs: no second server opens the same world.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::cluster::manifests::{BEFORE, FAR, LOBBY, server, viabackwards};
use crate::cluster::node::processes;
use crate::cluster::server::Server;
use crate::cluster::world::{World, in_a_world, uid_of};

/// Counts the server processes of a namespace until it is stopped.
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

    /// The highest number of processes at the same time.
    async fn most(self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        self.task.await.unwrap()
    }
}

async fn count(pods: Api<Pod>, stop: Arc<AtomicBool>) -> usize {
    let mut known = BTreeSet::new();
    let mut most = 0;
    while !stop.load(Ordering::Relaxed) {
        // The API server forgets a force-deleted pod while its processes still run.
        known.extend(pods.list(&ListParams::default()).await.unwrap().items.iter().map(uid_of));
        let running = known.iter().map(|uid| processes(uid, "/paper-stand-in").len()).sum();
        most = most.max(running);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    most
}

/// A server whose volume has this access mode.
pub(super) fn server_with_access_mode(access_mode: &str) -> Value {
    let mut object = server(LOBBY, FAR);
    object["spec"]["storage"]["accessMode"] = json!(access_mode);
    object
}

/// Force-deletes the pod of a server that needs 20 seconds to stop. Returns the highest number of servers at the same
/// time, and the log of the new pod's init container.
pub(super) async fn force_delete(world: &World, lobby: &Server<'_>) -> (usize, String) {
    let (set, before) = (lobby.set().await, lobby.pod().await.unwrap());
    lobby.order("build 500").await;
    // The kubelet gives a force-deleted pod this time to stop: the old server still runs when the new one wants to
    // start.
    lobby.order("fault slow-stop 20").await;
    let counter = Counter::of(world);
    world.kubectl(&["delete", "pod", "lobby-0", "--force", "--grace-period=0"], "").await;
    lobby.back_after(&before).await;
    let most = counter.most().await;
    assert_eq!(lobby.set().await, set);
    (most, lobby.log("prepare").await)
}

#[tokio::test(flavor = "multi_thread")]
async fn read_write_once_pod_volume_keeps_second_server_out_after_force_delete() {
    in_a_world("one-pod", BEFORE, async |world| {
        world.apply(&[server_with_access_mode("ReadWriteOncePod"), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        let (most, _) = force_delete(world, &lobby).await;
        assert_eq!(most, 1, "servers at the same time");
    })
    .await;
}
