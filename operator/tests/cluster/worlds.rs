//! Edge (writes). Tests worlds and datapacks of users, and a version set that does not open all of them.

use serde_json::json;

use super::manifests::{AFTER, ALWAYS, BEFORE, FAR, LOBBY, TO_AFTER, server, viabackwards};
use super::server::Server;
use super::update::updated;
use super::wait::{AN_UPDATE, until};
use super::witness::ServerObserver;
use super::world::{World, in_a_world};

/// A world in Multiverse's form, and a datapack: the next start opens both.
async fn make_world_and_datapack(lobby: &Server<'_>) {
    lobby.shell("mkdir /data/creative && cp /data/world/level.dat /data/creative/").await;
    let description = br#"{"pack": {"pack_format": 88, "description": "skylands"}}"#;
    lobby.put_file("/data/world/datapacks/skylands/pack.mcmeta", description).await;
}

/// Applies an update that changes nothing in the version set. The next verification knows the worlds and datapacks that
/// its start has opened.
async fn opened_by_a_start(world: &World, lobby: &Server<'_>, which: &str) {
    lobby.set_window(ALWAYS).await;
    lobby.change(json!({"podTemplate": {"metadata": {"annotations": {"example.com/worlds": which}}}})).await;
    updated(world, lobby).await;
    lobby.set_window(FAR).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_world_and_datapack_cause_rollback() {
    in_a_world("worlds", BEFORE, async |world| {
        world.apply(&[server(LOBBY, FAR), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        make_world_and_datapack(&lobby).await;
        // One start is not enough for the comparison.
        for which in ["first", "second", "third"] {
            opened_by_a_start(world, &lobby, which).await;
        }
        let before = lobby.set().await;

        lobby.order("fault loses-world creative if ViaVersion@5.7.1").await;
        lobby.order("fault loses-datapack file/skylands if ViaVersion@5.7.1").await;
        world.upstream.set_now(AFTER).await;
        lobby.planned(&TO_AFTER).await;
        let witness = ServerObserver::of(&lobby).await;
        lobby.set_window(ALWAYS).await;
        let failed = until("the set failed", AN_UPDATE, async || {
            world.notes(LOBBY, "UpdateFailed").await.pop().ok_or_else(|| witness.console())
        })
        .await;
        assert!(failed.contains("world `creative` is not open any more"), "{failed}");
        assert!(failed.contains("datapack `file/skylands` is not enabled any more"), "{failed}");

        lobby.condition_is("Updating", "False", "Held").await;
        lobby.condition_is("Ready", "True", "Running").await;
        let log = lobby.log("papermc").await;
        assert!(log.contains("Preparing level \"creative\""), "{log}");
        assert!(!log.contains("Missing data pack"), "{log}");
        assert_eq!(lobby.set().await, before);
    })
    .await;
}
