//! Edge (writes). Tests that only an approved version set is applied if approval is required, and that a user can
//! request one exact version set.

use serde_json::json;

use super::eventually::{SHORT_LIMIT, wait_until};
use super::manifests::{
    AFTER_RELEASE, ALWAYS_OPEN, BEFORE_RELEASE, LOBBY, NEVER_OPEN, RELEASE_CHANGES, server, viabackwards,
};
use super::observer::ServerObserver;
use super::server::Server;
use super::test_env::{TestEnv, in_test_env};
use super::update::wait_until_updated;

async fn set_annotation(env: &TestEnv, annotation: &str, digest: &str) {
    let annotation = format!("nightshift.dev/{annotation}={digest}");
    env.annotate(LOBBY, &annotation).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unapproved_update_waits_in_open_window() {
    in_test_env("approval", BEFORE_RELEASE, async |env| {
        let mut object = server(LOBBY, ALWAYS_OPEN);
        object["spec"]["approval"] = json!("Required");
        env.apply(&[object, viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        let (version_set, observer) = (lobby.version_set().await, ServerObserver::start(&lobby).await);

        env.upstream.set_now(AFTER_RELEASE).await;
        lobby.wait_until_planned(&RELEASE_CHANGES).await;
        let message = lobby.wait_for_condition("ApprovalNeeded", "True", "NotApproved").await;
        let status = lobby.object().await.status.unwrap();
        let digest = status.available_update.unwrap().digest;
        assert!(message.contains(&format!("nightshift.dev/approve={digest}")), "{message}");
        assert_eq!(status.next_window.as_deref(), Some("needs approval"));
        env.wait_for_event_note(LOBBY, "ApprovalNeeded").await;

        set_annotation(env, "approve", &version_set.lock).await;
        env.trigger_passes(LOBBY).await;
        assert_eq!((lobby.version_set().await, observer.runs()), (version_set, 1), "the approved set is running");

        set_annotation(env, "approve", &digest).await;
        wait_until_updated(env, &lobby).await;
        let now = lobby.version_set().await;
        assert_eq!((now.lock, now.plugins["ViaVersion"].as_str()), (digest, "5.7.1"));
        assert!(lobby.condition("ApprovalNeeded").await.is_none());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn apply_request_for_exact_digest_needs_no_window() {
    in_test_env("apply", BEFORE_RELEASE, async |env| {
        env.apply(&[server(LOBBY, NEVER_OPEN), viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        env.upstream.set_now(AFTER_RELEASE).await;
        lobby.wait_until_planned(&RELEASE_CHANGES).await;
        let digest = lobby.object().await.status.unwrap().available_update.unwrap().digest;

        set_annotation(env, "apply", "0123456789abcdef").await;
        let refused = env.wait_for_event_note(LOBBY, "RequestRefused").await;
        assert!(refused.contains("0123456789abcdef") && refused.contains(&digest), "{refused}");

        let observer = ServerObserver::start(&lobby).await;
        set_annotation(env, "apply", &digest[..16]).await;
        wait_until_updated(env, &lobby).await;
        assert_eq!(lobby.version_set().await.lock, digest);
        wait_until("the request is handled", SHORT_LIMIT, async || {
            let handled = lobby.object().await.status.unwrap().last_handled.unwrap_or_default();
            if handled.apply.as_deref() == Some(&digest[..16]) { Ok(()) } else { Err(format!("{handled:?}")) }
        })
        .await;
        env.trigger_passes(LOBBY).await;
        assert_eq!(observer.runs(), 2, "one restart:\n{}", observer.console());
    })
    .await;
}
