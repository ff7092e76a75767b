//! Pure. Explains "why not this release of a plugin?": the reason against it, and the result with that release pinned.

use super::nearest::nearest_releases;
use super::why_older::not_chosen;
use super::{ExplainContext, decision};
use crate::explanation::why_not_release::{OtherRelease, Pinned, ReleaseState, WhyNotRelease};
use crate::explanation::{ChosenPlugin, Explanation, Hint, HintStep, WhyOlder};
use crate::index::candidates::PluginCandidates;
use crate::index::is_pinned;
use crate::model::budget::BudgetExceeded;
use crate::model::software::PaperName;
use crate::solve::Decision;

/// Explains why the version set contains another release of the plugin than this one. `pinned` returns the result with
/// this release pinned. `None` if the server does not request the plugin.
pub(crate) fn explain(
    context: &ExplainContext<'_, '_>,
    object: &str,
    version: &str,
    pinned: impl FnOnce() -> Option<Explanation>,
) -> Result<Option<WhyNotRelease>, BudgetExceeded> {
    let candidates = context.candidates;
    let is_requested = |plugin: &PluginCandidates<'_>| {
        plugin.requested_by.as_ref().is_some_and(|requested_by| requested_by.objects.contains(&object))
    };
    let Some(at) = candidates.plugins.iter().position(|plugin| is_requested(plugin)) else { return Ok(None) };
    let plugin = &candidates.plugins[at];
    let decision = decision::decision(context)?;
    let position = plugin.releases.iter().rposition(|candidate| is_pinned(&candidate.release.version, version));
    let chosen = decision.as_ref().and_then(|decision| decision.chosen.releases[at]);
    let state = match (position, &decision) {
        (None, _) => ReleaseState::NoSuchRelease { nearest: nearest_releases(candidates, at, version) },
        (Some(position), None) => match plugin.releases[position].unusable.clone() {
            Some(unusable) => ReleaseState::Excluded { because: WhyOlder::Unusable { unusable } },
            None => ReleaseState::NoReleaseMatches,
        },
        (Some(position), Some(decision)) => state(context, decision, at, position),
    };
    let release = position.map(|position| plugin.releases[position].release);
    let has_another = !matches!(state, ReleaseState::Chosen | ReleaseState::NoSuchRelease { .. });
    Ok(Some(WhyNotRelease {
        server: candidates.request.server.clone(),
        software: candidates.request.software,
        plugin: plugin.name().to_owned(),
        object: object.to_owned(),
        version: release.map_or(version, |release| &release.version).to_owned(),
        published: release.and_then(|release| release.published),
        pinned: has_another.then(pinned).flatten().map(|explanation| {
            let before = decision.as_ref().map(|decision| decision.plugins(candidates));
            pinned_result(explanation, before, plugin.name(), object)
        }),
        state,
        paper: decision.and_then(|decision| candidates.paper_name(decision.chosen.paper)),
        instead: chosen.map(|chosen| plugin.releases[chosen].release.version.clone()),
    }))
}

/// The state of an existing release (given by position), if there is a solution.
fn state(context: &ExplainContext<'_, '_>, decision: &Decision, at: usize, position: usize) -> ReleaseState {
    let plugin = &context.candidates.plugins[at];
    let chosen = decision.chosen.releases[at];
    // Two uploads of one version are the same for a user.
    let version = |position: usize| &plugin.releases[position].release.version;
    if chosen.is_some_and(|chosen| version(chosen) == version(position)) {
        return ReleaseState::Chosen;
    }
    let because = not_chosen(context, decision, at, position).because;
    let is_inherent = matches!(because, WhyOlder::Unusable { .. } | WhyOlder::NotListed { .. } | WhyOlder::Pinned);
    if !is_inherent && chosen.is_some_and(|chosen| position < chosen) {
        return ReleaseState::Older;
    }
    ReleaseState::Excluded { because }
}

/// The result with the pin, compared with the plugins of the version set without it.
fn pinned_result(
    explanation: Explanation,
    before: Option<Vec<(String, String)>>,
    plugin: &str,
    object: &str,
) -> Pinned {
    let Explanation::Solved(solved) = &explanation else {
        return Pinned::NoSet { answer: Box::new(without_unpinning(explanation, object)) };
    };
    if solved.deploy_blocker().is_some() {
        return Pinned::NoSet { answer: Box::new(explanation) };
    }
    Pinned::Set {
        paper: PaperName {
            software: solved.software,
            minecraft: solved.paper.minecraft.clone(),
            build: solved.paper.build,
        },
        changes: before.map(|before| changes(&before, &solved.plugins, plugin)).unwrap_or_default(),
    }
}

/// The changes of all other plugins, by name.
fn changes(before: &[(String, String)], after: &[ChosenPlugin], but: &str) -> Vec<OtherRelease> {
    let was = |name: &str| before.iter().find(|(other, _)| other == name).map(|(_, version)| version.clone());
    let is = |name: &str| after.iter().find(|plugin| plugin.name == name).map(|plugin| plugin.version.clone());
    let mut names: Vec<&str> = before.iter().map(|(name, _)| name.as_str()).collect();
    names.extend(after.iter().map(|plugin| plugin.name.as_str()));
    names.sort_unstable();
    names.dedup();
    let others = names.into_iter().filter(|name| *name != but);
    let change = |name: &str| OtherRelease { plugin: name.to_owned(), version: is(name), instead_of: was(name) };
    others.map(change).filter(|change| change.version != change.instead_of).collect()
}

/// Removes hints that remove the pin, because the request is about the pin.
fn without_unpinning(mut explanation: Explanation, object: &str) -> Explanation {
    let unpins = |hint: &Hint| hint.steps.contains(&HintStep::UnpinPlugin { object: object.to_owned() });
    if let Explanation::Impossible(impossible) = &mut explanation {
        impossible.hints.retain(|hint| !unpins(hint));
    }
    explanation
}
