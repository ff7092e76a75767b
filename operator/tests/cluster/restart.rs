//! Edge (writes). Tests scheduled restarts: the same version set, with a warning and a save, once for each time.
//!
//! Also tests `/stop` in the game.

use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use serde_json::json;

use super::eventually::{START_LIMIT, wait_until};
use super::manifests::{AFTER_RELEASE, BEFORE_RELEASE, LOBBY, NEVER_OPEN, RELEASE_CHANGES, server, viabackwards};
use super::observer::{Line, ServerObserver};
use super::server::{Server, is_ready};
use super::test_env::{in_test_env, uid_of};
use super::update::next_minute;

#[tokio::test(flavor = "multi_thread")]
async fn scheduled_restart_keeps_lock_while_update_waits() {
    in_test_env("restart", BEFORE_RELEASE, async |env| {
        env.apply(&[server(LOBBY, NEVER_OPEN), viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        lobby.join_seven_players().await;
        lobby.send_command("build 1000").await;
        env.upstream.set_now(AFTER_RELEASE).await;
        lobby.wait_until_planned(&RELEASE_CHANGES).await;
        let (version_set, before) = (lobby.version_set().await, lobby.pod().await.unwrap());
        let observer = ServerObserver::start(&lobby).await;

        let (cron, instant) = next_minute();
        lobby.patch_spec(json!({"restart": {"cron": cron, "onlyIf": {"uptimeAtLeast": "0s"}}})).await;
        lobby.wait_until_restarted(&observer).await;
        let after = lobby.wait_for_new_pod(&before).await;
        assert!(after.metadata.creation_timestamp.as_ref().unwrap().0 >= instant, "the restart is not early");
        assert_eq!(lobby.version_set().await, version_set, "the restart applies no update");
        assert!(lobby.saved_blocks().await >= 1000, "it is the same world");
        assert!(env.wait_for_event_note(LOBBY, "PlayersWarned").await.starts_with("Warned 7 players"));

        // A restart must not look like an update.
        let status = lobby.object().await.status.unwrap();
        assert!(status.available_update.is_some() && status.last_update.is_none(), "{status:?}");
        assert_eq!(status.history.len(), 1, "{:?}", status.history);
        assert!(status.next_restart_at.is_some_and(|next| next > instant), "{:?}", status.next_restart_at);
        for reason in ["UpdateStarted", "UpdateApplied", "UpdateFailed", "UpdateRolledBack", "UpdateUnverified"] {
            assert_eq!(env.event_notes(LOBBY, reason).await, Vec::<String>::new(), "{reason}");
        }

        // The time is served, also for an operator that did not run then.
        let operator = env.operator().await;
        let name = operator.metadata.name.clone().unwrap();
        env.kubectl(&["delete", "pod", &name, "--wait=false"], "").await;
        wait_until("another operator is ready", START_LIMIT, async || {
            let selector = ListParams::default().labels("app.kubernetes.io/name=nightshift");
            let pods = env.api::<Pod>().list(&selector).await.unwrap().items;
            let works = pods.iter().any(|pod| uid_of(pod) != uid_of(&operator) && is_ready(pod));
            if works { Ok(()) } else { Err(format!("{} pods", pods.len())) }
        })
        .await;
        lobby.wait_for_condition("Updating", "False", "WaitingForWindow").await;
        env.trigger_passes(LOBBY).await;
        assert_eq!((observer.pods(), observer.runs()), (2, 2), "one restart:\n{}", observer.console());
        for reason in ["PlayersWarned", "WorldSaved", "RestartStarted", "Restarted"] {
            assert_eq!(env.event_notes(LOBBY, reason).await.len(), 1, "Event {reason}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_game_stop_restarts_same_pod_without_failure() {
    in_test_env("stop-in-game", BEFORE_RELEASE, async |env| {
        env.apply(&[server(LOBBY, NEVER_OPEN), viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        let (version_set, before) = (lobby.version_set().await, lobby.pod().await.unwrap());
        let observer = ServerObserver::start(&lobby).await;
        lobby.send_command("stop").await;
        // The status alone is not enough, because it shows the earlier state for a moment.
        wait_until("the server runs again in its pod", START_LIMIT, async || {
            let is_up = |line: &Line| line.run == 1 && line.text.contains("Done (");
            if observer.lines().iter().any(is_up) { Ok(()) } else { Err(observer.console()) }
        })
        .await;
        lobby.wait_until_stable().await;
        observer.assert_order(&[(0, "Stopping server"), (1, "Done (")]);
        assert_eq!(uid_of(&lobby.pod().await.unwrap()), uid_of(&before));
        assert_eq!(lobby.version_set().await, version_set);
        let rollout = lobby.object().await.status.unwrap().rollout.unwrap_or_default();
        assert_eq!(rollout.failed, Vec::<String>::new());
        for reason in ["UpdateFailed", "UpdateRolledBack", "UpdateUnverified"] {
            assert_eq!(env.event_notes(LOBBY, reason).await, Vec::<String>::new(), "{reason}");
        }
    })
    .await;
}
