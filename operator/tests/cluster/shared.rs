//! Edge (writes). A plugin that is one release on all servers it matches.

use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::manifests::{BEFORE, FAR, plugin, server};
use super::server::Server;
use super::world::in_a_world;

/// Listed for 1.20.6 to 1.21.9.
const SHARED: &str = "16.18.4";
/// Listed from 1.21 on.
const NEWEST: &str = "16.18.5";

#[tokio::test(flavor = "multi_thread")]
async fn a_latest_plugin_is_one_release_on_all_its_servers_and_with_auto_each_gets_its_own() {
    in_a_world("shared", BEFORE, async |world| {
        let pinned = |name: &str, version: &str| {
            let mut object = server(name, FAR);
            object["spec"]["updateStrategy"] = json!("pin");
            object["spec"]["version"] = json!(version);
            object
        };
        let mut griefprevention = plugin("griefprevention");
        griefprevention["spec"]["updateStrategy"] = json!("latest");
        world.apply(&[griefprevention, pinned("newer", "1.21.8"), pinned("older", "1.20.6")]).await;
        let (newer, older) = (Server::new(world, "newer"), Server::new(world, "older"));
        newer.settled().await;
        older.settled().await;
        assert_eq!(newer.set().await.plugins["GriefPrevention"], SHARED);
        assert_eq!(older.set().await.plugins["GriefPrevention"], SHARED);

        let auto = Patch::Merge(json!({"spec": {"updateStrategy": "auto"}}));
        world.api::<crds::Plugin>().patch("griefprevention", &PatchParams::default(), &auto).await.unwrap();
        let planned = newer.planned().await;
        assert!(planned.contains(&format!("GriefPrevention {SHARED} -> {NEWEST}")), "{planned}");
        world.look_again("older").await;
        older.settled().await;
    })
    .await;
}
