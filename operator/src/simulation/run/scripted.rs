//! Edge (writes). Drives runs with one fixed event at the critical moment.
//!
//! Only their scenario is random.

use std::net::Ipv4Addr;

use fixtures::dice::Rng;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::Api;
use serde_json::json;

use super::{Run, RunResult, beginning};
use crate::clock::now;
use crate::clock::simulated::{self, Simulated};
use crate::server::act::end_order::end_exactly;
use crate::simulation::catalog::Releases;
use crate::simulation::cluster::Sleeps;
use crate::simulation::fake_api_server::{NAMESPACE, client};
use crate::simulation::faults::InjectedCrash;
use crate::simulation::objects::Key;
use crate::simulation::scenario::{EVERY, OPEN_FOR, Scenario};
use crate::simulation::user_actions::UserAction;

/// Short compared with the start of a server.
const LOOKS_AT_A_START: SignedDuration = SignedDuration::from_secs(2);

/// A run without random faults: half an hour after its start upstreams release a good update. Returns the run, its
/// start, and the guard of its clocks.
async fn begin_undisturbed(number: u64, address: Ipv4Addr) -> (Run, Timestamp, Simulated) {
    begin_with(number, address, |scenario| scenario).await
}

/// The same with a changed scenario.
async fn begin_with(
    number: u64,
    address: Ipv4Addr,
    change: impl FnOnce(Scenario) -> Scenario,
) -> (Run, Timestamp, Simulated) {
    let begins = beginning();
    let clocks = simulated::start(begins);
    let mut dice = Rng::new(number);
    let scenario = change(Scenario::draw(&mut dice, Releases::get(), address).undisturbed());
    let walk = Run::begin(scenario, dice, Vec::new(), begins + EVERY / 6).await;
    (walk, begins, clocks)
}

/// The operator sleeps for half an hour before the request with this number, counted from its write of an update's
/// template. Returns the delay and the result.
pub(in crate::simulation) async fn walk_asleep_before(request: u32, address: Ipv4Addr) -> (Sleeps, RunResult) {
    let (mut walk, begins, _clocks) = begin_undisturbed(3, address).await;
    walk.shared.world().sleeps = Some(Sleeps::before(request));
    walk.go_until(begins + EVERY * 2).await;
    let sleeps = walk.shared.world().sleeps.take().expect("it was put there");
    (sleeps, walk.end())
}

/// The agent accepts requests and never answers them, from before the window on, and the pod stays as it is.
pub(in crate::simulation) async fn walk_on_a_hanging_agent(address: Ipv4Addr) -> RunResult {
    let (mut walk, begins, _clocks) = begin_undisturbed(1, address).await;
    walk.go_until(begins + EVERY / 2).await;
    if let Some(pod) = &mut walk.shared.world().pod {
        (pod.agent.answers_from, pod.agent.hangs) = (Some(begins + EVERY * 100), true);
    }
    walk.go_until(begins + EVERY).await;
    walk.end()
}

/// A user deletes the pod by force repeatedly, on a volume that two pods of a node may use. Then an update begins.
pub(in crate::simulation) async fn walk_on_a_forced_pod(address: Ipv4Addr) -> RunResult {
    let shares = |scenario: Scenario| Scenario { shares_volume: true, ..scenario };
    let (mut walk, begins, _clocks) = begin_with(1, address, shares).await;
    for tens in 0..3 {
        walk.go_until(begins + EVERY / 2 + SignedDuration::from_mins(10) * tens).await;
        walk.shared.world().strike(InjectedCrash::PodForced);
    }
    walk.go_until(begins + EVERY * 2).await;
    walk.end()
}

/// A user suspends the server during the countdown to an update.
pub(in crate::simulation) async fn walk_suspended_in_a_countdown(address: Ipv4Addr) -> RunResult {
    let (mut walk, begins, _clocks) = begin_undisturbed(2, address).await;
    let opens = Scenario::opened_at(begins) + EVERY;
    walk.go_until(opens - SignedDuration::from_mins(1)).await;
    walk.shared.world().join(2, opens + SignedDuration::from_mins(20));
    walk.go_until(opens + SignedDuration::from_mins(2)).await;
    walk.shared.world().write(UserAction::Rest);
    walk.go_until(opens + EVERY / 2).await;
    walk.end()
}

/// Upstreams publish a release during the countdown to another heap, which a user requested before the window opened.
pub(in crate::simulation) async fn walk_released_in_a_countdown(address: Ipv4Addr) -> RunResult {
    let (mut walk, begins, _clocks) = begin_undisturbed(2, address).await;
    let opens = Scenario::opened_at(begins) + EVERY;
    walk.released_at = opens + SignedDuration::from_mins(2);
    walk.go_until(opens - SignedDuration::from_mins(1)).await;
    walk.shared.world().write(UserAction::AnotherHeap);
    walk.shared.world().join(2, opens + SignedDuration::from_mins(20));
    walk.go_until(opens + EVERY + EVERY / 2).await;
    walk.end()
}

/// The server crashes while the first start of 26.1 migrates its worlds, with a backup from before and no players.
/// `None` if it migrated them all at once.
pub(in crate::simulation) async fn walk_on_a_move_that_breaks_off(number: u64, address: Ipv4Addr) -> Option<RunResult> {
    let moves = |scenario: Scenario| Scenario {
        copies: Some("OneWay"),
        most_players: 0,
        ..scenario.moving_worlds(Releases::get())
    };
    let (mut walk, begins, _clocks) = begin_with(number, address, moves).await;
    let opens = Scenario::opened_at(begins) + EVERY;
    let mut at = opens;
    while !walk.shared.world().marks.is_moving {
        if at > opens + OPEN_FOR {
            return None;
        }
        at += LOOKS_AT_A_START;
        walk.go_until(at).await;
    }
    {
        let mut world = walk.shared.world();
        world.note_disturbance();
        world.strike(InjectedCrash::ServerCrashes);
    }
    walk.go_until(opens + EVERY).await;
    Some(walk.end())
}

/// A user holds the server before the window with an update opens, and gives it another heap. Before the next window
/// the hold is removed, or is not.
pub(in crate::simulation) async fn walk_held(is_let_go: bool, address: Ipv4Addr) -> RunResult {
    let (mut walk, begins, _clocks) = begin_undisturbed(2, address).await;
    let opens = Scenario::opened_at(begins) + EVERY;
    walk.go_until(opens - SignedDuration::from_mins(1)).await;
    walk.shared.world().write(UserAction::Hold);
    walk.shared.world().write(UserAction::AnotherHeap);
    walk.go_until(opens + EVERY / 2).await;
    if is_let_go {
        walk.shared.world().write(UserAction::LetGo);
    }
    walk.go_until(opens + EVERY + EVERY / 2).await;
    walk.end()
}

/// An operator ends a restore request. With `given_meanwhile`, another one writes the next request between its read and
/// its write. Returns whether a request exists then.
pub(in crate::simulation) async fn end_an_order(given_meanwhile: bool, address: Ipv4Addr) -> bool {
    let (walk, _, _clocks) = begin_undisturbed(0, address).await;
    let api: Api<ConfigMap> = Api::namespaced(client(&walk.shared), NAMESPACE);
    let (name, key) = ("lobby-init-requests", Key::new("configmaps", "lobby-init-requests"));
    let map = json!({"metadata": {"name": name}, "data": {"restore.json": "1"}});
    walk.shared.world().objects.create("configmaps", map, now()).expect("the first order");
    let give = || {
        if given_meanwhile {
            walk.shared.world().objects.change(&key, now(), |map| map["data"]["restore.json"] = json!("2"));
        }
        Ok(())
    };
    let ended = end_exactly(&api, name, give).await;
    assert_eq!(ended.is_err_and(|error| error.is_of_an_old_look()), given_meanwhile);
    walk.shared.world().objects.get(&key).is_ok()
}

/// An operator runs for hours after another one has taken the Lease and has contacted the agent. Returns its passes,
/// and the number of its changes.
pub(in crate::simulation) async fn walk_on_replaced(address: Ipv4Addr) -> (u32, u32) {
    let (mut walk, begins, _clocks) = begin_undisturbed(0, address).await;
    walk.go_until(begins + EVERY / 10).await;
    walk.start_operator();
    walk.pass(1).await;
    // The new operator exits at once, but keeps its Lease.
    walk.operators.truncate(1);
    let so_far = (walk.passes, walk.shared.world().writes);
    walk.go_until(begins + EVERY * 2).await;
    (walk.passes - so_far.0, walk.shared.world().writes - so_far.1)
}

/// A user requests an online backup. While a second one is in progress, a user requests a restore. Returns the backup
/// to restore, the backup that the agent has to keep, and the recorded seconds for the restore.
pub(in crate::simulation) async fn walk_named_beside_a_copy(
    address: Ipv4Addr,
) -> (String, Option<String>, Option<u64>, RunResult) {
    let copies = |scenario: Scenario| Scenario { copies: Some("OneWay"), ..scenario };
    let (mut walk, begins, _clocks) = begin_with(2, address, copies).await;
    walk.copy_at(begins + SignedDuration::from_mins(5)).await;
    walk.copy_at(begins + SignedDuration::from_mins(15)).await;
    walk.shared.world().copy_goes_on_until(now() + SignedDuration::from_mins(5));
    walk.shared.world().write(UserAction::Restore);
    walk.go_until(now() + SignedDuration::from_secs(5)).await;
    let (named, kept) = walk.shared.world().named_and_kept();
    walk.go_until(begins + EVERY / 6).await;
    let seconds = walk.shared.world().facts()["copying"]["seconds"].as_u64();
    walk.go_until(begins + EVERY).await;
    (named, kept, seconds, walk.end())
}

/// An online backup begins before a window opens, and its flush takes half a minute of the window. The update also
/// takes a backup. Returns the notice that players had, and the recorded seconds for that backup.
pub(in crate::simulation) async fn walk_copied_as_a_countdown_begins(
    address: Ipv4Addr,
) -> (Option<SignedDuration>, Option<u64>, RunResult) {
    let copies = |scenario: Scenario| Scenario { copies: Some("Always"), ..scenario };
    let (mut walk, begins, _clocks) = begin_with(2, address, copies).await;
    let opens = Scenario::opened_at(begins) + EVERY;
    walk.copy_at(opens - SignedDuration::from_mins(5)).await;
    walk.shared.world().join(2, opens + SignedDuration::from_mins(20));
    walk.shared.world().flush_goes_on_until(opens + SignedDuration::from_secs(30));
    walk.go_until(opens + SignedDuration::from_mins(3)).await;
    let notice = walk.shared.world().notice_given();
    walk.go_until(opens + SignedDuration::from_mins(7)).await;
    let copying = walk.shared.world().facts()["copying"]["seconds"].as_u64();
    walk.go_until(opens + EVERY / 2).await;
    (notice, copying, walk.end())
}

impl Run {
    /// A user requests an online backup at that time. Returns when it has begun.
    async fn copy_at(&mut self, asked: Timestamp) {
        self.go_until(asked).await;
        simulated::pass_until(asked);
        self.shared.world().write(UserAction::Copy);
        let mut at = asked;
        while !self.shared.world().is_copying() {
            at += LOOKS_AT_A_START;
            assert!(at < asked + SignedDuration::from_mins(5), "{}", self.shared.world().story.join("\n"));
            self.go_until(at).await;
        }
    }
}
