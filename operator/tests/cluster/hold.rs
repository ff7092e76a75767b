//! Edge (writes). Tests a server that is held as a whole: its version set stays, and other settings are applied.

use serde_json::json;

use super::manifests::{AFTER, ALWAYS, BEFORE, LOBBY, TO_AFTER, server, small_server, viabackwards};
use super::server::{Server, Set};
use super::update::updated;
use super::wait::{AN_UPDATE, SOON, until};
use super::witness::ServerObserver;
use super::world::in_a_world;

#[tokio::test(flavor = "multi_thread")]
async fn held_server_keeps_lock_and_takes_pod_settings() {
    in_a_world("hold", BEFORE, async |world| {
        // The other server shows when the newer releases are known.
        world.apply(&[server(LOBBY, ALWAYS), small_server("arena"), viabackwards()]).await;
        let (lobby, arena) = (Server::new(world, LOBBY), Server::new(world, "arena"));
        lobby.settled().await;
        arena.settled().await;
        let (before, witness) = (lobby.set().await, ServerObserver::of(&lobby).await);

        lobby.change(json!({"hold": ["*"]})).await;
        let held = lobby.condition_is("PinnedToSet", "True", "Held").await;
        let way_on = "patch papermcserver lobby --type merge -p '{\"spec\":{\"hold\":null}}'`";
        assert!(held.contains(&before.lock[..16]) && held.ends_with(way_on), "{held}");
        world.note(LOBBY, "PinnedToSet").await;

        world.upstream.set_now(AFTER).await;
        arena.planned(&TO_AFTER).await;
        world.look_again(LOBBY).await;
        assert_eq!((lobby.set().await, witness.runs()), (before.clone(), 1), "the window is open, and it stays");
        assert_eq!(lobby.object().await.status.unwrap().next_window.as_deref(), Some("held"));

        let resources = json!({"requests": {"cpu": "5m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}});
        let containers = json!([{"name": "papermc", "resources": resources}]);
        lobby.change(json!({"podTemplate": {"spec": {"containers": containers}}})).await;
        updated(world, &lobby).await;
        assert_eq!(lobby.set().await, Set { memory: Some("256Mi".to_owned()), ..before.clone() });
        assert_eq!(witness.runs(), 2, "one restart:\n{}", witness.console());

        lobby.change(json!({"hold": null})).await;
        until("the newer set runs", AN_UPDATE, async || {
            let runs = lobby.object().await.status.unwrap_or_default().lock;
            if runs.as_ref().is_some_and(|runs| *runs != before.lock) { Ok(()) } else { Err(format!("{runs:?}")) }
        })
        .await;
        lobby.settled().await;
        assert_eq!(lobby.set().await.plugins["ViaVersion"], "5.7.1");
        world.note(LOBBY, "Resumed").await;
        until("the condition goes", SOON, async || match lobby.condition("PinnedToSet").await {
            None => Ok(()),
            Some(held) => Err(held.message),
        })
        .await;
    })
    .await;
}
