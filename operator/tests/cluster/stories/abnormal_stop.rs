//! Edge (writes). Tests two servers that do not stop in time: the kubelet waits for the slow one and kills the one that
//! hangs.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;

use crate::cluster::eventually::{START_LIMIT, wait_until};
use crate::cluster::manifests::{BEFORE_RELEASE, NEVER_OPEN, server, viabackwards};
use crate::cluster::observer::ServerObserver;
use crate::cluster::server::Server;
use crate::cluster::test_env::{TestEnv, in_test_env};

/// Longer than Kubernetes' default grace period of a pod: 30 seconds.
const SLOW_STOP: Duration = Duration::from_secs(40);

#[tokio::test(flavor = "multi_thread")]
async fn slow_stop_completes_and_hung_server_is_reported_unsaved() {
    in_test_env("stops", BEFORE_RELEASE, async |env| {
        env.apply(&[server("slow", NEVER_OPEN), server("hung", NEVER_OPEN), viabackwards()]).await;
        let (slow, hung) = (Server::new(env, "slow"), Server::new(env, "hung"));
        slow.wait_until_stable().await;
        hung.wait_until_stable().await;
        futures::join!(assert_slow_stop_ends_by_itself(env, &slow), assert_hung_server_is_killed(env, &hung));
    })
    .await;
}

async fn delete_pod(env: &TestEnv, server: &Server<'_>) -> (Pod, ServerObserver) {
    let observer = ServerObserver::start(server).await;
    let before = server.pod().await.unwrap();
    env.kubectl(&["delete", "pod", &server.pod_name(), "--wait=false"], "").await;
    (before, observer)
}

async fn wait_for_line(observer: &ServerObserver, text: &str) {
    wait_until(&format!("the first process writes `{text}`"), START_LIMIT, async || {
        let is_written = observer.lines().iter().any(|line| line.run == 0 && line.text.contains(text));
        if is_written { Ok(()) } else { Err(observer.console()) }
    })
    .await;
}

async fn assert_slow_stop_ends_by_itself(env: &TestEnv, slow: &Server<'_>) {
    slow.send_command("build 500").await;
    slow.send_command(&format!("fault slow-stop {}", SLOW_STOP.as_secs())).await;
    let start = Instant::now();
    let (before, observer) = delete_pod(env, slow).await;
    wait_for_line(&observer, "Closing Server").await;
    assert!(start.elapsed() >= SLOW_STOP);
    slow.wait_for_new_pod(&before).await;
    assert!(slow.saved_blocks().await >= 500, "no block is lost");
}

/// The hook waits for `gracefulShutdown.timeout`, SIGTERM follows, and the kubelet kills a process that does not react
/// to either.
async fn assert_hung_server_is_killed(env: &TestEnv, hung: &Server<'_>) {
    let version_set = hung.version_set().await;
    hung.send_command("fault hang").await;
    let (before, observer) = delete_pod(env, hung).await;
    wait_for_line(&observer, "Took too long").await;
    // The fault is on the volume and affects the next process, too.
    wait_until("the next server is repaired", START_LIMIT, async || match hung.pod().await {
        Some(pod) if pod.metadata.uid != before.metadata.uid && hung.try_send_command("fault none").await => Ok(()),
        other => Err(format!("{:?}", other.map(|pod| pod.status.map(|status| status.phase)))),
    })
    .await;
    hung.wait_for_new_pod(&before).await;
    assert_eq!(hung.version_set().await, version_set);
    let (note, last) = hung.wait_for_unsaved_stop().await;
    assert!(!last.saved, "{note}; {last:?}");
    // The agent has saved the new world once.
    assert!(last.saved_at.is_some_and(|at| at < last.at), "{note}; {last:?}");
}
