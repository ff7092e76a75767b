//! Pure. Presents the problem of one server to pubgrub.
//!
//! Paper depends on every plugin, with the releases known to run on that Paper version. Releases depend on each other
//! and never on Paper. The root requires every package, and priorities are constant ranks. With both, the first
//! solution that pubgrub finds is the best one in the order of the ranks (ADR 7). `tests/brute_force.rs` checks it.

use std::fmt;
use std::rc::Rc;

use pubgrub::{Dependencies, DependencyProvider, PackageResolutionStatistics, PubGrubError, VersionSet};

use super::budget::{BudgetMeter, Clashes};
use super::fast_path::BestCase;
use crate::index::CandidateIndex;
use crate::index::candidates::{PluginCandidates, UnusableClass, class_of};
use crate::index::chosen::Chosen;
use crate::index::index_set::Index;
use crate::index::index_set::IndexSet;
use crate::model::budget::BudgetExceeded;
use crate::model::unusable::Unusable;

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
    pub(crate) retained: Vec<IndexSet>,
    /// Whether unusable Paper versions count, too. The problem is about the plugins then.
    pub(crate) any_paper: bool,
}

impl SolverProblem {
    /// The problem of the request: every plugin that it names, and the needs of unmanaged JARs, on these Paper
    /// versions.
    pub(crate) fn new(candidates: &CandidateIndex<'_>, papers: IndexSet) -> Self {
        let allowed = |plugin: &Rc<PluginCandidates<'_>>| {
            if plugin.is_wanted() { plugin.allowed.clone() } else { IndexSet::full() }
        };
        let root = candidates.plugins.iter().map(allowed);
        Self {
            papers,
            root: root.collect(),
            retained: vec![IndexSet::empty(); candidates.plugins.len()],
            any_paper: false,
        }
    }

    /// The remaining problem when strategy `latest` leaves these plugins behind. A plugin with a position stays at that
    /// release.
    pub(crate) fn leaving_behind(mut self, candidates: &CandidateIndex<'_>, behind: &[(usize, Option<usize>)]) -> Self {
        self.retain_running_dependencies(candidates);
        for &(plugin, retained) in behind {
            match retained {
                Some(position) => {
                    self.retained[plugin] = IndexSet::from_indexes([position + 1]);
                    self.root[plugin] = IndexSet::from_indexes([position + 1]);
                }
                None => self.root[plugin] = self.root[plugin].union(&IndexSet::absent()),
            }
        }
        self
    }

    /// Running dependencies count as running on every Paper version. Otherwise their dependents would be removed,
    /// although both run now.
    pub(crate) fn retain_running_dependencies(&mut self, candidates: &CandidateIndex<'_>) {
        for (at, plugin) in candidates.plugins.iter().enumerate().filter(|(_, plugin)| plugin.requested_by.is_none()) {
            let retained =
                plugin.running_release(candidates.request).filter(|&runs| self.can_stay(candidates, at, runs));
            self.retained[at] = IndexSet::from_indexes(retained.map(|runs| runs + 1));
        }
    }

    /// Whether a release (given by position) may stay as it runs although no list names the Paper version. It may not
    /// if the server refuses to load it.
    pub(crate) fn can_stay(&self, candidates: &CandidateIndex<'_>, at: usize, release: usize) -> bool {
        let mut papers = self.papers.members(1, candidates.papers.len());
        papers.all(|index| candidates.refusal(at, release, index - 1).is_none())
    }

    /// The same problem on these Paper versions.
    pub(crate) fn with_papers(&self, papers: IndexSet) -> Self {
        Self { papers, ..self.clone() }
    }

    /// The same problem on one Paper version (given by position), as if that version were usable.
    pub(crate) fn assuming_usable(&self, paper: usize) -> Self {
        Self { any_paper: true, ..self.with_papers(IndexSet::from_indexes([paper + 1])) }
    }

    /// The same problem with only these plugins mandatory. Pins of the others are ignored.
    pub(crate) fn with_mandatory(&self, is_mandatory: impl Fn(usize) -> bool) -> Self {
        let root =
            self.root.iter().enumerate().map(|(at, set)| if is_mandatory(at) { set.clone() } else { IndexSet::full() });
        Self { root: root.collect(), ..self.clone() }
    }

    /// Whether the plugin is mandatory.
    pub(crate) fn is_mandatory(&self, at: usize) -> bool {
        !self.root[at].has(0)
    }

    /// The mandatory plugins.
    pub(crate) fn mandatory_plugins(&self) -> Vec<usize> {
        (0..self.root.len()).filter(|&plugin| self.is_mandatory(plugin)).collect()
    }
}

/// pubgrub's proof that there is no solution.
pub(crate) type Proof = pubgrub::DerivationTree<Package, IndexSet, DebugUnusable>;

/// The reason why a search has no result.
#[derive(Debug)]
pub(crate) enum SolverFailure {
    /// There is no solution, with the proof.
    NoSolution(Box<Proof>),
    /// The search stopped at its budget.
    GaveUp(BudgetExceeded),
}

struct Provider<'x, 'a> {
    candidates: &'x CandidateIndex<'a>,
    problem: &'x SolverProblem,
    meter: &'x BudgetMeter,
    conflicts: Clashes,
}

/// The best solution of a problem, if there is one. Same result as [`solve`], but without a proof if there is none.
pub(crate) fn find_solution(
    candidates: &CandidateIndex<'_>,
    problem: &SolverProblem,
    meter: &BudgetMeter,
) -> Result<Option<Chosen>, BudgetExceeded> {
    let best_case = BestCase::new(candidates, problem);
    let papers = best_case.open_papers();
    let Some(newest) = papers.highest(candidates.papers.len()) else { return Ok(None) };
    if let Some(chosen) = best_case.newest_on(newest - 1) {
        return Ok(Some(chosen));
    }
    match solve(candidates, &problem.with_papers(papers), meter) {
        Ok(chosen) => Ok(Some(chosen)),
        Err(SolverFailure::NoSolution(_)) => Ok(None),
        Err(SolverFailure::GaveUp(gave_up)) => Err(gave_up),
    }
}

/// The proof that a problem has no solution, after [`find_solution`] found none.
pub(crate) fn prove_unsolvable(
    candidates: &CandidateIndex<'_>,
    problem: &SolverProblem,
    meter: &BudgetMeter,
) -> Result<Box<Proof>, BudgetExceeded> {
    match solve(candidates, problem, meter).expect_err("no open Paper version has a solution, and no other can") {
        SolverFailure::NoSolution(proof) => Ok(proof),
        SolverFailure::GaveUp(gave_up) => Err(gave_up),
    }
}

/// Searches for the solution of a problem among all of its Paper versions, so that a proof gives a reason for each of
/// them.
pub(crate) fn solve(
    candidates: &CandidateIndex<'_>,
    problem: &SolverProblem,
    meter: &BudgetMeter,
) -> Result<Chosen, SolverFailure> {
    let provider = Provider { candidates, problem, meter, conflicts: Clashes::new(candidates.plugins.len()) };
    let found = pubgrub::resolve(&provider, Package::Root, Index::One(1));
    meter.record_conflicts(&provider.conflicts, |plugin| candidates.plugins[plugin].name());
    let selected = match found {
        Ok(selected) => selected,
        Err(PubGrubError::NoSolution(proof)) => return Err(SolverFailure::NoSolution(Box::new(proof))),
        Err(
            PubGrubError::ErrorRetrievingDependencies { .. }
            | PubGrubError::ErrorChoosingVersion { .. }
            | PubGrubError::ErrorInShouldCancel(_),
        ) => return Err(SolverFailure::GaveUp(meter.exceeded())),
    };
    let position = |package| match selected.get(&package) {
        Some(Index::One(index)) => usize::from(*index).checked_sub(1),
        Some(Index::Bulk(_)) | None => None,
    };
    Ok(Chosen {
        paper: position(Package::Paper).expect("the root requires Paper, and its indexes start at 1"),
        releases: (0..candidates.plugins.len()).map(|plugin| position(Package::Plugin(plugin))).collect(),
    })
}

impl Provider<'_, '_> {
    /// The releases of a plugin that are compatible with one Paper version.
    fn releases_on_paper(&self, at: usize, paper: usize) -> IndexSet {
        let supports = &self.candidates.plugins[at].supports[paper];
        let absent = if self.problem.is_mandatory(at) { IndexSet::empty() } else { IndexSet::absent() };
        let further = self.problem.retained[at].union(&absent);
        if further == IndexSet::empty() { supports.clone() } else { supports.union(&further) }
    }

    fn root(&self) -> impl Iterator<Item = (Package, IndexSet)> + '_ {
        let plugins = self.problem.root.iter().enumerate().map(|(at, set)| (Package::Plugin(at), set.clone()));
        std::iter::once((Package::Paper, self.problem.papers.clone())).chain(plugins)
    }

    /// The unusable Paper versions, by reason. Empty if usability does not count.
    fn paper_classes(&self) -> &[UnusableClass] {
        if self.problem.any_paper { &[] } else { &self.candidates.paper_classes }
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
            self.conflicts.record(*at, statistics);
        }
        match package {
            Package::Root => u32::MAX,
            Package::Paper => u32::MAX - 1,
            Package::Plugin(at) => u32::MAX - 2 - u32::try_from(*at).expect("there are fewer than 4 billion plugins"),
        }
    }

    fn choose_version(&self, package: &Package, range: &IndexSet) -> Result<Option<Index>, BudgetExceeded> {
        self.meter.step()?;
        Ok(match package {
            Package::Root => Some(Index::One(1)),
            Package::Paper => Self::best(self.paper_classes(), range.highest(self.candidates.papers.len())),
            // "Not installed" is in the range of an optional plugin as long as no other plugin needs it.
            Package::Plugin(_) if range.has(0) => Some(Index::One(0)),
            Package::Plugin(at) => {
                let plugin = &self.candidates.plugins[*at];
                Self::best(&plugin.classes, range.highest(plugin.releases.len()))
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
            Package::Plugin(at) => &self.candidates.plugins[*at].classes,
        };
        let index = match version {
            Index::One(index) => usize::from(*index),
            Index::Bulk(members) => {
                let class = classes.iter().find(|class| class.members == *members);
                let class = class.expect("`choose_version` returns only classes of this list");
                return Ok(Dependencies::Unavailable(DebugUnusable(class.reason.clone())));
            }
        };
        Ok(Dependencies::Available(match package {
            Package::Root => self.root().collect(),
            Package::Paper => {
                let plugins = 0..self.candidates.plugins.len();
                plugins.map(|plugin| (Package::Plugin(plugin), self.releases_on_paper(plugin, index - 1))).collect()
            }
            Package::Plugin(_) if index == 0 => std::iter::empty().collect(),
            Package::Plugin(at) => {
                let edges = &self.candidates.plugins[*at].edges[index - 1];
                edges.iter().map(|edge| (Package::Plugin(edge.to), edge.set.clone())).collect()
            }
        }))
    }

    fn should_cancel(&self) -> Result<(), BudgetExceeded> {
        self.meter.step()
    }
}
