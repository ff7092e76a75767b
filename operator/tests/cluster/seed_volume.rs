//! Edge (writes). Tests that a new server starts with the backup of another server.

use serde_json::{Value, json};

use super::eventually::{SHORT_LIMIT, wait_until};
use super::manifests::{BEFORE_RELEASE, LOBBY, NEVER_OPEN, server, viabackwards};
use super::server::Server;
use super::test_env::{TestEnv, in_test_env};

/// A file in the world that identifies it.
pub(super) const MARKER: &str = "/data/world/marker.txt";
/// Settings of a plugin that the user wrote.
pub(super) const SETTINGS: &str = "/data/plugins/ViaVersion/by-hand.yml";

/// A server with more fields in its spec.
pub(super) fn server_with(name: &str, fields: &Value) -> Value {
    let mut manifest = server(name, NEVER_OPEN);
    for (key, value) in fields.as_object().unwrap() {
        manifest["spec"][key] = value.clone();
    }
    manifest
}

/// Builds in a new server, writes both files and takes a backup. Returns its name.
pub(super) async fn build_and_back_up(env: &TestEnv) -> String {
    let lobby = Server::new(env, LOBBY);
    lobby.wait_until_stable().await;
    lobby.send_command("build 1000").await;
    lobby.put_file(MARKER, b"then").await;
    lobby.put_file(SETTINGS, b"mine").await;
    env.take_first_backup(LOBBY).await
}

#[tokio::test(flavor = "multi_thread")]
async fn new_server_starts_from_backup_of_another() {
    in_test_env("moved", BEFORE_RELEASE, async |env| {
        let backup = json!({"storage": {"size": "64Mi"}});
        env.apply(&[server_with(LOBBY, &json!({"backup": backup})), viabackwards()]).await;
        let backup_name = build_and_back_up(env).await;

        let restoring_server = |server: &str| server_with("second", &json!({"restoreFrom": {"server": server}}));
        env.apply(&[restoring_server("loby")]).await;
        let second = Server::new(env, "second");
        let why = second.wait_for_condition("Resolved", "False", "ClaimMissing").await;
        assert!(why.contains("no claim `backup-loby-0`") && why.ends_with("Servers with backups here: lobby"), "{why}");
        assert!(second.pod().await.is_none());

        env.apply(&[restoring_server(LOBBY)]).await;
        second.wait_for_condition("Ready", "True", "Running").await;
        let message = second.wait_for_condition("RestoredFrom", "True", "Restored").await;
        assert!(message.contains(&backup_name) && message.contains("of `lobby`"), "{message}");
        assert_eq!(second.shell(&format!("cat {MARKER}")).await, "then");
        assert!(second.saved_blocks().await >= 1000);
        // A restart in a window removes the claim of the other server, so that it can be deleted later.
        wait_until("the removal of the claim is planned", SHORT_LIMIT, async || {
            match second.condition("UpdateAvailable").await {
                Some(found) if found.status == "True" && found.message == "settings of the pod" => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
        assert_eq!(Server::new(env, LOBBY).shell(&format!("cat {MARKER}")).await, "then", "the source is unchanged");
    })
    .await;
}
