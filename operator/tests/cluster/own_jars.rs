//! Edge (writes). Tests unmanaged JARs: Modrinth may list their Minecraft versions, and they may need a plugin.

use crds::paper_mc_server::PluginStateKind;
use fixtures::jar::{self, PluginYml};
use serde_json::json;

use super::manifests::{ALWAYS, BEFORE, FAR, LOBBY, server, viabackwards};
use super::server::Server;
use super::update::updated;
use super::wait::{SOON, until};
use super::world::{in_a_world, uid_of};

/// No upstream knows it.
const SHOP: &str = "Shop.jar";
/// GriefPrevention 16.18.5: its page lists 1.21.10 and not 1.21.11.
const CLAIMS: &str = "claims.jar";

#[tokio::test(flavor = "multi_thread")]
async fn unmanaged_jar_known_to_modrinth_blocks_only_unlisted_minecraft() {
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
        // `SHOP` blocks 1.21.10. `CLAIMS` no longer does.
        lobby.held_by(SHOP).await;
        assert!(lobby.object().await.status.unwrap().available_update.is_none());

        lobby.shell(&format!("rm /data/plugins/{SHOP}")).await;
        world.look_again(LOBBY).await;
        lobby.planned(&["Paper 1.21.8-", "-> 1.21.10-"]).await;
        lobby.held_by(CLAIMS).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dependency_of_unmanaged_jar_stays_when_plugin_is_deleted() {
    in_a_world("needed-by-file", BEFORE, async |world| {
        world.apply(&[server(LOBBY, FAR), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        let needs = PluginYml { depend: vec!["ViaVersion".to_owned()], ..PluginYml::new("Shop", "1.0") };
        lobby.put_file(&format!("/data/plugins/{SHOP}"), &jar::plugin(&needs)).await;
        world.look_again(LOBBY).await;
        until("the operator knows what the file needs", SOON, async || {
            let status = lobby.object().await.status.unwrap_or_default();
            let known = status.unmanaged.iter().any(|jar| jar.file == SHOP && jar.depend == ["ViaVersion"]);
            if known { Ok(()) } else { Err(format!("{:?}", status.unmanaged)) }
        })
        .await;

        world.kubectl(&["delete", "plugin", "viabackwards"], "").await;
        lobby.planned(&["ViaBackwards 5.7.0 (removed)"]).await;
        let update = lobby.object().await.status.unwrap().available_update.unwrap().summary;
        assert!(!update.contains("ViaVersion"), "{update}");

        lobby.set_window(ALWAYS).await;
        updated(world, &lobby).await;
        let names: Vec<String> = lobby.set().await.plugins.into_keys().collect();
        assert_eq!(names, ["Shop", "ViaVersion"], "the file loads because what it needs is still there");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unmanaged_jar_with_managed_name_is_displaced_at_start() {
    in_a_world("set-aside", BEFORE, async |world| {
        world.apply(&[server(LOBBY, FAR), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        let set = lobby.set().await;
        let via = jar::plugin(&PluginYml::new("ViaVersion", "0.1"));
        lobby.put_file("/data/plugins/my-via.jar", &via).await;
        let before = lobby.pod().await.unwrap();
        world.kubectl(&["delete", "pod", "lobby-0", "--wait=false"], "").await;
        lobby.back_after(&before).await;
        let message = lobby.condition_is("JarsDisplaced", "True", "NameConflict").await;
        let moved = "`plugins/my-via.jar` to `.nightshift/replaced/my-via.jar`";
        assert!(message.contains(moved), "{message}");
        assert_eq!(lobby.set().await, set);
        assert_eq!(lobby.shell("ls /data/.nightshift/replaced").await.trim(), "my-via.jar");
        world.look_again(LOBBY).await;
        let told = world.notes(LOBBY, "JarDisplaced").await;
        assert!(told.len() == 1 && told[0].contains(moved), "once: {told:?}");

        lobby.shell("rm /data/.nightshift/replaced/my-via.jar").await;
        world.look_again(LOBBY).await;
        until("nothing is said of a file that is gone", SOON, async || match lobby.condition("JarsDisplaced").await {
            None => Ok(()),
            Some(condition) => Err(condition.message),
        })
        .await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn update_folder_jar_does_not_replace_managed_plugin() {
    in_a_world("update-folder", BEFORE, async |world| {
        world.apply(&[server(LOBBY, FAR), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        let set = lobby.set().await;
        lobby.put_file("/data/bukkit.yml", b"settings:\n  update-folder: incoming\n").await;
        let via = jar::plugin(&PluginYml::new("ViaVersion", "9.9"));
        lobby.put_file("/data/plugins/incoming/new-via.jar", &via).await;
        let before = lobby.pod().await.unwrap();
        world.kubectl(&["delete", "pod", "lobby-0", "--wait=false"], "").await;
        lobby.back_after(&before).await;
        let message = lobby.condition_is("JarsDisplaced", "True", "NameConflict").await;
        assert!(message.contains("`plugins/incoming/new-via.jar` to `.nightshift/replaced/new-via.jar`"), "{message}");
        assert_eq!(lobby.set().await, set, "the server would have installed 9.9");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unlabelled_plugin_stays_until_window() {
    in_a_world("unlabelled", BEFORE, async |world| {
        world.apply(&[server(LOBBY, FAR), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        let (set, before) = (lobby.set().await, lobby.pod().await.unwrap());
        world.kubectl(&["label", "papermcserver", LOBBY, "tier-"], "").await;
        lobby.planned(&["ViaBackwards 5.7.0 (removed)", "ViaVersion 5.7.0 (removed)"]).await;
        let states = lobby.object().await.status.unwrap().plugins;
        let shown: Vec<_> = states.iter().map(|state| (state.name.as_str(), state.state)).collect();
        let pending = PluginStateKind::PendingRemoval;
        assert_eq!(shown, [("ViaBackwards", pending), ("ViaVersion", pending)]);
        world.look_again(LOBBY).await;
        assert_eq!((uid_of(&lobby.pod().await.unwrap()), lobby.set().await), (uid_of(&before), set));

        lobby.set_window(ALWAYS).await;
        updated(world, &lobby).await;
        assert!(lobby.set().await.plugins.is_empty());
        assert_eq!(lobby.shell("ls /data/plugins | grep -c '[.]jar$' || true").await.trim(), "0");
    })
    .await;
}
