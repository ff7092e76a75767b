//! Pure. Explains what blocks one Paper version, without hints.

use super::blockers::find_blockers;
use super::decision::nearest_possible;
use super::group_context::{GroupContext, MAX_ANALYSED_SERVERS};
use super::hints::apply;
use super::inputs::paper_pin;
use super::nearest::nearest_existing;
use super::shared_plugins::{self, OtherReasons};
use super::{ExplainContext, name_conflicts};
use crate::explanation::WhyNot;
use crate::index::CandidateIndex;
use crate::index::chosen::Chosen;
use crate::index::index_set::IndexSet;
use crate::index::paper_candidates::is_built;
use crate::model::budget::BudgetExceeded;
use crate::model::version::Minecraft;
use crate::solve::group::MemberDecision;
use crate::solve::provider::{SolverProblem, find_solution};

/// The explanation without hints.
pub(crate) fn explain_without_hints(
    context: &ExplainContext<'_, '_>,
    target: &Minecraft,
) -> Result<WhyNot, BudgetExceeded> {
    let candidates = context.candidates;
    let position = candidates.papers.iter().position(|paper| paper.version.minecraft == *target);
    let nearest_possible = nearest_possible(context)?;
    let whole = SolverProblem::new(candidates, IndexSet::from_indexes(position.map(|position| position + 1)));
    // As if the Paper version itself were usable: its own reason is reported separately.
    let blockers = position.map_or_else(|| Ok(Vec::new()), |position| find_blockers(context, &whole, position))?;
    let mandatory = whole.mandatory_plugins().into_iter().map(|plugin| candidates.plugins[plugin].name());
    let ready = mandatory.filter(|name| position.is_some() && !blockers.iter().any(|blocker| blocker.blocks(name)));
    let unusable = position.and_then(|position| candidates.papers[position].unusable.clone());
    let pinned = paper_pin(candidates).filter(|pin| pin.version != *target);
    let mut why = WhyNot {
        server: candidates.request.server.clone(),
        software: candidates.request.software,
        target: target.clone(),
        possible: position.is_some() && blockers.is_empty() && unusable.is_none() && pinned.is_none(),
        exists: position.is_some(),
        nearest: if has_usable_build(candidates, target) { Vec::new() } else { nearest_existing(candidates, target) },
        unusable,
        pinned,
        unreleased: false,
        ready: ready.map(str::to_owned).collect(),
        blockers,
        plugins: Vec::new(),
        shared_versions: Vec::new(),
        shared_name: None,
        nearest_possible,
        hints: Vec::new(),
        more_hints: 0,
        hints_left_out: None,
        waits: Vec::new(),
    };
    // Other reasons must not hide group members that would block it without them.
    if let Some(position) = position {
        let other_reasons =
            OtherReasons { unusable: why.unusable.as_ref(), pin: why.pinned.as_ref(), blockers: &why.blockers };
        let has_other_reason = other_reasons.unusable.is_some() || !other_reasons.blockers.is_empty();
        why.shared_versions = shared_plugins::blocking_if_usable(context, position, &other_reasons, false)
            .or_else(|gave_up| if has_other_reason { Ok(Vec::new()) } else { Err(gave_up) })?;
        why.possible &= why.shared_versions.is_empty();
    }
    let runs = candidates.request.running.as_ref().is_some_and(|running| running.has_version(why.software, target));
    if why.possible && !runs {
        // If the whole group needs more steps than remain, the server alone is a good approximation. If that exceeds
        // the budget, too, no name is reported.
        let solve_alone = |_| find_solution(candidates, &whole, &context.meter.renewed());
        let version_set =
            position.and_then(|position| version_set_on(context, &whole, position).or_else(solve_alone).ok().flatten());
        why.shared_name =
            version_set.and_then(|version_set| name_conflicts::blocking_conflict(candidates, &version_set));
        why.possible = why.shared_name.is_none();
    }
    Ok(why)
}

/// The version set on a Paper version (given by position): the result of a pin to it, together with the group.
fn version_set_on(
    context: &ExplainContext<'_, '_>,
    whole: &SolverProblem,
    position: usize,
) -> Result<Option<Chosen>, BudgetExceeded> {
    let (candidates, meter) = (context.candidates, context.meter);
    let Some(group) = context.group else { return find_solution(candidates, whole, meter) };
    let minecraft = &candidates.papers[position].version.minecraft;
    if group.views.len() > MAX_ANALYSED_SERVERS {
        // Without computing new exclusions, because those need a solver run for each server.
        let paper = group.papers(group.server).iter().position(|paper| paper == minecraft);
        let Some(paper) = paper else { return Ok(None) };
        let releases = group.solve_with(&group.others(), &IndexSet::from_indexes([paper + 1]), true, meter)?;
        return Ok(releases.map(|releases| Chosen::from_group_choice(candidates, position, &releases)));
    }
    let pinned = apply::with_pin(candidates.request, minecraft);
    let member = |group: Option<&GroupContext<'_, '_>>| match group?.decision() {
        MemberDecision::Member(choice) => Some(Chosen::from_group_choice(candidates, position, &choice.releases)),
        MemberDecision::UnsolvableAlone | MemberDecision::Excluded | MemberDecision::GaveUp(_) => None,
    };
    match group.with_changed_requests(&pinned, &[], candidates.now, meter, member) {
        Some(Some(version_set)) => Ok(Some(version_set)),
        // The server is solved without the others then.
        Some(None) => find_solution(candidates, whole, meter),
        None => Err(meter.exceeded()),
    }
}

/// Whether a Minecraft version has a build that could be used under another request.
pub(crate) fn has_usable_build(candidates: &CandidateIndex<'_>, version: &Minecraft) -> bool {
    candidates.papers.iter().any(|paper| paper.version.minecraft == *version && is_built(paper))
}
