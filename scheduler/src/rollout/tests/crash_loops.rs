//! Checks that no change begins by itself on a crash-looping server, and that a change that has begun continues.

use super::*;

fn is_blocked(observation: &Observation, gate: Gate) -> bool {
    is_blocked_by_crash_loop(&GOAL, &Observation { crash_loop: true, ..observation.clone() }, gate)
}

#[test]
fn crash_loop_blocks_new_updates_but_not_running_one() {
    assert!(is_blocked(&lobby(), open()) && is_blocked(&lobby(), shut()));
    assert!(!is_blocked_by_crash_loop(&GOAL, &lobby(), open()), "the server is in no crash loop");
    let warned = RecordedFacts { announced: Some(announced(SUNDAY + 5)), ..lobby().facts };
    let warned = Observation { facts: warned, ..lobby() };
    assert!(!is_blocked(&warned, open()) && is_blocked(&warned, shut()), "an announced update continues in its window");
    let written =
        Observation { stateful_set: Some(StatefulSetView { template: NEW, update: NEW, ..STATEFUL_SET }), ..lobby() };
    assert!(!is_blocked(&written, shut()), "a written template is committed or reverted");
    assert!(!is_blocked(&in_progress(PodPhase::Down), shut()));
    let of_something_else = Observation {
        stateful_set: Some(StatefulSetView { template: Revision(9), update: Revision(9), ..STATEFUL_SET }),
        ..lobby()
    };
    assert!(is_blocked(&of_something_else, open()), "a manual or outdated template is reverted first");
}
