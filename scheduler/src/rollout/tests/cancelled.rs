//! Checks that players of a cancelled countdown are informed, once.

use super::*;

const OPEN_SINCE: i64 = SUNDAY;

fn with_announcement(ends: i64) -> Observation {
    Observation { facts: RecordedFacts { announced: Some(announced(ends)), ..lobby().facts }, ..lobby() }
}

#[test]
fn countdown_is_cancelled_if_window_closes_or_goal_changes() {
    let now = at(OPEN_SINCE + 2);
    let off = cancellation(update(OPEN_SINCE), now);
    // A blackout, `suspend` and a withdrawn approval all shut the gate.
    assert_eq!(next_step(&GOAL, &with_announcement(OPEN_SINCE + 5), shut(), now), off);
    let as_before = Goal { revision: OLD, world: DataVersion(1), ..GOAL };
    assert_eq!(next_step(&as_before, &with_announcement(OPEN_SINCE + 5), open(), now), off);
    let mut held = with_announcement(OPEN_SINCE + 5);
    held.facts.failed = vec![NEW];
    assert_eq!(next_step(&GOAL, &held, open(), now), off);
    held = with_announcement(OPEN_SINCE + 5);
    held.world.floor = DataVersion(9);
    assert_eq!(next_step(&GOAL, &held, open(), now), off);
}

#[test]
fn expired_countdown_is_cancelled_unless_old_or_foreign() {
    let step = |observation: &Observation, minute| next_step(&GOAL, observation, shut(), at(minute));
    let observation = with_announcement(OPEN_SINCE + 5);
    assert_eq!(step(&observation, OPEN_SINCE + 6), cancellation(update(OPEN_SINCE), at(OPEN_SINCE + 6)));
    let waits = |step| matches!(step, Step::Wait(WaitingOn::Window { .. }));
    assert!(waits(step(&observation, OPEN_SINCE + 60)), "an old countdown is not cancelled");
    let mut other = with_announcement(OPEN_SINCE + 5);
    other.facts.announced = Some(Announced { pod: PodUid(1), ..announced(OPEN_SINCE + 5) });
    assert!(waits(step(&other, OPEN_SINCE + 2)), "the announcement was to another pod");
    assert!(waits(step(&lobby(), OPEN_SINCE + 2)), "nothing was announced");
}

#[test]
fn countdown_is_not_cancelled_while_its_stop_is_awaited() {
    let step = |observation: &Observation| next_step(&GOAL, observation, open(), at(OPEN_SINCE + 2));
    let counts = Step::Wait(WaitingOn::Countdown { ends: at(OPEN_SINCE + 5) });
    assert_eq!(step(&with_announcement(OPEN_SINCE + 5)), counts);
    assert_eq!(step(&Observation { staged: false, ..with_announcement(OPEN_SINCE + 5) }), Step::Stage);
    let pulled = Observation { images: ImagesOnNode::Pulling, ..with_announcement(OPEN_SINCE + 5) };
    assert_eq!(step(&pulled), Step::Wait(WaitingOn::Images));
}
