//! Edge (writes). Tests a failed update to a newer Minecraft: the operator rolls back, and the init container restores
//! the worlds from the backup before the update.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;

use crate::cluster::eventually::{UPDATE_LIMIT, wait_until};
use crate::cluster::manifests::{
    ALWAYS_OPEN, LOBBY, NEWER_MINECRAFT, OLDER_MINECRAFT, server_with_backups, viabackwards,
};
use crate::cluster::server::Server;
use crate::cluster::test_env::in_test_env;

#[tokio::test(flavor = "multi_thread")]
async fn failed_minecraft_update_rolls_back_and_restores_worlds_from_backup() {
    in_test_env("backup", OLDER_MINECRAFT, async |env| {
        env.apply(&[server_with_backups(LOBBY), viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        let before = lobby.version_set().await;
        lobby.send_command("build 1000").await;
        lobby.send_command("fault plugin-fails ViaVersion if 1.21.11").await;
        env.upstream.set_now(NEWER_MINECRAFT).await;
        lobby.wait_until_planned(&["-> 1.21.11"]).await;
        let plans = env.event_notes(LOBBY, "UpdatePlanned").await;
        assert!(plans.iter().any(|plan| plan.contains(" for the backup of the worlds (")), "{plans:?}");
        let planned = lobby.object().await.status.unwrap().available_update.unwrap();
        let estimate = planned.cost.unwrap_or_default();
        assert!(estimate.contains("MB, estimated without an earlier backup"), "measured by the agent: {estimate}");
        lobby.set_window(ALWAYS_OPEN).await;

        wait_until("the worlds are restored", UPDATE_LIMIT, async || {
            env.event_notes(LOBBY, "WorldRestored").await.pop().ok_or_else(|| "no Event WorldRestored".to_owned())
        })
        .await;
        lobby.wait_for_condition("Updating", "False", "Held").await;
        assert_eq!(lobby.version_set().await, before);
        assert!(lobby.saved_blocks().await >= 1000, "blocks from before the update are there");
        let backup = lobby.object().await.status.unwrap().backup.unwrap();
        let (last_backup, restored) = (backup.last_backup.unwrap(), backup.last_restore.unwrap());
        assert_eq!(
            (last_backup.name.as_str(), last_backup.lock.as_ref()),
            (restored.name.as_str(), Some(&before.lock))
        );
        assert!(env.wait_for_event_note(LOBBY, "BackupTaken").await.starts_with(&last_backup.name));
        let displaced = lobby.shell(&format!("ls /data/{}", restored.set_aside)).await;
        assert!(displaced.contains("world"), "the replaced worlds are kept: {displaced}");
        assert!(!lobby.shell("ls -a /data/.nightshift").await.contains("restore.json"), "no restore is unfinished");
        let claim = env.api::<PersistentVolumeClaim>().get("backup-lobby-0").await.unwrap();
        assert_eq!(claim.metadata.owner_references, None, "the claim outlives the server");
    })
    .await;
}
