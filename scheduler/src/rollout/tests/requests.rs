//! Checks a user's request for an update while players count down to it.

use super::*;

/// The gate of a request three minutes after the window has opened.
const REQUESTED: Gate = Gate::Open {
    opened_at: Timestamp::constant(60 * (SUNDAY + 3), 0),
    until: Timestamp::constant(60 * (SUNDAY + 33), 0),
};

fn counting_down() -> Observation {
    Observation { facts: RecordedFacts { announced: Some(announced(SUNDAY + 5)), ..lobby().facts }, ..lobby() }
}

fn continued(goal: &Goal, observation: &Observation, minute: i64) -> Gate {
    let pod = observation.pod.map(|pod| pod.uid);
    continue_countdown(REQUESTED, goal.revision, &observation.facts, pod, at(minute))
}

fn step(observation: &Observation, minute: i64) -> Step {
    next_step(&GOAL, observation, continued(&GOAL, observation, minute), at(minute))
}

#[test]
fn request_during_countdown_keeps_its_end() {
    let mut observation = counting_down();
    for minute in [SUNDAY + 3, SUNDAY + 4] {
        assert_eq!(step(&observation, minute), Step::Wait(WaitingOn::Countdown { ends: at(SUNDAY + 5) }));
    }
    assert!(matches!(step(&observation, SUNDAY + 5), Step::Save { .. }));
    observation.facts.saved = Some(saved(SUNDAY + 5));
    assert!(matches!(step(&observation, SUNDAY + 5), Step::WriteTemplate { .. }));
    assert!(is_in_progress(&GOAL, &observation, continued(&GOAL, &observation, SUNDAY + 5)));
    // Without it, players would be told a later end.
    let anew = next_step(&GOAL, &counting_down(), REQUESTED, at(SUNDAY + 4));
    assert!(matches!(anew, Step::Announce { notice, .. } if notice == GOAL.notice), "{anew:?}");
}

#[test]
fn countdown_continued_by_request_is_cut_when_players_leave() {
    let left = Observation { players: Players::Nobody, empty_since: Some(at(SUNDAY)), ..counting_down() };
    let shortened = step(&left, SUNDAY + 3);
    assert!(matches!(shortened, Step::Announce { notice, .. } if notice == GOAL.empty_notice), "{shortened:?}");
}

#[test]
fn request_continues_no_other_countdown() {
    let other_goal = Goal { revision: Revision(0xc), ..GOAL };
    assert_eq!(continued(&other_goal, &counting_down(), SUNDAY + 3), REQUESTED);
    assert_eq!(continued(&GOAL, &lobby(), SUNDAY + 3), REQUESTED);
    assert_eq!(continued(&GOAL, &counting_down(), SUNDAY + 15), REQUESTED, "the countdown has expired");
    let mut other_pod = counting_down();
    other_pod.facts.announced = Some(Announced { pod: PodUid(1), ..announced(SUNDAY + 5) });
    assert_eq!(continued(&GOAL, &other_pod, SUNDAY + 3), REQUESTED);
    let restart = Announced { act: Disruption::Restart { due: at(SUNDAY) }, ..announced(SUNDAY + 5) };
    let restarting = Observation { facts: RecordedFacts { announced: Some(restart), ..lobby().facts }, ..lobby() };
    assert_eq!(continued(&GOAL, &restarting, SUNDAY + 3), REQUESTED);
    assert_eq!(continue_countdown(shut(), NEW, &counting_down().facts, Some(POD), at(SUNDAY + 3)), shut());
}
