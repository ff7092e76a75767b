//! Pure. Hints: what can be done, each proven by solving again with it applied.

use jiff::Timestamp;

use super::{
    Asked, Because, ChosenPaper, ChosenPlugin, Hint, HintStep, Impossible, NewerPaper, NewerRelease, Unfollowed, WhyNot,
};
use crate::request::{PaperWish, Request};
use crate::solve::{BareAnswer, outcome};
use crate::unusable::Unusable;
use crate::version::Minecraft;

mod against;
mod applied;

use against::{against_holder, against_one_version, against_paper, against_reason, blockers_of, propose};
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
        let (Unusable::NeedsProposed { projects }, Some(object)) = (unusable, plugin.objects.first()) else { continue };
        let taken = |then: &BareAnswer| then.plugins.contains(&(plugin.name.clone(), version.clone()));
        hints.extend(proven(asked, request, vec![propose(request, object, projects)], None, taken));
    }
    for left in unfollowed {
        for step in against_holder(asked, &left.holder, &chosen.minecraft) {
            // It follows then, and nobody is left behind for it.
            let better = |then: &BareAnswer| {
                let before = |name: &String| *name != left.name && unfollowed.iter().any(|other| other.name == *name);
                then.unfollowed.iter().all(before)
            };
            hints.extend(proven(asked, request, vec![step], None, better));
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
        .map(|reason| against_reason(asked, reason))
        .filter(|steps| !steps.is_empty())
        .collect();
    let floor = request.running.as_ref().map(|running| &running.minecraft).or(request.floor.as_ref());
    let prove = |steps: Vec<HintStep>| proven(asked, request, steps, floor, |then| then.unfollowed.is_empty());
    let mut hints: Vec<Hint> = blockers.iter().flatten().filter_map(|step| prove(vec![step.clone()])).collect();
    if hints.is_empty() {
        hints.extend(combinations(&blockers).into_iter().filter_map(prove));
    }
    tidy(hints)
}

/// What would make a certain Paper possible.
pub(super) fn for_target(asked: &Asked<'_, '_>, why: &WhyNot) -> (Vec<Hint>, usize) {
    let mut blockers: Vec<Vec<HintStep>> = Vec::new();
    blockers.extend(why.unusable.as_ref().map(|unusable| against_paper(asked, unusable, &why.target)));
    blockers.extend(why.one_version.iter().map(|one| against_one_version(asked, one)));
    blockers.extend(why.holders.iter().flat_map(|holder| blockers_of(asked, holder, &why.target)));
    let mut pinned = asked.world.request.clone();
    // A pinned build of this very version stays the one that is asked for.
    if !matches!(&pinned.paper, PaperWish::BuildPin { version, .. } if *version == why.target) {
        pinned.paper = PaperWish::Pin { version: why.target.clone() };
    }
    let from = why.nearest_possible.as_ref().map(|paper| &paper.minecraft);
    let mut hints: Vec<Hint> = combinations(&blockers)
        .into_iter()
        .filter_map(|steps| proven(asked, &pinned, steps, from, |then| then.paper.minecraft == why.target))
        .collect();
    if why.pinned.is_some() && blockers.is_empty() {
        let better = |then: &BareAnswer| then.paper.minecraft >= why.target;
        hints.extend(proven(asked, asked.world.request, vec![HintStep::UnpinServer], from, better));
    }
    tidy(hints)
}

/// What would bring this real Paper, or a newer one, where the server's pin stands against it and the one that was asked about
/// cannot be had.
pub(super) fn for_real_pin(asked: &Asked<'_, '_>, why: &WhyNot, real: &Minecraft) -> (Vec<Hint>, usize) {
    let request = asked.world.request;
    let from = why.nearest_possible.as_ref().map(|paper| &paper.minecraft);
    let had = |paper: &Minecraft| from == Some(paper);
    let mut hints = Vec::new();
    if matches!(request.paper, PaperWish::Pin { .. }) && !had(real) {
        let step = HintStep::PinServer { version: real.clone(), build: None };
        hints.extend(proven(asked, request, vec![step], from, |then| then.paper.minecraft == *real));
    }
    // What is asked for is not below what the pin gives.
    let is_upwards = from.is_none_or(|from| why.target > *from);
    let better = |then: &BareAnswer| then.paper.minecraft >= *real && !had(&then.paper.minecraft);
    let unpinned = is_upwards.then(|| proven(asked, request, vec![HintStep::UnpinServer], from, better));
    hints.extend(unpinned.flatten());
    tidy(hints)
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
    let waits: Option<Vec<Timestamp>> = blockers.iter().map(wait).collect();
    if let Some(at) = waits.and_then(|waits| waits.into_iter().max()) {
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
