//! Pure. Presents the problem of one server to pubgrub.
//!
//! Paper depends on every plugin, with the releases known to run on that Paper version. Releases depend on each other
//! and never on Paper. The root requires every package, and priorities are constant ranks. With both, the first
//! solution that pubgrub finds is the best one in the order of the ranks. This was checked against brute force
//! (`solver-notes.md`, section 2).

use std::fmt;
use std::rc::Rc;

use pubgrub::{Dependencies, DependencyProvider, PackageResolutionStatistics, PubGrubError, VersionSet};

use super::BudgetExceeded;
use super::budget::{BudgetMeter, Clashes};
use super::fast_path::BestCase;
use super::index_set::{Index, IndexSet};
use crate::catalog::Release;
use crate::index::{CandidateIndex, PluginCandidates, UnusableClass, class_of};
use crate::unusable::Unusable;

/// The packages of the problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Package {
    /// The request.
    Root,
    /// The server's Paper.
    Paper,
    /// The plugin at this position.
    Plugin(usize),
}

impl fmt::Display for Package {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// `Unusable` for pubgrub, which requires `Display`. Only debug output prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DebugUnusable(pub(crate) Unusable);

impl fmt::Display for DebugUnusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// A problem on an index: the Paper versions and the mandatory plugins.
#[derive(Debug, Clone)]
pub(crate) struct SolverProblem {
    /// The Paper versions to choose from.
    pub(crate) papers: IndexSet,
    /// Per plugin, the versions that the request allows. A plugin is mandatory if "not installed" is not among them.
    pub(crate) root: Vec<IndexSet>,
    /// Per plugin, releases that count as running on every Paper version (the running ones, under strategy `latest`).
    pub(crate) stays: Vec<IndexSet>,
    /// Whether unusable Paper versions count, too. The problem is about the plugins then.
    pub(crate) any_paper: bool,
}

impl SolverProblem {
    /// The problem of the request: every plugin that it names, and the needs of unmanaged JARs, on these Paper
    /// versions.
    pub(crate) fn whole(world: &CandidateIndex<'_>, papers: IndexSet) -> Self {
        let left_open =
            |shelf: &Rc<PluginCandidates<'_>>| if shelf.is_wanted() { shelf.allowed.clone() } else { IndexSet::full() };
        let root = world.shelves.iter().map(left_open);
        Self { papers, root: root.collect(), stays: vec![IndexSet::empty(); world.shelves.len()], any_paper: false }
    }

    /// The remaining problem when strategy `latest` leaves these plugins behind. A plugin with a position stays at that
    /// release.
    pub(crate) fn without(mut self, world: &CandidateIndex<'_>, behind: &[(usize, Option<usize>)]) -> Self {
        self.keep_running_needs(world);
        for &(shelf, stays) in behind {
            match stays {
                Some(place) => {
                    self.stays[shelf] = IndexSet::of([place + 1]);
                    self.root[shelf] = IndexSet::of([place + 1]);
                }
                None => self.root[shelf] = self.root[shelf].union(&IndexSet::absent()),
            }
        }
        self
    }

    /// Running dependencies count as running on every Paper version. Otherwise their dependents would be removed,
    /// although both run now.
    pub(crate) fn keep_running_needs(&mut self, world: &CandidateIndex<'_>) {
        for (at, shelf) in world.shelves.iter().enumerate().filter(|(_, shelf)| shelf.asked.is_none()) {
            let stays = shelf.runs(world).filter(|&runs| self.may_stay(world, at, runs));
            self.stays[at] = IndexSet::of(stays.map(|runs| runs + 1));
        }
    }

    /// Whether a release (given by position) may stay as it runs although no list names the Paper version. It may not
    /// if the server refuses to load it.
    pub(crate) fn may_stay(&self, world: &CandidateIndex<'_>, at: usize, release: usize) -> bool {
        let mut papers = self.papers.members(1, world.papers.len());
        papers.all(|index| world.refuses(at, release, index - 1).is_none())
    }

    /// The same problem on these Paper versions.
    pub(crate) fn on(&self, papers: IndexSet) -> Self {
        Self { papers, ..self.clone() }
    }

    /// The same problem on one Paper version (given by position), as if that version were usable.
    pub(crate) fn as_if_usable(&self, paper: usize) -> Self {
        Self { any_paper: true, ..self.on(IndexSet::of([paper + 1])) }
    }

    /// The same problem with only these plugins mandatory. Pins of the others are ignored.
    pub(crate) fn only(&self, keep: impl Fn(usize) -> bool) -> Self {
        let root = self.root.iter().enumerate().map(|(at, set)| if keep(at) { set.clone() } else { IndexSet::full() });
        Self { root: root.collect(), ..self.clone() }
    }

    /// Whether the plugin is mandatory.
    pub(crate) fn insists(&self, at: usize) -> bool {
        !self.root[at].has(0)
    }

    /// The mandatory plugins.
    pub(crate) fn insisted(&self) -> Vec<usize> {
        (0..self.root.len()).filter(|&shelf| self.insists(shelf)).collect()
    }
}

/// A solution, by position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) paper: usize,
    /// Per plugin. `None` means not installed.
    pub(crate) releases: Vec<Option<usize>>,
}

impl Chosen {
    /// A Paper version (given by position) with the releases that the group decision chose for a server, per plugin.
    pub(crate) fn of(world: &CandidateIndex<'_>, paper: usize, releases: &[Option<&Release>]) -> Self {
        let releases = world.shelves.iter().zip(releases);
        Self { paper, releases: releases.map(|(shelf, release)| shelf.place_of((*release)?)).collect() }
    }
}

/// pubgrub's proof that there is no solution.
pub(crate) type Proof = pubgrub::DerivationTree<Package, IndexSet, DebugUnusable>;

/// The reason why a search has no result.
#[derive(Debug)]
pub(crate) enum SolverFailure {
    /// There is no solution, with the proof.
    None(Box<Proof>),
    /// The search stopped at its budget.
    GaveUp(BudgetExceeded),
}

struct Provider<'x, 'a> {
    world: &'x CandidateIndex<'a>,
    question: &'x SolverProblem,
    meter: &'x BudgetMeter,
    clashes: Clashes,
}

/// The best solution of a problem, if there is one. Same result as [`solve`], but without a proof if there is none.
pub(crate) fn find(
    world: &CandidateIndex<'_>,
    question: &SolverProblem,
    meter: &BudgetMeter,
) -> Result<Option<Chosen>, BudgetExceeded> {
    let best_case = BestCase::of(world, question);
    let papers = best_case.papers();
    let Some(newest) = papers.highest(world.papers.len()) else { return Ok(None) };
    if let Some(chosen) = best_case.on(newest - 1) {
        return Ok(Some(chosen));
    }
    match solve(world, &question.on(papers), meter) {
        Ok(chosen) => Ok(Some(chosen)),
        Err(SolverFailure::None(_)) => Ok(None),
        Err(SolverFailure::GaveUp(gave_up)) => Err(gave_up),
    }
}

/// The proof that a problem has no solution, after [`find`] found none.
pub(crate) fn prove(
    world: &CandidateIndex<'_>,
    question: &SolverProblem,
    meter: &BudgetMeter,
) -> Result<Box<Proof>, BudgetExceeded> {
    match solve(world, question, meter).expect_err("there is no answer on a Paper that is open, nor on one that is not")
    {
        SolverFailure::None(proof) => Ok(proof),
        SolverFailure::GaveUp(gave_up) => Err(gave_up),
    }
}

/// Searches for the solution of a problem among all of its Paper versions, so that a proof gives a reason for each of
/// them.
pub(crate) fn solve(
    world: &CandidateIndex<'_>,
    question: &SolverProblem,
    meter: &BudgetMeter,
) -> Result<Chosen, SolverFailure> {
    let provider = Provider { world, question, meter, clashes: Clashes::none(world.shelves.len()) };
    let found = pubgrub::resolve(&provider, Package::Root, Index::One(1));
    meter.keep(&provider.clashes, |shelf| world.shelves[shelf].name());
    let selected = match found {
        Ok(selected) => selected,
        Err(PubGrubError::NoSolution(proof)) => return Err(SolverFailure::None(Box::new(proof))),
        Err(
            PubGrubError::ErrorRetrievingDependencies { .. }
            | PubGrubError::ErrorChoosingVersion { .. }
            | PubGrubError::ErrorInShouldCancel(_),
        ) => return Err(SolverFailure::GaveUp(meter.gave_up())),
    };
    let place = |package| match selected.get(&package) {
        Some(Index::One(index)) => usize::from(*index).checked_sub(1),
        Some(Index::Bulk(_)) | None => None,
    };
    Ok(Chosen {
        paper: place(Package::Paper).expect("the root demands a Paper, and its indexes start at 1"),
        releases: (0..world.shelves.len()).map(|shelf| place(Package::Plugin(shelf))).collect(),
    })
}

impl Provider<'_, '_> {
    /// The releases of a plugin that are compatible with one Paper version.
    fn on_paper(&self, at: usize, paper: usize) -> IndexSet {
        let supports = &self.world.shelves[at].supports[paper];
        let absent = if self.question.insists(at) { IndexSet::empty() } else { IndexSet::absent() };
        let further = self.question.stays[at].union(&absent);
        if further == IndexSet::empty() { supports.clone() } else { supports.union(&further) }
    }

    fn root(&self) -> impl Iterator<Item = (Package, IndexSet)> + '_ {
        let plugins = self.question.root.iter().enumerate().map(|(at, set)| (Package::Plugin(at), set.clone()));
        std::iter::once((Package::Paper, self.question.papers.clone())).chain(plugins)
    }

    /// The unusable Paper versions, by reason. Empty if usability does not count.
    fn paper_classes(&self) -> &[UnusableClass] {
        if self.question.any_paper { &[] } else { &self.world.paper_classes }
    }

    fn best(classes: &[UnusableClass], highest: Option<usize>) -> Option<Index> {
        let index = highest?;
        Some(match class_of(classes, index) {
            Some(class) => Index::Bulk(class.members.clone()),
            None => Index::one(index),
        })
    }
}

impl DependencyProvider for Provider<'_, '_> {
    type P = Package;
    type V = Index;
    type VS = IndexSet;
    type Priority = u32;
    type M = DebugUnusable;
    type Err = BudgetExceeded;

    /// A constant rank: a rank that depends on the course of the search would lose the best solution.
    fn prioritize(&self, package: &Package, _: &IndexSet, statistics: &PackageResolutionStatistics) -> u32 {
        if let Package::Plugin(at) = package {
            self.clashes.saw(*at, statistics);
        }
        match package {
            Package::Root => u32::MAX,
            Package::Paper => u32::MAX - 1,
            Package::Plugin(at) => u32::MAX - 2 - u32::try_from(*at).expect("far fewer than 4 billion plugins"),
        }
    }

    fn choose_version(&self, package: &Package, range: &IndexSet) -> Result<Option<Index>, BudgetExceeded> {
        self.meter.step()?;
        Ok(match package {
            Package::Root => Some(Index::One(1)),
            Package::Paper => Self::best(self.paper_classes(), range.highest(self.world.papers.len())),
            // "Not installed" is in the range of an optional plugin as long as no other plugin needs it.
            Package::Plugin(_) if range.has(0) => Some(Index::One(0)),
            Package::Plugin(at) => {
                let stock = &self.world.shelves[*at];
                Self::best(&stock.classes, range.highest(stock.releases.len()))
            }
        })
    }

    fn get_dependencies(
        &self,
        package: &Package,
        version: &Index,
    ) -> Result<Dependencies<Package, IndexSet, DebugUnusable>, BudgetExceeded> {
        self.meter.step()?;
        let classes = match package {
            Package::Root => return Ok(Dependencies::Available(self.root().collect())),
            Package::Paper => self.paper_classes(),
            Package::Plugin(at) => &self.world.shelves[*at].classes,
        };
        let index = match version {
            Index::One(index) => usize::from(*index),
            Index::Bulk(members) => {
                let class = classes.iter().find(|class| class.members == *members);
                let class = class.expect("choose_version takes classes from this very list");
                return Ok(Dependencies::Unavailable(DebugUnusable(class.reason.clone())));
            }
        };
        Ok(Dependencies::Available(match package {
            Package::Root => self.root().collect(),
            Package::Paper => {
                let shelves = 0..self.world.shelves.len();
                shelves.map(|shelf| (Package::Plugin(shelf), self.on_paper(shelf, index - 1))).collect()
            }
            Package::Plugin(_) if index == 0 => std::iter::empty().collect(),
            Package::Plugin(at) => {
                let links = &self.world.shelves[*at].links[index - 1];
                links.iter().map(|link| (Package::Plugin(link.to), link.set.clone())).collect()
            }
        }))
    }

    fn should_cancel(&self) -> Result<(), BudgetExceeded> {
        self.meter.step()
    }
}
