//! Edge (writes). Tests blackouts: they block windows and requests, and the planned update follows afterwards.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::manifests::{AFTER_RELEASE, ALWAYS_OPEN, BEFORE_RELEASE, LOBBY, RELEASE_CHANGES, server, viabackwards};
use super::observer::ServerObserver;
use super::server::Server;
use super::test_env::in_test_env;
use super::update::wait_until_updated;

#[tokio::test(flavor = "multi_thread")]
async fn blackout_blocks_window_and_request_until_it_ends() {
    in_test_env("blackout", BEFORE_RELEASE, async |env| {
        env.apply(&[server(LOBBY, ALWAYS_OPEN), viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        #[expect(clippy::disallowed_methods, reason = "the blackout must cover the time of the test")]
        let now = Timestamp::now();
        let at = |hours: i64| Timestamp::from_second(now.as_second() + hours * 3600).unwrap().to_string();
        let event = json!({"name": "event", "from": at(-1), "to": at(48)});
        lobby.patch_spec(json!({"updateSchedule": {"blackouts": [event]}})).await;
        let (version_set, observer) = (lobby.version_set().await, ServerObserver::start(&lobby).await);

        env.upstream.set_now(AFTER_RELEASE).await;
        lobby.wait_until_planned(&RELEASE_CHANGES).await;
        let message = lobby.wait_for_condition("Updating", "False", "Blackout").await;
        assert!(
            message.contains("Blackout `event` lasts until") && message.contains("The window opens at"),
            "{message}"
        );
        let opens = lobby.object().await.status.unwrap().next_window_at.expect("a window opens after the blackout");
        assert!(opens >= now + SignedDuration::from_hours(47), "{opens}");

        #[expect(clippy::disallowed_methods, reason = "the request needs the cluster's time")]
        let request = format!("nightshift.dev/apply-now={}", Timestamp::now().as_second());
        env.annotate(LOBBY, &request).await;
        let refused = env.wait_for_event_note(LOBBY, "RequestRefused").await;
        assert!(refused.contains("is refused, because blackout `event`"), "{refused}");
        env.trigger_passes(LOBBY).await;
        assert_eq!(lobby.version_set().await, version_set, "the blackout blocks the window and the request");
        assert_eq!(observer.runs(), 1, "{}", observer.console());

        lobby.patch_spec(json!({"updateSchedule": {"blackouts": null}})).await;
        wait_until_updated(env, &lobby).await;
        assert_eq!(lobby.version_set().await.plugins["ViaVersion"], "5.7.1");
    })
    .await;
}
