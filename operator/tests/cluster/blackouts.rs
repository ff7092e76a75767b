//! Edge (writes). Tests blackouts: they block windows and requests, and the planned update follows afterwards.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::manifests::{AFTER, ALWAYS, BEFORE, LOBBY, TO_AFTER, server, viabackwards};
use super::server::Server;
use super::update::updated;
use super::witness::ServerObserver;
use super::world::in_a_world;

#[tokio::test(flavor = "multi_thread")]
async fn blackout_blocks_window_and_request_until_it_ends() {
    in_a_world("blackout", BEFORE, async |world| {
        world.apply(&[server(LOBBY, ALWAYS), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        #[expect(clippy::disallowed_methods, reason = "the blackout is on while the test runs, by the cluster's clock")]
        let now = Timestamp::now();
        let at = |hours: i64| Timestamp::from_second(now.as_second() + hours * 3600).unwrap().to_string();
        let event = json!({"name": "event", "from": at(-1), "to": at(48)});
        lobby.change(json!({"updateSchedule": {"blackouts": [event]}})).await;
        let (set, witness) = (lobby.set().await, ServerObserver::of(&lobby).await);

        world.upstream.set_now(AFTER).await;
        lobby.planned(&TO_AFTER).await;
        let said = lobby.condition_is("Updating", "False", "Blackout").await;
        assert!(said.contains("blackout `event` is on until") && said.contains("the window opens at"), "{said}");
        let opens = lobby.object().await.status.unwrap().next_window_at.expect("a window opens after the blackout");
        assert!(opens >= now + SignedDuration::from_hours(47), "{opens}");

        #[expect(clippy::disallowed_methods, reason = "a person asks by the cluster's clock")]
        let asked = format!("nightshift.dev/apply-now={}", Timestamp::now().as_second());
        world.annotate(LOBBY, &asked).await;
        let refused = world.note(LOBBY, "RequestRefused").await;
        assert!(refused.contains("does not pass blackout `event`"), "{refused}");
        world.look_again(LOBBY).await;
        assert_eq!(lobby.set().await, set, "neither the window nor the request passed the blackout");
        assert_eq!(witness.runs(), 1, "{}", witness.console());

        lobby.change(json!({"updateSchedule": {"blackouts": null}})).await;
        updated(world, &lobby).await;
        assert_eq!(lobby.set().await.plugins["ViaVersion"], "5.7.1");
    })
    .await;
}
