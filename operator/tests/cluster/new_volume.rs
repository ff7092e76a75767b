//! Edge (writes). A volume that is lost, and comes back from a copy with a server that is made anew; and one that has a world, which stays.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::api::ListParams;
use serde_json::{Value, json};

use super::manifests::{BEFORE, FAR, LOBBY, server, viabackwards};
use super::server::Server;
use super::wait::{A_START, SOON, until};
use super::world::{World, in_a_world};

const MARKER: &str = "/data/world/marker.txt";
const SETTINGS: &str = "/data/plugins/ViaVersion/by-hand.yml";

fn with(name: &str, more: &Value) -> Value {
    let mut manifest = server(name, FAR);
    for (key, value) in more.as_object().unwrap() {
        manifest["spec"][key] = value.clone();
    }
    manifest
}

/// A server that is built on, and a copy of it.
async fn built_and_copied(world: &World) -> String {
    let lobby = Server::new(world, LOBBY);
    lobby.settled().await;
    lobby.order("build 1000").await;
    lobby.put_file(MARKER, b"then").await;
    lobby.put_file(SETTINGS, b"mine").await;
    world.first_copy(LOBBY).await
}

async fn claims(world: &World) -> Vec<String> {
    let claims = world.api::<PersistentVolumeClaim>().list(&ListParams::default()).await.unwrap();
    claims.items.into_iter().filter_map(|claim| claim.metadata.name).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_volume_was_lost_is_made_anew_from_a_copy_and_a_volume_with_a_world_is_never_touched() {
    in_a_world("new-volume", BEFORE, async |world| {
        let backup = json!({"storage": {"size": "64Mi"}});
        world.apply(&[with(LOBBY, &json!({"backup": backup})), viabackwards()]).await;
        let copy = built_and_copied(world).await;
        world.kubectl(&["delete", "papermcserver", LOBBY], "").await;
        until("the world is lost, and its copies are not", A_START, async || match claims(world).await {
            claims if claims == ["backup-lobby-0"] => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;

        // First with a name that does not exist: nothing starts, and no new world takes the place.
        let wish = |copy: &str| with(LOBBY, &json!({"backup": backup, "restoreFrom": {"copy": copy}}));
        world.apply(&[wish("20200101T000000Z-aaaaaaaa")]).await;
        let lobby = Server::new(world, LOBBY);
        let why = lobby.condition_is("RestoredFrom", "False", "NotRestored").await;
        assert!(why.contains(&format!("the newest ones with worlds are: {copy}")), "{why}");
        assert_eq!(lobby.condition_is("Ready", "False", "NotRestored").await, why);
        assert_eq!(world.note(LOBBY, "RestoreFailed").await, why);
        assert!(!lobby.runs().await);

        // The same volume, once the spec is corrected; the pod that is there is told, too, only less soon.
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

        // It may stay in the spec for ever; asked for again of a volume that has a world, it is said to do nothing, and how it is done.
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

#[tokio::test(flavor = "multi_thread")]
async fn a_new_server_begins_with_a_copy_of_another_one_and_goes_its_own_way() {
    in_a_world("moved", BEFORE, async |world| {
        let backup = json!({"storage": {"size": "64Mi"}});
        world.apply(&[with(LOBBY, &json!({"backup": backup})), viabackwards()]).await;
        let copy = built_and_copied(world).await;

        let wish = |server: &str| with("second", &json!({"restoreFrom": {"server": server}}));
        world.apply(&[wish("loby")]).await;
        let second = Server::new(world, "second");
        let why = second.condition_is("Resolved", "False", "ClaimMissing").await;
        assert!(why.contains("no claim `backup-loby-0`") && why.ends_with("are: lobby"), "{why}");
        assert!(second.pod().await.is_none());

        world.apply(&[wish(LOBBY)]).await;
        second.condition_is("Ready", "True", "Running").await;
        let said = second.condition_is("RestoredFrom", "True", "Restored").await;
        assert!(said.contains(&copy) && said.contains("of `lobby`"), "{said}");
        assert_eq!(second.shell(&format!("cat {MARKER}")).await, "then");
        assert!(second.saved_blocks().await >= 1000);
        // The claim of the other server goes with a restart in a window, so that it may be deleted some day.
        until("the claim is planned to go", SOON, async || match second.condition("UpdateAvailable").await {
            Some(found) if found.status == "True" && found.message == "settings of the pod" => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
        assert_eq!(Server::new(world, LOBBY).shell(&format!("cat {MARKER}")).await, "then", "the other one goes on");
    })
    .await;
}
