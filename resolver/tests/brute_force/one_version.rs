//! Pure. Tests on random small pairs, by the rules of the page, that a reported shared version is the cause. Alone
//! the server could have the release, and with the other server it cannot.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use resolver::catalog::{BuildChannel, Release};
use resolver::explain::{
    ChosenPlugin, Conflict, Explanation, NewerPaper, OneVersion, Reason, ServerChoice, SolvedExplanation, WhyOlder,
};
use resolver::lock::Lock;
use resolver::request::{ImagePolicy, PaperRequest, VersionRequest};
use resolver::unmanaged_jar::UnmanagedPlugins;
use resolver::unusable::Unusable;
use resolver::version::Minecraft;
use resolver::{Budget, Resolution, Unsolvable, resolve_fleet};

use super::because::{apart, chosen};
use super::beside::{facts_part, is_said};
use super::joint::{self, Pair, go_together};
use super::oracle::{self, Outcome};
use super::problem::Problem;
use super::rules::{Book, place_of};

/// Seeds of the property.
const SEEDS: u64 = 2_500;
/// Steps for an answer, with few for hints, because none is followed here.
const STEPS: u64 = 1_000;

/// Whether a server alone has a solution, on this Paper if one is given. `None` if that is unknown.
fn goes_alone(pair: &Pair, seat: usize, paper: Option<&Minecraft>) -> Option<bool> {
    let mut request = pair.requests[seat].clone();
    if let Some(version) = paper.cloned() {
        request.paper = PaperRequest::Pin { version };
    }
    let book = Book::open(&pair.catalog, &request, pair.now).ok()?;
    Some(matches!(oracle::best(&book), Outcome::Chosen { .. }))
}

/// Whether a server can use one of these releases on its Paper. `None` if that is unknown.
fn takes(pair: &Pair, seat: usize, paper: Option<&Minecraft>, ids: &BTreeSet<&str>) -> Option<bool> {
    let book = Book::open(&pair.catalog, &pair.requests[seat], pair.now).ok()?;
    let paper = book.papers.iter().position(|other| Some(other.minecraft) == paper)?;
    let suits = |at: usize, release: &Release| book.meets_pin(at, release) && book.listed(at, release, paper);
    Some(book.members.iter().enumerate().any(|(at, member)| {
        member.usable.iter().any(|release| ids.contains(release.id.as_str()) && suits(at, release))
    }))
}

/// Checks that the server has a solution alone, and none together with the other.
fn parts(pair: &Pair, seat: usize, papers: [Option<&Minecraft>; 2]) -> Result<(), String> {
    if goes_alone(pair, seat, papers[seat]) == Some(false) {
        return Err(format!("alone {} has nothing on {:?}", pair.requests[seat].server, papers[seat]));
    }
    if go_together(pair, papers, &BTreeMap::new()) == Some(true) {
        return Err(format!("they go together on {papers:?}"));
    }
    Ok(())
}

/// The pair in which the server at `seat` shares only these plugins.
fn sharing_only(pair: &Pair, seat: usize, one_version: &OneVersion) -> Pair {
    let mut only = pair.clone();
    for wish in &mut only.requests[seat].plugins {
        let place = place_of(&pair.catalog, &wish.key).unwrap();
        let name = &pair.catalog.projects[place].name;
        if wish.version == VersionRequest::Latest && !one_version.plugins.iter().any(|told| told.plugin == *name) {
            wish.version = VersionRequest::Auto;
        }
    }
    only
}

fn aside_is_true(pair: &Pair, seat: usize, impossible: &Conflict) -> Result<u32, String> {
    let mut told = 0;
    for reason in &impossible.reasons {
        let Reason::OneVersion { one_version } = reason else { continue };
        told += 1;
        parts(pair, seat, [None, None])?;
        parts(&sharing_only(pair, seat, one_version), seat, [None, None])
            .map_err(|fault| format!("of {:?} alone: {fault}", one_version.plugins))?;
    }
    Ok(told)
}

/// Checks that exactly the plugins that conflict with a release on a server are reported.
fn apart_there(pair: &Pair, seat: usize, lock: &Lock, told: &ServerChoice, ids: &BTreeSet<&str>) -> Result<(), String> {
    let problem = Problem { catalog: pair.catalog.clone(), request: pair.requests[seat].clone(), now: pair.now };
    let Ok(book) = Book::open(&problem.catalog, &problem.request, problem.now) else { return Ok(()) };
    let found =
        book.members.iter().enumerate().find_map(|(at, member)| {
            Some((at, *member.usable.iter().find(|release| ids.contains(release.id.as_str()))?))
        });
    let Some((at, release)) = found else { return Err(format!("{ids:?} cannot be used on {}", told.server)) };
    let there = chosen(&book, lock);
    let against = apart(&book, &there, at, release);
    let names = |names: &[String]| names.iter().cloned().collect::<BTreeSet<_>>();
    if told.server != problem.request.server || [names(&told.with), names(&told.needs)] != against {
        return Err(format!("{told:?} is told; what does not go with it, and what it lacks: {against:?}"));
    }
    facts_part(&book, &there, (at, release), &told.facts)?;
    told.facts.iter().try_for_each(|fact| is_said(&problem, &book, fact))
}

/// The pair without all reasons against a newer Paper of the server at `seat`, except the other server.
fn but_for_the_group(pair: &Pair, seat: usize, newer: &NewerPaper) -> Pair {
    let mut then = pair.clone();
    let request = &mut then.requests[seat];
    if newer.pinned.is_some() {
        request.paper = PaperRequest::Auto;
    }
    match &newer.unusable {
        Some(Unusable::HeldBack { ripe_at, .. }) => then.now = *ripe_at,
        Some(Unusable::BuildChannel { best, .. }) => request.channel = *best,
        Some(Unusable::Preview) => request.channel = BuildChannel::Alpha,
        Some(Unusable::Unmanaged { .. } | Unusable::UnmanagedRefused { .. }) => {
            request.unmanaged_plugins = UnmanagedPlugins::Ignore;
        }
        Some(Unusable::JavaTooOld { .. } | Unusable::ImageCarries { .. }) => request.image = None,
        Some(Unusable::JavaHeld { .. }) => request.image_policy = ImagePolicy::Follow,
        Some(other) => panic!("nothing makes this one usable: {other:?}"),
        None => {}
    }
    let holds = |name: &str| newer.held_by.iter().any(|it| it.name == name || it.needed_by.iter().any(|by| by == name));
    request.plugins.retain(|wish| !holds(&pair.catalog.projects[place_of(&pair.catalog, &wish.key).unwrap()].name));
    request.unmanaged.retain(|jar| !holds(&jar.file));
    then
}

fn budget() -> Budget {
    Budget { steps: STEPS, ..Budget::default() }
}

fn yes_is_true(
    pair: &Pair,
    seat: usize,
    locks: [Option<&Lock>; 2],
    solved: &SolvedExplanation,
) -> Result<[u32; 4], String> {
    let papers = locks.map(|lock| lock.map(|lock| &lock.minecraft));
    let (mut releases, mut held, mut apart) = (0, [0, 0], 0);
    for (plugin, newer) in ChosenPlugin::newer(&solved.plugins) {
        let WhyOlder::OneVersion { one_version } = &newer.because else { continue };
        let place = pair.catalog.projects.iter().position(|project| project.name == plugin.name).unwrap();
        let same = pair.catalog.projects[place].releases.iter().filter(|release| release.version == newer.version);
        let ids: BTreeSet<&str> = same.map(|release| release.id.as_str()).collect();
        let [told] = one_version.servers.as_slice() else {
            return Err(format!("nobody is named who keeps {} {} away: {one_version:?}", plugin.name, newer.version));
        };
        let Some(lock) = locks[1 - seat].filter(|_| ids.len() == 1) else { continue };
        if !told.with.is_empty() || !told.needs.is_empty() {
            apart += 1;
            apart_there(pair, 1 - seat, lock, told, &ids)?;
            continue;
        }
        releases += 1;
        if takes(pair, 1 - seat, papers[1 - seat], &ids) == Some(true) {
            return Err(format!("{} can have {} {}", pair.requests[1 - seat].server, plugin.name, newer.version));
        }
        if go_together(pair, papers, &BTreeMap::from([(place, ids)])) == Some(true) {
            return Err(format!("both can have {} {}", plugin.name, newer.version));
        }
    }
    for newer in solved.newer_paper.iter().filter(|newer| !newer.one_version.is_empty()) {
        let is_behind = newer.pinned.is_some() || newer.unusable.is_some() || !newer.held_by.is_empty();
        held[usize::from(is_behind)] += 1;
        let then = if is_behind { but_for_the_group(pair, seat, newer) } else { pair.clone() };
        let answers = resolve_fleet(&then.catalog, &then.requests, then.now, budget());
        let first = answers[0].1.as_ref().ok().map(|resolution| &resolution.lock.minecraft);
        // The Papers of the servers before it by name are fixed.
        let mut asked = [first.filter(|_| seat == 1), None];
        asked[seat] = Some(&newer.minecraft);
        parts(&then, seat, asked)?;
    }
    Ok([releases, held[0], held[1], apart])
}

#[test]
fn shared_version_reason_is_true_for_two_servers() {
    let tried = [Cell::new(0), Cell::new(0), Cell::new(0), Cell::new(0), Cell::new(0)];
    joint::always(25_000_000..25_000_000 + SEEDS, |pair| {
        let answers = resolve_fleet(&pair.catalog, &pair.requests, pair.now, budget());
        let locks = [0, 1].map(|seat: usize| answers[seat].1.as_ref().ok().map(|resolution| &resolution.lock));
        for (seat, (_, answer)) in answers.iter().enumerate() {
            match answer {
                Ok(Resolution { lock: _, explanation: Explanation::Solved(solved) }) => {
                    for (count, more) in tried[1..].iter().zip(yes_is_true(pair, seat, locks, solved)?) {
                        count.set(count.get() + more);
                    }
                }
                Err(Unsolvable::NoSolution(impossible)) => {
                    tried[0].set(tried[0].get() + aside_is_true(pair, seat, impossible)?);
                }
                Ok(_) | Err(_) => {}
            }
        }
        Ok(())
    });
    let tried = tried.map(|count| count.get());
    let [aside, releases, held, behind, apart] = tried;
    assert!(
        aside > 7 && releases > 2 && held > 0 && behind > 0 && apart > 2,
        "servers set aside, releases, Papers, those behind something else, and sets that a release does not go with: {tried:?}"
    );
}
