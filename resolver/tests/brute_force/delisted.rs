//! Pure. Generates random problems with delisted running releases. It uses its own random numbers, so that the rest of
//! a problem does not change.

use resolver::model::catalog::{Catalog, Release, Source};
use resolver::model::request::{DelistedRelease, Request, RunningEvidence};

use super::generate::{self, Rng};
use super::group::{self, Pair};
use super::paper_rules::is_verifiable;
use super::problem::Problem;
use super::rules::{is_running, project_index, running_releases};

/// The problem of a seed, possibly with delisted releases.
pub(crate) fn problem(seed: u64) -> Problem {
    let mut problem = generate::problem(seed);
    let Problem { catalog, request, now: _ } = &mut problem;
    let mut rng = Rng::new(seed ^ 0x0010_57E0);
    if rng.chance(30) {
        randomize(&mut rng, catalog, std::slice::from_mut(request));
    }
    problem
}

/// The pair of a seed, possibly with delisted releases. `None` if its servers share no plugin.
pub(crate) fn pair(seed: u64) -> Option<Pair> {
    let mut pair = group::pair(seed)?;
    let mut rng = Rng::new(seed ^ 0x0010_57E2);
    if rng.chance(50) {
        randomize(&mut rng, &mut pair.catalog, &mut pair.requests);
    }
    Some(pair)
}

/// Removes running releases from some of the pages. All servers with the same running release have the same data about
/// it in their locks.
fn randomize(rng: &mut Rng, catalog: &mut Catalog, requests: &mut [Request]) {
    for at in 0..catalog.projects.len() {
        // A plugin from a URL has no page that could delist it.
        if catalog.projects[at].key.source == Source::Url || !rng.chance(50) {
            continue;
        }
        let runs_somewhere = |release: &Release| requests.iter().any(|request| is_running(request, release));
        let Some(index) = catalog.projects[at].releases.iter().position(runs_somewhere) else { continue };
        let delisted = catalog.projects[at].releases.remove(index);
        // A proxy does not keep a delisted release.
        let keeps_delisted = |request: &Request| {
            let running = request.running.as_ref().filter(|_| is_running(request, &delisted));
            running.is_some_and(|running| running.software.is_minecraft())
        };
        let mut known_release = None;
        for request in requests.iter_mut().filter(|request| keeps_delisted(request)) {
            known_release = known_release.or_else(|| locked_release(rng, catalog, request, (at, &delisted)));
            if let (Some(running), Some(known_release)) = (&mut request.running, &known_release) {
                running.delisted.push(known_release.clone());
            }
        }
    }
}

/// The data in a server's lock about a release of the project with this index.
fn locked_release(
    rng: &mut Rng,
    catalog: &Catalog,
    request: &Request,
    (at, delisted): (usize, &Release),
) -> Option<DelistedRelease> {
    let running = request.running.as_ref()?;
    let project = &catalog.projects[at];
    let mut dependents = Vec::new();
    for (index, other) in catalog.projects.iter().enumerate() {
        let is_requested =
            request.plugins.iter().any(|plugin_request| project_index(catalog, &plugin_request.key) == Some(index));
        let is_dependent = index != at && !is_requested && running_releases(request, other).next().is_some();
        if is_dependent && other.key.source == project.key.source && rng.chance(60) {
            dependents.push(other.id.clone());
        }
    }
    // A lock contains no file without a checksum.
    let files =
        delisted.file.iter().chain(delisted.further.iter().map(|jar| &jar.file)).filter(|file| is_verifiable(file));
    DelistedRelease::new(
        project.key.clone(),
        (delisted.id.clone(), delisted.version.clone()),
        RunningEvidence { software: running.software, minecraft: &running.minecraft, java: running.java },
        dependents,
        files.cloned(),
    )
}
