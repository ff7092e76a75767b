//! Pure. Lists the actions that only plugin authors can take: releases and list entries.

use serde::{Deserialize, Serialize};

use super::{Blocker, ListedRelease, NewerPaper, NotUpdatedWithLatest, Reason, UnmetNeed};
use crate::catalog::Source;
use crate::index::CandidateIndex;
use crate::request::{CompatibilityOverride, OverrideMode};
use crate::unusable::Unusable;
use crate::version::{Minecraft, glob};

/// An action of the plugin's authors. It changes none of the user's settings, so it was not verified.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(tag = "await", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum UpstreamAction {
    /// List the Minecraft version for an existing release, or publish a release for it.
    Listed {
        /// The plugin name.
        plugin: String,
        /// Its newest release that may be used.
        release: String,
        /// The Minecraft version.
        minecraft: Minecraft,
    },
    /// Publish a release for the Minecraft version: no existing release would be sufficient, even with a list entry.
    Released {
        /// The plugin name.
        plugin: String,
        /// The Minecraft version.
        minecraft: Minecraft,
    },
}

/// The actions that the next newer Paper version waits for, and those that the left-behind plugins wait for.
pub(super) fn by_newer(
    world: &CandidateIndex<'_>,
    chosen: &Minecraft,
    newer: &[NewerPaper],
    unfollowed: &[NotUpdatedWithLatest],
) -> Vec<UpstreamAction> {
    let next = newer.first().filter(|newer| newer.pinned.is_none() && may_pass(newer.unusable.as_ref()));
    let held = next.map_or_else(Vec::new, |newer| by_holders(world, &newer.held_by, &newer.minecraft));
    let left = unfollowed.iter().flat_map(|left| by_holder(world, &left.holder, chosen));
    once(held.into_iter().chain(left))
}

/// Whether only time and upstream actions block a Paper version itself. Otherwise waiting alone does not help.
pub(super) fn may_pass(unusable: Option<&Unusable>) -> bool {
    unusable.is_none_or(|unusable| {
        matches!(unusable, Unusable::HeldBack { .. } | Unusable::BuildChannel { .. } | Unusable::NoImage { .. })
    })
}

/// The actions that these blockers wait for. Empty if some of them conflict with each other, because no list entry
/// resolves that.
pub(super) fn by_holders(
    world: &CandidateIndex<'_>,
    holders: &[Blocker],
    minecraft: &Minecraft,
) -> Vec<UpstreamAction> {
    if holders.iter().any(|holder| !holder.together_with.is_empty() && holder.lacks.is_empty()) {
        return Vec::new();
    }
    once(holders.iter().flat_map(|holder| by_holder(world, holder, minecraft)))
}

/// The actions that would resolve some of these facts.
pub(super) fn by_reasons(world: &CandidateIndex<'_>, reasons: &[Reason]) -> Vec<UpstreamAction> {
    once(reasons.iter().filter_map(|reason| {
        let (plugin, papers, newest) = if let Reason::NotListed { plugin, papers, newest, .. } = reason {
            (plugin, papers, newest.as_ref())
        } else if let Reason::NoRelease { plugin, papers, object: _ } = reason {
            (plugin, papers, None)
        } else {
            return None;
        };
        awaited(world, plugin, newest, &papers.last()?.to)
    }))
}

/// The actions that a blocker waits for: its own, otherwise those of the plugins whose releases it requires.
fn by_holder(world: &CandidateIndex<'_>, holder: &Blocker, minecraft: &Minecraft) -> Vec<UpstreamAction> {
    let is_free = holder.pinned.is_none() && holder.nearly.is_none() && holder.together_with.is_empty();
    let itself = is_free.then(|| awaited(world, &holder.name, holder.newest.as_ref(), minecraft)).flatten();
    let unlisted = |lack: &&UnmetNeed| lack.release.is_some() && lack.unusable.is_none();
    let lacks = holder.lacks.iter().filter(unlisted);
    itself
        .into_iter()
        .chain(lacks.filter_map(|lack| awaited(world, &lack.name, lack.release.as_ref(), minecraft)))
        .collect()
}

fn awaited(
    world: &CandidateIndex<'_>,
    plugin: &str,
    newest: Option<&ListedRelease>,
    minecraft: &Minecraft,
) -> Option<UpstreamAction> {
    let shelf = world.shelves.iter().find(|shelf| shelf.name() == plugin)?;
    // No author lists versions or publishes further releases for a file that is given by URL. The same holds at a
    // source whose lists are about other software.
    let source = shelf.project.key.source;
    if source == Source::Url || !world.request.software.is_listed_at(source) {
        return None;
    }
    // If the user's override excludes the version, no list entry helps.
    let stands_against = |says: &&CompatibilityOverride| match says.mode {
        OverrideMode::Add => false,
        OverrideMode::Replace => !says.minecraft.is_empty(),
        OverrideMode::Remove => says.minecraft.iter().any(|pattern| glob::matches(pattern, minecraft)),
    };
    let overruled = shelf.rules.compatibility.filter(stands_against);
    if overruled.is_some_and(|says| says.releases.is_empty()) {
        return None;
    }
    let is_open = |newest: &&ListedRelease| {
        // A delisted release gets no list entries.
        newest.refuses.is_none() && !newest.lost && !overruled.is_some_and(|says| says.is_about(&newest.version))
    };
    let (plugin, minecraft) = (plugin.to_owned(), minecraft.clone());
    Some(match newest.filter(is_open) {
        Some(newest) => UpstreamAction::Listed { plugin, release: newest.version.clone(), minecraft },
        None => UpstreamAction::Released { plugin, minecraft },
    })
}

/// Each action once, sorted by the name of the plugin.
fn once(awaited: impl Iterator<Item = UpstreamAction>) -> Vec<UpstreamAction> {
    let mut awaited: Vec<UpstreamAction> = awaited.collect();
    awaited.sort_by(|a, b| (a.plugin(), a).cmp(&(b.plugin(), b)));
    awaited.dedup();
    awaited
}

impl UpstreamAction {
    fn plugin(&self) -> &str {
        match self {
            Self::Listed { plugin, .. } | Self::Released { plugin, .. } => plugin,
        }
    }
}
