//! Checks that no player is warned and no server is stopped while the node still has to pull images of the goal.

use super::*;
use crate::observation::RestartDue;

const WAITS: [(ImagesOnNode, WaitingOn); 2] =
    [(ImagesOnNode::OnTheirWay, WaitingOn::Images), (ImagesOnNode::Failed, WaitingOn::NoImage)];

fn step(seen: &Observation, minute: i64) -> Step {
    next_step(&GOAL, seen, open(), at(minute))
}

#[test]
fn nobody_is_warned_and_nothing_is_stopped_for_an_image_that_the_node_has_not_got_however_far_it_came() {
    let told = RecordedFacts { announced: Some(announced(SUNDAY + 5)), ..lobby().facts };
    let ready = RecordedFacts { saved: Some(saved(SUNDAY + 5)), ..told.clone() };
    let written = StatefulSetView { template: NEW, update: NEW, ..SET };
    for (images, why) in WAITS {
        for (facts, set) in [(lobby().facts, SET), (told.clone(), SET), (ready.clone(), SET)] {
            let seen = Observation { images, facts, set: Some(set), ..lobby() };
            // Players of a running countdown are told that it is cancelled, unless the images may still arrive in time.
            let is_told = images == ImagesOnNode::Failed && seen.facts.announced.is_some();
            let expected = if is_told { call_off(update(SUNDAY), at(SUNDAY + 6)) } else { Step::Wait(why) };
            assert_eq!(step(&seen, SUNDAY + 6), expected, "{seen:?}");
            let ignored = Goal { policy: PlayerPolicy::Ignore, ..GOAL };
            assert_eq!(next_step(&ignored, &seen, open(), at(SUNDAY + 6)), expected, "whoever is asked");
        }
    }
    // The template is already written. Asking the node takes seconds. A failed pull may last weeks.
    let seen = |images| Observation { images, facts: ready.clone(), set: Some(written), ..lobby() };
    assert!(matches!(step(&seen(ImagesOnNode::Here), SUNDAY + 6), Step::Commit { .. }));
    assert_eq!(step(&seen(ImagesOnNode::OnTheirWay), SUNDAY + 6), Step::Wait(WaitingOn::Images));
    let back = Step::Restore { revision: OLD, door: Partition::Closed };
    assert_eq!(step(&seen(ImagesOnNode::Failed), SUNDAY + 6), back);
}

#[test]
fn before_the_window_it_is_the_window_that_is_waited_for_and_files_come_first_in_it() {
    for (images, _) in WAITS {
        let seen = Observation { images, ..lobby() };
        let opens = Step::Wait(WaitingOn::Window { opens: Some(at(SUNDAY + WEEK)) });
        assert_eq!(next_step(&GOAL, &seen, shut(), at(SUNDAY)), opens);
        assert_eq!(step(&Observation { staged: false, ..seen }, SUNDAY), Step::Stage);
    }
}

#[test]
fn a_server_without_a_pod_pulls_when_it_wakes_and_one_that_runs_the_goal_has_nothing_to_pull() {
    for (images, _) in WAITS {
        let asleep = Observation { images, pod: None, set: Some(StatefulSetView { asleep: true, ..SET }), ..lobby() };
        assert!(matches!(step(&asleep, SUNDAY), Step::WriteTemplate { .. }));
        let settled = Goal { revision: OLD, world: DataVersion(1), ..GOAL };
        let seen = Observation { images, ..lobby() };
        assert_eq!(next_step(&settled, &seen, open(), at(SUNDAY)), Step::Settled);
        let trial = Observation { images, ..on_trial(PodPhase::Up) };
        let closes = StatefulSetView { current: NEW, ..COMMITTED };
        assert_eq!(
            step(&Observation { set: Some(closes), ..trial }, SUNDAY),
            Step::MarkStable { settled: NEW },
            "it has started"
        );
    }
}

#[test]
fn what_cannot_be_pulled_keeps_no_restart_waiting_and_what_is_being_pulled_does_because_both_are_one() {
    let due = at(SUNDAY);
    let restart = RestartDue {
        due,
        until: at(SUNDAY + 30),
        policy: PlayerPolicy::Announce,
        only_empty: false,
        gives_way_until: due,
    };
    let goal = Goal { restart: Some(restart), ..GOAL };
    let step = |images| next_step(&goal, &Observation { images, ..lobby() }, open(), at(SUNDAY + 1));
    assert!(matches!(step(ImagesOnNode::Failed), Step::Announce { act: Disruption::Restart { .. }, .. }));
    assert_eq!(step(ImagesOnNode::OnTheirWay), Step::Wait(WaitingOn::Images));
    assert!(matches!(step(ImagesOnNode::Here), Step::Announce { act: Disruption::Update { .. }, .. }));
}

#[test]
fn a_server_that_is_down_is_said_to_be_down_and_a_node_that_is_emptied_waits_for_no_image() {
    let down = Some(PodView { life: PodPhase::Down, ..lobby().pod.unwrap() });
    let seen = Observation { images: ImagesOnNode::Failed, pod: down, ..lobby() };
    assert_eq!(step(&seen, SUNDAY), Step::Wait(WaitingOn::ServerDown));
    for (images, _) in WAITS {
        let marked = Observation { images, node: NodeState::Leaves, ..lobby() };
        let careful = Goal { eviction: EvictionSeen::Announced, ..GOAL };
        let begins = Step::BeginDrain { pod: POD, since: at(SUNDAY) };
        assert_eq!(next_step(&careful, &marked, open(), at(SUNDAY)), begins);
    }
}

#[test]
fn only_what_cannot_be_pulled_is_for_a_person_and_neither_is_ended_by_a_clock() {
    assert!(WaitingOn::NoImage.needs_a_person() && !WaitingOn::Images.needs_a_person());
    assert_eq!((WaitingOn::NoImage.until(), WaitingOn::Images.until()), (None, None));
}

#[test]
fn a_node_that_cannot_be_asked_keeps_nothing_waiting() {
    let told = RecordedFacts { announced: Some(announced(SUNDAY + 5)), ..lobby().facts };
    let ready = RecordedFacts { saved: Some(saved(SUNDAY + 5)), ..told.clone() };
    let written = StatefulSetView { template: NEW, update: NEW, ..SET };
    for (facts, set) in [(lobby().facts, SET), (told, SET), (ready.clone(), SET), (ready, written)] {
        let seen = |images| Observation { images, facts: facts.clone(), set: Some(set), ..lobby() };
        assert_eq!(step(&seen(ImagesOnNode::Unknown), SUNDAY + 6), step(&seen(ImagesOnNode::Here), SUNDAY + 6));
    }
    assert!(matches!(step(&Observation { images: ImagesOnNode::Unknown, ..lobby() }, SUNDAY), Step::Announce { .. }));
}
