//! Checks that no player is warned and no server is stopped while the node still has to pull images of the goal.

use super::*;
use crate::observation::RestartDue;

const WAITS: [(ImagesOnNode, WaitingOn); 2] =
    [(ImagesOnNode::Pulling, WaitingOn::Images), (ImagesOnNode::Failed, WaitingOn::NoImage)];

fn step(observation: &Observation, minute: i64) -> Step {
    next_step(&GOAL, observation, open(), at(minute))
}

#[test]
fn missing_image_prevents_announcement_and_stop_at_every_step() {
    let warned = RecordedFacts { announced: Some(announced(SUNDAY + 5)), ..lobby().facts };
    let ready = RecordedFacts { saved: Some(saved(SUNDAY + 5)), ..warned.clone() };
    let written = StatefulSetView { template: NEW, update: NEW, ..STATEFUL_SET };
    for (images, why) in WAITS {
        for (facts, stateful_set) in
            [(lobby().facts, STATEFUL_SET), (warned.clone(), STATEFUL_SET), (ready.clone(), STATEFUL_SET)]
        {
            let observation = Observation { images, facts, stateful_set: Some(stateful_set), ..lobby() };
            // Players of a running countdown are told that it is cancelled, unless the images may still arrive in time.
            let is_announced = images == ImagesOnNode::Failed && observation.facts.announced.is_some();
            let expected = if is_announced { cancellation(update(SUNDAY), at(SUNDAY + 6)) } else { Step::Wait(why) };
            assert_eq!(step(&observation, SUNDAY + 6), expected, "{observation:?}");
            let ignored = Goal { policy: PlayerPolicy::Ignore, ..GOAL };
            assert_eq!(next_step(&ignored, &observation, open(), at(SUNDAY + 6)), expected, "the policy is irrelevant");
        }
    }
    // The template is already written. Asking the node takes seconds. A failed pull may last weeks.
    let observation = |images| Observation { images, facts: ready.clone(), stateful_set: Some(written), ..lobby() };
    assert!(matches!(step(&observation(ImagesOnNode::Present), SUNDAY + 6), Step::Commit { .. }));
    assert_eq!(step(&observation(ImagesOnNode::Pulling), SUNDAY + 6), Step::Wait(WaitingOn::Images));
    let reverted = Step::Restore { revision: OLD, partition: Partition::Closed };
    assert_eq!(step(&observation(ImagesOnNode::Failed), SUNDAY + 6), reverted);
}

#[test]
fn window_and_staging_are_awaited_before_images() {
    for (images, _) in WAITS {
        let observation = Observation { images, ..lobby() };
        let opens = Step::Wait(WaitingOn::Window { opens: Some(at(SUNDAY + WEEK)) });
        assert_eq!(next_step(&GOAL, &observation, shut(), at(SUNDAY)), opens);
        assert_eq!(step(&Observation { staged: false, ..observation }, SUNDAY), Step::Stage);
    }
}

#[test]
fn image_pull_is_skipped_without_pod_or_need() {
    for (images, _) in WAITS {
        let scaled_to_zero = Observation {
            images,
            pod: None,
            stateful_set: Some(StatefulSetView { scaled_to_zero: true, ..STATEFUL_SET }),
            ..lobby()
        };
        assert!(matches!(step(&scaled_to_zero, SUNDAY), Step::WriteTemplate { .. }));
        let settled = Goal { revision: OLD, world: DataVersion(1), ..GOAL };
        let observation = Observation { images, ..lobby() };
        assert_eq!(next_step(&settled, &observation, open(), at(SUNDAY)), Step::UpToDate);
        let candidate = Observation { images, ..in_progress(PodPhase::Up) };
        let closes = StatefulSetView { current: NEW, ..COMMITTED };
        assert_eq!(
            step(&Observation { stateful_set: Some(closes), ..candidate }, SUNDAY),
            Step::MarkStable { revision: NEW },
            "the goal has already started"
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
        yields_until: due,
    };
    let goal = Goal { restart: Some(restart), ..GOAL };
    let step = |images| next_step(&goal, &Observation { images, ..lobby() }, open(), at(SUNDAY + 1));
    assert!(matches!(step(ImagesOnNode::Failed), Step::Announce { disruption: Disruption::Restart { .. }, .. }));
    assert_eq!(step(ImagesOnNode::Pulling), Step::Wait(WaitingOn::Images));
    assert!(matches!(step(ImagesOnNode::Present), Step::Announce { disruption: Disruption::Update { .. }, .. }));
}

#[test]
fn missing_image_neither_hides_server_down_nor_blocks_drain() {
    let down = Some(PodView { phase: PodPhase::Down, ..lobby().pod.unwrap() });
    let observation = Observation { images: ImagesOnNode::Failed, pod: down, ..lobby() };
    assert_eq!(step(&observation, SUNDAY), Step::Wait(WaitingOn::ServerDown));
    for (images, _) in WAITS {
        let marked = Observation { images, node: NodeState::Draining, ..lobby() };
        let careful = Goal { eviction: EvictionPolicy::Announced, ..GOAL };
        let begins = Step::BeginDrain { pod: POD, since: at(SUNDAY) };
        assert_eq!(next_step(&careful, &marked, open(), at(SUNDAY)), begins);
    }
}

#[test]
fn image_wait_requires_action_only_after_failed_pull() {
    assert!(WaitingOn::NoImage.needs_admin() && !WaitingOn::Images.needs_admin());
    assert_eq!((WaitingOn::NoImage.until(), WaitingOn::Images.until()), (None, None));
}

#[test]
fn unreachable_node_does_not_block_update() {
    let warned = RecordedFacts { announced: Some(announced(SUNDAY + 5)), ..lobby().facts };
    let ready = RecordedFacts { saved: Some(saved(SUNDAY + 5)), ..warned.clone() };
    let written = StatefulSetView { template: NEW, update: NEW, ..STATEFUL_SET };
    for (facts, stateful_set) in
        [(lobby().facts, STATEFUL_SET), (warned, STATEFUL_SET), (ready.clone(), STATEFUL_SET), (ready, written)]
    {
        let observation =
            |images| Observation { images, facts: facts.clone(), stateful_set: Some(stateful_set), ..lobby() };
        assert_eq!(
            step(&observation(ImagesOnNode::Unknown), SUNDAY + 6),
            step(&observation(ImagesOnNode::Present), SUNDAY + 6)
        );
    }
    assert!(matches!(step(&Observation { images: ImagesOnNode::Unknown, ..lobby() }, SUNDAY), Step::Announce { .. }));
}
