//! Edge (writes). Tests failures around a server: a full volume, a firewall between it and the agent, and clocks that
//! differ.

use serde_json::json;

use super::manifests::{AFTER, ALWAYS, BEFORE, FAR, LOBBY, TO_AFTER, server, viabackwards};
use super::node::cut_rcon;
use super::server::Server;
use super::update::updated;
use super::volume::SmallVolume;
use super::wait::{A_START, until};
use super::witness::ServerObserver;
use super::world::in_a_world;

#[tokio::test(flavor = "multi_thread")]
async fn full_volume_delays_update_until_space_is_free() {
    in_a_world("full-volume", BEFORE, async |world| {
        world.apply(&[server(LOBBY, FAR), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        let before = lobby.set().await;
        let _small = SmallVolume::under(&lobby, "96m").await;
        lobby.shell("head -c 60000000 /dev/zero > /data/filler").await;

        world.upstream.set_now(AFTER).await;
        lobby.set_window(ALWAYS).await;
        let said = lobby.condition_is("ArtifactsReady", "False", "NotStaged").await;
        assert!(said.contains("MiB free, these files need 1 MiB, and 64 MiB must stay free"), "{said}");
        // The window is open all the time, but the server is not stopped for missing files.
        world.look_again(LOBBY).await;
        assert_eq!(lobby.set().await, before);
        assert_eq!(world.notes(LOBBY, "PlayersWarned").await, Vec::<String>::new());

        lobby.shell("rm /data/filler").await;
        updated(world, &lobby).await;
        assert_eq!(lobby.condition("ArtifactsReady").await, None);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn server_that_cannot_save_is_not_stopped_for_update() {
    in_a_world("firewall", BEFORE, async |world| {
        world.apply(&[server(LOBBY, FAR), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        let (set, before) = (lobby.set().await, lobby.pod().await.unwrap());
        lobby.order("build 500").await;
        world.upstream.set_now(AFTER).await;
        lobby.planned(&TO_AFTER).await;
        let witness = ServerObserver::of(&lobby).await;
        let _cut = cut_rcon(&before);
        lobby.set_window(ALWAYS).await;

        let refused = world.note(LOBBY, "SaveRefused").await;
        assert!(refused.contains("RCON at 127.0.0.1:25575 cannot be reached"), "{refused}");
        let waits = lobby.condition_is("Updating", "False", "SaveRefused").await;
        assert!(waits.contains("did not confirm its save"), "{waits}");
        assert_eq!((lobby.set().await, witness.pods()), (set, 1));

        world.kubectl(&["delete", "pod", "lobby-0", "--wait=false"], "").await;
        lobby.back_after(&before).await;
        assert!(lobby.saved_blocks().await >= 500, "nothing is lost");
        witness.assert_order(&[(0, "Stopping server"), (0, "Closing Server"), (1, "Done (")]);
        updated(world, &lobby).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clock_skew_is_reported_and_blocks_stops() {
    in_a_world("clocks", BEFORE, async |world| {
        let mut patient = server(LOBBY, FAR);
        patient["spec"]["gracefulShutdown"]["timeout"] = json!("10m");
        world.apply(&[patient, viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        let set = lobby.set().await;
        world.upstream.set_now(AFTER).await;
        lobby.planned(&TO_AFTER).await;
        lobby.order("join Alice").await;
        let witness = ServerObserver::of(&lobby).await;

        world.set_clock_ahead(-90).await;
        lobby.set_window(ALWAYS).await;
        let silent = lobby.condition_is("Updating", "True", "AgentUnreachable").await;
        assert!(silent.contains("about 2 minutes ahead of the operator's"), "{silent}");
        let told = until("a condition says that the clocks differ", A_START, async || {
            world.look_again(LOBBY).await;
            let found = lobby.condition("AgentRejectsRequests").await.filter(|found| found.reason == "ClocksDiffer");
            found.ok_or_else(|| "it does not".to_owned())
        })
        .await;
        assert!(told.message.contains("at most 30 s are accepted: have both keep time by NTP"), "{}", told.message);
        assert_eq!(world.note(LOBBY, "AgentRejectsRequests").await, told.message);
        assert_eq!((lobby.set().await, witness.pods()), (set, 1), "nobody could be warned, so nobody was stopped");

        world.set_clock_ahead(0).await;
        updated(world, &lobby).await;
        assert_eq!(lobby.condition("AgentRejectsRequests").await, None);
        witness.assert_order(&[(0, "shown: "), (0, "All dimensions are saved"), (0, "Stopping server"), (1, "Done (")]);
    })
    .await;
}
