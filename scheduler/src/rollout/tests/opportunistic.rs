//! Checks updates outside of windows: only on an empty or stopped server, or with a scheduled restart.

use super::*;
use crate::maintenance::{Blackout, Windows};
use crate::observation::RestartDue;
use crate::rollout::{Opportunity, OpportunityReason, opportunity};

const EMPTY_FOR: SignedDuration = SignedDuration::from_mins(10);
/// When the last player left, in minutes: outside of every window, and not at midnight.
const LEFT: i64 = SUNDAY - 1_000;
/// The minute from which the server has been empty long enough.
const LONG_EMPTY: i64 = LEFT + 10;

/// A goal with the same Minecraft.
const BUILD: Goal = Goal { world: DataVersion(1), ..GOAL };

fn windows(blackouts: Vec<Blackout>) -> Windows {
    Windows { windows: Vec::new(), enabled: true, blackouts }
}

fn empty() -> Observation {
    Observation { players: Players::Nobody, empty_since: Some(at(LEFT)), ..lobby() }
}

fn found(goal: &Goal, observation: &Observation, minute: i64) -> Option<Opportunity> {
    opportunity(goal, observation, shut(), &windows(Vec::new()), EMPTY_FOR, at(minute))
}

fn reason(goal: &Goal, observation: &Observation, minute: i64) -> Option<OpportunityReason> {
    found(goal, observation, minute).map(|found| found.reason)
}

/// The next step, with the opening if there is one.
fn step(goal: &Goal, observation: &Observation, minute: i64) -> Step {
    match found(goal, observation, minute) {
        Some(opportunity) => {
            next_step(&Goal { policy: opportunity.policy, ..*goal }, observation, opportunity.gate, at(minute))
        }
        None => next_step(goal, observation, shut(), at(minute)),
    }
}

fn waits() -> Step {
    Step::Wait(WaitingOn::Window { opens: Some(at(SUNDAY + WEEK)) })
}

#[test]
fn opportunistic_update_begins_once_empty_long_enough() {
    let mut observation = empty();
    assert_eq!(step(&BUILD, &observation, LONG_EMPTY - 1), waits());
    let disruption = update(LONG_EMPTY);
    let not_after = at(LONG_EMPTY + 3) + DECISION_VALID_FOR;
    let announcement = Step::Announce { disruption, pod: POD, notice: GOAL.empty_notice, not_after };
    assert_eq!(step(&BUILD, &observation, LONG_EMPTY + 3), announcement);
    observation.facts.announced = Some(Announced { act: disruption, pod: POD, ends: at(LONG_EMPTY + 4) });
    assert!(matches!(step(&BUILD, &observation, LONG_EMPTY + 4), Step::Save { .. }));
    observation.facts.saved = Some(SavedWorld { act: disruption, pod: POD, at: at(LONG_EMPTY + 4), confirmed: true });
    assert!(matches!(step(&BUILD, &observation, LONG_EMPTY + 4), Step::WriteTemplate { .. }));
    observation.stateful_set = Some(StatefulSetView { template: NEW, update: NEW, ..STATEFUL_SET });
    assert!(matches!(step(&BUILD, &observation, LONG_EMPTY + 4), Step::Commit { agent_unreachable: false, .. }));
}

#[test]
fn player_join_cancels_opportunistic_update_until_empty_long_enough() {
    let disruption = update(LONG_EMPTY);
    let warned = RecordedFacts {
        announced: Some(Announced { act: disruption, pod: POD, ends: at(LONG_EMPTY + 1) }),
        saved: Some(SavedWorld { act: disruption, pod: POD, at: at(LONG_EMPTY + 1), confirmed: true }),
        ..empty().facts
    };
    let reverted = Step::Restore { revision: OLD, partition: Partition::Closed };
    let cancelled = cancellation(disruption, at(LONG_EMPTY + 2));
    for (stateful_set, expected_step) in [
        (STATEFUL_SET, cancelled),
        (StatefulSetView { template: NEW, update: NEW, ..STATEFUL_SET }, reverted),
        (COMMITTED, reverted),
    ] {
        for players in [Players::Some(1), Players::Unknown { since: at(LONG_EMPTY) }] {
            let joined = Observation {
                stateful_set: Some(stateful_set),
                players,
                empty_since: None,
                facts: warned.clone(),
                ..empty()
            };
            // A server that does not answer cannot inform its players.
            let is_silent = expected_step == cancelled && players != Players::Some(1);
            let expected = if is_silent { waits() } else { expected_step };
            assert_eq!(step(&BUILD, &joined, LONG_EMPTY + 2), expected, "{stateful_set:?}, {players:?}");
        }
    }
    let again = Observation { empty_since: Some(at(LONG_EMPTY + 3)), ..empty() };
    assert_eq!(step(&BUILD, &again, LONG_EMPTY + 12), waits());
    assert!(
        matches!(step(&BUILD, &again, LONG_EMPTY + 13), Step::Announce { disruption, .. } if disruption == update(LONG_EMPTY + 13))
    );
}

#[test]
fn server_is_empty_only_by_its_own_report() {
    for observation in [
        Observation { empty_since: None, ..empty() },
        Observation { players: Players::Some(1), ..empty() },
        Observation { players: Players::Unknown { since: at(LEFT) }, ..empty() },
        Observation { staged: false, ..empty() },
        Observation { images: ImagesOnNode::Pulling, ..empty() },
        Observation { images: ImagesOnNode::Failed, ..empty() },
        Observation { crash_loop: true, ..empty() },
    ] {
        assert_eq!(reason(&BUILD, &observation, LONG_EMPTY + 60), None, "{observation:?}");
    }
}

#[test]
fn opportunity_excludes_newer_minecraft_and_failed_or_old_goal() {
    assert_eq!(reason(&BUILD, &empty(), LONG_EMPTY), Some(OpportunityReason::Empty));
    let unchecked = Observation { images: ImagesOnNode::Unknown, ..empty() };
    assert_eq!(reason(&BUILD, &unchecked, LONG_EMPTY), Some(OpportunityReason::Empty), "its node is unreachable");
    assert_eq!(reason(&GOAL, &empty(), LONG_EMPTY), None, "a newer Minecraft is excluded");
    let mut failed = empty();
    failed.facts.failed = vec![NEW];
    assert_eq!(reason(&BUILD, &failed, LONG_EMPTY), None);
    let mut floor = empty();
    floor.world.floor = DataVersion(2);
    assert_eq!(reason(&BUILD, &floor, LONG_EMPTY), None);
    assert_eq!(reason(&Goal { revision: OLD, ..BUILD }, &empty(), LONG_EMPTY), None, "the goal is stable already");
    let first_start = Observation { facts: RecordedFacts::default(), ..empty() };
    assert_eq!(reason(&BUILD, &first_start, LONG_EMPTY), None);
}

#[test]
fn opportunity_excludes_crashed_server_and_includes_scaled_to_zero() {
    for phase in [
        PodPhase::Down,
        PodPhase::Refused,
        PodPhase::Starting { deadline: at(LONG_EMPTY + 9) },
        PodPhase::Stopping { overdue_at: at(LONG_EMPTY + 9) },
    ] {
        let pod = empty().pod.map(|pod| PodView { phase, ..pod });
        assert_eq!(reason(&BUILD, &Observation { pod, ..empty() }, LONG_EMPTY), None, "{phase:?}");
    }
    let without_pod = Observation { pod: None, ..empty() };
    assert_eq!(reason(&BUILD, &without_pod, LONG_EMPTY), None);
    let silent = Observation { players: Players::Unknown { since: at(0) }, empty_since: None, ..without_pod };
    let mut scaled_to_zero =
        Observation { stateful_set: Some(StatefulSetView { scaled_to_zero: true, ..STATEFUL_SET }), ..silent };
    assert_eq!(reason(&BUILD, &scaled_to_zero, LEFT), Some(OpportunityReason::ScaledToZero));
    assert!(matches!(step(&BUILD, &scaled_to_zero, LEFT), Step::WriteTemplate { .. }));
    scaled_to_zero.stateful_set =
        Some(StatefulSetView { scaled_to_zero: true, template: NEW, update: NEW, ..STATEFUL_SET });
    assert!(matches!(step(&BUILD, &scaled_to_zero, LEFT), Step::Commit { .. }));
}

#[test]
fn opportunity_excludes_open_window_and_update_of_another_goal() {
    let of = |gate, observation: &Observation| {
        opportunity(&BUILD, observation, gate, &windows(Vec::new()), EMPTY_FOR, at(LONG_EMPTY))
    };
    assert!(of(shut(), &empty()).is_some());
    let until = at(LONG_EMPTY + 60);
    for gate in
        [Gate::Open { opened_at: at(LEFT), until }, Gate::NoNewStarts { opened_at: at(LEFT), until, opens: None }]
    {
        assert_eq!(of(gate, &empty()), None);
    }
    let others =
        StatefulSetView { template: Revision(0xc), update: Revision(0xc), partition: Partition::Open, ..STATEFUL_SET };
    assert_eq!(of(shut(), &Observation { stateful_set: Some(others), ..empty() }), None, "another goal is reverted");
    assert!(of(shut(), &Observation { stateful_set: Some(COMMITTED), ..empty() }).is_some());
    assert_eq!(of(shut(), &Observation { players: Players::Nobody, ..in_progress(PodPhase::Up) }), None);
}

#[test]
fn blackout_ends_opportunity() {
    let dark = Blackout::once("event", at(LONG_EMPTY + 20), at(LONG_EMPTY + 40)).unwrap();
    let gate = |minute| {
        let windows = windows(vec![dark.clone()]);
        opportunity(&BUILD, &empty(), shut(), &windows, EMPTY_FOR, at(minute)).map(|found| found.gate)
    };
    assert_eq!(gate(LONG_EMPTY), Some(Gate::Open { opened_at: at(LONG_EMPTY), until: at(LONG_EMPTY + 20) }));
    assert_eq!(gate(LONG_EMPTY + 20), None);
    assert!(
        matches!(gate(LONG_EMPTY + 40), Some(Gate::Open { opened_at, .. }) if opened_at == at(LONG_EMPTY + 40)),
        "a new opening begins after the blackout"
    );
}

fn restart(only_empty: bool) -> RestartDue {
    RestartDue {
        due: at(LEFT),
        until: at(LEFT + 35),
        policy: PlayerPolicy::Announce,
        only_empty,
        yields_until: at(LEFT),
    }
}

#[test]
fn scheduled_restart_includes_update_under_own_policy() {
    let goal = Goal { restart: Some(restart(false)), policy: PlayerPolicy::Ignore, ..BUILD };
    let mut observation = Observation { empty_since: None, ..lobby() };
    let with = Opportunity {
        reason: OpportunityReason::Restart,
        gate: Gate::Open { opened_at: at(LEFT), until: at(LEFT + 35) },
        policy: PlayerPolicy::Announce,
    };
    assert_eq!(found(&goal, &observation, LEFT), Some(with));
    let announcement = step(&goal, &observation, LEFT);
    assert!(
        matches!(announcement, Step::Announce { disruption, notice, .. } if disruption == update(LEFT) && notice == GOAL.notice),
        "{announcement:?}"
    );
    observation.facts.announced = Some(Announced { act: update(LEFT), pod: POD, ends: at(LEFT + 5) });
    observation.facts.saved = Some(SavedWorld { act: update(LEFT), pod: POD, at: at(LEFT + 5), confirmed: true });
    assert!(matches!(step(&goal, &observation, LEFT + 6), Step::WriteTemplate { .. }));
    // Players were told the time. That they have left since makes it neither earlier nor a different disruption.
    let left = Observation { players: Players::Nobody, empty_since: Some(at(LEFT - 60)), ..observation };
    assert_eq!(reason(&goal, &left, LEFT + 6), Some(OpportunityReason::Restart));
    // Images that a new operator has not checked yet do not change it either: players were warned only after the images
    // were there.
    let pulling = Observation { images: ImagesOnNode::Pulling, ..left.clone() };
    assert_eq!(reason(&goal, &pulling, LEFT + 6), Some(OpportunityReason::Restart));
    assert_eq!(reason(&goal, &Observation { facts: empty().facts, ..left }, LEFT + 6), Some(OpportunityReason::Empty));
}

#[test]
fn restart_excludes_forbidden_update_and_is_final_once_announced() {
    let without_opportunity = |goal: &Goal, observation: &Observation| {
        assert_eq!(reason(goal, observation, LEFT), None, "{observation:?}");
        step(goal, observation, LEFT)
    };
    let goal = Goal { restart: Some(restart(false)), ..BUILD };
    let disruption = Disruption::Restart { due: at(LEFT) };
    let is_restart = |step| matches!(step, Step::Announce { disruption: found, .. } if found == disruption);
    assert!(is_restart(without_opportunity(&Goal { restart: goal.restart, ..GOAL }, &lobby())), "Minecraft is newer");
    assert!(is_restart(without_opportunity(&goal, &Observation { staged: false, ..lobby() })));
    let mut warned = lobby();
    warned.facts.announced = Some(Announced { act: disruption, pod: POD, ends: at(LEFT + 1) });
    assert_eq!(without_opportunity(&goal, &warned), Step::Wait(WaitingOn::Countdown { ends: at(LEFT + 1) }));
    let silent = Observation { players: Players::Unknown { since: at(LEFT) }, ..lobby() };
    assert!(matches!(without_opportunity(&goal, &silent), Step::Wait(WaitingOn::Agent { .. })));
    let only_empty = Goal { restart: Some(restart(true)), ..BUILD };
    assert!(matches!(without_opportunity(&only_empty, &lobby()), Step::Wait(WaitingOn::Players { .. })));
    let empty_server = Observation { players: Players::Nobody, ..lobby() };
    assert_eq!(reason(&only_empty, &empty_server, LEFT), Some(OpportunityReason::Restart));
    // A player who joins during the countdown has been warned, as before any restart.
    let mut joined = lobby();
    joined.facts.announced = Some(Announced { act: update(LEFT), pod: POD, ends: at(LEFT + 1) });
    assert_eq!(reason(&only_empty, &joined, LEFT), Some(OpportunityReason::Restart));
}
