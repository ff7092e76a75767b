//! Pure. Decides about one group, and excludes servers if there is no solution for all.
//!
//! * A server without a solution alone is excluded. If the remaining servers have no common solution, each server that
//!   is incompatible with those accepted before is excluded, too. Servers that are compatible with the most others are
//!   accepted first, then by name.
//! * An excluded server keeps its running releases and never holds back the Paper version of the others. When the Paper
//!   versions of the others are fixed, a shared plugin stays within the releases that work on the excluded servers, if
//!   any remain. So an excluded server can rejoin without a downgrade of the plugin on all others.

use std::collections::HashMap;

use jiff::Timestamp;
use pubgrub::VersionSet;

use super::problem::{DomainCache, JointProblem};
use super::provider::{self, SettledVariables};
use super::solo_domains::SoloDomains;
use super::{Choice, MemberDecision};
use crate::catalog::{Catalog, Release};
use crate::index::CandidateIndex;
use crate::index::fleet_tables::{PluginView, ServerView, SharedTables};
use crate::request::PaperRequest;
use crate::solve::budget::BudgetMeter;
use crate::solve::index_set::IndexSet;
use crate::solve::{Budget, BudgetExceeded, Limit, decide as decide_alone};

/// The decision about a group.
pub(crate) struct GroupDecision<'a> {
    /// Per server.
    pub(crate) verdicts: Vec<MemberDecision<'a>>,
    /// Per server, its view after strategy `latest` left plugins behind or kept them at their running release. Usually
    /// `None`.
    pub(crate) changed: Vec<Option<ServerView<'a>>>,
    /// Per excluded server, whether the shared plugins stay within the releases that work on it.
    pub(crate) heeded: Vec<bool>,
    /// The solutions that the members could have alone.
    pub(super) alone: SoloDomains,
}

impl<'a> GroupDecision<'a> {
    /// The server view that was used for the decision.
    pub(crate) fn seat<'x>(&'x self, seats: &'x [ServerView<'a>], at: usize) -> &'x ServerView<'a> {
        self.changed[at].as_ref().unwrap_or(&seats[at])
    }

    /// The members of the group that are solved together.
    pub(crate) fn members(&self) -> Vec<usize> {
        let member = |at: &usize| matches!(self.verdicts[*at], MemberDecision::Member(_));
        (0..self.verdicts.len()).filter(member).collect()
    }
}

/// Decides about a group. The views are in the order of the server names. `budget` is that of one server.
///
/// If the group exceeds its budget, every server that exceeds the budget alone leaves the group, and the others are
/// decided without it. So one server with too many conflicts does not block the others.
pub(crate) fn decide<'a>(
    catalog: &'a Catalog,
    tables: &SharedTables<'a>,
    seats: &[ServerView<'a>],
    now: Timestamp,
    budget: Budget,
) -> GroupDecision<'a> {
    let decide = |hard: &[Option<BudgetExceeded>]| {
        let meter = BudgetMeter::new(budget.of_a_group(hard.iter().filter(|hard| hard.is_none()).count()));
        decide_within(catalog, tables, seats, now, &meter, hard)
    };
    let gave_up = match decide(&vec![None; seats.len()]) {
        Ok(outcome) => return outcome,
        Err(gave_up) => gave_up,
    };
    let alone = |seat| too_hard(catalog, tables, seat, now, &BudgetMeter::new(budget));
    let hard: Vec<Option<BudgetExceeded>> = seats.iter().map(alone).collect();
    let without = if hard.iter().all(Option::is_none) { Err(gave_up) } else { decide(&hard) };
    without.unwrap_or_else(|gave_up| GroupDecision {
        verdicts: hard
            .into_iter()
            .map(|hard| MemberDecision::GaveUp(hard.unwrap_or_else(|| gave_up.clone())))
            .collect(),
        changed: vec![None; seats.len()],
        heeded: vec![false; seats.len()],
        alone: SoloDomains::default(),
    })
}

/// Returns the exceeded budget if a server alone is too hard.
fn too_hard(
    catalog: &Catalog,
    tables: &SharedTables<'_>,
    seat: &ServerView<'_>,
    now: Timestamp,
    meter: &BudgetMeter,
) -> Option<BudgetExceeded> {
    if seat.gap {
        return None;
    }
    match seat.request.paper {
        PaperRequest::Latest => follow(catalog, tables, seat, now, meter).err(),
        PaperRequest::Auto | PaperRequest::Pin { .. } | PaperRequest::BuildPin { .. } => {
            settle(tables, &[seat], meter).err()
        }
    }
}

/// Decides within the budget of the meter, without the servers that are known to be too `hard`.
pub(crate) fn decide_within<'a>(
    catalog: &'a Catalog,
    tables: &SharedTables<'a>,
    seats: &[ServerView<'a>],
    now: Timestamp,
    meter: &BudgetMeter,
    hard: &[Option<BudgetExceeded>],
) -> Result<GroupDecision<'a>, BudgetExceeded> {
    let mut changed: Vec<Option<ServerView<'a>>> = vec![None; seats.len()];
    let mut behind: Vec<Vec<(usize, Option<&'a Release>)>> = vec![Vec::new(); seats.len()];
    let mut heeded = vec![false; seats.len()];
    let mut able: Vec<bool> = seats.iter().zip(hard).map(|(seat, hard)| !seat.gap && hard.is_none()).collect();
    let mut left: Vec<usize> = (0..seats.len()).filter(|&at| able[at]).collect();
    let first: Vec<&ServerView<'a>> = left.iter().map(|&at| &seats[at]).collect();
    let mut found = settle(tables, &first, meter)?;
    if found.is_none() {
        for &at in left.iter().filter(|&&at| seats[at].request.paper == PaperRequest::Latest) {
            match follow(catalog, tables, &seats[at], now, meter)? {
                Some(followed) => (changed[at], behind[at]) = followed,
                None => able[at] = false,
            }
        }
        let sits: Vec<&ServerView<'a>> =
            changed.iter().zip(seats).map(|(seat, first)| seat.as_ref().unwrap_or(first)).collect();
        (left, found) = choose(tables, &sits, &mut able, meter)?;
    }
    let verdict = |(hard, able): (&Option<BudgetExceeded>, &bool)| match hard {
        Some(gave_up) => MemberDecision::GaveUp(gave_up.clone()),
        None if *able => MemberDecision::Aside,
        None => MemberDecision::Alone,
    };
    let mut verdicts: Vec<MemberDecision<'a>> = hard.iter().zip(&able).map(verdict).collect();
    if let Some((party, settled)) = found {
        let sits: Vec<&ServerView<'a>> =
            changed.iter().zip(seats).map(|(seat, first)| seat.as_ref().unwrap_or(first)).collect();
        let settled = heed(&sits, &left, &party, settled, meter, &mut heeded)?;
        for (seat, &at) in left.iter().enumerate() {
            verdicts[at] = MemberDecision::Member(Choice {
                paper: settled.papers[seat],
                releases: party.releases(seat, &settled),
                unfollowed: std::mem::take(&mut behind[at]),
                keeps: changed[at].is_some(),
            });
        }
    }
    Ok(GroupDecision { verdicts, changed, heeded, alone: SoloDomains::default() })
}

/// Compatible servers, and their best solution.
type Subgroup<'x, 'a> = (JointProblem<'x, 'a>, SettledVariables);

/// The best common solution for these servers, if there is one. `None` for an empty list.
fn settle<'x, 'a>(
    tables: &'x SharedTables<'a>,
    seats: &[&'x ServerView<'a>],
    meter: &BudgetMeter,
) -> Result<Option<Subgroup<'x, 'a>>, BudgetExceeded> {
    if seats.is_empty() {
        return Ok(None);
    }
    let party = JointProblem::of(tables, seats.to_vec());
    Ok(provider::solve(&party, meter)?.map(|settled| (party, settled)))
}

/// A server view that leaves plugins behind or keeps them at their running release (if any), with the plugins that are
/// left behind and the releases that stay.
type ServerExclusion<'a> = (Option<ServerView<'a>>, Vec<(usize, Option<&'a Release>)>);

/// Applies strategy `latest` to a server alone: a plugin that cannot follow leaves its group. `None` if there is no
/// solution.
fn follow<'a>(
    catalog: &'a Catalog,
    tables: &SharedTables<'a>,
    seat: &ServerView<'a>,
    now: Timestamp,
    meter: &BudgetMeter,
) -> Result<Option<ServerExclusion<'a>>, BudgetExceeded> {
    let world = CandidateIndex::build(catalog, seat.request, now).expect("a seat without a gap has a world");
    let Some(decision) = decide_alone(&world, meter)? else { return Ok(None) };
    // All requested plugins may follow even if dependencies stay at their running release.
    if decision.unfollowed.is_empty() && decision.question.stays.iter().all(|stays| *stays == IndexSet::empty()) {
        return Ok(Some((None, Vec::new())));
    }
    let mut seat = seat.clone();
    for (place, (shelf, stays)) in seat.shelves.iter_mut().zip(world.shelves.iter().zip(&decision.question.stays)) {
        let listing = &tables.projects[&place.project];
        let stays = stays.members(1, shelf.releases.len());
        let stays = stays.filter_map(|index| listing.index_of(shelf.releases[index - 1].release));
        place.stays = IndexSet::of(stays);
    }
    let mut behind = Vec::new();
    for (shelf, stays) in decision.unfollowed {
        let place = &mut seat.shelves[shelf];
        place.latest.clear();
        match stays {
            Some(_) => place.domain = place.stays.clone(),
            None => place.domain = place.domain.union(&IndexSet::absent()),
        }
        behind.push((shelf, stays.map(|stays| world.shelves[shelf].releases[stays].release)));
    }
    Ok(Some((Some(seat), behind)))
}

/// Chooses the compatible servers among the `able` ones and solves them. Corrects `able` for servers without a solution
/// alone.
fn choose<'x, 'a>(
    tables: &'x SharedTables<'a>,
    seats: &[&'x ServerView<'a>],
    able: &mut [bool],
    meter: &BudgetMeter,
) -> Result<(Vec<usize>, Option<Subgroup<'x, 'a>>), BudgetExceeded> {
    let sits = |places: &[usize]| -> Vec<&'x ServerView<'a>> { places.iter().map(|&at| seats[at]).collect() };
    let mut known = DomainCache::default();
    let mut alone: Vec<Option<JointProblem<'x, 'a>>> = Vec::with_capacity(seats.len());
    for (seat, able) in seats.iter().zip(able.iter_mut()) {
        let mut party = JointProblem::of(tables, vec![*seat]);
        *able = *able && party.narrow(&mut known).is_some();
        alone.push(able.then_some(party));
    }
    // Narrowing alone usually finds the servers that do not fit, and is cheap. A server that it refuses does not fit.
    // So if the remaining servers have a common solution, they are the same as after a full solve for each.
    let order = order(tables, seats, &alone);
    let taken = taken(&order, &mut |kept| Ok(JointProblem::of(tables, sits(kept)).narrow(&mut known).is_some()))?;
    if let Some(found) = settle(tables, &sits(&taken), meter)? {
        let mut all_able = true;
        for at in (0..seats.len()).filter(|at| able[*at] && !taken.contains(at)).collect::<Vec<_>>() {
            able[at] = settle(tables, &sits(&[at]), meter)?.is_some();
            all_able &= able[at];
        }
        if all_able {
            return Ok((taken, Some(found)));
        }
    }
    for at in 0..seats.len() {
        able[at] = able[at] && settle(tables, &sits(&[at]), meter)?.is_some();
        alone[at].take_if(|_| !able[at]);
    }
    let order = self::order(tables, seats, &alone);
    let taken = self::taken(&order, &mut |kept| Ok(settle(tables, &sits(kept), meter)?.is_some()))?;
    let found = settle(tables, &sits(&taken), meter)?;
    Ok((taken, found))
}

/// The accepted servers, ascending: each server in this order that is compatible with those accepted before.
fn taken(order: &[usize], fits: &mut FitsTogether<'_>) -> Result<Vec<usize>, BudgetExceeded> {
    let mut kept = Vec::new();
    let mut in_order = |kept: &[usize]| {
        let mut places = kept.to_vec();
        places.sort_unstable();
        fits(&places)
    };
    take(&mut kept, order, &mut in_order)?;
    kept.sort_unstable();
    Ok(kept)
}

/// Whether these servers are compatible.
type FitsTogether<'x> = dyn FnMut(&[usize]) -> Result<bool, BudgetExceeded> + 'x;

/// Accepts one server after the other if it still fits. It tries many at once, because usually nearly all fit and the
/// others come last.
fn take(kept: &mut Vec<usize>, next: &[usize], fits: &mut FitsTogether<'_>) -> Result<(), BudgetExceeded> {
    if next.is_empty() {
        return Ok(());
    }
    kept.extend_from_slice(next);
    if fits(kept)? {
        return Ok(());
    }
    kept.truncate(kept.len() - next.len());
    if let [_] = next {
        return Ok(());
    }
    let (first, second) = next.split_at(next.len() - 1 - next.len() / 8);
    take(kept, first, fits)?;
    take(kept, second, fits)
}

/// The able servers, sorted by the number of others they are compatible with (most first), then by name.
///
/// The number of incompatible servers is computed per shared plugin and the maximum counts. For each plugin, take the
/// release (of those that the server could have alone) that most others could have, too. Count the servers that could
/// not have it.
fn order(tables: &SharedTables<'_>, seats: &[&ServerView<'_>], alone: &[Option<JointProblem<'_, '_>>]) -> Vec<usize> {
    let (places, alone): (Vec<usize>, Vec<&JointProblem<'_, '_>>) =
        alone.iter().enumerate().filter_map(|(at, alone)| Some((at, alone.as_ref()?))).unzip();
    let party = JointProblem::of(tables, places.iter().map(|&at| seats[at]).collect());
    let could = |&(seat, shelf): &(usize, usize)| &alone[seat].slots[alone[seat].slot_of[0][shelf]].domain;
    let mut strangers = vec![0; places.len()];
    for slot in party.slots.iter().filter(|slot| slot.is_shared()) {
        let releases = tables.projects[&slot.project].releases.len();
        // Many servers could have the same releases.
        let mut same: HashMap<&IndexSet, usize> = HashMap::new();
        for at in &slot.at {
            *same.entry(could(at)).or_default() += 1;
        }
        let mut count = vec![0; releases + 1];
        for (domain, servers) in &same {
            domain.members(1, releases).for_each(|index| count[index] += servers);
        }
        let most = |domain: &IndexSet| domain.members(1, releases).map(|index| count[index]).max().unwrap_or(0);
        let most: HashMap<&IndexSet, usize> = same.keys().map(|domain| (*domain, most(domain))).collect();
        for at in &slot.at {
            strangers[at.0] = strangers[at.0].max(slot.at.len() - most[could(at)]);
        }
    }
    let mut order: Vec<(usize, usize)> = strangers.into_iter().zip(places).collect();
    order.sort_unstable();
    order.into_iter().map(|(_, at)| at).collect()
}

/// Keeps shared plugins within the releases that work on the excluded servers, as long as all other servers keep their
/// Paper version.
fn heed(
    seats: &[&ServerView<'_>],
    left: &[usize],
    party: &JointProblem<'_, '_>,
    settled: SettledVariables,
    meter: &BudgetMeter,
    heeded: &mut [bool],
) -> Result<SettledVariables, BudgetExceeded> {
    let aside = (0..seats.len()).filter(|at| !left.contains(at));
    let bounds: Vec<Bounds> =
        aside.map(|at| (at, bounds(party, seats[at]))).filter(|(_, bounds)| !bounds.is_empty()).collect();
    if bounds.is_empty() {
        return Ok(settled);
    }
    let mut held = party.clone();
    held.papers = settled.papers.iter().map(|&paper| IndexSet::of([paper])).collect();
    if let Some((_, settled)) = bounded(held.clone(), &bounds, meter)? {
        for (at, _) in &bounds {
            heeded[*at] = true;
        }
        return Ok(settled);
    }
    let mut best = settled;
    for bound in &bounds {
        if let Some((party, settled)) = bounded(held.clone(), std::slice::from_ref(bound), meter)? {
            heeded[bound.0] = true;
            (held, best) = (party, settled);
        }
    }
    Ok(best)
}

/// Per excluded server, the variables that it bounds and their bounds.
type Bounds = (usize, Vec<(usize, IndexSet)>);

/// The joint problem within these bounds and its best solution, if any. A search that exceeds its budget counts as no
/// solution. An exceeded time limit is an error instead, because otherwise a slower machine would get another lock.
fn bounded<'x, 'a>(
    mut party: JointProblem<'x, 'a>,
    bounds: &[Bounds],
    meter: &BudgetMeter,
) -> Result<Option<Subgroup<'x, 'a>>, BudgetExceeded> {
    for (slot, bound) in bounds.iter().flat_map(|(_, bounds)| bounds) {
        party.slots[*slot].domain = party.slots[*slot].domain.intersection(bound);
    }
    match provider::solve(&party, meter) {
        Ok(settled) => Ok(settled.map(|settled| (party, settled))),
        Err(gave_up) if gave_up.limit == Limit::Time => Err(gave_up),
        Err(_) => Ok(None),
    }
}

/// Per variable of the joint problem, the releases that work on an excluded server: those listed for its running Paper
/// version, and the running ones.
fn bounds(party: &JointProblem<'_, '_>, seat: &ServerView<'_>) -> Vec<(usize, IndexSet)> {
    let mut found = Vec::new();
    for place in seat.shelves.iter().filter(|place| !place.latest.is_empty()) {
        let bound = works(party.tables, seat, place);
        let shares = |&(other, shelf): &(usize, usize)| {
            party.seats[other].shelves[shelf].latest.iter().any(|object| place.latest.contains(object))
        };
        let slots = party.slots.iter().enumerate();
        let slot = slots.filter(|(_, slot)| slot.project == place.project && slot.at.iter().any(shares));
        found.extend(slot.filter(|_| bound != IndexSet::empty()).map(|(number, _)| (number, bound.clone())));
    }
    found
}

/// The releases of a plugin that work on the running Paper version of a server, including the running ones.
pub(crate) fn works(tables: &SharedTables<'_>, seat: &ServerView<'_>, place: &PluginView<'_>) -> IndexSet {
    let Some(running) = &seat.request.running else { return IndexSet::empty() };
    let releases = tables.projects[&place.project].releases.iter().enumerate();
    let runs = releases.filter(|(_, release)| running.has(release));
    let runs = IndexSet::of(runs.map(|(at, _)| at + 1));
    let paper = tables.papers[seat.papers].iter().position(|paper| *paper == running.minecraft);
    let listed = paper.map(|paper| &tables.sheets[place.sheet].supports[paper]);
    listed.map_or(runs.clone(), |listed| listed.union(&runs))
}

#[cfg(test)]
mod tests;
