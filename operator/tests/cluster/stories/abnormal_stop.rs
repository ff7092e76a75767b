//! Edge (writes). Tests two servers that do not stop in time: the kubelet waits for the slow one and kills the one that
//! hangs.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;

use crate::cluster::manifests::{BEFORE, FAR, server, viabackwards};
use crate::cluster::server::Server;
use crate::cluster::wait::{A_START, until};
use crate::cluster::witness::ServerObserver;
use crate::cluster::world::{World, in_a_world};

/// Longer than Kubernetes' default grace period of a pod: 30 seconds.
const SLOW_STOP: Duration = Duration::from_secs(40);

#[tokio::test(flavor = "multi_thread")]
async fn slow_stop_completes_and_hung_server_is_reported_unsaved() {
    in_a_world("stops", BEFORE, async |world| {
        world.apply(&[server("slow", FAR), server("hung", FAR), viabackwards()]).await;
        let (slow, hung) = (Server::new(world, "slow"), Server::new(world, "hung"));
        slow.settled().await;
        hung.settled().await;
        futures::join!(slow_stop_ends_by_itself(world, &slow), hung_server_is_killed(world, &hung));
    })
    .await;
}

async fn delete_pod(world: &World, server: &Server<'_>) -> (Pod, ServerObserver) {
    let witness = ServerObserver::of(server).await;
    let before = server.pod().await.unwrap();
    world.kubectl(&["delete", "pod", &server.pod_name(), "--wait=false"], "").await;
    (before, witness)
}

async fn server_says(witness: &ServerObserver, words: &str) {
    until(&format!("the first process writes `{words}`"), A_START, async || {
        let said = witness.lines().iter().any(|line| line.run == 0 && line.text.contains(words));
        if said { Ok(()) } else { Err(witness.console()) }
    })
    .await;
}

async fn slow_stop_ends_by_itself(world: &World, slow: &Server<'_>) {
    slow.order("build 500").await;
    slow.order(&format!("fault slow-stop {}", SLOW_STOP.as_secs())).await;
    let start = Instant::now();
    let (before, witness) = delete_pod(world, slow).await;
    server_says(&witness, "Closing Server").await;
    assert!(start.elapsed() >= SLOW_STOP);
    slow.back_after(&before).await;
    assert!(slow.saved_blocks().await >= 500, "nothing is lost");
}

/// The hook waits for `gracefulShutdown.timeout`, SIGTERM follows, and the kubelet kills a process that does not react
/// to either.
async fn hung_server_is_killed(world: &World, hung: &Server<'_>) {
    let set = hung.set().await;
    hung.order("fault hang").await;
    let (before, witness) = delete_pod(world, hung).await;
    server_says(&witness, "Took too long").await;
    // The fault is on the volume and affects the next process, too.
    until("the next server is repaired", A_START, async || match hung.pod().await {
        Some(pod) if pod.metadata.uid != before.metadata.uid && hung.try_order("fault none").await => Ok(()),
        other => Err(format!("{:?}", other.map(|pod| pod.status.map(|status| status.phase)))),
    })
    .await;
    hung.back_after(&before).await;
    assert_eq!(hung.set().await, set);
    let (told, last) = hung.stopped_unsaved().await;
    assert!(!last.saved, "{told}; {last:?}");
    assert!(last.saved_at.is_none() && told.contains("No save is known since its start"), "{told}; {last:?}");
}
