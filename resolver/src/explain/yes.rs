//! Pure. The explanation of a yes: what was chosen, how we know that it runs, and why nothing newer.

use super::holder::{holders, up_to};
use super::{
    Asked, Because, ChosenPaper, ChosenPlugin, Listing, NewerBuild, NewerPaper, NewerRelease, PaperName, PaperPin,
    Solved, Unfollowed, Warning, hint,
};
use crate::catalog::{BuildChannel, FALLBACK_VERSION, Source};
use crate::request::{OverrideMode, PaperWish};
use crate::shelf::World;
use crate::shelf::listing::Known;
use crate::solve::Decision;
use crate::solve::answer::needed_by;
use crate::solve::provider::Question;
use crate::solve::set::IndexSet;
use crate::unusable::Unusable;

/// Explains a decision.
pub(crate) fn explain(asked: &Asked<'_, '_>, decision: &Decision) -> Solved {
    let world = asked.world;
    let paper = chosen_paper(world, decision);
    let plugins = (0..world.shelves.len()).filter_map(|shelf| chosen_plugin(world, decision, shelf)).collect();
    let newer_paper = newer_papers(asked, decision);
    let question = Question::whole(world, IndexSet::of([decision.chosen.paper + 1]));
    let unfollowed: Vec<Unfollowed> = decision
        .unfollowed
        .iter()
        .filter_map(|&(shelf, stays)| {
            let alone = question.only(|other| other == shelf);
            let found = holders(asked, &alone, decision.chosen.paper).unwrap_or_default().into_iter().next();
            let shelf = &world.shelves[shelf];
            let holder = match found {
                Some(holder) => holder,
                // It would do alone; with the others, which come before it by name, it does not.
                None => holders(asked, &question, decision.chosen.paper)
                    .unwrap_or_default()
                    .into_iter()
                    .find(|holder| holder.name == shelf.name())?,
            };
            Some(Unfollowed { holder, stays: stays.map(|place| shelf.releases[place].release.version.clone()) })
        })
        .collect();
    let hints = hint::for_newer(asked, &paper, &newer_paper, &unfollowed);
    Solved {
        server: world.request.server.clone(),
        paper,
        plugins,
        newer_paper,
        unfollowed,
        warnings: warnings(world, decision),
        hints,
        lists_read_later: lists_read_later(asked),
    }
}

/// The latest reading, when that was after the instant of the question.
pub(super) fn lists_read_later(asked: &Asked<'_, '_>) -> Option<jiff::Timestamp> {
    let projects = asked.world.shelves.iter().map(|shelf| shelf.project.read_at);
    projects.chain([asked.catalog.paper_read_at]).max().filter(|read| *read > asked.world.now)
}

fn chosen_paper(world: &World<'_>, decision: &Decision) -> ChosenPaper {
    let candidate = &world.papers[decision.chosen.paper];
    let build = candidate.build.expect("a Paper without a build is unusable, and was not chosen");
    let running = world.request.running.as_ref();
    let runs_now = running.is_some_and(|r| r.minecraft == candidate.version.minecraft && r.build == build.number);
    ChosenPaper {
        minecraft: candidate.version.minecraft.clone(),
        build: build.number,
        published: build.published,
        instead_of: running
            .filter(|_| !runs_now)
            .map(|running| PaperName { minecraft: running.minecraft.clone(), build: running.build }),
        runs_now,
        newer_build: candidate.newer_build.clone().map(|(build, unusable)| NewerBuild { build, unusable }),
    }
}

fn chosen_plugin(world: &World<'_>, decision: &Decision, at: usize) -> Option<ChosenPlugin> {
    let place = decision.chosen.releases[at]?;
    let shelf = &world.shelves[at];
    let release = shelf.releases[place].release;
    let runs = shelf.releases.iter().find(|stocked| world.runs(stocked.release)).map(|stocked| stocked.release);
    Some(ChosenPlugin {
        name: shelf.name().to_owned(),
        objects: shelf.asked.iter().flat_map(|asked| asked.objects.iter().map(|&o| o.to_owned())).collect(),
        needed_by: needed_by(world, decision, at),
        version: release.version.clone(),
        published: release.published,
        listing: match world.known(at, place, decision.chosen.paper) {
            Some(Known::Listed) => Listing::Listed,
            Some(Known::Sibling(of)) => Listing::Sibling { of: of.clone() },
            Some(Known::Override) => Listing::Override,
            Some(Known::NoList) => Listing::NoList,
            None => Listing::RunsNow,
        },
        instead_of: runs.filter(|runs| runs.id != release.id).map(|runs| runs.version.clone()),
        runs_now: runs.is_some(),
        newest: newer_release(world, decision, at, place),
    })
}

/// The newest release on the channel, if it is not the chosen one.
fn newer_release(world: &World<'_>, decision: &Decision, at: usize, place: usize) -> Option<NewerRelease> {
    let shelf = &world.shelves[at];
    let newest = (place + 1..shelf.releases.len()).rev().find(|&newer| {
        !matches!(shelf.releases[newer].unusable, Some(Unusable::Channel { .. } | Unusable::WrongSoftware { .. }))
    })?;
    let stocked = &shelf.releases[newest];
    let because = if let Some(unusable) = &stocked.unusable {
        Because::Unusable { unusable: unusable.clone() }
    } else if shelf.asked.is_some() && !shelf.allowed.has(newest + 1) {
        Because::Pinned
    } else if world.known(at, newest, decision.chosen.paper).is_none() {
        Because::NotListed { up_to: up_to(stocked.release) }
    } else {
        Because::Others { with: others(world, decision, at, newest) }
    };
    Some(NewerRelease { version: stocked.release.version.clone(), published: stocked.release.published, because })
}

/// With whom a release does not go together, in the chosen set.
fn others(world: &World<'_>, decision: &Decision, at: usize, place: usize) -> Vec<String> {
    let index = |shelf: usize| decision.chosen.releases[shelf].map_or(0, |place| place + 1);
    let own = world.shelves[at].releases[place].links.iter();
    let mut names: Vec<String> =
        own.filter(|link| !link.set.has(index(link.to))).map(|link| world.shelves[link.to].name().to_owned()).collect();
    for (other, release) in decision.chosen.releases.iter().enumerate() {
        let Some(release) = *release else { continue };
        let shelf = &world.shelves[other];
        if shelf.releases[release].links.iter().any(|link| link.to == at && !link.set.has(place + 1)) {
            names.push(shelf.name().to_owned());
        }
    }
    names.sort();
    names.dedup();
    names
}

/// The next Paper up that may be used (else the next one up), and the newest of all.
fn newer_papers(asked: &Asked<'_, '_>, decision: &Decision) -> Vec<NewerPaper> {
    let world = asked.world;
    let previews = world.request.channel == BuildChannel::Alpha;
    let newer: Vec<usize> = (decision.chosen.paper + 1..world.papers.len())
        .filter(|&place| previews || world.papers[place].version.minecraft.is_release())
        .collect();
    let next = newer.iter().find(|&&place| world.papers[place].unusable.is_none()).or(newer.first());
    let mut shown: Vec<usize> = next.into_iter().chain(newer.last()).copied().collect();
    shown.dedup();
    shown.into_iter().filter_map(|place| newer_paper(asked, decision, place)).collect()
}

fn newer_paper(asked: &Asked<'_, '_>, decision: &Decision, place: usize) -> Option<NewerPaper> {
    let world = asked.world;
    let candidate = &world.papers[place];
    let pinned = paper_pin(world);
    let whole = Question::whole(world, IndexSet::of([place + 1]));
    let held_by = match &candidate.unusable {
        // Who would hold it if it could be used is not known from this world: its image and its build are open.
        Some(_) => Vec::new(),
        None => holders(asked, &whole, place).ok()?,
    };
    let installed: Vec<&str> = decision
        .chosen
        .releases
        .iter()
        .enumerate()
        .filter_map(|(at, release)| release.map(|_| world.shelves[at].name()))
        .collect();
    let blocked = |name: &str| {
        held_by.iter().any(|holder| holder.name == name || holder.together_with.iter().any(|other| other == name))
    };
    let ready = installed.iter().filter(|name| !blocked(name)).count();
    Some(NewerPaper {
        minecraft: candidate.version.minecraft.clone(),
        since: candidate.since,
        unusable: candidate.unusable.clone(),
        pinned,
        ready,
        held_by,
        one_way: candidate.version.minecraft > world.papers[decision.chosen.paper].version.minecraft,
    })
}

pub(super) fn paper_pin(world: &World<'_>) -> Option<PaperPin> {
    match &world.request.paper {
        PaperWish::Pin { version } => Some(PaperPin { version: version.clone(), build: None }),
        PaperWish::BuildPin { version, build } => Some(PaperPin { version: version.clone(), build: Some(*build) }),
        PaperWish::Latest | PaperWish::Auto => None,
    }
}

fn warnings(world: &World<'_>, decision: &Decision) -> Vec<Warning> {
    let mut warnings = world.warnings.clone();
    let candidate = &world.papers[decision.chosen.paper];
    if candidate.version.unsupported {
        warnings.push(Warning::PaperUnsupported { minecraft: candidate.version.minecraft.clone() });
    }
    if let (PaperWish::BuildPin { .. }, Some(build)) = (&world.request.paper, candidate.build)
        && build.channel < world.request.channel
    {
        warnings.push(Warning::PinnedBuildChannel { is: build.channel, allowed: world.request.channel });
    }
    for (at, place) in decision.chosen.releases.iter().enumerate() {
        let Some(place) = *place else { continue };
        plugin_warnings(world, decision, at, place, &mut warnings);
    }
    warnings.sort();
    warnings
}

fn plugin_warnings(world: &World<'_>, decision: &Decision, at: usize, place: usize, warnings: &mut Vec<Warning>) {
    let shelf = &world.shelves[at];
    let stocked = &shelf.releases[place];
    let plugin = || shelf.name().to_owned();
    let version = || stocked.release.version.clone();
    if shelf.channel < shelf.rules.channel && stocked.release.channel < shelf.rules.channel && shelf.rules.pin.is_none()
    {
        warnings.push(Warning::ChannelFallback {
            plugin: plugin(),
            used: stocked.release.channel,
            allowed: shelf.rules.channel,
        });
    }
    if world.known(at, place, decision.chosen.paper) == Some(Known::NoList) {
        warnings.push(Warning::NoList { plugin: plugin(), version: version() });
    }
    if shelf.project.key.source == Source::Url && stocked.release.version == FALLBACK_VERSION {
        warnings.push(Warning::FallbackVersion { plugin: plugin(), version: version() });
    }
    for link in &stocked.links {
        if let Some(guessed) = link.guessed {
            let other = &world.shelves[link.to];
            warnings.push(Warning::GuessedBound {
                plugin: plugin(),
                version: version(),
                needs: other.name().to_owned(),
                at_least: other.releases[guessed - 1].release.version.clone(),
            });
        }
    }
    for needs in &stocked.outside {
        warnings.push(Warning::OutsideDependency { plugin: plugin(), needs: needs.clone() });
    }
    let adds = shelf
        .rules
        .compatibility
        .is_some_and(|says| says.mode == OverrideMode::Add && says.releases.contains(&stocked.release.version));
    if let (true, Some(object)) = (adds, shelf.object())
        && world.known_by_page(at, place, decision.chosen.paper).is_some()
    {
        warnings.push(Warning::OverrideNotNeeded { object: object.to_owned(), version: version() });
    }
}
