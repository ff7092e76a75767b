//! Pure. Explains delisted running releases: why one stays, or why another release replaces it.

use std::cmp::Ordering;

use super::why_older::conflicts_with_chosen;
use crate::explanation::{DelistedReason, DowngradePermission, Warning, WhyOlder};
use crate::index::{CandidateIndex, is_pinned, other_project};
use crate::model::version::lenient;
use crate::solve::Decision;

/// The warning for the chosen release (given by position) of a plugin. A newer release replaces a delisted one without
/// a warning.
pub(super) fn delisted_warning(
    candidates: &CandidateIndex<'_>,
    decision: &Decision,
    at: usize,
    position: usize,
) -> Option<Warning> {
    let plugin_candidates = &candidates.plugins[at];
    let from = candidates.delisted_version(plugin_candidates.project)?;
    let chosen = plugin_candidates.releases[position].release;
    let (plugin, from, to) = (plugin_candidates.name().to_owned(), from.to_owned(), chosen.version.clone());
    if candidates.is_delisted(plugin_candidates.project, chosen) {
        let project = plugin_candidates.project;
        if candidates.unread_page(project).is_some() {
            // Its page is named among the parts that could not be read.
            return None;
        }
        if let Some(runs) = other_project(candidates.request, project) {
            let (key, runs, is) = (project.key.clone(), runs.to_owned(), project.id.clone());
            return Some(Warning::OtherProject { plugin, version: from, project: key, runs, is });
        }
        let because = match (plugin_candidates.rules.hold, plugin_candidates.rules.pin) {
            (Some(_), _) => DelistedReason::Held,
            (None, Some(_)) => DelistedReason::Pinned,
            (None, None) => DelistedReason::NothingElse,
        };
        return Some(Warning::RunningReleaseKept { plugin, version: from, because });
    }
    let by_version = lenient::compare(&to, &from);
    match replacement_reason(candidates, decision, at, &from) {
        _ if by_version.is_gt() => None,
        Some(reason) if by_version == Ordering::Less => Some(Warning::Downgrade { plugin, from, to, reason }),
        // The user requests another version, and the replacement is not lower.
        Some(_) => None,
        None => Some(Warning::RunningReleaseGone { plugin, from, to }),
    }
}

/// The reason why the delisted release would not be kept even if its page still listed it: a setting of the user, or
/// the release itself.
fn replacement_reason(
    candidates: &CandidateIndex<'_>,
    decision: &Decision,
    at: usize,
    from: &str,
) -> Option<DowngradePermission> {
    let plugin_candidates = &candidates.plugins[at];
    if plugin_candidates.rules.pin.is_some_and(|pin| !is_pinned(from, pin)) {
        return Some(DowngradePermission::Pinned);
    }
    let is_delisted = |release| candidates.is_delisted(plugin_candidates.project, release);
    let position = plugin_candidates.releases.iter().position(|candidate| is_delisted(candidate.release))?;
    if let Some(unusable) = &plugin_candidates.releases[position].unusable {
        return Some(DowngradePermission::Unusable { unusable: unusable.clone() });
    }
    let paper = &candidates.papers[decision.chosen.paper].version.minecraft;
    let runs_on = candidates.request.running.as_ref().map(|running| &running.minecraft);
    if candidates.listing_evidence(at, position, decision.chosen.paper).is_none() {
        // On a Paper version other than the running one, the missing page is the reason.
        return (runs_on == Some(paper)).then_some(DowngradePermission::Overridden);
    }
    match conflicts_with_chosen(candidates, decision, at, position) {
        WhyOlder::Others { with, facts } => Some(DowngradePermission::Others { with, facts }),
        WhyOlder::Unusable { .. }
        | WhyOlder::NotListed { .. }
        | WhyOlder::Pinned
        | WhyOlder::Needs { .. }
        | WhyOlder::SharedVersion { .. } => None,
    }
}
