//! Checks which steps are taken without an agent, and when.

use super::*;

#[test]
fn silent_agent_delays_commit_only_until_deadline() {
    let mut seen = Observation { players: Players::Unknown { since: at(SUNDAY) }, ..lobby() };
    seen.set = Some(StatefulSetView { template: NEW, update: NEW, ..SET });
    let until = at(SUNDAY + 3);
    assert_eq!(next_step(&GOAL, &seen, open(), at(SUNDAY + 2)), Step::Wait(WaitingOn::Agent { until }));
    assert!(matches!(next_step(&GOAL, &seen, open(), until), Step::Commit { unasked: true, .. }));
}

#[test]
fn announced_end_is_kept_while_agent_is_unreachable() {
    let mut seen = Observation { players: Players::Unknown { since: at(SUNDAY + 1) }, ..lobby() };
    seen.set = Some(StatefulSetView { template: NEW, update: NEW, ..SET });
    seen.facts.announced = Some(announced(SUNDAY + 10));
    let until = at(SUNDAY + 10);
    assert_eq!(next_step(&GOAL, &seen, open(), at(SUNDAY + 9)), Step::Wait(WaitingOn::Agent { until }));
    assert!(matches!(next_step(&GOAL, &seen, open(), until), Step::Commit { unasked: true, .. }));
    // Another pod: its players were not warned.
    seen.facts.announced = seen.facts.announced.map(|told| Announced { pod: PodUid(77), ..told });
    assert!(matches!(next_step(&GOAL, &seen, open(), at(SUNDAY + 9)), Step::Commit { unasked: true, .. }));
}
