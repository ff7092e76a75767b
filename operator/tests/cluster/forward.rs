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

use super::manifests::{ALWAYS, FAR, LOBBY, NEWER_MINECRAFT, OLDER_MINECRAFT, server, viabackwards};
use super::server::Server;
use super::update::updated;
use super::volume::stop;
use super::wait::{AN_UPDATE, until};
use super::witness::ServerObserver;
use super::world::in_a_world;

/// Waits until the condition names the next version set and its time.
async fn told_what_comes(server: &Server<'_>, because: &str) {
    until("what comes is told", AN_UPDATE, async || {
        let found = server.condition("Updating").await.map(|found| (found.reason, found.message));
        let parts = ["What is planned now comes instead", "the window opens at"];
        match found {
            Some((reason, message)) if reason == because && parts.iter().all(|part| message.contains(part)) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

/// The Minecraft of [`NEWER_MINECRAFT`] and its data version, from `minecraft.wiki/w/Data_version`.
const NEWER: (&str, i32) = ("1.21.11", 4671);

/// Marks the world in this folder as opened by that Minecraft. The rest of its `level.dat` stays.
fn open_with_newer(world: &Path) {
    let (name, data_version) = NEWER;
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
    in_a_world("too-old", OLDER_MINECRAFT, async |world| {
        world.apply(&[server(LOBBY, FAR), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        lobby.order("build 1000").await;
        let folder = stop(&lobby).await;
        open_with_newer(&folder.join("world"));
        lobby.change(json!({"replicas": 1})).await;
        let refused = lobby.condition_is("Updating", "False", "WorldRefused").await;
        assert!(refused.contains("Forward: choose in the spec a Minecraft that can open the worlds"), "{refused}");
        let before = lobby.pod().await.unwrap().metadata.uid;

        world.upstream.set_now(NEWER_MINECRAFT).await;
        told_what_comes(&lobby, "WorldRefused").await;
        assert_eq!(lobby.pod().await.unwrap().metadata.uid, before, "not before the window");
        lobby.set_window(ALWAYS).await;
        updated(world, &lobby).await;
        assert_eq!(lobby.set().await.paper.split('-').next(), Some(NEWER.0));
        assert!(lobby.saved_blocks().await >= 1000, "it is the same world");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn corrected_lock_rolls_forward_in_next_window() {
    in_a_world("forward", OLDER_MINECRAFT, async |world| {
        world.apply(&[server(LOBBY, FAR), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        lobby.order("build 1000").await;
        lobby.order("fault plugin-fails ViaVersion if 1.21.11").await;
        world.upstream.set_now(NEWER_MINECRAFT).await;
        lobby.planned(&["-> 1.21.11"]).await;
        lobby.set_window(ALWAYS).await;
        lobby.condition_is("Updating", "False", "NoBackup").await;
        let failed = lobby.set().await;
        let stuck = lobby.pod().await.unwrap().metadata.uid;

        // The cause of the failure is removed. No update begins before the window, and the next one is reported.
        lobby.set_window(FAR).await;
        world.kubectl(&["delete", "plugin", "viabackwards"], "").await;
        told_what_comes(&lobby, "NoBackup").await;
        let witness = ServerObserver::of(&lobby).await;
        assert_eq!(lobby.pod().await.unwrap().metadata.uid, stuck);

        lobby.set_window(ALWAYS).await;
        updated(world, &lobby).await;
        let set = lobby.set().await;
        assert_eq!((&set.paper, set.plugins.len()), (&failed.paper, 0), "{set:?}");
        assert!(lobby.saved_blocks().await >= 1000, "it is the same world");
        assert_eq!((witness.pods(), witness.runs()), (2, 2), "one stop:\n{}", witness.console());
        assert_eq!(world.notes(LOBBY, "UpdateRolledBack").await, [""; 0]);
        assert_eq!(world.notes(LOBBY, "UpdateStarted").await.len(), 2);
    })
    .await;
}
