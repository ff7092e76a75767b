//! Pure. Computes the releases that the servers of a group could have alone.
//!
//! Explanations are made server by server, and each server is compared with all others. So each server is computed once
//! for all explanations, and servers with the same options are compared once.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use super::problem::{DomainCache, JointProblem};
use crate::index::fleet_tables::{ServerView, SharedTables};
use crate::solve::index_set::IndexSet;

/// The solutions that the members of a group could have alone, computed on first use.
#[derive(Default)]
pub(crate) struct SoloDomains {
    /// On any Paper version that they can choose from.
    pub(super) open: OnceCell<Shares>,
    /// On the chosen Paper version.
    pub(super) settled: OnceCell<Shares>,
}

/// The options of servers for the plugins that they share.
pub(crate) struct Shares {
    /// By server, its remaining Paper versions. Servers without any are missing.
    papers: HashMap<usize, IndexSet>,
    by_project: BTreeMap<usize, Vec<Sharers>>,
}

/// The servers that share a plugin by the same objects and could have the same releases of it.
pub(super) struct Sharers {
    /// The position of one of these servers, and of the plugin on it.
    pub(super) like: (usize, usize),
    pub(super) releases: IndexSet,
    /// In ascending order.
    seats: Vec<usize>,
}

impl Sharers {
    /// The servers in a range of positions.
    pub(super) fn within(&self, range: &Range<usize>) -> &[usize] {
        let before = |end: usize| self.seats.partition_point(|&seat| seat < end);
        &self.seats[before(range.start)..before(range.end)]
    }
}

impl Shares {
    /// Computes these servers, in ascending order, on these Paper versions of each.
    pub(super) fn of<'x, 'a: 'x>(
        tables: &'x SharedTables<'a>,
        seats: impl Iterator<Item = (usize, &'x ServerView<'a>, IndexSet)>,
    ) -> Self {
        let mut known = DomainCache::default();
        let mut all = Self { papers: HashMap::new(), by_project: BTreeMap::new() };
        let mut place_of: HashMap<(usize, &[&str], IndexSet), usize> = HashMap::new();
        for (at, seat, papers) in seats {
            let Some(party) = alone(tables, seat, papers, &[], &mut known) else { continue };
            let of_several = seat.shelves.iter().enumerate().filter(|(_, place)| !place.latest.is_empty());
            for (shelf, place) in of_several {
                let releases = &party.slots[party.slot_of[0][shelf]].domain;
                let groups = all.by_project.entry(place.project).or_default();
                let key = (place.project, place.latest.as_slice(), releases.clone());
                let place = *place_of.entry(key).or_insert_with(|| {
                    groups.push(Sharers { like: (at, shelf), releases: releases.clone(), seats: Vec::new() });
                    groups.len() - 1
                });
                groups[place].seats.push(at);
            }
            all.papers.insert(at, party.papers[0].clone());
        }
        all
    }

    /// The servers that share a project.
    pub(super) fn of_project(&self, project: usize) -> &[Sharers] {
        self.by_project.get(&project).map_or(&[], Vec::as_slice)
    }

    /// The remaining Paper versions of a server.
    pub(super) fn papers(&self, seat: usize) -> &IndexSet {
        &self.papers[&seat]
    }
}

/// A server alone on these Paper versions, without some of its plugins. `None` if there is no solution.
pub(super) fn alone<'x, 'a>(
    tables: &'x SharedTables<'a>,
    seat: &'x ServerView<'a>,
    papers: IndexSet,
    gone: &[usize],
    known: &mut DomainCache,
) -> Option<JointProblem<'x, 'a>> {
    #[cfg(test)]
    LOOKS.set(LOOKS.get() + 1);
    let mut party = JointProblem::of(tables, vec![seat]);
    party.papers[0] = papers;
    for &shelf in gone {
        let slot = party.slot_of[0][shelf];
        party.slots[slot].domain = IndexSet::absent();
    }
    party.narrow(known)?;
    Some(party)
}

#[cfg(test)]
thread_local! {
    /// The number of computations.
    pub(super) static LOOKS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}
