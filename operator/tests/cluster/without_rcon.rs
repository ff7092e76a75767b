//! Edge (writes). Tests a server without RCON: SIGTERM stops it, and its log is the only source of its state.

use serde_json::{Value, json};

use super::manifests::{AFTER, ALWAYS, BEFORE, FAR, LOBBY, TO_AFTER, server, viabackwards};
use super::server::Server;
use super::update::updated;
use super::wait::{A_START, AN_UPDATE, until};
use super::witness::ServerObserver;
use super::world::in_a_world;

fn server_without_rcon() -> Value {
    let mut object = server(LOBBY, FAR);
    object["spec"]["rcon"] = json!({"enabled": false});
    object["spec"]["players"]["policy"] = json!("Ignore");
    object
}

const ASK_RCON: &str = "nc -w 2 127.0.0.1 25575 </dev/null >/dev/null 2>&1 && echo open || echo refused";

#[tokio::test(flavor = "multi_thread")]
async fn update_without_rcon_stops_by_sigterm_and_saves() {
    in_a_world("without-rcon", BEFORE, async |world| {
        world.apply(&[server_without_rcon(), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        assert_eq!(lobby.shell(ASK_RCON).await.trim(), "refused");
        lobby.seven_join().await;
        lobby.order("build 500").await;
        let witness = ServerObserver::of(&lobby).await;

        world.upstream.set_now(AFTER).await;
        lobby.planned(&TO_AFTER).await;
        lobby.set_window(ALWAYS).await;
        updated(world, &lobby).await;
        witness.assert_order(&[
            (0, "Stopping server"),
            (0, "All dimensions are saved"),
            (0, "Closing Server"),
            (1, "Done ("),
        ]);
        assert!(lobby.saved_blocks().await >= 500, "nothing is lost");
        let last = lobby.object().await.status.unwrap().last_stop.unwrap();
        let by_its_log =
            "stopped by SIGTERM, because RCON is switched off; its log says that all was saved as it stopped";
        assert!(last.saved && last.why == by_its_log, "{last:?}");
        assert!(last.saved_at.is_some_and(|saved_at| saved_at <= last.at), "{last:?}");
        assert_eq!(world.notes(LOBBY, "StoppedUnsaved").await, Vec::<String>::new());
        assert_eq!(world.notes(LOBBY, "UpdateUnverified").await, Vec::<String>::new(), "the log tells enough");

        // The operator cannot announce this restart either, because the running server has no RCON, whatever its spec
        // has now.
        let before = lobby.pod().await.unwrap();
        lobby.change(json!({"rcon": {"enabled": true}, "players": {"policy": "Announce"}})).await;
        lobby.back_after(&before).await;
        until("RCON answers again", A_START, async || match lobby.shell(ASK_RCON).await.trim() {
            "open" => Ok(()),
            other => Err(other.to_owned()),
        })
        .await;
        lobby.settled().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_plugin_without_rcon_is_found_in_log() {
    in_a_world("without-rcon-bad", BEFORE, async |world| {
        world.apply(&[server_without_rcon(), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        let before = lobby.set().await;
        lobby.order("fault plugin-fails ViaVersion if ViaVersion@5.7.1").await;
        world.upstream.set_now(AFTER).await;
        lobby.planned(&TO_AFTER).await;
        lobby.set_window(ALWAYS).await;
        let told = until("it is taken back", AN_UPDATE, async || {
            let last = lobby.object().await.status.and_then(|status| status.last_update);
            last.filter(|last| !last.successful).ok_or_else(|| "not yet".to_owned())
        })
        .await;
        assert!(told.message.contains("ViaVersion did not enable"), "{told:?}");
        lobby.condition_is("Updating", "False", "Held").await;
        assert_eq!(lobby.set().await, before);
    })
    .await;
}
