//! Checks a countdown that ended long ago, because the operator was down or the save was refused.

use super::*;

/// The countdown ended five minutes into the window. From this minute on, it does not count any more.
const LONG_AGO: i64 = SUNDAY + 15;

fn told() -> Observation {
    let mut seen = lobby();
    seen.facts.announced = Some(announced(SUNDAY + 5));
    seen
}

fn with_a_save(minute: i64, confirmed: bool) -> Observation {
    let mut seen = told();
    seen.facts.saved = Some(SavedWorld { confirmed, ..saved(minute) });
    seen
}

fn step(seen: &Observation, minute: i64) -> Step {
    next_step(&GOAL, seen, open(), at(minute))
}

#[test]
fn overdue_stop_is_announced_again() {
    let just = at(LONG_AGO) - SignedDuration::from_secs(1);
    assert!(matches!(next_step(&GOAL, &told(), open(), just), Step::Save { .. }));
    for seen in [told(), with_a_save(SUNDAY + 5, true), with_a_save(LONG_AGO, true)] {
        let anew = step(&seen, LONG_AGO);
        assert!(matches!(anew, Step::Announce { notice, .. } if notice == GOAL.notice), "{anew:?}");
    }
    let mut written = with_a_save(LONG_AGO, true);
    written.set = Some(StatefulSetView { template: NEW, update: NEW, ..SET });
    assert!(matches!(step(&written, LONG_AGO), Step::Announce { .. }), "also where only the commit is left to do");
}

#[test]
fn refused_save_does_not_repeat_announcements() {
    let again = at(LONG_AGO + 1);
    let refused = with_a_save(LONG_AGO - 1, false);
    assert_eq!(step(&refused, LONG_AGO), Step::Wait(WaitingOn::SaveRefused { again }));
    assert!(matches!(step(&refused, LONG_AGO + 1), Step::Save { .. }), "whether it still is");
    let confirmed = with_a_save(LONG_AGO + 2, true);
    assert!(matches!(step(&confirmed, LONG_AGO + 2), Step::Announce { .. }));
}

#[test]
fn save_from_before_countdown_end_does_not_count() {
    assert!(matches!(step(&with_a_save(SUNDAY + 4, true), SUNDAY + 5), Step::Save { .. }));
    assert!(matches!(step(&with_a_save(SUNDAY + 5, true), SUNDAY + 5), Step::WriteTemplate { .. }));
}

#[test]
fn closing_window_repeats_announcement_only_if_time_allows() {
    let answer = |until| {
        let ending = Gate::NoNewStarts { opened_at: at(SUNDAY), until: at(until), opens: Some(at(SUNDAY + WEEK)) };
        next_step(&GOAL, &told(), ending, at(LONG_AGO))
    };
    assert!(matches!(answer(LONG_AGO + 6), Step::Announce { .. }));
    assert!(matches!(answer(LONG_AGO + 5), Step::Wait(WaitingOn::Window { .. })));
}

#[test]
fn overdue_restart_waits_for_empty_server_again() {
    let until = at(SUNDAY + 60);
    let due = at(SUNDAY);
    let restart = RestartDue { due, until, policy: PlayerPolicy::Announce, only_empty: true, gives_way_until: due };
    let goal = Goal { revision: OLD, restart: Some(restart), ..GOAL };
    let mut seen = lobby();
    seen.facts.announced = Some(Announced { act: Disruption::Restart { due }, ..announced(SUNDAY + 5) });
    let answer = |seen: &Observation, minute| next_step(&goal, seen, shut(), at(minute));
    assert!(matches!(answer(&seen, LONG_AGO - 1), Step::Save { .. }));
    assert_eq!(answer(&seen, LONG_AGO), Step::Wait(WaitingOn::Players { until }));
    seen.players = Players::Nobody;
    assert!(matches!(answer(&seen, LONG_AGO), Step::Announce { .. }));
}

#[test]
fn drain_announcement_never_expires() {
    let told = |act| Announced { act, ..announced(SUNDAY) };
    assert!(told(update(SUNDAY)).is_long_ago(at(LONG_AGO)));
    assert!(!told(Disruption::Drain { since: at(SUNDAY) }).is_long_ago(at(SUNDAY + WEEK)));
}
