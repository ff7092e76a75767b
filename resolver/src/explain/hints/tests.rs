//! Pure. Tests which steps are tried together, and which of the verified hints are shown.

use jiff::Timestamp;

use super::verify::{MAX_STEPS, SkippedHints, rank_hints};
use super::*;
use crate::model::software::{PaperName, Software};

fn delay(object: &str) -> HintStep {
    HintStep::NoPluginDelay { object: object.to_owned() }
}

fn wait(hour: i64) -> HintStep {
    HintStep::WaitUntil { at: Timestamp::from_second(3600 * hour).unwrap() }
}

/// Combinations without a record of skipped hints.
fn combine(blockers: &[Vec<HintStep>]) -> Vec<Vec<HintStep>> {
    combinations(blockers, &SkippedHints::default())
}

/// One blocker each, in the order of the names.
fn blockers(count: usize) -> Vec<Vec<HintStep>> {
    (0..count).map(|at| vec![delay(&format!("p{at}"))]).collect()
}

#[test]
fn hints_combine_one_way_per_blocker_and_longest_wait() {
    assert_eq!(combine(&[]), Vec::<Vec<HintStep>>::new());
    assert_eq!(combine(&[vec![wait(1), delay("a")]]), [vec![wait(1)], vec![delay("a")]], "each step is a candidate");
    let two = [vec![wait(1), delay("b"), delay("c")], vec![wait(3), delay("a")]];
    assert_eq!(combine(&two), [vec![wait(3)], vec![delay("a"), delay("b")]]);
    let same = [vec![delay("a")], vec![delay("a")]];
    assert_eq!(combine(&same), [vec![delay("a")]], "one step may resolve two blockers");
}

#[test]
fn hints_are_empty_for_unavoidable_or_seven_blockers() {
    assert_eq!(combine(&[vec![delay("a")], Vec::new()]), Vec::<Vec<HintStep>>::new());
    assert_eq!(combine(&blockers(MAX_STEPS)), [blockers(MAX_STEPS).concat()]);
    assert_eq!(combine(&blockers(MAX_STEPS + 1)), Vec::<Vec<HintStep>>::new());
}

#[test]
fn hint_with_too_many_steps_is_reported_as_untried() {
    let combine_with_reason = |blockers: &[Vec<HintStep>]| {
        let skipped_hints = SkippedHints::default();
        (combinations(blockers, &skipped_hints), skipped_hints.reason())
    };
    let skipped = Some(HintsLeftOut::TooManyAtOnce { steps: MAX_STEPS + 1 });
    assert_eq!(combine_with_reason(&blockers(MAX_STEPS)).1, None);
    assert_eq!(combine_with_reason(&blockers(MAX_STEPS + 1)), (Vec::new(), skipped));
    let with_unsolvable = [blockers(MAX_STEPS), vec![Vec::new()]].concat();
    assert_eq!(
        combine_with_reason(&with_unsolvable),
        (Vec::new(), None),
        "no combination exists if a blocker has no step"
    );
    let waits = vec![vec![wait(1)]; MAX_STEPS + 1];
    assert_eq!(combine_with_reason(&waits), (vec![vec![wait(1)]], None));
    let same = vec![vec![delay("a")]; MAX_STEPS + 1];
    assert_eq!(combine_with_reason(&same), (vec![vec![delay("a")]], None), "one step may resolve many blockers");
}

#[test]
fn untried_hint_report_names_shortest_in_any_order() {
    let too_many = |steps: usize| HintsLeftOut::TooManyAtOnce { steps };
    for sizes in [[9, 7, 8], [7, 8, 9], [8, 9, 7]] {
        let skipped_hints = SkippedHints::default();
        for steps in sizes {
            skipped_hints.record(too_many(steps));
        }
        assert_eq!(skipped_hints.reason(), Some(too_many(7)), "{sizes:?}");
        skipped_hints.record(HintsLeftOut::BudgetUsedUp);
        skipped_hints.record(too_many(7));
        assert_eq!(skipped_hints.reason(), Some(HintsLeftOut::BudgetUsedUp), "the used-up budget is reported first");
    }
}

#[test]
fn hint_step_joins_each_acting_way_within_step_limit() {
    let pin = HintStep::PinServer { version: "1.21.10".parse().unwrap(), build: None };
    let unpin = HintStep::UnpinPlugin { object: "a".to_owned() };
    let correct = HintStep::PinPlugin { object: "a".to_owned(), version: "2".to_owned() };
    let ways = vec![vec![wait(1)], vec![correct.clone()], vec![unpin.clone()]];
    assert_eq!(
        with_step(ways, &pin, &SkippedHints::default()),
        [vec![pin.clone(), correct], vec![unpin, pin.clone()]],
        "steps are sorted, and waits are dropped"
    );
    let of = |count: usize| {
        let skipped_hints = SkippedHints::default();
        (with_step(vec![blockers(count).concat()], &pin, &skipped_hints).len(), skipped_hints.reason())
    };
    assert_eq!(of(MAX_STEPS - 1), (1, None));
    assert_eq!(of(MAX_STEPS), (0, Some(HintsLeftOut::TooManyAtOnce { steps: MAX_STEPS + 1 })), "the reason is given");
}

/// The first step, the step after it, and the reason.
fn ordered_steps() -> Vec<(HintStep, HintStep, &'static str)> {
    let object = || "a".to_owned();
    let allow = || HintStep::AllowMinecraft { object: object(), minecraft_versions: Vec::new(), releases: Vec::new() };
    let release = || HintStep::Release { object: object(), by: crate::model::request::Hold::Plugin };
    let channel = || HintStep::PluginChannel { object: object(), channel: crate::model::catalog::Channel::Beta };
    let files = || HintStep::TrustFiles {
        server: "lobby".to_owned(),
        files: Vec::new(),
        minecraft: "1.21.10".parse().unwrap(),
    };
    let down = || HintStep::AllowDowngrade { object: object() };
    vec![
        (wait(9), release(), "waiting changes no setting"),
        (wait(9), allow(), "waiting changes no setting"),
        (wait(1), wait(2), "a shorter wait is better"),
        (allow(), delay("a"), "one checked release is safer than all young releases"),
        (delay("a"), HintStep::NoServerDelay, "one plugin is safer than the whole server"),
        (delay("a"), channel(), "a young release is safer than a beta"),
        (
            channel(),
            HintStep::ServerChannel { channel: crate::model::catalog::BuildChannel::Beta },
            "a beta of a plugin is safer than a beta of the server",
        ),
        (
            HintStep::UnpinPlugin { object: object() },
            HintStep::UnpinServer,
            "unpinning one plugin is safer than unpinning the server",
        ),
        (files(), HintStep::WarnUnmanaged, "checked files are safer than any file"),
        (HintStep::WarnUnmanaged, HintStep::IgnoreUnmanaged, "a warning is safer than no warning"),
        (
            HintStep::TrustSiblings,
            HintStep::IgnoreUnmanaged,
            "a default setting is safer than ignoring JARs that may not load",
        ),
        (allow(), down(), "an older release may not read newer data"),
        (HintStep::UnpinServer, down(), "an older release may not read newer data"),
    ]
}

#[test]
fn hints_are_ordered_by_least_risk() {
    for (first, then, why) in ordered_steps() {
        assert!(first < then, "{first:?} before {then:?}: {why}");
    }
}

#[test]
fn hint_containing_another_must_lead_further() {
    let hint = |steps: &[HintStep], minecraft: &str| Hint {
        steps: steps.to_vec(),
        gives: PaperName { software: Software::Paper, minecraft: minecraft.parse().unwrap(), build: 7 },
        irreversible_from: None,
    };
    let [a, b] = ["a", "b"].map(delay);
    let less = hint(std::slice::from_ref(&a), "1.21.10");
    let both = [a, b];
    let tidied = |hints: Vec<Hint>| rank_hints(hints).0;
    assert_eq!(tidied(vec![hint(&both, "1.21.10"), less.clone()]), std::slice::from_ref(&less), "fewer steps win ties");
    assert_eq!(tidied(vec![hint(&both, "1.21.9"), less.clone()]), std::slice::from_ref(&less), "a newer version wins");
    let further = hint(&both, "1.21.11");
    assert_eq!(tidied(vec![further.clone(), less.clone()]), [less, further]);
}
