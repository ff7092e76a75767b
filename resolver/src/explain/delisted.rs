//! Pure. Explains delisted running releases: why one stays, or why another release replaces it.

use std::cmp::Ordering;

use super::solved::others;
use super::{DelistedReason, DowngradePermission, Warning, WhyOlder};
use crate::index::{CandidateIndex, is_pinned};
use crate::solve::Decision;
use crate::version::lenient;

/// The warning for the chosen release (given by position) of a plugin. A newer release replaces a delisted one without
/// a warning.
pub(super) fn warning(world: &CandidateIndex<'_>, decision: &Decision, at: usize, place: usize) -> Option<Warning> {
    let shelf = &world.shelves[at];
    let from = world.lost(shelf.project)?;
    let chosen = shelf.releases[place].release;
    let (plugin, from, to) = (shelf.name().to_owned(), from.to_owned(), chosen.version.clone());
    if world.has_lost(shelf.project, chosen) {
        let because = match (shelf.rules.hold, shelf.rules.pin) {
            (Some(_), _) => DelistedReason::Held,
            (None, Some(_)) => DelistedReason::Pinned,
            (None, None) => DelistedReason::NothingElse,
        };
        return Some(Warning::RunningReleaseKept { plugin, version: from, because });
    }
    let by_version = lenient::compare(&to, &from);
    match instead(world, decision, at, &from) {
        _ if by_version.is_gt() => None,
        Some(reason) if by_version == Ordering::Less => Some(Warning::GoesDown { plugin, from, to, reason }),
        // The user requests another version, and the replacement is not lower.
        Some(_) => None,
        None => Some(Warning::RunningReleaseGone { plugin, from, to }),
    }
}

/// The reason why the delisted release would not be kept even if its page still listed it: a setting of the user, or
/// the release itself.
fn instead(world: &CandidateIndex<'_>, decision: &Decision, at: usize, from: &str) -> Option<DowngradePermission> {
    let shelf = &world.shelves[at];
    if shelf.rules.pin.is_some_and(|pin| !is_pinned(from, pin)) {
        return Some(DowngradePermission::Pinned);
    }
    let is_lost = |release| world.has_lost(shelf.project, release);
    let place = shelf.releases.iter().position(|stocked| is_lost(stocked.release))?;
    if let Some(unusable) = &shelf.releases[place].unusable {
        return Some(DowngradePermission::Unusable { unusable: unusable.clone() });
    }
    let paper = &world.papers[decision.chosen.paper].version.minecraft;
    let runs_on = world.request.running.as_ref().map(|running| &running.minecraft);
    if world.known(at, place, decision.chosen.paper).is_none() {
        // On a Paper version other than the running one, the missing page is the reason.
        return (runs_on == Some(paper)).then_some(DowngradePermission::Overridden);
    }
    match others(world, decision, at, place) {
        WhyOlder::Others { with, facts } => Some(DowngradePermission::Others { with, facts }),
        WhyOlder::Unusable { .. }
        | WhyOlder::NotListed { .. }
        | WhyOlder::Pinned
        | WhyOlder::Needs { .. }
        | WhyOlder::OneVersion { .. } => None,
    }
}
