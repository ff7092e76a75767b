//! Edge (writes). Tests a stable server that crashes repeatedly: it is reported, and no update begins, or it is stopped
//! if its spec asks for that.

use serde_json::json;

use super::manifests::{AFTER, ALWAYS, BEFORE, FAR, LOBBY, TO_AFTER, server, viabackwards};
use super::node::kill_9;
use super::notify::another_operator;
use super::server::Server;
use super::wait::{A_START, until};
use super::world::in_a_world;

const MARKER: &str = "/data/world/marker.txt";

#[tokio::test(flavor = "multi_thread")]
async fn crash_looping_server_gets_no_update() {
    in_a_world("crash-loop", BEFORE, async |world| {
        world.apply(&[server(LOBBY, FAR), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        world.upstream.set_now(AFTER).await;
        lobby.planned(&TO_AFTER).await;
        let template = lobby.stateful_set().await.spec.unwrap().template;
        // The fault is on the volume, so that each next start of the process crashes too.
        lobby.order("fault crash-after 15").await;
        let unsaved = until("an Event StoppedUnsaved", A_START, async || {
            world.notes(LOBBY, "StoppedUnsaved").await.pop().ok_or_else(|| "none".to_owned())
        })
        .await;
        assert!(unsaved.contains("nobody had asked this agent"), "{unsaved}");
        // The kubelet waits 10, 20, 40 seconds between them.
        let message = lobby.condition_is("CrashLoop", "True", "ProcessEnds").await;
        assert!(message.starts_with("the server's process has ended 3 times within an hour"), "{message}");

        lobby.set_window(ALWAYS).await;
        lobby.condition_is("CrashLoop", "True", "ProcessEnds").await;
        world.look_again(LOBBY).await;
        assert_eq!(world.notes(LOBBY, "CrashLoop").await.len(), 1);
        for reason in ["PlayersWarned", "UpdateStarted", "UpdateFailed"] {
            assert_eq!(world.notes(LOBBY, reason).await, Vec::<String>::new(), "{reason}");
        }
        assert_eq!(lobby.stateful_set().await.spec.unwrap().template, template);
        let status = lobby.object().await.status.unwrap();
        assert!(status.crashes.is_some_and(|crashes| crashes.at.len() >= 3));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn crash_loop_stop_lasts_until_request() {
    in_a_world("crash-loop-stopped", BEFORE, async |world| {
        let mut object = server(LOBBY, FAR);
        object["spec"]["onCrashLoop"] = json!("Stop");
        // A server that is scaled to zero by a user would be updated at once.
        object["spec"]["updateSchedule"]["opportunistic"] = json!({"emptyFor": "10m"});
        world.apply(&[object, viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        lobby.put_file(MARKER, b"years").await;
        world.upstream.set_now(AFTER).await;
        lobby.planned(&TO_AFTER).await;
        let template = lobby.stateful_set().await.spec.unwrap().template;
        lobby.order("fault crash-after 15").await;

        let message = lobby.condition_is("CrashLoop", "True", "Stopped").await;
        assert!(message.contains(" times within an hour, last with exit code "), "{message}");
        assert!(message.contains("annotate papermcserver lobby --overwrite nightshift.dev/apply-now="), "{message}");
        lobby.gone().await;
        lobby.condition_is("Ready", "False", "StoppedByCrashes").await;
        let stopped = lobby.object().await.status.unwrap().crashes.unwrap();
        assert!(stopped.at.len() >= 3, "{stopped:?}");

        another_operator(world, &lobby).await;
        lobby.condition_is("CrashLoop", "True", "Stopped").await;
        assert!(lobby.pod().await.is_none());
        let spec = lobby.stateful_set().await.spec.unwrap();
        assert_eq!((spec.replicas, spec.template), (Some(0), template));
        assert_eq!(lobby.object().await.status.unwrap().crashes, Some(stopped), "that it is gone is no crash");
        let told = world.notes(LOBBY, "CrashLoop").await;
        assert_eq!(told.iter().filter(|note| note.contains("it is stopped since")).count(), 1, "{told:?}");
        assert_eq!(world.notes(LOBBY, "UpdateStarted").await, Vec::<String>::new());

        lobby.change(json!({"players": {"deadline": "61m"}})).await;
        until("it runs again, and is told what is wrong no more", A_START, async || {
            if lobby.try_order("fault none").await { Ok(()) } else { Err("it does not run".to_owned()) }
        })
        .await;
        lobby.condition_is("Ready", "True", "Running").await;
        assert_eq!(lobby.condition("CrashLoop").await, None);
        assert_eq!(lobby.shell(&format!("cat {MARKER}")).await, "years");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn server_lost_with_its_agent_is_reported_unsaved() {
    in_a_world("unseen-end", BEFORE, async |world| {
        world.apply(&[server(LOBBY, FAR), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        // The agent has recorded that this process runs.
        until("the process is on the volume", A_START, async || {
            let there = lobby.shell("ls /data/.nightshift").await;
            if there.contains("running.json") { Ok(()) } else { Err(there) }
        })
        .await;
        let pod = lobby.pod().await.unwrap();
        kill_9(&pod, "/agent");
        kill_9(&pod, "/paper-stand-in");
        let (unsaved, last) = lobby.stopped_unsaved().await;
        assert!(unsaved.contains(" or later, and nobody confirmed that it had saved before: "), "{unsaved}");
        assert!(!last.saved && last.why.starts_with("nobody saw the process end"), "{last:?}");
        lobby.condition_is("Ready", "True", "Running").await;
        assert_eq!(world.notes(LOBBY, "StoppedUnsaved").await, [unsaved]);
    })
    .await;
}
