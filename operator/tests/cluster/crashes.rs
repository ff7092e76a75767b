//! Edge (writes). A server that settled and crashes again and again: counted, told, and nothing is begun on it.

use super::manifests::{AFTER, ALWAYS, BEFORE, FAR, LOBBY, TO_AFTER, server, viabackwards};
use super::server::Server;
use super::wait::{A_START, until};
use super::world::in_a_world;

#[tokio::test(flavor = "multi_thread")]
async fn a_settled_server_that_crashes_three_times_is_told_as_a_loop_and_no_update_begins_on_it() {
    in_a_world("crash-loop", BEFORE, async |world| {
        world.apply(&[server(LOBBY, FAR), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        world.upstream.set_now(AFTER).await;
        lobby.planned(&TO_AFTER).await;
        let template = lobby.stateful_set().await.spec.unwrap().template;
        // It stands in the volume: each next start of the process dies too.
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
