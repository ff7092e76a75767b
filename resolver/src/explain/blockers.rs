//! Pure. Who holds a Paper back: found by solving, described from the lists.

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

/// A plugin that holds a Paper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Blocker {
    /// The name people know.
    pub name: String,
    /// The Plugin object, when somebody asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// Where it comes from.
    pub key: ProjectKey,
    /// Its newest release that may be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<ListedRelease>,
    /// A release that would do, were it not for this reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nearly: Option<IneligibleCandidate>,
    /// Where nothing is left that a list alone could let run: its newest release that this reason and its list both keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub both: Option<IneligibleCandidate>,
    /// Set when each would do alone: the names that it does not go together with here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub together_with: Vec<String>,
    /// What it would take of those, where they have nothing there that it takes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<UnmetNeed>,
    /// What says so that no page states.
    #[serde(default, deserialize_with = "passing_over", skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<UsedFact>,
    /// Names of the plugins that it holds with it, because they need it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needed_by: Vec<String>,
    /// The version that the user pinned, when that is what holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<String>,
    /// Real versions next to the pinned one, where that does not exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nearest: Vec<String>,
    /// When its authors last published anything, where all that is missing is that they list something, or
    /// have anything that may be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent_since: Option<Timestamp>,
    /// When its list was read.
    pub read_at: Timestamp,
}

/// What a release would take of another plugin, and why that cannot be had on a Paper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UnmetNeed {
    /// The other plugin, as people call it.
    pub name: String,
    /// Its Plugin object, when somebody asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// The newest that would be taken: of those that list the Paper, else of those that may be used, else of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<ListedRelease>,
    /// Why it may not be used; absent when all that is missing is that somebody lists it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unusable: Option<Unusable>,
}

/// A release and how far its list goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ListedRelease {
    /// Its version.
    pub version: String,
    /// When it was published, if anybody says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Timestamp>,
    /// Set when it runs and its page has lost it: nothing is said of it any more, and it stays where nothing else will do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
    /// The newest Minecraft on its list; `None` when it has no list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_to: Option<Minecraft>,
    /// Why the Paper in question refuses to load it, whatever is said about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refuses: Option<Unusable>,
    /// A hotfix sibling of the Paper in question that its page lists, where `hotfixSiblings: Ask` does not let that count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sibling: Option<Minecraft>,
    /// Set when its page lists the Paper in question, and the user's `compatibilityOverride` takes that away.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overridden: bool,
}

/// A release that would do but may not be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct IneligibleCandidate {
    /// Its version.
    pub version: String,
    /// When it was published, if anybody says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Timestamp>,
    /// Why it may not be used.
    pub unusable: Unusable,
}

impl Blocker {
    /// Whether all that is missing is that somebody lists it.
    pub(crate) fn waits_for_a_list(&self) -> bool {
        let overridden = self.newest.as_ref().is_some_and(|newest| newest.overridden || newest.refuses.is_some());
        self.pinned.is_none() && self.nearly.is_none() && self.together_with.is_empty() && !overridden
    }

    /// Whether the plugin of this name cannot be had because of it. Who holds only together with it is a holder too; who
    /// does nothing but be there, in a version that this one does not take, is ready.
    pub(crate) fn stops(&self, name: &str) -> bool {
        self.name == name || self.needed_by.iter().any(|other| other == name)
    }
}

/// Who holds one Paper (by place) as if the Paper itself could be used; nobody, if all that are asked for have it together.
///
/// Those that hold it each alone, in the order of the shelves. Then, as long as the rest does not go together, a smallest
/// part of it that holds Paper together: the others are ready, all of them at once.
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

/// Those that hold a Paper each alone.
fn each(
    asked: &ExplainContext<'_, '_>,
    question: &SolverProblem,
    alone: &[usize],
    paper: usize,
) -> Result<Vec<Blocker>, BudgetExceeded> {
    let mut holders: Vec<Blocker> = Vec::new();
    for &shelf in alone {
        let holder = describe(asked, question, shelf, paper)?;
        // One that somebody asks for may hold others as well: said once, with all of them.
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

/// Those that hold a Paper together, and none of them without the others.
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

/// The facts that the newest releases of these shelves for the Paper meet among each other.
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

/// A smallest part for which `fails` still holds, by leaving out one after the other.
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

/// Why one plugin alone holds a Paper.
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

/// The newest release of a shelf that has a date or its channel and its list against it, where `newest`, what may be used, would not
/// load on the Paper whatever is listed. What the Paper refuses, or what nothing can be done about, is none.
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

/// When the authors of a project last published anything.
pub(crate) fn last_release(project: &Project, now: Timestamp) -> Option<Timestamp> {
    project.releases.iter().filter_map(|release| release.published).filter(|published| *published <= now).max()
}

/// A release would do, but what it needs has none: then that one holds. Else those hold with it that it asks for what they
/// do not have there.
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

/// The shelves that some of these links are about, each once.
fn others(links: &[Edge], keep: impl Fn(&&Edge) -> bool) -> Vec<usize> {
    let mut others: Vec<usize> = links.iter().filter(keep).map(|link| link.to).collect();
    others.sort_unstable();
    others.dedup();
    others
}

/// Those that have nothing on a Paper of what the release of these links asks for.
fn lacking(world: &CandidateIndex<'_>, links: &[Edge], paper: usize) -> Vec<usize> {
    others(links, |link| {
        let there = world.shelves[link.to].would_do(paper).union(&IndexSet::absent());
        link.set.is_disjoint(&there)
    })
}

/// What the release of these links would take of a shelf that has nothing of it on a Paper.
fn lack(world: &CandidateIndex<'_>, links: &[Edge], other: usize, paper: usize) -> UnmetNeed {
    let shelf = &world.shelves[other];
    let asked = links.iter().filter(|link| link.to == other);
    let taken = asked.fold(IndexSet::present(), |taken, link| taken.intersection(&link.set));
    let newest = |of: &IndexSet| taken.intersection(of).highest(shelf.releases.len());
    let listed_there = &shelf.supports[paper];
    let found = newest(listed_there).or_else(|| newest(&shelf.usable)).or_else(|| newest(&IndexSet::full()));
    let place = found.and_then(|index| index.checked_sub(1));
    // A date that alone brings nothing is no reason.
    let counts = |place: usize, unusable: &Unusable| listed_there.has(place + 1) || !unusable.only_waits();
    UnmetNeed {
        name: shelf.name().to_owned(),
        object: shelf.object().map(str::to_owned),
        release: place.map(|place| listed(world, other, place, &[paper])),
        unusable: place.and_then(|place| shelf.releases[place].unusable.clone().filter(|it| counts(place, it))),
    }
}

/// With whom the release of these links does not go together on a Paper although each has something there: a smallest part of
/// them that cannot be there as it asks, else all whom it needs.
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

/// The nearest shelf that a release needs, itself or through others, and that has nothing for the Paper.
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
            // Two that need each other are looked at once.
            if !found.contains(&link.to) {
                found.push(link.to);
                next.push_back((link.to, newest));
            }
        }
    }
    None
}

/// A plugin with its newest release, and nothing about why it holds.
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

/// A release with the end of its list.
///
/// `at` is its place; `papers` are those in question.
pub(super) fn listed(world: &CandidateIndex<'_>, shelf: usize, at: usize, papers: &[usize]) -> ListedRelease {
    let release = world.shelves[shelf].releases[at].release;
    let lost = world.has_lost(world.shelves[shelf].project, release);
    ListedRelease {
        version: release.version.clone(),
        published: release.published,
        lost,
        // A page that has lost it lists nothing for it.
        up_to: up_to(release).filter(|_| !lost),
        // Of several Papers the newest counts: it refuses the least.
        refuses: papers.iter().max().and_then(|&paper| world.refuses(shelf, at, paper)),
        sibling: papers.iter().find_map(|&paper| world.left_open(shelf, at, paper)),
        overridden: papers
            .iter()
            .any(|&paper| world.known(shelf, at, paper).is_none() && world.known_by_page(shelf, at, paper).is_some())
            && !lost,
    }
}

/// The newest release on a list.
pub(crate) fn up_to(release: &Release) -> Option<Minecraft> {
    let releases = release.minecraft.iter().filter(|listed| listed.is_release()).max();
    releases.or_else(|| release.minecraft.iter().max()).cloned()
}
