//! Edge (writes). Tests a plugin that must be one release on all servers it matches.

use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::manifests::{BEFORE_RELEASE, NEVER_OPEN, plugin, server};
use super::server::Server;
use super::test_env::{TestEnv, in_test_env};

/// Listed for 1.20.6 to 1.21.9.
const SHARED: &str = "16.18.4";
/// Listed from 1.21 on.
const NEWEST: &str = "16.18.5";

#[tokio::test(flavor = "multi_thread")]
async fn latest_plugin_is_shared_and_auto_is_per_server() {
    in_test_env("shared", BEFORE_RELEASE, async |env| {
        let (newer, older) = newer_and_older(env).await;
        let auto = Patch::Merge(json!({"spec": {"updateStrategy": "auto"}}));
        env.api::<crds::Plugin>().patch("griefprevention", &PatchParams::default(), &auto).await.unwrap();
        newer.wait_until_planned(&[&format!("GriefPrevention {SHARED} -> {NEWEST}")]).await;
        env.trigger_passes("older").await;
        older.wait_until_stable().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_server_leaves_its_group_at_once() {
    in_test_env("widow", BEFORE_RELEASE, async |env| {
        let (newer, _) = newer_and_older(env).await;
        env.api::<crds::PaperMCServer>().delete("older", &DeleteParams::background()).await.unwrap();
        newer.wait_until_planned(&[&format!("GriefPrevention {SHARED} -> {NEWEST}")]).await;
    })
    .await;
}

/// Two stable servers that share a `latest` plugin. The older one cannot run the newest release.
async fn newer_and_older(env: &TestEnv) -> (Server<'_>, Server<'_>) {
    let mut griefprevention = plugin("griefprevention");
    griefprevention["spec"]["updateStrategy"] = json!("latest");
    env.apply(&[griefprevention, pinned("newer", "1.21.8"), pinned("older", "1.20.6")]).await;
    let (newer, older) = (Server::new(env, "newer"), Server::new(env, "older"));
    newer.wait_until_stable().await;
    older.wait_until_stable().await;
    assert_eq!(newer.version_set().await.plugins["GriefPrevention"], SHARED);
    assert_eq!(older.version_set().await.plugins["GriefPrevention"], SHARED);
    (newer, older)
}

fn pinned(name: &str, version: &str) -> Value {
    let mut object = server(name, NEVER_OPEN);
    object["spec"]["updateStrategy"] = json!("pin");
    object["spec"]["version"] = json!(version);
    object
}
