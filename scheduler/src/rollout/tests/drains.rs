//! Checks that the server on a drained node is prepared for eviction, and that every other stop has priority.

use super::*;
use crate::observation::{DrainSeen, RestartDue};

/// When the node's mark was first observed, in minutes: outside of every window.
const MARKED: i64 = SUNDAY - 1_000;

const ACT: Disruption = Disruption::Drain { since: Timestamp::constant(60 * MARKED, 0) };

/// The goal is running, and may be evicted after players are warned.
fn careful() -> Goal {
    Goal { revision: OLD, world: DataVersion(1), eviction: EvictionSeen::Announced, ..GOAL }
}

/// 60 players, on a node that is drained.
fn marked() -> Observation {
    Observation { node: NodeState::Leaves, ..lobby() }
}

fn begun(mut seen: Observation) -> Observation {
    seen.facts.draining = Some(DrainSeen { since: at(MARKED), pod: POD });
    seen
}

fn told(mut seen: Observation) -> Observation {
    seen.facts.announced = Some(Announced { act: ACT, pod: POD, ends: at(MARKED + 5) });
    seen
}

fn saved(mut seen: Observation) -> Observation {
    seen.facts.saved = Some(SavedWorld { act: ACT, pod: POD, at: at(MARKED + 5), confirmed: true });
    seen
}

fn step(goal: &Goal, seen: &Observation, minute: i64) -> Step {
    next_step(goal, seen, shut(), at(minute))
}

const EVICTION: Step = Step::Wait(WaitingOn::Eviction);

#[test]
fn drain_is_recorded_announced_and_saved_before_eviction() {
    let not_after = |minute| at(minute) + DECISION_COUNTS;
    let record = Step::BeginDrain { pod: POD, since: at(MARKED) };
    assert_eq!(step(&careful(), &marked(), MARKED), record);
    let tell = Step::Announce { act: ACT, pod: POD, notice: GOAL.notice, not_after: not_after(MARKED) };
    assert_eq!(step(&careful(), &begun(marked()), MARKED), tell);
    let seen = told(begun(marked()));
    assert_eq!(step(&careful(), &seen, MARKED + 4), Step::Wait(WaitingOn::Countdown { ends: at(MARKED + 5) }));
    let save = Step::Save { act: ACT, pod: POD, not_after: not_after(MARKED + 5) };
    assert_eq!(step(&careful(), &seen, MARKED + 5), save);
    assert_eq!(step(&careful(), &saved(seen), MARKED + 6), EVICTION);
}

#[test]
fn eviction_stays_allowed_for_hours_despite_silent_agent() {
    let ready = saved(told(begun(marked())));
    assert_eq!(step(&careful(), &ready, MARKED + 600), EVICTION);
    let silent = Observation { players: Players::Unknown { since: at(MARKED + 599) }, ..ready.clone() };
    assert_eq!(step(&careful(), &silent, MARKED + 600), EVICTION);
    // Another pod on the same node was not warned. An unsaved world blocks the eviction.
    let other = Observation { pod: ready.pod.map(|pod| PodView { uid: PodUid(8), ..pod }), ..ready.clone() };
    assert!(matches!(step(&careful(), &other, MARKED + 600), Step::BeginDrain { pod: PodUid(8), .. }));
    let mut refused = ready;
    refused.facts.saved = refused.facts.saved.map(|saved| SavedWorld { confirmed: false, ..saved });
    let again = at(MARKED + 7);
    assert_eq!(step(&careful(), &refused, MARKED + 6), Step::Wait(WaitingOn::SaveRefused { again }));
}

#[test]
fn drain_waits_for_players_until_deadline_unless_empty() {
    let patient = Goal { policy: PlayerPolicy::WaitForEmpty { deadline: SignedDuration::from_mins(30) }, ..careful() };
    let seen = begun(marked());
    let until = at(MARKED + 30);
    assert_eq!(step(&patient, &seen, MARKED + 29), Step::Wait(WaitingOn::Players { until }));
    assert!(matches!(step(&patient, &seen, MARKED + 30), Step::Announce { notice, .. } if notice == GOAL.notice));
    let nobody = Observation { players: Players::Nobody, ..seen.clone() };
    assert!(
        matches!(step(&patient, &nobody, MARKED + 1), Step::Announce { notice, .. } if notice == GOAL.empty_notice)
    );
    // Players need no warning, or the agent cannot be reached.
    assert_eq!(step(&Goal { policy: PlayerPolicy::Ignore, ..careful() }, &seen, MARKED + 1), EVICTION);
    let silent = Observation { players: Players::Unknown { since: at(MARKED) }, ..seen };
    assert_eq!(step(&careful(), &silent, MARKED + 2), Step::Wait(WaitingOn::Agent { until: at(MARKED + 3) }));
    assert_eq!(step(&careful(), &silent, MARKED + 3), EVICTION);
}

#[test]
fn drain_ends_without_mark_but_ignores_unreadable_node() {
    let ready = saved(told(begun(marked())));
    let stays = Observation { node: NodeState::Stays, ..ready.clone() };
    assert_eq!(step(&careful(), &stays, MARKED + 7), Step::EndDrain);
    let unknown = Observation { node: NodeState::Unknown, ..ready.clone() };
    assert_eq!(step(&careful(), &unknown, MARKED + 7), Step::Settled);
    for eviction in [EvictionSeen::Always, EvictionSeen::Never] {
        let goal = Goal { eviction, ..careful() };
        assert_eq!(step(&goal, &ready, MARKED + 7), Step::EndDrain, "{eviction:?}");
        assert_eq!(step(&goal, &marked(), MARKED + 7), Step::Settled, "{eviction:?}");
    }
    // A record of another pod ends by itself.
    let elsewhere = Observation { pod: stays.pod.map(|pod| PodView { uid: PodUid(8), ..pod }), ..stays };
    assert_eq!(step(&careful(), &elsewhere, MARKED + 7), Step::Settled);
}

#[test]
fn drain_yields_to_update_in_window_unless_waiting() {
    let goal = Goal { eviction: EvictionSeen::Announced, ..GOAL };
    let step = |seen: &Observation, gate| next_step(&goal, seen, gate, at(SUNDAY + 1));
    let ready = saved(told(begun(marked())));
    let act = Disruption::Update { goal: NEW, window_opened_at: at(SUNDAY) };
    let update = |step: Step| matches!(step, Step::Announce { act: told, .. } if told == act);
    assert!(update(step(&ready, open())), "one restart for both");
    assert_eq!(step(&ready, shut()), EVICTION, "no window is needed to be evicted");
    let unstaged = Observation { staged: false, ..ready.clone() };
    assert_eq!(step(&unstaged, open()), EVICTION, "files that do not come may never come");
    let patient = Goal { policy: PlayerPolicy::WaitForEmpty { deadline: SignedDuration::from_hours(2) }, ..goal };
    assert_eq!(next_step(&patient, &ready, open(), at(SUNDAY + 1)), EVICTION, "it was waited for players before");
    let mut failed = ready.clone();
    failed.facts.failed = vec![NEW];
    assert_eq!(step(&failed, open()), EVICTION);
    // The template was written while the agent was unreachable, and later the agent answered.
    let written = Observation { set: Some(StatefulSetView { template: NEW, ..SET }), ..ready.clone() };
    let until = at(SUNDAY + 120);
    assert_eq!(next_step(&patient, &written, open(), at(SUNDAY + 1)), Step::Wait(WaitingOn::Players { until }));
    // A change in progress is finished: its pod is replaced or verified first.
    let mut under_way = begun(marked());
    under_way.facts.announced = Some(Announced { act, pod: POD, ends: at(SUNDAY + 5) });
    assert_eq!(step(&under_way, open()), Step::Wait(WaitingOn::Countdown { ends: at(SUNDAY + 5) }));
    let until = at(SUNDAY + 9);
    let trial =
        Observation { node: NodeState::Leaves, verdict: Verification::Pending { until }, ..on_trial(PodPhase::Up) };
    assert_eq!(step(&trial, open()), Step::Wait(WaitingOn::Proof { until }));
    let starting = Observation { node: NodeState::Leaves, ..on_trial(PodPhase::Starting { gives_up_at: until }) };
    assert_eq!(step(&starting, open()), Step::Wait(WaitingOn::Start { until }));
}

#[test]
fn drain_yields_to_due_restart_unless_waiting_for_empty() {
    let restart = RestartDue {
        due: at(MARKED + 6),
        until: at(MARKED + 60),
        policy: PlayerPolicy::Announce,
        only_empty: false,
        gives_way_until: at(MARKED + 6),
    };
    let ready = saved(told(begun(marked())));
    let goal = |restart| Goal { restart: Some(restart), ..careful() };
    let told_of =
        |step: Step| matches!(step, Step::Announce { act: Disruption::Restart { due }, .. } if due == restart.due);
    assert!(told_of(step(&goal(restart), &ready, MARKED + 7)));
    assert_eq!(step(&goal(RestartDue { only_empty: true, ..restart }), &ready, MARKED + 7), EVICTION);
}

#[test]
fn drain_does_not_prepare_server_that_is_not_up() {
    for life in [PodPhase::Down, PodPhase::Refused, PodPhase::Stopping { lost_at: at(MARKED + 9) }] {
        let seen = Observation { pod: marked().pod.map(|pod| PodView { life, ..pod }), ..marked() };
        let stays = Observation { node: NodeState::Stays, ..seen.clone() };
        assert_eq!(step(&careful(), &seen, MARKED), step(&careful(), &stays, MARKED), "{life:?}");
    }
}
