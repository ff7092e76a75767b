//! Pure. Explains "why not this Paper version?": which plugins support it and which do not.

use pubgrub::VersionSet;

use super::blockers::holders;
use super::shared_plugins::Besides;
use super::solved::paper_pin;
use super::{
    ExplainContext, HintsLeftOut, PaperName, PluginState, WhyNot, hints, name_conflicts, shared_plugins,
    upstream_actions,
};
use crate::index::CandidateIndex;
use crate::index::paper_candidates::PaperCandidate;
use crate::request::Running;
use crate::solve::group::MemberDecision;
use crate::solve::group::group_context::{GroupContext, MOST_PROVEN};
use crate::solve::index_set::IndexSet;
use crate::solve::provider::{Chosen, SolverProblem, find};
use crate::solve::{BudgetExceeded, Decision, decide};
use crate::unusable::Unusable;
use crate::version::Minecraft;

/// Explains why the server does not run `target`. If the budget is used up, only hints are left out.
pub(crate) fn explain(asked: &ExplainContext<'_, '_>, target: &Minecraft) -> Result<WhyNot, BudgetExceeded> {
    let mut why = found_out(asked, target)?;
    if why.shared_name.is_some() {
        // Only the user can decide which of the files is meant.
        return Ok(why);
    }
    if has_a_build(asked.world, target) {
        let ways = hints::for_target(asked, &why);
        (why.hints, why.more_hints, why.hints_left_out) = (ways.hints, ways.more, ways.left_out);
        if why.pinned.is_none() && upstream_actions::may_pass(why.unusable.as_ref()) {
            why.waits = upstream_actions::by_holders(asked.world, &why.holders, target);
        }
    } else {
        instead(asked, &mut why);
    }
    Ok(why)
}

/// The explanation without hints.
pub(super) fn found_out(asked: &ExplainContext<'_, '_>, target: &Minecraft) -> Result<WhyNot, BudgetExceeded> {
    let world = asked.world;
    let place = world.papers.iter().position(|paper| paper.version.minecraft == *target);
    let nearest_possible = nearest_possible(asked)?;
    let whole = SolverProblem::whole(world, IndexSet::of(place.map(|place| place + 1)));
    // As if the Paper version itself were usable: its own reason is reported separately.
    let holders = place.map_or_else(|| Ok(Vec::new()), |place| holders(asked, &whole, place))?;
    let insisted = whole.insisted().into_iter().map(|shelf| world.shelves[shelf].name());
    let ready = insisted.filter(|name| place.is_some() && !holders.iter().any(|holder| holder.stops(name)));
    let unusable = place.and_then(|place| world.papers[place].unusable.clone());
    let pinned = paper_pin(world).filter(|pin| pin.version != *target);
    let mut why = WhyNot {
        server: world.request.server.clone(),
        software: world.request.software,
        target: target.clone(),
        possible: place.is_some() && holders.is_empty() && unusable.is_none() && pinned.is_none(),
        exists: place.is_some(),
        nearest: if has_a_build(world, target) { Vec::new() } else { nearest_real(world, target) },
        unusable,
        pinned,
        to_come: false,
        ready: ready.map(str::to_owned).collect(),
        holders,
        plugins: Vec::new(),
        one_version: Vec::new(),
        shared_name: None,
        nearest_possible,
        hints: Vec::new(),
        more_hints: 0,
        hints_left_out: None,
        waits: Vec::new(),
    };
    // Other reasons must not hide group members that would block it without them.
    if let Some(place) = place {
        let besides = Besides { unusable: why.unusable.as_ref(), pin: why.pinned.as_ref(), holders: &why.holders };
        let is_told_of = besides.unusable.is_some() || !besides.holders.is_empty();
        why.one_version = shared_plugins::behind(asked, place, &besides, false)
            .or_else(|gave_up| if is_told_of { Ok(Vec::new()) } else { Err(gave_up) })?;
        why.possible &= why.one_version.is_empty();
    }
    let runs = world.request.running.as_ref().is_some_and(|running| running.has_version(why.software, target));
    if why.possible && !runs {
        // If the whole group needs more steps than remain, the server alone is a good approximation. If that exceeds
        // the budget, too, no name is reported.
        let alone = |_| find(world, &whole, &asked.meter.renewed());
        let set = place.and_then(|place| set_on(asked, &whole, place).or_else(alone).ok().flatten());
        why.shared_name = set.and_then(|set| name_conflicts::refused(world, &set));
        why.possible = why.shared_name.is_none();
    }
    Ok(why)
}

/// The Paper version that the server would run, with its group if it is a member.
fn nearest_possible(asked: &ExplainContext<'_, '_>) -> Result<Option<PaperName>, BudgetExceeded> {
    Ok(decision(asked)?.and_then(|decision| brought(asked.world, &decision)))
}

/// The decision for the server, with its group if it is a member.
pub(super) fn decision(asked: &ExplainContext<'_, '_>) -> Result<Option<Decision>, BudgetExceeded> {
    match asked.company.map(GroupContext::verdict) {
        Some(MemberDecision::Member(choice)) => Ok(Some(choice.decision(asked.world))),
        Some(MemberDecision::Alone | MemberDecision::Aside | MemberDecision::GaveUp(_)) | None => {
            decide(asked.world, asked.meter)
        }
    }
}

/// The version set on a Paper version (given by position): the result of a pin to it, together with the group.
fn set_on(
    asked: &ExplainContext<'_, '_>,
    whole: &SolverProblem,
    place: usize,
) -> Result<Option<Chosen>, BudgetExceeded> {
    let (world, meter) = (asked.world, asked.meter);
    let Some(company) = asked.company else { return find(world, whole, meter) };
    let minecraft = &world.papers[place].version.minecraft;
    if company.seats.len() > MOST_PROVEN {
        // Without computing new exclusions, because those need a solver run for each server.
        let paper = company.papers(company.me).iter().position(|paper| paper == minecraft);
        let Some(paper) = paper else { return Ok(None) };
        let releases = company.releases_with(&company.others(), &IndexSet::of([paper + 1]), true, meter)?;
        return Ok(releases.map(|releases| Chosen::of(world, place, &releases)));
    }
    let pinned = hints::pinned_to(world.request, minecraft);
    let member = |company: Option<&GroupContext<'_, '_>>| match company?.verdict() {
        MemberDecision::Member(choice) => Some(Chosen::of(world, place, &choice.releases)),
        MemberDecision::Alone | MemberDecision::Aside | MemberDecision::GaveUp(_) => None,
    };
    match company.imagine(&pinned, &[], world.now, meter, member) {
        Some(Some(set)) => Ok(Some(set)),
        // The server is solved without the others then.
        Some(None) => find(world, whole, meter),
        None => Err(meter.gave_up()),
    }
}

/// The Paper version of a result. If the version set would not be deployed, the running version.
fn brought(world: &CandidateIndex<'_>, decision: &Decision) -> Option<PaperName> {
    let chosen = world.paper_name(decision.chosen.paper);
    let running = world.request.running.as_ref().map(Running::paper_name);
    let is_news = chosen != running;
    if is_news && name_conflicts::refused(world, &decision.chosen).is_some() { running } else { chosen }
}

/// Hints if the version itself is impossible: they lead to the nearest existing version other than the current one.
fn instead(asked: &ExplainContext<'_, '_>, why: &mut WhyNot) {
    let Some(nearest) = why.nearest.first().cloned() else { return };
    let is_pinned = paper_pin(asked.world).is_some();
    if is_pinned {
        let ways = hints::for_real_pin(asked, why);
        (why.hints, why.more_hints, why.hints_left_out) = (ways.hints, ways.more, ways.left_out);
    }
    // Without a pin, the newest possible version is already chosen, so only a newer one has blockers. With a pin, the
    // blockers of the nearest version matter if no pin alone leads further.
    let is_held = if is_pinned {
        why.hints.is_empty() && hints::is_on_the_way(why, &nearest)
    } else {
        why.nearest_possible.as_ref().is_none_or(|had| had.minecraft < nearest)
    };
    if !is_held {
        return;
    }
    match explain(asked, &nearest) {
        Ok(about_it) => {
            (why.hints, why.more_hints, why.waits) = (about_it.hints, about_it.more_hints, about_it.waits);
            why.hints_left_out = why.hints_left_out.or(about_it.hints_left_out);
        }
        // The hints that would have to be tried are unknown.
        Err(_) => why.hints_left_out = Some(HintsLeftOut::BudgetUsedUp),
    }
}

/// The state of each requested plugin, from the explanation of a version.
pub(crate) fn states(asked: &ExplainContext<'_, '_>, why: &WhyNot) -> Vec<PluginState> {
    let world = asked.world;
    let Some(place) = world.papers.iter().position(|paper| paper.version.minecraft == why.target) else {
        return Vec::new();
    };
    let whole = SolverProblem::whole(world, IndexSet::of([place + 1]));
    let state = |at: usize| {
        let shelf = &world.shelves[at];
        let would_do = shelf.would_do(place).intersection(&whole.root[at]);
        let newest = would_do.highest(shelf.releases.len()).and_then(|index| index.checked_sub(1));
        let is_ready = why.ready.iter().any(|name| name == shelf.name());
        let newest = newest.filter(|_| is_ready).map(|newest| shelf.releases[newest].release);
        PluginState {
            name: shelf.name().to_owned(),
            version: newest.map(|release| release.version.clone()),
            published: newest.and_then(|release| release.published),
            silent_since: why.holders.iter().find(|h| h.name == shelf.name()).and_then(|holder| holder.silent_since),
        }
    };
    whole.insisted().into_iter().map(state).collect()
}

/// Whether a Minecraft version has a build that could be used under another request.
fn has_a_build(world: &CandidateIndex<'_>, version: &Minecraft) -> bool {
    world.papers.iter().any(|paper| paper.version.minecraft == *version && is_built(paper))
}

/// Whether a Paper version has a usable build: no build can be used without a checksum.
fn is_built(paper: &PaperCandidate<'_>) -> bool {
    !matches!(paper.unusable, Some(Unusable::NoChecksum))
}

/// Up to three existing versions close to one that does not exist or has no usable build. Versions of its own line come
/// first, closest first.
pub(super) fn nearest_real(world: &CandidateIndex<'_>, wanted: &Minecraft) -> Vec<Minecraft> {
    let real = world.papers.iter().filter(|paper| is_built(paper)).map(|paper| &paper.version.minecraft);
    let mut versions: Vec<&Minecraft> = real.filter(|version| version.is_release() || !wanted.is_release()).collect();
    versions.sort();
    let split = versions.partition_point(|version| *version < wanted);
    let line = |version: &Minecraft| version.parts().map(|[major, minor, _]| (major, minor));
    let mut near: Vec<(bool, usize, &Minecraft)> = versions
        .iter()
        .enumerate()
        .map(|(place, version)| {
            let distance = if place < split { split - place } else { place + 1 - split };
            (line(version) != line(wanted), distance, *version)
        })
        .collect();
    near.sort_by_key(|(other_line, distance, version)| (*other_line, *distance, std::cmp::Reverse(*version)));
    near.into_iter().take(3).map(|(_, _, version)| version.clone()).collect()
}
