//! Checks that a pod that the cluster does not run is waited for, and is neither failed nor rolled back.

use super::*;
use crate::observation::RestartDue;

const WAITS: Step = Step::Wait(WaitingOn::Cluster);
/// Another version set or other settings, such as a corrected image.
const CORRECTED: Goal = Goal { revision: Revision(0xc), ..GOAL };

/// The candidate has no node, volume or image. No agent answers.
fn pending() -> Observation {
    Observation { players: Players::Unknown { since: at(SUNDAY) }, ..in_progress(PodPhase::Pending) }
}

#[test]
fn pending_candidate_is_waited_for_without_time_limit() {
    for gate in [open(), shut()] {
        for minute in [SUNDAY + 1, SUNDAY + 60, SUNDAY + 10 * WEEK] {
            assert_eq!(next_step(&GOAL, &pending(), gate, at(minute)), WAITS);
        }
    }
    assert_eq!(WaitingOn::Cluster.until(), None);
    assert!(!WaitingOn::Cluster.needs_admin(), "no other server is stopped meanwhile: the update slot stays in use");
}

#[test]
fn other_goal_replaces_pending_candidate_when_gate_allows() {
    let stable = Goal { revision: OLD, world: DataVersion(1), ..GOAL };
    let now = at(SUNDAY + 9);
    for goal in [CORRECTED, stable] {
        let replaced =
            Step::RollForward { to: goal.revision, agent_unreachable: false, not_after: now + DECISION_VALID_FOR };
        assert_eq!(next_step(&goal, &pending(), open(), now), replaced);
        assert_eq!(next_step(&goal, &pending(), shut(), now), WAITS);
    }
    let mut failed = pending();
    failed.facts.failed = vec![CORRECTED.revision];
    assert_eq!(next_step(&CORRECTED, &failed, open(), now), WAITS, "it has failed before");
    let mut newer = pending();
    newer.world.floor = DataVersion(3);
    assert_eq!(next_step(&CORRECTED, &newer, open(), now), WAITS, "it cannot open the worlds");
    let first_start = Observation { facts: RecordedFacts::default(), ..pending() };
    assert!(matches!(next_step(&CORRECTED, &first_start, shut(), now), Step::RollForward { .. }), "without a window");
}

#[test]
fn failure_recorded_before_is_rolled_back_from_pending_pod() {
    let mut observation = pending();
    observation.facts.failed = vec![NEW];
    let step = next_step(&GOAL, &observation, shut(), at(SUNDAY + 1));
    assert!(matches!(step, Step::RollBack { to: OLD, agent_unreachable: false, .. }), "{step:?}");
}

#[test]
fn pending_stable_server_is_not_down_and_takes_update_in_window() {
    let mut observation = lobby();
    observation.players = Players::Unknown { since: at(SUNDAY) };
    observation.pod = observation.pod.map(|pod| PodView { phase: PodPhase::Pending, ..pod });
    let due = at(SUNDAY);
    let until = at(SUNDAY + 30);
    let restart = RestartDue { due, until, policy: PlayerPolicy::Announce, only_empty: false, yields_until: due };
    let restarts = Goal { restart: Some(restart), ..GOAL };
    assert_eq!(next_step(&restarts, &observation, shut(), at(SUNDAY + 9)), WAITS);
    let step = next_step(&GOAL, &observation, open(), at(SUNDAY + 9));
    assert!(matches!(step, Step::WriteTemplate { revision: NEW, .. }), "{step:?}");
}
