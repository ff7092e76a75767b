//! Checks a countdown that ended long ago, because the operator was down or the save was refused.

use super::*;

/// The countdown ended five minutes into the window. From this minute on, it does not count any more.
const EXPIRED_AT: i64 = SUNDAY + 15;

fn with_announcement() -> Observation {
    let mut observation = lobby();
    observation.facts.announced = Some(announced(SUNDAY + 5));
    observation
}

fn with_save(minute: i64, confirmed: bool) -> Observation {
    let mut observation = with_announcement();
    observation.facts.saved = Some(SavedWorld { confirmed, ..saved(minute) });
    observation
}

fn step(observation: &Observation, minute: i64) -> Step {
    next_step(&GOAL, observation, open(), at(minute))
}

#[test]
fn overdue_stop_is_announced_again() {
    let just = at(EXPIRED_AT) - SignedDuration::from_secs(1);
    assert!(matches!(next_step(&GOAL, &with_announcement(), open(), just), Step::Save { .. }));
    for observation in [with_announcement(), with_save(SUNDAY + 5, true), with_save(EXPIRED_AT, true)] {
        let anew = step(&observation, EXPIRED_AT);
        assert!(matches!(anew, Step::Announce { notice, .. } if notice == GOAL.notice), "{anew:?}");
    }
    let mut written = with_save(EXPIRED_AT, true);
    written.stateful_set = Some(StatefulSetView { template: NEW, update: NEW, ..STATEFUL_SET });
    assert!(matches!(step(&written, EXPIRED_AT), Step::Announce { .. }), "also if only the commit remains");
}

#[test]
fn refused_save_does_not_repeat_announcements() {
    let retry_at = at(EXPIRED_AT + 1);
    let refused = with_save(EXPIRED_AT - 1, false);
    assert_eq!(step(&refused, EXPIRED_AT), Step::Wait(WaitingOn::SaveRefused { retry_at }));
    assert!(matches!(step(&refused, EXPIRED_AT + 1), Step::Save { .. }), "the save is tried again");
    let confirmed = with_save(EXPIRED_AT + 2, true);
    assert!(matches!(step(&confirmed, EXPIRED_AT + 2), Step::Announce { .. }));
}

#[test]
fn save_from_before_countdown_end_does_not_count() {
    assert!(matches!(step(&with_save(SUNDAY + 4, true), SUNDAY + 5), Step::Save { .. }));
    assert!(matches!(step(&with_save(SUNDAY + 5, true), SUNDAY + 5), Step::WriteTemplate { .. }));
}

#[test]
fn closing_window_repeats_announcement_only_if_time_allows() {
    let answer = |until| {
        let ending = Gate::NoNewStarts { opened_at: at(SUNDAY), until: at(until), opens: Some(at(SUNDAY + WEEK)) };
        next_step(&GOAL, &with_announcement(), ending, at(EXPIRED_AT))
    };
    assert!(matches!(answer(EXPIRED_AT + 6), Step::Announce { .. }));
    assert!(matches!(answer(EXPIRED_AT + 5), Step::Wait(WaitingOn::Window { .. })));
}

#[test]
fn overdue_restart_waits_for_empty_server_again() {
    let until = at(SUNDAY + 60);
    let due = at(SUNDAY);
    let restart = RestartDue { due, until, policy: PlayerPolicy::Announce, only_empty: true, yields_until: due };
    let goal = Goal { revision: OLD, restart: Some(restart), ..GOAL };
    let mut observation = lobby();
    observation.facts.announced = Some(Announced { act: Disruption::Restart { due }, ..announced(SUNDAY + 5) });
    let answer = |observation: &Observation, minute| next_step(&goal, observation, shut(), at(minute));
    assert!(matches!(answer(&observation, EXPIRED_AT - 1), Step::Save { .. }));
    assert_eq!(answer(&observation, EXPIRED_AT), Step::Wait(WaitingOn::Players { until }));
    observation.players = Players::Nobody;
    assert!(matches!(answer(&observation, EXPIRED_AT), Step::Announce { .. }));
}

#[test]
fn drain_announcement_never_expires() {
    let announced_for = |disruption| Announced { act: disruption, ..announced(SUNDAY) };
    assert!(announced_for(update(SUNDAY)).is_expired(at(EXPIRED_AT)));
    assert!(!announced_for(Disruption::Drain { since: at(SUNDAY) }).is_expired(at(SUNDAY + WEEK)));
}
