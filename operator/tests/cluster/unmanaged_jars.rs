//! Edge (writes). Tests unmanaged JARs: Modrinth may list their Minecraft versions, and they may need a plugin.

use crds::paper_mc_server::PluginStateKind;
use fixtures::jar::{self, PluginYml};
use serde_json::json;

use super::eventually::{SHORT_LIMIT, wait_until};
use super::manifests::{ALWAYS_OPEN, BEFORE_RELEASE, LOBBY, NEVER_OPEN, server, viabackwards};
use super::server::Server;
use super::test_env::{in_test_env, uid_of};
use super::update::wait_until_updated;

/// No upstream knows it.
const SHOP: &str = "Shop.jar";
/// GriefPrevention 16.18.5: its page lists 1.21.10 and not 1.21.11.
const CLAIMS: &str = "claims.jar";

#[tokio::test(flavor = "multi_thread")]
async fn unmanaged_jar_known_to_modrinth_blocks_only_unlisted_minecraft() {
    in_test_env("own-jars", BEFORE_RELEASE, async |env| {
        let mut pinned = server(LOBBY, NEVER_OPEN);
        pinned["spec"]
            .as_object_mut()
            .unwrap()
            .extend([("updateStrategy".to_owned(), json!("pin")), ("version".to_owned(), json!("1.21.8"))]);
        env.apply(&[pinned]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        let claims = env.upstream.file("griefprevention", "16.18.5").await;
        lobby.put_file(&format!("/data/plugins/{CLAIMS}"), &claims).await;
        lobby.put_file(&format!("/data/plugins/{SHOP}"), &jar::plugin(&PluginYml::new("Shop", "1.0"))).await;
        lobby.patch_spec(json!({"updateStrategy": "auto", "version": null})).await;
        // `SHOP` blocks 1.21.10. `CLAIMS` no longer does.
        lobby.wait_for_blocker(SHOP).await;
        assert!(lobby.object().await.status.unwrap().available_update.is_none());

        lobby.shell(&format!("rm /data/plugins/{SHOP}")).await;
        env.trigger_passes(LOBBY).await;
        lobby.wait_until_planned(&["Paper 1.21.8-", "-> 1.21.10-"]).await;
        lobby.wait_for_blocker(CLAIMS).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dependency_of_unmanaged_jar_stays_when_plugin_is_deleted() {
    in_test_env("needed-by-file", BEFORE_RELEASE, async |env| {
        env.apply(&[server(LOBBY, NEVER_OPEN), viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        let needs = PluginYml { depend: vec!["ViaVersion".to_owned()], ..PluginYml::new("Shop", "1.0") };
        lobby.put_file(&format!("/data/plugins/{SHOP}"), &jar::plugin(&needs)).await;
        env.trigger_passes(LOBBY).await;
        wait_until("the operator knows the dependency of the JAR", SHORT_LIMIT, async || {
            let status = lobby.object().await.status.unwrap_or_default();
            let is_recorded = status.unmanaged.iter().any(|jar| jar.file == SHOP && jar.depend == ["ViaVersion"]);
            if is_recorded { Ok(()) } else { Err(format!("{:?}", status.unmanaged)) }
        })
        .await;

        env.kubectl(&["delete", "plugin", "viabackwards"], "").await;
        lobby.wait_until_planned(&["ViaBackwards 5.7.0 (removed)"]).await;
        let update = lobby.object().await.status.unwrap().available_update.unwrap().summary;
        assert!(!update.contains("ViaVersion"), "{update}");

        lobby.set_window(ALWAYS_OPEN).await;
        wait_until_updated(env, &lobby).await;
        let names: Vec<String> = lobby.version_set().await.plugins.into_keys().collect();
        assert_eq!(names, ["Shop", "ViaVersion"], "the unmanaged JAR keeps its dependency");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unmanaged_jar_with_managed_name_is_displaced_at_start() {
    in_test_env("set-aside", BEFORE_RELEASE, async |env| {
        env.apply(&[server(LOBBY, NEVER_OPEN), viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        let version_set = lobby.version_set().await;
        let via = jar::plugin(&PluginYml::new("ViaVersion", "0.1"));
        lobby.put_file("/data/plugins/my-via.jar", &via).await;
        let before = lobby.pod().await.unwrap();
        env.kubectl(&["delete", "pod", "lobby-0", "--wait=false"], "").await;
        lobby.wait_for_new_pod(&before).await;
        let message = lobby.wait_for_condition("JarsDisplaced", "True", "NameConflict").await;
        let moved = "`plugins/my-via.jar` to `.nightshift/replaced/my-via.jar`";
        assert!(message.contains(moved), "{message}");
        assert_eq!(lobby.version_set().await, version_set);
        assert_eq!(lobby.shell("ls /data/.nightshift/replaced").await.trim(), "my-via.jar");
        env.trigger_passes(LOBBY).await;
        let notes = env.event_notes(LOBBY, "JarDisplaced").await;
        assert!(notes.len() == 1 && notes[0].contains(moved), "one Event: {notes:?}");

        lobby.shell("rm /data/.nightshift/replaced/my-via.jar").await;
        env.trigger_passes(LOBBY).await;
        wait_until("the condition is gone with the JAR", SHORT_LIMIT, async || {
            match lobby.condition("JarsDisplaced").await {
                None => Ok(()),
                Some(condition) => Err(condition.message),
            }
        })
        .await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn update_folder_jar_does_not_replace_managed_plugin() {
    in_test_env("update-folder", BEFORE_RELEASE, async |env| {
        env.apply(&[server(LOBBY, NEVER_OPEN), viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        let version_set = lobby.version_set().await;
        lobby.put_file("/data/bukkit.yml", b"settings:\n  update-folder: incoming\n").await;
        let via = jar::plugin(&PluginYml::new("ViaVersion", "9.9"));
        lobby.put_file("/data/plugins/incoming/new-via.jar", &via).await;
        let before = lobby.pod().await.unwrap();
        env.kubectl(&["delete", "pod", "lobby-0", "--wait=false"], "").await;
        lobby.wait_for_new_pod(&before).await;
        let message = lobby.wait_for_condition("JarsDisplaced", "True", "NameConflict").await;
        assert!(message.contains("`plugins/incoming/new-via.jar` to `.nightshift/replaced/new-via.jar`"), "{message}");
        assert_eq!(lobby.version_set().await, version_set, "the server would have installed 9.9");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unlabelled_plugin_stays_until_window() {
    in_test_env("unlabelled", BEFORE_RELEASE, async |env| {
        env.apply(&[server(LOBBY, NEVER_OPEN), viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        let (version_set, before) = (lobby.version_set().await, lobby.pod().await.unwrap());
        env.kubectl(&["label", "papermcserver", LOBBY, "tier-"], "").await;
        lobby.wait_until_planned(&["ViaBackwards 5.7.0 (removed)", "ViaVersion 5.7.0 (removed)"]).await;
        let states = lobby.object().await.status.unwrap().plugins;
        let shown: Vec<_> = states.iter().map(|state| (state.name.as_str(), state.state)).collect();
        let pending = PluginStateKind::PendingRemoval;
        assert_eq!(shown, [("ViaBackwards", pending), ("ViaVersion", pending)]);
        env.trigger_passes(LOBBY).await;
        assert_eq!((uid_of(&lobby.pod().await.unwrap()), lobby.version_set().await), (uid_of(&before), version_set));

        lobby.set_window(ALWAYS_OPEN).await;
        wait_until_updated(env, &lobby).await;
        assert!(lobby.version_set().await.plugins.is_empty());
        assert_eq!(lobby.shell("ls /data/plugins | grep -c '[.]jar$' || true").await.trim(), "0");
    })
    .await;
}
