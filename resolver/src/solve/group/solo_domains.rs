//! Pure. What the servers of a group could have alone. A group is explained server by server, and each is held against all others: so each
//! is looked at once for all of them, and those that could have the same are held against one together.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use super::problem::{DomainCache, JointProblem};
use crate::index::fleet_tables::{ServerView, SharedTables};
use crate::solve::index_set::IndexSet;

/// What the members of a group could have alone, from when somebody asks.
#[derive(Default)]
pub(crate) struct SoloDomains {
    /// On any Paper that is open to them.
    pub(super) open: OnceCell<Shares>,
    /// On the Paper that was chosen.
    pub(super) settled: OnceCell<Shares>,
}

/// What servers could have of the plugins that are one release on several.
pub(crate) struct Shares {
    /// By seat, the Papers that are left to it, of those for whom anything is.
    papers: HashMap<usize, IndexSet>,
    by_project: BTreeMap<usize, Vec<Sharers>>,
}

/// Those that share a plugin by the same objects and could have the same releases of it.
pub(super) struct Sharers {
    /// A seat and a shelf of one of them.
    pub(super) like: (usize, usize),
    pub(super) releases: IndexSet,
    /// In ascending order.
    seats: Vec<usize>,
}

impl Sharers {
    /// Those with seats in a range.
    pub(super) fn within(&self, range: &Range<usize>) -> &[usize] {
        let before = |end: usize| self.seats.partition_point(|&seat| seat < end);
        &self.seats[before(range.start)..before(range.end)]
    }
}

impl Shares {
    /// Of these seats, in ascending order, on these Papers of each.
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

    /// Who shares a project.
    pub(super) fn of_project(&self, project: usize) -> &[Sharers] {
        self.by_project.get(&project).map_or(&[], Vec::as_slice)
    }

    /// The Papers that are left to one of them.
    pub(super) fn papers(&self, seat: usize) -> &IndexSet {
        &self.papers[&seat]
    }
}

/// A server alone on these Papers, without some of its shelves; `None`: nothing.
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
    /// How often a server was looked at.
    pub(super) static LOOKS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}
