//! Edge (writes). Tests the ends of a rollout: kept unverified and verified later, given up at the deadline, and long
//! while a server migrates its world.
//!
//! Also tests these with a wrong spec.

use serde_json::{Value, json};

use super::crash::Moment;
use super::manifests::{AFTER, ALWAYS, BEFORE, FAR, LOBBY, TO_AFTER, small_server, viabackwards};
use super::server::Server;
use super::update::updated;
use super::wait::{AN_UPDATE, until};
use super::witness::ServerObserver;
use super::world::{World, in_a_world, in_a_world_with};

/// The API server accepts it, but it never occurs: February has no such day.
const NO_DAY: &str = "0 4 30 2 *";
/// Paper 26.1.2 is released, which keeps its worlds in another place.
const MOVES_WORLDS: &str = "2026-07-10T12:00:00Z";

/// Waits for a moment of the running update, and breaks the spec then.
async fn break_the_spec_at(server: &Server<'_>, moment: Moment) {
    let before = server.pod().await.unwrap();
    server.set_window(ALWAYS).await;
    until(&format!("{moment:?} of {}", server.name), AN_UPDATE, async || {
        if moment.has_come(server, &before).await { Ok(()) } else { Err("not yet".to_owned()) }
    })
    .await;
    server.set_window(NO_DAY).await;
}

/// Waits until the rollout has ended, while the spec is wrong.
async fn ended_under_a_wrong_spec(server: &Server<'_>) {
    until(&format!("the trial of {} is over", server.name), AN_UPDATE, async || {
        let conditions = server.object().await.status.unwrap_or_default().conditions;
        let is = |of: &str, reason: &str| conditions.iter().any(|it| it.type_ == of && it.reason == reason);
        let is_over = is("Updating", "Stable") && is("Ready", "Running") && is("Resolved", "SpecInvalid");
        if is_over { Ok(()) } else { Err(super::server::in_words(&conditions)) }
    })
    .await;
    let strategy = server.stateful_set().await.spec.unwrap().update_strategy.unwrap();
    assert_eq!(strategy.rolling_update.unwrap().partition, Some(1), "the door is closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn rollout_ends_correctly_under_invalid_spec() {
    in_a_world("wrong-spec", BEFORE, async |world| {
        world.apply(&[small_server(LOBBY), small_server("second"), viabackwards()]).await;
        let (good, bad) = (Server::new(world, LOBBY), Server::new(world, "second"));
        good.settled().await;
        bad.settled().await;
        let before = bad.set().await;
        bad.order("fault plugin-fails ViaVersion if ViaVersion@5.7.1").await;
        world.upstream.set_now(AFTER).await;
        good.planned(&TO_AFTER).await;
        bad.planned(&TO_AFTER).await;
        let (of_good, of_bad) = (ServerObserver::of(&good).await, ServerObserver::of(&bad).await);
        tokio::join!(break_the_spec_at(&good, Moment::PodStops), break_the_spec_at(&bad, Moment::PodStops));

        ended_under_a_wrong_spec(&good).await;
        let status = good.object().await.status.unwrap();
        assert!(status.last_update.is_some_and(|last| last.successful && last.message.contains(TO_AFTER[1])));
        assert_eq!((status.update, status.history.len()), (None, 2));
        assert_eq!(good.set().await.plugins["ViaVersion"], "5.7.1");
        world.note(LOBBY, "UpdateApplied").await;

        until("the bad set is given up", AN_UPDATE, async || {
            world.notes("second", "UpdateRolledBack").await.pop().ok_or_else(|| of_bad.console())
        })
        .await;
        ended_under_a_wrong_spec(&bad).await;
        let last = bad.object().await.status.unwrap().last_update.unwrap();
        assert!(!last.successful && last.message.contains("ViaVersion did not enable"), "{last:?}");
        assert_eq!(bad.set().await, before);

        // No other action began, and the operator continues as usual once the spec is corrected.
        assert_eq!((of_good.runs(), of_bad.runs()), (2, 3), "{}", of_bad.console());
        good.set_window(FAR).await;
        bad.set_window(ALWAYS).await;
        good.settled().await;
        bad.condition_is("Updating", "False", "Held").await;
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
async fn is_unproven(server: &Server<'_>) -> Option<bool> {
    server.object().await.status.unwrap_or_default().history.first().map(|newest| newest.unproven)
}

#[tokio::test(flavor = "multi_thread")]
async fn drifted_update_stays_unverified_until_restart_repairs_it() {
    in_a_world("unproven", BEFORE, async |world| {
        world.apply(&[slow_server(), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        world.upstream.set_now(AFTER).await;
        lobby.planned(&TO_AFTER).await;
        let witness = ServerObserver::of(&lobby).await;
        lobby.set_window(ALWAYS).await;
        until("the new process has loaded its plugins", AN_UPDATE, async || {
            let has =
                witness.lines().iter().any(|line| line.run == 1 && line.text.contains("Loading server plugin Via"));
            if has { Ok(()) } else { Err(witness.console()) }
        })
        .await;
        // Bytes after the end of an archive are ignored, but the hash of the file differs.
        lobby.shell("for jar in /data/plugins/*ersion*.jar; do printf x >> \"$jar\"; done").await;

        let told = until("the set is kept", AN_UPDATE, async || {
            world.notes(LOBBY, "UpdateUnverified").await.pop().ok_or_else(|| witness.console())
        })
        .await;
        assert!(told.starts_with("kept, and not proven: not as locked: plugins/"), "{told}");
        lobby.settled().await;
        let last = lobby.object().await.status.unwrap().last_update.unwrap();
        assert!(last.successful && last.unproven, "{last:?}");
        assert_eq!(is_unproven(&lobby).await, Some(true));
        lobby.condition_is("Drifted", "True", "FilesDiffer").await;
        for reason in ["UpdateApplied", "UpdateVerified"] {
            assert_eq!(world.notes(LOBBY, reason).await, [""; 0], "{reason}");
        }

        let before = lobby.pod().await.unwrap();
        world.kubectl(&["delete", "pod", &lobby.pod_name(), "--wait=false"], "").await;
        lobby.back_after(&before).await;
        until("it is proven at last", AN_UPDATE, async || {
            world.look_again(LOBBY).await;
            world.notes(LOBBY, "UpdateVerified").await.pop().ok_or_else(|| witness.console())
        })
        .await;
        assert_eq!(is_unproven(&lobby).await, Some(false));
        assert_eq!(world.notes(LOBBY, "UpdateRolledBack").await, [""; 0]);
    })
    .await;
}

/// Runs with an operator that gives a start 20 seconds without a sign of life, and a minute if it rewrites the world.
async fn impatient(name: &str, now: &str, test: impl AsyncFnOnce(&World)) {
    in_a_world_with(name, now, &["startSeconds=20", "firstStartSeconds=60"], test).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_start_is_rolled_back_at_its_deadline() {
    impatient("never-up", BEFORE, async |world| {
        world.apply(&[small_server(LOBBY), viabackwards()]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        let before = lobby.set().await;
        lobby.order("build 1000").await;
        lobby.order("fault never-ready if ViaVersion@5.7.1").await;
        world.upstream.set_now(AFTER).await;
        lobby.planned(&TO_AFTER).await;
        let witness = ServerObserver::of(&lobby).await;
        lobby.set_window(ALWAYS).await;

        let why = "the server did not come up by its deadline";
        let told = until("the set is given up", AN_UPDATE, async || {
            world.notes(LOBBY, "UpdateFailed").await.pop().ok_or_else(|| witness.console())
        })
        .await;
        assert!(told.starts_with(why), "{told}");
        // The agent is unreachable, so the operator waits for the time of a stop, and the hook does too: a minute each.
        lobby.condition_is("Updating", "False", "Held").await;
        let last = lobby.object().await.status.unwrap().last_update.unwrap();
        assert!(!last.successful && last.message.starts_with(why), "{last:?}");
        assert_eq!(lobby.set().await, before);
        assert!(lobby.saved_blocks().await >= 1000, "it is the same world");
        assert_eq!((witness.pods(), witness.runs()), (3, 3), "{}", witness.console());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn long_world_migration_outlasts_deadline_while_progressing() {
    impatient("slow-move", MOVES_WORLDS, async |world| {
        let mut object = small_server(LOBBY);
        object["spec"]["updateStrategy"] = json!("pin");
        object["spec"]["version"] = json!("1.21.11");
        world.apply(&[object]).await;
        let lobby = Server::new(world, LOBBY);
        lobby.settled().await;
        lobby.order("build 1000").await;
        // It may show no sign of life for a minute, and migrates for longer.
        lobby.order("fault slow-migration 80 if 26.1.2").await;
        lobby.change(json!({"version": "26.1.2"})).await;
        lobby.planned(&["Paper 1.21.11", "-> 26.1.2"]).await;
        let witness = ServerObserver::of(&lobby).await;
        lobby.set_window(ALWAYS).await;
        updated(world, &lobby).await;

        let took = witness.between((1, "of the old world layout"), (1, "Migrated the world layout"));
        assert!(took > jiff::SignedDuration::from_mins(1), "it was over too soon to prove anything: {took:?}");
        assert_eq!((witness.pods(), witness.runs()), (2, 2), "{}", witness.console());
        assert_eq!(world.notes(LOBBY, "UpdateFailed").await, [""; 0]);
        assert!(lobby.saved_blocks().await >= 1000, "it is the same world");
        lobby.shell("test -f /data/world/dimensions/minecraft/overworld/region/r.0.0.mca").await;
    })
    .await;
}
