//! Checks that the server on a drained node is prepared for eviction, and that every other stop has priority.

use super::*;
use crate::observation::{ObservedDrain, RestartDue};

/// When the node's mark was first observed, in minutes: outside of every window.
const MARKED: i64 = SUNDAY - 1_000;

const DISRUPTION: Disruption = Disruption::Drain { since: Timestamp::constant(60 * MARKED, 0) };

/// The goal is running, and may be evicted after players are warned.
fn goal_with_eviction() -> Goal {
    Goal { revision: OLD, world: DataVersion(1), eviction: EvictionPolicy::Announced, ..GOAL }
}

/// 60 players, on a node that is drained.
fn draining() -> Observation {
    Observation { node: NodeState::Draining, ..lobby() }
}

fn begun(mut observation: Observation) -> Observation {
    observation.facts.draining = Some(ObservedDrain { since: at(MARKED), pod: POD });
    observation
}

fn with_announcement(mut observation: Observation) -> Observation {
    observation.facts.announced = Some(Announced { act: DISRUPTION, pod: POD, ends: at(MARKED + 5) });
    observation
}

fn saved(mut observation: Observation) -> Observation {
    observation.facts.saved = Some(SavedWorld { act: DISRUPTION, pod: POD, at: at(MARKED + 5), confirmed: true });
    observation
}

fn step(goal: &Goal, observation: &Observation, minute: i64) -> Step {
    next_step(goal, observation, shut(), at(minute))
}

const EVICTION: Step = Step::Wait(WaitingOn::Eviction);

#[test]
fn drain_is_recorded_announced_and_saved_before_eviction() {
    let not_after = |minute| at(minute) + DECISION_VALID_FOR;
    let record = Step::BeginDrain { pod: POD, since: at(MARKED) };
    assert_eq!(step(&goal_with_eviction(), &draining(), MARKED), record);
    let announcement =
        Step::Announce { disruption: DISRUPTION, pod: POD, notice: GOAL.notice, not_after: not_after(MARKED) };
    assert_eq!(step(&goal_with_eviction(), &begun(draining()), MARKED), announcement);
    let observation = with_announcement(begun(draining()));
    assert_eq!(
        step(&goal_with_eviction(), &observation, MARKED + 4),
        Step::Wait(WaitingOn::Countdown { ends: at(MARKED + 5) })
    );
    let save = Step::Save { disruption: DISRUPTION, pod: POD, not_after: not_after(MARKED + 5) };
    assert_eq!(step(&goal_with_eviction(), &observation, MARKED + 5), save);
    assert_eq!(step(&goal_with_eviction(), &saved(observation), MARKED + 6), EVICTION);
}

#[test]
fn eviction_stays_allowed_for_hours_despite_silent_agent() {
    let ready = saved(with_announcement(begun(draining())));
    assert_eq!(step(&goal_with_eviction(), &ready, MARKED + 600), EVICTION);
    let silent = Observation { players: Players::Unknown { since: at(MARKED + 599) }, ..ready.clone() };
    assert_eq!(step(&goal_with_eviction(), &silent, MARKED + 600), EVICTION);
    // Another pod on the same node was not warned. An unsaved world blocks the eviction.
    let other = Observation { pod: ready.pod.map(|pod| PodView { uid: PodUid(8), ..pod }), ..ready.clone() };
    assert!(matches!(step(&goal_with_eviction(), &other, MARKED + 600), Step::BeginDrain { pod: PodUid(8), .. }));
    let mut refused = ready;
    refused.facts.saved = refused.facts.saved.map(|saved| SavedWorld { confirmed: false, ..saved });
    let retry_at = at(MARKED + 7);
    assert_eq!(step(&goal_with_eviction(), &refused, MARKED + 6), Step::Wait(WaitingOn::SaveRefused { retry_at }));
}

#[test]
fn drain_waits_for_players_until_deadline_unless_empty() {
    let patient =
        Goal { policy: PlayerPolicy::WaitForEmpty { deadline: SignedDuration::from_mins(30) }, ..goal_with_eviction() };
    let observation = begun(draining());
    let until = at(MARKED + 30);
    assert_eq!(step(&patient, &observation, MARKED + 29), Step::Wait(WaitingOn::Players { until }));
    assert!(
        matches!(step(&patient, &observation, MARKED + 30), Step::Announce { notice, .. } if notice == GOAL.notice)
    );
    let empty = Observation { players: Players::Nobody, ..observation.clone() };
    assert!(matches!(step(&patient, &empty, MARKED + 1), Step::Announce { notice, .. } if notice == GOAL.empty_notice));
    // Players need no warning, or the agent cannot be reached.
    assert_eq!(
        step(&Goal { policy: PlayerPolicy::Ignore, ..goal_with_eviction() }, &observation, MARKED + 1),
        EVICTION
    );
    let silent = Observation { players: Players::Unknown { since: at(MARKED) }, ..observation };
    assert_eq!(
        step(&goal_with_eviction(), &silent, MARKED + 2),
        Step::Wait(WaitingOn::Agent { until: at(MARKED + 3) })
    );
    assert_eq!(step(&goal_with_eviction(), &silent, MARKED + 3), EVICTION);
}

#[test]
fn drain_ends_without_mark_but_ignores_unreadable_node() {
    let ready = saved(with_announcement(begun(draining())));
    let stays = Observation { node: NodeState::NotDraining, ..ready.clone() };
    assert_eq!(step(&goal_with_eviction(), &stays, MARKED + 7), Step::EndDrain);
    let unknown = Observation { node: NodeState::Unknown, ..ready.clone() };
    assert_eq!(step(&goal_with_eviction(), &unknown, MARKED + 7), Step::UpToDate);
    for eviction in [EvictionPolicy::Always, EvictionPolicy::Never] {
        let goal = Goal { eviction, ..goal_with_eviction() };
        assert_eq!(step(&goal, &ready, MARKED + 7), Step::EndDrain, "{eviction:?}");
        assert_eq!(step(&goal, &draining(), MARKED + 7), Step::UpToDate, "{eviction:?}");
    }
    // A record of another pod ends by itself.
    let elsewhere = Observation { pod: stays.pod.map(|pod| PodView { uid: PodUid(8), ..pod }), ..stays };
    assert_eq!(step(&goal_with_eviction(), &elsewhere, MARKED + 7), Step::UpToDate);
}

#[test]
fn drain_yields_to_update_in_window_unless_waiting() {
    let goal = Goal { eviction: EvictionPolicy::Announced, ..GOAL };
    let step = |observation: &Observation, gate| next_step(&goal, observation, gate, at(SUNDAY + 1));
    let ready = saved(with_announcement(begun(draining())));
    let disruption = Disruption::Update { goal: NEW, window_opened_at: at(SUNDAY) };
    let update = |step: Step| matches!(step, Step::Announce { disruption: found, .. } if found == disruption);
    assert!(update(step(&ready, open())), "one stop is enough for both");
    assert_eq!(step(&ready, shut()), EVICTION, "an eviction needs no window");
    let unstaged = Observation { staged: false, ..ready.clone() };
    assert_eq!(step(&unstaged, open()), EVICTION, "the eviction does not wait for staging");
    let patient = Goal { policy: PlayerPolicy::WaitForEmpty { deadline: SignedDuration::from_hours(2) }, ..goal };
    assert_eq!(next_step(&patient, &ready, open(), at(SUNDAY + 1)), EVICTION, "the drain has waited for players");
    let mut failed = ready.clone();
    failed.facts.failed = vec![NEW];
    assert_eq!(step(&failed, open()), EVICTION);
    // The template was written while the agent was unreachable, and later the agent answered.
    let written =
        Observation { stateful_set: Some(StatefulSetView { template: NEW, ..STATEFUL_SET }), ..ready.clone() };
    let until = at(SUNDAY + 120);
    assert_eq!(next_step(&patient, &written, open(), at(SUNDAY + 1)), Step::Wait(WaitingOn::Players { until }));
    // A change in progress is finished: its pod is replaced or verified first.
    let mut warned = begun(draining());
    warned.facts.announced = Some(Announced { act: disruption, pod: POD, ends: at(SUNDAY + 5) });
    assert_eq!(step(&warned, open()), Step::Wait(WaitingOn::Countdown { ends: at(SUNDAY + 5) }));
    let until = at(SUNDAY + 9);
    let candidate = Observation {
        node: NodeState::Draining,
        verification: Verification::Pending { until },
        ..in_progress(PodPhase::Up)
    };
    assert_eq!(step(&candidate, open()), Step::Wait(WaitingOn::Verification { until }));
    let starting = Observation { node: NodeState::Draining, ..in_progress(PodPhase::Starting { deadline: until }) };
    assert_eq!(step(&starting, open()), Step::Wait(WaitingOn::Start { until }));
}

#[test]
fn drain_yields_to_due_restart_unless_waiting_for_empty() {
    let restart = RestartDue {
        due: at(MARKED + 6),
        until: at(MARKED + 60),
        policy: PlayerPolicy::Announce,
        only_empty: false,
        yields_until: at(MARKED + 6),
    };
    let ready = saved(with_announcement(begun(draining())));
    let goal = |restart| Goal { restart: Some(restart), ..goal_with_eviction() };
    let is_announcement = |step: Step| matches!(step, Step::Announce { disruption: Disruption::Restart { due }, .. } if due == restart.due);
    assert!(is_announcement(step(&goal(restart), &ready, MARKED + 7)));
    assert_eq!(step(&goal(RestartDue { only_empty: true, ..restart }), &ready, MARKED + 7), EVICTION);
}

#[test]
fn drain_does_not_prepare_server_that_is_not_up() {
    for phase in [PodPhase::Down, PodPhase::Refused, PodPhase::Stopping { overdue_at: at(MARKED + 9) }] {
        let observation = Observation { pod: draining().pod.map(|pod| PodView { phase, ..pod }), ..draining() };
        let stays = Observation { node: NodeState::NotDraining, ..observation.clone() };
        assert_eq!(
            step(&goal_with_eviction(), &observation, MARKED),
            step(&goal_with_eviction(), &stays, MARKED),
            "{phase:?}"
        );
    }
}
