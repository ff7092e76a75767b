//! Pure. Finds the blockers of a Paper version by solving, and describes them from the lists.

use std::collections::VecDeque;

use pubgrub::VersionSet;

use super::ExplainContext;
use super::nearest::nearest_releases;
use crate::explanation::blocker::{Blocker, IneligibleCandidate, ListedRelease, UnmetNeed};
use crate::index::CandidateIndex;
use crate::index::candidates::{Edge, EdgeKind};
use crate::index::index_set::IndexSet;
use crate::model::budget::BudgetExceeded;
use crate::model::catalog::{last_release, newest_listed};
use crate::model::compatibility_facts::UsedFact;
use crate::model::unusable::Unusable;
use crate::solve::provider::{SolverProblem, find_solution};

/// Returns the blockers of one Paper version (given by position), as if the version itself were usable. Empty if all
/// requested plugins have a common solution on it.
///
/// Plugins that block it alone come first, in rank order. If the rest has no common solution, a minimal subset of it
/// that blocks the version follows. The others are ready, all of them together.
pub(super) fn find_blockers(
    context: &ExplainContext<'_, '_>,
    problem: &SolverProblem,
    paper: usize,
) -> Result<Vec<Blocker>, BudgetExceeded> {
    let problem = problem.assuming_usable(paper);
    let possible = |problem: &SolverProblem| Ok(find_solution(context.candidates, problem, context.meter)?.is_some());
    if possible(&problem)? {
        return Ok(Vec::new());
    }
    let (mut individual, mut rest) = (Vec::new(), Vec::new());
    for plugin in problem.mandatory_plugins() {
        let part =
            if possible(&problem.with_mandatory(|other| other == plugin))? { &mut rest } else { &mut individual };
        part.push(plugin);
    }
    let mut blockers = individual_blockers(context, &problem, &individual, paper)?;
    let fails = |subset: &[usize]| Ok(!possible(&problem.with_mandatory(|plugin| subset.contains(&plugin)))?);
    while !rest.is_empty() && fails(&rest)? {
        let conflict = minimize(rest.clone(), fails)?;
        rest.retain(|plugin| !conflict.contains(plugin));
        blockers.extend(combined_blockers(context.candidates, &conflict, paper));
    }
    Ok(blockers)
}

/// The plugins that each block a Paper version alone.
fn individual_blockers(
    context: &ExplainContext<'_, '_>,
    problem: &SolverProblem,
    individual: &[usize],
    paper: usize,
) -> Result<Vec<Blocker>, BudgetExceeded> {
    let mut blockers: Vec<Blocker> = Vec::new();
    for &plugin in individual {
        let blocker = describe_blocker(context, problem, plugin, paper)?;
        // A requested plugin may block others, too. It is reported once, with all of them.
        match blockers
            .iter_mut()
            .find(|existing| existing.key == blocker.key && existing.together_with == blocker.together_with)
        {
            Some(existing) => existing.needed_by.extend(blocker.needed_by),
            None => blockers.push(blocker),
        }
    }
    for blocker in &mut blockers {
        blocker.needed_by.sort();
        blocker.needed_by.dedup();
    }
    Ok(blockers)
}

/// The plugins that block a Paper version only in combination.
fn combined_blockers(candidates: &CandidateIndex<'_>, conflict: &[usize], paper: usize) -> Vec<Blocker> {
    let name = |plugin: usize| candidates.plugins[plugin].name().to_owned();
    let others = |but: usize| conflict.iter().filter(|&&plugin| plugin != but).map(|&plugin| name(plugin)).collect();
    let facts = facts_among(candidates, conflict, paper);
    let blockers = conflict.iter().map(|&at| {
        let plain = new_blocker(candidates, at, paper);
        let facts = facts.iter().filter(|fact| [&fact.plugin, &fact.needs].contains(&&plain.name)).cloned();
        Blocker { together_with: others(at), facts: facts.collect(), ..plain }
    });
    blockers.collect()
}

/// The facts between the newest releases of these plugins for the Paper version.
fn facts_among(candidates: &CandidateIndex<'_>, plugins: &[usize], paper: usize) -> Vec<UsedFact> {
    let mut facts = Vec::new();
    for &at in plugins {
        let plugin = &candidates.plugins[at];
        let Some(newest) =
            plugin.usable_on(paper).highest(plugin.releases.len()).and_then(|index| index.checked_sub(1))
        else {
            continue;
        };
        let edges = plugin.edges[newest].iter().filter(|edge| plugins.contains(&edge.to));
        facts.extend(edges.filter_map(|edge| candidates.fact(at, newest, edge)));
    }
    facts.sort();
    facts
}

/// A minimal subset for which `fails` still holds, found by removing one element at a time.
pub(super) fn minimize(
    mut elements: Vec<usize>,
    fails: impl Fn(&[usize]) -> Result<bool, BudgetExceeded>,
) -> Result<Vec<usize>, BudgetExceeded> {
    let mut at = 0;
    while at < elements.len() {
        let removed = elements.remove(at);
        if !fails(&elements)? {
            elements.insert(at, removed);
            at += 1;
        }
    }
    Ok(elements)
}

/// Describes why one plugin alone blocks a Paper version.
fn describe_blocker(
    context: &ExplainContext<'_, '_>,
    problem: &SolverProblem,
    at: usize,
    paper: usize,
) -> Result<Blocker, BudgetExceeded> {
    let plugin = &context.candidates.plugins[at];
    let on_paper = &plugin.supports[paper];
    let limit = plugin.releases.len();
    let members = |set: &IndexSet| set.members(1, limit).filter(|&index| on_paper.has(index)).collect::<Vec<_>>();
    let usable = members(&plugin.usable);
    if let Some(&index) = usable.iter().rev().find(|&&index| problem.root[at].has(index)) {
        return dependency_blocker(context, problem, at, index, paper);
    }
    let mut blocker = new_blocker(context.candidates, at, paper);
    if let Some(pin) = plugin.rules.pin {
        blocker.pinned = Some(pin.to_owned());
        if let Some(pinned) = problem.root[at].highest(limit).and_then(|index| index.checked_sub(1)) {
            blocker.newest = Some(listed_release(context.candidates, at, pinned, &[paper]));
        }
        if plugin.allowed.highest(limit).is_none() {
            blocker.newest = None;
            blocker.nearest = nearest_releases(context.candidates, at, pin);
        }
        return Ok(blocker);
    }
    blocker.nearly = members(&IndexSet::from_indexes(1..=limit)).last().and_then(|&index| {
        let candidate = &plugin.releases[index - 1];
        Some(IneligibleCandidate {
            version: candidate.release.version.clone(),
            published: candidate.release.published,
            unusable: candidate.unusable.clone()?,
        })
    });
    if blocker.nearly.is_none() {
        blocker.both = blocked_twice(context.candidates, at, blocker.newest.as_ref(), paper);
    }
    if blocker.waits_for_listing() {
        blocker.last_release_at = last_release(plugin.project, context.candidates.now);
    }
    Ok(blocker)
}

/// The newest release of a plugin that is blocked both by its list and by a date or its channel.
///
/// Only computed if `newest`, the usable release, would not load on the Paper version whatever is listed. Releases that
/// the Paper version refuses, or that no action could make usable, are skipped.
pub(super) fn blocked_twice(
    candidates: &CandidateIndex<'_>,
    at: usize,
    newest: Option<&ListedRelease>,
    paper: usize,
) -> Option<IneligibleCandidate> {
    if newest.is_some_and(|newest| newest.refuses.is_none()) {
        return None;
    }
    let mut releases = candidates.plugins[at].releases.iter().enumerate().rev();
    releases.find_map(|(position, candidate)| {
        let unusable = candidate.unusable.as_ref()?;
        let passes_by_itself =
            unusable.is_waiting() || matches!(unusable, Unusable::Superseded { .. } | Unusable::Channel { .. });
        let is_unlisted = candidates.listing_evidence(at, position, paper).is_none()
            && candidates.refusal(at, position, paper).is_none();
        (passes_by_itself && is_unlisted).then(|| IneligibleCandidate {
            version: candidate.release.version.clone(),
            published: candidate.release.published,
            unusable: unusable.clone(),
        })
    })
}

/// A release would be sufficient, but a plugin that it needs has none: then that plugin is the blocker. Otherwise the
/// blockers include the plugins that lack the release it requires.
fn dependency_blocker(
    context: &ExplainContext<'_, '_>,
    problem: &SolverProblem,
    at: usize,
    index: usize,
    paper: usize,
) -> Result<Blocker, BudgetExceeded> {
    let candidates = context.candidates;
    let plugin = &candidates.plugins[at];
    if let Some(missing) = missing_dependency(candidates, at, index - 1, paper) {
        let described = describe_blocker(context, &problem.with_mandatory(|_| false), missing, paper)?;
        let mut needed_by = described.needed_by.clone();
        needed_by.push(plugin.name().to_owned());
        needed_by.extend_from_slice(&plugin.unmanaged_dependents);
        return Ok(Blocker { needed_by, ..described });
    }
    let edges = &plugin.edges[index - 1];
    let (incompatible, lacks) = match unmet_targets(candidates, edges, paper) {
        unmet if unmet.is_empty() => (incompatible_targets(context, problem, edges)?, Vec::new()),
        unmet => {
            let lacks = unmet.iter().map(|&other| unmet_need(candidates, edges, other, paper)).collect();
            (unmet, lacks)
        }
    };
    let facts = edges.iter().filter(|edge| incompatible.contains(&edge.to));
    Ok(Blocker {
        together_with: incompatible.iter().map(|&other| candidates.plugins[other].name().to_owned()).collect(),
        lacks,
        facts: facts.filter_map(|edge| candidates.fact(at, index - 1, edge)).collect(),
        ..new_blocker(candidates, at, paper)
    })
}

/// The targets of some of these edges, each once.
fn edge_targets(edges: &[Edge], predicate: impl Fn(&&Edge) -> bool) -> Vec<usize> {
    let mut others: Vec<usize> = edges.iter().filter(predicate).map(|edge| edge.to).collect();
    others.sort_unstable();
    others.dedup();
    others
}

/// The plugins that have no release on a Paper version that the release of these edges accepts.
fn unmet_targets(candidates: &CandidateIndex<'_>, edges: &[Edge], paper: usize) -> Vec<usize> {
    edge_targets(edges, |edge| {
        let usable = candidates.plugins[edge.to].usable_on(paper).union(&IndexSet::absent());
        edge.set.is_disjoint(&usable)
    })
}

/// The release that the release of these edges would accept of a plugin that has no such release on a Paper version.
fn unmet_need(candidates: &CandidateIndex<'_>, edges: &[Edge], other: usize, paper: usize) -> UnmetNeed {
    let plugin = &candidates.plugins[other];
    let edges_to_other = edges.iter().filter(|edge| edge.to == other);
    let taken = edges_to_other.fold(IndexSet::present(), |taken, edge| taken.intersection(&edge.set));
    let newest = |of: &IndexSet| taken.intersection(of).highest(plugin.releases.len());
    let supported = &plugin.supports[paper];
    let found = newest(supported).or_else(|| newest(&plugin.usable)).or_else(|| newest(&IndexSet::full()));
    let position = found.and_then(|index| index.checked_sub(1));
    // A date that would not make the release usable is no reason.
    let counts = |position: usize, unusable: &Unusable| supported.has(position + 1) || !unusable.is_waiting();
    UnmetNeed {
        name: plugin.name().to_owned(),
        object: plugin.object().map(str::to_owned),
        release: position.map(|position| listed_release(candidates, other, position, &[paper])),
        unusable: position.and_then(|position| {
            plugin.releases[position].unusable.clone().filter(|unusable| counts(position, unusable))
        }),
    }
}

/// The plugins that the release of these edges is incompatible with on a Paper version although each has a release for
/// it. A minimal conflicting subset of them, otherwise all that it needs.
fn incompatible_targets(
    context: &ExplainContext<'_, '_>,
    problem: &SolverProblem,
    edges: &[Edge],
) -> Result<Vec<usize>, BudgetExceeded> {
    let candidates = context.candidates;
    let fails = |subset: &[usize]| {
        let mut problem = problem.with_mandatory(|_| false);
        for edge in edges.iter().filter(|edge| subset.contains(&edge.to)) {
            problem.root[edge.to] = problem.root[edge.to].intersection(&edge.set);
        }
        Ok(find_solution(candidates, &problem, context.meter)?.is_none())
    };
    let all = edge_targets(edges, |_| true);
    if fails(&all)? {
        return minimize(all, fails);
    }
    Ok(edge_targets(edges, |edge| edge.kind == EdgeKind::Required))
}

/// The nearest plugin without a release for the Paper version that a release needs, directly or through others.
fn missing_dependency(candidates: &CandidateIndex<'_>, at: usize, release: usize, paper: usize) -> Option<usize> {
    let mut found = vec![at];
    let mut next = VecDeque::from([(at, release)]);
    while let Some((at, release)) = next.pop_front() {
        let edges = candidates.plugins[at].edges[release].iter();
        for edge in edges.filter(|edge| edge.kind == EdgeKind::Required) {
            let other = &candidates.plugins[edge.to];
            // 0 stands for "not installed".
            let Some(newest) =
                other.usable_on(paper).highest(other.releases.len()).and_then(|index| index.checked_sub(1))
            else {
                return Some(edge.to);
            };
            // Plugins that need each other are visited once.
            if !found.contains(&edge.to) {
                found.push(edge.to);
                next.push_back((edge.to, newest));
            }
        }
    }
    None
}

/// A plugin with its newest release, without the reason why it blocks.
pub(super) fn new_blocker(candidates: &CandidateIndex<'_>, at: usize, paper: usize) -> Blocker {
    let plugin = &candidates.plugins[at];
    Blocker {
        name: plugin.name().to_owned(),
        object: plugin.object().map(str::to_owned),
        key: plugin.project.key.clone(),
        newest: plugin.newest_usable().map(|newest| listed_release(candidates, at, newest, &[paper])),
        nearly: None,
        both: None,
        together_with: Vec::new(),
        lacks: Vec::new(),
        facts: Vec::new(),
        needed_by: plugin.unmanaged_dependents.clone(),
        pinned: None,
        nearest: Vec::new(),
        last_release_at: None,
        read_at: plugin.project.read_at,
    }
}

/// A release with the newest version on its list.
///
/// `at` is its position. `papers` are the Paper versions in question.
pub(super) fn listed_release(
    candidates: &CandidateIndex<'_>,
    plugin: usize,
    at: usize,
    papers: &[usize],
) -> ListedRelease {
    let release = candidates.plugins[plugin].releases[at].release;
    let delisted = candidates.is_delisted(candidates.plugins[plugin].project, release);
    ListedRelease {
        version: release.version.clone(),
        published: release.published,
        delisted,
        unread: candidates.unread_page(candidates.plugins[plugin].project).is_some(),
        // A delisted release has no list any more.
        up_to: newest_listed(release).filter(|_| !delisted),
        // Of several Paper versions, the newest counts, because it refuses the fewest releases.
        refuses: papers.iter().max().and_then(|&paper| candidates.refusal(plugin, at, paper)),
        sibling: papers.iter().find_map(|&paper| candidates.untrusted_sibling(plugin, at, paper)),
        overridden: papers.iter().any(|&paper| {
            candidates.listing_evidence(plugin, at, paper).is_none()
                && candidates.page_evidence(plugin, at, paper).is_some()
        }) && !delisted,
    }
}
