//! Pure. Hints: what can be done, each proven by solving again with it applied.

use jiff::Timestamp;

use super::target::found_out;
use super::{
    Asked, Because, ChosenPaper, ChosenPlugin, Hint, HintStep, HintsLeftOut, Impossible, NewerPaper, NewerRelease,
    PaperPin, Reason, Unfollowed, WhyNot,
};
use crate::request::{PaperWish, Request};
use crate::solve::joint::company::MOST_PROVEN;
use crate::solve::{BareAnswer, outcome};
use crate::unusable::Unusable;
use crate::version::Minecraft;

mod against;
mod applied;

use against::{against_one_version, against_paper, blockers_of, blockers_of_reason, correct_server, propose};
use applied::apply;
pub(crate) use applied::apply_to_others;

/// No answer lists more: the first ones carry the least risk.
const MOST_HINTS: usize = 5;
/// Beyond this many fields to set together nobody would follow, and each costs a solve.
const MOST_STEPS: usize = 6;

/// What would bring the newer Papers.
pub(super) fn for_newer(
    asked: &Asked<'_, '_>,
    chosen: &ChosenPaper,
    plugins: &[ChosenPlugin],
    newer: &[NewerPaper],
    unfollowed: &[Unfollowed],
) -> (Vec<Hint>, usize) {
    let request = asked.world.request;
    let mut hints = Vec::new();
    for newer in newer {
        let mut blockers: Vec<Vec<HintStep>> = Vec::new();
        blockers.extend(newer.unusable.as_ref().map(|unusable| against_paper(asked, unusable, &newer.minecraft)));
        blockers.extend(newer.pinned.as_ref().map(|_| vec![HintStep::UnpinServer]));
        blockers.extend(newer.held_by.iter().flat_map(|holder| blockers_of(asked, holder, &newer.minecraft)));
        blockers.extend(newer.one_version.iter().map(|one| against_one_version(asked, one)));
        for steps in combinations(&blockers) {
            let better = |then: &BareAnswer| then.unfollowed.is_empty() && then.paper.minecraft >= newer.minecraft;
            hints.extend(proven(asked, request, steps, Some(&chosen.minecraft), better));
        }
    }
    for (plugin, newer) in ChosenPlugin::newer(plugins) {
        let NewerRelease { version, because: Because::Unusable { unusable }, .. } = newer else { continue };
        let Some(object) = plugin.objects.first() else { continue };
        let step = if let Unusable::NeedsProposed { projects } = unusable {
            propose(request, object, projects)
        } else if let Unusable::BesideFile { .. } = unusable {
            HintStep::IgnoreUnmanaged
        } else {
            continue;
        };
        let taken = |then: &BareAnswer| then.plugins.contains(&(plugin.name.clone(), version.clone()));
        hints.extend(proven(asked, request, vec![step], None, taken));
    }
    for left in unfollowed {
        for steps in combinations(&blockers_of(asked, &left.holder, &chosen.minecraft)) {
            // It follows then, and nobody is left behind for it.
            let better = |then: &BareAnswer| {
                let before = |name: &String| *name != left.name && unfollowed.iter().any(|other| other.name == *name);
                then.unfollowed.iter().all(before)
            };
            hints.extend(proven(asked, request, steps, None, better));
        }
    }
    tidy(hints)
}

/// What would make an impossible request possible.
pub(super) fn for_impossible(asked: &Asked<'_, '_>, impossible: &Impossible) -> (Vec<Hint>, usize) {
    let request = asked.world.request;
    let blockers: Vec<Vec<HintStep>> = impossible
        .reasons
        .iter()
        .flat_map(|reason| blockers_of_reason(asked, reason))
        .filter(|steps| !steps.is_empty())
        .collect();
    let floor = request.running.as_ref().map(|running| &running.minecraft).or(request.floor.as_ref());
    let prove = |steps: Vec<HintStep>| proven(asked, request, steps, floor, |then| then.unfollowed.is_empty());
    let mut hints: Vec<Hint> = blockers.iter().flat_map(|steps| alone(steps, prove)).collect();
    if hints.is_empty() {
        hints.extend(combinations(&blockers).into_iter().filter_map(prove));
    }
    // The proof of a no ends with the pin: what else stands against a real one is found out only where it is needed.
    if hints.is_empty() {
        hints.extend(impossible.reasons.iter().flat_map(|reason| to_a_real_pin(asked, reason)).filter_map(prove));
    }
    tidy(hints)
}

/// The ways to the nearest real version that a pin to nothing real can be corrected to, against all that stands against that one.
fn to_a_real_pin(asked: &Asked<'_, '_>, reason: &Reason) -> Vec<Vec<HintStep>> {
    let Reason::NoSuchPaper { nearest, .. } = reason else { return Vec::new() };
    let Some(Ok(why)) = nearest.first().map(|nearest| found_out(asked, nearest)) else { return Vec::new() };
    let moved = correct_server(asked, &why.target);
    moved.map_or_else(Vec::new, |moved| beside(combinations(&against_target(asked, &why)), &moved))
}

/// The steps that do by themselves; of the real versions that a pin can be corrected to, the nearest one.
fn alone(steps: &[HintStep], prove: impl Fn(Vec<HintStep>) -> Option<Hint>) -> Vec<Hint> {
    let corrects = |step: &HintStep| matches!(step, HintStep::PinServer { .. } | HintStep::PinPlugin { .. });
    let mut hints: Vec<Hint> = Vec::new();
    for step in steps {
        let is_corrected = hints.iter().any(|hint| hint.steps.iter().any(corrects));
        if !(is_corrected && corrects(step)) {
            hints.extend(prove(vec![step.clone()]));
        }
    }
    hints
}

/// The ways around each thing that stands against a certain Paper, but for the server's own pin.
fn against_target(asked: &Asked<'_, '_>, why: &WhyNot) -> Vec<Vec<HintStep>> {
    let mut blockers: Vec<Vec<HintStep>> = Vec::new();
    blockers.extend(why.unusable.as_ref().map(|unusable| against_paper(asked, unusable, &why.target)));
    blockers.extend(why.one_version.iter().map(|one| against_one_version(asked, one)));
    blockers.extend(why.holders.iter().flat_map(|holder| blockers_of(asked, holder, &why.target)));
    blockers
}

/// What would make a certain Paper possible.
pub(super) fn for_target(asked: &Asked<'_, '_>, why: &WhyNot) -> (Vec<Hint>, usize) {
    let request = asked.world.request;
    let blockers = against_target(asked, why);
    if let Some(pin) = &why.pinned {
        return tidy(against_pin(asked, why, pin, &blockers));
    }
    let from = why.nearest_possible.as_ref().map(|paper| &paper.minecraft);
    let exactly = |then: &BareAnswer| then.paper.minecraft == why.target;
    let mut pinned = request.clone();
    // A pinned build is of this very version, and stays the one that is asked for.
    if !matches!(pinned.paper, PaperWish::BuildPin { .. }) {
        pinned.paper = PaperWish::Pin { version: why.target.clone() };
    }
    let steps = combinations(&blockers).into_iter();
    tidy(steps.filter_map(|steps| proven(asked, &pinned, steps, from, exactly)).collect())
}

/// What would make a certain Paper possible that the server's pin stands against, and these besides.
fn against_pin(asked: &Asked<'_, '_>, why: &WhyNot, pin: &PaperPin, blockers: &[Vec<HintStep>]) -> Vec<Hint> {
    let request = asked.world.request;
    let from = why.nearest_possible.as_ref().map(|paper| &paper.minecraft);
    let exactly = |then: &BareAnswer| then.paper.minecraft == why.target;
    let moved = correct_server(asked, &why.target);
    if !blockers.is_empty() {
        // Without any pin it may be another version that is chosen.
        let steps = moved.map_or_else(Vec::new, |moved| beside(combinations(blockers), &moved));
        return steps.into_iter().filter_map(|steps| proven(asked, request, steps, from, exactly)).collect();
    }
    let better = |then: &BareAnswer| then.paper.minecraft >= why.target;
    let unpinned = proven(asked, request, vec![HintStep::UnpinServer], from, better);
    // One that means something stands on purpose.
    let corrected = moved.filter(|_| !is_real(asked, pin));
    let corrected = corrected.and_then(|step| proven(asked, request, vec![step], from, exactly));
    unpinned.into_iter().chain(corrected).collect()
}

/// These ways, each with another step; those that only wait are none together with it.
fn beside(ways: Vec<Vec<HintStep>>, step: &HintStep) -> Vec<Vec<HintStep>> {
    let acts = |steps: &Vec<HintStep>| !steps.iter().any(|step| matches!(step, HintStep::WaitUntil { .. }));
    let with = |mut steps: Vec<HintStep>| {
        steps.push(step.clone());
        steps.sort();
        steps
    };
    ways.into_iter().filter(|steps| acts(steps) && steps.len() < MOST_STEPS).map(with).collect()
}

/// Whether there is what the server's pin names.
fn is_real(asked: &Asked<'_, '_>, pin: &PaperPin) -> bool {
    let mut papers = asked.world.papers.iter();
    let paper = papers.find(|paper| paper.version.minecraft == pin.version);
    paper.is_some_and(|paper| !matches!(paper.unusable, Some(Unusable::NoBuild { .. })))
}

/// What would bring a real Paper where the server's pin stands against it and the one that was asked about cannot be had: the pin to
/// the first of those next to it that can, or none, where that brings one as new as the first of them.
pub(super) fn for_real_pin(asked: &Asked<'_, '_>, why: &WhyNot) -> (Vec<Hint>, usize) {
    let request = asked.world.request;
    let from = why.nearest_possible.as_ref().map(|paper| &paper.minecraft);
    let had = |paper: &Minecraft| from == Some(paper);
    let corrected = |real: &Minecraft| {
        let step = correct_server(asked, real)?;
        proven(asked, request, vec![step], from, |then| then.paper.minecraft == *real)
    };
    let is_upwards = from.is_none_or(|from| why.target > *from);
    let mut hints = Vec::new();
    if !why.nearest.first().is_some_and(had) {
        hints.extend(why.nearest.iter().filter(|real| is_on_the_way(why, real)).find_map(corrected));
    }
    // What is asked for is not below what the pin gives.
    if let Some(real) = why.nearest.first().filter(|_| is_upwards) {
        let better = |then: &BareAnswer| then.paper.minecraft >= *real && !had(&then.paper.minecraft);
        hints.extend(proven(asked, request, vec![HintStep::UnpinServer], from, better));
    }
    tidy(hints)
}

/// Whether a real version lies where the one that was asked about does: from what is had, nobody goes the other way to come near,
/// nor to where they are.
pub(super) fn is_on_the_way(why: &WhyNot, real: &Minecraft) -> bool {
    let had = why.nearest_possible.as_ref().map(|paper| &paper.minecraft);
    had.is_none_or(|had| real.cmp(had) == why.target.cmp(had))
}

/// The request, and when, as if a Paper could be used (its age is reached, or else a field is set) and the server were not pinned;
/// `None`: nothing makes it so.
pub(super) fn out_of_the_way(
    asked: &Asked<'_, '_>,
    unusable: Option<&Unusable>,
    pin: Option<&PaperPin>,
    minecraft: &Minecraft,
) -> Option<(Request, Timestamp)> {
    let (mut request, mut now) = (asked.world.request.clone(), asked.world.now);
    if pin.is_some() {
        apply(&mut request, &mut now, &HintStep::UnpinServer);
    }
    if let Some(unusable) = unusable {
        let ways = against_paper(asked, unusable, minecraft);
        let waits = ways.iter().find(|step| matches!(step, HintStep::WaitUntil { .. }));
        apply(&mut request, &mut now, waits.or(ways.last())?);
    }
    Some((request, now))
}

/// The hints in order, none that contains another, and how many more there are.
fn tidy(mut hints: Vec<Hint>) -> (Vec<Hint>, usize) {
    hints.sort_by(|a, b| a.steps.len().cmp(&b.steps.len()).then_with(|| a.steps.cmp(&b.steps)));
    let mut kept: Vec<Hint> = Vec::new();
    for hint in hints {
        // Who does more is to get further by it.
        let contains = |less: &Hint| less.steps.iter().all(|step| hint.steps.contains(step));
        if !kept.iter().any(|less| contains(less) && less.gives.minecraft >= hint.gives.minecraft) {
            kept.push(hint);
        }
    }
    let more = kept.len().saturating_sub(MOST_HINTS);
    kept.truncate(MOST_HINTS);
    (kept, more)
}

/// One way around each blocker, together: all the waiting there is; each way around a lone one; else the first that is
/// no waiting.
fn combinations(blockers: &[Vec<HintStep>]) -> Vec<Vec<HintStep>> {
    if blockers.is_empty() || blockers.len() > MOST_STEPS || blockers.iter().any(Vec::is_empty) {
        return Vec::new();
    }
    if let [alone] = blockers {
        return alone.iter().map(|step| vec![step.clone()]).collect();
    }
    let wait = |steps: &Vec<HintStep>| {
        steps.iter().find_map(|step| if let HintStep::WaitUntil { at } = step { Some(*at) } else { None })
    };
    let mut found = Vec::new();
    // Also where not all of them have one: what a plugin's date opens may open the others, too. The proof says whether it does.
    if let Some(at) = blockers.iter().filter_map(wait).max() {
        found.push(vec![HintStep::WaitUntil { at }]);
    }
    let acts = |steps: &Vec<HintStep>| steps.iter().find(|step| !matches!(step, HintStep::WaitUntil { .. })).cloned();
    let together: Option<Vec<HintStep>> = blockers.iter().map(acts).collect();
    found.extend(together.map(|mut steps| {
        steps.sort();
        steps.dedup();
        steps
    }));
    found
}

/// The hint with these steps, less those that it does as well without: who follows it changes as little as possible.
fn proven(
    asked: &Asked<'_, '_>,
    request: &Request,
    steps: Vec<HintStep>,
    from: Option<&Minecraft>,
    better: impl Fn(&BareAnswer) -> bool,
) -> Option<Hint> {
    let prove = |steps: &[HintStep]| followed(asked, request, steps).filter(&better);
    let (mut then, mut steps) = (prove(&steps)?, steps);
    let mut place = 0;
    while steps.len() > 1 && place < steps.len() {
        let left_out = steps.remove(place);
        if let Some(without) = prove(&steps) {
            then = without;
        } else {
            steps.insert(place, left_out);
            place += 1;
        }
    }
    let gives = then.paper;
    let no_way_back = |from: &&Minecraft| gives.software.is_minecraft() && gives.minecraft > **from;
    Some(Hint { steps, no_way_back_to: from.filter(no_way_back).cloned(), gives })
}

/// Why not every way was tried, as far as that has been gone.
pub(super) fn left_out(asked: &Asked<'_, '_>) -> Option<HintsLeftOut> {
    let servers = asked.company.map_or(0, |company| company.seats.len());
    if servers > MOST_PROVEN {
        Some(HintsLeftOut::GroupTooLarge { servers })
    } else {
        asked.meter.is_spent().then_some(HintsLeftOut::BudgetUsedUp)
    }
}

/// What the request comes down to when these steps are taken.
fn followed(asked: &Asked<'_, '_>, request: &Request, steps: &[HintStep]) -> Option<BareAnswer> {
    let mut changed = request.clone();
    let mut now = asked.world.now;
    for step in steps {
        apply(&mut changed, &mut now, step);
    }
    match asked.company {
        Some(company) => company.outcome(&changed, steps, now, asked.meter),
        None => outcome(|| asked.world.changed(&changed, now), asked.meter),
    }
}

#[cfg(test)]
mod tests;
