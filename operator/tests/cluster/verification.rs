//! Edge (writes). Tests the ends of a rollout: kept unverified and verified later, given up at the deadline, and long
//! while a server migrates its world.
//!
//! Also tests these with a wrong spec.

use serde_json::{Value, json};

use super::eventually::{UPDATE_LIMIT, wait_until};
use super::manifests::{
    AFTER_RELEASE, ALWAYS_OPEN, BEFORE_RELEASE, LOBBY, NEVER_OPEN, RELEASE_CHANGES, small_server, viabackwards,
};
use super::observer::ServerObserver;
use super::operator_crash::Moment;
use super::server::Server;
use super::test_env::{TestEnv, in_test_env, in_test_env_with};
use super::update::wait_until_updated;

/// The API server accepts it, but it never occurs: February has no such day.
const NEVER_OCCURRING: &str = "0 4 30 2 *";
/// Paper 26.1.2 is released, which keeps its worlds in another place.
const WORLDS_MOVED: &str = "2026-07-10T12:00:00Z";

/// Waits for a moment of the running update, and breaks the spec then.
async fn break_spec_at(server: &Server<'_>, moment: Moment) {
    let before = server.pod().await.unwrap();
    server.set_window(ALWAYS_OPEN).await;
    wait_until(&format!("{moment:?} of {}", server.name), UPDATE_LIMIT, async || {
        if moment.is_reached(server, &before).await { Ok(()) } else { Err("not yet".to_owned()) }
    })
    .await;
    server.set_window(NEVER_OCCURRING).await;
}

/// Waits until the rollout has ended, while the spec is wrong.
async fn wait_until_ended_with_wrong_spec(server: &Server<'_>) {
    wait_until(&format!("the rollout of {} is over", server.name), UPDATE_LIMIT, async || {
        let conditions = server.object().await.status.unwrap_or_default().conditions;
        let has_reason = |condition_type: &str, reason: &str| {
            conditions.iter().any(|condition| condition.type_ == condition_type && condition.reason == reason)
        };
        let is_over =
            has_reason("Updating", "Stable") && has_reason("Ready", "Running") && has_reason("Resolved", "SpecInvalid");
        if is_over { Ok(()) } else { Err(super::server::format_conditions(&conditions)) }
    })
    .await;
    let strategy = server.stateful_set().await.spec.unwrap().update_strategy.unwrap();
    assert_eq!(strategy.rolling_update.unwrap().partition, Some(1), "the partition blocks updates");
}

#[tokio::test(flavor = "multi_thread")]
async fn rollout_ends_correctly_under_invalid_spec() {
    in_test_env("wrong-spec", BEFORE_RELEASE, async |env| {
        env.apply(&[small_server(LOBBY), small_server("second"), viabackwards()]).await;
        let (good, bad) = (Server::new(env, LOBBY), Server::new(env, "second"));
        good.wait_until_stable().await;
        bad.wait_until_stable().await;
        let before = bad.version_set().await;
        bad.send_command("fault plugin-fails ViaVersion if ViaVersion@5.7.1").await;
        env.upstream.set_now(AFTER_RELEASE).await;
        good.wait_until_planned(&RELEASE_CHANGES).await;
        bad.wait_until_planned(&RELEASE_CHANGES).await;
        let (of_good, of_bad) = (ServerObserver::start(&good).await, ServerObserver::start(&bad).await);
        tokio::join!(break_spec_at(&good, Moment::PodStops), break_spec_at(&bad, Moment::PodStops));

        wait_until_ended_with_wrong_spec(&good).await;
        let status = good.object().await.status.unwrap();
        assert!(status.last_update.is_some_and(|last| last.successful && last.message.contains(RELEASE_CHANGES[1])));
        assert_eq!((status.update, status.history.len()), (None, 2));
        assert_eq!(good.version_set().await.plugins["ViaVersion"], "5.7.1");
        env.wait_for_event_note(LOBBY, "UpdateApplied").await;

        wait_until("the failing set is rolled back", UPDATE_LIMIT, async || {
            env.event_notes("second", "UpdateRolledBack").await.pop().ok_or_else(|| of_bad.console())
        })
        .await;
        wait_until_ended_with_wrong_spec(&bad).await;
        let last = bad.object().await.status.unwrap().last_update.unwrap();
        assert!(!last.successful && last.message.contains("ViaVersion did not enable"), "{last:?}");
        assert_eq!(bad.version_set().await, before);

        // No other action began, and the operator continues as usual once the spec is corrected.
        assert_eq!((of_good.runs(), of_bad.runs()), (2, 3), "{}", of_bad.console());
        good.set_window(NEVER_OPEN).await;
        bad.set_window(ALWAYS_OPEN).await;
        good.wait_until_stable().await;
        bad.wait_for_condition("Updating", "False", "Held").await;
        assert_eq!((of_good.runs(), of_bad.runs()), (2, 3));
    })
    .await;
}

/// A server that takes some seconds to start.
fn slow_server() -> Value {
    let mut object = small_server(LOBBY);
    object["spec"]["podTemplate"]["spec"]["containers"][0]["env"] =
        json!([{"name": "STAND_IN_START_MS", "value": "15000"}]);
    object
}

/// Whether the newest version set in the history is unverified.
async fn is_unverified(server: &Server<'_>) -> Option<bool> {
    server.object().await.status.unwrap_or_default().history.first().map(|newest| newest.unverified)
}

#[tokio::test(flavor = "multi_thread")]
async fn drifted_update_stays_unverified_until_restart_repairs_it() {
    in_test_env("unverified", BEFORE_RELEASE, async |env| {
        env.apply(&[slow_server(), viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        env.upstream.set_now(AFTER_RELEASE).await;
        lobby.wait_until_planned(&RELEASE_CHANGES).await;
        let observer = ServerObserver::start(&lobby).await;
        lobby.set_window(ALWAYS_OPEN).await;
        wait_until("the new process has loaded its plugins", UPDATE_LIMIT, async || {
            let has =
                observer.lines().iter().any(|line| line.run == 1 && line.text.contains("Loading server plugin Via"));
            if has { Ok(()) } else { Err(observer.console()) }
        })
        .await;
        // Bytes after the end of an archive are ignored, but the hash of the file differs.
        lobby.shell("for jar in /data/plugins/*ersion*.jar; do printf x >> \"$jar\"; done").await;

        let note = wait_until("the unverified set is kept", UPDATE_LIMIT, async || {
            env.event_notes(LOBBY, "UpdateUnverified").await.pop().ok_or_else(|| observer.console())
        })
        .await;
        assert!(note.starts_with("Kept without verification: these files differ from the lock: plugins/"), "{note}");
        lobby.wait_until_stable().await;
        let last = lobby.object().await.status.unwrap().last_update.unwrap();
        assert!(last.successful && last.unverified, "{last:?}");
        assert_eq!(is_unverified(&lobby).await, Some(true));
        lobby.wait_for_condition("Drifted", "True", "FilesDiffer").await;
        for reason in ["UpdateApplied", "UpdateVerified"] {
            assert_eq!(env.event_notes(LOBBY, reason).await, [""; 0], "{reason}");
        }

        let before = lobby.pod().await.unwrap();
        env.kubectl(&["delete", "pod", &lobby.pod_name(), "--wait=false"], "").await;
        lobby.wait_for_new_pod(&before).await;
        wait_until("the set is verified", UPDATE_LIMIT, async || {
            env.trigger_passes(LOBBY).await;
            env.event_notes(LOBBY, "UpdateVerified").await.pop().ok_or_else(|| observer.console())
        })
        .await;
        assert_eq!(is_unverified(&lobby).await, Some(false));
        assert_eq!(env.event_notes(LOBBY, "UpdateRolledBack").await, [""; 0]);
    })
    .await;
}

/// Runs with an operator that gives a start 20 seconds without a sign of life, and a minute if it rewrites the world.
async fn run_with_short_timeouts(name: &str, now: &str, test: impl AsyncFnOnce(&TestEnv)) {
    in_test_env_with(name, now, &["startSeconds=20", "firstStartSeconds=60"], test).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_start_is_rolled_back_at_its_deadline() {
    run_with_short_timeouts("never-up", BEFORE_RELEASE, async |env| {
        env.apply(&[small_server(LOBBY), viabackwards()]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        let before = lobby.version_set().await;
        lobby.send_command("build 1000").await;
        lobby.send_command("fault never-ready if ViaVersion@5.7.1").await;
        env.upstream.set_now(AFTER_RELEASE).await;
        lobby.wait_until_planned(&RELEASE_CHANGES).await;
        let observer = ServerObserver::start(&lobby).await;
        lobby.set_window(ALWAYS_OPEN).await;

        let why = "the server did not start by its deadline";
        let note = wait_until("the update is reported as failed", UPDATE_LIMIT, async || {
            env.event_notes(LOBBY, "UpdateFailed").await.pop().ok_or_else(|| observer.console())
        })
        .await;
        assert!(note.starts_with(why), "{note}");
        // The agent is unreachable, so the operator waits for the time of a stop, and the hook does too: a minute each.
        lobby.wait_for_condition("Updating", "False", "Held").await;
        let last = lobby.object().await.status.unwrap().last_update.unwrap();
        assert!(!last.successful && last.message.starts_with(why), "{last:?}");
        assert_eq!(lobby.version_set().await, before);
        assert!(lobby.saved_blocks().await >= 1000, "it is the same world");
        assert_eq!((observer.pods(), observer.runs()), (3, 3), "{}", observer.console());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn long_world_migration_outlasts_deadline_while_progressing() {
    run_with_short_timeouts("slow-move", WORLDS_MOVED, async |env| {
        let mut object = small_server(LOBBY);
        object["spec"]["updateStrategy"] = json!("pin");
        object["spec"]["version"] = json!("1.21.11");
        env.apply(&[object]).await;
        let lobby = Server::new(env, LOBBY);
        lobby.wait_until_stable().await;
        lobby.send_command("build 1000").await;
        // It may show no sign of life for a minute, and migrates for longer.
        lobby.send_command("fault slow-migration 80 if 26.1.2").await;
        lobby.patch_spec(json!({"version": "26.1.2"})).await;
        lobby.wait_until_planned(&["Paper 1.21.11", "-> 26.1.2"]).await;
        let observer = ServerObserver::start(&lobby).await;
        lobby.set_window(ALWAYS_OPEN).await;
        wait_until_updated(env, &lobby).await;

        let took = observer.time_between((1, "of the old world layout"), (1, "Migrated the world layout"));
        assert!(took > jiff::SignedDuration::from_mins(1), "the migration was too short for this test: {took:?}");
        assert_eq!((observer.pods(), observer.runs()), (2, 2), "{}", observer.console());
        assert_eq!(env.event_notes(LOBBY, "UpdateFailed").await, [""; 0]);
        assert!(lobby.saved_blocks().await >= 1000, "it is the same world");
        lobby.shell("test -f /data/world/dimensions/minecraft/overworld/region/r.0.0.mca").await;
    })
    .await;
}
