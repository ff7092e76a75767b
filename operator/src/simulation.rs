//! Edge (writes). Runs the real passes, plans and init container in a simulated cluster.
//!
//! The cluster has an API server in memory, and a controller and a kubelet that behave as measured. It also has a
//! server that keeps its players' builds, agents over HTTP, and simulated clocks. A seed draws the faults, so the same
//! number repeats a run.
//!
//! The invariants are in [`invariants`], [`fake_minecraft`], [`backups`], [`process_exits`], [`forced_deletion`] and
//! [`fake_statefulset_controller`]:
//!
//! - No older Minecraft opens a world, no two version sets are mixed, and no saved block is lost.
//! - No server is stopped without a timely warning or outside of the windows, and there is one stop per revision.
//! - No start is ended before its deadline, and no failed update is tried again.
//! - No report is wrong.
//! - Each run ends up to date or where a user has to decide.
//!
//! In [`fleet`] several servers share the update slots.

mod backups;
mod by_script;
mod catalog;
mod cluster;
mod cluster_handle;
mod fake_agent;
mod fake_api_server;
mod fake_kubelet;
mod fake_minecraft;
mod fake_node;
mod fake_statefulset_controller;
mod faults;
mod fleet;
mod forced_deletion;
mod invariants;
mod objects;
mod operator_process;
mod process_exits;
mod run;
mod scenario;
mod user_actions;
mod world_layout;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::ops::Range;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::available_parallelism;

use run::scripted::{
    end_an_order, walk_asleep_before, walk_copied_as_a_countdown_begins, walk_held, walk_named_beside_a_copy,
    walk_on_a_forced_pod, walk_on_a_hanging_agent, walk_on_a_move_that_breaks_off, walk_on_replaced,
    walk_released_in_a_countdown, walk_suspended_in_a_countdown,
};
use run::{RunResult, walk};

/// Totals of all runs.
#[derive(Default)]
struct RunSummary {
    passes: u32,
    faults: u32,
    judged: u32,
    restored: u32,
    forward: u32,
    /// World migrations that ended, and that did not.
    moves: (u32, u32),
    ends: BTreeMap<String, u32>,
    broken: Violations,
}

/// Broken invariants, each with the trace of the first run that breaks it.
#[derive(Default)]
struct Violations(BTreeMap<String, (u64, Vec<String>)>);

impl Violations {
    fn note(&mut self, number: u64, rule: String, story: &[String]) {
        let first = self.0.entry(rule).or_insert_with(|| (number, story.to_vec()));
        if number < first.0 {
            *first = (number, story.to_vec());
        }
    }

    /// Prints all violations, and panics if there are any.
    fn must_be_none(&self) {
        for (rule, (number, story)) in &self.0 {
            println!("BROKEN in walk {number}: {rule}\n    {}", story.join("\n    "));
        }
        let broken: Vec<_> = self.0.iter().map(|(rule, (number, _))| (rule, number)).collect();
        assert!(broken.is_empty(), "{broken:?}");
    }
}

impl RunSummary {
    fn add(&mut self, number: u64, walked: RunResult) {
        let RunResult { story, broken, passes, faults, is_judged, is_restored, is_forward, moves, end } = walked;
        println!("{number}: {passes} passes, {faults} faults, {end}");
        self.passes += passes;
        self.faults += faults;
        self.judged += u32::from(is_judged);
        self.restored += u32::from(is_restored);
        self.forward += u32::from(is_forward);
        self.moves = (self.moves.0 + moves.0, self.moves.1 + moves.1);
        *self.ends.entry(end).or_default() += 1;
        for rule in broken {
            self.broken.note(number, rule, &story);
        }
    }
}

/// A loopback address for each run of this process, because all agents listen on the same port.
fn address() -> Ipv4Addr {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let [_, high, low, _] = (NEXT.fetch_add(1, Ordering::Relaxed) << 8).to_be_bytes();
    // Another test process on this machine has other addresses.
    let process = 64 + u8::try_from(std::process::id() % 64).expect("below 64");
    Ipv4Addr::new(127, process, high, low)
}

/// Runs on one thread, because each thread has its own simulated clocks.
fn on_this_thread<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(work)
}

/// Runs these numbers on all cores. The variable selects one of them (`82`) or a range (`80..90`).
fn on_all_cores(variable: &str, numbers: Range<u64>, walk: impl Fn(u64) + Sync) {
    let numbers = std::env::var(variable).map_or(numbers, |text| asked(&text));
    let next = AtomicU64::new(numbers.start);
    let walk_on = || {
        while let number = next.fetch_add(1, Ordering::Relaxed)
            && number < numbers.end
        {
            walk(number);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..available_parallelism().map_or(1, usize::from) {
            scope.spawn(walk_on);
        }
    });
}

/// Runs these numbers and panics with the trace of the first run that breaks each invariant. `NIGHTSHIFT_WALK=82`
/// selects one run.
fn walk_all(numbers: Range<u64>) -> RunSummary {
    let found = Mutex::new(RunSummary::default());
    on_all_cores("NIGHTSHIFT_WALK", numbers, |number| {
        // The number is also printed for a run that panics.
        let walked = catch_unwind(|| on_this_thread(walk(number, address()))).unwrap_or_else(|_| RunResult::panicked());
        found.lock().unwrap_or_else(PoisonError::into_inner).add(number, walked);
    });
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let RunSummary { passes, faults, judged, restored, forward, moves: (moved, broken_off), ends, broken: _ } = &found;
    println!(
        "{passes} passes, {faults} faults, {judged} judged, {restored} restored, {forward} gone forward, {moved} moves of worlds and \
         {broken_off} broken off; {ends:?}"
    );
    found.broken.must_be_none();
    found
}

/// Whether the tests have more time than those of every change. `make test-all` sets `NIGHTSHIFT_THOROUGH`.
fn is_thorough() -> bool {
    std::env::var_os("NIGHTSHIFT_THOROUGH").is_some()
}

fn asked(text: &str) -> Range<u64> {
    let number =
        |text: &str| text.parse::<u64>().expect("walks are asked for by a number, or by two with `..` between them");
    match text.split_once("..") {
        Some((from, to)) => number(from)..number(to),
        None => number(text)..number(text) + 1,
    }
}

#[test]
fn simulation_of_real_passes_on_volumes_keeps_invariants() {
    let found = walk_all(0..if is_thorough() { 60 } else { 5 });
    // Runs without any event verify nothing.
    let is_all = std::env::var_os("NIGHTSHIFT_WALK").is_none();
    let RunSummary { faults, judged, restored, forward, moves: (moved, _), .. } = found;
    assert!(!is_all || faults > 10, "{faults} faults");
    assert!(
        !is_all || !is_thorough() || (faults > 200 && judged > 20 && restored > 5 && forward > 0 && moved > 3),
        "{faults} faults, {judged} judged, {restored} restored, {forward} gone forward, {moved} moves of worlds"
    );
}

#[test]
fn replaced_operator_makes_no_write() {
    let (passes, writes) = on_this_thread(walk_on_replaced(address()));
    assert!(passes > 10, "{passes}");
    assert_eq!(writes, 0, "in {passes} passes, beside a window and a newer release");
}

#[test]
fn hanging_agent_does_not_block_update() {
    let RunResult { broken, story, end, .. } = on_this_thread(walk_on_a_hanging_agent(address()));
    assert!(broken.is_empty() && end == "rests on the update", "{broken:?}: {end}\n{}", story.join("\n"));
}

#[test]
fn restore_request_of_other_operator_is_not_removed() {
    assert!(on_this_thread(end_an_order(true, address())));
    assert!(!on_this_thread(end_an_order(false, address())));
}

#[test]
fn countdown_is_called_off_when_server_is_suspended() {
    let RunResult { broken, story, end, .. } = on_this_thread(walk_suspended_in_a_countdown(address()));
    assert!(broken.is_empty() && end == "rests on what ran", "{broken:?}: {end}\n{}", story.join("\n"));
    let told: Vec<_> = story.iter().filter(|line| line.contains("are told")).collect();
    let [first, last] = told[..] else { panic!("{told:?}") };
    assert!(first.contains("update/") && last.contains("called off"), "{told:?}");
}

#[test]
fn update_excludes_release_published_during_countdown() {
    let RunResult { broken, story, end, .. } = on_this_thread(walk_released_in_a_countdown(address()));
    assert!(broken.is_empty() && end == "rests on the update", "{broken:?}: {end}\n{}", story.join("\n"));
    let places = |what: &str| -> Vec<usize> {
        story.iter().enumerate().filter(|(_, line)| line.contains(what)).map(|(at, _)| at).collect()
    };
    let (told, written, released) =
        (places("are told of"), places("writes the pod template"), places("lists newer releases"));
    let ([first, second, ..], [heap, update], [released]) = (&told[..], &written[..], &released[..]) else {
        panic!("{}", story.join("\n"))
    };
    let is_in_order = first < released && released < heap && heap < second && second < update;
    let is_called_off = !places("called off").is_empty();
    assert!(is_in_order && !is_called_off, "{}", story.join("\n"));
}

#[test]
fn named_backup_is_kept_while_another_is_taken() {
    let (named, kept, seconds, walked) = on_this_thread(walk_named_beside_a_copy(address()));
    let RunResult { broken, story, .. } = walked;
    assert_eq!(kept, Some(named), "{}", story.join("\n"));
    assert_eq!(seconds, Some(10), "{}", story.join("\n"));
    assert!(broken.is_empty(), "{broken:?}\n{}", story.join("\n"));
}

#[test]
fn announcement_during_backup_flush_is_repeated_with_full_notice() {
    let (notice, copying, walked) = on_this_thread(walk_copied_as_a_countdown_begins(address()));
    let RunResult { broken, story, end, .. } = walked;
    assert!(broken.is_empty() && end == "rests on the update", "{broken:?}: {end}\n{}", story.join("\n"));
    let told = || story.iter().position(|line| line.contains("are told of"));
    let refused = story.iter().position(|line| line.contains("refuses the announcement"));
    assert!(refused.is_some() && refused < told(), "{}", story.join("\n"));
    assert_eq!(notice, Some(invariants::NOTICE), "{}", story.join("\n"));
    // A new operator reads how long the backup takes, although the agent does not reply during it.
    assert_eq!(copying, Some(10), "{}", story.join("\n"));
}

#[test]
fn held_server_takes_settings_and_updates_when_released() {
    for (is_let_go, rests) in [(false, "rests on what ran"), (true, "rests on the update")] {
        let RunResult { broken, story, end, .. } = on_this_thread(walk_held(is_let_go, address()));
        assert!(broken.is_empty() && end == rests, "{broken:?}: {end}\n{}", story.join("\n"));
        let changes = story.iter().filter(|line| line.contains("writes the pod template")).count();
        assert_eq!(changes, if is_let_go { 2 } else { 1 }, "{}", story.join("\n"));
        let is_told = story.iter().any(|line| line.contains(r#""PinnedToSet" "Held""#));
        assert_eq!(is_told, !is_let_go, "{}", story.join("\n"));
    }
}

#[test]
fn force_deleted_pod_keeps_volume_unchanged_while_running() {
    let RunResult { broken, story, end, .. } = on_this_thread(walk_on_a_forced_pod(address()));
    assert!(broken.is_empty() && end == "rests on the update", "{broken:?}: {end}\n{}", story.join("\n"));
    let has_waited = story.iter().any(|line| line.contains("another server still runs"));
    assert!(has_waited, "{}", story.join("\n"));
}

#[test]
fn interrupted_world_migration_is_restored_on_rollback() {
    let mut broken_off = 0;
    for number in 0..8 {
        if broken_off > 0 && !is_thorough() {
            break;
        }
        let walked = on_this_thread(walk_on_a_move_that_breaks_off(number, address()));
        let Some(RunResult { broken, story, end, .. }) = walked else { continue };
        broken_off += 1;
        assert!(broken.is_empty() && end == "rests on what ran", "{broken:?}: {end}\n{}", story.join("\n"));
        let is_restored = story.iter().any(|line| line.contains("finds the worlds of backup"));
        assert!(is_restored, "{}", story.join("\n"));
    }
    assert!(broken_off > 0);
}

#[test]
fn server_is_not_stopped_on_stale_observation() {
    let mut slept = 0;
    for request in (0..).step_by(if is_thorough() { 1 } else { 6 }) {
        let (sleeps, walked) = on_this_thread(walk_asleep_before(request, address()));
        let RunResult { broken, story, .. } = walked;
        assert!(broken.is_empty(), "asleep before request {request}: {broken:?}\n{}", story.join("\n"));
        slept += u32::from(sleeps.has_slept);
        if sleeps.before > 0 {
            break;
        }
    }
    assert!(slept > if is_thorough() { 5 } else { 0 }, "{slept}");
}

#[test]
#[ignore = "an hour, optimised: cargo test -p operator --release --lib -- --ignored walks"]
fn simulation_of_thousands_of_runs_keeps_invariants() {
    walk_all(0..5_000);
}
