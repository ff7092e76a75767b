//! Pure. "Why not this release of a plugin?": what keeps it out of the set, and what would be if it was asked for and nothing else of it.

use serde::{Deserialize, Serialize};

use super::solved::not_taken;
use super::unsolvable::nearest_releases;
use super::{ChosenPlugin, ExplainContext, Explanation, Hint, HintStep, PaperName, WhyOlder, why_not_version};
use crate::index::{PluginCandidates, is_pinned};
use crate::software::Software;
use crate::solve::{BudgetExceeded, Decision};

/// The answer to "why not this release?".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WhyNotRelease {
    /// The server as the request names it.
    pub server: String,
    /// What it runs as; absent for Paper. Whatever is called Paper here is of this.
    #[serde(default, skip_serializing_if = "Software::is_paper")]
    pub software: Software,
    /// The name people know.
    pub plugin: String,
    /// The Plugin object that asks for it.
    pub object: String,
    /// The version asked about; as its authors write it, where there is one.
    pub version: String,
    /// When it was published, if anybody says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<jiff::Timestamp>,
    /// Whether it is in the set, and what keeps it out.
    pub state: ReleaseState,
    /// The Paper that the server comes to; absent where nothing meets what it asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paper: Option<PaperName>,
    /// The release of this plugin in that set; absent where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead: Option<String>,
    /// What would be with it pinned, found by solving so; absent where it is chosen or does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<Pinned>,
}

/// Whether a release is in the set that a server comes to, and what keeps it out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(tag = "is", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ReleaseState {
    /// It is in it.
    Chosen,
    /// Nothing of its own keeps it out, and a newer one goes with the rest.
    Older,
    /// This keeps it out.
    KeptOut {
        /// What does.
        because: WhyOlder,
    },
    /// There is no set, and nothing of its own keeps it out.
    NothingMeets,
    /// No release of the plugin is called so.
    NoSuchRelease {
        /// Real versions next to it.
        nearest: Vec<String>,
    },
}

/// What would be if a release was pinned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(tag = "then", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Pinned {
    /// A set.
    Set {
        /// Its Paper.
        paper: PaperName,
        /// What else of it would be another, by name.
        changes: Vec<OtherRelease>,
    },
    /// None that would be brought, and why.
    NoSet {
        /// The whole answer to the request with the pin.
        answer: Box<Explanation>,
    },
}

/// A plugin that would be in another release, in one where it was in none, or in none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OtherRelease {
    /// The name people know.
    pub plugin: String,
    /// What it would be in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What it is in without the pin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<String>,
}

/// Explains why the set has another release of the plugin than this one. `pinned` is the answer with it pinned. None: the server does not
/// ask for the plugin.
pub(crate) fn explain(
    asked: &ExplainContext<'_, '_>,
    object: &str,
    version: &str,
    pinned: impl FnOnce() -> Option<Explanation>,
) -> Result<Option<WhyNotRelease>, BudgetExceeded> {
    let world = asked.world;
    let asks = |shelf: &PluginCandidates<'_>| shelf.asked.as_ref().is_some_and(|asked| asked.objects.contains(&object));
    let Some(at) = world.shelves.iter().position(|shelf| asks(shelf)) else { return Ok(None) };
    let shelf = &world.shelves[at];
    let decision = why_not_version::decision(asked)?;
    let place = shelf.releases.iter().rposition(|stocked| is_pinned(&stocked.release.version, version));
    let chosen = decision.as_ref().and_then(|decision| decision.chosen.releases[at]);
    let state = match (place, &decision) {
        (None, _) => ReleaseState::NoSuchRelease { nearest: nearest_releases(world, at, version) },
        (Some(place), None) => match shelf.releases[place].unusable.clone() {
            Some(unusable) => ReleaseState::KeptOut { because: WhyOlder::Unusable { unusable } },
            None => ReleaseState::NothingMeets,
        },
        (Some(place), Some(decision)) => state(asked, decision, at, place),
    };
    let release = place.map(|place| shelf.releases[place].release);
    let has_another = !matches!(state, ReleaseState::Chosen | ReleaseState::NoSuchRelease { .. });
    Ok(Some(WhyNotRelease {
        server: world.request.server.clone(),
        software: world.request.software,
        plugin: shelf.name().to_owned(),
        object: object.to_owned(),
        version: release.map_or(version, |release| &release.version).to_owned(),
        published: release.and_then(|release| release.published),
        pinned: has_another.then(pinned).flatten().map(|answer| {
            let before = decision.as_ref().map(|decision| decision.plugins(world));
            with_it(answer, before, shelf.name(), object)
        }),
        state,
        paper: decision.and_then(|decision| world.paper_name(decision.chosen.paper)),
        instead: chosen.map(|chosen| shelf.releases[chosen].release.version.clone()),
    }))
}

/// Of a release (its place) that exists, where there is a set.
fn state(asked: &ExplainContext<'_, '_>, decision: &Decision, at: usize, place: usize) -> ReleaseState {
    let shelf = &asked.world.shelves[at];
    let chosen = decision.chosen.releases[at];
    // Two uploads of one version are one to whoever asks.
    let version = |place: usize| &shelf.releases[place].release.version;
    if chosen.is_some_and(|chosen| version(chosen) == version(place)) {
        return ReleaseState::Chosen;
    }
    let because = not_taken(asked, decision, at, place).because;
    let is_its_own = matches!(because, WhyOlder::Unusable { .. } | WhyOlder::NotListed { .. } | WhyOlder::Pinned);
    if !is_its_own && chosen.is_some_and(|chosen| place < chosen) {
        return ReleaseState::Older;
    }
    ReleaseState::KeptOut { because }
}

/// What the answer with the pin says, beside the plugins of the set without it.
fn with_it(answer: Explanation, before: Option<Vec<(String, String)>>, plugin: &str, object: &str) -> Pinned {
    let Explanation::Solved(solved) = &answer else {
        return Pinned::NoSet { answer: Box::new(without_unpinning(answer, object)) };
    };
    if solved.stopped_by().is_some() {
        return Pinned::NoSet { answer: Box::new(answer) };
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

/// What of all but this plugin is another, by name.
fn changes(before: &[(String, String)], after: &[ChosenPlugin], but: &str) -> Vec<OtherRelease> {
    let was = |name: &str| before.iter().find(|(known, _)| known == name).map(|(_, version)| version.clone());
    let is = |name: &str| after.iter().find(|plugin| plugin.name == name).map(|plugin| plugin.version.clone());
    let mut names: Vec<&str> = before.iter().map(|(name, _)| name.as_str()).collect();
    names.extend(after.iter().map(|plugin| plugin.name.as_str()));
    names.sort_unstable();
    names.dedup();
    let others = names.into_iter().filter(|name| *name != but);
    let change = |name: &str| OtherRelease { plugin: name.to_owned(), version: is(name), instead_of: was(name) };
    others.map(change).filter(|change| change.version != change.instead_of).collect()
}

/// The pin is the question, so to take it away is no answer.
fn without_unpinning(mut answer: Explanation, object: &str) -> Explanation {
    let unpins = |hint: &Hint| hint.steps.contains(&HintStep::UnpinPlugin { object: object.to_owned() });
    if let Explanation::Impossible(impossible) = &mut answer {
        impossible.hints.retain(|hint| !unpins(hint));
    }
    answer
}
