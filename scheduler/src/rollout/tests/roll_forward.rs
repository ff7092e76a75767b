//! Checks that a corrected version set replaces a failed one that only an admin could roll back.

use super::*;

const FIXED: Revision = Revision(0xc);
const CORRECTED: Goal = Goal { revision: FIXED, ..GOAL };

/// A newer Minecraft has converted the worlds and failed, and no backup exists.
fn stuck(phase: PodPhase, players: Players) -> Observation {
    let mut observation = Observation { players, ..in_progress(phase) };
    observation.facts.failed = vec![NEW];
    observation.world.floor = DataVersion(2);
    observation
}

fn forward(now: Timestamp) -> Step {
    Step::RollForward { to: FIXED, agent_unreachable: false, not_after: now + DECISION_VALID_FOR }
}

#[test]
fn corrected_goal_rolls_forward_where_rollback_needs_manual_decision() {
    let now = at(SUNDAY + 1);
    for (backup, played_since, decides) in
        [(None, false, WaitingOn::NoBackup), (Some(DataVersion(1)), true, WaitingOn::RollbackWouldLoseProgress)]
    {
        let mut observation = stuck(PodPhase::Down, Players::Nobody);
        (observation.world.backup, observation.world.played_since) = (backup, played_since);
        assert_eq!(next_step(&GOAL, &observation, open(), now), Step::Wait(decides), "a failed goal is not retried");
        assert_eq!(
            next_step(&CORRECTED, &observation, shut(), now),
            Step::Wait(decides),
            "an update waits for its window"
        );
        assert_eq!(next_step(&CORRECTED, &observation, open(), now), forward(now));
        observation.staged = false;
        assert_eq!(next_step(&CORRECTED, &observation, open(), now), Step::Stage);
    }
}

#[test]
fn roll_forward_refuses_failed_stable_or_too_old_goal() {
    let observation = stuck(PodPhase::Down, Players::Nobody);
    let answer = |goal: Goal, observation: &Observation| next_step(&goal, observation, open(), at(SUNDAY + 1));
    let waits = Step::Wait(WaitingOn::NoBackup);
    assert_eq!(answer(Goal { world: DataVersion(1), ..CORRECTED }, &observation), waits);
    assert_eq!(answer(Goal { revision: OLD, world: DataVersion(1), ..CORRECTED }, &observation), waits);
    assert_eq!(answer(Goal { revision: OLD, ..CORRECTED }, &observation), waits);
    let mut twice = observation.clone();
    twice.facts.failed.push(FIXED);
    assert_eq!(answer(CORRECTED, &twice), waits);
    let mut mixed = observation.clone();
    mixed.world.whole = false;
    assert_eq!(answer(CORRECTED, &mixed), waits);
    let failed = Observation { images: ImagesOnNode::Failed, ..observation.clone() };
    assert_eq!(answer(CORRECTED, &failed), waits);
    let pulled = Observation { images: ImagesOnNode::Pulling, ..observation.clone() };
    assert_eq!(answer(CORRECTED, &pulled), Step::Wait(WaitingOn::Images));
    // The starting server may still convert the worlds to its own Minecraft.
    let newer = Observation { pod: observation.pod.map(|pod| PodView { world: DataVersion(3), ..pod }), ..observation };
    assert_eq!(answer(CORRECTED, &newer), waits);
}

#[test]
fn roll_forward_announces_and_waits_for_running_start() {
    let now = at(SUNDAY + 1);
    let mut observation = stuck(PodPhase::Up, Players::Some(3));
    let disruption = Disruption::Update { goal: FIXED, window_opened_at: at(SUNDAY) };
    let not_after = now + DECISION_VALID_FOR;
    let announce = Step::Announce { disruption, pod: PodUid(8), notice: CORRECTED.notice, not_after };
    assert_eq!(next_step(&CORRECTED, &observation, open(), now), announce);
    // Four minutes before the window ends, a countdown of five minutes does not fit.
    assert_eq!(next_step(&CORRECTED, &observation, open(), at(SUNDAY + 116)), Step::Wait(WaitingOn::NoBackup));
    observation.facts.announced = Some(Announced { act: disruption, pod: PodUid(8), ends: at(SUNDAY + 6) });
    let ends = at(SUNDAY + 6);
    assert_eq!(next_step(&CORRECTED, &observation, open(), now), Step::Wait(WaitingOn::Countdown { ends }));
    // A blackout begins, or the goal is the failed revision again: the update is cancelled.
    assert_eq!(next_step(&CORRECTED, &observation, shut(), now), cancellation(disruption, now));
    assert_eq!(next_step(&GOAL, &observation, open(), now), cancellation(disruption, now));
    let over = at(SUNDAY + 7);
    let save = Step::Save { disruption, pod: PodUid(8), not_after: over + DECISION_VALID_FOR };
    assert_eq!(next_step(&CORRECTED, &observation, open(), over), save);
    observation.facts.saved = Some(SavedWorld { act: disruption, pod: PodUid(8), at: over, confirmed: true });
    assert_eq!(next_step(&CORRECTED, &observation, open(), over), forward(over));

    let until = at(SUNDAY + 9);
    let starts = stuck(PodPhase::Starting { deadline: until }, Players::Nobody);
    assert_eq!(next_step(&CORRECTED, &starts, open(), now), Step::Wait(WaitingOn::Start { until }));
}

#[test]
fn rollback_is_preferred_if_possible_or_backup_is_named() {
    let now = at(SUNDAY + 1);
    let mut observation = stuck(PodPhase::Down, Players::Nobody);
    let is_rolled_back = |observation: &Observation| {
        matches!(next_step(&CORRECTED, observation, open(), now), Step::RollBack { to: OLD, .. })
    };
    observation.user_restore_requested = true;
    assert!(is_rolled_back(&observation));
    observation.user_restore_requested = false;
    observation.world.floor = DataVersion(1);
    assert!(is_rolled_back(&observation));
}

#[test]
fn roll_forward_is_in_progress_unlike_manual_recovery() {
    let observation = stuck(PodPhase::Up, Players::Some(3));
    let progress = |observation: &Observation| {
        (is_in_progress(&CORRECTED, observation, open()), has_goal_begun(&CORRECTED, observation, open()))
    };
    assert!(needs_admin(&observation));
    assert_eq!(progress(&observation), (false, false), "it waits for the update slot and its leader");
    let mut warned = observation.clone();
    let disruption = Disruption::Update { goal: FIXED, window_opened_at: at(SUNDAY) };
    warned.facts.announced = Some(Announced { act: disruption, pod: PodUid(8), ends: at(SUNDAY + 6) });
    assert_eq!(progress(&warned), (true, true));
    let written =
        Observation { stateful_set: Some(StatefulSetView { template: FIXED, ..COMMITTED }), ..observation.clone() };
    assert!(!needs_admin(&written));
    assert_eq!(progress(&written), (true, true));

    // An automatic rollback continues, whatever the goal is now.
    let requested = Observation { user_restore_requested: true, ..observation.clone() };
    let mut untouched = observation.clone();
    untouched.world.floor = DataVersion(1);
    let mut good = observation;
    good.facts.failed.clear();
    for observation in [requested, untouched, good] {
        assert!(!needs_admin(&observation));
        assert_eq!(progress(&observation), (true, true));
    }
}

#[test]
fn older_minecraft_waits_while_stable_lock_is_starting() {
    let mut observation = lobby();
    observation.facts.settled = Some(StableSet { revision: OLD, world: DataVersion(2) });
    let starts = PodPhase::Starting { deadline: at(SUNDAY) };
    observation.pod = observation.pod.map(|pod| PodView { world: DataVersion(2), phase: starts, ..pod });
    let older = Goal { world: DataVersion(1), ..GOAL };
    let answer = next_step(&older, &observation, open(), at(SUNDAY + 1));
    assert!(matches!(answer, Step::Wait(WaitingOn::ServerDown)), "{answer:?}");
    observation.pod = observation.pod.map(|pod| PodView { phase: PodPhase::Up, ..pod });
    let floor = DataVersion(2);
    let answer = next_step(&older, &observation, open(), at(SUNDAY + 1));
    assert_eq!(answer, Step::Wait(WaitingOn::BelowFloor { floor }));
}

/// A newer Minecraft has converted the worlds, and the stable revision is not started on them.
fn refused(stateful_set: StatefulSetView) -> Observation {
    let pod = Some(PodView { uid: PodUid(9), revision: OLD, world: DataVersion(1), phase: PodPhase::Refused });
    let mut observation = Observation { stateful_set: Some(stateful_set), pod, staged: false, ..lobby() };
    observation.players = Players::Unknown { since: at(SUNDAY - 60) };
    observation.world.floor = DataVersion(2);
    observation
}

#[test]
fn goal_replaces_stable_lock_that_cannot_open_worlds() {
    let now = at(SUNDAY + 1);
    // At rest, and after a rollback that ended there.
    for stateful_set in [STATEFUL_SET, StatefulSetView { partition: Partition::Open, ..STATEFUL_SET }] {
        let observation = refused(stateful_set);
        let forward = Step::RollForward { to: FIXED, agent_unreachable: true, not_after: now + DECISION_VALID_FOR };
        assert_eq!(next_step(&CORRECTED, &observation, open(), now), forward);
        assert!(needs_admin(&observation));
        let waits = Step::Wait(WaitingOn::WorldRefused);
        assert_eq!(next_step(&CORRECTED, &observation, shut(), now), waits, "an update waits for its window");
        let too_old = Goal { world: DataVersion(1), ..CORRECTED };
        assert_eq!(next_step(&too_old, &observation, open(), now), waits);
        let mut failed = observation.clone();
        failed.facts.failed.push(FIXED);
        assert_eq!(next_step(&CORRECTED, &failed, open(), now), waits);
        // The pod refuses the worlds for another reason: a newer Minecraft does not help when a backup cannot be taken or restored.
        let mut no_older = observation.clone();
        no_older.world.floor = DataVersion(1);
        assert_eq!(next_step(&CORRECTED, &no_older, open(), now), waits);
        assert!(!needs_admin(&no_older));
        let replaced =
            Observation { stateful_set: Some(StatefulSetView { template: FIXED, ..COMMITTED }), ..observation.clone() };
        assert!(!needs_admin(&replaced) && has_goal_begun(&CORRECTED, &replaced, open()), "the update is in progress");
        // A backup that a user chose is restored.
        let requested = Observation { user_restore_requested: true, ..observation };
        assert_eq!(
            next_step(&CORRECTED, &requested, open(), now),
            Step::RequestRestore { to: OLD, requested_by_user: true }
        );
    }
}
