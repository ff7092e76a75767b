//! Pure. Presents the joint problem to pubgrub.
//!
//! The encoding is that of one server ([`crate::solve::provider`]) with three differences:
//!
//! * A plugin that servers share is one package.
//! * The root requires one package per server, which requires the rest. pubgrub scans all requirements of a package for
//!   each of them.
//! * Unusable versions are left out, because unsolvable problems are explained elsewhere.

#![expect(clippy::similar_names, reason = "a shelf is a shelf everywhere here, and `self` is no name of ours")]

use std::convert::Infallible;
use std::fmt;

use pubgrub::{Dependencies, DependencyProvider, PackageResolutionStatistics, PubGrubError, VersionSet};

use super::problem::{DomainCache, JointProblem};
use crate::solve::BudgetExceeded;
use crate::solve::budget::{BudgetMeter, Clashes};
use crate::solve::index_set::{Index, IndexSet};

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
pub(crate) struct SettledVariables {
    /// Per server, the index of its Paper version.
    pub(crate) papers: Vec<usize>,
    /// Per variable, the index of the release. 0 means not installed.
    pub(crate) releases: Vec<usize>,
}

struct GroupProvider<'p, 'x, 'a> {
    party: &'p JointProblem<'x, 'a>,
    meter: &'p BudgetMeter,
    clashes: Clashes,
}

/// The best solution of the joint problem. `None` if there is none.
///
/// The order is lexicographic: the newest Paper version, server by server, then the newest release, variable by
/// variable. For an optional plugin, "not installed" is the best version.
pub(crate) fn solve(
    party: &JointProblem<'_, '_>,
    meter: &BudgetMeter,
) -> Result<Option<SettledVariables>, BudgetExceeded> {
    let (mut party, mut known) = (party.clone(), DomainCache::default());
    let Some(seen) = party.narrow(&mut known) else { return Ok(None) };
    if let Some(settled) = party.clone().straight_on(seen, &mut known, meter)? {
        return Ok(Some(settled));
    }
    search(&party, meter)
}

/// The best solution by search only, without shortcuts.
pub(super) fn search(
    party: &JointProblem<'_, '_>,
    meter: &BudgetMeter,
) -> Result<Option<SettledVariables>, BudgetExceeded> {
    let provider = GroupProvider { party, meter, clashes: Clashes::none(party.slots.len()) };
    let found = pubgrub::resolve(&provider, GroupPackage::Root, Index::one(1));
    meter.keep(&provider.clashes, |slot| party.tables.projects[&party.slots[slot].project].name);
    let selected = match found {
        Ok(selected) => selected,
        Err(PubGrubError::NoSolution(_)) => return Ok(None),
        Err(
            PubGrubError::ErrorRetrievingDependencies { .. }
            | PubGrubError::ErrorChoosingVersion { .. }
            | PubGrubError::ErrorInShouldCancel(_),
        ) => return Err(meter.gave_up()),
    };
    let index = |package| match selected.get(&package) {
        Some(Index::One(index)) => usize::from(*index),
        Some(Index::Bulk(_)) | None => 0,
    };
    Ok(Some(SettledVariables {
        papers: (0..party.seats.len()).map(|seat| index(GroupPackage::Paper(seat))).collect(),
        releases: (0..party.slots.len()).map(|slot| index(GroupPackage::Plugin(slot))).collect(),
    }))
}

impl GroupProvider<'_, '_, '_> {
    fn root(&self) -> Vec<(GroupPackage, IndexSet)> {
        let seats = 0..self.party.seats.len();
        let shared = self.party.slots.iter().enumerate().filter(|(_, slot)| slot.is_shared());
        let shared = shared.map(|(number, slot)| (GroupPackage::Plugin(number), slot.domain.clone()));
        seats.map(|seat| (GroupPackage::Server(seat), IndexSet::of([1]))).chain(shared).collect()
    }

    fn server(&self, seat: usize) -> Vec<(GroupPackage, IndexSet)> {
        let own = self.party.slot_of[seat].iter().map(|&number| (number, &self.party.slots[number]));
        let own = own.filter(|(_, slot)| !slot.is_shared());
        std::iter::once((GroupPackage::Paper(seat), self.party.papers[seat].clone()))
            .chain(own.map(|(number, slot)| (GroupPackage::Plugin(number), slot.domain.clone())))
            .collect()
    }

    fn release(&self, slot: usize, index: usize) -> Vec<(GroupPackage, IndexSet)> {
        let slot = &self.party.slots[slot];
        let mut asks: Vec<(GroupPackage, IndexSet)> = Vec::new();
        for &(seat, own) in &slot.at {
            for link in self.party.tables.links(&self.party.seats[seat].shelves[own], index) {
                // A project that is not used on that server can be neither required nor excluded.
                let Some(shelf) = self.party.seats[seat].shelf_of(link.to) else { continue };
                let other = self.party.slot_of[seat][shelf];
                let ask = (GroupPackage::Plugin(other), link.set.clone());
                // Servers that share both plugins have the same requirement.
                if !self.party.slots[other].is_shared() || !asks.contains(&ask) {
                    asks.push(ask);
                }
            }
        }
        asks
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
        if let GroupPackage::Plugin(slot) = package {
            self.clashes.saw(*slot, statistics);
        }
        let seats = self.party.seats.len();
        usize::MAX
            - match package {
                GroupPackage::Root => 0,
                GroupPackage::Server(seat) => 1 + seat,
                GroupPackage::Paper(seat) => 1 + seats + seat,
                GroupPackage::Plugin(slot) => 1 + 2 * seats + slot,
            }
    }

    fn choose_version(&self, package: &GroupPackage, range: &IndexSet) -> Result<Option<Index>, BudgetExceeded> {
        self.meter.step()?;
        let highest = match package {
            GroupPackage::Root | GroupPackage::Server(_) => Some(1),
            GroupPackage::Paper(seat) => range.highest(self.party.tables.papers[self.party.seats[*seat].papers].len()),
            // "Not installed" is in the range of an optional plugin as long as no other plugin needs it.
            GroupPackage::Plugin(_) if range.has(0) => Some(0),
            GroupPackage::Plugin(slot) => {
                range.highest(self.party.tables.projects[&self.party.slots[*slot].project].releases.len())
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
        let asks = match package {
            GroupPackage::Root => self.root(),
            GroupPackage::Server(seat) => self.server(*seat),
            GroupPackage::Paper(seat) => {
                let slots = self.party.slot_of[*seat].iter().enumerate();
                slots
                    .map(|(shelf, &slot)| (slot, self.party.on_paper(*seat, shelf, index)))
                    // Most of it is required by the server package anyway, and each requirement costs with every
                    // further server.
                    .filter(|(slot, runs)| !self.party.slots[*slot].domain.subset_of(runs))
                    .map(|(slot, runs)| (GroupPackage::Plugin(slot), runs))
                    .collect()
            }
            GroupPackage::Plugin(slot) => self.release(*slot, index),
        };
        Ok(Dependencies::Available(asks.into_iter().collect()))
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
