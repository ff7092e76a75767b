//! Pure. Lists the actions that only plugin authors can take: releases and list entries.

use crate::explanation::upstream_action::UpstreamAction;
use crate::explanation::{Blocker, ListedRelease, NewerPaper, NotUpdatedWithLatest, Reason, UnmetNeed};
use crate::index::CandidateIndex;
use crate::model::catalog::Source;
use crate::model::request::{CompatibilityOverride, OverrideMode};
use crate::model::unusable::passes_by_itself;
use crate::model::version::{Minecraft, glob};

/// The actions that the next newer Paper version waits for, and those that the left-behind plugins wait for.
pub(super) fn for_newer(
    candidates: &CandidateIndex<'_>,
    chosen: &Minecraft,
    newer: &[NewerPaper],
    left_behind: &[NotUpdatedWithLatest],
) -> Vec<UpstreamAction> {
    let next = newer.first().filter(|newer| newer.pinned.is_none() && passes_by_itself(newer.unusable.as_ref()));
    let held = next.map_or_else(Vec::new, |newer| for_blockers(candidates, &newer.blocked_by, &newer.minecraft));
    let left = left_behind.iter().flat_map(|left| for_blocker(candidates, &left.blocker, chosen));
    sort_and_dedup(held.into_iter().chain(left))
}

/// The actions that these blockers wait for. Empty if some of them conflict with each other, because no list entry
/// resolves that.
pub(super) fn for_blockers(
    candidates: &CandidateIndex<'_>,
    blockers: &[Blocker],
    minecraft: &Minecraft,
) -> Vec<UpstreamAction> {
    if blockers.iter().any(|blocker| !blocker.together_with.is_empty() && blocker.lacks.is_empty()) {
        return Vec::new();
    }
    sort_and_dedup(blockers.iter().flat_map(|blocker| for_blocker(candidates, blocker, minecraft)))
}

/// The actions that would resolve some of these facts.
pub(super) fn for_reasons(candidates: &CandidateIndex<'_>, reasons: &[Reason]) -> Vec<UpstreamAction> {
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
        Some(newest) => UpstreamAction::Listed { plugin, release: newest.version.clone(), minecraft },
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
