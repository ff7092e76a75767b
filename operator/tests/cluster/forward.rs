//! Edge (writes). A set that failed, and that only a person could bring back: a corrected one comes instead.

use super::manifests::{ALWAYS, FAR, LOBBY, NEWER_MINECRAFT, OLDER_MINECRAFT, server, viabackwards};
use super::server::Server;
use super::update::updated;
use super::wait::{AN_UPDATE, until};
use super::witness::Witness;
use super::world::in_a_world;

#[tokio::test(flavor = "multi_thread")]
async fn where_there_is_no_way_back_a_corrected_set_comes_in_the_next_window_and_the_worlds_go_on() {
    in_a_world("forward", OLDER_MINECRAFT, async |world| {
        world.apply(&[server(LOBBY, FAR), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        lobby.order("build 1000").await;
        lobby.order("fault plugin-fails ViaVersion if 1.21.11").await;
        world.upstream.set_now(NEWER_MINECRAFT).await;
        lobby.planned(&["-> 1.21.11"]).await;
        lobby.set_window(ALWAYS).await;
        lobby.condition_is("Updating", "False", "NoBackup").await;
        let failed = lobby.set().await;
        let stuck = lobby.pod().await.unwrap().metadata.uid;

        // What it failed for goes. Nothing comes before the window, and what will is told.
        lobby.set_window(FAR).await;
        world.kubectl(&["delete", "plugin", "viabackwards"], "").await;
        until("what comes is told", AN_UPDATE, async || {
            let found = lobby.condition("Updating").await.map(|found| (found.reason, found.message));
            match found {
                Some((reason, message))
                    if reason == "NoBackup"
                        && message.contains("What is planned now comes instead")
                        && message.contains("the window opens at") =>
                {
                    Ok(())
                }
                other => Err(format!("{other:?}")),
            }
        })
        .await;
        let witness = Witness::of(&lobby).await;
        assert_eq!(lobby.pod().await.unwrap().metadata.uid, stuck);

        lobby.set_window(ALWAYS).await;
        updated(world, &lobby).await;
        let set = lobby.set().await;
        assert_eq!((&set.paper, set.plugins.len()), (&failed.paper, 0), "{set:?}");
        assert!(lobby.saved_blocks().await >= 1000, "it is the same world");
        assert_eq!((witness.pods(), witness.runs()), (2, 2), "one stop:\n{}", witness.console());
        assert_eq!(world.notes(LOBBY, "UpdateRolledBack").await, [""; 0]);
        assert_eq!(world.notes(LOBBY, "UpdateStarted").await.len(), 2);
    })
    .await;
}
