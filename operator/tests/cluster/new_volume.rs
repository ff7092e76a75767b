//! Edge (writes). Tests that a new server starts with the backup of another server.

use serde_json::{Value, json};

use super::manifests::{BEFORE, FAR, LOBBY, server, viabackwards};
use super::server::Server;
use super::wait::{SOON, until};
use super::world::{World, in_a_world};

/// A file in the world that identifies it.
pub(super) const MARKER: &str = "/data/world/marker.txt";
/// Settings of a plugin that the user wrote.
pub(super) const SETTINGS: &str = "/data/plugins/ViaVersion/by-hand.yml";

/// A server with more fields in its spec.
pub(super) fn with(name: &str, more: &Value) -> Value {
    let mut manifest = server(name, FAR);
    for (key, value) in more.as_object().unwrap() {
        manifest["spec"][key] = value.clone();
    }
    manifest
}

/// Builds in a new server, writes both files and takes a backup. Returns its name.
pub(super) async fn built_and_copied(world: &World) -> String {
    let lobby = Server::new(world, LOBBY);
    lobby.settled().await;
    lobby.order("build 1000").await;
    lobby.put_file(MARKER, b"then").await;
    lobby.put_file(SETTINGS, b"mine").await;
    world.first_copy(LOBBY).await
}

#[tokio::test(flavor = "multi_thread")]
async fn new_server_starts_from_backup_of_another() {
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
        // A restart in a window removes the claim of the other server, so that it can be deleted later.
        until("the claim is planned to go", SOON, async || match second.condition("UpdateAvailable").await {
            Some(found) if found.status == "True" && found.message == "settings of the pod" => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
        assert_eq!(Server::new(world, LOBBY).shell(&format!("cat {MARKER}")).await, "then", "the other one goes on");
    })
    .await;
}
