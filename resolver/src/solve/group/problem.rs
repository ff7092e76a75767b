//! Pure. Represents the joint problem: servers that are solved together, with one variable for each shared plugin.

#![expect(clippy::similar_names, reason = "a shelf is a shelf everywhere here, and `self` is no name of ours")]

use std::collections::{BTreeMap, BTreeSet, HashMap};

use pubgrub::VersionSet;

use super::provider::SettledVariables;
use crate::catalog::Release;
use crate::index::fleet_tables::{ServerView, SharedTables};
use crate::solve::BudgetExceeded;
use crate::solve::budget::BudgetMeter;
use crate::solve::index_set::IndexSet;

/// Servers, by name, and their options.
#[derive(Clone)]
pub(crate) struct JointProblem<'x, 'a> {
    pub(crate) tables: &'x SharedTables<'a>,
    /// In the order of their names.
    pub(crate) seats: Vec<&'x ServerView<'a>>,
    /// Per server, the remaining Paper versions.
    pub(crate) papers: Vec<IndexSet>,
    /// Every plugin, in rank order: requested plugins by object, then by server. The others follow by server, in its
    /// own order.
    pub(crate) slots: Vec<Variable>,
    /// Per server and plugin, the position in `slots`.
    pub(crate) slot_of: Vec<Vec<usize>>,
}

/// One plugin on one server, or on all servers that share it.
#[derive(Clone)]
pub(crate) struct Variable {
    /// Its position in the catalog.
    pub(crate) project: usize,
    /// Position of each server, and of the plugin on it.
    pub(crate) at: Vec<(usize, usize)>,
    /// The remaining releases. If it contains 0, the plugin need not be installed.
    pub(crate) domain: IndexSet,
}

impl Variable {
    /// Whether the plugin is mandatory.
    pub(crate) fn insists(&self) -> bool {
        !self.domain.has(0)
    }

    /// Whether it is one release for several servers.
    pub(crate) fn is_shared(&self) -> bool {
        self.at.len() > 1
    }
}

/// The sort key of variables: whether only other plugins need it, the Plugin object, the server, the plugin position.
type VariableOrder<'a> = (bool, &'a str, usize, usize);

/// Change counters of Paper versions and domains, and the counters at the last check of each plugin. A change of a
/// plugin that a thousand servers share causes a new check of all of them, and usually most of their other plugins did
/// not change.
pub(crate) struct PropagationMark {
    slots: Vec<u32>,
    papers: Vec<u32>,
    /// Per server and plugin, the counters of its variable and of the server's Paper versions.
    shelves: Vec<Vec<(u32, u32)>>,
}

/// Results that many servers share while domains are narrowed.
#[derive(Default)]
pub(crate) struct DomainCache {
    /// Per shared eligibility and releases, the Paper versions that one of them runs on.
    papers: HashMap<(usize, IndexSet), IndexSet>,
    /// Per shared eligibility and Paper versions, the releases that run on one of them.
    releases: HashMap<(usize, IndexSet), IndexSet>,
}

impl<'x, 'a> JointProblem<'x, 'a> {
    /// Combines these servers, which must be in the order of their names.
    pub(crate) fn of(tables: &'x SharedTables<'a>, seats: Vec<&'x ServerView<'a>>) -> Self {
        let mut slots: Vec<(VariableOrder<'_>, Variable)> = Vec::new();
        // A plugin is shared by servers whose objects are linked: one object, or several objects that occur on the same
        // server.
        let mut shared: BTreeMap<(usize, &str), usize> = BTreeMap::new();
        for (seat, sits) in seats.iter().enumerate() {
            for (shelf, place) in sits.shelves.iter().enumerate() {
                let rank = (place.object.is_none(), place.object.unwrap_or_default(), seat, shelf);
                let known: Vec<usize> =
                    (place.latest.iter()).filter_map(|object| shared.get(&(place.project, *object)).copied()).collect();
                let slot = if let Some(&first) = known.first() {
                    for &other in &known[1..] {
                        merge(&mut slots, &mut shared, first, other);
                    }
                    let (ranks, slot) = &mut slots[first];
                    *ranks = (*ranks).min(rank);
                    slot.at.push((seat, shelf));
                    slot.domain = slot.domain.intersection(&place.domain);
                    first
                } else {
                    let slot =
                        Variable { project: place.project, at: vec![(seat, shelf)], domain: place.domain.clone() };
                    slots.push((rank, slot));
                    slots.len() - 1
                };
                shared.extend(place.latest.iter().map(|object| ((place.project, *object), slot)));
            }
        }
        slots.retain(|(_, slot)| !slot.at.is_empty());
        slots.sort_by_key(|(rank, _)| *rank);
        let slots: Vec<Variable> = slots.into_iter().map(|(_, slot)| slot).collect();
        let mut slot_of: Vec<Vec<usize>> = seats.iter().map(|seat| vec![0; seat.shelves.len()]).collect();
        for (number, slot) in slots.iter().enumerate() {
            for &(seat, shelf) in &slot.at {
                slot_of[seat][shelf] = number;
            }
        }
        let papers = seats.iter().map(|seat| seat.open.clone()).collect();
        Self { tables, seats, papers, slots, slot_of }
    }

    /// The releases of a plugin that are compatible with one Paper version (given by its index).
    pub(crate) fn on_paper(&self, seat: usize, shelf: usize, paper: usize) -> IndexSet {
        let place = &self.seats[seat].shelves[shelf];
        let supports = self.tables.sheets[place.sheet].supports[paper - 1].union(&place.stays);
        let insists = self.slots[self.slot_of[seat][shelf]].insists();
        if insists { supports } else { supports.union(&IndexSet::absent()) }
    }

    /// The chosen releases of a server, per plugin. `None` means not installed.
    pub(crate) fn releases(&self, seat: usize, settled: &SettledVariables) -> Vec<Option<&'a Release>> {
        let releases = self.slot_of[seat].iter().map(|&slot| {
            let listing = &self.tables.projects[&self.slots[slot].project];
            settled.releases[slot].checked_sub(1).map(|place| listing.releases[place])
        });
        releases.collect()
    }

    /// Removes Paper versions and releases that no solution can contain, by checking each server's Paper with one
    /// plugin at a time (arc consistency). `None` if a domain is empty, so that there is no solution.
    pub(crate) fn narrow(&mut self, known: &mut DomainCache) -> Option<PropagationMark> {
        let mut seen = PropagationMark {
            slots: vec![1; self.slots.len()],
            papers: vec![1; self.seats.len()],
            shelves: self.seats.iter().map(|seat| vec![(0, 0); seat.shelves.len()]).collect(),
        };
        let all = (0..self.seats.len()).collect();
        (self.narrow_on(all, &mut seen, known) && self.slots.iter().all(|slot| slot.domain != IndexSet::empty()))
            .then_some(seen)
    }

    /// Narrows these servers and all servers that their changes affect. Returns false if a domain is empty.
    fn narrow_on(&mut self, mut open: BTreeSet<usize>, seen: &mut PropagationMark, known: &mut DomainCache) -> bool {
        while let Some(seat) = open.pop_first() {
            let sits = self.seats[seat];
            for (shelf, place) in sits.shelves.iter().enumerate() {
                let number = self.slot_of[seat][shelf];
                let slot = &self.slots[number];
                if seen.shelves[seat][shelf].0 == seen.slots[number]
                    || !slot.insists()
                    || !slot.domain.is_disjoint(&place.stays)
                {
                    continue;
                }
                seen.shelves[seat][shelf].0 = seen.slots[number];
                let runs = known.papers(self.tables, sits, place.sheet, &slot.domain);
                if !self.papers[seat].subset_of(runs) {
                    self.papers[seat] = self.papers[seat].intersection(runs);
                    seen.papers[seat] += 1;
                }
            }
            if self.papers[seat] == IndexSet::empty() {
                return false;
            }
            for (shelf, place) in sits.shelves.iter().enumerate() {
                if seen.shelves[seat][shelf].1 == seen.papers[seat] {
                    continue;
                }
                seen.shelves[seat][shelf].1 = seen.papers[seat];
                let number = self.slot_of[seat][shelf];
                let listed = known.releases(self.tables, sits, place.sheet, &self.papers[seat]);
                let with_stays = (place.stays != IndexSet::empty()).then(|| listed.union(&place.stays));
                let runs = with_stays.as_ref().unwrap_or(listed);
                let slot = &mut self.slots[number];
                let left = if slot.insists() {
                    if slot.domain.subset_of(runs) {
                        continue;
                    }
                    slot.domain.intersection(runs)
                } else {
                    slot.domain.intersection(&runs.union(&IndexSet::absent()))
                };
                if left == slot.domain {
                    continue;
                }
                if left == IndexSet::empty() {
                    return false;
                }
                slot.domain = left;
                seen.slots[number] += 1;
                // With fewer releases, the other servers (and this one) may lose a Paper version.
                open.extend(slot.at.iter().map(|&(seat, _)| seat));
            }
        }
        true
    }

    /// Tries to find the best solution without backtracking: each Paper version and release in rank order is the newest
    /// that earlier choices do not exclude. `None` if that fails, which says nothing about solvability.
    ///
    /// Everything that is excluded on the way has no solution with the earlier choices, so a result is the best
    /// solution. Nearly every fleet is solved this way. A search costs several times as much.
    pub(crate) fn straight_on(
        &mut self,
        mut seen: PropagationMark,
        known: &mut DomainCache,
        meter: &BudgetMeter,
    ) -> Result<Option<SettledVariables>, BudgetExceeded> {
        let mut papers = Vec::new();
        for seat in 0..self.seats.len() {
            meter.step()?;
            let newest = self.papers[seat].highest(self.tables.papers[self.seats[seat].papers].len());
            let Some(newest) = newest else { return Ok(None) };
            papers.push(newest);
            let only = IndexSet::of([newest]);
            if self.papers[seat] != only {
                self.papers[seat] = only;
                seen.papers[seat] += 1;
                if !self.narrow_on([seat].into(), &mut seen, known) {
                    return Ok(None);
                }
            }
        }
        let mut releases = Vec::new();
        for slot in 0..self.slots.len() {
            meter.step()?;
            let listing = &self.tables.projects[&self.slots[slot].project];
            let domain = self.slots[slot].domain.clone();
            let absent = domain.has(0).then_some(0);
            let newest_first = (1..=listing.releases.len()).rev().filter(|&index| domain.has(index));
            let Some((index, left)) = absent
                .into_iter()
                .chain(newest_first)
                .find_map(|index| Some((index, self.leaves(slot, index, &releases)?)))
            else {
                return Ok(None);
            };
            releases.push(index);
            for (other, left) in left {
                self.slots[other].domain = left;
            }
        }
        Ok(Some(SettledVariables { papers, releases }))
    }

    /// The remaining releases of other variables after choosing this release. `None` if a domain becomes empty or an
    /// earlier choice conflicts.
    fn leaves(&self, slot: usize, index: usize, chosen: &[usize]) -> Option<Vec<(usize, IndexSet)>> {
        let mut leaves: Vec<(usize, IndexSet)> = Vec::new();
        for &(seat, own) in &self.slots[slot].at {
            for link in self.tables.links(&self.seats[seat].shelves[own], index) {
                // A project that is not used on that server can be neither required nor excluded.
                let Some(shelf) = self.seats[seat].shelf_of(link.to) else { continue };
                let other = self.slot_of[seat][shelf];
                if let Some(&chosen) = chosen.get(other) {
                    if !link.set.has(chosen) {
                        return None;
                    }
                    continue;
                }
                let known = leaves.iter_mut().find(|(known, _)| *known == other);
                let before = known.as_ref().map_or(&self.slots[other].domain, |(_, set)| set);
                let left = before.intersection(&link.set);
                if left == IndexSet::empty() {
                    return None;
                }
                match known {
                    Some((_, set)) => *set = left,
                    None => leaves.push((other, left)),
                }
            }
        }
        Some(leaves)
    }
}

/// Merges two variables of one project after an object was found that both share.
fn merge(
    slots: &mut [(VariableOrder<'_>, Variable)],
    shared: &mut BTreeMap<(usize, &str), usize>,
    into: usize,
    from: usize,
) {
    if into == from {
        return;
    }
    let rank = slots[from].0;
    let at = std::mem::take(&mut slots[from].1.at);
    let domain = slots[from].1.domain.clone();
    let (ranks, slot) = &mut slots[into];
    *ranks = (*ranks).min(rank);
    slot.at.extend(at);
    slot.at.sort_unstable();
    slot.domain = slot.domain.intersection(&domain);
    for slot in shared.values_mut().filter(|slot| **slot == from) {
        *slot = into;
    }
}

impl DomainCache {
    fn papers(
        &mut self,
        tables: &SharedTables<'_>,
        seat: &ServerView<'_>,
        sheet: usize,
        releases: &IndexSet,
    ) -> &IndexSet {
        self.papers.entry((sheet, releases.clone())).or_insert_with(|| {
            let supports = tables.sheets[sheet].supports.iter().enumerate();
            let some = supports.take(tables.papers[seat.papers].len()).filter(|(_, set)| !set.is_disjoint(releases));
            IndexSet::of(some.map(|(paper, _)| paper + 1))
        })
    }

    fn releases(
        &mut self,
        tables: &SharedTables<'_>,
        seat: &ServerView<'_>,
        sheet: usize,
        papers: &IndexSet,
    ) -> &IndexSet {
        self.releases.entry((sheet, papers.clone())).or_insert_with(|| {
            let papers = papers.members(1, tables.papers[seat.papers].len());
            papers.fold(IndexSet::empty(), |all, paper| all.union(&tables.sheets[sheet].supports[paper - 1]))
        })
    }
}
