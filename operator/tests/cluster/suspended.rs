//! Edge (writes). Tests a suspended server: the operator plans updates for it, and applies them only on request.

use jiff::Timestamp;
use serde_json::json;

use super::manifests::{AFTER_RELEASE, ALWAYS_OPEN, BEFORE_RELEASE, LOBBY, RELEASE_CHANGES, server, viabackwards};
use super::observer::ServerObserver;
use super::server::Server;
use super::test_env::in_test_env;
use super::update::wait_until_updated;

#[tokio::test(flavor = "multi_thread")]
async fn suspended_server_is_planned_but_updates_only_on_request() {
    in_test_env("suspended", BEFORE_RELEASE, async |env| {
        env.apply(&[server(LOBBY, ALWAYS_OPEN), viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        lobby.patch_spec(json!({"suspend": true})).await;
        lobby.wait_for_condition("Suspended", "True", "SpecSuspend").await;
        env.wait_for_event_note(LOBBY, "Suspended").await;
        let (version_set, observer) = (lobby.version_set().await, ServerObserver::start(&lobby).await);

        env.upstream.set_now(AFTER_RELEASE).await;
        lobby.wait_until_planned(&RELEASE_CHANGES).await;
        lobby.wait_for_condition("Updating", "False", "Suspended").await;
        env.trigger_passes(LOBBY).await;
        assert_eq!(
            (lobby.version_set().await, observer.runs()),
            (version_set, 1),
            "the open window does not update a suspended server"
        );
        assert_eq!(lobby.object().await.status.unwrap().next_window.as_deref(), Some("suspended"));

        #[expect(clippy::disallowed_methods, reason = "the request needs the cluster's time")]
        let request = format!("nightshift.dev/apply-now={}", Timestamp::now().as_second());
        env.annotate(LOBBY, &request).await;
        wait_until_updated(env, &lobby).await;
        assert_eq!(lobby.version_set().await.plugins["ViaVersion"], "5.7.1");

        lobby.patch_spec(json!({"suspend": false})).await;
        env.wait_for_event_note(LOBBY, "Resumed").await;
        assert!(lobby.condition("Suspended").await.is_none());
    })
    .await;
}
