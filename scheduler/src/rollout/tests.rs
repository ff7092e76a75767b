//! Checks the steps one by one, with concrete times.
//!
//! `tests/rollout_model` explores sequences that no single observation can show.

use super::*;
use crate::observation::{
    AgentMemory, Announced, DataVersion, EvictionSeen, NodeState, PlayerPolicy, PodUid, RecordedFacts, SavedWorld,
    WorldState,
};

mod called_off;
mod crash_loops;
mod drains;
mod forward;
mod hidden;
mod images;
mod long_ago;
mod opportunities;
mod restarts;
mod silent;

const OLD: Revision = Revision(0xa);
const NEW: Revision = Revision(0xb);
const POD: PodUid = PodUid(7);
const GOAL: Goal = Goal {
    revision: NEW,
    world: DataVersion(2),
    policy: PlayerPolicy::Announce,
    notice: SignedDuration::from_mins(5),
    empty_notice: SignedDuration::from_secs(10),
    patience: SignedDuration::from_mins(3),
    restart: None,
    eviction: EvictionSeen::Always,
};
/// When Sunday's window opens, in minutes.
const SUNDAY: i64 = 100_000;
const WEEK: i64 = 7 * 24 * 60;

fn at(minute: i64) -> Timestamp {
    Timestamp::from_second(60 * minute).unwrap()
}

fn open() -> Gate {
    Gate::Open { opened_at: at(SUNDAY), until: at(SUNDAY + 120) }
}

fn shut() -> Gate {
    Gate::Shut { opens: Some(at(SUNDAY + WEEK)) }
}

/// Runs the stable revision, with 60 players.
fn lobby() -> Observation {
    Observation {
        set: Some(SET),
        pod: Some(PodView { uid: POD, revision: OLD, world: DataVersion(1), life: PodPhase::Up }),
        players: Players::Some(60),
        empty_since: None,
        verdict: Verification::Passed,
        world: WorldState {
            floor: DataVersion(1),
            whole: true,
            backup: None,
            played_since: false,
            restore_ordered: false,
        },
        node: NodeState::Stays,
        staged: true,
        images: ImagesOnNode::Here,
        data_ordered: true,
        copy_asked: false,
        crash_loop: false,
        agent_memory: AgentMemory::Kept,
        facts: RecordedFacts {
            settled: Some(StableSet { revision: OLD, world: DataVersion(1) }),
            ..RecordedFacts::default()
        },
    }
}

const SET: StatefulSetView = StatefulSetView {
    template: OLD,
    current: OLD,
    update: OLD,
    observed: true,
    door: Partition::Closed,
    asleep: false,
};
/// The goal is committed, and runs in its own pod.
const COMMITTED: StatefulSetView = StatefulSetView { template: NEW, update: NEW, door: Partition::Open, ..SET };

fn on_trial(life: PodPhase) -> Observation {
    let pod = Some(PodView { uid: PodUid(8), revision: NEW, world: DataVersion(1), life });
    Observation { set: Some(COMMITTED), pod, ..lobby() }
}

fn update(window: i64) -> Disruption {
    Disruption::Update { goal: NEW, window_opened_at: at(window) }
}

/// The expected step when an announced disruption does not happen.
fn call_off(act: Disruption, now: Timestamp) -> Step {
    Step::CancelAnnouncement { act, not_after: now + DECISION_COUNTS }
}

fn announced(ends: i64) -> Announced {
    Announced { act: update(SUNDAY), pod: POD, ends: at(ends) }
}

fn saved(minute: i64) -> SavedWorld {
    SavedWorld { act: update(SUNDAY), pod: POD, at: at(minute), confirmed: true }
}

#[test]
fn update_is_staged_announced_saved_written_committed_and_verified() {
    let mut seen = Observation { staged: false, ..lobby() };
    let step = |seen: &Observation, minute| next_step(&GOAL, seen, open(), at(minute));
    let not_after = |minute| at(minute) + DECISION_COUNTS;
    assert_eq!(step(&seen, SUNDAY), Step::Stage);
    seen.staged = true;
    let notice = GOAL.notice;
    let said = Step::Announce { act: update(SUNDAY), pod: POD, notice, not_after: not_after(SUNDAY) };
    assert_eq!(step(&seen, SUNDAY), said);
    seen.facts.announced = Some(announced(SUNDAY + 5));
    assert_eq!(step(&seen, SUNDAY + 4), Step::Wait(WaitingOn::Countdown { ends: at(SUNDAY + 5) }));
    let save = Step::Save { act: update(SUNDAY), pod: POD, not_after: not_after(SUNDAY + 5) };
    assert_eq!(step(&seen, SUNDAY + 5), save);
    seen.facts.saved = Some(saved(SUNDAY + 5));
    let write = Step::WriteTemplate { revision: NEW, not_after: not_after(SUNDAY + 5) };
    assert_eq!(step(&seen, SUNDAY + 5), write);
    seen.set = Some(StatefulSetView { template: NEW, observed: false, ..SET });
    assert_eq!(step(&seen, SUNDAY + 6), Step::Wait(WaitingOn::Controller));
    seen.set = Some(StatefulSetView { template: NEW, update: NEW, ..SET });
    assert_eq!(step(&seen, SUNDAY + 6), Step::Commit { unasked: false, not_after: not_after(SUNDAY + 6) });
    seen.set = Some(COMMITTED);
    assert_eq!(step(&seen, SUNDAY + 6), Step::Wait(WaitingOn::Controller));
    let until = at(SUNDAY + 40);
    let trial = on_trial(PodPhase::Starting { gives_up_at: until });
    assert_eq!(step(&trial, SUNDAY + 7), Step::Wait(WaitingOn::Start { until }));
    let trial = Observation { verdict: Verification::Pending { until }, ..on_trial(PodPhase::Up) };
    assert_eq!(step(&trial, SUNDAY + 8), Step::Wait(WaitingOn::Proof { until }));
    let mut trial = on_trial(PodPhase::Up);
    assert_eq!(step(&trial, SUNDAY + 9), Step::Wait(WaitingOn::Controller), "proven, but not yet current");
    trial.set = Some(StatefulSetView { current: NEW, ..COMMITTED });
    assert_eq!(step(&trial, SUNDAY + 9), Step::MarkStable { settled: NEW });
    trial.set = Some(StatefulSetView { current: NEW, door: Partition::Closed, ..COMMITTED });
    trial.facts.settled = Some(StableSet { revision: NEW, world: DataVersion(2) });
    assert_eq!(step(&trial, SUNDAY + 9), Step::Settled);
}

#[test]
fn announcement_and_save_of_last_window_are_ignored() {
    let mut seen = lobby();
    let act = update(SUNDAY - WEEK);
    seen.facts.announced = Some(Announced { act, pod: POD, ends: at(SUNDAY - WEEK + 5) });
    seen.facts.saved = Some(SavedWorld { act, pod: POD, at: at(SUNDAY), confirmed: true });
    assert!(matches!(next_step(&GOAL, &seen, open(), at(SUNDAY + 1)), Step::Announce { pod: POD, .. }));
}

#[test]
fn empty_server_countdown_is_short_and_unaffected_by_joins() {
    let mut seen = Observation { players: Players::Nobody, ..lobby() };
    let step = next_step(&GOAL, &seen, open(), at(SUNDAY));
    assert!(matches!(step, Step::Announce { notice, .. } if notice == GOAL.empty_notice));
    // An announcement is a fact. Later changes of players and spec do not change it.
    seen.facts.announced = Some(announced(SUNDAY + 1));
    seen.players = Players::Some(1);
    let longer = Goal { notice: SignedDuration::from_hours(1), ..GOAL };
    let ends = at(SUNDAY + 1);
    assert_eq!(next_step(&longer, &seen, open(), at(SUNDAY)), Step::Wait(WaitingOn::Countdown { ends }));
    assert!(matches!(next_step(&longer, &seen, open(), ends), Step::Save { .. }));
}

#[test]
fn countdown_is_shortened_once_last_player_has_left() {
    let second = |second| at(SUNDAY) + SignedDuration::from_secs(second);
    let told = RecordedFacts { announced: Some(announced(SUNDAY + 5)), ..lobby().facts };
    let left =
        |at| Observation { players: Players::Nobody, empty_since: Some(second(at)), facts: told.clone(), ..lobby() };
    let step = |seen: &Observation, now| next_step(&GOAL, seen, open(), second(now));
    let goes_on = Step::Wait(WaitingOn::Countdown { ends: at(SUNDAY + 5) });
    assert_eq!(step(&left(60), 69), goes_on, "who only lost the connection finds what they were told");
    let not_after = second(70) + DECISION_COUNTS;
    let short = Step::Announce { act: update(SUNDAY), pod: POD, notice: GOAL.empty_notice, not_after };
    assert_eq!(step(&left(60), 70), short);
    let back = Observation { players: Players::Some(1), empty_since: None, ..left(60) };
    assert_eq!(step(&back, 70), goes_on);
    let unknown = Observation { players: Players::Unknown { since: second(69) }, ..left(60) };
    assert!(matches!(step(&unknown, 70), Step::Wait(WaitingOn::Agent { .. })), "silence is nobody's leaving");
    assert_eq!(step(&left(60), 290), goes_on, "the end is as near");
    let mut cut = left(60);
    cut.facts.announced = Some(Announced { ends: second(80), ..announced(0) });
    assert_eq!(step(&cut, 73), Step::Wait(WaitingOn::Countdown { ends: second(80) }), "once");
    cut.players = Players::Some(1);
    assert_eq!(step(&cut, 79), Step::Wait(WaitingOn::Countdown { ends: second(80) }), "who joins now is told that");
    assert!(matches!(step(&cut, 80), Step::Save { .. }));
}

#[test]
fn restarted_agent_gets_same_countdown_end_until_it_passes() {
    let mut seen = Observation { agent_memory: AgentMemory::Lost, ..lobby() };
    let step = |seen: &Observation, minute| next_step(&GOAL, seen, open(), at(minute));
    assert!(matches!(step(&seen, SUNDAY), Step::Announce { .. }), "nobody was told yet");
    seen.facts.announced = Some(announced(SUNDAY + 5));
    let not_after = at(SUNDAY + 2) + DECISION_COUNTS;
    let again = Step::Reannounce { act: update(SUNDAY), pod: POD, ends: at(SUNDAY + 5), not_after };
    assert_eq!(step(&seen, SUNDAY + 2), again);
    assert!(matches!(step(&seen, SUNDAY + 5), Step::Save { .. }), "the end is what players were promised");
    // The current agent is asked first who is online.
    seen.players = Players::Unknown { since: at(SUNDAY + 2) };
    assert!(matches!(step(&seen, SUNDAY + 2), Step::Wait(WaitingOn::Agent { .. })));
    seen.players = Players::Some(60);
    seen.facts.announced = Some(Announced { pod: PodUid(6), ..announced(SUNDAY + 5) });
    assert!(matches!(step(&seen, SUNDAY + 2), Step::Announce { .. }), "another pod");
}

#[test]
fn countdown_begins_only_if_it_ends_within_window() {
    let mut seen = lobby();
    let late = at(SUNDAY + 120) - SignedDuration::from_secs(5 * 60 + 59);
    assert_eq!(next_step(&GOAL, &seen, open(), late), Step::Wait(WaitingOn::Window { opens: None }));
    seen.players = Players::Nobody;
    assert!(matches!(next_step(&GOAL, &seen, open(), late), Step::Announce { .. }));
}

#[test]
fn disruption_is_not_decided_in_last_minute_of_window() {
    let mut seen = lobby();
    seen.facts.announced = Some(announced(SUNDAY + 117));
    seen.facts.saved = Some(saved(SUNDAY + 118));
    seen.set = Some(StatefulSetView { template: NEW, update: NEW, ..SET });
    let almost = at(SUNDAY + 119);
    assert!(matches!(next_step(&GOAL, &seen, open(), almost), Step::Commit { .. }));
    let too_late = almost + SignedDuration::from_secs(1);
    let back = Step::Restore { revision: OLD, door: Partition::Closed };
    assert_eq!(next_step(&GOAL, &seen, open(), too_late), back, "and nothing stays behind the door");
}

#[test]
fn save_expires_after_ten_minutes_and_refusal_after_two() {
    let mut seen = lobby();
    seen.facts.announced = Some(announced(SUNDAY + 5));
    seen.facts.saved = Some(saved(SUNDAY + 5));
    assert!(matches!(next_step(&GOAL, &seen, open(), at(SUNDAY + 14)), Step::WriteTemplate { .. }));
    let too_late = next_step(&GOAL, &seen, open(), at(SUNDAY + 15));
    assert!(matches!(too_late, Step::Announce { .. }), "nor does what players were told: {too_late:?}");
    seen.facts.saved = seen.facts.saved.map(|it| SavedWorld { confirmed: false, ..it });
    let again = at(SUNDAY + 7);
    assert_eq!(next_step(&GOAL, &seen, open(), at(SUNDAY + 6)), Step::Wait(WaitingOn::SaveRefused { again }));
    assert!(matches!(next_step(&GOAL, &seen, open(), again), Step::Save { .. }));
}

#[test]
fn wait_for_empty_announces_when_empty_or_at_deadline() {
    let goal = Goal { policy: PlayerPolicy::WaitForEmpty { deadline: SignedDuration::from_mins(45) }, ..GOAL };
    let seen = lobby();
    let until = at(SUNDAY + 45);
    assert_eq!(next_step(&goal, &seen, open(), at(SUNDAY + 44)), Step::Wait(WaitingOn::Players { until }));
    assert!(matches!(next_step(&goal, &seen, open(), until), Step::Announce { notice, .. } if notice == GOAL.notice));
    let empty = Observation { players: Players::Nobody, ..seen };
    assert!(matches!(next_step(&goal, &empty, open(), at(SUNDAY)), Step::Announce { .. }));
}

#[test]
fn unready_server_with_players_is_announced_before_rollback() {
    let mut seen = on_trial(PodPhase::Starting { gives_up_at: at(SUNDAY + 30) });
    seen.facts.failed = vec![NEW];
    let step = next_step(&GOAL, &seen, shut(), at(SUNDAY + 31));
    let act = Disruption::RollBack { failed: NEW };
    assert!(matches!(step, Step::Announce { act: what, .. } if what == act));
}

#[test]
fn failure_is_recorded_first_and_is_final() {
    let mut seen = Observation { verdict: Verification::Failed, players: Players::Nobody, ..on_trial(PodPhase::Up) };
    assert_eq!(next_step(&GOAL, &seen, shut(), at(0)), Step::MarkFailed { revision: NEW });
    seen.facts.failed = vec![NEW];
    seen.verdict = Verification::Passed;
    assert!(matches!(next_step(&GOAL, &seen, shut(), at(0)), Step::Announce { act: Disruption::RollBack { .. }, .. }));
    // After the rollback the goal is held, also in an open window.
    seen = Observation { facts: seen.facts, ..lobby() };
    assert_eq!(next_step(&GOAL, &seen, open(), at(SUNDAY)), Step::Wait(WaitingOn::Held { failed: NEW }));
}

#[test]
fn rollback_over_changed_world_requires_backup_and_restore_request() {
    let mut seen = on_trial(PodPhase::Down);
    seen.facts.failed = vec![NEW];
    seen.players = Players::Nobody;
    seen.world.floor = DataVersion(2);
    let next = |seen: &Observation| next_step(&GOAL, seen, shut(), at(0));
    let until = at(600);
    let again = |seen: &Observation| {
        next(&Observation { pod: on_trial(PodPhase::Starting { gives_up_at: until }).pod, ..seen.clone() })
    };
    assert_eq!(next(&seen), Step::Wait(WaitingOn::NoBackup));
    assert_eq!(again(&seen), Step::Wait(WaitingOn::NoBackup), "the kubelet starts it again, which decides nothing");
    seen.world.backup = Some(DataVersion(1));
    seen.world.played_since = true;
    assert_eq!(next(&seen), Step::Wait(WaitingOn::RollbackWouldLoseProgress));
    assert_eq!(again(&seen), Step::Wait(WaitingOn::RollbackWouldLoseProgress));
    seen.world.played_since = false;
    assert_eq!(again(&seen), Step::Wait(WaitingOn::Start { until }), "nothing ends a start");
    assert_eq!(next(&seen), Step::RequestRestore { to: OLD, asked: false });
    seen.world.restore_ordered = true;
    assert!(matches!(next(&seen), Step::RollBack { to: OLD, unasked: false, .. }));
}

#[test]
fn named_backup_allows_progress_loss_and_accompanies_rollback() {
    let mut seen = on_trial(PodPhase::Down);
    seen.players = Players::Nobody;
    seen.world.floor = DataVersion(2);
    seen.copy_asked = true;
    let next = |seen: &Observation| next_step(&GOAL, seen, shut(), at(0));
    assert_eq!(
        next(&Observation { verdict: Verification::Failed, ..seen.clone() }),
        Step::MarkFailed { revision: NEW },
        "first of all"
    );
    seen.facts.failed = vec![NEW];
    let goes = |seen: &Observation| matches!(next(seen), Step::RollBack { to: OLD, asked: true, unasked: false, .. });
    assert!(goes(&seen), "{:?}", next(&seen));
    seen.world.backup = Some(DataVersion(1));
    seen.world.played_since = true;
    assert!(goes(&seen), "{:?}", next(&seen));
    // Also where the world was not changed: it is one restart, not two.
    seen.world.floor = DataVersion(1);
    assert!(goes(&seen), "{:?}", next(&seen));
    seen.copy_asked = false;
    assert!(matches!(next(&seen), Step::RollBack { asked: false, .. }));
    // Players on the failed revision are warned, and their progress is saved before it is displaced.
    let up = Observation { copy_asked: true, players: Players::Some(3), pod: on_trial(PodPhase::Up).pod, ..seen };
    assert!(matches!(next(&up), Step::Announce { act: Disruption::RollBack { failed: NEW }, .. }));
}

#[test]
fn pod_refusing_world_gets_restore_request_without_stop() {
    let order = Step::RequestRestore { to: OLD, asked: true };
    let refused = Some(PodView { uid: PodUid(9), revision: OLD, world: DataVersion(1), life: PodPhase::Refused });
    let gone_back = StatefulSetView { door: Partition::Open, ..SET };
    for (set, gate) in [(gone_back, shut()), (SET, shut()), (SET, open())] {
        let mut seen = Observation { set: Some(set), pod: refused, ..lobby() };
        seen.facts.failed = vec![NEW];
        let waits = next_step(&GOAL, &seen, gate, at(SUNDAY));
        assert_eq!(waits, Step::Wait(WaitingOn::WorldRefused));
        assert_eq!(next_step(&GOAL, &Observation { copy_asked: true, ..seen }, gate, at(SUNDAY)), order);
    }
}

#[test]
fn rollback_without_backups_requires_unchanged_world() {
    let mut seen = on_trial(PodPhase::Starting { gives_up_at: at(SUNDAY) });
    seen.players = Players::Nobody;
    seen.facts.failed = vec![NEW];
    seen.pod = seen.pod.map(|pod| PodView { world: DataVersion(2), ..pod });
    seen.world.restore_ordered = true; // as set by an operator without backups
    assert!(matches!(next_step(&GOAL, &seen, shut(), at(SUNDAY + 1)), Step::RollBack { to: OLD, .. }));
    seen.world.whole = false;
    assert_eq!(next_step(&GOAL, &seen, shut(), at(SUNDAY + 1)), Step::Wait(WaitingOn::NoBackup));
}

#[test]
fn plugin_data_restore_is_requested_before_failed_lock_stops() {
    let mut seen = on_trial(PodPhase::Down);
    seen.facts.failed = vec![NEW];
    seen.players = Players::Nobody;
    seen.data_ordered = false;
    let next = |seen: &Observation| next_step(&GOAL, seen, shut(), at(0));
    assert_eq!(next(&seen), Step::RequestPluginDataRestore { to: OLD });
    seen.facts.failed.clear();
    assert_eq!(
        next(&Observation { verdict: Verification::Failed, ..seen.clone() }),
        Step::MarkFailed { revision: NEW },
        "first of all"
    );
    seen.facts.failed = vec![NEW];
    seen.world.floor = DataVersion(2);
    assert_eq!(
        next(&seen),
        Step::Wait(WaitingOn::NoBackup),
        "a world that cannot go back keeps the data where they are"
    );
    seen.world.floor = DataVersion(1);
    seen.data_ordered = true;
    assert!(matches!(next(&seen), Step::RollBack { to: OLD, unasked: false, .. }));
}

#[test]
fn foreign_template_is_replaced_behind_closed_partition() {
    let mut seen = lobby();
    seen.set = Some(StatefulSetView { template: Revision(0xf), ..SET });
    let restore = Step::Restore { revision: OLD, door: Partition::Closed };
    assert_eq!(next_step(&GOAL, &seen, shut(), at(0)), restore);
}

#[test]
fn partition_stays_open_until_old_revision_is_known_again() {
    let mut seen = lobby();
    let mut next = |set| {
        seen.set = Some(set);
        next_step(&GOAL, &seen, shut(), at(0))
    };
    let lost = StatefulSetView { template: NEW, current: NEW, update: NEW, ..SET };
    assert_eq!(next(lost), Step::Restore { revision: OLD, door: Partition::Open });
    let restored = StatefulSetView { current: NEW, door: Partition::Open, ..SET };
    assert_eq!(next(restored), Step::Wait(WaitingOn::Controller));
    assert_eq!(next(StatefulSetView { door: Partition::Open, ..SET }), Step::MarkStable { settled: OLD });
}

#[test]
fn deleted_stateful_set_is_recreated_at_stable_revision() {
    let mut seen = Observation { set: None, pod: None, ..lobby() };
    let as_it_was = Step::Create { revision: OLD, door: Partition::Closed };
    assert_eq!(next_step(&GOAL, &seen, open(), at(SUNDAY)), as_it_was);
    seen.facts = RecordedFacts::default();
    assert_eq!(next_step(&GOAL, &seen, shut(), at(0)), Step::Create { revision: NEW, door: Partition::Open });
}

#[test]
fn server_problem_is_reported_instead_of_window() {
    let mut seen = lobby();
    seen.pod = seen.pod.map(|pod| PodView { life: PodPhase::Stopping { lost_at: at(10) }, ..pod });
    assert_eq!(next_step(&GOAL, &seen, shut(), at(5)), Step::Wait(WaitingOn::PodStopping { until: at(10) }));
    assert_eq!(next_step(&GOAL, &seen, shut(), at(11)), Step::Wait(WaitingOn::NodeLost));
    seen.pod = None;
    seen.set = Some(StatefulSetView { asleep: true, ..SET });
    assert_eq!(next_step(&GOAL, &seen, shut(), at(5)), Step::Wait(WaitingOn::Asleep));
}

#[test]
fn minecraft_older_than_world_is_never_rolled_out() {
    let mut seen = lobby();
    seen.world.floor = DataVersion(3);
    let floor = DataVersion(3);
    assert_eq!(next_step(&GOAL, &seen, open(), at(SUNDAY)), Step::Wait(WaitingOn::BelowFloor { floor }));
}

#[test]
fn facts_with_extreme_timestamps_are_handled() {
    let mut seen = lobby();
    seen.facts.announced = Some(announced(SUNDAY));
    seen.facts.saved = Some(SavedWorld { at: Timestamp::MAX, ..saved(SUNDAY) });
    assert!(matches!(next_step(&GOAL, &seen, open(), at(SUNDAY)), Step::WriteTemplate { .. }));
    let endless = Goal { notice: SignedDuration::MAX, patience: SignedDuration::MAX, ..GOAL };
    assert_eq!(next_step(&endless, &lobby(), open(), at(SUNDAY)), Step::Wait(WaitingOn::Window { opens: None }));
}

#[test]
fn every_step_and_wait_has_name_and_requeue_time() {
    let soon = at(1);
    assert_eq!(Step::Wait(WaitingOn::Controller).name(), "wait");
    assert_eq!(Step::RollBack { to: OLD, asked: false, unasked: true, not_after: soon }.name(), "rollBack");
    assert_eq!(WaitingOn::SaveRefused { again: soon }.until(), Some(soon));
    assert_eq!(WaitingOn::Window { opens: None }.until(), None);
    assert!(WaitingOn::SaveRefused { again: soon }.needs_a_person());
    assert!(!WaitingOn::Agent { until: soon }.needs_a_person());
}

#[test]
fn closing_window_continues_announced_update_and_begins_no_other() {
    let next = at(SUNDAY + WEEK);
    let ending = Gate::NoNewStarts { opened_at: at(SUNDAY), until: at(SUNDAY + 120), opens: Some(next) };
    let waits = Step::Wait(WaitingOn::Window { opens: Some(next) });
    let step = |seen: &Observation| next_step(&GOAL, seen, ending, at(SUNDAY + 100));
    assert_eq!(step(&lobby()), waits);
    let mut told = lobby();
    told.facts.announced = Some(announced(SUNDAY + 101));
    assert_eq!(step(&told), Step::Wait(WaitingOn::Countdown { ends: at(SUNDAY + 101) }));
    told.facts.announced = Some(announced(SUNDAY + 100));
    assert!(matches!(step(&told), Step::Save { .. }));
    // An announcement to another pod or in another opening does not belong to this update. Players of that countdown learn that it is cancelled.
    told.facts.announced = Some(Announced { pod: PodUid(1), ..announced(SUNDAY + 100) });
    assert_eq!(step(&told), waits);
    let before = update(SUNDAY - WEEK);
    told.facts.announced = Some(Announced { act: before, ..announced(SUNDAY + 100) });
    assert_eq!(step(&told), call_off(before, at(SUNDAY + 100)));
    // Without announcements the stop itself is the beginning. A template that was written is reverted.
    let nobody =
        |seen: &Observation| next_step(&Goal { policy: PlayerPolicy::Ignore, ..GOAL }, seen, ending, at(SUNDAY + 100));
    assert_eq!(nobody(&lobby()), waits);
    let written = Observation { set: Some(StatefulSetView { template: NEW, ..SET }), ..lobby() };
    assert!(matches!(nobody(&written), Step::Restore { revision: OLD, .. }));
    // The last minute of the window applies to all.
    assert_eq!(next_step(&GOAL, &told, ending, at(SUNDAY + 120) - SignedDuration::from_secs(59)), waits);
}

#[test]
fn commit_in_closing_window_is_left_to_controller() {
    let ending = Gate::NoNewStarts { opened_at: at(SUNDAY), until: at(SUNDAY + 120), opens: None };
    let committed = Observation { set: Some(COMMITTED), ..lobby() };
    assert_eq!(next_step(&GOAL, &committed, ending, at(SUNDAY + 100)), Step::Wait(WaitingOn::Controller));
}

#[test]
fn update_is_in_progress_from_own_announcement_until_stable() {
    let under_way = |seen: &Observation| is_under_way(&GOAL, seen, open());
    assert!(!under_way(&lobby()));
    let mut told = lobby();
    told.facts.announced = Some(announced(SUNDAY + 5));
    assert!(under_way(&told));
    assert!(!is_under_way(&GOAL, &told, shut()), "what was announced in a window does not begin after it");
    told.facts.announced = Some(Announced { act: update(SUNDAY - WEEK), ..announced(SUNDAY + 5) });
    assert!(!under_way(&told));
    assert!(
        under_way(&Observation { set: Some(StatefulSetView { template: NEW, ..SET }), ..lobby() }),
        "nobody was told, and it is written"
    );
    assert!(under_way(&on_trial(PodPhase::Up)));
    let closed =
        Observation { set: Some(StatefulSetView { door: Partition::Closed, ..COMMITTED }), ..on_trial(PodPhase::Up) };
    assert!(under_way(&closed), "what runs was never proven");
    let first_start = Observation { facts: RecordedFacts::default(), ..on_trial(PodPhase::Up) };
    assert!(!under_way(&first_start));
}
