//! Edge (writes). Tests a server that crashes on its world repeatedly: a restore from a backup repairs it, also when
//! the operator has stopped it.

use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use crds::paper_mc_server::RestoreResult;

use crate::cluster::manifests::{BEFORE, LOBBY, server_with_copies, viabackwards};
use crate::cluster::node::kill_9;
use crate::cluster::restore::{MARKER, over};
use crate::cluster::server::Server;
use crate::cluster::wait::{A_START, until};
use crate::cluster::world::in_a_world;

#[tokio::test(flavor = "multi_thread")]
async fn restore_repairs_a_crash_looping_server_and_a_stopped_one() {
    in_a_world("dies-of-its-world", BEFORE, async |world| {
        let mut object = server_with_copies(LOBBY);
        object["spec"]["onCrashLoop"] = json!("Stop");
        world.apply(&[object, viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        lobby.put_file(MARKER, b"then").await;
        let copy = world.first_copy(LOBBY).await;
        let set = lobby.set().await;

        let before = breaks_its_world(&lobby).await;
        let asked = format!("{copy};overwrite");
        world.annotate(LOBBY, &format!("nightshift.dev/restore-from={asked}")).await;
        let handled = over(&lobby, &asked).await;
        assert_eq!(handled.result, Some(RestoreResult::Restored), "{handled:?}");
        lobby.back_after(&before).await;
        lobby.settled().await;
        assert_eq!((lobby.set().await, lobby.shell(&format!("cat {MARKER}")).await), (set.clone(), "then".to_owned()));

        breaks_its_world(&lobby).await;
        lobby.condition_is("CrashLoop", "True", "Stopped").await;
        lobby.gone().await;
        // The text differs, so this is another request.
        let asked = format!("{copy};overwrite;contents=Everything");
        world.annotate(LOBBY, &format!("nightshift.dev/restore-from={asked}")).await;
        let handled = over(&lobby, &asked).await;
        assert_eq!(handled.result, Some(RestoreResult::Restored), "{handled:?}");
        lobby.settled().await;
        assert_eq!((lobby.set().await, lobby.shell(&format!("cat {MARKER}")).await), (set, "then".to_owned()));
        assert_eq!(lobby.condition("CrashLoop").await, None);
        assert_eq!(world.notes(LOBBY, "WorldRestored").await.len(), 2);
        assert_eq!(world.notes(LOBBY, "RestoreFailed").await, Vec::<String>::new());
    })
    .await;
}

/// Corrupts `level.dat` and kills the process, so that each next start of the server fails. Returns the pod.
async fn breaks_its_world(server: &Server<'_>) -> Pod {
    server.put_file(MARKER, b"now").await;
    server.put_file("/data/world/level.dat", b"spoilt").await;
    let pod = server.pod().await.unwrap();
    kill_9(&pod, "/paper-stand-in");
    until("the process of the server fails at each start", A_START, async || {
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
