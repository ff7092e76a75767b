//! Pure. What is said of a release that runs and that its page has lost: that it stays, or why something else comes in its place.

use std::cmp::Ordering;

use super::solved::others;
use super::{DelistedReason, DowngradePermission, Warning, WhyOlder};
use crate::index::{CandidateIndex, is_pinned};
use crate::solve::Decision;
use crate::version::lenient;

/// What is said beside the release (its place) that was chosen of a plugin. One that is newer replaces what was lost as ever.
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
        // The user asks for another one, and no lower one comes.
        Some(_) => None,
        None => Some(Warning::RunningReleaseGone { plugin, from, to }),
    }
}

/// What would let nobody keep the release that was lost, were it still on its page: the user's word, or itself.
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
        // On another Paper than the one that runs it is its page that nobody can ask any more.
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
