//! A server that answers, and does not say how many are on: each of them counts as somebody.

use super::*;
use crate::seen::Restart;

fn hidden() -> Seen {
    Seen { players: Players::Hidden, ..lobby() }
}

#[test]
fn who_is_hidden_is_told_for_as_long_as_anybody_and_waited_for_until_the_deadline() {
    let step = |goal: &Goal, seen: &Seen, minute| next_step(goal, seen, open(), at(minute));
    let notice = |step| if let Step::Announce { notice, .. } = step { Some(notice) } else { None };
    assert_eq!(notice(step(&GOAL, &hidden(), SUNDAY)), Some(GOAL.notice));
    let deadline = SignedDuration::from_mins(20);
    let waits = Goal { policy: Policy::WaitForEmpty { deadline }, ..GOAL };
    let until = at(SUNDAY + 20);
    assert_eq!(step(&waits, &hidden(), SUNDAY + 19), Step::Wait(WaitingOn::Players { until }));
    assert_eq!(notice(step(&waits, &hidden(), SUNDAY + 20)), Some(GOAL.notice));
}

#[test]
fn who_is_hidden_is_no_reason_to_cut_a_countdown_short_or_to_go_without_a_save() {
    let mut seen = hidden();
    seen.facts.announced = Some(announced(SUNDAY + 5));
    let step = |seen: &Seen, minute| next_step(&GOAL, seen, open(), at(minute));
    assert_eq!(step(&seen, SUNDAY + 4), Step::Wait(WaitingOn::Countdown { ends: at(SUNDAY + 5) }));
    assert!(matches!(step(&seen, SUNDAY + 5), Step::Save { .. }));
    // Not called Ready yet, and it answers: somebody may be on all the same.
    let pod = hidden().pod.map(|pod| Pod { life: Life::Down, ..pod });
    let unready = Seen { pod, ..hidden() };
    assert!(matches!(step(&unready, SUNDAY), Step::Announce { .. }));
}

#[test]
fn files_that_do_not_come_and_players_who_do_not_leave_keep_a_restart_away_for_its_night_and_no_longer() {
    let night = SUNDAY + 10;
    let of = |gives_way_until: i64| Restart {
        due: at(night),
        until: at(night + 30),
        policy: Policy::Announce,
        only_empty: false,
        gives_way_until: at(gives_way_until),
    };
    let deadline = SignedDuration::from_mins(45);
    let unstaged = (GOAL, Seen { staged: false, ..lobby() });
    let full = (Goal { policy: Policy::WaitForEmpty { deadline }, ..GOAL }, lobby());
    for (goal, seen) in [unstaged, full] {
        let step = |gives_way_until| {
            next_step(&Goal { restart: Some(of(gives_way_until)), ..goal }, &seen, open(), at(night + 1))
        };
        assert!(
            matches!(step(night + 360), Step::Stage | Step::Wait(WaitingOn::Players { .. })),
            "{:?}",
            step(night + 360)
        );
        // The night before it was left out already.
        let announced = matches!(step(night), Step::Announce { act: Act::Restart { .. }, .. });
        assert!(announced, "{:?}", step(night));
    }
}
