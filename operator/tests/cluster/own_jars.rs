//! Edge (writes). A JAR that a person put there and that a site knows: its page says on which Minecraft it runs.

use fixtures::jar::{self, PluginYml};
use serde_json::json;

use super::manifests::{BEFORE, FAR, LOBBY, server};
use super::server::Server;
use super::world::in_a_world;

/// Nobody knows it.
const SHOP: &str = "Shop.jar";
/// GriefPrevention 16.18.5: its page lists 1.21.10 and not 1.21.11.
const CLAIMS: &str = "claims.jar";

#[tokio::test(flavor = "multi_thread")]
async fn a_jar_that_modrinth_knows_by_its_bytes_waits_only_for_a_minecraft_that_its_page_does_not_list() {
    in_a_world("own-jars", BEFORE, async |world| {
        let mut pinned = server(LOBBY, FAR);
        pinned["spec"]
            .as_object_mut()
            .unwrap()
            .extend([("updateStrategy".to_owned(), json!("pin")), ("version".to_owned(), json!("1.21.8"))]);
        world.apply(&[pinned]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        let claims = world.upstream.file("griefprevention", "16.18.5").await;
        lobby.put_file(&format!("/data/plugins/{CLAIMS}"), &claims).await;
        lobby.put_file(&format!("/data/plugins/{SHOP}"), &jar::plugin(&PluginYml::new("Shop", "1.0"))).await;
        lobby.change(json!({"updateStrategy": "auto", "version": null})).await;
        // 1.21.10 waits for the one, and no longer for the other.
        lobby.held_by(SHOP).await;
        assert!(lobby.object().await.status.unwrap().available_update.is_none());

        lobby.shell(&format!("rm /data/plugins/{SHOP}")).await;
        world.look_again(LOBBY).await;
        lobby.planned(&["Paper 1.21.8-", "-> 1.21.10-"]).await;
        lobby.held_by(CLAIMS).await;
    })
    .await;
}
