//! Pure. Finds the blockers of a Paper version by solving, and describes them from the lists.

use std::collections::VecDeque;

use jiff::Timestamp;
use pubgrub::VersionSet;
use serde::{Deserialize, Serialize};

use super::ExplainContext;
use super::unsolvable::nearest_releases;
use crate::catalog::{Project, ProjectKey, Release};
use crate::compatibility_facts::UsedFact;
use crate::ignore_unknown_fields::passing_over;
use crate::index::{CandidateIndex, Edge, EdgeKind};
use crate::solve::BudgetExceeded;
use crate::solve::index_set::IndexSet;
use crate::solve::provider::{SolverProblem, find};
use crate::unusable::Unusable;
use crate::version::Minecraft;

/// A plugin that blocks a Paper version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Blocker {
    /// The display name.
    pub name: String,
    /// The Plugin object, if one requests it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// The project.
    pub key: ProjectKey,
    /// Its newest release that may be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<ListedRelease>,
    /// A release that would be sufficient, except for this reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nearly: Option<IneligibleCandidate>,
    /// The newest release that is blocked by both this reason and its list. Set if no list alone could make a release
    /// sufficient.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub both: Option<IneligibleCandidate>,
    /// Plugins that it is incompatible with. Set if each of them would be sufficient alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub together_with: Vec<String>,
    /// The releases of those plugins that it would accept. Set if they have no such release for the version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<UnmetNeed>,
    /// The facts behind it that no page states.
    #[serde(default, deserialize_with = "passing_over", skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<UsedFact>,
    /// Names of the plugins that are blocked with it, because they need it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needed_by: Vec<String>,
    /// The version that the user pinned, if the pin is the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<String>,
    /// Existing versions close to the pinned one, if that does not exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nearest: Vec<String>,
    /// The time of the authors' last release. Set if the only missing parts are a list entry or a usable release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent_since: Option<Timestamp>,
    /// The time when its list was read.
    pub read_at: Timestamp,
}

/// A requirement on another plugin that cannot be met on a Paper version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UnmetNeed {
    /// The display name of the other plugin.
    pub name: String,
    /// Its Plugin object, if one requests it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// The newest accepted release: of those listed for the Paper version, otherwise of the usable ones, otherwise of
    /// all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<ListedRelease>,
    /// The reason why it may not be used. Absent if only a list entry is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unusable: Option<Unusable>,
}

/// A release and the newest version on its list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ListedRelease {
    /// Its version.
    pub version: String,
    /// Its publication time, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Timestamp>,
    /// Set if it runs and is delisted. It stays if no other release is sufficient.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
    /// The newest Minecraft version on its list. `None` if it has no list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_to: Option<Minecraft>,
    /// The reason why the Paper version refuses to load it, regardless of overrides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refuses: Option<Unusable>,
    /// A hotfix sibling of the Paper version that its page lists, if `hotfixSiblings: Ask` prevents it from counting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sibling: Option<Minecraft>,
    /// Set if its page lists the Paper version and the user's `compatibilityOverride` removes it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overridden: bool,
}

/// A release that would be sufficient but may not be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct IneligibleCandidate {
    /// Its version.
    pub version: String,
    /// Its publication time, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Timestamp>,
    /// The reason why it may not be used.
    pub unusable: Unusable,
}

impl Blocker {
    /// Whether only a list entry is missing.
    pub(crate) fn waits_for_a_list(&self) -> bool {
        let overridden = self.newest.as_ref().is_some_and(|newest| newest.overridden || newest.refuses.is_some());
        self.pinned.is_none() && self.nearly.is_none() && self.together_with.is_empty() && !overridden
    }

    /// Whether the plugin of this name is blocked by this one. A plugin that only blocks in combination is a blocker,
    /// too. A plugin that is merely installed in a version that this one does not accept is ready.
    pub(crate) fn stops(&self, name: &str) -> bool {
        self.name == name || self.needed_by.iter().any(|other| other == name)
    }
}

/// Returns the blockers of one Paper version (given by position), as if the version itself were usable. Empty if all
/// requested plugins have a common solution on it.
///
/// Plugins that block it alone come first, in rank order. If the rest has no common solution, a minimal subset of it
/// that blocks the version follows. The others are ready, all of them together.
pub(super) fn holders(
    asked: &ExplainContext<'_, '_>,
    question: &SolverProblem,
    paper: usize,
) -> Result<Vec<Blocker>, BudgetExceeded> {
    let question = question.as_if_usable(paper);
    let possible = |question: &SolverProblem| Ok(find(asked.world, question, asked.meter)?.is_some());
    if possible(&question)? {
        return Ok(Vec::new());
    }
    let (mut alone, mut rest) = (Vec::new(), Vec::new());
    for shelf in question.insisted() {
        let part = if possible(&question.only(|other| other == shelf))? { &mut rest } else { &mut alone };
        part.push(shelf);
    }
    let mut holders = each(asked, &question, &alone, paper)?;
    let fails = |kept: &[usize]| Ok(!possible(&question.only(|shelf| kept.contains(&shelf)))?);
    while !rest.is_empty() && fails(&rest)? {
        let clash = smallest(rest.clone(), fails)?;
        rest.retain(|shelf| !clash.contains(shelf));
        holders.extend(together(asked.world, &clash, paper));
    }
    Ok(holders)
}

/// The plugins that each block a Paper version alone.
fn each(
    asked: &ExplainContext<'_, '_>,
    question: &SolverProblem,
    alone: &[usize],
    paper: usize,
) -> Result<Vec<Blocker>, BudgetExceeded> {
    let mut holders: Vec<Blocker> = Vec::new();
    for &shelf in alone {
        let holder = describe(asked, question, shelf, paper)?;
        // A requested plugin may block others, too. It is reported once, with all of them.
        match holders.iter_mut().find(|known| known.key == holder.key && known.together_with == holder.together_with) {
            Some(known) => known.needed_by.extend(holder.needed_by),
            None => holders.push(holder),
        }
    }
    for holder in &mut holders {
        holder.needed_by.sort();
        holder.needed_by.dedup();
    }
    Ok(holders)
}

/// The plugins that block a Paper version only in combination.
fn together(world: &CandidateIndex<'_>, clash: &[usize], paper: usize) -> Vec<Blocker> {
    let name = |shelf: usize| world.shelves[shelf].name().to_owned();
    let others = |but: usize| clash.iter().filter(|&&shelf| shelf != but).map(|&shelf| name(shelf)).collect();
    let facts = facts_among(world, clash, paper);
    let holders = clash.iter().map(|&at| {
        let plain = bare(world, at, paper);
        let facts = facts.iter().filter(|fact| [&fact.plugin, &fact.needs].contains(&&plain.name)).cloned();
        Blocker { together_with: others(at), facts: facts.collect(), ..plain }
    });
    holders.collect()
}

/// The facts between the newest releases of these plugins for the Paper version.
fn facts_among(world: &CandidateIndex<'_>, shelves: &[usize], paper: usize) -> Vec<UsedFact> {
    let mut facts = Vec::new();
    for &at in shelves {
        let shelf = &world.shelves[at];
        let Some(newest) = shelf.would_do(paper).highest(shelf.releases.len()).and_then(|index| index.checked_sub(1))
        else {
            continue;
        };
        let links = shelf.links[newest].iter().filter(|link| shelves.contains(&link.to));
        facts.extend(links.filter_map(|link| world.fact(at, newest, link)));
    }
    facts.sort();
    facts
}

/// A minimal subset for which `fails` still holds, found by removing one element at a time.
pub(super) fn smallest(
    mut kept: Vec<usize>,
    fails: impl Fn(&[usize]) -> Result<bool, BudgetExceeded>,
) -> Result<Vec<usize>, BudgetExceeded> {
    let mut at = 0;
    while at < kept.len() {
        let left_out = kept.remove(at);
        if !fails(&kept)? {
            kept.insert(at, left_out);
            at += 1;
        }
    }
    Ok(kept)
}

/// Describes why one plugin alone blocks a Paper version.
fn describe(
    asked: &ExplainContext<'_, '_>,
    question: &SolverProblem,
    at: usize,
    paper: usize,
) -> Result<Blocker, BudgetExceeded> {
    let shelf = &asked.world.shelves[at];
    let on_paper = &shelf.supports[paper];
    let limit = shelf.releases.len();
    let members = |set: &IndexSet| set.members(1, limit).filter(|&index| on_paper.has(index)).collect::<Vec<_>>();
    let would_do = members(&shelf.usable);
    if let Some(&index) = would_do.iter().rev().find(|&&index| question.root[at].has(index)) {
        return through_dependency(asked, question, at, index, paper);
    }
    let mut holder = bare(asked.world, at, paper);
    if let Some(pin) = shelf.rules.pin {
        holder.pinned = Some(pin.to_owned());
        if let Some(pinned) = question.root[at].highest(limit).and_then(|index| index.checked_sub(1)) {
            holder.newest = Some(listed(asked.world, at, pinned, &[paper]));
        }
        if shelf.allowed.highest(limit).is_none() {
            holder.newest = None;
            holder.nearest = nearest_releases(asked.world, at, pin);
        }
        return Ok(holder);
    }
    holder.nearly = members(&IndexSet::of(1..=limit)).last().and_then(|&index| {
        let stocked = &shelf.releases[index - 1];
        Some(IneligibleCandidate {
            version: stocked.release.version.clone(),
            published: stocked.release.published,
            unusable: stocked.unusable.clone()?,
        })
    });
    if holder.nearly.is_none() {
        holder.both = kept_twice(asked.world, at, holder.newest.as_ref(), paper);
    }
    if holder.waits_for_a_list() {
        holder.silent_since = last_release(shelf.project, asked.world.now);
    }
    Ok(holder)
}

/// The newest release of a plugin that is blocked both by its list and by a date or its channel.
///
/// Only computed if `newest`, the usable release, would not load on the Paper version whatever is listed. Releases that
/// the Paper version refuses, or that no action could make usable, are skipped.
pub(super) fn kept_twice(
    world: &CandidateIndex<'_>,
    at: usize,
    newest: Option<&ListedRelease>,
    paper: usize,
) -> Option<IneligibleCandidate> {
    if newest.is_some_and(|newest| newest.refuses.is_none()) {
        return None;
    }
    let mut releases = world.shelves[at].releases.iter().enumerate().rev();
    releases.find_map(|(place, stocked)| {
        let unusable = stocked.unusable.as_ref()?;
        let can_pass =
            unusable.only_waits() || matches!(unusable, Unusable::Superseded { .. } | Unusable::Channel { .. });
        let is_kept = world.known(at, place, paper).is_none() && world.refuses(at, place, paper).is_none();
        (can_pass && is_kept).then(|| IneligibleCandidate {
            version: stocked.release.version.clone(),
            published: stocked.release.published,
            unusable: unusable.clone(),
        })
    })
}

/// The time of the last release of a project.
pub(crate) fn last_release(project: &Project, now: Timestamp) -> Option<Timestamp> {
    project.releases.iter().filter_map(|release| release.published).filter(|published| *published <= now).max()
}

/// A release would be sufficient, but a plugin that it needs has none: then that plugin is the blocker. Otherwise the
/// blockers include the plugins that lack the release it requires.
fn through_dependency(
    asked: &ExplainContext<'_, '_>,
    question: &SolverProblem,
    at: usize,
    index: usize,
    paper: usize,
) -> Result<Blocker, BudgetExceeded> {
    let world = asked.world;
    let shelf = &world.shelves[at];
    if let Some(missing) = missing_there(world, at, index - 1, paper) {
        let described = describe(asked, &question.only(|_| false), missing, paper)?;
        let mut needed_by = described.needed_by.clone();
        needed_by.push(shelf.name().to_owned());
        needed_by.extend_from_slice(&shelf.kept_for);
        return Ok(Blocker { needed_by, ..described });
    }
    let links = &shelf.links[index - 1];
    let (parted, lacks) = match lacking(world, links, paper) {
        lacking if lacking.is_empty() => (parted(asked, question, links)?, Vec::new()),
        lacking => {
            let lacks = lacking.iter().map(|&other| lack(world, links, other, paper)).collect();
            (lacking, lacks)
        }
    };
    let facts = links.iter().filter(|link| parted.contains(&link.to));
    Ok(Blocker {
        together_with: parted.iter().map(|&other| world.shelves[other].name().to_owned()).collect(),
        lacks,
        facts: facts.filter_map(|link| world.fact(at, index - 1, link)).collect(),
        ..bare(world, at, paper)
    })
}

/// The targets of some of these edges, each once.
fn others(links: &[Edge], keep: impl Fn(&&Edge) -> bool) -> Vec<usize> {
    let mut others: Vec<usize> = links.iter().filter(keep).map(|link| link.to).collect();
    others.sort_unstable();
    others.dedup();
    others
}

/// The plugins that have no release on a Paper version that the release of these edges accepts.
fn lacking(world: &CandidateIndex<'_>, links: &[Edge], paper: usize) -> Vec<usize> {
    others(links, |link| {
        let there = world.shelves[link.to].would_do(paper).union(&IndexSet::absent());
        link.set.is_disjoint(&there)
    })
}

/// The release that the release of these edges would accept of a plugin that has no such release on a Paper version.
fn lack(world: &CandidateIndex<'_>, links: &[Edge], other: usize, paper: usize) -> UnmetNeed {
    let shelf = &world.shelves[other];
    let asked = links.iter().filter(|link| link.to == other);
    let taken = asked.fold(IndexSet::present(), |taken, link| taken.intersection(&link.set));
    let newest = |of: &IndexSet| taken.intersection(of).highest(shelf.releases.len());
    let listed_there = &shelf.supports[paper];
    let found = newest(listed_there).or_else(|| newest(&shelf.usable)).or_else(|| newest(&IndexSet::full()));
    let place = found.and_then(|index| index.checked_sub(1));
    // A date that would not make the release usable is no reason.
    let counts = |place: usize, unusable: &Unusable| listed_there.has(place + 1) || !unusable.only_waits();
    UnmetNeed {
        name: shelf.name().to_owned(),
        object: shelf.object().map(str::to_owned),
        release: place.map(|place| listed(world, other, place, &[paper])),
        unusable: place.and_then(|place| shelf.releases[place].unusable.clone().filter(|it| counts(place, it))),
    }
}

/// The plugins that the release of these edges is incompatible with on a Paper version although each has a release for
/// it. A minimal conflicting subset of them, otherwise all that it needs.
fn parted(
    asked: &ExplainContext<'_, '_>,
    question: &SolverProblem,
    links: &[Edge],
) -> Result<Vec<usize>, BudgetExceeded> {
    let world = asked.world;
    let fails = |kept: &[usize]| {
        let mut question = question.only(|_| false);
        for link in links.iter().filter(|link| kept.contains(&link.to)) {
            question.root[link.to] = question.root[link.to].intersection(&link.set);
        }
        Ok(find(world, &question, asked.meter)?.is_none())
    };
    let all = others(links, |_| true);
    if fails(&all)? {
        return smallest(all, fails);
    }
    Ok(others(links, |link| link.kind == EdgeKind::Required))
}

/// The nearest plugin without a release for the Paper version that a release needs, directly or through others.
fn missing_there(world: &CandidateIndex<'_>, at: usize, release: usize, paper: usize) -> Option<usize> {
    let mut found = vec![at];
    let mut next = VecDeque::from([(at, release)]);
    while let Some((at, release)) = next.pop_front() {
        let links = world.shelves[at].links[release].iter();
        for link in links.filter(|link| link.kind == EdgeKind::Required) {
            let other = &world.shelves[link.to];
            // 0 stands for "not installed".
            let Some(newest) =
                other.would_do(paper).highest(other.releases.len()).and_then(|index| index.checked_sub(1))
            else {
                return Some(link.to);
            };
            // Plugins that need each other are visited once.
            if !found.contains(&link.to) {
                found.push(link.to);
                next.push_back((link.to, newest));
            }
        }
    }
    None
}

/// A plugin with its newest release, without the reason why it blocks.
pub(super) fn bare(world: &CandidateIndex<'_>, at: usize, paper: usize) -> Blocker {
    let shelf = &world.shelves[at];
    Blocker {
        name: shelf.name().to_owned(),
        object: shelf.object().map(str::to_owned),
        key: shelf.project.key.clone(),
        newest: shelf.newest_usable().map(|newest| listed(world, at, newest, &[paper])),
        nearly: None,
        both: None,
        together_with: Vec::new(),
        lacks: Vec::new(),
        facts: Vec::new(),
        needed_by: shelf.kept_for.clone(),
        pinned: None,
        nearest: Vec::new(),
        silent_since: None,
        read_at: shelf.project.read_at,
    }
}

/// A release with the newest version on its list.
///
/// `at` is its position. `papers` are the Paper versions in question.
pub(super) fn listed(world: &CandidateIndex<'_>, shelf: usize, at: usize, papers: &[usize]) -> ListedRelease {
    let release = world.shelves[shelf].releases[at].release;
    let lost = world.has_lost(world.shelves[shelf].project, release);
    ListedRelease {
        version: release.version.clone(),
        published: release.published,
        lost,
        // A delisted release has no list any more.
        up_to: up_to(release).filter(|_| !lost),
        // Of several Paper versions, the newest counts, because it refuses the fewest releases.
        refuses: papers.iter().max().and_then(|&paper| world.refuses(shelf, at, paper)),
        sibling: papers.iter().find_map(|&paper| world.left_open(shelf, at, paper)),
        overridden: papers
            .iter()
            .any(|&paper| world.known(shelf, at, paper).is_none() && world.known_by_page(shelf, at, paper).is_some())
            && !lost,
    }
}

/// The newest Minecraft release on a list.
pub(crate) fn up_to(release: &Release) -> Option<Minecraft> {
    let releases = release.minecraft.iter().filter(|listed| listed.is_release()).max();
    releases.or_else(|| release.minecraft.iter().max()).cloned()
}
