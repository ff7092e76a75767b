//! Pure. Tests the hints for servers that are solved together, on random small pairs: following a hint must give the
//! promised answer.

use std::cell::Cell;

use resolver::explain::{Explanation, Hint, HintStep, text};
use resolver::request::Hold;
use resolver::{Budget, Resolution, Unsolvable, resolve_fleet};

use super::checker;
use super::joint::{self, Pair};
use super::properties::{left_behind, take};
use super::{least_of, share_of};

/// Pairs of the property. Each hint is one more solve of two servers.
const PAIRS: u64 = 3_000;

type Answer = Result<Resolution, Unsolvable>;

/// Sorted by name, as the requests of a pair.
fn answers(pair: &Pair) -> Vec<Answer> {
    let answers = resolve_fleet(&pair.catalog, &pair.requests, pair.now, Budget::default());
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// Whether a step changes a Plugin, and so all servers that it selects. Other steps change one server.
fn is_about_a_plugin(step: &HintStep) -> bool {
    match step {
        HintStep::AllowMinecraft { .. }
        | HintStep::ChangeOverride { .. }
        | HintStep::DropOverride { .. }
        | HintStep::NoPluginDelay { .. }
        | HintStep::PluginChannel { .. }
        | HintStep::UnpinPlugin { .. }
        | HintStep::PluginPerServer { .. }
        | HintStep::DropRequirement { .. }
        | HintStep::AllowDowngrade { .. }
        | HintStep::PinPlugin { .. }
        | HintStep::Release { object: _, by: Hold::Plugin } => true,
        HintStep::Release { object: _, by: Hold::Server }
        | HintStep::WaitUntil { .. }
        | HintStep::NoServerDelay
        | HintStep::ServerChannel { .. }
        | HintStep::UnpinServer
        | HintStep::UnpinImage
        | HintStep::ImageFollows
        | HintStep::PinImage { .. }
        | HintStep::InstallDependencies
        | HintStep::TrustFiles { .. }
        | HintStep::WarnUnmanaged
        | HintStep::IgnoreUnmanaged
        | HintStep::AddPlugins { .. }
        | HintStep::TrustSiblings
        | HintStep::AssumeUnlisted
        | HintStep::PinServer { .. } => false,
    }
}

/// The pair after the user of the server at `seat` followed a hint.
fn followed(pair: &Pair, seat: usize, hint: &Hint) -> Pair {
    let (mut requests, mut now) = (pair.requests.clone(), pair.now);
    take(&mut requests[seat], &mut now, &hint.steps);
    let shared: Vec<HintStep> = hint.steps.iter().filter(|step| is_about_a_plugin(step)).cloned().collect();
    take(&mut requests[1 - seat], &mut now, &shared);
    Pair { catalog: pair.catalog.clone(), requests, now }
}

/// Checks that the server gets the promised answer, and that it differs from the previous one.
fn keeps_its_word(pair: &Pair, seat: usize, before: &Answer, hint: &Hint) -> Result<(), String> {
    let after = followed(pair, seat, hint);
    let then = answers(&after).swap_remove(seat).map_err(|no| format!("{:?} leads to: {no}", hint.steps))?;
    let gives = (&hint.gives.minecraft, hint.gives.build);
    if gives != (&then.lock.minecraft, then.lock.build) {
        return Err(format!("{:?} gives {} build {}, not {gives:?}", hint.steps, then.lock.minecraft, then.lock.build));
    }
    let left = |answer: &Resolution| {
        let Explanation::Solved(solved) = &answer.explanation else { panic!("a resolution explains a yes") };
        left_behind(solved)
    };
    if let Ok(before) = before
        && before.lock.plugins == then.lock.plugins
        && (&before.lock.minecraft, before.lock.build) == gives
        && left(before) <= left(&then)
    {
        return Err(format!("{:?} changes nothing", hint.steps));
    }
    let complaints = checker::complaints(&after.catalog, &after.requests[seat], after.now, &then.lock);
    if complaints.is_empty() { Ok(()) } else { Err(complaints.join("; ")) }
}

fn hints(answer: &Answer) -> Vec<Hint> {
    match answer {
        Ok(Resolution { lock: _, explanation: Explanation::Solved(solved) }) => solved.hints.clone(),
        Err(Unsolvable::NoSolution(impossible)) => impossible.hints.clone(),
        Ok(_) | Err(_) => Vec::new(),
    }
}

/// The answers for both, as text.
fn said(pair: &Pair) -> String {
    let explanation = |answer: Answer| answer.map_or_else(|no| no.explanation(), |resolution| resolution.explanation);
    answers(pair).into_iter().map(|answer| text::render(&explanation(answer), pair.now)).collect::<Vec<_>>().join("\n")
}

#[test]
fn joint_hint_leads_to_promised_result() {
    let (of_yes, of_no, per_server) = (Cell::new(0_u64), Cell::new(0_u64), Cell::new(0_u64));
    let count = |cell: &Cell<u64>, one: bool| cell.set(cell.get() + u64::from(one));
    joint::always(17_000_000..17_000_000 + share_of(PAIRS), |pair| {
        for (seat, answer) in answers(pair).iter().enumerate() {
            for hint in hints(answer) {
                keeps_its_word(pair, seat, answer, &hint).map_err(|fault| {
                    let (server, then) = (&pair.requests[seat].server, followed(pair, seat, &hint));
                    format!("{server}: {fault}\n{}\n-- then --\n{}", said(pair), said(&then))
                })?;
                count(if answer.is_ok() { &of_yes } else { &of_no }, true);
                count(&per_server, hint.steps.iter().any(|step| matches!(step, HintStep::PluginPerServer { .. })));
            }
        }
        Ok(())
    });
    let counts = [of_yes.get(), of_no.get(), per_server.get()];
    let [yes, no, each] = [150, 150, 20].map(least_of);
    assert!(counts[0] > yes && counts[1] > no && counts[2] > each, "too few were followed: {counts:?}");
}
