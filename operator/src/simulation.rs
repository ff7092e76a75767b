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
mod objects_of_others;
mod operator_process;
mod pending_pods;
mod process_exits;
mod request_counts;
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
    count_requests, end_restore_request, run_backup_before_countdown, run_held, run_interrupted_migration,
    run_released_during_countdown, run_replaced_operator, run_restore_during_backup, run_suspended_during_countdown,
    run_with_changes_while_stopped, run_with_delay_before, run_with_forced_deletions, run_with_hanging_agent,
};
use run::{RunResult, run_seed};

/// Totals of all runs.
#[derive(Default)]
struct RunSummary {
    passes: u32,
    faults: u32,
    checked: u32,
    restored: u32,
    rolled_forward: u32,
    /// World migrations that ended, and that did not.
    migrations: (u32, u32),
    final_states: BTreeMap<String, u32>,
    violations: Violations,
}

/// Broken invariants, each with the trace of the first run that breaks it.
#[derive(Default)]
struct Violations(BTreeMap<String, (u64, Vec<String>)>);

impl Violations {
    fn record(&mut self, number: u64, rule: String, trace: &[String]) {
        let first = self.0.entry(rule).or_insert_with(|| (number, trace.to_vec()));
        if number < first.0 {
            *first = (number, trace.to_vec());
        }
    }

    /// Prints all violations, and panics if there are any.
    fn assert_none(&self) {
        for (rule, (number, trace)) in &self.0 {
            println!("BROKEN in run {number}: {rule}\n    {}", trace.join("\n    "));
        }
        let violations: Vec<_> = self.0.iter().map(|(rule, (number, _))| (rule, number)).collect();
        assert!(violations.is_empty(), "{violations:?}");
    }
}

impl RunSummary {
    fn add(&mut self, number: u64, result: RunResult) {
        let RunResult {
            trace,
            violations,
            passes,
            faults,
            is_checked,
            is_restored,
            has_rolled_forward,
            migrations,
            final_state,
        } = result;
        println!("{number}: {passes} passes, {faults} faults, {final_state}");
        self.passes += passes;
        self.faults += faults;
        self.checked += u32::from(is_checked);
        self.restored += u32::from(is_restored);
        self.rolled_forward += u32::from(has_rolled_forward);
        self.migrations = (self.migrations.0 + migrations.0, self.migrations.1 + migrations.1);
        *self.final_states.entry(final_state).or_default() += 1;
        for rule in violations {
            self.violations.record(number, rule, &trace);
        }
    }
}

/// A loopback address for each run of this process, because all agents listen on the same port.
fn next_address() -> Ipv4Addr {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let [_, high, low, _] = (NEXT.fetch_add(1, Ordering::Relaxed) << 8).to_be_bytes();
    // Another test process on this machine has other addresses.
    let process = 64 + u8::try_from(std::process::id() % 64).expect("a number below 64");
    Ipv4Addr::new(127, process, high, low)
}

/// Runs on one thread, because each thread has its own simulated clocks.
fn run_on_this_thread<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(work)
}

/// Runs these numbers on all cores. The variable selects one of them (`82`) or a range (`80..90`).
fn run_on_all_cores(variable: &str, numbers: Range<u64>, run: impl Fn(u64) + Sync) {
    let numbers = std::env::var(variable).map_or(numbers, |text| parse_numbers(&text));
    let next = AtomicU64::new(numbers.start);
    let run_numbers = || {
        while let number = next.fetch_add(1, Ordering::Relaxed)
            && number < numbers.end
        {
            run(number);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..available_parallelism().map_or(1, usize::from) {
            scope.spawn(run_numbers);
        }
    });
}

/// Runs these numbers and panics with the trace of the first run that breaks each invariant. `NIGHTSHIFT_WALK=82`
/// selects one run.
fn run_all(numbers: Range<u64>) -> RunSummary {
    let found = Mutex::new(RunSummary::default());
    run_on_all_cores("NIGHTSHIFT_WALK", numbers, |number| {
        // The number is also printed for a run that panics.
        let result = catch_unwind(|| run_on_this_thread(run_seed(number, next_address())))
            .unwrap_or_else(|_| RunResult::panicked());
        found.lock().unwrap_or_else(PoisonError::into_inner).add(number, result);
    });
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let RunSummary {
        passes,
        faults,
        checked,
        restored,
        rolled_forward,
        migrations: (migrated, interrupted),
        final_states,
        violations: _,
    } = &found;
    println!(
        "{passes} passes, {faults} faults, {checked} judged, {restored} restored, {rolled_forward} gone forward, {migrated} moves of worlds and \
         {interrupted} broken off; {final_states:?}"
    );
    found.violations.assert_none();
    found
}

/// Whether the tests have more time than those of every change. `make test-all` sets `NIGHTSHIFT_THOROUGH`.
fn is_thorough() -> bool {
    std::env::var_os("NIGHTSHIFT_THOROUGH").is_some()
}

fn parse_numbers(text: &str) -> Range<u64> {
    let number =
        |text: &str| text.parse::<u64>().expect("write the number of a run, or two numbers with `..` between them");
    match text.split_once("..") {
        Some((from, to)) => number(from)..number(to),
        None => number(text)..number(text) + 1,
    }
}

#[test]
fn simulation_of_real_passes_on_volumes_keeps_invariants() {
    let found = run_all(0..if is_thorough() { 60 } else { 5 });
    // Runs without any event verify nothing.
    let is_all = std::env::var_os("NIGHTSHIFT_WALK").is_none();
    let RunSummary { faults, checked, restored, rolled_forward, migrations: (migrated, _), .. } = found;
    assert!(!is_all || faults > 10, "{faults} faults");
    assert!(
        !is_all
            || !is_thorough()
            || (faults > 200 && checked > 20 && restored > 5 && rolled_forward > 0 && migrated > 3),
        "{faults} faults, {checked} checked, {restored} restored, {rolled_forward} rolled forward, {migrated} migrations"
    );
}

#[test]
fn replaced_operator_makes_no_write() {
    let (passes, writes) = run_on_this_thread(run_replaced_operator(next_address()));
    assert!(passes > 10, "{passes}");
    assert_eq!(writes, 0, "{passes} passes, with a window and a newer release");
}

#[test]
fn requests_for_one_server_stay_within_bounds() {
    let counts = run_on_this_thread(count_requests(next_address()));
    for (phase, counts) in ["until stable", "at rest", "after a restart", "while deleted"].into_iter().zip(&counts) {
        println!("{phase}: {counts}");
    }
    let [until_stable, at_rest, after_restart, while_deleted] = counts;
    assert!(until_stable.writes() <= 18 && until_stable.reads() <= 91, "{until_stable}");
    assert!(at_rest.writes() == 0 && at_rest.reads() <= 36, "{at_rest}");
    assert!(after_restart.writes() == 0 && after_restart.reads() <= 17, "{after_restart}");
    assert!(while_deleted.reads() + while_deleted.writes() <= 4, "{while_deleted}");
}

#[test]
fn changes_while_no_operator_runs_are_repaired() {
    let objects = run_on_this_thread(run_with_changes_while_stopped(next_address()));
    assert!(objects.iter().all(|(_, is_repaired)| *is_repaired), "{objects:?}");
}

#[test]
fn hanging_agent_does_not_block_update() {
    let RunResult { violations, trace, final_state, .. } = run_on_this_thread(run_with_hanging_agent(next_address()));
    assert!(
        violations.is_empty() && final_state == "rests on the update",
        "{violations:?}: {final_state}\n{}",
        trace.join("\n")
    );
}

#[test]
fn restore_request_of_other_operator_is_not_removed() {
    assert!(run_on_this_thread(end_restore_request(true, next_address())));
    assert!(!run_on_this_thread(end_restore_request(false, next_address())));
}

#[test]
fn countdown_is_called_off_when_server_is_suspended() {
    let RunResult { violations, trace, final_state, .. } =
        run_on_this_thread(run_suspended_during_countdown(next_address()));
    assert!(
        violations.is_empty() && final_state == "rests on what ran",
        "{violations:?}: {final_state}\n{}",
        trace.join("\n")
    );
    let announcements: Vec<_> = trace.iter().filter(|line| line.contains("are told")).collect();
    let [first, last] = announcements[..] else { panic!("{announcements:?}") };
    assert!(first.contains("update/") && last.contains("cancelled"), "{announcements:?}");
}

#[test]
fn update_excludes_release_published_during_countdown() {
    let RunResult { violations, trace, final_state, .. } =
        run_on_this_thread(run_released_during_countdown(next_address()));
    assert!(
        violations.is_empty() && final_state == "rests on the update",
        "{violations:?}: {final_state}\n{}",
        trace.join("\n")
    );
    let positions = |text: &str| -> Vec<usize> {
        trace.iter().enumerate().filter(|(_, line)| line.contains(text)).map(|(at, _)| at).collect()
    };
    let (announced, written, released) =
        (positions("are told of"), positions("writes the pod template"), positions("lists newer releases"));
    let ([first, second, ..], [heap, update], [released]) = (&announced[..], &written[..], &released[..]) else {
        panic!("{}", trace.join("\n"))
    };
    let is_in_order = first < released && released < heap && heap < second && second < update;
    let is_cancelled = !positions("cancelled").is_empty();
    assert!(is_in_order && !is_cancelled, "{}", trace.join("\n"));
}

#[test]
fn named_backup_is_kept_while_another_is_taken() {
    let (named, retained, seconds, result) = run_on_this_thread(run_restore_during_backup(next_address()));
    let RunResult { violations, trace, .. } = result;
    assert_eq!(retained, Some(named), "{}", trace.join("\n"));
    assert_eq!(seconds, Some(10), "{}", trace.join("\n"));
    assert!(violations.is_empty(), "{violations:?}\n{}", trace.join("\n"));
}

#[test]
fn announcement_during_backup_flush_is_repeated_with_full_notice() {
    let (notice, backup_seconds, result) = run_on_this_thread(run_backup_before_countdown(next_address()));
    let RunResult { violations, trace, final_state, .. } = result;
    assert!(
        violations.is_empty() && final_state == "rests on the update",
        "{violations:?}: {final_state}\n{}",
        trace.join("\n")
    );
    let announced = || trace.iter().position(|line| line.contains("are told of"));
    let refused = trace.iter().position(|line| line.contains("refuses the announcement"));
    assert!(refused.is_some() && refused < announced(), "{}", trace.join("\n"));
    assert_eq!(notice, Some(invariants::NOTICE), "{}", trace.join("\n"));
    // A new operator reads how long the backup takes, although the agent does not reply during it.
    assert_eq!(backup_seconds, Some(10), "{}", trace.join("\n"));
}

#[test]
fn held_server_takes_settings_and_updates_when_released() {
    for (removes_hold, expected) in [(false, "rests on what ran"), (true, "rests on the update")] {
        let RunResult { violations, trace, final_state, .. } =
            run_on_this_thread(run_held(removes_hold, next_address()));
        assert!(
            violations.is_empty() && final_state == expected,
            "{violations:?}: {final_state}\n{}",
            trace.join("\n")
        );
        let changes = trace.iter().filter(|line| line.contains("writes the pod template")).count();
        assert_eq!(changes, if removes_hold { 2 } else { 1 }, "{}", trace.join("\n"));
        let is_reported = trace.iter().any(|line| line.contains(r#""PinnedToSet" "Held""#));
        assert_eq!(is_reported, !removes_hold, "{}", trace.join("\n"));
    }
}

#[test]
fn force_deleted_pod_keeps_volume_unchanged_while_running() {
    let RunResult { violations, trace, final_state, .. } =
        run_on_this_thread(run_with_forced_deletions(next_address()));
    assert!(
        violations.is_empty() && final_state == "rests on the update",
        "{violations:?}: {final_state}\n{}",
        trace.join("\n")
    );
    let has_waited = trace.iter().any(|line| line.contains("another server still runs"));
    assert!(has_waited, "{}", trace.join("\n"));
}

#[test]
fn interrupted_world_migration_is_restored_on_rollback() {
    let mut interrupted = 0;
    for number in 0..8 {
        if interrupted > 0 && !is_thorough() {
            break;
        }
        let result = run_on_this_thread(run_interrupted_migration(number, next_address()));
        let Some(RunResult { violations, trace, final_state, .. }) = result else { continue };
        interrupted += 1;
        assert!(
            violations.is_empty() && final_state == "rests on what ran",
            "{violations:?}: {final_state}\n{}",
            trace.join("\n")
        );
        let is_restored = trace.iter().any(|line| line.contains("finds the worlds of backup"));
        assert!(is_restored, "{}", trace.join("\n"));
    }
    assert!(interrupted > 0);
}

#[test]
fn server_is_not_stopped_on_stale_observation() {
    let mut slept = 0;
    for request in (0..).step_by(if is_thorough() { 1 } else { 6 }) {
        let (sleeps, result) = run_on_this_thread(run_with_delay_before(request, next_address()));
        let RunResult { violations, trace, .. } = result;
        assert!(violations.is_empty(), "delay before request {request}: {violations:?}\n{}", trace.join("\n"));
        slept += u32::from(sleeps.has_slept);
        if sleeps.requests_before > 0 {
            break;
        }
    }
    assert!(slept > if is_thorough() { 5 } else { 0 }, "{slept}");
}

#[test]
#[ignore = "takes an hour: cargo test -p operator --release --lib -- --ignored thousands_of_runs"]
fn simulation_of_thousands_of_runs_keeps_invariants() {
    run_all(0..5_000);
}
