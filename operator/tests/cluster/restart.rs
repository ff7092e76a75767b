//! Edge (writes). Tests scheduled restarts: the same version set, with a warning and a save, once for each time.
//!
//! Also tests `/stop` in the game.

use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use serde_json::json;

use super::manifests::{AFTER, BEFORE, FAR, LOBBY, TO_AFTER, server, viabackwards};
use super::server::{Server, is_ready};
use super::update::a_minute_from_now;
use super::wait::{A_START, until};
use super::witness::{Line, ServerObserver};
use super::world::{in_a_world, uid_of};

#[tokio::test(flavor = "multi_thread")]
async fn scheduled_restart_keeps_lock_while_update_waits() {
    in_a_world("restart", BEFORE, async |world| {
        world.apply(&[server(LOBBY, FAR), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        lobby.seven_join().await;
        lobby.order("build 1000").await;
        world.upstream.set_now(AFTER).await;
        lobby.planned(&TO_AFTER).await;
        let (set, before) = (lobby.set().await, lobby.pod().await.unwrap());
        let witness = ServerObserver::of(&lobby).await;

        let (cron, instant) = a_minute_from_now();
        lobby.change(json!({"restart": {"cron": cron, "onlyIf": {"uptimeAtLeast": "0s"}}})).await;
        lobby.restarted(&witness).await;
        let after = lobby.back_after(&before).await;
        assert!(after.metadata.creation_timestamp.as_ref().unwrap().0 >= instant, "not before its instant");
        assert_eq!(lobby.set().await, set, "the update did not come along");
        assert!(lobby.saved_blocks().await >= 1000, "it is the same world");
        assert!(world.note(LOBBY, "PlayersWarned").await.starts_with("7 players warned"));

        // A restart must not look like an update.
        let status = lobby.object().await.status.unwrap();
        assert!(status.available_update.is_some() && status.last_update.is_none(), "{status:?}");
        assert_eq!(status.history.len(), 1, "{:?}", status.history);
        assert!(status.next_restart_at.is_some_and(|next| next > instant), "{:?}", status.next_restart_at);
        for reason in ["UpdateStarted", "UpdateApplied", "UpdateFailed", "UpdateRolledBack", "UpdateUnverified"] {
            assert_eq!(world.notes(LOBBY, reason).await, Vec::<String>::new(), "{reason}");
        }

        // The time is served, also for an operator that did not run then.
        let operator = world.operator().await;
        let name = operator.metadata.name.clone().unwrap();
        world.kubectl(&["delete", "pod", &name, "--wait=false"], "").await;
        until("another operator works", A_START, async || {
            let selector = ListParams::default().labels("app.kubernetes.io/name=nightshift");
            let pods = world.api::<Pod>().list(&selector).await.unwrap().items;
            let works = pods.iter().any(|pod| uid_of(pod) != uid_of(&operator) && is_ready(pod));
            if works { Ok(()) } else { Err(format!("{} pods", pods.len())) }
        })
        .await;
        lobby.condition_is("Updating", "False", "WaitingForWindow").await;
        world.look_again(LOBBY).await;
        assert_eq!((witness.pods(), witness.runs()), (2, 2), "once:\n{}", witness.console());
        for reason in ["PlayersWarned", "WorldSaved", "RestartStarted", "Restarted"] {
            assert_eq!(world.notes(LOBBY, reason).await.len(), 1, "Event {reason}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_game_stop_restarts_same_pod_without_failure() {
    in_a_world("stop-in-game", BEFORE, async |world| {
        world.apply(&[server(LOBBY, FAR), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        let (set, before) = (lobby.set().await, lobby.pod().await.unwrap());
        let witness = ServerObserver::of(&lobby).await;
        lobby.order("stop").await;
        // The status alone is not enough, because it shows the earlier state for a moment.
        until("the server runs again in its pod", A_START, async || {
            let is_up = |line: &Line| line.run == 1 && line.text.contains("Done (");
            if witness.lines().iter().any(is_up) { Ok(()) } else { Err(witness.console()) }
        })
        .await;
        lobby.settled().await;
        witness.assert_order(&[(0, "Stopping server"), (1, "Done (")]);
        assert_eq!(uid_of(&lobby.pod().await.unwrap()), uid_of(&before));
        assert_eq!(lobby.set().await, set);
        let rollout = lobby.object().await.status.unwrap().rollout.unwrap_or_default();
        assert_eq!(rollout.failed, Vec::<String>::new());
        for reason in ["UpdateFailed", "UpdateRolledBack", "UpdateUnverified"] {
            assert_eq!(world.notes(LOBBY, reason).await, Vec::<String>::new(), "{reason}");
        }
    })
    .await;
}
