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
        gives_way_until: at(NIGHT),
    }
}

/// The goal is running, and a restart is due.
fn settled_goal() -> Goal {
    Goal { revision: OLD, world: DataVersion(1), restart: Some(restart()), ..GOAL }
}

const ACT: Disruption = Disruption::Restart { due: Timestamp::constant(60 * NIGHT, 0) };

fn told(mut seen: Observation) -> Observation {
    seen.facts.announced = Some(Announced { act: ACT, pod: POD, ends: at(NIGHT + 5) });
    seen.facts.saved = Some(SavedWorld { act: ACT, pod: POD, at: at(NIGHT + 5), confirmed: true });
    seen
}

fn step(goal: &Goal, seen: &Observation, minute: i64) -> Step {
    next_step(goal, seen, shut(), at(minute))
}

#[test]
fn restart_is_announced_saved_executed_and_verified() {
    let mut seen = lobby();
    let not_after = |minute| at(minute) + DECISION_COUNTS;
    let said = Step::Announce { act: ACT, pod: POD, notice: GOAL.notice, not_after: not_after(NIGHT) };
    assert_eq!(step(&settled_goal(), &seen, NIGHT), said);
    seen.facts.announced = Some(Announced { act: ACT, pod: POD, ends: at(NIGHT + 5) });
    assert_eq!(step(&settled_goal(), &seen, NIGHT + 4), Step::Wait(WaitingOn::Countdown { ends: at(NIGHT + 5) }));
    let save = Step::Save { act: ACT, pod: POD, not_after: not_after(NIGHT + 5) };
    assert_eq!(step(&settled_goal(), &seen, NIGHT + 5), save);
    seen.facts.saved = Some(SavedWorld { act: ACT, pod: POD, at: at(NIGHT + 5), confirmed: true });
    let delete = Step::Restart { due: at(NIGHT), pod: POD, unasked: false, not_after: not_after(NIGHT + 6) };
    assert_eq!(step(&settled_goal(), &seen, NIGHT + 6), delete);
    // The operator crashes between the record and the deletion: the same step, for the same pod.
    seen.facts.restarted = Some(RestartStarted { due: at(NIGHT), pod: POD });
    assert_eq!(step(&settled_goal(), &seen, NIGHT + 6), delete);
    // From here on no restart is due, because the operator checks when the server started.
    let goal = Goal { restart: None, ..settled_goal() };
    let becomes = |seen: &mut Observation, uid, life| {
        seen.pod = Some(PodView { uid, revision: OLD, world: DataVersion(1), life });
    };
    becomes(&mut seen, POD, PodPhase::Stopping { lost_at: at(NIGHT + 9) });
    assert_eq!(step(&goal, &seen, NIGHT + 7), Step::Wait(WaitingOn::PodStopping { until: at(NIGHT + 9) }));
    becomes(&mut seen, PodUid(8), PodPhase::Starting { gives_up_at: at(NIGHT + 17) });
    assert_eq!(step(&goal, &seen, NIGHT + 8), Step::Wait(WaitingOn::Start { until: at(NIGHT + 17) }));
    becomes(&mut seen, PodUid(8), PodPhase::Up);
    seen.verdict = Verification::Pending { until: at(NIGHT + 10) };
    assert_eq!(step(&goal, &seen, NIGHT + 9), Step::Wait(WaitingOn::Proof { until: at(NIGHT + 10) }));
    seen.verdict = Verification::Passed;
    assert_eq!(step(&goal, &seen, NIGHT + 10), Step::EndRestart);
    seen.facts.restarted = None;
    assert_eq!(step(&goal, &seen, NIGHT + 10), Step::Settled);
}

#[test]
fn server_that_fails_to_restart_is_not_rolled_back() {
    let mut seen = lobby();
    seen.facts.restarted = Some(RestartStarted { due: at(NIGHT), pod: POD });
    for (life, verdict) in [
        (PodPhase::Starting { gives_up_at: at(NIGHT + 17) }, Verification::Pending { until: at(NIGHT + 20) }),
        (PodPhase::Down, Verification::Failed),
    ] {
        seen.pod = Some(PodView { uid: PodUid(8), revision: OLD, world: DataVersion(1), life });
        seen.verdict = verdict;
        assert_eq!(step(&settled_goal(), &seen, NIGHT + 20), Step::Wait(WaitingOn::ServerDown));
    }
    seen.pod = Some(PodView { uid: PodUid(8), revision: OLD, world: DataVersion(1), life: PodPhase::Up });
    assert_eq!(step(&settled_goal(), &seen, NIGHT + 20), Step::EndRestart, "up and worse: kept, and told");
}

#[test]
fn restart_yields_to_update_that_may_begin_now() {
    let goal = Goal { restart: Some(restart()), ..GOAL };
    let in_its_window = Gate::Open { opened_at: at(NIGHT - 10), until: at(NIGHT + 100) };
    let update = Disruption::Update { goal: NEW, window_opened_at: at(NIGHT - 10) };
    let both = next_step(&goal, &lobby(), in_its_window, at(NIGHT));
    assert!(matches!(both, Step::Announce { act, .. } if act == update));
    assert!(matches!(step(&goal, &lobby(), NIGHT), Step::Announce { act, .. } if act == ACT), "only the restart");
    let delete = step(&goal, &told(lobby()), NIGHT + 6);
    assert!(matches!(delete, Step::Restart { pod: POD, .. }), "no template is written: {delete:?}");
    // The window opens while players count down for the restart.
    let both = next_step(&goal, &told(lobby()), in_its_window, at(NIGHT + 6));
    assert!(matches!(both, Step::Announce { act, .. } if act == update));
}

#[test]
fn restart_yields_to_update_certain_in_same_night() {
    let gives_way_until = at(NIGHT + 360);
    let goal = Goal { restart: Some(RestartDue { gives_way_until, ..restart() }), ..GOAL };
    let opening = |minute| Gate::Shut { opens: Some(at(minute)) };
    let answer = |goal: &Goal, seen: &Observation, gate| next_step(goal, seen, gate, at(NIGHT));
    let waits = Step::Wait(WaitingOn::Window { opens: Some(gives_way_until) });
    assert_eq!(answer(&goal, &lobby(), opening(NIGHT + 360)), waits);
    let begins = |step: Step| matches!(step, Step::Announce { act, .. } if act == ACT);
    assert!(begins(answer(&goal, &lobby(), opening(NIGHT + 361))), "another night");
    assert!(begins(answer(&goal, &lobby(), Gate::Shut { opens: None })), "approval, `follows` or a loop of crashes");
    let deadline = SignedDuration::from_mins(20);
    let wait_for_empty = Goal { policy: PlayerPolicy::WaitForEmpty { deadline }, ..goal };
    assert!(begins(answer(&wait_for_empty, &lobby(), opening(NIGHT + 360))), "they may stay all night");
    let unready = [
        Observation { staged: false, ..lobby() },
        Observation { images: ImagesOnNode::Failed, ..lobby() },
        Observation { images: ImagesOnNode::OnTheirWay, ..lobby() },
    ];
    for seen in unready {
        assert!(begins(answer(&goal, &seen, opening(NIGHT + 360))), "{seen:?}");
    }
    // An announced restart happens.
    let told = next_step(&goal, &told(lobby()), opening(NIGHT + 360), at(NIGHT + 6));
    assert!(matches!(told, Step::Restart { .. }), "{told:?}");
}

#[test]
fn failed_or_blocked_update_does_not_block_restart() {
    let goal = Goal { restart: Some(restart()), ..GOAL };
    let mut seen = told(lobby());
    seen.facts.failed = vec![NEW];
    assert!(matches!(step(&goal, &seen, NIGHT + 6), Step::Restart { .. }));
    let mut seen = told(lobby());
    seen.world.floor = DataVersion(3);
    assert!(matches!(step(&goal, &seen, NIGHT + 6), Step::Restart { .. }));
}

#[test]
fn restart_is_skipped_unless_countdown_ends_in_time() {
    let until = NIGHT + 30;
    let just = at(until) - LATEST_START - GOAL.notice;
    let answer = |seen: &Observation, now| next_step(&settled_goal(), seen, shut(), now);
    assert!(matches!(answer(&lobby(), just), Step::Announce { .. }));
    assert_eq!(answer(&lobby(), just + SignedDuration::from_secs(1)), Step::Settled);
    let mut seen = lobby();
    seen.facts.announced = Some(Announced { act: ACT, pod: POD, ends: at(until - 2) });
    seen.facts.saved = Some(SavedWorld { act: ACT, pod: POD, at: at(until - 2), confirmed: true });
    assert!(matches!(answer(&seen, at(until) - LATEST_START), Step::Restart { .. }));
    let late = at(until - 1) + SignedDuration::from_secs(1);
    assert_eq!(answer(&seen, late), call_off(ACT, late), "players are told that it does not come");
    seen.facts = lobby().facts;
    assert_eq!(answer(&seen, late), Step::Settled);
}

#[test]
fn restart_uses_own_policy_and_deadline_from_its_instant() {
    let deadline = SignedDuration::from_mins(20);
    let wait = RestartDue { policy: PlayerPolicy::WaitForEmpty { deadline }, ..restart() };
    let goal = Goal { restart: Some(wait), ..settled_goal() };
    assert_eq!(step(&goal, &lobby(), NIGHT), Step::Wait(WaitingOn::Players { until: at(NIGHT + 20) }));
    assert!(matches!(step(&goal, &lobby(), NIGHT + 20), Step::Announce { .. }));
    let ignore = Goal { restart: Some(RestartDue { policy: PlayerPolicy::Ignore, ..restart() }), ..settled_goal() };
    assert!(matches!(step(&ignore, &lobby(), NIGHT), Step::Restart { .. }));
}

#[test]
fn only_if_empty_restart_is_skipped_while_players_stay() {
    let goal = Goal { restart: Some(RestartDue { only_empty: true, ..restart() }), ..settled_goal() };
    let silent = Players::Unknown { since: at(NIGHT - 60) };
    for players in [Players::Some(1), silent] {
        let seen = Observation { players, ..lobby() };
        assert_eq!(step(&goal, &seen, NIGHT), Step::Wait(WaitingOn::Players { until: at(NIGHT + 30) }), "{players:?}");
        assert_eq!(step(&goal, &seen, NIGHT + 30), Step::Settled);
    }
    let empty = Observation { players: Players::Nobody, ..lobby() };
    assert!(matches!(step(&goal, &empty, NIGHT), Step::Announce { notice, .. } if notice == GOAL.empty_notice));
    let ignore = RestartDue { only_empty: true, policy: PlayerPolicy::Ignore, ..restart() };
    let goal = Goal { restart: Some(ignore), ..settled_goal() };
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
        Some(PodPhase::Starting { gives_up_at: at(NIGHT) }),
        Some(PodPhase::Stopping { lost_at: at(NIGHT) }),
    ];
    let mut restarts = 0;
    for template in revisions {
        for current in revisions {
            for door in [Partition::Closed, Partition::Open] {
                for life in lives {
                    for runs in revisions {
                        for pod in [POD, PodUid(8)] {
                            let set = Some(StatefulSetView { template, current, update: template, door, ..SET });
                            let pod =
                                life.map(|life| PodView { uid: pod, revision: runs, world: DataVersion(1), life });
                            let seen = Observation { set, pod, ..told(lobby()) };
                            let step = step(&Goal { restart: Some(restart()), ..GOAL }, &seen, NIGHT + 6);
                            if !matches!(step, Step::Restart { .. }) {
                                continue;
                            }
                            restarts += 1;
                            assert_eq!((template, current, door, runs), (OLD, OLD, Partition::Closed, OLD));
                            assert_eq!((life, pod.unwrap().uid), (Some(PodPhase::Up), POD), "told and saved");
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
    let not_after = at(NIGHT) + DECISION_COUNTS;
    let delete = |unasked| Step::Restart { due: at(NIGHT), pod: POD, unasked, not_after };
    let seen = |life, copy_asked, players| Observation {
        pod: lobby().pod.map(|pod| PodView { life, ..pod }),
        copy_asked,
        players,
        ..lobby()
    };
    let starting = PodPhase::Starting { gives_up_at: at(NIGHT) };
    for life in [PodPhase::Down, starting] {
        let next = |copy_asked, players| step(&settled_goal(), &seen(life, copy_asked, players), NIGHT);
        assert_eq!(next(true, Players::Nobody), delete(false), "{life:?}: nobody is on, so nobody is told");
        assert_eq!(next(false, Players::Nobody), Step::Wait(WaitingOn::ServerDown), "{life:?}: the clock alone");
        let since = at(NIGHT - 1);
        let until = since + GOAL.patience;
        assert_eq!(next(true, Players::Unknown { since }), Step::Wait(WaitingOn::Agent { until }), "{life:?}");
        assert_eq!(next(true, Players::Unknown { since: at(NIGHT - 60) }), delete(true), "{life:?}");
        // Too late for the request.
        let late = step(&settled_goal(), &seen(life, true, Players::Nobody), NIGHT + 30);
        assert_eq!(late, Step::Wait(WaitingOn::ServerDown), "{life:?}");
        let other = next_step(&GOAL, &seen(life, true, Players::Nobody), shut(), at(NIGHT));
        assert_eq!(other, Step::Wait(WaitingOn::ServerDown), "{life:?}: no restart is due");
    }
    // A different pod was expected to start after a restart: its verification is not awaited.
    let mut again = seen(PodPhase::Down, true, Players::Nobody);
    again.facts.restarted = Some(RestartStarted { due: at(NIGHT - 10), pod: PodUid(6) });
    for verdict in [Verification::Pending { until: at(NIGHT + 9) }, Verification::Failed] {
        let again = Observation { verdict, ..again.clone() };
        assert_eq!(step(&settled_goal(), &again, NIGHT), delete(false));
    }
    let until = at(NIGHT + 1);
    let in_time = seen(PodPhase::Starting { gives_up_at: until }, true, Players::Nobody);
    assert_eq!(step(&settled_goal(), &in_time, NIGHT), Step::Wait(WaitingOn::Start { until }), "it may come up yet");
    // A template that a user wrote is reverted first.
    let mut edited = seen(PodPhase::Down, true, Players::Nobody);
    edited.set = Some(StatefulSetView { template: NEW, ..SET });
    assert!(matches!(step(&settled_goal(), &edited, NIGHT), Step::Restore { revision: OLD, .. }));
}

#[test]
fn missing_files_block_restart_for_one_night_only() {
    let unstaged = Observation { staged: false, ..lobby() };
    let of = |gives_way_until: i64| RestartDue { gives_way_until: at(gives_way_until), ..restart() };
    let step = |restart: RestartDue| {
        next_step(&Goal { restart: Some(restart), ..GOAL }, &unstaged, opening_now(), at(NIGHT + 1))
    };
    assert_eq!(step(of(NIGHT + 360)), Step::Stage);
    // The instant before was already left out.
    assert!(matches!(step(of(NIGHT)), Step::Announce { act: Disruption::Restart { .. }, .. }));
    // A restart that waits for players does not delay the staging.
    assert_eq!(step(RestartDue { only_empty: true, ..of(NIGHT) }), Step::Stage);
    let deadline = SignedDuration::from_hours(3);
    assert_eq!(step(RestartDue { policy: PlayerPolicy::WaitForEmpty { deadline }, ..of(NIGHT) }), Step::Stage);
}

/// A window that is open in that night.
fn opening_now() -> Gate {
    Gate::Open { opened_at: at(NIGHT - 10), until: at(NIGHT + 120) }
}
