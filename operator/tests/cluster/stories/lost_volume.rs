//! Edge (writes). Tests a lost volume: the server is created again and starts from its backup.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::api::ListParams;
use serde_json::json;

use crate::cluster::manifests::{BEFORE, LOBBY, viabackwards};
use crate::cluster::new_volume::{MARKER, SETTINGS, built_and_copied, with};
use crate::cluster::server::Server;
use crate::cluster::wait::{A_START, until};
use crate::cluster::world::{World, in_a_world};

async fn claims(world: &World) -> Vec<String> {
    let claims = world.api::<PersistentVolumeClaim>().list(&ListParams::default()).await.unwrap();
    claims.items.into_iter().filter_map(|claim| claim.metadata.name).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn recreated_server_starts_from_backup_and_existing_world_is_never_overwritten() {
    in_a_world("new-volume", BEFORE, async |world| {
        let backup = json!({"storage": {"size": "64Mi"}});
        world.apply(&[with(LOBBY, &json!({"backup": backup})), viabackwards()]).await;
        let copy = built_and_copied(world).await;
        world.kubectl(&["delete", "papermcserver", LOBBY], "").await;
        until("the claim of the worlds is gone, the claim of the backups is left", A_START, async || {
            match claims(world).await {
                claims if claims == ["backup-lobby-0"] => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;

        // The backup does not exist: the server does not start, and no new world is created.
        let wish = |copy: &str| with(LOBBY, &json!({"backup": backup, "restoreFrom": {"copy": copy}}));
        world.apply(&[wish("20200101T000000Z-aaaaaaaa")]).await;
        let lobby = Server::new(world, LOBBY);
        let why = lobby.condition_is("RestoredFrom", "False", "NotRestored").await;
        assert!(why.contains(&format!("the newest ones with worlds are: {copy}")), "{why}");
        assert_eq!(lobby.condition_is("Ready", "False", "NotRestored").await, why);
        assert_eq!(world.note(LOBBY, "RestoreFailed").await, why);
        assert!(!lobby.runs().await);

        // The spec is corrected. The existing pod would get the change too, but later than a new one.
        world.apply(&[wish("latest")]).await;
        world.look_again(LOBBY).await;
        world.kubectl(&["delete", "pod", &lobby.pod_name(), "--wait=false"], "").await;
        lobby.settled().await;
        assert_eq!(lobby.shell(&format!("cat {MARKER}")).await, "then");
        assert_eq!(lobby.shell(&format!("cat {SETTINGS}")).await, "mine", "settings come too, as the volume had none");
        assert!(lobby.saved_blocks().await >= 1000, "what was built before the copy is there");
        let said = lobby.condition_is("RestoredFrom", "True", "Restored").await;
        assert!(said.contains(&copy), "{said}");
        assert_eq!(world.notes(LOBBY, "WorldRestored").await, [said]);
        let restored = lobby.object().await.status.unwrap_or_default().backup.and_then(|backup| backup.last_restore);
        assert_eq!(restored.map(|restored| (restored.name, restored.set_aside)), Some((copy.clone(), String::new())));

        // `restoreFrom` may stay in the spec. It has no effect on a volume with a world, and the condition names the
        // command that restores.
        lobby.put_file(MARKER, b"later").await;
        world.apply(&[wish(&copy)]).await;
        let said = lobby.condition_is("RestoredFrom", "False", "VolumeInUse").await;
        assert!(said.contains(&format!("nightshift.dev/restore-from=\"{copy};overwrite\"")), "{said}");
        assert_eq!(world.notes(LOBBY, "RequestRefused").await, [said]);
        let before = lobby.pod().await.unwrap();
        world.kubectl(&["delete", "pod", &lobby.pod_name(), "--wait=false"], "").await;
        lobby.back_after(&before).await;
        lobby.settled().await;
        assert_eq!(lobby.shell(&format!("cat {MARKER}")).await, "later");
    })
    .await;
}
