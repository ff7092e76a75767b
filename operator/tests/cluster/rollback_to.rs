//! Edge (writes). Tests a rollback at a user's request: to an earlier version set, announced, and the server stays
//! there until the pin is removed.

use super::eventually::{SHORT_LIMIT, UPDATE_LIMIT, wait_until};
use super::manifests::{
    AFTER_RELEASE, ALWAYS_OPEN, BEFORE_RELEASE, LOBBY, NEVER_OPEN, RELEASE_CHANGES, server, viabackwards,
};
use super::observer::ServerObserver;
use super::server::Server;
use super::test_env::{TestEnv, in_test_env};
use super::update::wait_until_updated;

async fn roll_back_to(env: &TestEnv, version_set: &str) {
    let annotation = format!("nightshift.dev/rollback-to{version_set}");
    env.annotate(LOBBY, &annotation).await;
}

/// Waits until an earlier version set runs again, verified.
async fn wait_until_running(lobby: &Server<'_>, lock: &String) {
    wait_until("the requested version set runs", UPDATE_LIMIT, async || {
        let running = lobby.object().await.status.unwrap_or_default().lock;
        if running.as_ref() == Some(lock) { Ok(()) } else { Err(format!("{running:?}")) }
    })
    .await;
    lobby.wait_until_stable().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rollback_to_previous_lock_holds_until_released() {
    in_test_env("undo", BEFORE_RELEASE, async |env| {
        env.apply(&[server(LOBBY, NEVER_OPEN), viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        let before = lobby.version_set().await;
        env.upstream.set_now(AFTER_RELEASE).await;
        // With a window that is always open, the update could start when the page of only one plugin has been read.
        lobby.wait_until_planned(&RELEASE_CHANGES).await;
        lobby.set_window(ALWAYS_OPEN).await;
        wait_until_updated(env, &lobby).await;
        let after = lobby.version_set().await;
        assert_ne!(before.lock, after.lock);

        roll_back_to(env, "=0123456789abcdef").await;
        let refused = lobby.wait_for_condition("PinnedToSet", "True", "UnknownSet").await;
        assert!(refused.contains(&before.lock[..16]) && refused.contains(&after.lock[..16]), "{refused}");

        let observer = ServerObserver::start(&lobby).await;
        let runs = observer.runs();
        roll_back_to(env, "=previous").await;
        wait_until_running(&lobby, &before.lock).await;
        assert_eq!(lobby.version_set().await, before);
        assert_eq!(observer.runs(), runs + 1, "one restart:\n{}", observer.console());
        env.wait_for_event_note(LOBBY, "PlayersWarned").await;

        // A window is open all the time, and the solver still chooses the newer version set.
        let held = lobby.wait_for_condition("PinnedToSet", "True", "RollbackTo").await;
        assert!(held.contains(&before.lock[..16]) && held.contains("nightshift.dev/rollback-to-"), "{held}");
        env.trigger_passes(LOBBY).await;
        assert_eq!((lobby.version_set().await, observer.runs()), (before, runs + 1), "the old version set stays");
        assert_eq!(lobby.object().await.status.unwrap().next_window.as_deref(), Some("held"));

        roll_back_to(env, "-").await;
        wait_until_running(&lobby, &after.lock).await;
        assert_eq!(lobby.version_set().await, after);
        wait_until("the condition is gone", SHORT_LIMIT, async || match lobby.condition("PinnedToSet").await {
            None => Ok(()),
            Some(held) => Err(held.message),
        })
        .await;
    })
    .await;
}
