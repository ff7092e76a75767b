//! Pure. Generates random problems with delisted running releases. It uses its own random numbers, so that the rest of
//! a problem does not change.

use resolver::catalog::{Catalog, Release, Source};
use resolver::request::{DelistedRelease, Request, RunsOn};

use super::generate::{self, Dice};
use super::joint::{self, Pair};
use super::papers::verifiable;
use super::problem::Problem;
use super::rules::{all_that_runs, place_of, runs};

/// The problem of a seed, possibly with delisted releases.
pub(crate) fn problem(seed: u64) -> Problem {
    let mut problem = generate::problem(seed);
    let Problem { catalog, request, now: _ } = &mut problem;
    let mut dice = Dice::new(seed ^ 0x0010_57E0);
    if dice.chance(30) {
        scatter(&mut dice, catalog, std::slice::from_mut(request));
    }
    problem
}

/// The pair of a seed, possibly with delisted releases. `None` if its servers share no plugin.
pub(crate) fn pair(seed: u64) -> Option<Pair> {
    let mut pair = joint::pair(seed)?;
    let mut dice = Dice::new(seed ^ 0x0010_57E2);
    if dice.chance(50) {
        scatter(&mut dice, &mut pair.catalog, &mut pair.requests);
    }
    Some(pair)
}

/// Delists running releases on some of the pages. All servers with the same running release know the same data about
/// it.
fn scatter(dice: &mut Dice, catalog: &mut Catalog, requests: &mut [Request]) {
    for at in 0..catalog.projects.len() {
        // A file by URL is its own page.
        if catalog.projects[at].key.source == Source::Url || !dice.chance(50) {
            continue;
        }
        let run = |release: &Release| requests.iter().any(|request| runs(request, release));
        let Some(place) = catalog.projects[at].releases.iter().position(run) else { continue };
        let gone = catalog.projects[at].releases.remove(place);
        // A proxy does not keep a delisted release.
        let keeps = |request: &Request| {
            let running = request.running.as_ref().filter(|_| runs(request, &gone));
            running.is_some_and(|running| running.software.is_minecraft())
        };
        let mut known = None;
        for request in requests.iter_mut().filter(|request| keeps(request)) {
            known = known.or_else(|| known_by(dice, catalog, request, (at, &gone)));
            if let (Some(running), Some(known)) = (&mut request.running, &known) {
                running.lost.push(known.clone());
            }
        }
    }
}

/// The data in a server's lock about a release of the project at this place.
fn known_by(
    dice: &mut Dice,
    catalog: &Catalog,
    request: &Request,
    (at, gone): (usize, &Release),
) -> Option<DelistedRelease> {
    let running = request.running.as_ref()?;
    let project = &catalog.projects[at];
    let mut came_for_it = Vec::new();
    for (place, other) in catalog.projects.iter().enumerate() {
        let asked = request.plugins.iter().any(|wish| place_of(catalog, &wish.key) == Some(place));
        let came = place != at && !asked && all_that_runs(request, other).next().is_some();
        if came && other.key.source == project.key.source && dice.chance(60) {
            came_for_it.push(other.id.clone());
        }
    }
    // A lock contains no file without a checksum.
    let files = gone.file.iter().chain(gone.further.iter().map(|jar| &jar.file)).filter(|file| verifiable(file));
    DelistedRelease::new(
        project.key.clone(),
        (gone.id.clone(), gone.version.clone()),
        RunsOn { software: running.software, minecraft: &running.minecraft, java: running.java },
        came_for_it,
        files.cloned(),
    )
}
