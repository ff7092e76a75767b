//! Edge (writes). Deletes a pod by force while its server still runs: no second server opens the same world.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::cluster::manifests::{BEFORE_RELEASE, LOBBY, NEVER_OPEN, server, viabackwards};
use crate::cluster::node::processes;
use crate::cluster::server::Server;
use crate::cluster::test_env::{TestEnv, in_test_env, uid_of};

/// Counts the server processes of a namespace until it is stopped.
struct Counter {
    stop: Arc<AtomicBool>,
    task: JoinHandle<usize>,
}

impl Counter {
    fn start(env: &TestEnv) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let task = tokio::spawn(count(env.api(), Arc::clone(&stop)));
        Self { stop, task }
    }

    /// The highest number of processes at the same time.
    async fn stop_and_get_maximum(self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        self.task.await.unwrap()
    }
}

async fn count(pods: Api<Pod>, stop: Arc<AtomicBool>) -> usize {
    let mut uids = BTreeSet::new();
    let mut maximum = 0;
    while !stop.load(Ordering::Relaxed) {
        // The API server forgets a force-deleted pod while its processes still run.
        uids.extend(pods.list(&ListParams::default()).await.unwrap().items.iter().map(uid_of));
        let running = uids.iter().map(|uid| processes(uid, "/fake-paper").len()).sum();
        maximum = maximum.max(running);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    maximum
}

/// A server whose volume has this access mode.
pub(super) fn server_with_access_mode(access_mode: &str) -> Value {
    let mut object = server(LOBBY, NEVER_OPEN);
    object["spec"]["storage"]["accessMode"] = json!(access_mode);
    object
}

/// Force-deletes the pod of a server that needs 20 seconds to stop. Returns the highest number of servers at the same
/// time, and the log of the new pod's init container.
pub(super) async fn force_delete(env: &TestEnv, lobby: &Server<'_>) -> (usize, String) {
    let (version_set, before) = (lobby.version_set().await, lobby.pod().await.unwrap());
    lobby.send_command("build 500").await;
    // The kubelet gives a force-deleted pod this time to stop: the old server still runs when the new one wants to
    // start.
    lobby.send_command("fault slow-stop 20").await;
    let counter = Counter::start(env);
    env.kubectl(&["delete", "pod", "lobby-0", "--force", "--grace-period=0"], "").await;
    lobby.wait_for_new_pod(&before).await;
    let maximum = counter.stop_and_get_maximum().await;
    assert_eq!(lobby.version_set().await, version_set);
    (maximum, lobby.log("prepare").await)
}

#[tokio::test(flavor = "multi_thread")]
async fn read_write_once_pod_volume_keeps_second_server_out_after_force_delete() {
    in_test_env("one-pod", BEFORE_RELEASE, async |env| {
        env.apply(&[server_with_access_mode("ReadWriteOncePod"), viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        let (maximum, _) = force_delete(env, &lobby).await;
        assert_eq!(maximum, 1, "one server at a time");
    })
    .await;
}
