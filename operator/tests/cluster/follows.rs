//! Edge (writes). Tests that a server that follows another one waits in its open window until that one has run the
//! update long enough.

use std::time::Duration;

use serde_json::{Value, json};

use super::eventually::{SHORT_LIMIT, check_throughout, wait_until};
use super::manifests::{
    AFTER_RELEASE, ALWAYS_OPEN, BEFORE_RELEASE, LOBBY, NEVER_OPEN, RELEASE_CHANGES, server, viabackwards,
};
use super::observer::ServerObserver;
use super::server::Server;
use super::test_env::in_test_env;
use super::update::wait_until_updated;

const STAGING: &str = "staging";

/// A lobby whose window is open, and that follows the staging server with this waiting time.
fn follower(soak: &str) -> Value {
    let mut object = server(LOBBY, ALWAYS_OPEN);
    object["spec"]["follows"] = json!({"server": STAGING, "soak": soak});
    object
}

#[tokio::test(flavor = "multi_thread")]
async fn follower_updates_after_soak_of_followed_server() {
    in_test_env("follows", BEFORE_RELEASE, async |env| {
        env.apply(&[server(STAGING, NEVER_OPEN), follower("90s"), viabackwards()]).await;
        let (staging, lobby) = (Server::new(env, STAGING), Server::new(env, LOBBY));
        staging.wait_until_stable().await;
        lobby.wait_until_stable().await;
        let (version_set, observer) = (lobby.version_set().await, ServerObserver::start(&lobby).await);

        env.upstream.set_now(AFTER_RELEASE).await;
        lobby.wait_until_planned(&RELEASE_CHANGES).await;
        let message = lobby.wait_for_condition("WaitingForLeaderServer", "True", "OtherRelease").await;
        assert!(
            message.starts_with("This server waits for staging, which runs Via") && message.ends_with(" 5.7.0 still."),
            "{message}"
        );
        lobby.wait_for_condition("Updating", "False", "WaitingForLeaderServer").await;
        assert_eq!(lobby.object().await.status.unwrap().next_window.as_deref(), Some("waits for staging"));
        env.wait_for_event_note(LOBBY, "WaitingForLeaderServer").await;
        env.trigger_passes(LOBBY).await;
        assert_eq!(
            (lobby.version_set().await, observer.runs()),
            (version_set.clone(), 1),
            "the server waits although its window is open"
        );

        staging.set_window(ALWAYS_OPEN).await;
        wait_until_updated(env, &staging).await;
        let message = lobby.wait_for_condition("WaitingForLeaderServer", "True", "Soaking").await;
        assert!(message.contains("5.7.1 since ") && message.ends_with("(1 minute 30 seconds)."), "{message}");
        let settled_at = staging.object().await.status.unwrap().history[0].settled_at;
        check_throughout(Duration::from_secs(30), async || {
            assert_eq!(observer.runs(), 1, "{}", observer.console());
        })
        .await;
        assert_eq!(lobby.version_set().await, version_set);

        // No event signals the end of the waiting time: the operator requeues the server.
        wait_until_updated(env, &lobby).await;
        assert_eq!(lobby.version_set().await.plugins["ViaVersion"], "5.7.1");
        let applied_at = lobby.object().await.status.unwrap().last_update.unwrap().applied_at;
        assert!(applied_at.duration_since(settled_at).as_secs() > 90, "{settled_at} and {applied_at}");
        assert!(lobby.condition("WaitingForLeaderServer").await.is_none());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn follow_errors_are_reported_and_apply_request_overrides() {
    in_test_env("follows-nobody", BEFORE_RELEASE, async |env| {
        env.apply(&[follower("48h"), viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        // A first start does not wait for the other server.
        lobby.wait_until_stable().await;
        let message = lobby.wait_for_condition("WaitingForLeaderServer", "True", "NoSuchServer").await;
        assert!(message.contains("Create it, or correct `spec.follows.server`"), "{message}");

        let mut staging = server(STAGING, NEVER_OPEN);
        staging["spec"]["follows"] = json!({"server": LOBBY});
        env.apply(&[staging]).await;
        let message = lobby.wait_for_condition("WaitingForLeaderServer", "True", "Circle").await;
        assert!(message.contains("lobby -> staging -> lobby"), "{message}");
        let staging = Server::new(env, STAGING);
        staging.patch_spec(json!({"follows": null})).await;
        wait_until("no circle is left", SHORT_LIMIT, async || match lobby.condition("WaitingForLeaderServer").await {
            None => Ok(()),
            found => Err(format!("{found:?}")),
        })
        .await;
        staging.wait_until_stable().await;

        let observer = ServerObserver::start(&lobby).await;
        env.upstream.set_now(AFTER_RELEASE).await;
        lobby.wait_until_planned(&RELEASE_CHANGES).await;
        lobby.wait_for_condition("WaitingForLeaderServer", "True", "OtherRelease").await;
        assert_eq!(observer.runs(), 1, "{}", observer.console());
        let digest = lobby.object().await.status.unwrap().available_update.unwrap().digest;
        env.annotate(LOBBY, &format!("nightshift.dev/apply={digest}")).await;
        wait_until_updated(env, &lobby).await;
        assert_eq!(lobby.version_set().await.plugins["ViaVersion"], "5.7.1");
    })
    .await;
}
