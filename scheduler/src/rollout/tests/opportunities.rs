//! Updates outside of windows: only where nobody minds, and no longer than that.

use super::*;
use crate::gate::{Blackout, Windows};
use crate::rollout::{Occasion, Opportunity, opportunity};
use crate::seen::Restart;

const EMPTY_FOR: SignedDuration = SignedDuration::from_mins(10);
/// When the last player left, in minutes: outside of every window, and not at midnight.
const LEFT: i64 = SUNDAY - 1_000;
/// From when on nobody minds.
const LONG: i64 = LEFT + 10;

/// Of the same Minecraft.
const BUILD: Goal = Goal { world: DataVersion(1), ..GOAL };

fn windows(blackouts: Vec<Blackout>) -> Windows {
    Windows { windows: Vec::new(), enabled: true, blackouts }
}

fn empty() -> Seen {
    Seen { players: Players::Nobody, empty_since: Some(at(LEFT)), ..lobby() }
}

fn found(goal: &Goal, seen: &Seen, minute: i64) -> Option<Opportunity> {
    opportunity(goal, seen, shut(), &windows(Vec::new()), EMPTY_FOR, at(minute))
}

fn occasion(goal: &Goal, seen: &Seen, minute: i64) -> Option<Occasion> {
    found(goal, seen, minute).map(|found| found.occasion)
}

/// What is done, with the opening if there is one.
fn step(goal: &Goal, seen: &Seen, minute: i64) -> Step {
    match found(goal, seen, minute) {
        Some(it) => next_step(&Goal { policy: it.policy, ..*goal }, seen, it.gate, at(minute)),
        None => next_step(goal, seen, shut(), at(minute)),
    }
}

fn waits() -> Step {
    Step::Wait(WaitingOn::Window { opens: Some(at(SUNDAY + WEEK)) })
}

#[test]
fn when_nobody_has_been_on_for_long_enough_an_update_comes_with_the_countdown_of_an_empty_server() {
    let mut seen = empty();
    assert_eq!(step(&BUILD, &seen, LONG - 1), waits());
    let act = update(LONG);
    let not_after = at(LONG + 3) + DECISION_COUNTS;
    let said = Step::Announce { act, pod: POD, notice: GOAL.empty_notice, not_after };
    assert_eq!(step(&BUILD, &seen, LONG + 3), said);
    seen.facts.announced = Some(Announced { act, pod: POD, ends: at(LONG + 4) });
    assert!(matches!(step(&BUILD, &seen, LONG + 4), Step::Save { .. }));
    seen.facts.saved = Some(Saved { act, pod: POD, at: at(LONG + 4), confirmed: true });
    assert!(matches!(step(&BUILD, &seen, LONG + 4), Step::WriteTemplate { .. }));
    seen.set = Some(Set { template: NEW, update: NEW, ..SET });
    assert!(matches!(step(&BUILD, &seen, LONG + 4), Step::Commit { unasked: false, .. }));
}

#[test]
fn who_joins_calls_it_off_whatever_was_done_by_then_and_it_begins_anew_when_they_have_left_for_as_long() {
    let act = update(LONG);
    let told = Facts {
        announced: Some(Announced { act, pod: POD, ends: at(LONG + 1) }),
        saved: Some(Saved { act, pod: POD, at: at(LONG + 1), confirmed: true }),
        ..empty().facts
    };
    let back = Step::Restore { revision: OLD, door: Door::Closed };
    let told_so = call_off(act, at(LONG + 2));
    for (set, called_off) in [(SET, told_so), (Set { template: NEW, update: NEW, ..SET }, back), (COMMITTED, back)] {
        for players in [Players::Some(1), Players::Unknown { since: at(LONG) }] {
            let joined = Seen { set: Some(set), players, empty_since: None, facts: told.clone(), ..empty() };
            // Nobody can be told of it whose server does not answer.
            let is_silent = called_off == told_so && players != Players::Some(1);
            let expected = if is_silent { waits() } else { called_off };
            assert_eq!(step(&BUILD, &joined, LONG + 2), expected, "{set:?}, {players:?}");
        }
    }
    let again = Seen { empty_since: Some(at(LONG + 3)), ..empty() };
    assert_eq!(step(&BUILD, &again, LONG + 12), waits());
    assert!(matches!(step(&BUILD, &again, LONG + 13), Step::Announce { act, .. } if act == update(LONG + 13)));
}

#[test]
fn only_what_the_server_itself_says_makes_it_empty() {
    for seen in [
        Seen { empty_since: None, ..empty() },
        Seen { players: Players::Some(1), ..empty() },
        Seen { players: Players::Unknown { since: at(LEFT) }, ..empty() },
        Seen { staged: false, ..empty() },
        Seen { images: Images::OnTheirWay, ..empty() },
        Seen { images: Images::Failed, ..empty() },
        Seen { crash_loop: true, ..empty() },
    ] {
        assert_eq!(occasion(&BUILD, &seen, LONG + 60), None, "{seen:?}");
    }
}

#[test]
fn a_newer_minecraft_waits_for_its_window_and_so_does_what_failed_or_is_below_the_world() {
    assert_eq!(occasion(&BUILD, &empty(), LONG), Some(Occasion::Empty));
    let not_asked = Seen { images: Images::Unknown, ..empty() };
    assert_eq!(occasion(&BUILD, &not_asked, LONG), Some(Occasion::Empty), "its node cannot be asked");
    assert_eq!(occasion(&GOAL, &empty(), LONG), None, "one-way");
    let mut failed = empty();
    failed.facts.failed = vec![NEW];
    assert_eq!(occasion(&BUILD, &failed, LONG), None);
    let mut floor = empty();
    floor.world.floor = DataVersion(2);
    assert_eq!(occasion(&BUILD, &floor, LONG), None);
    assert_eq!(occasion(&Goal { revision: OLD, ..BUILD }, &empty(), LONG), None, "nothing is due");
    let first_start = Seen { facts: Facts::default(), ..empty() };
    assert_eq!(occasion(&BUILD, &first_start, LONG), None);
}

#[test]
fn a_crash_or_a_lost_pod_brings_no_update_along_and_a_sleeping_server_takes_it_at_once() {
    for life in [
        Life::Down,
        Life::Refused,
        Life::Starting { gives_up_at: at(LONG + 9) },
        Life::Stopping { lost_at: at(LONG + 9) },
    ] {
        let pod = empty().pod.map(|pod| Pod { life, ..pod });
        assert_eq!(occasion(&BUILD, &Seen { pod, ..empty() }, LONG), None, "{life:?}");
    }
    let lost = Seen { pod: None, ..empty() };
    assert_eq!(occasion(&BUILD, &lost, LONG), None);
    let silent = Seen { players: Players::Unknown { since: at(0) }, empty_since: None, ..lost };
    let mut asleep = Seen { set: Some(Set { asleep: true, ..SET }), ..silent };
    assert_eq!(occasion(&BUILD, &asleep, LEFT), Some(Occasion::Asleep));
    assert!(matches!(step(&BUILD, &asleep, LEFT), Step::WriteTemplate { .. }));
    asleep.set = Some(Set { asleep: true, template: NEW, update: NEW, ..SET });
    assert!(matches!(step(&BUILD, &asleep, LEFT), Step::Commit { .. }));
}

#[test]
fn in_a_window_it_is_as_without_and_what_another_goal_has_begun_is_not_its_own() {
    let of = |gate, seen: &Seen| opportunity(&BUILD, seen, gate, &windows(Vec::new()), EMPTY_FOR, at(LONG));
    assert!(of(shut(), &empty()).is_some());
    let until = at(LONG + 60);
    for gate in [Gate::Open { opened_at: at(LEFT), until }, Gate::NoNewStarts { opened_at: at(LEFT), until, opens: None }] {
        assert_eq!(of(gate, &empty()), None);
    }
    let others = Set { template: Revision(0xc), update: Revision(0xc), door: Door::Open, ..SET };
    assert_eq!(of(shut(), &Seen { set: Some(others), ..empty() }), None, "it is taken back");
    assert!(of(shut(), &Seen { set: Some(COMMITTED), ..empty() }).is_some());
    assert_eq!(of(shut(), &Seen { players: Players::Nobody, ..on_trial(Life::Up) }), None);
}

#[test]
fn a_blackout_wins_and_ends_it() {
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

fn restart(only_empty: bool) -> Restart {
    Restart { due: at(LEFT), until: at(LEFT + 35), policy: Policy::Announce, only_empty, gives_way_until: at(LEFT) }
}

#[test]
fn a_restart_by_the_clock_takes_the_update_along_with_its_own_policy_and_its_own_time() {
    let goal = Goal { restart: Some(restart(false)), policy: Policy::Ignore, ..BUILD };
    let mut seen = Seen { empty_since: None, ..lobby() };
    let with = Opportunity {
        occasion: Occasion::Restart,
        gate: Gate::Open { opened_at: at(LEFT), until: at(LEFT + 35) },
        policy: Policy::Announce,
    };
    assert_eq!(found(&goal, &seen, LEFT), Some(with));
    let said = step(&goal, &seen, LEFT);
    assert!(
        matches!(said, Step::Announce { act, notice, .. } if act == update(LEFT) && notice == GOAL.notice),
        "{said:?}"
    );
    seen.facts.announced = Some(Announced { act: update(LEFT), pod: POD, ends: at(LEFT + 5) });
    seen.facts.saved = Some(Saved { act: update(LEFT), pod: POD, at: at(LEFT + 5), confirmed: true });
    assert!(matches!(step(&goal, &seen, LEFT + 6), Step::WriteTemplate { .. }));
    // They were told when it comes: that they have left by then makes it neither earlier nor another one.
    let left = Seen { players: Players::Nobody, empty_since: Some(at(LEFT - 60)), ..seen };
    assert_eq!(occasion(&goal, &left, LEFT + 6), Some(Occasion::Restart));
    // Nor what a new operator has not found out yet: nobody was told before the images were there.
    let asked_again = Seen { images: Images::OnTheirWay, ..left.clone() };
    assert_eq!(occasion(&goal, &asked_again, LEFT + 6), Some(Occasion::Restart));
    assert_eq!(occasion(&goal, &Seen { facts: empty().facts, ..left }, LEFT + 6), Some(Occasion::Empty));
}

#[test]
fn a_restart_goes_alone_where_the_update_may_not_come_or_players_were_told_of_it_already() {
    let alone = |goal: &Goal, seen: &Seen| {
        assert_eq!(occasion(goal, seen, LEFT), None, "{seen:?}");
        step(goal, seen, LEFT)
    };
    let goal = Goal { restart: Some(restart(false)), ..BUILD };
    let act = Act::Restart { due: at(LEFT) };
    let is_restart = |step| matches!(step, Step::Announce { act: what, .. } if what == act);
    assert!(is_restart(alone(&Goal { restart: goal.restart, ..GOAL }, &lobby())), "a newer Minecraft");
    assert!(is_restart(alone(&goal, &Seen { staged: false, ..lobby() })));
    let mut told = lobby();
    told.facts.announced = Some(Announced { act, pod: POD, ends: at(LEFT + 1) });
    assert_eq!(alone(&goal, &told), Step::Wait(WaitingOn::Countdown { ends: at(LEFT + 1) }));
    let silent = Seen { players: Players::Unknown { since: at(LEFT) }, ..lobby() };
    assert!(matches!(alone(&goal, &silent), Step::Wait(WaitingOn::Agent { .. })));
    let only_empty = Goal { restart: Some(restart(true)), ..BUILD };
    assert!(matches!(alone(&only_empty, &lobby()), Step::Wait(WaitingOn::Players { .. })));
    let nobody = Seen { players: Players::Nobody, ..lobby() };
    assert_eq!(occasion(&only_empty, &nobody, LEFT), Some(Occasion::Restart));
    // Who joins during the countdown has been told, as with any restart.
    let mut joined = lobby();
    joined.facts.announced = Some(Announced { act: update(LEFT), pod: POD, ends: at(LEFT + 1) });
    assert_eq!(occasion(&only_empty, &joined, LEFT), Some(Occasion::Restart));
}
