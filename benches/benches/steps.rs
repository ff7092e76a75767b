//! Pure. Measures how long the operator takes for the gate and the next step of a thousand servers in one night.
//!
//! The reference is as many queries of a cron expression with the `croner` crate, which is the least that a scheduler could do.

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Duration;

use benches::budgets::Bounds;
use benches::measure::median;
use chrono::{DateTime, Utc};
use criterion::Criterion;
use jiff::{SignedDuration, Timestamp};
use scheduler::maintenance::{Window, Windows};
use scheduler::observation::{
    AgentMemory, Announced, DataVersion, Disruption, EvictionPolicy, Goal, ImagesOnNode, NodeState, Observation,
    Partition, PlayerPolicy, Players, PodPhase, PodUid, PodView, RecordedFacts, Revision, SavedWorld, StableSet,
    StatefulSetView, Verification, WorldState,
};
use scheduler::rollout::{Step, next_step};

const SERVERS: usize = 1_000;
/// The limit of the design for the next step of all servers.
const TIME_LIMIT: Duration = Duration::from_millis(5);
/// The number of runs that are compared with the limit. The median counts.
const RUNS: usize = 49;
const OLD: Revision = Revision(1);
const NEW: Revision = Revision(2);
const POD: PodUid = PodUid(7);
const GOAL: Goal = Goal {
    revision: NEW,
    world: DataVersion(2),
    policy: PlayerPolicy::Announce,
    notice: SignedDuration::from_mins(5),
    empty_notice: SignedDuration::from_secs(10),
    stop_timeout: SignedDuration::from_mins(3),
    restart: None,
    eviction: EvictionPolicy::Always,
};

/// The states of an update in which a server can be observed. Each has another next step.
fn observed_states(opened_at: Timestamp, now: Timestamp) -> Vec<(Goal, Observation)> {
    let set = StatefulSetView {
        template: OLD,
        current: OLD,
        update: OLD,
        observed: true,
        partition: Partition::Closed,
        scaled_to_zero: false,
    };
    let facts =
        RecordedFacts { settled: Some(StableSet { revision: OLD, world: DataVersion(1) }), ..RecordedFacts::default() };
    let staged = Observation {
        stateful_set: Some(set),
        pod: Some(PodView { uid: POD, revision: OLD, world: DataVersion(1), phase: PodPhase::Up }),
        players: Players::Some(60),
        empty_since: None,
        verification: Verification::Passed,
        world: WorldState {
            floor: DataVersion(1),
            whole: true,
            backup: None,
            played_since: false,
            restore_requested: true,
        },
        node: NodeState::NotDraining,
        staged: true,
        crash_loop: false,
        images: ImagesOnNode::Present,
        data_restore_requested: true,
        user_restore_requested: false,
        agent_memory: AgentMemory::Known,
        facts,
    };
    let with_facts = |announced, saved| Observation {
        facts: RecordedFacts { announced, saved, ..staged.facts.clone() },
        ..staged.clone()
    };
    let disruption = Disruption::Update { goal: NEW, window_opened_at: opened_at };
    let announced = Some(Announced { act: disruption, pod: POD, ends: now });
    let saved = Some(SavedWorld { act: disruption, pod: POD, at: now, confirmed: true });
    let saved_by_now = with_facts(announced, saved);
    let written = Observation {
        stateful_set: Some(StatefulSetView { template: NEW, update: NEW, ..set }),
        ..saved_by_now.clone()
    };
    let rollout = Observation {
        stateful_set: Some(StatefulSetView { template: NEW, update: NEW, partition: Partition::Open, ..set }),
        pod: Some(PodView { uid: PodUid(8), revision: NEW, world: DataVersion(2), phase: PodPhase::Up }),
        ..saved_by_now.clone()
    };
    let up_to_date = Goal { revision: OLD, world: DataVersion(1), ..GOAL };
    vec![
        (up_to_date, staged.clone()),
        (GOAL, Observation { staged: false, ..staged.clone() }),
        (GOAL, staged.clone()),
        (GOAL, with_facts(announced, None)),
        (GOAL, saved_by_now),
        (GOAL, written),
        (GOAL, rollout),
    ]
}

fn measure_steps(criterion: &mut Criterion, bounds: &mut Bounds) {
    let window = Window::parse("0 4 * * 0", "Europe/Berlin", SignedDuration::from_hours(2)).expect("a literal");
    let windows = Windows { windows: vec![window], enabled: true, blackouts: Vec::new() };
    let opened_at: Timestamp = "2026-03-29T02:00:00Z".parse().expect("a literal");
    let now: Timestamp = "2026-03-29T02:20:00Z".parse().expect("a literal");
    let states = observed_states(opened_at, now);
    let servers: Vec<&(Goal, Observation)> = states.iter().cycle().take(SERVERS).collect();
    let all_steps = || -> Vec<Step> {
        let step = |(goal, observation): &&(Goal, Observation)| {
            next_step(goal, observation, windows.gate(black_box(now)), now)
        };
        servers.iter().map(step).collect()
    };
    // Checks that the states differ: no two states have the same next step.
    let steps = all_steps();
    let mut different: Vec<&Step> = Vec::new();
    for step in &steps[..states.len()] {
        assert!(!different.contains(&step), "{step:?} is the next step of two states");
        different.push(step);
    }

    let cron: croner::Cron = "0 4 * * 0".parse().expect("a literal");
    let local_time: DateTime<chrono_tz::Tz> =
        "2026-03-29T02:20:00Z".parse::<DateTime<Utc>>().expect("a literal").with_timezone(&chrono_tz::Europe::Berlin);
    let mut group = criterion.benchmark_group("a night of 1,000 servers");
    group.bench_function("reference: croner, next occurrence, for each", |bencher| {
        bencher.iter(|| (0..SERVERS).flat_map(|_| cron.find_next_occurrence(black_box(&local_time), false)).count());
    });
    group.bench_function("gate and next step of each", |bencher| bencher.iter(all_steps));
    group.finish();
    let took = || median(RUNS, all_steps).1.took;
    bounds.check_time("gate and next step of 1,000 servers", took(), TIME_LIMIT, took);
}

fn main() -> ExitCode {
    let (mut criterion, mut bounds) = (Criterion::default().configure_from_args(), Bounds::new("steps"));
    measure_steps(&mut criterion, &mut bounds);
    criterion.final_summary();
    bounds.finish()
}
