//! Edge (writes). Tests the data folders of plugins: saved before an update, and restored after it fails.

use super::eventually::{UPDATE_LIMIT, wait_until};
use super::manifests::{
    AFTER_RELEASE, ALWAYS_OPEN, BEFORE_RELEASE, LOBBY, NEVER_OPEN, RELEASE_CHANGES, server, viabackwards,
};
use super::server::Server;
use super::test_env::in_test_env;

/// A file with a line for each start of the fake server, with the version of the plugin that wrote it.
const VERSIONS: &str = "ViaVersion/fake-paper-versions.txt";

#[tokio::test(flavor = "multi_thread")]
async fn failed_plugin_update_restores_plugin_data() {
    in_test_env("plugin-data", BEFORE_RELEASE, async |env| {
        env.apply(&[server(LOBBY, NEVER_OPEN), viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        let before = lobby.version_set().await;
        lobby.put_file("/data/plugins/ViaVersion/by-hand.yml", b"check: true\n").await;
        lobby.send_command("fault plugin-fails ViaVersion if ViaVersion@5.7.1").await;
        env.upstream.set_now(AFTER_RELEASE).await;
        lobby.wait_until_planned(&RELEASE_CHANGES).await;
        lobby.set_window(ALWAYS_OPEN).await;

        let restored = wait_until("the plugin data is restored", UPDATE_LIMIT, async || {
            let mut notes = env.event_notes(LOBBY, "PluginDataRestored").await;
            notes.pop().ok_or_else(|| "no Event PluginDataRestored".to_owned())
        })
        .await;
        assert!(restored.contains("ViaVersion"), "{restored}");
        lobby.wait_for_condition("Updating", "False", "Held").await;
        // The condition must name the failure, although the old version set was verified again.
        let held = lobby.condition("Updating").await.unwrap().message;
        assert!(held.contains("ViaVersion did not enable"), "{held}");
        let status = lobby.object().await.status.unwrap();
        let last = status.last_update.unwrap();
        assert!(!last.successful && last.message.contains("ViaVersion did not enable"), "{last:?}");
        assert_eq!(status.next_window.as_deref(), Some("held"), "no window applies the failed update");
        assert_eq!(env.event_notes(LOBBY, "UpdateApplied").await, Vec::<String>::new());
        assert_eq!(lobby.version_set().await, before);
        let note = env.wait_for_event_note(LOBBY, "PluginDataSaved").await;
        assert!(note.contains("ViaVersion"), "{note}");

        let data = lobby.object().await.status.unwrap().plugin_data.unwrap();
        let displaced = data.set_aside.expect("the failed version wrote files");
        let wrote = async |folder: &str| lobby.shell(&format!("cat /data/{folder}/{VERSIONS}")).await;
        let (current, moved) = (wrote("plugins").await, wrote(&displaced).await);
        assert!(current.contains("5.7.0") && !current.contains("5.7.1"), "the old data is restored: {current}");
        assert!(moved.contains("5.7.0") && moved.contains("5.7.1"), "the replaced data is kept: {moved}");
        for folder in ["plugins", &displaced] {
            assert_eq!(lobby.shell(&format!("cat /data/{folder}/ViaVersion/by-hand.yml")).await, "check: true\n");
        }
        let remains = lobby.shell("ls -a /data/.nightshift /data/.nightshift/kept").await;
        assert!(!remains.contains("plugin-data-back.json") && !remains.contains(".partial"), "{remains}");
    })
    .await;
}
