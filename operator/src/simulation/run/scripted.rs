//! Edge (writes). Drives runs with one fixed event at the critical moment.
//!
//! Only their scenario is random.

use std::net::Ipv4Addr;
use std::sync::Arc;

use fixtures::rng::Rng;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};
use validate::CheckedServer;

use super::{Run, RunResult, start_time};
use crate::clock::now;
use crate::clock::simulated::{self, Simulated};
use crate::k8s::owned_api::OwnedApi;
use crate::server::act::delete_request::delete_if_fresh;
use crate::simulation::catalog::Releases;
use crate::simulation::cluster::RequestDelay;
use crate::simulation::cluster_handle::ClusterHandle;
use crate::simulation::fake_api_server::client;
use crate::simulation::faults::InjectedCrash;
use crate::simulation::objects::Key;
use crate::simulation::request_counts::RequestCounts;
use crate::simulation::scenario::{Scenario, WINDOW_INTERVAL, WINDOW_LENGTH};
use crate::simulation::user_actions::UserAction;

/// Short compared with the start of a server.
const START_POLL_INTERVAL: SignedDuration = SignedDuration::from_secs(2);

/// A run without random faults: half an hour after its start upstreams release a good update. Returns the run, its
/// start, and the guard of its clocks.
async fn begin_undisturbed(number: u64, address: Ipv4Addr) -> (Run, Timestamp, Simulated) {
    begin_with(number, address, |scenario| scenario).await
}

/// A cluster with a server before its first pass.
pub(in crate::simulation) async fn begin_cluster(address: Ipv4Addr) -> (Arc<ClusterHandle>, CheckedServer, Simulated) {
    let (run, _, clocks) = begin_undisturbed(0, address).await;
    let server = run.handle.cluster().scenario_server();
    (Arc::clone(&run.handle), server, clocks)
}

/// [`begin_undisturbed`] with a changed scenario.
async fn begin_with(
    number: u64,
    address: Ipv4Addr,
    change: impl FnOnce(Scenario) -> Scenario,
) -> (Run, Timestamp, Simulated) {
    let begins = start_time();
    let clocks = simulated::start(begins);
    let mut rng = Rng::new(number);
    let scenario = change(Scenario::draw(&mut rng, Releases::get(), address).undisturbed());
    let run = Run::begin(scenario, rng, Vec::new(), begins + WINDOW_INTERVAL / 6).await;
    (run, begins, clocks)
}

/// The operator sleeps for half an hour before the request with this number, counted from its write of an update's
/// template. Returns the delay and the result.
pub(in crate::simulation) async fn run_with_delay_before(request: u32, address: Ipv4Addr) -> (RequestDelay, RunResult) {
    let (mut run, begins, _clocks) = begin_undisturbed(3, address).await;
    run.handle.cluster().sleeps = Some(RequestDelay::before_request(request));
    run.run_until(begins + WINDOW_INTERVAL * 2).await;
    let sleeps = run.handle.cluster().sleeps.take().expect("the delay was set above");
    (sleeps, run.finish())
}

/// The agent accepts requests and never answers them, from before the window on, and the pod stays as it is.
pub(in crate::simulation) async fn run_with_hanging_agent(address: Ipv4Addr) -> RunResult {
    let (mut run, begins, _clocks) = begin_undisturbed(1, address).await;
    run.run_until(begins + WINDOW_INTERVAL / 2).await;
    if let Some(pod) = &mut run.handle.cluster().pod {
        (pod.agent.reachable_from, pod.agent.is_hanging) = (Some(begins + WINDOW_INTERVAL * 100), true);
    }
    run.run_until(begins + WINDOW_INTERVAL).await;
    run.finish()
}

/// A user deletes the pod by force repeatedly, on a volume that two pods of a node may use. Then an update begins.
pub(in crate::simulation) async fn run_with_forced_deletions(address: Ipv4Addr) -> RunResult {
    let shares = |scenario: Scenario| Scenario { shares_volume: true, ..scenario };
    let (mut run, begins, _clocks) = begin_with(1, address, shares).await;
    for tens in 0..3 {
        run.run_until(begins + WINDOW_INTERVAL / 2 + SignedDuration::from_mins(10) * tens).await;
        run.handle.cluster().inject(InjectedCrash::PodForceDeleted);
    }
    run.run_until(begins + WINDOW_INTERVAL * 2).await;
    run.finish()
}

/// A user suspends the server during the countdown to an update.
pub(in crate::simulation) async fn run_suspended_during_countdown(address: Ipv4Addr) -> RunResult {
    let (mut run, begins, _clocks) = begin_undisturbed(2, address).await;
    let opens = Scenario::opened_at(begins) + WINDOW_INTERVAL;
    run.run_until(opens - SignedDuration::from_mins(1)).await;
    run.handle.cluster().join(2, opens + SignedDuration::from_mins(20));
    run.run_until(opens + SignedDuration::from_mins(2)).await;
    run.handle.cluster().apply_user_action(UserAction::Suspend);
    run.run_until(opens + WINDOW_INTERVAL / 2).await;
    run.finish()
}

/// Upstreams publish a release during the countdown to another heap, which a user requested before the window opened.
pub(in crate::simulation) async fn run_released_during_countdown(address: Ipv4Addr) -> RunResult {
    let (mut run, begins, _clocks) = begin_undisturbed(2, address).await;
    let opens = Scenario::opened_at(begins) + WINDOW_INTERVAL;
    run.released_at = opens + SignedDuration::from_mins(2);
    run.run_until(opens - SignedDuration::from_mins(1)).await;
    run.handle.cluster().apply_user_action(UserAction::ChangeHeap);
    run.handle.cluster().join(2, opens + SignedDuration::from_mins(20));
    run.run_until(opens + WINDOW_INTERVAL + WINDOW_INTERVAL / 2).await;
    run.finish()
}

/// The server crashes while the first start of 26.1 migrates its worlds, with a backup from before and no players.
/// `None` if it migrated them all at once.
pub(in crate::simulation) async fn run_interrupted_migration(number: u64, address: Ipv4Addr) -> Option<RunResult> {
    let with_migration = |scenario: Scenario| Scenario {
        backup_policy: Some("OneWay"),
        max_players: 0,
        ..scenario.with_world_migration(Releases::get())
    };
    let (mut run, begins, _clocks) = begin_with(number, address, with_migration).await;
    let opens = Scenario::opened_at(begins) + WINDOW_INTERVAL;
    let mut at = opens;
    while !run.handle.cluster().builds.is_migrating {
        if at > opens + WINDOW_LENGTH {
            return None;
        }
        at += START_POLL_INTERVAL;
        run.run_until(at).await;
    }
    {
        let mut cluster = run.handle.cluster();
        cluster.record_disturbance();
        cluster.inject(InjectedCrash::ServerCrashes);
    }
    run.run_until(opens + WINDOW_INTERVAL).await;
    Some(run.finish())
}

/// A user holds the server before the window with an update opens, and gives it another heap. Before the next window
/// the hold is removed, or is not.
pub(in crate::simulation) async fn run_held(removes_hold: bool, address: Ipv4Addr) -> RunResult {
    let (mut run, begins, _clocks) = begin_undisturbed(2, address).await;
    let opens = Scenario::opened_at(begins) + WINDOW_INTERVAL;
    run.run_until(opens - SignedDuration::from_mins(1)).await;
    run.handle.cluster().apply_user_action(UserAction::Hold);
    run.handle.cluster().apply_user_action(UserAction::ChangeHeap);
    run.run_until(opens + WINDOW_INTERVAL / 2).await;
    if removes_hold {
        run.handle.cluster().apply_user_action(UserAction::EndHold);
    }
    run.run_until(opens + WINDOW_INTERVAL + WINDOW_INTERVAL / 2).await;
    run.finish()
}

/// An operator ends a restore request. With `replaced_meanwhile`, another one writes the next request between its read
/// and its write. Returns whether a request exists then.
pub(in crate::simulation) async fn end_restore_request(replaced_meanwhile: bool, address: Ipv4Addr) -> bool {
    let (run, _, _clocks) = begin_undisturbed(0, address).await;
    let server = run.handle.cluster().scenario_server();
    let api = OwnedApi::<ConfigMap>::new(&client(&run.handle), &server);
    let (name, key) = ("lobby-init-requests", Key::new("configmaps", "lobby-init-requests"));
    let map = json!({"metadata": {"name": name, "ownerReferences": [server.owner]}, "data": {"restore.json": "1"}});
    run.handle.cluster().objects.create("configmaps", map, now()).expect("the first restore request");
    let replace_request = || {
        if replaced_meanwhile {
            run.handle.cluster().objects.change(&key, now(), |map| map["data"]["restore.json"] = json!("2"));
        }
        Ok(())
    };
    let ended = delete_if_fresh(&api, name, replace_request).await;
    assert_eq!(ended.is_err_and(|error| error.is_stale()), replaced_meanwhile);
    run.handle.cluster().objects.get(&key).is_ok()
}

/// An operator runs for hours after another one has taken the Lease and has contacted the agent. Returns its passes,
/// and the number of its changes.
pub(in crate::simulation) async fn run_replaced_operator(address: Ipv4Addr) -> (u32, u32) {
    let (mut run, begins, _clocks) = begin_undisturbed(0, address).await;
    run.run_until(begins + WINDOW_INTERVAL / 10).await;
    run.start_operator();
    run.run_pass(1).await;
    // The new operator exits at once, but keeps its Lease.
    run.operators.truncate(1);
    let before = (run.passes, run.handle.cluster().writes);
    run.run_until(begins + WINDOW_INTERVAL * 2).await;
    (run.passes - before.0, run.handle.cluster().writes - before.1)
}

/// A user requests an online backup. While a second one is in progress, a user requests a restore. Returns the backup
/// to restore, the backup that the agent has to keep, and the recorded seconds for the restore.
pub(in crate::simulation) async fn run_restore_during_backup(
    address: Ipv4Addr,
) -> (String, Option<String>, Option<u64>, RunResult) {
    let with_backups = |scenario: Scenario| Scenario { backup_policy: Some("OneWay"), ..scenario };
    let (mut run, begins, _clocks) = begin_with(2, address, with_backups).await;
    run.backup_at(begins + SignedDuration::from_mins(5)).await;
    run.backup_at(begins + SignedDuration::from_mins(15)).await;
    run.handle.cluster().set_backup_end(now() + SignedDuration::from_mins(5));
    run.handle.cluster().apply_user_action(UserAction::Restore);
    run.run_until(now() + SignedDuration::from_secs(5)).await;
    let (requested, retained) = run.handle.cluster().requested_and_retained_backup();
    run.run_until(begins + WINDOW_INTERVAL / 6).await;
    let seconds = run.handle.cluster().facts()["backupEstimate"]["seconds"].as_u64();
    run.run_until(begins + WINDOW_INTERVAL).await;
    (requested, retained, seconds, run.finish())
}

/// An online backup begins before a window opens, and its flush takes half a minute of the window. The update also
/// takes a backup. Returns the notice that players had, and the recorded seconds for that backup.
pub(in crate::simulation) async fn run_backup_before_countdown(
    address: Ipv4Addr,
) -> (Option<SignedDuration>, Option<u64>, RunResult) {
    let with_backups = |scenario: Scenario| Scenario { backup_policy: Some("Always"), ..scenario };
    let (mut run, begins, _clocks) = begin_with(2, address, with_backups).await;
    let opens = Scenario::opened_at(begins) + WINDOW_INTERVAL;
    run.backup_at(opens - SignedDuration::from_mins(5)).await;
    run.handle.cluster().join(2, opens + SignedDuration::from_mins(20));
    run.handle.cluster().set_flush_end(opens + SignedDuration::from_secs(30));
    run.run_until(opens + SignedDuration::from_mins(3)).await;
    let notice = run.handle.cluster().last_notice();
    run.run_until(opens + SignedDuration::from_mins(7)).await;
    let backup_seconds = run.handle.cluster().facts()["backupEstimate"]["seconds"].as_u64();
    run.run_until(opens + WINDOW_INTERVAL / 2).await;
    (notice, backup_seconds, run.finish())
}

/// The requests to the API server for one server: until it is stable, in half an hour at rest, after a restart of the
/// operator, and by ten passes while its namespace is deleted.
pub(in crate::simulation) async fn count_requests(address: Ipv4Addr) -> [RequestCounts; 4] {
    let plain = |scenario: Scenario| Scenario { backup_policy: None, eviction: None, max_players: 0, ..scenario };
    let (mut run, begins, _clocks) = begin_with(2, address, plain).await;
    let minute = |minute| begins + SignedDuration::from_mins(minute);
    run.released_at = minute(24 * 60);
    run.run_until(minute(15)).await;
    let until_stable = run.take_requests();
    run.run_until(minute(45)).await;
    let at_rest = run.take_requests();
    run.operators.clear();
    run.start_operator_without_releases();
    run.run_pass(0).await;
    run.publish();
    run.run_until(minute(50)).await;
    let after_restart = run.take_requests();
    run.handle.cluster().objects.terminate_namespace();
    for _ in 0..10 {
        run.run_pass(0).await;
    }
    [until_stable, at_rest, after_restart, run.take_requests()]
}

/// While no operator runs, a user changes the ports of the Service and the template of the `StatefulSet`, and deletes
/// the claim and the lock. Returns which of these objects are the same as before after the start of an operator.
pub(in crate::simulation) async fn run_with_changes_while_stopped(address: Ipv4Addr) -> Vec<(String, bool)> {
    let (mut run, begins, _clocks) = begin_undisturbed(2, address).await;
    let minute = |minute| begins + SignedDuration::from_mins(minute);
    run.released_at = minute(24 * 60);
    run.run_until(minute(15)).await;
    run.operators.clear();
    let objects = {
        let mut cluster = run.handle.cluster();
        let is_lock = |name: &&str| name.contains("-lock-");
        let maps = cluster.objects.list("configmaps", &[]);
        let lock =
            maps.iter().filter_map(|map| map["metadata"]["name"].as_str()).find(is_lock).expect("a lock").to_owned();
        let (service, stateful_set) = (Key::new("services", "lobby"), cluster.stateful_set_key());
        let (claim, lock) = (Key::new("persistentvolumeclaims", "data-lobby-0"), Key::new("configmaps", &lock));
        let before = [service, stateful_set, claim, lock].map(|key| {
            let object = cluster.objects.get(&key).expect("it was created").clone();
            (key, object)
        });
        let [(service, _), (stateful_set, _), (claim, _), (lock, _)] = &before;
        cluster.objects.change(service, now(), |object| object["spec"]["ports"] = json!([{"port": 1}]));
        cluster.objects.change(stateful_set, now(), |object| {
            object["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(1);
        });
        cluster.objects.remove(claim);
        cluster.objects.remove(lock);
        before
    };
    run.start_operator();
    run.run_until(minute(20)).await;
    let cluster = run.handle.cluster();
    let is_repaired = |key: &Key, before: &Value| {
        let same = |now: &Value| {
            now["spec"]["ports"] == before["spec"]["ports"] && now["spec"]["template"] == before["spec"]["template"]
        };
        cluster.objects.get(key).is_ok_and(|object| same(object) && object["data"] == before["data"])
    };
    objects.iter().map(|(key, before)| (key.plural.clone(), is_repaired(key, before))).collect()
}

impl Run {
    fn take_requests(&self) -> RequestCounts {
        std::mem::take(&mut self.handle.cluster().requests)
    }

    /// A user requests an online backup at that time. Returns when it has begun.
    async fn backup_at(&mut self, requested_at: Timestamp) {
        self.run_until(requested_at).await;
        simulated::advance_to(requested_at);
        self.handle.cluster().apply_user_action(UserAction::BackUp);
        let mut at = requested_at;
        while !self.handle.cluster().is_backing_up() {
            at += START_POLL_INTERVAL;
            assert!(at < requested_at + SignedDuration::from_mins(5), "{}", self.handle.cluster().trace.join("\n"));
            self.run_until(at).await;
        }
    }
}
