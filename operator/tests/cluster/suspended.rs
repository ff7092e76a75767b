//! Edge (writes). Tests a suspended server: the operator plans updates for it, and applies them only on request.

use jiff::Timestamp;
use serde_json::json;

use super::manifests::{AFTER, ALWAYS, BEFORE, LOBBY, TO_AFTER, server, viabackwards};
use super::server::Server;
use super::update::updated;
use super::witness::ServerObserver;
use super::world::in_a_world;

#[tokio::test(flavor = "multi_thread")]
async fn suspended_server_is_planned_but_updates_only_on_request() {
    in_a_world("suspended", BEFORE, async |world| {
        world.apply(&[server(LOBBY, ALWAYS), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        lobby.change(json!({"suspend": true})).await;
        lobby.condition_is("Suspended", "True", "SpecSuspend").await;
        world.note(LOBBY, "Suspended").await;
        let (set, witness) = (lobby.set().await, ServerObserver::of(&lobby).await);

        world.upstream.set_now(AFTER).await;
        lobby.planned(&TO_AFTER).await;
        lobby.condition_is("Updating", "False", "Suspended").await;
        world.look_again(LOBBY).await;
        assert_eq!((lobby.set().await, witness.runs()), (set, 1), "the window is open, and nothing happens");
        assert_eq!(lobby.object().await.status.unwrap().next_window.as_deref(), Some("suspended"));

        #[expect(clippy::disallowed_methods, reason = "a person asks by the cluster's clock")]
        let asked = format!("nightshift.dev/apply-now={}", Timestamp::now().as_second());
        world.annotate(LOBBY, &asked).await;
        updated(world, &lobby).await;
        assert_eq!(lobby.set().await.plugins["ViaVersion"], "5.7.1");

        lobby.change(json!({"suspend": false})).await;
        world.note(LOBBY, "Resumed").await;
        assert!(lobby.condition("Suspended").await.is_none());
    })
    .await;
}
