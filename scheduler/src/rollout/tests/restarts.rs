//! Checks that scheduled restarts begin only where no other change is in progress, and stop a server as an update does.

use super::*;
use crate::observation::{RestartDue, RestartStarted};

/// When the restart is due, in minutes: outside of every window.
const NIGHT: i64 = SUNDAY - 1_000;

fn restart() -> RestartDue {
    RestartDue {
        due: at(NIGHT),
        until: at(NIGHT + 30),
        policy: PlayerPolicy::Announce,
        only_empty: false,
        yields_until: at(NIGHT),
    }
}

/// The goal is running, and a restart is due.
fn stable_goal() -> Goal {
    Goal { revision: OLD, world: DataVersion(1), restart: Some(restart()), ..GOAL }
}

const DISRUPTION: Disruption = Disruption::Restart { due: Timestamp::constant(60 * NIGHT, 0) };

fn with_announcement(mut observation: Observation) -> Observation {
    observation.facts.announced = Some(Announced { act: DISRUPTION, pod: POD, ends: at(NIGHT + 5) });
    observation.facts.saved = Some(SavedWorld { act: DISRUPTION, pod: POD, at: at(NIGHT + 5), confirmed: true });
    observation
}

fn step(goal: &Goal, observation: &Observation, minute: i64) -> Step {
    next_step(goal, observation, shut(), at(minute))
}

#[test]
fn restart_is_announced_saved_executed_and_verified() {
    let mut observation = lobby();
    let not_after = |minute| at(minute) + DECISION_VALID_FOR;
    let announcement =
        Step::Announce { disruption: DISRUPTION, pod: POD, notice: GOAL.notice, not_after: not_after(NIGHT) };
    assert_eq!(step(&stable_goal(), &observation, NIGHT), announcement);
    observation.facts.announced = Some(Announced { act: DISRUPTION, pod: POD, ends: at(NIGHT + 5) });
    assert_eq!(step(&stable_goal(), &observation, NIGHT + 4), Step::Wait(WaitingOn::Countdown { ends: at(NIGHT + 5) }));
    let save = Step::Save { disruption: DISRUPTION, pod: POD, not_after: not_after(NIGHT + 5) };
    assert_eq!(step(&stable_goal(), &observation, NIGHT + 5), save);
    observation.facts.saved = Some(SavedWorld { act: DISRUPTION, pod: POD, at: at(NIGHT + 5), confirmed: true });
    let delete = Step::Restart { due: at(NIGHT), pod: POD, agent_unreachable: false, not_after: not_after(NIGHT + 6) };
    assert_eq!(step(&stable_goal(), &observation, NIGHT + 6), delete);
    // The operator crashes between the record and the deletion: the same step, for the same pod.
    observation.facts.restarted = Some(RestartStarted { due: at(NIGHT), pod: POD });
    assert_eq!(step(&stable_goal(), &observation, NIGHT + 6), delete);
    // From here on no restart is due, because the operator checks when the server started.
    let goal = Goal { restart: None, ..stable_goal() };
    let becomes = |observation: &mut Observation, uid, phase| {
        observation.pod = Some(PodView { uid, revision: OLD, world: DataVersion(1), phase });
    };
    becomes(&mut observation, POD, PodPhase::Stopping { overdue_at: at(NIGHT + 9) });
    assert_eq!(step(&goal, &observation, NIGHT + 7), Step::Wait(WaitingOn::PodStopping { until: at(NIGHT + 9) }));
    becomes(&mut observation, PodUid(8), PodPhase::Starting { deadline: at(NIGHT + 17) });
    assert_eq!(step(&goal, &observation, NIGHT + 8), Step::Wait(WaitingOn::Start { until: at(NIGHT + 17) }));
    becomes(&mut observation, PodUid(8), PodPhase::Up);
    observation.verification = Verification::Pending { until: at(NIGHT + 10) };
    assert_eq!(step(&goal, &observation, NIGHT + 9), Step::Wait(WaitingOn::Verification { until: at(NIGHT + 10) }));
    observation.verification = Verification::Passed;
    assert_eq!(step(&goal, &observation, NIGHT + 10), Step::EndRestart);
    observation.facts.restarted = None;
    assert_eq!(step(&goal, &observation, NIGHT + 10), Step::UpToDate);
}

#[test]
fn server_that_fails_to_restart_is_not_rolled_back() {
    let mut observation = lobby();
    observation.facts.restarted = Some(RestartStarted { due: at(NIGHT), pod: POD });
    for (phase, verification) in [
        (PodPhase::Starting { deadline: at(NIGHT + 17) }, Verification::Pending { until: at(NIGHT + 20) }),
        (PodPhase::Down, Verification::Failed),
    ] {
        observation.pod = Some(PodView { uid: PodUid(8), revision: OLD, world: DataVersion(1), phase });
        observation.verification = verification;
        assert_eq!(step(&stable_goal(), &observation, NIGHT + 20), Step::Wait(WaitingOn::ServerDown));
    }
    observation.pod = Some(PodView { uid: PodUid(8), revision: OLD, world: DataVersion(1), phase: PodPhase::Up });
    assert_eq!(step(&stable_goal(), &observation, NIGHT + 20), Step::EndRestart, "up, but not verified: it is kept");
}

#[test]
fn restart_yields_to_update_that_may_begin_now() {
    let goal = Goal { restart: Some(restart()), ..GOAL };
    let in_its_window = Gate::Open { opened_at: at(NIGHT - 10), until: at(NIGHT + 100) };
    let update = Disruption::Update { goal: NEW, window_opened_at: at(NIGHT - 10) };
    let both = next_step(&goal, &lobby(), in_its_window, at(NIGHT));
    assert!(matches!(both, Step::Announce { disruption, .. } if disruption == update));
    assert!(
        matches!(step(&goal, &lobby(), NIGHT), Step::Announce { disruption, .. } if disruption == DISRUPTION),
        "outside of windows only the restart is announced"
    );
    let delete = step(&goal, &with_announcement(lobby()), NIGHT + 6);
    assert!(matches!(delete, Step::Restart { pod: POD, .. }), "no template is written: {delete:?}");
    // The window opens while players count down for the restart.
    let both = next_step(&goal, &with_announcement(lobby()), in_its_window, at(NIGHT + 6));
    assert!(matches!(both, Step::Announce { disruption, .. } if disruption == update));
}

#[test]
fn restart_yields_to_update_certain_in_same_night() {
    let yields_until = at(NIGHT + 360);
    let goal = Goal { restart: Some(RestartDue { yields_until, ..restart() }), ..GOAL };
    let opening = |minute| Gate::Shut { opens: Some(at(minute)) };
    let answer = |goal: &Goal, observation: &Observation, gate| next_step(goal, observation, gate, at(NIGHT));
    let waits = Step::Wait(WaitingOn::Window { opens: Some(yields_until) });
    assert_eq!(answer(&goal, &lobby(), opening(NIGHT + 360)), waits);
    let begins = |step: Step| matches!(step, Step::Announce { disruption, .. } if disruption == DISRUPTION);
    assert!(begins(answer(&goal, &lobby(), opening(NIGHT + 361))), "the window opens too late");
    assert!(begins(answer(&goal, &lobby(), Gate::Shut { opens: None })), "approval, `follows` or a crash loop");
    let deadline = SignedDuration::from_mins(20);
    let wait_for_empty = Goal { policy: PlayerPolicy::WaitForEmpty { deadline }, ..goal };
    assert!(begins(answer(&wait_for_empty, &lobby(), opening(NIGHT + 360))), "players may stay all night");
    let unready = [
        Observation { staged: false, ..lobby() },
        Observation { images: ImagesOnNode::Failed, ..lobby() },
        Observation { images: ImagesOnNode::Pulling, ..lobby() },
    ];
    for observation in unready {
        assert!(begins(answer(&goal, &observation, opening(NIGHT + 360))), "{observation:?}");
    }
    // An announced restart happens.
    let restarted = next_step(&goal, &with_announcement(lobby()), opening(NIGHT + 360), at(NIGHT + 6));
    assert!(matches!(restarted, Step::Restart { .. }), "{restarted:?}");
}

#[test]
fn failed_or_blocked_update_does_not_block_restart() {
    let goal = Goal { restart: Some(restart()), ..GOAL };
    let mut observation = with_announcement(lobby());
    observation.facts.failed = vec![NEW];
    assert!(matches!(step(&goal, &observation, NIGHT + 6), Step::Restart { .. }));
    let mut observation = with_announcement(lobby());
    observation.world.floor = DataVersion(3);
    assert!(matches!(step(&goal, &observation, NIGHT + 6), Step::Restart { .. }));
}

#[test]
fn restart_is_skipped_unless_countdown_ends_in_time() {
    let until = NIGHT + 30;
    let just = at(until) - LATEST_START - GOAL.notice;
    let answer = |observation: &Observation, now| next_step(&stable_goal(), observation, shut(), now);
    assert!(matches!(answer(&lobby(), just), Step::Announce { .. }));
    assert_eq!(answer(&lobby(), just + SignedDuration::from_secs(1)), Step::UpToDate);
    let mut observation = lobby();
    observation.facts.announced = Some(Announced { act: DISRUPTION, pod: POD, ends: at(until - 2) });
    observation.facts.saved = Some(SavedWorld { act: DISRUPTION, pod: POD, at: at(until - 2), confirmed: true });
    assert!(matches!(answer(&observation, at(until) - LATEST_START), Step::Restart { .. }));
    let late = at(until - 1) + SignedDuration::from_secs(1);
    assert_eq!(answer(&observation, late), cancellation(DISRUPTION, late), "players learn of the cancellation");
    observation.facts = lobby().facts;
    assert_eq!(answer(&observation, late), Step::UpToDate);
}

#[test]
fn restart_uses_own_policy_and_deadline_from_its_instant() {
    let deadline = SignedDuration::from_mins(20);
    let wait = RestartDue { policy: PlayerPolicy::WaitForEmpty { deadline }, ..restart() };
    let goal = Goal { restart: Some(wait), ..stable_goal() };
    assert_eq!(step(&goal, &lobby(), NIGHT), Step::Wait(WaitingOn::Players { until: at(NIGHT + 20) }));
    assert!(matches!(step(&goal, &lobby(), NIGHT + 20), Step::Announce { .. }));
    let ignore = Goal { restart: Some(RestartDue { policy: PlayerPolicy::Ignore, ..restart() }), ..stable_goal() };
    assert!(matches!(step(&ignore, &lobby(), NIGHT), Step::Restart { .. }));
}

#[test]
fn only_if_empty_restart_is_skipped_while_players_stay() {
    let goal = Goal { restart: Some(RestartDue { only_empty: true, ..restart() }), ..stable_goal() };
    let silent = Players::Unknown { since: at(NIGHT - 60) };
    for players in [Players::Some(1), silent] {
        let observation = Observation { players, ..lobby() };
        assert_eq!(
            step(&goal, &observation, NIGHT),
            Step::Wait(WaitingOn::Players { until: at(NIGHT + 30) }),
            "{players:?}"
        );
        assert_eq!(step(&goal, &observation, NIGHT + 30), Step::UpToDate);
    }
    let empty = Observation { players: Players::Nobody, ..lobby() };
    assert!(matches!(step(&goal, &empty, NIGHT), Step::Announce { notice, .. } if notice == GOAL.empty_notice));
    let ignore = RestartDue { only_empty: true, policy: PlayerPolicy::Ignore, ..restart() };
    let goal = Goal { restart: Some(ignore), ..stable_goal() };
    assert!(matches!(step(&goal, &lobby(), NIGHT), Step::Wait(WaitingOn::Players { .. })));
}

/// Every combination of conditions that may block a restart.
#[test]
fn restart_requires_stable_running_server_behind_closed_partition() {
    let revisions = [OLD, NEW];
    let lives = [
        None,
        Some(PodPhase::Up),
        Some(PodPhase::Down),
        Some(PodPhase::Refused),
        Some(PodPhase::Starting { deadline: at(NIGHT) }),
        Some(PodPhase::Stopping { overdue_at: at(NIGHT) }),
    ];
    let mut restarts = 0;
    for template in revisions {
        for current in revisions {
            for partition in [Partition::Closed, Partition::Open] {
                for phase in lives {
                    for runs in revisions {
                        for pod in [POD, PodUid(8)] {
                            let stateful_set = Some(StatefulSetView {
                                template,
                                current,
                                update: template,
                                partition,
                                ..STATEFUL_SET
                            });
                            let pod =
                                phase.map(|phase| PodView { uid: pod, revision: runs, world: DataVersion(1), phase });
                            let observation = Observation { stateful_set, pod, ..with_announcement(lobby()) };
                            let step = step(&Goal { restart: Some(restart()), ..GOAL }, &observation, NIGHT + 6);
                            if !matches!(step, Step::Restart { .. }) {
                                continue;
                            }
                            restarts += 1;
                            assert_eq!((template, current, partition, runs), (OLD, OLD, Partition::Closed, OLD));
                            assert_eq!((phase, pod.unwrap().uid), (Some(PodPhase::Up), POD), "warned and saved");
                        }
                    }
                }
            }
        }
    }
    assert_eq!(restarts, 1);
}

#[test]
fn server_down_is_restarted_only_for_named_backup() {
    let not_after = at(NIGHT) + DECISION_VALID_FOR;
    let delete = |unasked| Step::Restart { due: at(NIGHT), pod: POD, agent_unreachable: unasked, not_after };
    let observation = |phase, user_restore_requested, players| Observation {
        pod: lobby().pod.map(|pod| PodView { phase, ..pod }),
        user_restore_requested,
        players,
        ..lobby()
    };
    let starting = PodPhase::Starting { deadline: at(NIGHT) };
    for phase in [PodPhase::Down, starting] {
        let next = |user_restore_requested, players| {
            step(&stable_goal(), &observation(phase, user_restore_requested, players), NIGHT)
        };
        assert_eq!(next(true, Players::Nobody), delete(false), "{phase:?}: an empty server needs no warning");
        assert_eq!(next(false, Players::Nobody), Step::Wait(WaitingOn::ServerDown), "{phase:?}: only scheduled");
        let since = at(NIGHT - 1);
        let until = since + GOAL.stop_timeout;
        assert_eq!(next(true, Players::Unknown { since }), Step::Wait(WaitingOn::Agent { until }), "{phase:?}");
        assert_eq!(next(true, Players::Unknown { since: at(NIGHT - 60) }), delete(true), "{phase:?}");
        // Too late for the request.
        let late = step(&stable_goal(), &observation(phase, true, Players::Nobody), NIGHT + 30);
        assert_eq!(late, Step::Wait(WaitingOn::ServerDown), "{phase:?}");
        let other = next_step(&GOAL, &observation(phase, true, Players::Nobody), shut(), at(NIGHT));
        assert_eq!(other, Step::Wait(WaitingOn::ServerDown), "{phase:?}: no restart is due");
    }
    // A different pod was expected to start after a restart: its verification is not awaited.
    let mut again = observation(PodPhase::Down, true, Players::Nobody);
    again.facts.restarted = Some(RestartStarted { due: at(NIGHT - 10), pod: PodUid(6) });
    for verification in [Verification::Pending { until: at(NIGHT + 9) }, Verification::Failed] {
        let again = Observation { verification, ..again.clone() };
        assert_eq!(step(&stable_goal(), &again, NIGHT), delete(false));
    }
    let until = at(NIGHT + 1);
    let in_time = observation(PodPhase::Starting { deadline: until }, true, Players::Nobody);
    assert_eq!(step(&stable_goal(), &in_time, NIGHT), Step::Wait(WaitingOn::Start { until }), "the start may succeed");
    // A template that a user wrote is reverted first.
    let mut edited = observation(PodPhase::Down, true, Players::Nobody);
    edited.stateful_set = Some(StatefulSetView { template: NEW, ..STATEFUL_SET });
    assert!(matches!(step(&stable_goal(), &edited, NIGHT), Step::Restore { revision: OLD, .. }));
}

#[test]
fn missing_files_block_restart_for_one_night_only() {
    let unstaged = Observation { staged: false, ..lobby() };
    let of = |yields_until: i64| RestartDue { yields_until: at(yields_until), ..restart() };
    let step = |restart: RestartDue| {
        next_step(&Goal { restart: Some(restart), ..GOAL }, &unstaged, open_gate(), at(NIGHT + 1))
    };
    assert_eq!(step(of(NIGHT + 360)), Step::Stage);
    // The previous restart was already skipped.
    assert!(matches!(step(of(NIGHT)), Step::Announce { disruption: Disruption::Restart { .. }, .. }));
    // A restart that waits for players does not delay the staging.
    assert_eq!(step(RestartDue { only_empty: true, ..of(NIGHT) }), Step::Stage);
    let deadline = SignedDuration::from_hours(3);
    assert_eq!(step(RestartDue { policy: PlayerPolicy::WaitForEmpty { deadline }, ..of(NIGHT) }), Step::Stage);
}

/// A window that is open in that night.
fn open_gate() -> Gate {
    Gate::Open { opened_at: at(NIGHT - 10), until: at(NIGHT + 120) }
}
