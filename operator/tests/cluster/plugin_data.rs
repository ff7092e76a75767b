//! Edge (writes). Tests the data folders of plugins: saved before an update, and restored after it fails.

use super::manifests::{AFTER, ALWAYS, BEFORE, FAR, LOBBY, TO_AFTER, server, viabackwards};
use super::server::Server;
use super::wait::{AN_UPDATE, until};
use super::world::in_a_world;

/// A file with a line for each start of the fake server, with the version of the plugin that wrote it.
const VERSIONS: &str = "ViaVersion/stand-in-versions.txt";

#[tokio::test(flavor = "multi_thread")]
async fn failed_plugin_update_restores_plugin_data() {
    in_a_world("plugin-data", BEFORE, async |world| {
        world.apply(&[server(LOBBY, FAR), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        let before = lobby.set().await;
        lobby.put_file("/data/plugins/ViaVersion/by-hand.yml", b"check: true\n").await;
        lobby.order("fault plugin-fails ViaVersion if ViaVersion@5.7.1").await;
        world.upstream.set_now(AFTER).await;
        lobby.planned(&TO_AFTER).await;
        lobby.set_window(ALWAYS).await;

        let restored = until("the data are put back", AN_UPDATE, async || {
            let mut notes = world.notes(LOBBY, "PluginDataRestored").await;
            notes.pop().ok_or_else(|| "no Event PluginDataRestored".to_owned())
        })
        .await;
        assert!(restored.contains("ViaVersion"), "{restored}");
        lobby.condition_is("Updating", "False", "Held").await;
        // The condition must name the failure, although the old version set was verified again.
        let held = lobby.condition("Updating").await.unwrap().message;
        assert!(held.contains("ViaVersion did not enable"), "{held}");
        let status = lobby.object().await.status.unwrap();
        let last = status.last_update.unwrap();
        assert!(!last.successful && last.message.contains("ViaVersion did not enable"), "{last:?}");
        assert_eq!(status.next_window.as_deref(), Some("held"), "no window brings it");
        assert_eq!(world.notes(LOBBY, "UpdateApplied").await, Vec::<String>::new());
        assert_eq!(lobby.set().await, before);
        let kept = world.note(LOBBY, "PluginDataSaved").await;
        assert!(kept.contains("ViaVersion"), "{kept}");

        let data = lobby.object().await.status.unwrap().plugin_data.unwrap();
        let aside = data.set_aside.expect("the failed version had written something");
        let wrote = async |place: &str| lobby.shell(&format!("cat /data/{place}/{VERSIONS}")).await;
        let (here, there) = (wrote("plugins").await, wrote(&aside).await);
        assert!(here.contains("5.7.0") && !here.contains("5.7.1"), "back as it was: {here}");
        assert!(there.contains("5.7.0") && there.contains("5.7.1"), "set aside, not deleted: {there}");
        for place in ["plugins", &aside] {
            assert_eq!(lobby.shell(&format!("cat /data/{place}/ViaVersion/by-hand.yml")).await, "check: true\n");
        }
        let remains = lobby.shell("ls -a /data/.nightshift /data/.nightshift/kept").await;
        assert!(!remains.contains("plugin-data-back.json") && !remains.contains(".partial"), "{remains}");
    })
    .await;
}
