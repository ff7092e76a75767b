//! Pure. Explains "why not this Paper version?": which plugins support it and which do not.

use pubgrub::VersionSet;

use super::blockers::find_blockers;
use super::shared_plugins::OtherReasons;
use super::solved::paper_pin;
use super::{
    ExplainContext, HintsLeftOut, PaperName, PluginState, WhyNot, hints, name_conflicts, shared_plugins,
    upstream_actions,
};
use crate::index::CandidateIndex;
use crate::index::paper_candidates::PaperCandidate;
use crate::request::Running;
use crate::solve::group::MemberDecision;
use crate::solve::group::group_context::{GroupContext, MAX_ANALYSED_SERVERS};
use crate::solve::index_set::IndexSet;
use crate::solve::provider::{Chosen, SolverProblem, find_solution};
use crate::solve::{BudgetExceeded, Decision, decide};
use crate::unusable::Unusable;
use crate::version::Minecraft;

/// Explains why the server does not run `target`. If the budget is used up, only hints are left out.
pub(crate) fn explain(context: &ExplainContext<'_, '_>, target: &Minecraft) -> Result<WhyNot, BudgetExceeded> {
    let mut why = explain_without_hints(context, target)?;
    if why.shared_name.is_some() {
        // Only the user can decide which of the files is meant.
        return Ok(why);
    }
    if has_usable_build(context.candidates, target) {
        let found_hints = hints::for_target(context, &why);
        (why.hints, why.more_hints, why.hints_left_out) = (found_hints.hints, found_hints.more, found_hints.skipped);
        if why.pinned.is_none() && upstream_actions::can_pass(why.unusable.as_ref()) {
            why.waits = upstream_actions::for_blockers(context.candidates, &why.holders, target);
        }
    } else {
        add_nearest_hints(context, &mut why);
    }
    Ok(why)
}

/// The explanation without hints.
pub(super) fn explain_without_hints(
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
        to_come: false,
        ready: ready.map(str::to_owned).collect(),
        holders: blockers,
        plugins: Vec::new(),
        one_version: Vec::new(),
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
            OtherReasons { unusable: why.unusable.as_ref(), pin: why.pinned.as_ref(), blockers: &why.holders };
        let has_other_reason = other_reasons.unusable.is_some() || !other_reasons.blockers.is_empty();
        why.one_version = shared_plugins::blocking_if_usable(context, position, &other_reasons, false)
            .or_else(|gave_up| if has_other_reason { Ok(Vec::new()) } else { Err(gave_up) })?;
        why.possible &= why.one_version.is_empty();
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

/// The Paper version that the server would run, with its group if it is a member.
fn nearest_possible(context: &ExplainContext<'_, '_>) -> Result<Option<PaperName>, BudgetExceeded> {
    Ok(decision(context)?.and_then(|decision| resulting_paper(context.candidates, &decision)))
}

/// The decision for the server, with its group if it is a member.
pub(super) fn decision(context: &ExplainContext<'_, '_>) -> Result<Option<Decision>, BudgetExceeded> {
    match context.group.map(GroupContext::decision) {
        Some(MemberDecision::Member(choice)) => Ok(Some(choice.decision(context.candidates))),
        Some(MemberDecision::UnsolvableAlone | MemberDecision::Excluded | MemberDecision::GaveUp(_)) | None => {
            decide(context.candidates, context.meter)
        }
    }
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
    let pinned = hints::with_pin(candidates.request, minecraft);
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

/// The Paper version of a result. If the version set would not be deployed, the running version.
fn resulting_paper(candidates: &CandidateIndex<'_>, decision: &Decision) -> Option<PaperName> {
    let chosen = candidates.paper_name(decision.chosen.paper);
    let running = candidates.request.running.as_ref().map(Running::paper_name);
    let is_news = chosen != running;
    if is_news && name_conflicts::blocking_conflict(candidates, &decision.chosen).is_some() { running } else { chosen }
}

/// Hints if the version itself is impossible: they lead to the nearest existing version other than the current one.
fn add_nearest_hints(context: &ExplainContext<'_, '_>, why: &mut WhyNot) {
    let Some(nearest) = why.nearest.first().cloned() else { return };
    let is_pinned = paper_pin(context.candidates).is_some();
    if is_pinned {
        let found_hints = hints::for_existing_pin(context, why);
        (why.hints, why.more_hints, why.hints_left_out) = (found_hints.hints, found_hints.more, found_hints.skipped);
    }
    // Without a pin, the newest possible version is already chosen, so only a newer one has blockers. With a pin, the
    // blockers of the nearest version matter if no pin alone leads further.
    let is_held = if is_pinned {
        why.hints.is_empty() && hints::is_in_direction(why, &nearest)
    } else {
        why.nearest_possible.as_ref().is_none_or(|current| current.minecraft < nearest)
    };
    if !is_held {
        return;
    }
    match explain(context, &nearest) {
        Ok(nearest_why) => {
            (why.hints, why.more_hints, why.waits) = (nearest_why.hints, nearest_why.more_hints, nearest_why.waits);
            why.hints_left_out = why.hints_left_out.or(nearest_why.hints_left_out);
        }
        // The hints that would have to be tried are unknown.
        Err(_) => why.hints_left_out = Some(HintsLeftOut::BudgetUsedUp),
    }
}

/// The state of each requested plugin, from the explanation of a version.
pub(crate) fn states(context: &ExplainContext<'_, '_>, why: &WhyNot) -> Vec<PluginState> {
    let candidates = context.candidates;
    let Some(position) = candidates.papers.iter().position(|paper| paper.version.minecraft == why.target) else {
        return Vec::new();
    };
    let whole = SolverProblem::new(candidates, IndexSet::from_indexes([position + 1]));
    let state = |at: usize| {
        let plugin = &candidates.plugins[at];
        let usable = plugin.usable_on(position).intersection(&whole.root[at]);
        let newest = usable.highest(plugin.releases.len()).and_then(|index| index.checked_sub(1));
        let is_ready = why.ready.iter().any(|name| name == plugin.name());
        let newest = newest.filter(|_| is_ready).map(|newest| plugin.releases[newest].release);
        PluginState {
            name: plugin.name().to_owned(),
            version: newest.map(|release| release.version.clone()),
            published: newest.and_then(|release| release.published),
            silent_since: why.holders.iter().find(|h| h.name == plugin.name()).and_then(|blocker| blocker.silent_since),
        }
    };
    whole.mandatory_plugins().into_iter().map(state).collect()
}

/// Whether a Minecraft version has a build that could be used under another request.
fn has_usable_build(candidates: &CandidateIndex<'_>, version: &Minecraft) -> bool {
    candidates.papers.iter().any(|paper| paper.version.minecraft == *version && is_built(paper))
}

/// Whether a Paper version has a usable build: no build can be used without a checksum.
fn is_built(paper: &PaperCandidate<'_>) -> bool {
    !matches!(paper.unusable, Some(Unusable::NoChecksum))
}

/// Up to three existing versions close to one that does not exist or has no usable build. Versions of its own line come
/// first, closest first.
pub(super) fn nearest_existing(candidates: &CandidateIndex<'_>, wanted: &Minecraft) -> Vec<Minecraft> {
    let real = candidates.papers.iter().filter(|paper| is_built(paper)).map(|paper| &paper.version.minecraft);
    let mut versions: Vec<&Minecraft> = real.filter(|version| version.is_release() || !wanted.is_release()).collect();
    versions.sort();
    let split = versions.partition_point(|version| *version < wanted);
    let line = |version: &Minecraft| version.parts().map(|[major, minor, _]| (major, minor));
    let mut near: Vec<(bool, usize, &Minecraft)> = versions
        .iter()
        .enumerate()
        .map(|(position, version)| {
            let distance = if position < split { split - position } else { position + 1 - split };
            (line(version) != line(wanted), distance, *version)
        })
        .collect();
    near.sort_by_key(|(other_line, distance, version)| (*other_line, *distance, std::cmp::Reverse(*version)));
    near.into_iter().take(3).map(|(_, _, version)| version.clone()).collect()
}
