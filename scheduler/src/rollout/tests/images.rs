//! Checks that no player is warned and no server is stopped while the node still has to pull images of the goal.

use super::*;
use crate::observation::RestartDue;

const WAITS: [(ImagesOnNode, WaitingOn); 2] =
    [(ImagesOnNode::OnTheirWay, WaitingOn::Images), (ImagesOnNode::Failed, WaitingOn::NoImage)];

fn step(seen: &Observation, minute: i64) -> Step {
    next_step(&GOAL, seen, open(), at(minute))
}

#[test]
fn missing_image_prevents_announcement_and_stop_at_every_step() {
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
fn window_and_staging_are_awaited_before_images() {
    for (images, _) in WAITS {
        let seen = Observation { images, ..lobby() };
        let opens = Step::Wait(WaitingOn::Window { opens: Some(at(SUNDAY + WEEK)) });
        assert_eq!(next_step(&GOAL, &seen, shut(), at(SUNDAY)), opens);
        assert_eq!(step(&Observation { staged: false, ..seen }, SUNDAY), Step::Stage);
    }
}

#[test]
fn image_pull_is_skipped_without_pod_or_need() {
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
fn restart_waits_for_running_image_pull_not_failed_one() {
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
fn missing_image_neither_hides_server_down_nor_blocks_drain() {
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
fn image_wait_requires_action_only_after_failed_pull() {
    assert!(WaitingOn::NoImage.needs_a_person() && !WaitingOn::Images.needs_a_person());
    assert_eq!((WaitingOn::NoImage.until(), WaitingOn::Images.until()), (None, None));
}

#[test]
fn unreachable_node_does_not_block_update() {
    let told = RecordedFacts { announced: Some(announced(SUNDAY + 5)), ..lobby().facts };
    let ready = RecordedFacts { saved: Some(saved(SUNDAY + 5)), ..told.clone() };
    let written = StatefulSetView { template: NEW, update: NEW, ..SET };
    for (facts, set) in [(lobby().facts, SET), (told, SET), (ready.clone(), SET), (ready, written)] {
        let seen = |images| Observation { images, facts: facts.clone(), set: Some(set), ..lobby() };
        assert_eq!(step(&seen(ImagesOnNode::Unknown), SUNDAY + 6), step(&seen(ImagesOnNode::Here), SUNDAY + 6));
    }
    assert!(matches!(step(&Observation { images: ImagesOnNode::Unknown, ..lobby() }, SUNDAY), Step::Announce { .. }));
}
