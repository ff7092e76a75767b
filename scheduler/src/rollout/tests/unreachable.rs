//! Checks which steps are taken without an agent, and when.

use super::*;

#[test]
fn silent_agent_delays_commit_only_until_deadline() {
    let mut observation = Observation { players: Players::Unknown { since: at(SUNDAY) }, ..lobby() };
    observation.stateful_set = Some(StatefulSetView { template: NEW, update: NEW, ..STATEFUL_SET });
    let until = at(SUNDAY + 3);
    assert_eq!(next_step(&GOAL, &observation, open(), at(SUNDAY + 2)), Step::Wait(WaitingOn::Agent { until }));
    assert!(matches!(next_step(&GOAL, &observation, open(), until), Step::Commit { agent_unreachable: true, .. }));
}

#[test]
fn announced_end_is_kept_while_agent_is_unreachable() {
    let mut observation = Observation { players: Players::Unknown { since: at(SUNDAY + 1) }, ..lobby() };
    observation.stateful_set = Some(StatefulSetView { template: NEW, update: NEW, ..STATEFUL_SET });
    observation.facts.announced = Some(announced(SUNDAY + 10));
    let until = at(SUNDAY + 10);
    assert_eq!(next_step(&GOAL, &observation, open(), at(SUNDAY + 9)), Step::Wait(WaitingOn::Agent { until }));
    assert!(matches!(next_step(&GOAL, &observation, open(), until), Step::Commit { agent_unreachable: true, .. }));
    // Another pod: its players were not warned.
    observation.facts.announced =
        observation.facts.announced.map(|announced| Announced { pod: PodUid(77), ..announced });
    assert!(matches!(
        next_step(&GOAL, &observation, open(), at(SUNDAY + 9)),
        Step::Commit { agent_unreachable: true, .. }
    ));
}
