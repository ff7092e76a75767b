//! Edge (writes). Tests a server that crashes on its world repeatedly: a restore from a backup repairs it, also when
//! the operator has stopped it.

use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use crds::paper_mc_server::RestoreResult;

use crate::cluster::eventually::{START_LIMIT, wait_until};
use crate::cluster::manifests::{BEFORE_RELEASE, LOBBY, server_with_backups, viabackwards};
use crate::cluster::node::kill_9;
use crate::cluster::restore::{MARKER, wait_until_handled};
use crate::cluster::server::Server;
use crate::cluster::test_env::in_test_env;

#[tokio::test(flavor = "multi_thread")]
async fn restore_repairs_a_crash_looping_server_and_a_stopped_one() {
    in_test_env("dies-of-its-world", BEFORE_RELEASE, async |env| {
        let mut object = server_with_backups(LOBBY);
        object["spec"]["onCrashLoop"] = json!("Stop");
        env.apply(&[object, viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        lobby.put_file(MARKER, b"then").await;
        let backup_name = env.take_first_backup(LOBBY).await;
        let version_set = lobby.version_set().await;

        let before = break_world(&lobby).await;
        let request = format!("{backup_name};overwrite");
        env.annotate(LOBBY, &format!("nightshift.dev/restore-from={request}")).await;
        let handled = wait_until_handled(&lobby, &request).await;
        assert_eq!(handled.result, Some(RestoreResult::Restored), "{handled:?}");
        lobby.wait_for_new_pod(&before).await;
        lobby.wait_until_stable().await;
        assert_eq!(
            (lobby.version_set().await, lobby.shell(&format!("cat {MARKER}")).await),
            (version_set.clone(), "then".to_owned())
        );

        break_world(&lobby).await;
        lobby.wait_for_condition("CrashLoop", "True", "Stopped").await;
        lobby.wait_until_pod_is_deleted().await;
        // The text differs, so this is another request.
        let request = format!("{backup_name};overwrite;contents=Everything");
        env.annotate(LOBBY, &format!("nightshift.dev/restore-from={request}")).await;
        let handled = wait_until_handled(&lobby, &request).await;
        assert_eq!(handled.result, Some(RestoreResult::Restored), "{handled:?}");
        lobby.wait_until_stable().await;
        assert_eq!(
            (lobby.version_set().await, lobby.shell(&format!("cat {MARKER}")).await),
            (version_set, "then".to_owned())
        );
        assert_eq!(lobby.condition("CrashLoop").await, None);
        assert_eq!(env.event_notes(LOBBY, "WorldRestored").await.len(), 2);
        assert_eq!(env.event_notes(LOBBY, "RestoreFailed").await, Vec::<String>::new());
    })
    .await;
}

/// Corrupts `level.dat` and kills the process, so that each next start of the server fails. Returns the pod.
async fn break_world(server: &Server<'_>) -> Pod {
    server.put_file(MARKER, b"now").await;
    server.put_file("/data/world/level.dat", b"spoilt").await;
    let pod = server.pod().await.unwrap();
    kill_9(&pod, "/fake-paper");
    wait_until("the process of the server fails at each start", START_LIMIT, async || {
        let pod = server.pod().await.ok_or("there is no pod")?;
        let status = pod.status.and_then(|status| status.container_statuses).unwrap_or_default();
        let of_server = status.into_iter().find(|container| container.name == "papermc").ok_or("no container")?;
        if of_server.restart_count >= 1 && of_server.state.as_ref().is_some_and(|state| state.waiting.is_some()) {
            return Ok(());
        }
        Err(format!("{of_server:?}"))
    })
    .await;
    pod
}
