//! Pure. Measures how long the operator takes for the gate and the next step of a thousand servers in one night.
//!
//! The reference is as many queries of a cron expression with the `croner` crate, which is the least that a scheduler could do.

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Duration;

use benches::bounds::Bounds;
use benches::measure::median;
use chrono::{DateTime, Utc};
use criterion::Criterion;
use jiff::{SignedDuration, Timestamp};
use scheduler::maintenance::{Window, Windows};
use scheduler::observation::{
    AgentMemory, Announced, DataVersion, Disruption, EvictionSeen, Goal, ImagesOnNode, NodeState, Observation,
    Partition, PlayerPolicy, Players, PodPhase, PodUid, PodView, RecordedFacts, Revision, SavedWorld, StableSet,
    StatefulSetView, Verification, WorldState,
};
use scheduler::rollout::{Step, next_step};

const SERVERS: usize = 1_000;
/// The limit of the design for the next step of all servers.
const LONGEST: Duration = Duration::from_millis(5);
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
    patience: SignedDuration::from_mins(3),
    restart: None,
    eviction: EvictionSeen::Always,
};

/// The states of an update in which a server can be observed. Each has another next step.
fn moments(opened_at: Timestamp, now: Timestamp) -> Vec<(Goal, Observation)> {
    let set = StatefulSetView {
        template: OLD,
        current: OLD,
        update: OLD,
        observed: true,
        door: Partition::Closed,
        asleep: false,
    };
    let facts =
        RecordedFacts { settled: Some(StableSet { revision: OLD, world: DataVersion(1) }), ..RecordedFacts::default() };
    let staged = Observation {
        set: Some(set),
        pod: Some(PodView { uid: POD, revision: OLD, world: DataVersion(1), life: PodPhase::Up }),
        players: Players::Some(60),
        empty_since: None,
        verdict: Verification::Passed,
        world: WorldState {
            floor: DataVersion(1),
            whole: true,
            backup: None,
            played_since: false,
            restore_ordered: true,
        },
        node: NodeState::Stays,
        staged: true,
        crash_loop: false,
        images: ImagesOnNode::Here,
        data_ordered: true,
        copy_asked: false,
        agent_memory: AgentMemory::Kept,
        facts,
    };
    let with_facts = |announced, saved| Observation {
        facts: RecordedFacts { announced, saved, ..staged.facts.clone() },
        ..staged.clone()
    };
    let act = Disruption::Update { goal: NEW, window_opened_at: opened_at };
    let announced = Some(Announced { act, pod: POD, ends: now });
    let saved = Some(SavedWorld { act, pod: POD, at: now, confirmed: true });
    let saved_by_now = with_facts(announced, saved);
    let written =
        Observation { set: Some(StatefulSetView { template: NEW, update: NEW, ..set }), ..saved_by_now.clone() };
    let on_trial = Observation {
        set: Some(StatefulSetView { template: NEW, update: NEW, door: Partition::Open, ..set }),
        pod: Some(PodView { uid: PodUid(8), revision: NEW, world: DataVersion(2), life: PodPhase::Up }),
        ..saved_by_now.clone()
    };
    let at_its_newest = Goal { revision: OLD, world: DataVersion(1), ..GOAL };
    vec![
        (at_its_newest, staged.clone()),
        (GOAL, Observation { staged: false, ..staged.clone() }),
        (GOAL, staged.clone()),
        (GOAL, with_facts(announced, None)),
        (GOAL, saved_by_now),
        (GOAL, written),
        (GOAL, on_trial),
    ]
}

fn steps(criterion: &mut Criterion, bounds: &mut Bounds) {
    let window = Window::parse("0 4 * * 0", "Europe/Berlin", SignedDuration::from_hours(2)).expect("a literal");
    let windows = Windows { windows: vec![window], enabled: true, blackouts: Vec::new() };
    let opened_at: Timestamp = "2026-03-29T02:00:00Z".parse().expect("a literal");
    let now: Timestamp = "2026-03-29T02:20:00Z".parse().expect("a literal");
    let moments = moments(opened_at, now);
    let servers: Vec<&(Goal, Observation)> = moments.iter().cycle().take(SERVERS).collect();
    let night = || -> Vec<Step> {
        let step = |(goal, seen): &&(Goal, Observation)| next_step(goal, seen, windows.gate(black_box(now)), now);
        servers.iter().map(step).collect()
    };
    // Checks that each state is what its name says: no two states have the same next step.
    let answers = night();
    let mut different: Vec<&Step> = Vec::new();
    for answer in &answers[..moments.len()] {
        assert!(!different.contains(&answer), "{answer:?} twice: a moment is not what it is called");
        different.push(answer);
    }

    let cron: croner::Cron = "0 4 * * 0".parse().expect("a literal");
    let here: DateTime<chrono_tz::Tz> =
        "2026-03-29T02:20:00Z".parse::<DateTime<Utc>>().expect("a literal").with_timezone(&chrono_tz::Europe::Berlin);
    let mut group = criterion.benchmark_group("a night of 1,000 servers");
    group.bench_function("reference: croner, next occurrence, for each", |bencher| {
        bencher.iter(|| (0..SERVERS).flat_map(|_| cron.find_next_occurrence(black_box(&here), false)).count());
    });
    group.bench_function("gate and next step of each", |bencher| bencher.iter(night));
    group.finish();
    let took = || median(RUNS, night).1.took;
    bounds.time("gate and next step of 1,000 servers", took(), LONGEST, took);
}

fn main() -> ExitCode {
    let (mut criterion, mut bounds) = (Criterion::default().configure_from_args(), Bounds::of("steps"));
    steps(&mut criterion, &mut bounds);
    criterion.final_summary();
    bounds.end()
}
