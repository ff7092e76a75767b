//! Explores the rollout together with a small model of its environment, state by state.
//!
//! The model has the `StatefulSet` controller as measured, pods, the volume, players, agents and windows. It also has changes of the goal,
//! faults, and a process that resumes with an old decision.
//!
//! Invariants, each with its number in the messages:
//!
//! - (1) No server is stopped without announcement and save.
//! - (2) No change happens outside the gate.
//! - (3) A lost pod is recreated with the revision that ran.
//! - (4) A goal, and each instant of a schedule, causes one deliberate restart.
//! - (5) A starting pod is not deleted before its deadline.
//! - (6) No Minecraft below the floor of the world is started.
//! - (7) From every state an end can be reached without luck or help.
//! - (8) A failed revision stays failed.
//! - (9) At rest the partition is closed and no other template is written.
//! - (10) No rollback ends at a revision that cannot open the world.
//! - (11) Outside of windows an update begins only where no player minds, and never with a newer Minecraft.
//! - (12) An eviction is allowed only when the players of a verified server were warned, had their time, and its world is saved.
//! - (13) A user who has chosen a backup is not asked again, and no server is stopped for a backup that is already restored.
//! - (14) No player is warned of an update, and no server is stopped for one, whose images its node lacks, if the node can be asked.
//! - (15) No update begins by itself on a crash-looping server.
//! - (16) No revision is recorded as failed while the cluster does not run its pod.

#![expect(clippy::print_stdout, reason = "cargo shows the explored states on failure or on request")]

mod action;
mod backups;
mod crashes;
mod explore;
mod images;
mod moves;
mod observation;
mod random_runs;
mod scenarios;
mod state;

use explore::{Found, explore};
use random_runs::{RunResult, run_traces};
use scenarios::{named, scenarios};
use state::{Rule, Scenario};

fn run(s: Scenario, faults: u8, changes: u8) -> Found {
    let found = explore(&Scenario { faults, changes, agent_costs: faults > 0, ..s });
    println!(
        "{faults}/{changes} {}: {} states, {} moves, {} ends; {:?}",
        s.name, found.states, found.moves, found.ends, found.events
    );
    found
}

/// Asserts that no invariant is broken. Otherwise prints the whole trace, because the names of the invariants alone do not help.
fn assert_invariants(s: Scenario, faults: u8, changes: u8) -> Found {
    let found = run(s, faults, changes);
    for (invariant, trace) in &found.broken {
        println!("BROKEN in {}: {invariant}\n    {}", s.name, trace.join("\n    "));
    }
    let broken: Vec<_> = found.broken.keys().collect();
    assert!(broken.is_empty(), "{}: {broken:?}", s.name);
    found
}

#[test]
fn model_holds_without_faults_in_every_scenario() {
    for s in scenarios() {
        assert_invariants(s, 0, 1);
    }
}

/// An answer that no run of this test gives is not explored by any other run either. Files are always staged in this model.
#[test]
fn model_holds_with_two_changes_or_one_fault() {
    let mut given = std::collections::BTreeSet::new();
    for (name, faults, changes) in [
        ("plain: B good", 0, 2),
        ("one-way: B flaky", 0, 2),
        ("one-way: B flaky", 1, 1),
        ("one-way without a copy: B flaky", 1, 1),
        ("one-way without a copy, and another goal would mend it: B flaky", 1, 2),
        ("one-way, and a person asks for a copy: B flaky", 1, 1),
        ("first start: A flaky", 1, 1),
        ("hand edit is bad: M never ready", 1, 1),
        ("empty first: B flaky", 0, 1),
        ("saves are refused: B bad", 1, 1),
        ("restart by the clock: B flaky", 1, 1),
        ("restart by the clock in the night of the window: B flaky", 1, 1),
        ("opportunistic: B flaky", 1, 1),
        ("opportunistic, with a restart by the clock: B bad", 1, 1),
        ("the node is emptied: B flaky", 1, 1),
        ("an image has to be pulled: B flaky", 1, 1),
        ("crashes again and again: B flaky", 1, 1),
        ("the cluster has no room: B flaky", 1, 1),
        ("crashes again and again, and a person asks for a copy: B good", 1, 0),
    ] {
        given.extend(assert_invariants(named(name), faults, changes).decisions.into_keys());
    }
    let missing: Vec<_> = DECISIONS.into_iter().filter(|decision| !given.contains(decision)).collect();
    assert_eq!(missing, ["stage"]);
}

#[test]
#[ignore = "minutes without optimisation: cargo test -p scheduler --release --test rollout_model -- --ignored"]
fn model_holds_everywhere_with_two_changes_and_one_fault() {
    for s in scenarios() {
        assert_invariants(s, 0, 2);
        assert_invariants(s, 1, 2);
    }
}

/// Asserts that no invariant is broken in this many traces. Otherwise prints the shortest trace of each kind, and its number.
fn assert_random_traces(seeds: impl Iterator<Item = u64>) -> RunResult {
    let traces = run_traces(seeds);
    println!("{} moves, {} faults; {:?}", traces.moves, traces.faults, traces.ends);
    for (invariant, (seed, trace)) in &traces.broken {
        println!("BROKEN by trace {seed}: {invariant}\n    {}", trace.join("\n    "));
    }
    let broken: Vec<_> = traces.broken.iter().map(|(invariant, (seed, _))| (invariant, seed)).collect();
    assert!(broken.is_empty(), "{broken:?}");
    traces
}

/// Traces among the first million that once broke an invariant.
const REGRESSION_SEEDS: [u64; 1] = [336_361];

#[test]
fn model_holds_and_ends_in_twenty_thousand_long_runs() {
    let traces = assert_random_traces((0..20_000).chain(REGRESSION_SEEDS));
    // A run without events proves nothing.
    assert!(traces.faults > 60_000, "{}", traces.faults);
    for end in [
        "settled",
        "blocked",
        "belowFloor",
        "rollbackWouldLoseProgress",
        "noBackup",
        "noImage",
        "worldRefused",
        "scaledToZero",
        "nodeLost",
    ] {
        assert!(traces.ends.contains_key(end), "no trace ends with {end}: {:?}", traces.ends);
    }
}

#[test]
#[ignore = "a million traces: cargo test -p scheduler --release --test rollout_model -- --ignored million"]
fn model_holds_in_a_million_long_runs() {
    assert_random_traces(0..1_000_000);
}

#[test]
#[ignore = "needs gigabytes and minutes: cargo test -p scheduler --release --test rollout_model -- --ignored three"]
fn model_holds_in_one_update_with_any_three_faults() {
    for name in ["plain: B flaky", "one-way: B flaky"] {
        assert_invariants(named(name), 3, 1);
    }
}

#[test]
#[ignore = "needs gigabytes and minutes: cargo test -p scheduler --release --test rollout_model -- --ignored two"]
fn model_holds_with_any_two_faults_and_other_events() {
    for name in [
        "one-way, and a person asks for a copy: B flaky",
        "the node is emptied: B flaky",
        "an image has to be pulled: B flaky",
        "restart by the clock: B flaky",
        "opportunistic: B flaky",
        "crashes again and again: B flaky",
        "saves are refused: B bad",
    ] {
        assert_invariants(named(name), 2, 1);
    }
}

#[test]
fn model_breaks_without_each_design_rule() {
    for (rule, scenario, faults, broken) in [
        (Rule::NotAfter, "plain: B good", 1, "2"),
        (Rule::SaveOutlivesPlayers, "plain: B good", 0, "7"),
        (Rule::TemplateIsReplaced, "plain: B good", 1, "7"),
        (Rule::OneOfflineBackup, "one-way: B never ready", 1, "10"),
    ] {
        let found = run(Scenario { without: Some(rule), ..named(scenario) }, faults, 1);
        assert!(
            found.broken.keys().any(|invariant| invariant.starts_with(broken)),
            "{rule:?}: {:?}",
            found.broken.keys()
        );
    }
}

/// Every word that `Step::name` and `WaitingOn::name` return.
const DECISIONS: [&str; 41] = [
    "announce",
    "scaledToZero",
    "agent",
    "beginDrain",
    "belowFloor",
    "markStable",
    "cluster",
    "commit",
    "controller",
    "countdown",
    "create",
    "endDrain",
    "endRestart",
    "eviction",
    "firstStartFailed",
    "rollForward",
    "blocked",
    "images",
    "markFailed",
    "noBackup",
    "noImage",
    "nodeLost",
    "requestRestore",
    "players",
    "podMissing",
    "podStopping",
    "verification",
    "restart",
    "restore",
    "rollBack",
    "save",
    "saveRefused",
    "serverDown",
    "settled",
    "stage",
    "start",
    "reannounce",
    "rollbackWouldLoseProgress",
    "window",
    "worldRefused",
    "writeTemplate",
];
