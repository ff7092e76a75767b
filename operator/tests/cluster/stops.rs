//! Edge (writes). Every other way in which a server is stopped: it is saved, and comes back as it was.

use std::time::{Duration, Instant};

use k8s_openapi::api::events::v1::Event;
use kube::api::ListParams;
use serde_json::json;

use super::manifests::{BEFORE, FAR, LOBBY, server, viabackwards};
use super::server::Server;
use super::wait::{A_START, all_the_while, until};
use super::witness::Witness;
use super::world::{World, in_a_world};

#[tokio::test(flavor = "multi_thread")]
async fn deleting_the_pod_ends_in_a_saved_world_the_same_set_and_no_warning() {
    in_a_world("pod-delete", BEFORE, async |world| {
        world.apply(&[server(LOBBY, FAR), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        let (set, before) = (lobby.set().await, lobby.pod().await.unwrap());
        let witness = Witness::of(&lobby).await;
        lobby.order("build 500").await;
        let warned = warnings(world).await.len();
        world.kubectl(&["delete", "pod", "lobby-0", "--wait=false"], "").await;
        lobby.back_after(&before).await;
        witness.assert_order(&[
            (0, "All dimensions are saved"),
            (0, "Stopping server"),
            (0, "Closing Server"),
            (1, "Done ("),
        ]);
        assert_eq!(lobby.set().await, set);
        assert!(lobby.saved_blocks().await >= 500, "nothing is lost");
        let warnings = warnings(world).await;
        assert_eq!(warnings.len(), warned, "a good stop leaves no warning: {warnings:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_that_takes_a_minute_and_a_half_is_not_cut_short() {
    in_a_world("slow-stop", BEFORE, async |world| {
        let mut object = server(LOBBY, FAR);
        object["spec"]["gracefulShutdown"] = json!({"timeout": "5m"});
        world.apply(&[object, viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        let before = lobby.pod().await.unwrap();
        let witness = Witness::of(&lobby).await;
        lobby.order("build 500").await;
        lobby.order("fault slow-stop 90").await;
        let start = Instant::now();
        world.kubectl(&["delete", "pod", "lobby-0", "--wait=false"], "").await;
        until("the server has ended by itself", A_START + A_START, async || {
            let ended = witness.lines().iter().any(|line| line.run == 0 && line.text.contains("Closing Server"));
            if ended { Ok(()) } else { Err(witness.console()) }
        })
        .await;
        assert!(start.elapsed() >= Duration::from_secs(90));
        lobby.back_after(&before).await;
        assert!(lobby.saved_blocks().await >= 500, "nothing is lost");
    })
    .await;
}

/// The hook asks for `gracefulShutdown.timeout`, then SIGTERM, and what cannot hear that is killed.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_is_ended_all_the_same_and_the_user_is_told_that_it_was_not_saved() {
    in_a_world("hung-stop", BEFORE, async |world| {
        world.apply(&[server(LOBBY, FAR), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        let (set, before) = (lobby.set().await, lobby.pod().await.unwrap());
        let witness = Witness::of(&lobby).await;
        lobby.order("fault hang").await;
        world.kubectl(&["delete", "pod", "lobby-0", "--wait=false"], "").await;
        until("it is killed", A_START, async || {
            let killed = witness.lines().iter().any(|line| line.run == 0 && line.text.contains("Took too long"));
            if killed { Ok(()) } else { Err(witness.console()) }
        })
        .await;
        // The fault lies on the volume.
        until("the next one is mended", A_START, async || match lobby.pod().await {
            Some(pod) if pod.metadata.uid != before.metadata.uid && lobby.try_order("fault none").await => Ok(()),
            other => Err(format!("{:?}", other.map(|pod| pod.status.map(|status| status.phase)))),
        })
        .await;
        lobby.back_after(&before).await;
        assert_eq!(lobby.set().await, set);
        let (told, last) = lobby.stopped_unsaved().await;
        assert!(!last.saved, "{told}; {last:?}");
        assert!(last.saved_at.is_none() && told.contains("No save is known since its start"), "{told}; {last:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_at_rest_gets_no_line_of_ours_in_its_log_and_rcon_refuses_on_the_pods_own_address() {
    in_a_world("at-rest", BEFORE, async |world| {
        world.apply(&[server(LOBBY, FAR), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;

        let rcon = |host: &str| format!("nc -w 2 {host} 25575 </dev/null >/dev/null 2>&1 && echo open || echo refused");
        assert_eq!(lobby.shell(&rcon("127.0.0.1")).await.trim(), "open");
        let address = lobby.pod().await.unwrap().status.unwrap().pod_ip.unwrap();
        assert_eq!(lobby.shell(&rcon(&address)).await.trim(), "refused");

        let before = lobby.log("papermc").await;
        // Long enough for every timer that looks at a server at rest; only a long look would show a slower one.
        let long = std::env::var_os("NIGHTSHIFT_LONG").is_some();
        all_the_while(Duration::from_secs(if long { 600 } else { 60 }), async || {}).await;
        assert_eq!(lobby.log("papermc").await, before);
    })
    .await;
}

/// Warnings about pods, but for those of a start: probes that fail until it has started, volumes that are not there at the first try.
async fn warnings(world: &World) -> Vec<String> {
    let events = world.api::<Event>().list(&ListParams::default()).await.unwrap().items;
    let about_pods = events.into_iter().filter(|event| {
        let of_a_pod = event.regarding.as_ref().and_then(|of| of.kind.as_deref()) == Some("Pod");
        of_a_pod
            && event.type_.as_deref() == Some("Warning")
            && !matches!(event.reason.as_deref(), Some("Unhealthy" | "FailedMount"))
    });
    about_pods
        .map(|event| format!("{}: {}", event.reason.unwrap_or_default(), event.note.unwrap_or_default()))
        .collect()
}
