//! Checks the steps one by one, with concrete times.
//!
//! `tests/rollout_model` explores sequences that no single observation can show.

use super::*;
use crate::observation::{
    AgentMemory, Announced, DataVersion, EvictionPolicy, NodeState, PlayerPolicy, PodUid, RecordedFacts, SavedWorld,
    WorldState,
};

mod cancelled;
mod crash_loops;
mod drains;
mod hidden_players;
mod images;
mod opportunistic;
mod pending;
mod requests;
mod restarts;
mod roll_forward;
mod stale_announcement;
mod unreachable;

const OLD: Revision = Revision(0xa);
const NEW: Revision = Revision(0xb);
const POD: PodUid = PodUid(7);
const GOAL: Goal = Goal {
    revision: NEW,
    world: DataVersion(2),
    policy: PlayerPolicy::Announce,
    notice: SignedDuration::from_mins(5),
    empty_notice: SignedDuration::from_secs(10),
    stop_timeout: SignedDuration::from_mins(3),
    restart: None,
    eviction: EvictionPolicy::Always,
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
        stateful_set: Some(STATEFUL_SET),
        pod: Some(PodView { uid: POD, revision: OLD, world: DataVersion(1), phase: PodPhase::Up }),
        players: Players::Some(60),
        empty_since: None,
        verification: Verification::Passed,
        world: WorldState {
            floor: DataVersion(1),
            whole: true,
            backup: None,
            played_since: false,
            restore_requested: false,
        },
        node: NodeState::NotDraining,
        staged: true,
        images: ImagesOnNode::Present,
        data_restore_requested: true,
        user_restore_requested: false,
        crash_loop: false,
        agent_memory: AgentMemory::Known,
        facts: RecordedFacts {
            settled: Some(StableSet { revision: OLD, world: DataVersion(1) }),
            ..RecordedFacts::default()
        },
    }
}

const STATEFUL_SET: StatefulSetView = StatefulSetView {
    template: OLD,
    current: OLD,
    update: OLD,
    observed: true,
    partition: Partition::Closed,
    scaled_to_zero: false,
};
/// The goal is committed, and runs in its own pod.
const COMMITTED: StatefulSetView =
    StatefulSetView { template: NEW, update: NEW, partition: Partition::Open, ..STATEFUL_SET };

fn in_progress(phase: PodPhase) -> Observation {
    let pod = Some(PodView { uid: PodUid(8), revision: NEW, world: DataVersion(1), phase });
    Observation { stateful_set: Some(COMMITTED), pod, ..lobby() }
}

fn update(window: i64) -> Disruption {
    Disruption::Update { goal: NEW, window_opened_at: at(window) }
}

/// The expected step when an announced disruption does not happen.
fn cancellation(disruption: Disruption, now: Timestamp) -> Step {
    Step::CancelAnnouncement { disruption, not_after: now + DECISION_VALID_FOR }
}

fn announced(ends: i64) -> Announced {
    Announced { act: update(SUNDAY), pod: POD, ends: at(ends) }
}

fn saved(minute: i64) -> SavedWorld {
    SavedWorld { act: update(SUNDAY), pod: POD, at: at(minute), confirmed: true }
}

#[test]
fn update_is_staged_announced_saved_written_committed_and_verified() {
    let mut observation = Observation { staged: false, ..lobby() };
    let step = |observation: &Observation, minute| next_step(&GOAL, observation, open(), at(minute));
    let not_after = |minute| at(minute) + DECISION_VALID_FOR;
    assert_eq!(step(&observation, SUNDAY), Step::Stage);
    observation.staged = true;
    let notice = GOAL.notice;
    let announcement = Step::Announce { disruption: update(SUNDAY), pod: POD, notice, not_after: not_after(SUNDAY) };
    assert_eq!(step(&observation, SUNDAY), announcement);
    observation.facts.announced = Some(announced(SUNDAY + 5));
    assert_eq!(step(&observation, SUNDAY + 4), Step::Wait(WaitingOn::Countdown { ends: at(SUNDAY + 5) }));
    let save = Step::Save { disruption: update(SUNDAY), pod: POD, not_after: not_after(SUNDAY + 5) };
    assert_eq!(step(&observation, SUNDAY + 5), save);
    observation.facts.saved = Some(saved(SUNDAY + 5));
    let write = Step::WriteTemplate { revision: NEW, not_after: not_after(SUNDAY + 5) };
    assert_eq!(step(&observation, SUNDAY + 5), write);
    observation.stateful_set = Some(StatefulSetView { template: NEW, observed: false, ..STATEFUL_SET });
    assert_eq!(step(&observation, SUNDAY + 6), Step::Wait(WaitingOn::Controller));
    observation.stateful_set = Some(StatefulSetView { template: NEW, update: NEW, ..STATEFUL_SET });
    assert_eq!(
        step(&observation, SUNDAY + 6),
        Step::Commit { agent_unreachable: false, not_after: not_after(SUNDAY + 6) }
    );
    observation.stateful_set = Some(COMMITTED);
    assert_eq!(step(&observation, SUNDAY + 6), Step::Wait(WaitingOn::Controller));
    let until = at(SUNDAY + 40);
    let candidate = in_progress(PodPhase::Starting { deadline: until });
    assert_eq!(step(&candidate, SUNDAY + 7), Step::Wait(WaitingOn::Start { until }));
    let candidate = Observation { verification: Verification::Pending { until }, ..in_progress(PodPhase::Up) };
    assert_eq!(step(&candidate, SUNDAY + 8), Step::Wait(WaitingOn::Verification { until }));
    let mut candidate = in_progress(PodPhase::Up);
    assert_eq!(step(&candidate, SUNDAY + 9), Step::Wait(WaitingOn::Controller), "verified, but not yet current");
    candidate.stateful_set = Some(StatefulSetView { current: NEW, ..COMMITTED });
    assert_eq!(step(&candidate, SUNDAY + 9), Step::MarkStable { revision: NEW });
    candidate.stateful_set = Some(StatefulSetView { current: NEW, partition: Partition::Closed, ..COMMITTED });
    candidate.facts.settled = Some(StableSet { revision: NEW, world: DataVersion(2) });
    assert_eq!(step(&candidate, SUNDAY + 9), Step::UpToDate);
}

#[test]
fn announcement_and_save_of_last_window_are_ignored() {
    let mut observation = lobby();
    let disruption = update(SUNDAY - WEEK);
    observation.facts.announced = Some(Announced { act: disruption, pod: POD, ends: at(SUNDAY - WEEK + 5) });
    observation.facts.saved = Some(SavedWorld { act: disruption, pod: POD, at: at(SUNDAY), confirmed: true });
    assert!(matches!(next_step(&GOAL, &observation, open(), at(SUNDAY + 1)), Step::Announce { pod: POD, .. }));
}

#[test]
fn empty_server_countdown_is_short_and_unaffected_by_joins() {
    let mut observation = Observation { players: Players::Nobody, ..lobby() };
    let step = next_step(&GOAL, &observation, open(), at(SUNDAY));
    assert!(matches!(step, Step::Announce { notice, .. } if notice == GOAL.empty_notice));
    // An announcement is a fact. Later changes of players and spec do not change it.
    observation.facts.announced = Some(announced(SUNDAY + 1));
    observation.players = Players::Some(1);
    let longer = Goal { notice: SignedDuration::from_hours(1), ..GOAL };
    let ends = at(SUNDAY + 1);
    assert_eq!(next_step(&longer, &observation, open(), at(SUNDAY)), Step::Wait(WaitingOn::Countdown { ends }));
    assert!(matches!(next_step(&longer, &observation, open(), ends), Step::Save { .. }));
}

#[test]
fn countdown_is_shortened_once_last_player_has_left() {
    let second = |second| at(SUNDAY) + SignedDuration::from_secs(second);
    let warned = RecordedFacts { announced: Some(announced(SUNDAY + 5)), ..lobby().facts };
    let left =
        |at| Observation { players: Players::Nobody, empty_since: Some(second(at)), facts: warned.clone(), ..lobby() };
    let step = |observation: &Observation, now| next_step(&GOAL, observation, open(), second(now));
    let continues = Step::Wait(WaitingOn::Countdown { ends: at(SUNDAY + 5) });
    assert_eq!(step(&left(60), 69), continues, "a player who reconnects sees the same countdown");
    let not_after = second(70) + DECISION_VALID_FOR;
    let shortened = Step::Announce { disruption: update(SUNDAY), pod: POD, notice: GOAL.empty_notice, not_after };
    assert_eq!(step(&left(60), 70), shortened);
    let returned = Observation { players: Players::Some(1), empty_since: None, ..left(60) };
    assert_eq!(step(&returned, 70), continues);
    let unknown = Observation { players: Players::Unknown { since: second(69) }, ..left(60) };
    assert!(matches!(step(&unknown, 70), Step::Wait(WaitingOn::Agent { .. })), "unreachable does not mean empty");
    assert_eq!(step(&left(60), 290), continues, "the rest is already as short");
    let mut cut = left(60);
    cut.facts.announced = Some(Announced { ends: second(80), ..announced(0) });
    assert_eq!(step(&cut, 73), Step::Wait(WaitingOn::Countdown { ends: second(80) }), "it is shortened only once");
    cut.players = Players::Some(1);
    assert_eq!(step(&cut, 79), Step::Wait(WaitingOn::Countdown { ends: second(80) }), "a join changes nothing");
    assert!(matches!(step(&cut, 80), Step::Save { .. }));
}

#[test]
fn restarted_agent_gets_same_countdown_end_until_it_passes() {
    let mut observation = Observation { agent_memory: AgentMemory::Forgotten, ..lobby() };
    let step = |observation: &Observation, minute| next_step(&GOAL, observation, open(), at(minute));
    assert!(matches!(step(&observation, SUNDAY), Step::Announce { .. }), "players were not warned yet");
    observation.facts.announced = Some(announced(SUNDAY + 5));
    let not_after = at(SUNDAY + 2) + DECISION_VALID_FOR;
    let again = Step::Reannounce { disruption: update(SUNDAY), pod: POD, ends: at(SUNDAY + 5), not_after };
    assert_eq!(step(&observation, SUNDAY + 2), again);
    assert!(matches!(step(&observation, SUNDAY + 5), Step::Save { .. }), "the announced end counts");
    // The current agent is asked first who is online.
    observation.players = Players::Unknown { since: at(SUNDAY + 2) };
    assert!(matches!(step(&observation, SUNDAY + 2), Step::Wait(WaitingOn::Agent { .. })));
    observation.players = Players::Some(60);
    observation.facts.announced = Some(Announced { pod: PodUid(6), ..announced(SUNDAY + 5) });
    assert!(matches!(step(&observation, SUNDAY + 2), Step::Announce { .. }), "the announcement was to another pod");
}

#[test]
fn countdown_begins_only_if_it_ends_within_window() {
    let mut observation = lobby();
    let late = at(SUNDAY + 120) - SignedDuration::from_secs(5 * 60 + 59);
    assert_eq!(next_step(&GOAL, &observation, open(), late), Step::Wait(WaitingOn::Window { opens: None }));
    observation.players = Players::Nobody;
    assert!(matches!(next_step(&GOAL, &observation, open(), late), Step::Announce { .. }));
}

#[test]
fn disruption_is_not_decided_in_last_minute_of_window() {
    let mut observation = lobby();
    observation.facts.announced = Some(announced(SUNDAY + 117));
    observation.facts.saved = Some(saved(SUNDAY + 118));
    observation.stateful_set = Some(StatefulSetView { template: NEW, update: NEW, ..STATEFUL_SET });
    let almost = at(SUNDAY + 119);
    assert!(matches!(next_step(&GOAL, &observation, open(), almost), Step::Commit { .. }));
    let too_late = almost + SignedDuration::from_secs(1);
    let reverted = Step::Restore { revision: OLD, partition: Partition::Closed };
    assert_eq!(next_step(&GOAL, &observation, open(), too_late), reverted, "the written template is reverted");
}

#[test]
fn save_expires_after_ten_minutes_and_refusal_after_two() {
    let mut observation = lobby();
    observation.facts.announced = Some(announced(SUNDAY + 5));
    observation.facts.saved = Some(saved(SUNDAY + 5));
    assert!(matches!(next_step(&GOAL, &observation, open(), at(SUNDAY + 14)), Step::WriteTemplate { .. }));
    let too_late = next_step(&GOAL, &observation, open(), at(SUNDAY + 15));
    assert!(matches!(too_late, Step::Announce { .. }), "the announcement expires, too: {too_late:?}");
    observation.facts.saved = observation.facts.saved.map(|saved| SavedWorld { confirmed: false, ..saved });
    let retry_at = at(SUNDAY + 7);
    assert_eq!(next_step(&GOAL, &observation, open(), at(SUNDAY + 6)), Step::Wait(WaitingOn::SaveRefused { retry_at }));
    assert!(matches!(next_step(&GOAL, &observation, open(), retry_at), Step::Save { .. }));
}

#[test]
fn wait_for_empty_announces_when_empty_or_at_deadline() {
    let goal = Goal { policy: PlayerPolicy::WaitForEmpty { deadline: SignedDuration::from_mins(45) }, ..GOAL };
    let observation = lobby();
    let until = at(SUNDAY + 45);
    assert_eq!(next_step(&goal, &observation, open(), at(SUNDAY + 44)), Step::Wait(WaitingOn::Players { until }));
    assert!(
        matches!(next_step(&goal, &observation, open(), until), Step::Announce { notice, .. } if notice == GOAL.notice)
    );
    let empty = Observation { players: Players::Nobody, ..observation };
    assert!(matches!(next_step(&goal, &empty, open(), at(SUNDAY)), Step::Announce { .. }));
}

#[test]
fn unready_server_with_players_is_announced_before_rollback() {
    let mut observation = in_progress(PodPhase::Starting { deadline: at(SUNDAY + 30) });
    observation.facts.failed = vec![NEW];
    let step = next_step(&GOAL, &observation, shut(), at(SUNDAY + 31));
    let disruption = Disruption::RollBack { failed: NEW };
    assert!(matches!(step, Step::Announce { disruption: found, .. } if found == disruption));
}

#[test]
fn failure_is_recorded_first_and_is_final() {
    let mut observation =
        Observation { verification: Verification::Failed, players: Players::Nobody, ..in_progress(PodPhase::Up) };
    assert_eq!(next_step(&GOAL, &observation, shut(), at(0)), Step::MarkFailed { revision: NEW });
    observation.facts.failed = vec![NEW];
    observation.verification = Verification::Passed;
    assert!(matches!(
        next_step(&GOAL, &observation, shut(), at(0)),
        Step::Announce { disruption: Disruption::RollBack { .. }, .. }
    ));
    // After the rollback the goal is held, also in an open window.
    observation = Observation { facts: observation.facts, ..lobby() };
    assert_eq!(next_step(&GOAL, &observation, open(), at(SUNDAY)), Step::Wait(WaitingOn::Blocked { failed: NEW }));
}

#[test]
fn rollback_over_changed_world_requires_backup_and_restore_request() {
    let mut observation = in_progress(PodPhase::Down);
    observation.facts.failed = vec![NEW];
    observation.players = Players::Nobody;
    observation.world.floor = DataVersion(2);
    let next = |observation: &Observation| next_step(&GOAL, observation, shut(), at(0));
    let until = at(600);
    let again = |observation: &Observation| {
        next(&Observation { pod: in_progress(PodPhase::Starting { deadline: until }).pod, ..observation.clone() })
    };
    assert_eq!(next(&observation), Step::Wait(WaitingOn::NoBackup));
    assert_eq!(
        again(&observation),
        Step::Wait(WaitingOn::NoBackup),
        "a restart of the container by the kubelet changes nothing"
    );
    observation.world.backup = Some(DataVersion(1));
    observation.world.played_since = true;
    assert_eq!(next(&observation), Step::Wait(WaitingOn::RollbackWouldLoseProgress));
    assert_eq!(again(&observation), Step::Wait(WaitingOn::RollbackWouldLoseProgress));
    observation.world.played_since = false;
    assert_eq!(again(&observation), Step::Wait(WaitingOn::Start { until }), "a start is not interrupted");
    assert_eq!(next(&observation), Step::RequestRestore { to: OLD, requested_by_user: false });
    observation.world.restore_requested = true;
    assert!(matches!(next(&observation), Step::RollBack { to: OLD, agent_unreachable: false, .. }));
}

#[test]
fn named_backup_allows_progress_loss_and_accompanies_rollback() {
    let mut observation = in_progress(PodPhase::Down);
    observation.players = Players::Nobody;
    observation.world.floor = DataVersion(2);
    observation.user_restore_requested = true;
    let next = |observation: &Observation| next_step(&GOAL, observation, shut(), at(0));
    assert_eq!(
        next(&Observation { verification: Verification::Failed, ..observation.clone() }),
        Step::MarkFailed { revision: NEW },
        "the failure is recorded first"
    );
    observation.facts.failed = vec![NEW];
    let is_roll_back = |observation: &Observation| {
        matches!(next(observation), Step::RollBack { to: OLD, requested_by_user: true, agent_unreachable: false, .. })
    };
    assert!(is_roll_back(&observation), "{:?}", next(&observation));
    observation.world.backup = Some(DataVersion(1));
    observation.world.played_since = true;
    assert!(is_roll_back(&observation), "{:?}", next(&observation));
    // Also where the world was not changed: it is one restart, not two.
    observation.world.floor = DataVersion(1);
    assert!(is_roll_back(&observation), "{:?}", next(&observation));
    observation.user_restore_requested = false;
    assert!(matches!(next(&observation), Step::RollBack { requested_by_user: false, .. }));
    // Players on the failed revision are warned, and their progress is saved before it is displaced.
    let up = Observation {
        user_restore_requested: true,
        players: Players::Some(3),
        pod: in_progress(PodPhase::Up).pod,
        ..observation
    };
    assert!(matches!(next(&up), Step::Announce { disruption: Disruption::RollBack { failed: NEW }, .. }));
}

#[test]
fn pod_refusing_world_gets_restore_request_without_stop() {
    let request = Step::RequestRestore { to: OLD, requested_by_user: true };
    let refused = Some(PodView { uid: PodUid(9), revision: OLD, world: DataVersion(1), phase: PodPhase::Refused });
    let reopened = StatefulSetView { partition: Partition::Open, ..STATEFUL_SET };
    for (stateful_set, gate) in [(reopened, shut()), (STATEFUL_SET, shut()), (STATEFUL_SET, open())] {
        let mut observation = Observation { stateful_set: Some(stateful_set), pod: refused, ..lobby() };
        observation.facts.failed = vec![NEW];
        let waits = next_step(&GOAL, &observation, gate, at(SUNDAY));
        assert_eq!(waits, Step::Wait(WaitingOn::WorldRefused));
        assert_eq!(
            next_step(&GOAL, &Observation { user_restore_requested: true, ..observation }, gate, at(SUNDAY)),
            request
        );
    }
}

#[test]
fn rollback_without_backups_requires_unchanged_world() {
    let mut observation = in_progress(PodPhase::Starting { deadline: at(SUNDAY) });
    observation.players = Players::Nobody;
    observation.facts.failed = vec![NEW];
    observation.pod = observation.pod.map(|pod| PodView { world: DataVersion(2), ..pod });
    observation.world.restore_requested = true; // as set by an operator without backups
    assert!(matches!(next_step(&GOAL, &observation, shut(), at(SUNDAY + 1)), Step::RollBack { to: OLD, .. }));
    observation.world.whole = false;
    assert_eq!(next_step(&GOAL, &observation, shut(), at(SUNDAY + 1)), Step::Wait(WaitingOn::NoBackup));
}

#[test]
fn plugin_data_restore_is_requested_before_failed_lock_stops() {
    let mut observation = in_progress(PodPhase::Down);
    observation.facts.failed = vec![NEW];
    observation.players = Players::Nobody;
    observation.data_restore_requested = false;
    let next = |observation: &Observation| next_step(&GOAL, observation, shut(), at(0));
    assert_eq!(next(&observation), Step::RequestPluginDataRestore { to: OLD });
    observation.facts.failed.clear();
    assert_eq!(
        next(&Observation { verification: Verification::Failed, ..observation.clone() }),
        Step::MarkFailed { revision: NEW },
        "the failure is recorded first"
    );
    observation.facts.failed = vec![NEW];
    observation.world.floor = DataVersion(2);
    assert_eq!(
        next(&observation),
        Step::Wait(WaitingOn::NoBackup),
        "without a rollback of the worlds, plugin data is not restored"
    );
    observation.world.floor = DataVersion(1);
    observation.data_restore_requested = true;
    assert!(matches!(next(&observation), Step::RollBack { to: OLD, agent_unreachable: false, .. }));
}

#[test]
fn foreign_template_is_replaced_behind_closed_partition() {
    let mut observation = lobby();
    observation.stateful_set = Some(StatefulSetView { template: Revision(0xf), ..STATEFUL_SET });
    let restore = Step::Restore { revision: OLD, partition: Partition::Closed };
    assert_eq!(next_step(&GOAL, &observation, shut(), at(0)), restore);
}

#[test]
fn partition_stays_open_until_old_revision_is_known_again() {
    let mut observation = lobby();
    let mut next = |stateful_set| {
        observation.stateful_set = Some(stateful_set);
        next_step(&GOAL, &observation, shut(), at(0))
    };
    let missing = StatefulSetView { template: NEW, current: NEW, update: NEW, ..STATEFUL_SET };
    assert_eq!(next(missing), Step::Restore { revision: OLD, partition: Partition::Open });
    let restored = StatefulSetView { current: NEW, partition: Partition::Open, ..STATEFUL_SET };
    assert_eq!(next(restored), Step::Wait(WaitingOn::Controller));
    assert_eq!(
        next(StatefulSetView { partition: Partition::Open, ..STATEFUL_SET }),
        Step::MarkStable { revision: OLD }
    );
}

#[test]
fn deleted_stateful_set_is_recreated_at_stable_revision() {
    let mut observation = Observation { stateful_set: None, pod: None, ..lobby() };
    let recreated = Step::Create { revision: OLD, partition: Partition::Closed };
    assert_eq!(next_step(&GOAL, &observation, open(), at(SUNDAY)), recreated);
    observation.facts = RecordedFacts::default();
    assert_eq!(
        next_step(&GOAL, &observation, shut(), at(0)),
        Step::Create { revision: NEW, partition: Partition::Open }
    );
}

#[test]
fn server_problem_is_reported_instead_of_window() {
    let mut observation = lobby();
    observation.pod = observation.pod.map(|pod| PodView { phase: PodPhase::Stopping { overdue_at: at(10) }, ..pod });
    assert_eq!(next_step(&GOAL, &observation, shut(), at(5)), Step::Wait(WaitingOn::PodStopping { until: at(10) }));
    assert_eq!(next_step(&GOAL, &observation, shut(), at(11)), Step::Wait(WaitingOn::NodeLost));
    observation.pod = None;
    observation.stateful_set = Some(StatefulSetView { scaled_to_zero: true, ..STATEFUL_SET });
    assert_eq!(next_step(&GOAL, &observation, shut(), at(5)), Step::Wait(WaitingOn::ScaledToZero));
}

#[test]
fn minecraft_older_than_world_is_never_rolled_out() {
    let mut observation = lobby();
    observation.world.floor = DataVersion(3);
    let floor = DataVersion(3);
    assert_eq!(next_step(&GOAL, &observation, open(), at(SUNDAY)), Step::Wait(WaitingOn::BelowFloor { floor }));
}

#[test]
fn facts_with_extreme_timestamps_are_handled() {
    let mut observation = lobby();
    observation.facts.announced = Some(announced(SUNDAY));
    observation.facts.saved = Some(SavedWorld { at: Timestamp::MAX, ..saved(SUNDAY) });
    assert!(matches!(next_step(&GOAL, &observation, open(), at(SUNDAY)), Step::WriteTemplate { .. }));
    let endless = Goal { notice: SignedDuration::MAX, stop_timeout: SignedDuration::MAX, ..GOAL };
    assert_eq!(next_step(&endless, &lobby(), open(), at(SUNDAY)), Step::Wait(WaitingOn::Window { opens: None }));
}

#[test]
fn every_step_and_wait_has_name_and_requeue_time() {
    let soon = at(1);
    assert_eq!(Step::Wait(WaitingOn::Controller).name(), "wait");
    assert_eq!(
        Step::RollBack { to: OLD, requested_by_user: false, agent_unreachable: true, not_after: soon }.name(),
        "rollBack"
    );
    assert_eq!(WaitingOn::SaveRefused { retry_at: soon }.until(), Some(soon));
    assert_eq!(WaitingOn::Window { opens: None }.until(), None);
    assert!(WaitingOn::SaveRefused { retry_at: soon }.needs_admin());
    assert!(!WaitingOn::Agent { until: soon }.needs_admin());
}

#[test]
fn closing_window_continues_announced_update_and_begins_no_other() {
    let next = at(SUNDAY + WEEK);
    let ending = Gate::NoNewStarts { opened_at: at(SUNDAY), until: at(SUNDAY + 120), opens: Some(next) };
    let waits = Step::Wait(WaitingOn::Window { opens: Some(next) });
    let step = |observation: &Observation| next_step(&GOAL, observation, ending, at(SUNDAY + 100));
    assert_eq!(step(&lobby()), waits);
    let mut warned = lobby();
    warned.facts.announced = Some(announced(SUNDAY + 101));
    assert_eq!(step(&warned), Step::Wait(WaitingOn::Countdown { ends: at(SUNDAY + 101) }));
    warned.facts.announced = Some(announced(SUNDAY + 100));
    assert!(matches!(step(&warned), Step::Save { .. }));
    // An announcement to another pod or in another opening does not belong to this update. Players of that countdown learn that it is cancelled.
    warned.facts.announced = Some(Announced { pod: PodUid(1), ..announced(SUNDAY + 100) });
    assert_eq!(step(&warned), waits);
    let before = update(SUNDAY - WEEK);
    warned.facts.announced = Some(Announced { act: before, ..announced(SUNDAY + 100) });
    assert_eq!(step(&warned), cancellation(before, at(SUNDAY + 100)));
    // Without announcements the stop itself is the beginning. A template that was written is reverted.
    let with_nobody_online = |observation: &Observation| {
        next_step(&Goal { policy: PlayerPolicy::Ignore, ..GOAL }, observation, ending, at(SUNDAY + 100))
    };
    assert_eq!(with_nobody_online(&lobby()), waits);
    let written = Observation { stateful_set: Some(StatefulSetView { template: NEW, ..STATEFUL_SET }), ..lobby() };
    assert!(matches!(with_nobody_online(&written), Step::Restore { revision: OLD, .. }));
    // The last minute of the window applies to all.
    assert_eq!(next_step(&GOAL, &warned, ending, at(SUNDAY + 120) - SignedDuration::from_secs(59)), waits);
}

#[test]
fn commit_in_closing_window_is_left_to_controller() {
    let ending = Gate::NoNewStarts { opened_at: at(SUNDAY), until: at(SUNDAY + 120), opens: None };
    let committed = Observation { stateful_set: Some(COMMITTED), ..lobby() };
    assert_eq!(next_step(&GOAL, &committed, ending, at(SUNDAY + 100)), Step::Wait(WaitingOn::Controller));
}

#[test]
fn update_is_in_progress_from_own_announcement_until_stable() {
    let under_way = |observation: &Observation| is_in_progress(&GOAL, observation, open());
    assert!(!under_way(&lobby()));
    let mut warned = lobby();
    warned.facts.announced = Some(announced(SUNDAY + 5));
    assert!(under_way(&warned));
    assert!(!is_in_progress(&GOAL, &warned, shut()), "an announced update does not begin after its window");
    warned.facts.announced = Some(Announced { act: update(SUNDAY - WEEK), ..announced(SUNDAY + 5) });
    assert!(!under_way(&warned));
    assert!(
        under_way(&Observation { stateful_set: Some(StatefulSetView { template: NEW, ..STATEFUL_SET }), ..lobby() }),
        "the template is written without an announcement"
    );
    assert!(under_way(&in_progress(PodPhase::Up)));
    let closed = Observation {
        stateful_set: Some(StatefulSetView { partition: Partition::Closed, ..COMMITTED }),
        ..in_progress(PodPhase::Up)
    };
    assert!(under_way(&closed), "the running revision was never verified");
    let first_start = Observation { facts: RecordedFacts::default(), ..in_progress(PodPhase::Up) };
    assert!(!under_way(&first_start));
}
