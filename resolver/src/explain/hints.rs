//! Pure. Computes hints: possible actions, each verified by solving again with it applied.

use jiff::Timestamp;

use super::why_not_version::found_out;
use super::{
    ChosenPaper, ChosenPlugin, Conflict, ExplainContext, Hint, HintStep, HintsLeftOut, NewerPaper, NewerRelease,
    NotUpdatedWithLatest, PaperPin, Reason, WhyNot, WhyOlder,
};
use crate::request::{PaperRequest, Request};
use crate::solve::SolveOutcome;
use crate::unusable::Unusable;
use crate::version::Minecraft;

mod apply;
mod candidates;
mod verify;

use apply::apply;
pub(crate) use apply::apply_to_others;
use candidates::{against_one_version, against_paper, blockers_of, blockers_of_reason, correct_server, propose};
pub(super) use verify::Ways;
use verify::{HintProver, beside, combinations};

/// Limit of listed hints. The first ones have the lowest risk.
const MOST_HINTS: usize = 5;
/// Limit of steps in one hint. Users would not apply more, and each step costs a solver run.
const MOST_STEPS: usize = 6;

/// Hints that lead to the newer Paper versions.
pub(super) fn for_newer(
    asked: &ExplainContext<'_, '_>,
    chosen: &ChosenPaper,
    plugins: &[ChosenPlugin],
    newer: &[NewerPaper],
    unfollowed: &[NotUpdatedWithLatest],
) -> Ways {
    let (request, trials) = (asked.world.request, HintProver::of(asked));
    let mut hints = Vec::new();
    for newer in newer {
        if newer.gave_up.is_some() {
            // The blockers are unknown, so no hint can be derived.
            trials.untried.note(HintsLeftOut::BudgetUsedUp);
        }
        let mut blockers: Vec<Vec<HintStep>> = Vec::new();
        blockers.extend(newer.unusable.as_ref().map(|unusable| against_paper(asked, unusable, &newer.minecraft)));
        blockers.extend(newer.pinned.as_ref().map(|_| vec![HintStep::UnpinServer]));
        blockers.extend(newer.held_by.iter().flat_map(|holder| blockers_of(asked, holder, &newer.minecraft)));
        blockers.extend(newer.one_version.iter().map(|one| against_one_version(asked, one)));
        for steps in combinations(&blockers, &trials.untried) {
            let better = |then: &SolveOutcome| then.unfollowed.is_empty() && then.paper.minecraft >= newer.minecraft;
            hints.extend(trials.proven(request, steps, Some(&chosen.minecraft), better));
        }
    }
    for (plugin, newer) in ChosenPlugin::newer(plugins) {
        let NewerRelease { version, because: WhyOlder::Unusable { unusable }, .. } = newer else { continue };
        let Some(object) = plugin.objects.first() else { continue };
        let step = if let Unusable::NeedsProposed { projects } = unusable {
            propose(request, object, projects)
        } else if let Unusable::BesideFile { .. } = unusable {
            HintStep::IgnoreUnmanaged
        } else {
            continue;
        };
        let taken = |then: &SolveOutcome| then.plugins.contains(&(plugin.name.clone(), version.clone()));
        hints.extend(trials.proven(request, vec![step], None, taken));
    }
    for left in unfollowed {
        for steps in combinations(&blockers_of(asked, &left.holder, &chosen.minecraft), &trials.untried) {
            // The plugin follows then, and no other plugin is left behind for it.
            let better = |then: &SolveOutcome| {
                let before = |name: &String| *name != left.name && unfollowed.iter().any(|other| other.name == *name);
                then.unfollowed.iter().all(before)
            };
            hints.extend(trials.proven(request, steps, None, better));
        }
    }
    trials.end(hints)
}

/// Hints that make an unsolvable request solvable.
pub(super) fn for_impossible(asked: &ExplainContext<'_, '_>, impossible: &Conflict) -> Ways {
    let (request, trials) = (asked.world.request, HintProver::of(asked));
    let blockers: Vec<Vec<HintStep>> = impossible
        .reasons
        .iter()
        .flat_map(|reason| blockers_of_reason(asked, reason))
        .filter(|steps| !steps.is_empty())
        .collect();
    let floor = request.running.as_ref().map(|running| &running.minecraft).or(request.floor.as_ref());
    let prove = |steps: Vec<HintStep>| trials.proven(request, steps, floor, |then| then.unfollowed.is_empty());
    let mut hints: Vec<Hint> = blockers.iter().flat_map(|steps| alone(steps, prove)).collect();
    if hints.is_empty() {
        hints.extend(combinations(&blockers, &trials.untried).into_iter().filter_map(prove));
    }
    // The proof of an unsolvable request ends with the pin. Other blockers of an existing version are computed only if
    // they are needed.
    if hints.is_empty() {
        hints.extend(impossible.reasons.iter().flat_map(|reason| to_a_real_pin(&trials, reason)).filter_map(prove));
    }
    trials.end(hints)
}

/// Steps that correct a pin of a nonexistent version to the nearest existing one, combined with steps against all
/// blockers of that version.
fn to_a_real_pin(trials: &HintProver<'_, '_, '_>, reason: &Reason) -> Vec<Vec<HintStep>> {
    let asked = trials.asked;
    let Reason::NoSuchPaper { nearest, .. } = reason else { return Vec::new() };
    let Some(nearest) = nearest.first() else { return Vec::new() };
    let Some(moved) = correct_server(asked, nearest) else { return Vec::new() };
    let Ok(why) = found_out(asked, nearest) else {
        trials.untried.note(HintsLeftOut::BudgetUsedUp);
        return Vec::new();
    };
    beside(combinations(&against_target(asked, &why), &trials.untried), &moved, &trials.untried)
}

/// The steps that are sufficient alone. Of the existing versions that a pin can be corrected to, only the nearest is
/// used.
fn alone(steps: &[HintStep], prove: impl Fn(Vec<HintStep>) -> Option<Hint>) -> Vec<Hint> {
    let corrects = |step: &HintStep| matches!(step, HintStep::PinServer { .. } | HintStep::PinPlugin { .. });
    let mut hints: Vec<Hint> = Vec::new();
    for step in steps {
        let is_corrected = hints.iter().any(|hint| hint.steps.iter().any(corrects));
        if !(is_corrected && corrects(step)) {
            hints.extend(prove(vec![step.clone()]));
        }
    }
    hints
}

/// The steps against each blocker of a certain Paper version, except for the server's own pin.
fn against_target(asked: &ExplainContext<'_, '_>, why: &WhyNot) -> Vec<Vec<HintStep>> {
    let mut blockers: Vec<Vec<HintStep>> = Vec::new();
    blockers.extend(why.unusable.as_ref().map(|unusable| against_paper(asked, unusable, &why.target)));
    blockers.extend(why.one_version.iter().map(|one| against_one_version(asked, one)));
    blockers.extend(why.holders.iter().flat_map(|holder| blockers_of(asked, holder, &why.target)));
    blockers
}

/// Hints that lead to a certain Paper version.
pub(super) fn for_target(asked: &ExplainContext<'_, '_>, why: &WhyNot) -> Ways {
    let (request, trials) = (asked.world.request, HintProver::of(asked));
    let blockers = against_target(asked, why);
    if let Some(pin) = &why.pinned {
        let hints = against_pin(&trials, why, pin, &blockers);
        return trials.end(hints);
    }
    let from = why.nearest_possible.as_ref().map(|paper| &paper.minecraft);
    let exactly = |then: &SolveOutcome| then.paper.minecraft == why.target;
    let pinned = pinned_to(request, &why.target);
    let steps = combinations(&blockers, &trials.untried).into_iter();
    let hints = steps.filter_map(|steps| trials.proven(&pinned, steps, from, exactly)).collect();
    trials.end(hints)
}

/// The request with a pin to a Paper version. A pinned build belongs to this very version and stays.
pub(super) fn pinned_to(request: &Request, minecraft: &Minecraft) -> Request {
    let mut pinned = request.clone();
    if !matches!(pinned.paper, PaperRequest::BuildPin { .. }) {
        pinned.paper = PaperRequest::Pin { version: minecraft.clone() };
    }
    pinned
}

/// Hints that lead to a certain Paper version that the server's pin and these blockers rule out.
fn against_pin(trials: &HintProver<'_, '_, '_>, why: &WhyNot, pin: &PaperPin, blockers: &[Vec<HintStep>]) -> Vec<Hint> {
    let asked = trials.asked;
    let request = asked.world.request;
    let from = why.nearest_possible.as_ref().map(|paper| &paper.minecraft);
    let exactly = |then: &SolveOutcome| then.paper.minecraft == why.target;
    let moved = correct_server(asked, &why.target);
    if !blockers.is_empty() {
        // Without a pin, another version may be chosen.
        let steps = moved
            .map_or_else(Vec::new, |moved| beside(combinations(blockers, &trials.untried), &moved, &trials.untried));
        return steps.into_iter().filter_map(|steps| trials.proven(request, steps, from, exactly)).collect();
    }
    let better = |then: &SolveOutcome| then.paper.minecraft >= why.target;
    let unpinned = trials.proven(request, vec![HintStep::UnpinServer], from, better);
    // A pin of an existing version was set on purpose.
    let corrected = moved.filter(|_| !is_real(asked, pin));
    let corrected = corrected.and_then(|step| trials.proven(request, vec![step], from, exactly));
    unpinned.into_iter().chain(corrected).collect()
}

/// Whether the version that the server's pin names exists.
fn is_real(asked: &ExplainContext<'_, '_>, pin: &PaperPin) -> bool {
    let mut papers = asked.world.papers.iter();
    let paper = papers.find(|paper| paper.version.minecraft == pin.version);
    paper.is_some_and(|paper| !matches!(paper.unusable, Some(Unusable::NoBuild { .. })))
}

/// Hints that lead to an existing Paper version if the server's pin rules it out and the requested one is not
/// available. The pin moves to the first neighbour that is possible. It is removed instead if that leads to a version
/// at least as new as the first neighbour.
pub(super) fn for_real_pin(asked: &ExplainContext<'_, '_>, why: &WhyNot) -> Ways {
    let (request, trials) = (asked.world.request, HintProver::of(asked));
    let from = why.nearest_possible.as_ref().map(|paper| &paper.minecraft);
    let had = |paper: &Minecraft| from == Some(paper);
    let corrected = |real: &Minecraft| {
        let step = correct_server(asked, real)?;
        trials.proven(request, vec![step], from, |then| then.paper.minecraft == *real)
    };
    let is_upwards = from.is_none_or(|from| why.target > *from);
    let mut hints = Vec::new();
    if !why.nearest.first().is_some_and(had) {
        hints.extend(why.nearest.iter().filter(|real| is_on_the_way(why, real)).find_map(corrected));
    }
    // The requested version is not older than the one that the pin gives.
    if let Some(real) = why.nearest.first().filter(|_| is_upwards) {
        let better = |then: &SolveOutcome| then.paper.minecraft >= *real && !had(&then.paper.minecraft);
        hints.extend(trials.proven(request, vec![HintStep::UnpinServer], from, better));
    }
    trials.end(hints)
}

/// Whether an existing version lies in the same direction as the requested one. From the version that is possible now,
/// a hint never leads in the other direction or to the same version.
pub(super) fn is_on_the_way(why: &WhyNot, real: &Minecraft) -> bool {
    let had = why.nearest_possible.as_ref().map(|paper| &paper.minecraft);
    had.is_none_or(|had| real.cmp(had) == why.target.cmp(had))
}

/// The request, and the instant, as if a Paper version were usable (its delay is over, or a field is set) and the
/// server were not pinned. `None` if nothing makes it usable.
pub(super) fn out_of_the_way(
    asked: &ExplainContext<'_, '_>,
    unusable: Option<&Unusable>,
    pin: Option<&PaperPin>,
    minecraft: &Minecraft,
) -> Option<(Request, Timestamp)> {
    let (mut request, mut now) = (asked.world.request.clone(), asked.world.now);
    if pin.is_some() {
        apply(&mut request, &mut now, &HintStep::UnpinServer);
    }
    if let Some(unusable) = unusable {
        let ways = against_paper(asked, unusable, minecraft);
        let waits = ways.iter().find(|step| matches!(step, HintStep::WaitUntil { .. }));
        apply(&mut request, &mut now, waits.or(ways.last())?);
    }
    Some((request, now))
}

#[cfg(test)]
mod tests;
