//! Checks that players of a cancelled countdown are told so, once.

use super::*;

const OPEN_SINCE: i64 = SUNDAY;

fn told(ends: i64) -> Observation {
    Observation { facts: RecordedFacts { announced: Some(announced(ends)), ..lobby().facts }, ..lobby() }
}

#[test]
fn countdown_is_cancelled_if_window_closes_or_goal_changes() {
    let now = at(OPEN_SINCE + 2);
    let off = call_off(update(OPEN_SINCE), now);
    // A blackout, `suspend` and a withdrawn approval all shut the gate.
    assert_eq!(next_step(&GOAL, &told(OPEN_SINCE + 5), shut(), now), off);
    let as_before = Goal { revision: OLD, world: DataVersion(1), ..GOAL };
    assert_eq!(next_step(&as_before, &told(OPEN_SINCE + 5), open(), now), off);
    let mut held = told(OPEN_SINCE + 5);
    held.facts.failed = vec![NEW];
    assert_eq!(next_step(&GOAL, &held, open(), now), off);
    held = told(OPEN_SINCE + 5);
    held.world.floor = DataVersion(9);
    assert_eq!(next_step(&GOAL, &held, open(), now), off);
}

#[test]
fn expired_countdown_is_cancelled_unless_old_or_foreign() {
    let step = |seen: &Observation, minute| next_step(&GOAL, seen, shut(), at(minute));
    let seen = told(OPEN_SINCE + 5);
    assert_eq!(step(&seen, OPEN_SINCE + 6), call_off(update(OPEN_SINCE), at(OPEN_SINCE + 6)));
    let waits = |step| matches!(step, Step::Wait(WaitingOn::Window { .. }));
    assert!(waits(step(&seen, OPEN_SINCE + 60)), "whoever was told has forgotten it");
    let mut other = told(OPEN_SINCE + 5);
    other.facts.announced = Some(Announced { pod: PodUid(1), ..announced(OPEN_SINCE + 5) });
    assert!(waits(step(&other, OPEN_SINCE + 2)), "that pod is gone");
    assert!(waits(step(&lobby(), OPEN_SINCE + 2)), "nobody was told of anything");
}

#[test]
fn countdown_is_not_cancelled_while_its_stop_is_awaited() {
    let step = |seen: &Observation| next_step(&GOAL, seen, open(), at(OPEN_SINCE + 2));
    let counts = Step::Wait(WaitingOn::Countdown { ends: at(OPEN_SINCE + 5) });
    assert_eq!(step(&told(OPEN_SINCE + 5)), counts);
    assert_eq!(step(&Observation { staged: false, ..told(OPEN_SINCE + 5) }), Step::Stage);
    let pulled = Observation { images: ImagesOnNode::OnTheirWay, ..told(OPEN_SINCE + 5) };
    assert_eq!(step(&pulled), Step::Wait(WaitingOn::Images));
}
