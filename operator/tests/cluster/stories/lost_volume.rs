//! Edge (writes). Tests a lost volume: the server is created again and starts from its backup.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::api::ListParams;
use serde_json::json;

use crate::cluster::eventually::{START_LIMIT, wait_until};
use crate::cluster::manifests::{BEFORE_RELEASE, LOBBY, viabackwards};
use crate::cluster::seed_volume::{MARKER, SETTINGS, build_and_back_up, server_with};
use crate::cluster::server::Server;
use crate::cluster::test_env::{TestEnv, in_test_env};

async fn claims(env: &TestEnv) -> Vec<String> {
    let claims = env.api::<PersistentVolumeClaim>().list(&ListParams::default()).await.unwrap();
    claims.items.into_iter().filter_map(|claim| claim.metadata.name).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn recreated_server_starts_from_backup_and_existing_world_is_never_overwritten() {
    in_test_env("new-volume", BEFORE_RELEASE, async |env| {
        let backup = json!({"storage": {"size": "64Mi"}});
        env.apply(&[server_with(LOBBY, &json!({"backup": backup})), viabackwards()]).await;
        let backup_name = build_and_back_up(env).await;
        env.kubectl(&["delete", "papermcserver", LOBBY], "").await;
        wait_until("only the claim of the backups is left", START_LIMIT, async || match claims(env).await {
            claims if claims == ["backup-lobby-0"] => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;

        // The backup does not exist: the server does not start, and no new world is created.
        let restoring_server =
            |backup_name: &str| server_with(LOBBY, &json!({"backup": backup, "restoreFrom": {"backup": backup_name}}));
        env.apply(&[restoring_server("20200101T000000Z-aaaaaaaa")]).await;
        let lobby = Server::new(env, LOBBY);
        let why = lobby.wait_for_condition("RestoredFrom", "False", "NotRestored").await;
        assert!(why.contains(&format!("The newest backups with worlds: {backup_name}")), "{why}");
        assert_eq!(lobby.wait_for_condition("Ready", "False", "NotRestored").await, why);
        assert_eq!(env.wait_for_event_note(LOBBY, "RestoreFailed").await, why);
        assert!(!lobby.is_running().await);

        // The spec is corrected. The existing pod would get the change too, but later than a new one.
        env.apply(&[restoring_server("latest")]).await;
        env.trigger_passes(LOBBY).await;
        env.kubectl(&["delete", "pod", &lobby.pod_name(), "--wait=false"], "").await;
        lobby.wait_until_stable().await;
        assert_eq!(lobby.shell(&format!("cat {MARKER}")).await, "then");
        assert_eq!(lobby.shell(&format!("cat {SETTINGS}")).await, "mine", "settings are restored to an empty volume");
        assert!(lobby.saved_blocks().await >= 1000, "blocks from before the backup are there");
        let message = lobby.wait_for_condition("RestoredFrom", "True", "Restored").await;
        assert!(message.contains(&backup_name), "{message}");
        assert_eq!(env.event_notes(LOBBY, "WorldRestored").await, [message]);
        let restored = lobby.object().await.status.unwrap_or_default().backup.and_then(|backup| backup.last_restore);
        assert_eq!(
            restored.map(|restored| (restored.name, restored.set_aside)),
            Some((backup_name.clone(), String::new()))
        );

        // `restoreFrom` may stay in the spec. It has no effect on a volume with a world, and the condition names the
        // command that restores.
        lobby.put_file(MARKER, b"later").await;
        env.apply(&[restoring_server(&backup_name)]).await;
        let message = lobby.wait_for_condition("RestoredFrom", "False", "VolumeInUse").await;
        assert!(message.contains(&format!("nightshift.dev/restore-from=\"{backup_name};overwrite\"")), "{message}");
        assert_eq!(env.event_notes(LOBBY, "RequestRefused").await, [message]);
        let before = lobby.pod().await.unwrap();
        env.kubectl(&["delete", "pod", &lobby.pod_name(), "--wait=false"], "").await;
        lobby.wait_for_new_pod(&before).await;
        lobby.wait_until_stable().await;
        assert_eq!(lobby.shell(&format!("cat {MARKER}")).await, "later");
    })
    .await;
}
