//! Pure. Explains why a newer release of a plugin was not chosen.

use super::{ExplainContext, shared_plugins};
use crate::explanation::{NewerRelease, WhyOlder};
use crate::index::CandidateIndex;
use crate::index::candidates::Edge;
use crate::index::index_set::IndexSet;
use crate::model::catalog::newest_listed;
use crate::model::compatibility_facts::UsedFact;
use crate::model::unusable::Unusable;
use crate::solve::Decision;
use crate::solve::provider::find_solution;

/// The reason why a release (given by position) was not chosen, ignoring newer releases that were chosen.
pub(crate) fn not_chosen(
    context: &ExplainContext<'_, '_>,
    decision: &Decision,
    at: usize,
    newer: usize,
) -> NewerRelease {
    let candidates = context.candidates;
    let plugin = &candidates.plugins[at];
    let candidate = &plugin.releases[newer];
    let refusal = candidates.refusal(at, newer, decision.chosen.paper);
    // A date, or a setting, that would not make the release usable is no reason.
    let is_reason = |unusable: &&Unusable| !unusable.is_waiting() && (refusal.is_none() || unusable.is_inherent());
    let because = if let Some(unusable) = candidate.unusable.as_ref().filter(is_reason) {
        WhyOlder::Unusable { unusable: unusable.clone() }
    } else if plugin.requested_by.is_some() && !plugin.allowed.has(newer + 1) {
        WhyOlder::Pinned
    } else if let Some(unusable) = refusal {
        WhyOlder::Unusable { unusable }
    } else if candidates.listing_evidence(at, newer, decision.chosen.paper).is_none() {
        WhyOlder::NotListed { up_to: newest_listed(candidate.release) }
    } else if let Some(unusable) = &candidate.unusable {
        WhyOlder::Unusable { unusable: unusable.clone() }
    } else {
        let why = conflicts_with_chosen(candidates, decision, at, newer);
        let is_possible = || is_possible_alone(context, decision, at, newer);
        let is_unsupported = matches!(&why, WhyOlder::Needs { needs } if needs.is_empty() || is_possible());
        match shared_plugins::not_chosen_reason(context, at, newer, is_unsupported) {
            Some(shared_version) => WhyOlder::SharedVersion { shared_version },
            None => why,
        }
    };
    NewerRelease { version: candidate.release.version.clone(), published: candidate.release.published, because }
}

/// Whether the server could have a release of a shared plugin if it had no group. All other requested and chosen
/// releases stay, and its dependencies are added.
fn is_possible_alone(context: &ExplainContext<'_, '_>, decision: &Decision, at: usize, newer: usize) -> bool {
    let candidates = context.candidates;
    if !context.group.is_some_and(|group| shared_plugins::is_shared(group, at)) {
        return false;
    }
    let mut with = decision.problem.with_papers(IndexSet::from_indexes([decision.chosen.paper + 1]));
    for (plugin, release) in decision.chosen.releases.iter().enumerate() {
        if let (Some(release), Some(_)) = (release, &candidates.plugins[plugin].requested_by) {
            with.root[plugin] = IndexSet::from_indexes([release + 1]);
        }
    }
    with.root[at] = IndexSet::from_indexes([newer + 1]);
    find_solution(candidates, &with, context.meter).is_ok_and(|solution| solution.is_some())
}

/// The plugins of the chosen version set that a release is incompatible with.
pub(crate) fn conflicts_with_chosen(
    candidates: &CandidateIndex<'_>,
    decision: &Decision,
    at: usize,
    position: usize,
) -> WhyOlder {
    let chosen = |plugin: usize| decision.chosen.releases[plugin];
    let index = |plugin: usize| chosen(plugin).map_or(0, |position| position + 1);
    let named = |plugin: usize| {
        let releases = &candidates.plugins[plugin].releases;
        let version = chosen(plugin).map_or("", |position| releases[position].release.version.as_str());
        format!("{} {version}", candidates.plugins[plugin].name())
    };
    let edges = &candidates.plugins[at].edges[position];
    let unmet: Vec<&Edge> = edges.iter().filter(|edge| !edge.set.has(index(edge.to))).collect();
    let unmet_installed = || unmet.iter().filter(|edge| chosen(edge.to).is_some());
    let mut with: Vec<String> = unmet_installed().map(|edge| named(edge.to)).collect();
    let mut facts: Vec<UsedFact> = unmet_installed().filter_map(|edge| candidates.fact(at, position, edge)).collect();
    for (other, release) in decision.chosen.releases.iter().enumerate() {
        let Some(release) = *release else { continue };
        let edges = candidates.plugins[other].edges[release].iter();
        for edge in edges.filter(|edge| edge.to == at && !edge.set.has(position + 1)) {
            with.push(named(other));
            facts.extend(candidates.fact(other, release, edge));
        }
    }
    with.sort();
    with.dedup();
    if with.is_empty() {
        let mut needs: Vec<String> = unmet.iter().map(|edge| candidates.plugins[edge.to].name().to_owned()).collect();
        needs.sort();
        WhyOlder::Needs { needs }
    } else {
        facts.sort();
        WhyOlder::Others { with, facts }
    }
}
