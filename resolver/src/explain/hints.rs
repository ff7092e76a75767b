//! Pure. Computes hints: possible actions, each verified by solving again with it applied.

use super::ExplainContext;
use super::version_blockers::explain_without_hints;
use crate::explanation::{
    ChosenPaper, ChosenPlugin, Conflict, Hint, HintStep, HintsLeftOut, NewerPaper, NewerRelease, NotUpdatedWithLatest,
    PaperPin, Reason, WhyNot, WhyOlder,
};
use crate::model::unusable::Unusable;
use crate::model::version::Minecraft;
use crate::solve::SolveOutcome;

pub(super) mod apply;
mod candidates;
mod verify;

pub(crate) use apply::apply_to_others;
use apply::with_pin;
use candidates::{
    against_paper, against_shared_version, correct_server, propose, step_lists_for_blocker, step_lists_for_reason,
};
pub(super) use verify::HintList;
use verify::{HintProver, combinations, with_step};

/// Hints that lead to the newer Paper versions.
pub(super) fn for_newer(
    context: &ExplainContext<'_, '_>,
    chosen: &ChosenPaper,
    plugins: &[ChosenPlugin],
    newer: &[NewerPaper],
    left_behind: &[NotUpdatedWithLatest],
) -> HintList {
    let (request, prover) = (context.candidates.request, HintProver::new(context));
    let mut hints = Vec::new();
    for newer in newer {
        if newer.gave_up.is_some() {
            // The blockers are unknown, so no hint can be derived.
            prover.skipped.record(HintsLeftOut::BudgetUsedUp);
        }
        let mut blockers: Vec<Vec<HintStep>> = Vec::new();
        blockers.extend(newer.unusable.as_ref().map(|unusable| against_paper(context, unusable, &newer.minecraft)));
        blockers.extend(newer.pinned.as_ref().map(|_| vec![HintStep::UnpinServer]));
        blockers.extend(
            newer.blocked_by.iter().flat_map(|blocker| step_lists_for_blocker(context, blocker, &newer.minecraft)),
        );
        blockers.extend(newer.shared_versions.iter().map(|one| against_shared_version(context, one)));
        for steps in combinations(&blockers, &prover.skipped) {
            let better = |then: &SolveOutcome| then.left_behind.is_empty() && then.paper.minecraft >= newer.minecraft;
            hints.extend(prover.verify(request, steps, Some(&chosen.minecraft), better));
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
        hints.extend(prover.verify(request, vec![step], None, taken));
    }
    for left in left_behind {
        for steps in combinations(&step_lists_for_blocker(context, &left.blocker, &chosen.minecraft), &prover.skipped) {
            // The plugin follows then, and no other plugin is left behind for it.
            let better = |then: &SolveOutcome| {
                let before = |name: &String| *name != left.name && left_behind.iter().any(|other| other.name == *name);
                then.left_behind.iter().all(before)
            };
            hints.extend(prover.verify(request, steps, None, better));
        }
    }
    prover.finish(hints)
}

/// Hints that make an unsolvable request solvable.
pub(super) fn for_conflict(context: &ExplainContext<'_, '_>, conflict: &Conflict) -> HintList {
    let (request, prover) = (context.candidates.request, HintProver::new(context));
    let blockers: Vec<Vec<HintStep>> = conflict
        .reasons
        .iter()
        .flat_map(|reason| step_lists_for_reason(context, reason))
        .filter(|steps| !steps.is_empty())
        .collect();
    let floor = request.running.as_ref().map(|running| &running.minecraft).or(request.floor.as_ref());
    let verify = |steps: Vec<HintStep>| prover.verify(request, steps, floor, |then| then.left_behind.is_empty());
    let mut hints: Vec<Hint> = blockers.iter().flat_map(|steps| sufficient_steps(steps, verify)).collect();
    if hints.is_empty() {
        hints.extend(combinations(&blockers, &prover.skipped).into_iter().filter_map(verify));
    }
    // The proof of an unsolvable request ends with the pin. Other blockers of an existing version are computed only if
    // they are needed.
    if hints.is_empty() {
        hints.extend(
            conflict.reasons.iter().flat_map(|reason| steps_to_existing_pin(&prover, reason)).filter_map(verify),
        );
    }
    prover.finish(hints)
}

/// Steps that correct a pin of a nonexistent version to the nearest existing one, combined with steps against all
/// blockers of that version.
fn steps_to_existing_pin(prover: &HintProver<'_, '_, '_>, reason: &Reason) -> Vec<Vec<HintStep>> {
    let context = prover.context;
    let Reason::NoSuchPaper { nearest, .. } = reason else { return Vec::new() };
    let Some(nearest) = nearest.first() else { return Vec::new() };
    let Some(moved) = correct_server(context, nearest) else { return Vec::new() };
    let Ok(why) = explain_without_hints(context, nearest) else {
        prover.skipped.record(HintsLeftOut::BudgetUsedUp);
        return Vec::new();
    };
    with_step(combinations(&against_target(context, &why), &prover.skipped), &moved, &prover.skipped)
}

/// The steps that are sufficient alone. Of the existing versions that a pin can be corrected to, only the nearest is
/// used.
fn sufficient_steps(steps: &[HintStep], verify: impl Fn(Vec<HintStep>) -> Option<Hint>) -> Vec<Hint> {
    let corrects = |step: &HintStep| matches!(step, HintStep::PinServer { .. } | HintStep::PinPlugin { .. });
    let mut hints: Vec<Hint> = Vec::new();
    for step in steps {
        let is_corrected = hints.iter().any(|hint| hint.steps.iter().any(corrects));
        if !(is_corrected && corrects(step)) {
            hints.extend(verify(vec![step.clone()]));
        }
    }
    hints
}

/// The steps against each blocker of a certain Paper version, except for the server's own pin.
fn against_target(context: &ExplainContext<'_, '_>, why: &WhyNot) -> Vec<Vec<HintStep>> {
    let mut blockers: Vec<Vec<HintStep>> = Vec::new();
    blockers.extend(why.unusable.as_ref().map(|unusable| against_paper(context, unusable, &why.target)));
    blockers.extend(why.shared_versions.iter().map(|one| against_shared_version(context, one)));
    blockers.extend(why.blockers.iter().flat_map(|blocker| step_lists_for_blocker(context, blocker, &why.target)));
    blockers
}

/// Hints that lead to a certain Paper version.
pub(super) fn for_target(context: &ExplainContext<'_, '_>, why: &WhyNot) -> HintList {
    let (request, prover) = (context.candidates.request, HintProver::new(context));
    let blockers = against_target(context, why);
    if let Some(pin) = &why.pinned {
        let hints = against_pin(&prover, why, pin, &blockers);
        return prover.finish(hints);
    }
    let from = why.nearest_possible.as_ref().map(|paper| &paper.minecraft);
    let exactly = |then: &SolveOutcome| then.paper.minecraft == why.target;
    let pinned = with_pin(request, &why.target);
    let steps = combinations(&blockers, &prover.skipped).into_iter();
    let hints = steps.filter_map(|steps| prover.verify(&pinned, steps, from, exactly)).collect();
    prover.finish(hints)
}

/// Hints that lead to a certain Paper version that the server's pin and these blockers rule out.
fn against_pin(prover: &HintProver<'_, '_, '_>, why: &WhyNot, pin: &PaperPin, blockers: &[Vec<HintStep>]) -> Vec<Hint> {
    let context = prover.context;
    let request = context.candidates.request;
    let from = why.nearest_possible.as_ref().map(|paper| &paper.minecraft);
    let exactly = |then: &SolveOutcome| then.paper.minecraft == why.target;
    let moved = correct_server(context, &why.target);
    if !blockers.is_empty() {
        // Without a pin, another version may be chosen.
        let steps = moved
            .map_or_else(Vec::new, |moved| with_step(combinations(blockers, &prover.skipped), &moved, &prover.skipped));
        return steps.into_iter().filter_map(|steps| prover.verify(request, steps, from, exactly)).collect();
    }
    let better = |then: &SolveOutcome| then.paper.minecraft >= why.target;
    let unpinned = prover.verify(request, vec![HintStep::UnpinServer], from, better);
    // A pin of an existing version was set on purpose.
    let corrected = moved.filter(|_| !pin_exists(context, pin));
    let corrected = corrected.and_then(|step| prover.verify(request, vec![step], from, exactly));
    unpinned.into_iter().chain(corrected).collect()
}

/// Whether the version that the server's pin names exists.
fn pin_exists(context: &ExplainContext<'_, '_>, pin: &PaperPin) -> bool {
    let mut papers = context.candidates.papers.iter();
    let paper = papers.find(|paper| paper.version.minecraft == pin.version);
    paper.is_some_and(|paper| !matches!(paper.unusable, Some(Unusable::NoBuild { .. })))
}

/// Hints that lead to an existing Paper version if the server's pin rules it out and the requested one is not
/// available. The pin moves to the first neighbour that is possible. It is removed instead if that leads to a version
/// at least as new as the first neighbour.
pub(super) fn for_existing_pin(context: &ExplainContext<'_, '_>, why: &WhyNot) -> HintList {
    let (request, prover) = (context.candidates.request, HintProver::new(context));
    let from = why.nearest_possible.as_ref().map(|paper| &paper.minecraft);
    let current = |paper: &Minecraft| from == Some(paper);
    let corrected = |real: &Minecraft| {
        let step = correct_server(context, real)?;
        prover.verify(request, vec![step], from, |then| then.paper.minecraft == *real)
    };
    let is_upwards = from.is_none_or(|from| why.target > *from);
    let mut hints = Vec::new();
    if !why.nearest.first().is_some_and(current) {
        hints.extend(why.nearest.iter().filter(|real| is_in_direction(why, real)).find_map(corrected));
    }
    // The requested version is not older than the one that the pin gives.
    if let Some(real) = why.nearest.first().filter(|_| is_upwards) {
        let better = |then: &SolveOutcome| then.paper.minecraft >= *real && !current(&then.paper.minecraft);
        hints.extend(prover.verify(request, vec![HintStep::UnpinServer], from, better));
    }
    prover.finish(hints)
}

/// Whether an existing version lies in the same direction as the requested one. From the version that is possible now,
/// a hint never leads in the other direction or to the same version.
pub(super) fn is_in_direction(why: &WhyNot, real: &Minecraft) -> bool {
    let current = why.nearest_possible.as_ref().map(|paper| &paper.minecraft);
    current.is_none_or(|current| real.cmp(current) == why.target.cmp(current))
}

#[cfg(test)]
mod tests;
