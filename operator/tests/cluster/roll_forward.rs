//! Edge (writes). Tests rolling forward: after a failed update that only a user could roll back, and for worlds that
//! the stable version set cannot open.

use std::collections::HashMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use fastnbt::Value;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::json;

use super::eventually::{UPDATE_LIMIT, wait_until};
use super::manifests::{ALWAYS_OPEN, LOBBY, NEVER_OPEN, NEWER_MINECRAFT, OLDER_MINECRAFT, server, viabackwards};
use super::observer::ServerObserver;
use super::server::Server;
use super::test_env::in_test_env;
use super::update::wait_until_updated;
use super::volume::stop;

/// Waits until the condition names the next version set and its time.
async fn wait_for_announced_change(server: &Server<'_>, expected_reason: &str) {
    wait_until("the next update is announced", UPDATE_LIMIT, async || {
        let found = server.condition("Updating").await.map(|found| (found.reason, found.message));
        let parts = ["The planned update is applied instead", "The window opens at"];
        match found {
            Some((reason, message)) if reason == expected_reason && parts.iter().all(|part| message.contains(part)) => {
                Ok(())
            }
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

/// The Minecraft of [`NEWER_MINECRAFT`] and its data version, from `minecraft.wiki/w/Data_version`.
const NEWER_VERSION: (&str, i32) = ("1.21.11", 4671);

/// Marks the world in this folder as opened by that Minecraft. The rest of its `level.dat` stays.
fn open_with_newer(world: &Path) {
    let (name, data_version) = NEWER_VERSION;
    let packed = fs::read(world.join("level.dat")).unwrap();
    let mut level: HashMap<String, Value> = fastnbt::from_reader(GzDecoder::new(packed.as_slice())).unwrap();
    let Some(Value::Compound(data)) = level.get_mut("Data") else { panic!("{level:?}") };
    let version = HashMap::from([
        ("Id".to_owned(), Value::Int(data_version)),
        ("Name".to_owned(), Value::String(name.to_owned())),
    ]);
    data.insert("DataVersion".to_owned(), Value::Int(data_version));
    data.insert("Version".to_owned(), Value::Compound(version));
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(&fastnbt::to_bytes(&level).unwrap()).unwrap();
    fs::write(world.join("level.dat"), gzip.finish().unwrap()).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_worlds_are_opened_by_newer_minecraft_in_window() {
    in_test_env("too-old", OLDER_MINECRAFT, async |env| {
        env.apply(&[server(LOBBY, NEVER_OPEN), viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        lobby.send_command("build 1000").await;
        let folder = stop(&lobby).await;
        open_with_newer(&folder.join("world"));
        lobby.patch_spec(json!({"replicas": 1})).await;
        let refused = lobby.wait_for_condition("Updating", "False", "WorldRefused").await;
        assert!(
            refused.contains("To roll forward, choose a Minecraft in the spec that can open the worlds"),
            "{refused}"
        );
        let before = lobby.pod().await.unwrap().metadata.uid;

        env.upstream.set_now(NEWER_MINECRAFT).await;
        wait_for_announced_change(&lobby, "WorldRefused").await;
        assert_eq!(lobby.pod().await.unwrap().metadata.uid, before, "the update waits for the window");
        lobby.set_window(ALWAYS_OPEN).await;
        wait_until_updated(env, &lobby).await;
        assert_eq!(lobby.version_set().await.paper.split('-').next(), Some(NEWER_VERSION.0));
        assert!(lobby.saved_blocks().await >= 1000, "it is the same world");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn corrected_lock_rolls_forward_in_next_window() {
    in_test_env("forward", OLDER_MINECRAFT, async |env| {
        let mut object = server(LOBBY, NEVER_OPEN);
        object["spec"]["backup"] = json!({"enabled": false});
        env.apply(&[object, viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        lobby.send_command("build 1000").await;
        lobby.send_command("fault plugin-fails ViaVersion if 1.21.11").await;
        env.upstream.set_now(NEWER_MINECRAFT).await;
        lobby.wait_until_planned(&["-> 1.21.11"]).await;
        lobby.set_window(ALWAYS_OPEN).await;
        lobby.wait_for_condition("Updating", "False", "NoBackup").await;
        let failed = lobby.version_set().await;
        let failed_pod = lobby.pod().await.unwrap().metadata.uid;

        // The cause of the failure is removed. No update begins before the window, and the next one is reported.
        lobby.set_window(NEVER_OPEN).await;
        env.kubectl(&["delete", "plugin", "viabackwards"], "").await;
        wait_for_announced_change(&lobby, "NoBackup").await;
        let observer = ServerObserver::start(&lobby).await;
        assert_eq!(lobby.pod().await.unwrap().metadata.uid, failed_pod);

        lobby.set_window(ALWAYS_OPEN).await;
        wait_until_updated(env, &lobby).await;
        let version_set = lobby.version_set().await;
        assert_eq!((&version_set.paper, version_set.plugins.len()), (&failed.paper, 0), "{version_set:?}");
        assert!(lobby.saved_blocks().await >= 1000, "it is the same world");
        assert_eq!((observer.pods(), observer.runs()), (2, 2), "one stop:\n{}", observer.console());
        assert_eq!(env.event_notes(LOBBY, "UpdateRolledBack").await, [""; 0]);
        assert_eq!(env.event_notes(LOBBY, "UpdateStarted").await.len(), 2);
    })
    .await;
}
