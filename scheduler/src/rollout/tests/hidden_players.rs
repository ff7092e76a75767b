//! Checks a server that answers without a player count.
//!
//! It counts as occupied.

use super::*;

fn hidden() -> Observation {
    Observation { players: Players::Hidden, ..lobby() }
}

#[test]
fn hidden_players_get_full_notice_and_deadline() {
    let step = |goal: &Goal, observation: &Observation, minute| next_step(goal, observation, open(), at(minute));
    let notice = |step| if let Step::Announce { notice, .. } = step { Some(notice) } else { None };
    assert_eq!(notice(step(&GOAL, &hidden(), SUNDAY)), Some(GOAL.notice));
    let deadline = SignedDuration::from_mins(20);
    let waits = Goal { policy: PlayerPolicy::WaitForEmpty { deadline }, ..GOAL };
    let until = at(SUNDAY + 20);
    assert_eq!(step(&waits, &hidden(), SUNDAY + 19), Step::Wait(WaitingOn::Players { until }));
    assert_eq!(notice(step(&waits, &hidden(), SUNDAY + 20)), Some(GOAL.notice));
}

#[test]
fn hidden_players_neither_shorten_countdown_nor_waive_save() {
    let mut observation = hidden();
    observation.facts.announced = Some(announced(SUNDAY + 5));
    let step = |observation: &Observation, minute| next_step(&GOAL, observation, open(), at(minute));
    assert_eq!(step(&observation, SUNDAY + 4), Step::Wait(WaitingOn::Countdown { ends: at(SUNDAY + 5) }));
    assert!(matches!(step(&observation, SUNDAY + 5), Step::Save { .. }));
    // Not Ready yet, but answering: players may be online.
    let pod = hidden().pod.map(|pod| PodView { phase: PodPhase::Down, ..pod });
    let unready = Observation { pod, ..hidden() };
    assert!(matches!(step(&unready, SUNDAY), Step::Announce { .. }));
}
