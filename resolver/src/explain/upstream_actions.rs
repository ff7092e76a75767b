//! Pure. Lists the actions that only plugin authors can take: releases and list entries. As hints, they are verified:
//! the request is solved as if they were taken.

use pubgrub::VersionSet;

use super::ExplainContext;
use crate::explanation::upstream_action::UpstreamAction;
use crate::explanation::{Blocker, ListedRelease, NewerPaper, NotUpdatedWithLatest, Reason, SharedVersion, UnmetNeed};
use crate::index::CandidateIndex;
use crate::index::candidates::{Edge, EdgeKind};
use crate::index::chosen::Chosen;
use crate::index::index_set::IndexSet;
use crate::model::catalog::Source;
use crate::model::request::{CompatibilityOverride, OverrideMode};
use crate::model::unusable::passes_by_itself;
use crate::model::version::{Minecraft, glob};
use crate::solve::Decision;
use crate::solve::provider::{SolverProblem, find_solution};

/// The actions that the next newer Paper version waits for, and those that the left-behind plugins wait for.
pub(super) fn for_newer(
    context: &ExplainContext<'_, '_>,
    decision: &Decision,
    newer: &[NewerPaper],
    left_behind: &[NotUpdatedWithLatest],
) -> Vec<UpstreamAction> {
    let next = newer.first().filter(|newer| newer.pinned.is_none() && passes_by_itself(newer.unusable.as_ref()));
    let for_next_version = next.map_or_else(Vec::new, |newer| {
        for_blockers(context, (&newer.blocked_by, &newer.shared_versions), &newer.minecraft)
    });
    sort_and_dedup(for_next_version.into_iter().chain(for_left_behind(context, decision, left_behind)))
}

/// The actions that left-behind plugins wait for: those of all of them if all would follow then, otherwise those of
/// each that would follow alone.
fn for_left_behind(
    context: &ExplainContext<'_, '_>,
    decision: &Decision,
    left_behind: &[NotUpdatedWithLatest],
) -> Vec<UpstreamAction> {
    let candidates = context.candidates;
    let paper = IndexSet::from_indexes([decision.chosen.paper + 1]);
    let minecraft = &candidates.papers[decision.chosen.paper].version.minecraft;
    let of_each: Vec<Vec<UpstreamAction>> =
        left_behind.iter().map(|left| for_blocker(candidates, &left.blocker, minecraft)).collect();
    let whole = SolverProblem::new(candidates, paper.clone());
    if let Some(verified) = verified_actions(context, &whole, &of_each.concat()) {
        return verified;
    }
    let alone = decision.left_behind.iter().zip(of_each).filter_map(|((at, _), actions)| {
        let mut problem = decision.problem.with_papers(paper.clone());
        problem.root[*at] = candidates.plugins[*at].allowed.clone();
        problem.retained[*at] = IndexSet::empty();
        verified_actions(context, &problem, &actions)
    });
    alone.flatten().collect()
}

/// The actions that these blockers and shared plugins wait for. Empty if some of them conflict with each other, because
/// no list entry resolves that, and if something else would block the Paper version then.
pub(super) fn for_blockers(
    context: &ExplainContext<'_, '_>,
    (blockers, shared_versions): (&[Blocker], &[SharedVersion]),
    minecraft: &Minecraft,
) -> Vec<UpstreamAction> {
    let candidates = context.candidates;
    let position = candidates.papers.iter().position(|paper| paper.version.minecraft == *minecraft);
    let Some(position) = position.filter(|_| shared_versions.is_empty()) else { return Vec::new() };
    if blockers.iter().any(|blocker| !blocker.together_with.is_empty() && blocker.lacks.is_empty()) {
        return Vec::new();
    }
    let actions = sort_and_dedup(blockers.iter().flat_map(|blocker| for_blocker(candidates, blocker, minecraft)));
    let whole = SolverProblem::new(candidates, IndexSet::empty()).assuming_usable(position);
    verified_actions(context, &whole, &actions).unwrap_or_default()
}

/// The actions that would resolve these facts, by Minecraft version: those after which `problem` has a solution on it.
pub(super) fn for_reasons(
    context: &ExplainContext<'_, '_>,
    problem: &SolverProblem,
    reasons: &[Reason],
) -> Vec<UpstreamAction> {
    let candidates = context.candidates;
    let all = actions_for_reasons(candidates, reasons);
    let verified = candidates.papers.iter().enumerate().flat_map(|(position, paper)| {
        let is_here = |action: &&UpstreamAction| *action.minecraft() == paper.version.minecraft;
        let actions: Vec<UpstreamAction> = all.iter().filter(is_here).cloned().collect();
        let is_possible = problem.papers.has(position + 1) && passes_by_itself(paper.unusable.as_ref());
        let verified = is_possible.then(|| verified_actions(context, &problem.assuming_usable(position), &actions));
        verified.flatten().unwrap_or_default()
    });
    sort_and_dedup(verified)
}

/// The actions, if they are sufficient, each with whether only a list entry helps.
fn verified_actions(
    context: &ExplainContext<'_, '_>,
    problem: &SolverProblem,
    actions: &[UpstreamAction],
) -> Option<Vec<UpstreamAction>> {
    if !is_sufficient(context, problem, actions) {
        return None;
    }
    let verified = actions.iter().enumerate().map(|(at, action)| match action {
        UpstreamAction::Released { .. } => action.clone(),
        UpstreamAction::Listed { plugin, release, minecraft, only: _ } => {
            let (plugin, release, minecraft) = (plugin.clone(), release.clone(), minecraft.clone());
            let mut others = actions.to_vec();
            others[at] = UpstreamAction::Released { plugin: plugin.clone(), minecraft: minecraft.clone() };
            let only = !is_sufficient(context, problem, &others);
            UpstreamAction::Listed { plugin, release, minecraft, only }
        }
    });
    Some(verified.collect())
}

/// Whether the problem has a solution as if these actions were taken. No action is never sufficient.
///
/// A list entry counts for the release that it names. A new release stands for the newest one that may be used, with
/// its dependencies, but no page names it. Without any such release, the plugin is only missing.
fn is_sufficient(context: &ExplainContext<'_, '_>, problem: &SolverProblem, actions: &[UpstreamAction]) -> bool {
    if actions.is_empty() {
        return false;
    }
    let candidates = context.candidates;
    let (mut with, mut published) = (problem.clone(), Vec::new());
    for action in actions {
        let Some(at) = candidates.plugins.iter().position(|plugin| plugin.name() == action.plugin()) else {
            return false;
        };
        let plugin = &candidates.plugins[at];
        let position = match action {
            UpstreamAction::Listed { release, .. } => {
                let is_meant = plugin
                    .releases
                    .iter()
                    .rposition(|candidate| candidate.unusable.is_none() && candidate.release.version == *release);
                let Some(position) = is_meant else { return false };
                Some(position)
            }
            UpstreamAction::Released { .. } if plugin.rules.hold.is_some() || plugin.rules.pin.is_some() => {
                return false;
            }
            UpstreamAction::Released { .. } => {
                let newest = plugin.newest_usable();
                published.extend(newest.map(|newest| (at, newest)));
                newest
            }
        };
        match position {
            Some(position) => with.retained[at] = with.retained[at].union(&IndexSet::from_indexes([position + 1])),
            None => with.root[at] = IndexSet::full(),
        }
    }
    let found = find_solution(candidates, &with, context.meter);
    let names_none = |chosen: Chosen| published.iter().all(|release| !is_named_exactly(candidates, &chosen, *release));
    found.is_ok_and(|found| found.is_some_and(names_none))
}

/// Whether the page of a chosen release names exactly this release (plugin and position), which is chosen too.
fn is_named_exactly(candidates: &CandidateIndex<'_>, chosen: &Chosen, (at, position): (usize, usize)) -> bool {
    let names = |edge: &Edge| edge.to == at && edge.kind != EdgeKind::Incompatible && edge.is_exact();
    let mut edges = candidates
        .plugins
        .iter()
        .zip(&chosen.releases)
        .flat_map(|(plugin, release)| release.and_then(|release| plugin.edges.get(release)).into_iter().flatten());
    chosen.releases[at] == Some(position) && edges.any(names)
}

fn actions_for_reasons(candidates: &CandidateIndex<'_>, reasons: &[Reason]) -> Vec<UpstreamAction> {
    sort_and_dedup(reasons.iter().filter_map(|reason| {
        let (plugin, papers, newest) = if let Reason::NotListed { plugin, papers, newest, .. } = reason {
            (plugin, papers, newest.as_ref())
        } else if let Reason::NoRelease { plugin, papers, object: _ } = reason {
            (plugin, papers, None)
        } else {
            return None;
        };
        awaited_action(candidates, plugin, newest, &papers.last()?.to)
    }))
}

/// The actions that a blocker waits for: its own, otherwise those of the plugins whose releases it requires.
fn for_blocker(candidates: &CandidateIndex<'_>, blocker: &Blocker, minecraft: &Minecraft) -> Vec<UpstreamAction> {
    let is_free = blocker.pinned.is_none() && blocker.nearly.is_none() && blocker.together_with.is_empty();
    let itself =
        is_free.then(|| awaited_action(candidates, &blocker.name, blocker.newest.as_ref(), minecraft)).flatten();
    let unlisted = |need: &&UnmetNeed| need.release.is_some() && need.unusable.is_none();
    let lacks = blocker.lacks.iter().filter(unlisted);
    itself
        .into_iter()
        .chain(lacks.filter_map(|need| awaited_action(candidates, &need.name, need.release.as_ref(), minecraft)))
        .collect()
}

fn awaited_action(
    candidates: &CandidateIndex<'_>,
    plugin: &str,
    newest: Option<&ListedRelease>,
    minecraft: &Minecraft,
) -> Option<UpstreamAction> {
    let plugin_candidates = candidates.plugins.iter().find(|plugin_candidates| plugin_candidates.name() == plugin)?;
    // No author lists versions or publishes further releases for a file that is given by URL. The same holds at a
    // source whose lists are about other software.
    let source = plugin_candidates.project.key.source;
    if source == Source::Url || !candidates.request.software.is_listed_at(source) {
        return None;
    }
    // The page may have what is awaited.
    if candidates.unread_page(plugin_candidates.project).is_some() {
        return None;
    }
    // If the user's override excludes the version, no list entry helps.
    let excludes = |user_override: &&CompatibilityOverride| match user_override.mode {
        OverrideMode::Add => false,
        OverrideMode::Replace => !user_override.minecraft.is_empty(),
        OverrideMode::Remove => user_override.minecraft.iter().any(|pattern| glob::matches(pattern, minecraft)),
    };
    let overruled = plugin_candidates.rules.compatibility.filter(excludes);
    if overruled.is_some_and(|user_override| user_override.releases.is_empty()) {
        return None;
    }
    let is_open = |newest: &&ListedRelease| {
        // A delisted release gets no list entries.
        newest.refuses.is_none()
            && !newest.delisted
            && !overruled.is_some_and(|user_override| user_override.is_about(&newest.version))
    };
    let (plugin, minecraft) = (plugin.to_owned(), minecraft.clone());
    Some(match newest.filter(is_open) {
        Some(newest) => UpstreamAction::Listed { plugin, release: newest.version.clone(), minecraft, only: false },
        None => UpstreamAction::Released { plugin, minecraft },
    })
}

/// Each action once, sorted by the name of the plugin.
fn sort_and_dedup(actions: impl Iterator<Item = UpstreamAction>) -> Vec<UpstreamAction> {
    let mut actions: Vec<UpstreamAction> = actions.collect();
    actions.sort_by(|a, b| (a.plugin(), a).cmp(&(b.plugin(), b)));
    actions.dedup();
    actions
}
