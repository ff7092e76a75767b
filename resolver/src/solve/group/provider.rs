//! Pure. Presents the joint problem to pubgrub.
//!
//! The encoding is that of one server ([`crate::solve::provider`]) with three differences:
//!
//! * A plugin that servers share is one package.
//! * The root requires one package per server, which requires the rest. pubgrub scans all requirements of a package for
//!   each of them.
//! * Unusable versions are left out, because unsolvable problems are explained elsewhere.

use std::convert::Infallible;
use std::fmt;

use pubgrub::{Dependencies, DependencyProvider, PackageResolutionStatistics, PubGrubError, VersionSet};

use super::problem::{DomainCache, JointProblem};
use crate::index::index_set::Index;
use crate::index::index_set::IndexSet;
use crate::model::budget::BudgetExceeded;
use crate::solve::budget::{BudgetMeter, Clashes};

/// The packages of the problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum GroupPackage {
    /// The joint problem.
    Root,
    /// One server.
    Server(usize),
    /// The Paper of a server.
    Paper(usize),
    /// The plugin of this variable.
    Plugin(usize),
}

impl fmt::Display for GroupPackage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The solution of a joint problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SolvedVariables {
    /// Per server, the index of its Paper version.
    pub(crate) papers: Vec<usize>,
    /// Per variable, the index of the release. 0 means not installed.
    pub(crate) releases: Vec<usize>,
}

struct GroupProvider<'p, 'x, 'a> {
    problem: &'p JointProblem<'x, 'a>,
    meter: &'p BudgetMeter,
    conflicts: Clashes,
}

/// The best solution of the joint problem. `None` if there is none.
///
/// The order is lexicographic: the newest Paper version, server by server, then the newest release, variable by
/// variable. For an optional plugin, "not installed" is the best version.
pub(crate) fn solve(
    problem: &JointProblem<'_, '_>,
    meter: &BudgetMeter,
) -> Result<Option<SolvedVariables>, BudgetExceeded> {
    let (mut problem, mut cache) = (problem.clone(), DomainCache::default());
    let Some(marks) = problem.propagate(&mut cache) else { return Ok(None) };
    if let Some(solution) = problem.clone().solve_greedily(marks, &mut cache, meter)? {
        return Ok(Some(solution));
    }
    search(&problem, meter)
}

/// The best solution by search only, without shortcuts.
pub(super) fn search(
    problem: &JointProblem<'_, '_>,
    meter: &BudgetMeter,
) -> Result<Option<SolvedVariables>, BudgetExceeded> {
    let provider = GroupProvider { problem, meter, conflicts: Clashes::new(problem.variables.len()) };
    let found = pubgrub::resolve(&provider, GroupPackage::Root, Index::one(1));
    meter.record_conflicts(&provider.conflicts, |variable| {
        problem.tables.projects[&problem.variables[variable].project].name
    });
    let selected = match found {
        Ok(selected) => selected,
        Err(PubGrubError::NoSolution(_)) => return Ok(None),
        Err(
            PubGrubError::ErrorRetrievingDependencies { .. }
            | PubGrubError::ErrorChoosingVersion { .. }
            | PubGrubError::ErrorInShouldCancel(_),
        ) => return Err(meter.exceeded()),
    };
    let index = |package| match selected.get(&package) {
        Some(Index::One(index)) => usize::from(*index),
        Some(Index::Bulk(_)) | None => 0,
    };
    Ok(Some(SolvedVariables {
        papers: (0..problem.views.len()).map(|server| index(GroupPackage::Paper(server))).collect(),
        releases: (0..problem.variables.len()).map(|variable| index(GroupPackage::Plugin(variable))).collect(),
    }))
}

impl GroupProvider<'_, '_, '_> {
    fn root(&self) -> Vec<(GroupPackage, IndexSet)> {
        let servers = 0..self.problem.views.len();
        let shared = self.problem.variables.iter().enumerate().filter(|(_, variable)| variable.is_shared());
        let shared = shared.map(|(number, variable)| (GroupPackage::Plugin(number), variable.domain.clone()));
        servers.map(|server| (GroupPackage::Server(server), IndexSet::from_indexes([1]))).chain(shared).collect()
    }

    fn server(&self, server: usize) -> Vec<(GroupPackage, IndexSet)> {
        let unshared = self.problem.variable_of[server].iter().map(|&number| (number, &self.problem.variables[number]));
        let unshared = unshared.filter(|(_, variable)| !variable.is_shared());
        std::iter::once((GroupPackage::Paper(server), self.problem.papers[server].clone()))
            .chain(unshared.map(|(number, variable)| (GroupPackage::Plugin(number), variable.domain.clone())))
            .collect()
    }

    fn release(&self, variable: usize, index: usize) -> Vec<(GroupPackage, IndexSet)> {
        let variable = &self.problem.variables[variable];
        let mut dependencies: Vec<(GroupPackage, IndexSet)> = Vec::new();
        for &(server, plugin) in &variable.members {
            for edge in self.problem.tables.edges(&self.problem.views[server].plugins[plugin], index) {
                // A project that is not used on that server can be neither required nor excluded.
                let Some(target) = self.problem.views[server].position_of(edge.to) else { continue };
                let other = self.problem.variable_of[server][target];
                let dependency = (GroupPackage::Plugin(other), edge.set.clone());
                // Servers that share both plugins have the same requirement.
                if !self.problem.variables[other].is_shared() || !dependencies.contains(&dependency) {
                    dependencies.push(dependency);
                }
            }
        }
        dependencies
    }
}

impl DependencyProvider for GroupProvider<'_, '_, '_> {
    type P = GroupPackage;
    type V = Index;
    type VS = IndexSet;
    type Priority = usize;
    type M = Never;
    type Err = BudgetExceeded;

    /// A constant rank: a rank that depends on the course of the search would lose the best solution.
    fn prioritize(&self, package: &GroupPackage, _: &IndexSet, statistics: &PackageResolutionStatistics) -> usize {
        if let GroupPackage::Plugin(variable) = package {
            self.conflicts.record(*variable, statistics);
        }
        let servers = self.problem.views.len();
        usize::MAX
            - match package {
                GroupPackage::Root => 0,
                GroupPackage::Server(server) => 1 + server,
                GroupPackage::Paper(server) => 1 + servers + server,
                GroupPackage::Plugin(variable) => 1 + 2 * servers + variable,
            }
    }

    fn choose_version(&self, package: &GroupPackage, range: &IndexSet) -> Result<Option<Index>, BudgetExceeded> {
        self.meter.step()?;
        let highest = match package {
            GroupPackage::Root | GroupPackage::Server(_) => Some(1),
            GroupPackage::Paper(server) => {
                range.highest(self.problem.tables.papers[self.problem.views[*server].papers].len())
            }
            // "Not installed" is in the range of an optional plugin as long as no other plugin needs it.
            GroupPackage::Plugin(_) if range.has(0) => Some(0),
            GroupPackage::Plugin(variable) => {
                range.highest(self.problem.tables.projects[&self.problem.variables[*variable].project].releases.len())
            }
        };
        Ok(highest.map(Index::one))
    }

    fn get_dependencies(
        &self,
        package: &GroupPackage,
        version: &Index,
    ) -> Result<Dependencies<GroupPackage, IndexSet, Never>, BudgetExceeded> {
        self.meter.step()?;
        let Index::One(index) = version else { unreachable!("classes of unusable releases are never chosen here") };
        let index = usize::from(*index);
        let dependencies = match package {
            GroupPackage::Root => self.root(),
            GroupPackage::Server(server) => self.server(*server),
            GroupPackage::Paper(server) => {
                let variables = self.problem.variable_of[*server].iter().enumerate();
                variables
                    .map(|(plugin, &variable)| (variable, self.problem.releases_on_paper(*server, plugin, index)))
                    // Most of it is required by the server package anyway, and each requirement costs with every
                    // further server.
                    .filter(|(variable, runs)| !self.problem.variables[*variable].domain.subset_of(runs))
                    .map(|(variable, runs)| (GroupPackage::Plugin(variable), runs))
                    .collect()
            }
            GroupPackage::Plugin(variable) => self.release(*variable, index),
        };
        Ok(Dependencies::Available(dependencies.into_iter().collect()))
    }

    fn should_cancel(&self) -> Result<(), BudgetExceeded> {
        self.meter.step()
    }
}

/// The reason why a release is refused. It has no values, because unusable releases are left out before the search.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Never(Infallible);

impl fmt::Display for Never {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {}
    }
}
