//! Edge (writes). Tests worlds and datapacks of users, and a version set that does not open all of them.

use serde_json::json;

use super::eventually::{UPDATE_LIMIT, wait_until};
use super::manifests::{
    AFTER_RELEASE, ALWAYS_OPEN, BEFORE_RELEASE, LOBBY, NEVER_OPEN, RELEASE_CHANGES, server, viabackwards,
};
use super::observer::ServerObserver;
use super::server::Server;
use super::test_env::{TestEnv, in_test_env};
use super::update::wait_until_updated;

/// A world in Multiverse's form, and a datapack: the next start opens both.
async fn make_world_and_datapack(lobby: &Server<'_>) {
    lobby.shell("mkdir /data/creative && cp /data/world/level.dat /data/creative/").await;
    let description = br#"{"pack": {"pack_format": 88, "description": "skylands"}}"#;
    lobby.put_file("/data/world/datapacks/skylands/pack.mcmeta", description).await;
}

/// Applies an update that changes nothing in the version set. The next verification knows the worlds and datapacks that
/// its start has opened.
async fn restart_by_update(env: &TestEnv, lobby: &Server<'_>, which: &str) {
    lobby.set_window(ALWAYS_OPEN).await;
    lobby.patch_spec(json!({"podTemplate": {"metadata": {"annotations": {"example.com/worlds": which}}}})).await;
    wait_until_updated(env, lobby).await;
    lobby.set_window(NEVER_OPEN).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_world_and_datapack_cause_rollback() {
    in_test_env("worlds", BEFORE_RELEASE, async |env| {
        env.apply(&[server(LOBBY, NEVER_OPEN), viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        make_world_and_datapack(&lobby).await;
        // One start is not enough for the comparison.
        for which in ["first", "second", "third"] {
            restart_by_update(env, &lobby, which).await;
        }
        let before = lobby.version_set().await;

        lobby.send_command("fault loses-world creative if ViaVersion@5.7.1").await;
        lobby.send_command("fault loses-datapack file/skylands if ViaVersion@5.7.1").await;
        env.upstream.set_now(AFTER_RELEASE).await;
        lobby.wait_until_planned(&RELEASE_CHANGES).await;
        let observer = ServerObserver::start(&lobby).await;
        lobby.set_window(ALWAYS_OPEN).await;
        let failed = wait_until("the update is reported as failed", UPDATE_LIMIT, async || {
            env.event_notes(LOBBY, "UpdateFailed").await.pop().ok_or_else(|| observer.console())
        })
        .await;
        assert!(failed.contains("world `creative` is no longer open"), "{failed}");
        assert!(failed.contains("datapack `file/skylands` is no longer enabled"), "{failed}");

        lobby.wait_for_condition("Updating", "False", "Held").await;
        lobby.wait_for_condition("Ready", "True", "Running").await;
        let log = lobby.log("papermc").await;
        assert!(log.contains("Preparing level \"creative\""), "{log}");
        assert!(!log.contains("Missing data pack"), "{log}");
        assert_eq!(lobby.version_set().await, before);
    })
    .await;
}
