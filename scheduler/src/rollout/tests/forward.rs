//! Checks that a corrected version set replaces a failed one that only an admin could roll back.

use super::*;

const FIXED: Revision = Revision(0xc);
const CORRECTED: Goal = Goal { revision: FIXED, ..GOAL };

/// A newer Minecraft has converted the worlds and failed, and no backup exists.
fn stuck(life: PodPhase, players: Players) -> Observation {
    let mut seen = Observation { players, ..on_trial(life) };
    seen.facts.failed = vec![NEW];
    seen.world.floor = DataVersion(2);
    seen
}

fn forward(now: Timestamp) -> Step {
    Step::RollForward { to: FIXED, unasked: false, not_after: now + DECISION_COUNTS }
}

#[test]
fn corrected_goal_rolls_forward_where_rollback_needs_manual_decision() {
    let now = at(SUNDAY + 1);
    for (backup, played_since, decides) in
        [(None, false, WaitingOn::NoBackup), (Some(DataVersion(1)), true, WaitingOn::RollbackWouldLoseProgress)]
    {
        let mut seen = stuck(PodPhase::Down, Players::Nobody);
        (seen.world.backup, seen.world.played_since) = (backup, played_since);
        assert_eq!(next_step(&GOAL, &seen, open(), now), Step::Wait(decides), "what failed is not tried again");
        assert_eq!(next_step(&CORRECTED, &seen, shut(), now), Step::Wait(decides), "it is an update: in a window");
        assert_eq!(next_step(&CORRECTED, &seen, open(), now), forward(now));
        seen.staged = false;
        assert_eq!(next_step(&CORRECTED, &seen, open(), now), Step::Stage);
    }
}

#[test]
fn roll_forward_refuses_failed_stable_or_too_old_goal() {
    let seen = stuck(PodPhase::Down, Players::Nobody);
    let answer = |goal: Goal, seen: &Observation| next_step(&goal, seen, open(), at(SUNDAY + 1));
    let waits = Step::Wait(WaitingOn::NoBackup);
    assert_eq!(answer(Goal { world: DataVersion(1), ..CORRECTED }, &seen), waits);
    assert_eq!(answer(Goal { revision: OLD, world: DataVersion(1), ..CORRECTED }, &seen), waits);
    assert_eq!(answer(Goal { revision: OLD, ..CORRECTED }, &seen), waits);
    let mut twice = seen.clone();
    twice.facts.failed.push(FIXED);
    assert_eq!(answer(CORRECTED, &twice), waits);
    let mut mixed = seen.clone();
    mixed.world.whole = false;
    assert_eq!(answer(CORRECTED, &mixed), waits);
    let failed = Observation { images: ImagesOnNode::Failed, ..seen.clone() };
    assert_eq!(answer(CORRECTED, &failed), waits);
    let pulled = Observation { images: ImagesOnNode::OnTheirWay, ..seen.clone() };
    assert_eq!(answer(CORRECTED, &pulled), Step::Wait(WaitingOn::Images));
    // The starting server may still convert the worlds to its own Minecraft.
    let newer = Observation { pod: seen.pod.map(|pod| PodView { world: DataVersion(3), ..pod }), ..seen };
    assert_eq!(answer(CORRECTED, &newer), waits);
}

#[test]
fn roll_forward_announces_and_waits_for_running_start() {
    let now = at(SUNDAY + 1);
    let mut seen = stuck(PodPhase::Up, Players::Some(3));
    let act = Disruption::Update { goal: FIXED, window_opened_at: at(SUNDAY) };
    let not_after = now + DECISION_COUNTS;
    let announce = Step::Announce { act, pod: PodUid(8), notice: CORRECTED.notice, not_after };
    assert_eq!(next_step(&CORRECTED, &seen, open(), now), announce);
    // Not one minute before the window ends, with a notice of five minutes.
    assert_eq!(next_step(&CORRECTED, &seen, open(), at(SUNDAY + 116)), Step::Wait(WaitingOn::NoBackup));
    seen.facts.announced = Some(Announced { act, pod: PodUid(8), ends: at(SUNDAY + 6) });
    let ends = at(SUNDAY + 6);
    assert_eq!(next_step(&CORRECTED, &seen, open(), now), Step::Wait(WaitingOn::Countdown { ends }));
    // A blackout begins, or the goal is the failed revision again: the update is cancelled.
    assert_eq!(next_step(&CORRECTED, &seen, shut(), now), call_off(act, now));
    assert_eq!(next_step(&GOAL, &seen, open(), now), call_off(act, now));
    let over = at(SUNDAY + 7);
    let save = Step::Save { act, pod: PodUid(8), not_after: over + DECISION_COUNTS };
    assert_eq!(next_step(&CORRECTED, &seen, open(), over), save);
    seen.facts.saved = Some(SavedWorld { act, pod: PodUid(8), at: over, confirmed: true });
    assert_eq!(next_step(&CORRECTED, &seen, open(), over), forward(over));

    let until = at(SUNDAY + 9);
    let starts = stuck(PodPhase::Starting { gives_up_at: until }, Players::Nobody);
    assert_eq!(next_step(&CORRECTED, &starts, open(), now), Step::Wait(WaitingOn::Start { until }));
}

#[test]
fn rollback_is_preferred_if_possible_or_backup_is_named() {
    let now = at(SUNDAY + 1);
    let mut seen = stuck(PodPhase::Down, Players::Nobody);
    let goes_back =
        |seen: &Observation| matches!(next_step(&CORRECTED, seen, open(), now), Step::RollBack { to: OLD, .. });
    seen.copy_asked = true;
    assert!(goes_back(&seen));
    seen.copy_asked = false;
    seen.world.floor = DataVersion(1);
    assert!(goes_back(&seen));
}

#[test]
fn roll_forward_is_in_progress_unlike_manual_recovery() {
    let seen = stuck(PodPhase::Up, Players::Some(3));
    let begun = |seen: &Observation| (is_under_way(&CORRECTED, seen, open()), has_goal_begun(&CORRECTED, seen, open()));
    assert!(is_left_to_a_person(&seen));
    assert_eq!(begun(&seen), (false, false), "it waits for its turn, and for who goes first");
    let mut told = seen.clone();
    let act = Disruption::Update { goal: FIXED, window_opened_at: at(SUNDAY) };
    told.facts.announced = Some(Announced { act, pod: PodUid(8), ends: at(SUNDAY + 6) });
    assert_eq!(begun(&told), (true, true));
    let written = Observation { set: Some(StatefulSetView { template: FIXED, ..COMMITTED }), ..seen.clone() };
    assert!(!is_left_to_a_person(&written));
    assert_eq!(begun(&written), (true, true));

    // An automatic rollback continues, whatever the goal is now.
    let asked = Observation { copy_asked: true, ..seen.clone() };
    let mut untouched = seen.clone();
    untouched.world.floor = DataVersion(1);
    let mut good = seen;
    good.facts.failed.clear();
    for seen in [asked, untouched, good] {
        assert!(!is_left_to_a_person(&seen));
        assert_eq!(begun(&seen), (true, true));
    }
}

#[test]
fn older_minecraft_waits_while_stable_lock_is_starting() {
    let mut seen = lobby();
    seen.facts.settled = Some(StableSet { revision: OLD, world: DataVersion(2) });
    let starts = PodPhase::Starting { gives_up_at: at(SUNDAY) };
    seen.pod = seen.pod.map(|pod| PodView { world: DataVersion(2), life: starts, ..pod });
    let older = Goal { world: DataVersion(1), ..GOAL };
    let answer = next_step(&older, &seen, open(), at(SUNDAY + 1));
    assert!(matches!(answer, Step::Wait(WaitingOn::ServerDown)), "{answer:?}");
    seen.pod = seen.pod.map(|pod| PodView { life: PodPhase::Up, ..pod });
    let floor = DataVersion(2);
    let answer = next_step(&older, &seen, open(), at(SUNDAY + 1));
    assert_eq!(answer, Step::Wait(WaitingOn::BelowFloor { floor }));
}

/// A newer Minecraft has converted the worlds, and the stable revision is not started on them.
fn refused(set: StatefulSetView) -> Observation {
    let pod = Some(PodView { uid: PodUid(9), revision: OLD, world: DataVersion(1), life: PodPhase::Refused });
    let mut seen = Observation { set: Some(set), pod, staged: false, ..lobby() };
    seen.players = Players::Unknown { since: at(SUNDAY - 60) };
    seen.world.floor = DataVersion(2);
    seen
}

#[test]
fn goal_replaces_stable_lock_that_cannot_open_worlds() {
    let now = at(SUNDAY + 1);
    // At rest, and after a rollback that ended there.
    for set in [SET, StatefulSetView { door: Partition::Open, ..SET }] {
        let seen = refused(set);
        let forward = Step::RollForward { to: FIXED, unasked: true, not_after: now + DECISION_COUNTS };
        assert_eq!(next_step(&CORRECTED, &seen, open(), now), forward);
        assert!(is_left_to_a_person(&seen));
        let waits = Step::Wait(WaitingOn::WorldRefused);
        assert_eq!(next_step(&CORRECTED, &seen, shut(), now), waits, "it is an update: in a window");
        let too_old = Goal { world: DataVersion(1), ..CORRECTED };
        assert_eq!(next_step(&too_old, &seen, open(), now), waits);
        let mut failed = seen.clone();
        failed.facts.failed.push(FIXED);
        assert_eq!(next_step(&CORRECTED, &failed, open(), now), waits);
        // Not for the age of the worlds: another Minecraft does not help when a backup cannot be taken or restored.
        let mut no_older = seen.clone();
        no_older.world.floor = DataVersion(1);
        assert_eq!(next_step(&CORRECTED, &no_older, open(), now), waits);
        assert!(!is_left_to_a_person(&no_older));
        let gone = Observation { set: Some(StatefulSetView { template: FIXED, ..COMMITTED }), ..seen.clone() };
        assert!(!is_left_to_a_person(&gone) && has_goal_begun(&CORRECTED, &gone, open()), "it is under way");
        // A backup that a user chose is restored.
        let asked = Observation { copy_asked: true, ..seen };
        assert_eq!(next_step(&CORRECTED, &asked, open(), now), Step::RequestRestore { to: OLD, asked: true });
    }
}
