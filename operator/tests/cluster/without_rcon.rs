//! Edge (writes). Tests a server without RCON: SIGTERM stops it, and its log is the only source of its state.

use serde_json::{Value, json};

use super::eventually::{START_LIMIT, UPDATE_LIMIT, wait_until};
use super::manifests::{
    AFTER_RELEASE, ALWAYS_OPEN, BEFORE_RELEASE, LOBBY, NEVER_OPEN, RELEASE_CHANGES, server, viabackwards,
};
use super::observer::ServerObserver;
use super::server::Server;
use super::test_env::in_test_env;
use super::update::wait_until_updated;

fn server_without_rcon() -> Value {
    let mut object = server(LOBBY, NEVER_OPEN);
    object["spec"]["rcon"] = json!({"enabled": false});
    object["spec"]["players"]["policy"] = json!("Ignore");
    object
}

const PROBE_RCON: &str = "nc -w 2 127.0.0.1 25575 </dev/null >/dev/null 2>&1 && echo open || echo refused";

#[tokio::test(flavor = "multi_thread")]
async fn update_without_rcon_stops_by_sigterm_and_saves() {
    in_test_env("without-rcon", BEFORE_RELEASE, async |env| {
        env.apply(&[server_without_rcon(), viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        assert_eq!(lobby.shell(PROBE_RCON).await.trim(), "refused");
        lobby.join_seven_players().await;
        lobby.send_command("build 500").await;
        let observer = ServerObserver::start(&lobby).await;

        env.upstream.set_now(AFTER_RELEASE).await;
        lobby.wait_until_planned(&RELEASE_CHANGES).await;
        lobby.set_window(ALWAYS_OPEN).await;
        wait_until_updated(env, &lobby).await;
        observer.assert_order(&[
            (0, "Stopping server"),
            (0, "All dimensions are saved"),
            (0, "Closing Server"),
            (1, "Done ("),
        ]);
        assert!(lobby.saved_blocks().await >= 500, "no block is lost");
        let last = lobby.object().await.status.unwrap().last_stop.unwrap();
        let by_its_log = "stopped by SIGTERM, because RCON is disabled. Its log says that all was saved as it stopped";
        assert!(last.saved && last.why == by_its_log, "{last:?}");
        assert!(last.saved_at.is_some_and(|saved_at| saved_at <= last.at), "{last:?}");
        assert_eq!(env.event_notes(LOBBY, "StoppedUnsaved").await, Vec::<String>::new());
        assert_eq!(env.event_notes(LOBBY, "UpdateUnverified").await, Vec::<String>::new(), "the log is sufficient");

        // The operator cannot announce this restart either, because the running server has no RCON, whatever its spec
        // has now.
        let before = lobby.pod().await.unwrap();
        lobby.patch_spec(json!({"rcon": {"enabled": true}, "players": {"policy": "Announce"}})).await;
        lobby.wait_for_new_pod(&before).await;
        wait_until("RCON answers again", START_LIMIT, async || match lobby.shell(PROBE_RCON).await.trim() {
            "open" => Ok(()),
            other => Err(other.to_owned()),
        })
        .await;
        lobby.wait_until_stable().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_plugin_without_rcon_is_found_in_log() {
    in_test_env("without-rcon-bad", BEFORE_RELEASE, async |env| {
        env.apply(&[server_without_rcon(), viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        let before = lobby.version_set().await;
        lobby.send_command("fault plugin-fails ViaVersion if ViaVersion@5.7.1").await;
        env.upstream.set_now(AFTER_RELEASE).await;
        lobby.wait_until_planned(&RELEASE_CHANGES).await;
        lobby.set_window(ALWAYS_OPEN).await;
        let last_update = wait_until("the update is rolled back", UPDATE_LIMIT, async || {
            let last = lobby.object().await.status.and_then(|status| status.last_update);
            last.filter(|last| !last.successful).ok_or_else(|| "not yet".to_owned())
        })
        .await;
        assert!(last_update.message.contains("ViaVersion did not enable"), "{last_update:?}");
        lobby.wait_for_condition("Updating", "False", "Held").await;
        assert_eq!(lobby.version_set().await, before);
    })
    .await;
}
