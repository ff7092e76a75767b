//! Pure. What JARs of people's own need by their pages, nobody asks for and does not run: it comes where it is in nobody's way.
//!
//! The files run without it. So it takes no Paper from the server and no release from what has to be there: all of that is chosen
//! first, and what goes beside it comes. Of several the first by rank does, then the next one beside that.

use pubgrub::VersionSet;

use super::joint::party::Party;
use super::joint::provider;
use super::meter::Meter;
use super::provider::{Question, find};
use super::set::IndexSet;
use super::{Decision, GaveUp};
use crate::shelf::World;
use crate::shelf::table::{Seat, Tables};

/// The same decision with what comes beside it.
pub(super) fn with_brought(world: &World<'_>, decision: Decision, meter: &Meter) -> Result<Decision, GaveUp> {
    let brought: Vec<usize> = (0..world.shelves.len()).filter(|&at| world.shelves[at].brought).collect();
    if brought.is_empty() {
        return Ok(decision);
    }
    let mut chosen = decision.chosen;
    let mut question: Question = decision.question.on(IndexSet::of([chosen.paper + 1]));
    for (at, place) in chosen.releases.iter().enumerate().filter(|(at, _)| world.shelves[*at].is_wanted()) {
        question.root[at] = IndexSet::of([place.map_or(0, |place| place + 1)]);
    }
    for at in brought {
        let left_open = std::mem::replace(&mut question.root[at], IndexSet::present());
        match find(world, &question, meter)? {
            Some(with) => chosen = with,
            None => question.root[at] = left_open,
        }
    }
    Ok(Decision { chosen, ..decision })
}

/// The same of a server of a group: per shelf the index of what was chosen, with what comes beside it. What it shares with others
/// has to be there, so nobody else is touched.
pub(super) fn on_seat(
    tables: &Tables<'_>,
    seat: &Seat<'_>,
    (paper, mut chosen): (usize, Vec<usize>),
    meter: &Meter,
) -> Result<Vec<usize>, GaveUp> {
    let brought: Vec<usize> = (0..seat.shelves.len()).filter(|&at| seat.shelves[at].brought).collect();
    if brought.is_empty() {
        return Ok(chosen);
    }
    let mut party = Party::of(tables, vec![seat]);
    party.papers[0] = IndexSet::of([paper]);
    for (at, place) in seat.shelves.iter().enumerate() {
        if place.object.is_some() || !place.domain.has(0) {
            let slot = party.slot_of[0][at];
            party.slots[slot].domain = IndexSet::of([chosen[at]]);
        }
    }
    for at in brought {
        let slot = party.slot_of[0][at];
        let present = party.slots[slot].domain.intersection(&IndexSet::present());
        let left_open = std::mem::replace(&mut party.slots[slot].domain, present);
        match provider::solve(&party, meter)? {
            Some(settled) => chosen = party.slot_of[0].iter().map(|&slot| settled.releases[slot]).collect(),
            None => party.slots[slot].domain = left_open,
        }
    }
    Ok(chosen)
}
