//! Edge (writes). Tests a server that is held as a whole: its version set stays, and other settings are applied.

use serde_json::json;

use super::eventually::{SHORT_LIMIT, UPDATE_LIMIT, wait_until};
use super::manifests::{
    AFTER_RELEASE, ALWAYS_OPEN, BEFORE_RELEASE, LOBBY, RELEASE_CHANGES, server, small_server, viabackwards,
};
use super::observer::ServerObserver;
use super::server::{Server, VersionSet};
use super::test_env::in_test_env;
use super::update::wait_until_updated;

#[tokio::test(flavor = "multi_thread")]
async fn held_server_keeps_lock_and_takes_pod_settings() {
    in_test_env("hold", BEFORE_RELEASE, async |env| {
        // The other server shows when the newer releases are known.
        env.apply(&[server(LOBBY, ALWAYS_OPEN), small_server("arena"), viabackwards()]).await;
        let (lobby, arena) = (Server::new(env, LOBBY), Server::new(env, "arena"));
        lobby.wait_until_stable().await;
        arena.wait_until_stable().await;
        let (before, observer) = (lobby.version_set().await, ServerObserver::start(&lobby).await);

        lobby.patch_spec(json!({"hold": ["*"]})).await;
        let held = lobby.wait_for_condition("PinnedToSet", "True", "Held").await;
        let resume_command = "patch papermcserver lobby --type merge -p '{\"spec\":{\"hold\":null}}'`.";
        assert!(held.contains(&before.lock[..16]) && held.ends_with(resume_command), "{held}");
        env.wait_for_event_note(LOBBY, "PinnedToSet").await;

        env.upstream.set_now(AFTER_RELEASE).await;
        arena.wait_until_planned(&RELEASE_CHANGES).await;
        env.trigger_passes(LOBBY).await;
        assert_eq!(
            (lobby.version_set().await, observer.runs()),
            (before.clone(), 1),
            "the open window does not update a held server"
        );
        assert_eq!(lobby.object().await.status.unwrap().next_window.as_deref(), Some("held"));

        let resources = json!({"requests": {"cpu": "5m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}});
        let containers = json!([{"name": "papermc", "resources": resources}]);
        lobby.patch_spec(json!({"podTemplate": {"spec": {"containers": containers}}})).await;
        wait_until_updated(env, &lobby).await;
        assert_eq!(lobby.version_set().await, VersionSet { memory: Some("256Mi".to_owned()), ..before.clone() });
        assert_eq!(observer.runs(), 2, "one restart:\n{}", observer.console());

        lobby.patch_spec(json!({"hold": null})).await;
        wait_until("the newer version set runs", UPDATE_LIMIT, async || {
            let runs = lobby.object().await.status.unwrap_or_default().lock;
            if runs.as_ref().is_some_and(|runs| *runs != before.lock) { Ok(()) } else { Err(format!("{runs:?}")) }
        })
        .await;
        lobby.wait_until_stable().await;
        assert_eq!(lobby.version_set().await.plugins["ViaVersion"], "5.7.1");
        env.wait_for_event_note(LOBBY, "Resumed").await;
        wait_until("the condition is gone", SHORT_LIMIT, async || match lobby.condition("PinnedToSet").await {
            None => Ok(()),
            Some(held) => Err(held.message),
        })
        .await;
    })
    .await;
}
