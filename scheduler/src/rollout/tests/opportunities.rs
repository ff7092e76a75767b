//! Checks updates outside of windows: only while no player would mind.

use super::*;
use crate::maintenance::{Blackout, Windows};
use crate::observation::RestartDue;
use crate::rollout::{Opportunity, OpportunityReason, opportunity};

const EMPTY_FOR: SignedDuration = SignedDuration::from_mins(10);
/// When the last player left, in minutes: outside of every window, and not at midnight.
const LEFT: i64 = SUNDAY - 1_000;
/// The minute from which no player would mind.
const LONG: i64 = LEFT + 10;

/// A goal with the same Minecraft.
const BUILD: Goal = Goal { world: DataVersion(1), ..GOAL };

fn windows(blackouts: Vec<Blackout>) -> Windows {
    Windows { windows: Vec::new(), enabled: true, blackouts }
}

fn empty() -> Observation {
    Observation { players: Players::Nobody, empty_since: Some(at(LEFT)), ..lobby() }
}

fn found(goal: &Goal, seen: &Observation, minute: i64) -> Option<Opportunity> {
    opportunity(goal, seen, shut(), &windows(Vec::new()), EMPTY_FOR, at(minute))
}

fn occasion(goal: &Goal, seen: &Observation, minute: i64) -> Option<OpportunityReason> {
    found(goal, seen, minute).map(|found| found.occasion)
}

/// The next step, with the opening if there is one.
fn step(goal: &Goal, seen: &Observation, minute: i64) -> Step {
    match found(goal, seen, minute) {
        Some(it) => next_step(&Goal { policy: it.policy, ..*goal }, seen, it.gate, at(minute)),
        None => next_step(goal, seen, shut(), at(minute)),
    }
}

fn waits() -> Step {
    Step::Wait(WaitingOn::Window { opens: Some(at(SUNDAY + WEEK)) })
}

#[test]
fn opportunistic_update_begins_once_empty_long_enough() {
    let mut seen = empty();
    assert_eq!(step(&BUILD, &seen, LONG - 1), waits());
    let act = update(LONG);
    let not_after = at(LONG + 3) + DECISION_COUNTS;
    let said = Step::Announce { act, pod: POD, notice: GOAL.empty_notice, not_after };
    assert_eq!(step(&BUILD, &seen, LONG + 3), said);
    seen.facts.announced = Some(Announced { act, pod: POD, ends: at(LONG + 4) });
    assert!(matches!(step(&BUILD, &seen, LONG + 4), Step::Save { .. }));
    seen.facts.saved = Some(SavedWorld { act, pod: POD, at: at(LONG + 4), confirmed: true });
    assert!(matches!(step(&BUILD, &seen, LONG + 4), Step::WriteTemplate { .. }));
    seen.set = Some(StatefulSetView { template: NEW, update: NEW, ..SET });
    assert!(matches!(step(&BUILD, &seen, LONG + 4), Step::Commit { unasked: false, .. }));
}

#[test]
fn player_join_cancels_opportunistic_update_until_empty_long_enough() {
    let act = update(LONG);
    let told = RecordedFacts {
        announced: Some(Announced { act, pod: POD, ends: at(LONG + 1) }),
        saved: Some(SavedWorld { act, pod: POD, at: at(LONG + 1), confirmed: true }),
        ..empty().facts
    };
    let back = Step::Restore { revision: OLD, door: Partition::Closed };
    let told_so = call_off(act, at(LONG + 2));
    for (set, called_off) in
        [(SET, told_so), (StatefulSetView { template: NEW, update: NEW, ..SET }, back), (COMMITTED, back)]
    {
        for players in [Players::Some(1), Players::Unknown { since: at(LONG) }] {
            let joined = Observation { set: Some(set), players, empty_since: None, facts: told.clone(), ..empty() };
            // A server that does not answer cannot inform its players.
            let is_silent = called_off == told_so && players != Players::Some(1);
            let expected = if is_silent { waits() } else { called_off };
            assert_eq!(step(&BUILD, &joined, LONG + 2), expected, "{set:?}, {players:?}");
        }
    }
    let again = Observation { empty_since: Some(at(LONG + 3)), ..empty() };
    assert_eq!(step(&BUILD, &again, LONG + 12), waits());
    assert!(matches!(step(&BUILD, &again, LONG + 13), Step::Announce { act, .. } if act == update(LONG + 13)));
}

#[test]
fn server_is_empty_only_by_its_own_report() {
    for seen in [
        Observation { empty_since: None, ..empty() },
        Observation { players: Players::Some(1), ..empty() },
        Observation { players: Players::Unknown { since: at(LEFT) }, ..empty() },
        Observation { staged: false, ..empty() },
        Observation { images: ImagesOnNode::OnTheirWay, ..empty() },
        Observation { images: ImagesOnNode::Failed, ..empty() },
        Observation { crash_loop: true, ..empty() },
    ] {
        assert_eq!(occasion(&BUILD, &seen, LONG + 60), None, "{seen:?}");
    }
}

#[test]
fn opportunity_excludes_newer_minecraft_and_failed_or_old_goal() {
    assert_eq!(occasion(&BUILD, &empty(), LONG), Some(OpportunityReason::Empty));
    let not_asked = Observation { images: ImagesOnNode::Unknown, ..empty() };
    assert_eq!(occasion(&BUILD, &not_asked, LONG), Some(OpportunityReason::Empty), "its node cannot be asked");
    assert_eq!(occasion(&GOAL, &empty(), LONG), None, "one-way");
    let mut failed = empty();
    failed.facts.failed = vec![NEW];
    assert_eq!(occasion(&BUILD, &failed, LONG), None);
    let mut floor = empty();
    floor.world.floor = DataVersion(2);
    assert_eq!(occasion(&BUILD, &floor, LONG), None);
    assert_eq!(occasion(&Goal { revision: OLD, ..BUILD }, &empty(), LONG), None, "nothing is due");
    let first_start = Observation { facts: RecordedFacts::default(), ..empty() };
    assert_eq!(occasion(&BUILD, &first_start, LONG), None);
}

#[test]
fn opportunity_excludes_crashed_server_and_includes_scaled_to_zero() {
    for life in [
        PodPhase::Down,
        PodPhase::Refused,
        PodPhase::Starting { gives_up_at: at(LONG + 9) },
        PodPhase::Stopping { lost_at: at(LONG + 9) },
    ] {
        let pod = empty().pod.map(|pod| PodView { life, ..pod });
        assert_eq!(occasion(&BUILD, &Observation { pod, ..empty() }, LONG), None, "{life:?}");
    }
    let lost = Observation { pod: None, ..empty() };
    assert_eq!(occasion(&BUILD, &lost, LONG), None);
    let silent = Observation { players: Players::Unknown { since: at(0) }, empty_since: None, ..lost };
    let mut asleep = Observation { set: Some(StatefulSetView { asleep: true, ..SET }), ..silent };
    assert_eq!(occasion(&BUILD, &asleep, LEFT), Some(OpportunityReason::Asleep));
    assert!(matches!(step(&BUILD, &asleep, LEFT), Step::WriteTemplate { .. }));
    asleep.set = Some(StatefulSetView { asleep: true, template: NEW, update: NEW, ..SET });
    assert!(matches!(step(&BUILD, &asleep, LEFT), Step::Commit { .. }));
}

#[test]
fn opportunity_excludes_open_window_and_update_of_another_goal() {
    let of = |gate, seen: &Observation| opportunity(&BUILD, seen, gate, &windows(Vec::new()), EMPTY_FOR, at(LONG));
    assert!(of(shut(), &empty()).is_some());
    let until = at(LONG + 60);
    for gate in
        [Gate::Open { opened_at: at(LEFT), until }, Gate::NoNewStarts { opened_at: at(LEFT), until, opens: None }]
    {
        assert_eq!(of(gate, &empty()), None);
    }
    let others = StatefulSetView { template: Revision(0xc), update: Revision(0xc), door: Partition::Open, ..SET };
    assert_eq!(of(shut(), &Observation { set: Some(others), ..empty() }), None, "it is taken back");
    assert!(of(shut(), &Observation { set: Some(COMMITTED), ..empty() }).is_some());
    assert_eq!(of(shut(), &Observation { players: Players::Nobody, ..on_trial(PodPhase::Up) }), None);
}

#[test]
fn blackout_ends_opportunity() {
    let dark = Blackout::once("event", at(LONG + 20), at(LONG + 40)).unwrap();
    let gate = |minute| {
        let windows = windows(vec![dark.clone()]);
        opportunity(&BUILD, &empty(), shut(), &windows, EMPTY_FOR, at(minute)).map(|found| found.gate)
    };
    assert_eq!(gate(LONG), Some(Gate::Open { opened_at: at(LONG), until: at(LONG + 20) }));
    assert_eq!(gate(LONG + 20), None);
    assert!(
        matches!(gate(LONG + 40), Some(Gate::Open { opened_at, .. }) if opened_at == at(LONG + 40)),
        "another opening"
    );
}

fn restart(only_empty: bool) -> RestartDue {
    RestartDue {
        due: at(LEFT),
        until: at(LEFT + 35),
        policy: PlayerPolicy::Announce,
        only_empty,
        gives_way_until: at(LEFT),
    }
}

#[test]
fn scheduled_restart_includes_update_under_own_policy() {
    let goal = Goal { restart: Some(restart(false)), policy: PlayerPolicy::Ignore, ..BUILD };
    let mut seen = Observation { empty_since: None, ..lobby() };
    let with = Opportunity {
        occasion: OpportunityReason::Restart,
        gate: Gate::Open { opened_at: at(LEFT), until: at(LEFT + 35) },
        policy: PlayerPolicy::Announce,
    };
    assert_eq!(found(&goal, &seen, LEFT), Some(with));
    let said = step(&goal, &seen, LEFT);
    assert!(
        matches!(said, Step::Announce { act, notice, .. } if act == update(LEFT) && notice == GOAL.notice),
        "{said:?}"
    );
    seen.facts.announced = Some(Announced { act: update(LEFT), pod: POD, ends: at(LEFT + 5) });
    seen.facts.saved = Some(SavedWorld { act: update(LEFT), pod: POD, at: at(LEFT + 5), confirmed: true });
    assert!(matches!(step(&goal, &seen, LEFT + 6), Step::WriteTemplate { .. }));
    // Players were told the time. That they have left since makes it neither earlier nor a different disruption.
    let left = Observation { players: Players::Nobody, empty_since: Some(at(LEFT - 60)), ..seen };
    assert_eq!(occasion(&goal, &left, LEFT + 6), Some(OpportunityReason::Restart));
    // Images that a new operator has not checked yet do not change it either: players were warned only after the images
    // were there.
    let asked_again = Observation { images: ImagesOnNode::OnTheirWay, ..left.clone() };
    assert_eq!(occasion(&goal, &asked_again, LEFT + 6), Some(OpportunityReason::Restart));
    assert_eq!(
        occasion(&goal, &Observation { facts: empty().facts, ..left }, LEFT + 6),
        Some(OpportunityReason::Empty)
    );
}

#[test]
fn restart_excludes_forbidden_update_and_is_final_once_announced() {
    let alone = |goal: &Goal, seen: &Observation| {
        assert_eq!(occasion(goal, seen, LEFT), None, "{seen:?}");
        step(goal, seen, LEFT)
    };
    let goal = Goal { restart: Some(restart(false)), ..BUILD };
    let act = Disruption::Restart { due: at(LEFT) };
    let is_restart = |step| matches!(step, Step::Announce { act: what, .. } if what == act);
    assert!(is_restart(alone(&Goal { restart: goal.restart, ..GOAL }, &lobby())), "a newer Minecraft");
    assert!(is_restart(alone(&goal, &Observation { staged: false, ..lobby() })));
    let mut told = lobby();
    told.facts.announced = Some(Announced { act, pod: POD, ends: at(LEFT + 1) });
    assert_eq!(alone(&goal, &told), Step::Wait(WaitingOn::Countdown { ends: at(LEFT + 1) }));
    let silent = Observation { players: Players::Unknown { since: at(LEFT) }, ..lobby() };
    assert!(matches!(alone(&goal, &silent), Step::Wait(WaitingOn::Agent { .. })));
    let only_empty = Goal { restart: Some(restart(true)), ..BUILD };
    assert!(matches!(alone(&only_empty, &lobby()), Step::Wait(WaitingOn::Players { .. })));
    let nobody = Observation { players: Players::Nobody, ..lobby() };
    assert_eq!(occasion(&only_empty, &nobody, LEFT), Some(OpportunityReason::Restart));
    // A player who joins during the countdown has been warned, as before any restart.
    let mut joined = lobby();
    joined.facts.announced = Some(Announced { act: update(LEFT), pod: POD, ends: at(LEFT + 1) });
    assert_eq!(occasion(&only_empty, &joined, LEFT), Some(OpportunityReason::Restart));
}
