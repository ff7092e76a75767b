//! Checks that no change begins by itself on a crash-looping server, and that a change that has begun continues.

use super::*;

fn held(seen: &Observation, gate: Gate) -> bool {
    is_held_by_crashes(&GOAL, &Observation { crash_loop: true, ..seen.clone() }, gate)
}

#[test]
fn crash_loop_blocks_new_updates_but_not_running_one() {
    assert!(held(&lobby(), open()) && held(&lobby(), shut()));
    assert!(!is_held_by_crashes(&GOAL, &lobby(), open()), "it is in none");
    let told = RecordedFacts { announced: Some(announced(SUNDAY + 5)), ..lobby().facts };
    let told = Observation { facts: told, ..lobby() };
    assert!(!held(&told, open()) && held(&told, shut()), "in this opening");
    let written = Observation { set: Some(StatefulSetView { template: NEW, update: NEW, ..SET }), ..lobby() };
    assert!(!held(&written, shut()), "it goes on, or is taken back");
    assert!(!held(&on_trial(PodPhase::Down), shut()));
    let of_something_else =
        Observation { set: Some(StatefulSetView { template: Revision(9), update: Revision(9), ..SET }), ..lobby() };
    assert!(held(&of_something_else, open()), "by hand, or of a goal of before: it goes back first");
}
