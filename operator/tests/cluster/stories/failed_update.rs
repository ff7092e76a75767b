//! Edge (writes). Tests a failed update to a newer Minecraft: the operator rolls back, and the init container restores
//! the worlds from the backup before the update.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;

use crate::cluster::manifests::{ALWAYS, LOBBY, NEWER_MINECRAFT, OLDER_MINECRAFT, server_with_copies, viabackwards};
use crate::cluster::server::Server;
use crate::cluster::wait::{AN_UPDATE, until};
use crate::cluster::world::in_a_world;

#[tokio::test(flavor = "multi_thread")]
async fn failed_minecraft_update_rolls_back_and_restores_worlds_from_backup() {
    in_a_world("backup", OLDER_MINECRAFT, async |world| {
        world.apply(&[server_with_copies(LOBBY), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        let before = lobby.set().await;
        lobby.order("build 1000").await;
        lobby.order("fault plugin-fails ViaVersion if 1.21.11").await;
        world.upstream.set_now(NEWER_MINECRAFT).await;
        lobby.planned(&["-> 1.21.11"]).await;
        let plans = world.notes(LOBBY, "UpdatePlanned").await;
        assert!(plans.iter().any(|plan| plan.contains(" for the copy of the worlds (")), "{plans:?}");
        let planned = lobby.object().await.status.unwrap().available_update.unwrap();
        let cost = planned.cost.unwrap_or_default();
        assert!(cost.contains("MB; a guess, no copy was timed here yet"), "measured by the agent: {cost}");
        lobby.set_window(ALWAYS).await;

        until("the worlds are put back", AN_UPDATE, async || {
            world.notes(LOBBY, "WorldRestored").await.pop().ok_or_else(|| "no Event WorldRestored".to_owned())
        })
        .await;
        lobby.condition_is("Updating", "False", "Held").await;
        assert_eq!(lobby.set().await, before);
        assert!(lobby.saved_blocks().await >= 1000, "what was built before is there");
        let backup = lobby.object().await.status.unwrap().backup.unwrap();
        let (copy, restored) = (backup.last_backup.unwrap(), backup.last_restore.unwrap());
        assert_eq!((copy.name.as_str(), copy.lock.as_ref()), (restored.name.as_str(), Some(&before.lock)));
        assert!(world.note(LOBBY, "BackupTaken").await.starts_with(&copy.name));
        let aside = lobby.shell(&format!("ls /data/{}", restored.set_aside)).await;
        assert!(aside.contains("world"), "set aside, not deleted: {aside}");
        assert!(!lobby.shell("ls -a /data/.nightshift").await.contains("restore.json"), "no restore is half done");
        let claim = world.api::<PersistentVolumeClaim>().get("backup-lobby-0").await.unwrap();
        assert_eq!(claim.metadata.owner_references, None, "it outlives the server");
    })
    .await;
}
