//! Edge (writes). Tests a plugin that must be one release on all servers it matches.

use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::manifests::{BEFORE, FAR, plugin, server};
use super::server::Server;
use super::world::{World, in_a_world};

/// Listed for 1.20.6 to 1.21.9.
const SHARED: &str = "16.18.4";
/// Listed from 1.21 on.
const NEWEST: &str = "16.18.5";

#[tokio::test(flavor = "multi_thread")]
async fn latest_plugin_is_shared_and_auto_is_per_server() {
    in_a_world("shared", BEFORE, async |world| {
        let (newer, older) = newer_and_older(world).await;
        let auto = Patch::Merge(json!({"spec": {"updateStrategy": "auto"}}));
        world.api::<crds::Plugin>().patch("griefprevention", &PatchParams::default(), &auto).await.unwrap();
        newer.planned(&[&format!("GriefPrevention {SHARED} -> {NEWEST}")]).await;
        world.look_again("older").await;
        older.settled().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_server_leaves_its_group_at_once() {
    in_a_world("widow", BEFORE, async |world| {
        let (newer, _) = newer_and_older(world).await;
        world.api::<crds::PaperMCServer>().delete("older", &DeleteParams::background()).await.unwrap();
        newer.planned(&[&format!("GriefPrevention {SHARED} -> {NEWEST}")]).await;
    })
    .await;
}

/// Two stable servers that share a `latest` plugin. The older one cannot run the newest release.
async fn newer_and_older(world: &World) -> (Server<'_>, Server<'_>) {
    let mut griefprevention = plugin("griefprevention");
    griefprevention["spec"]["updateStrategy"] = json!("latest");
    world.apply(&[griefprevention, pinned("newer", "1.21.8"), pinned("older", "1.20.6")]).await;
    let (newer, older) = (Server::new(world, "newer"), Server::new(world, "older"));
    newer.settled().await;
    older.settled().await;
    assert_eq!(newer.set().await.plugins["GriefPrevention"], SHARED);
    assert_eq!(older.set().await.plugins["GriefPrevention"], SHARED);
    (newer, older)
}

fn pinned(name: &str, version: &str) -> Value {
    let mut object = server(name, FAR);
    object["spec"]["updateStrategy"] = json!("pin");
    object["spec"]["version"] = json!(version);
    object
}
