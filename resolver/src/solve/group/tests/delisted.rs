//! Pure. Tests groups whose servers run delisted releases.

use super::small_fleets::{Small, fleet};
use super::*;
use crate::model::request::{PaperRequest, Running};
use crate::resolve_fleet;

/// Creates servers with the same request that run its solution, on the Minecraft version of that solution, after all
/// those releases were delisted. `None` if there is no solution.
fn identical_servers(seed: u64, servers: usize) -> Option<Small> {
    let mut problem = fleet(seed);
    let mut request = problem.requests.swap_remove(0);
    // Strategy `latest` leaves plugins behind, and with the pin below no plugin is left behind any more.
    (request.running, request.paper) = (None, PaperRequest::Auto);
    let lock = crate::resolve(&problem.catalog, &request, problem.now).ok()?.lock;
    for project in &mut problem.catalog.projects {
        project.releases.retain(|release| lock.plugins.iter().all(|locked| locked.release_id != release.id));
    }
    request.paper = PaperRequest::Pin { version: lock.minecraft.clone() };
    request.running = Some(Running::from_lock(&lock).with_delisted(&lock, &problem.catalog));
    let copy = |number: usize| Request { server: format!("games/{number:03}"), ..request.clone() };
    problem.requests = (0..servers).map(copy).collect();
    Some(problem)
}

/// The number of delisted releases in the shared tables, of shared eligibilities, and of plugins.
fn count_table_entries(problem: &Small) -> (usize, usize, usize) {
    let fleet = Fleet::read(&problem.catalog, &problem.requests, problem.now);
    let listed = fleet.tables.projects.values().map(|listing| listing.releases.len()).sum::<usize>();
    let on_page = |position: &usize| problem.catalog.projects[*position].releases.len();
    let on_pages = fleet.tables.projects.keys().map(on_page).sum::<usize>();
    (listed - on_pages, fleet.tables.eligibilities.len(), fleet.tables.projects.len())
}

#[test]
fn delisted_release_is_indexed_once_for_many_servers() {
    let groups = |problem: &Small| groups(&problem.requests).len() == 1 && problem.requests[0].plugins.len() > 1;
    let problem = (0..500).filter_map(|seed| identical_servers(seed, 200)).find(groups).unwrap();
    let run = problem.requests[0].running.as_ref().unwrap().delisted.len();
    let (delisted, eligibilities, plugins) = count_table_entries(&problem);
    assert!(
        run > 0 && (delisted, eligibilities) == (run, plugins),
        "{delisted} entries for {run} releases, {eligibilities} for {plugins} plugins"
    );

    // A lock that describes a delisted release differently gets its own entry. Other releases are not affected.
    let mut differing = problem;
    differing.requests[7].running.as_mut().unwrap().delisted[0].release.java = Some(8);
    assert_eq!(count_table_entries(&differing).0, run + 1);
}

#[test]
fn servers_with_equal_delisted_releases_match_single_answers() {
    let (mut retained, mut shared) = (0, 0);
    for seed in 0..400 {
        let Some(problem) = identical_servers(seed, 3) else { continue };
        let answers = resolve_fleet(&problem.catalog, &problem.requests, problem.now, Budget::default());
        for ((_, answer), request) in answers.iter().zip(&problem.requests) {
            // The running releases are compatible, so there is a solution.
            let lock = &answer.as_ref().unwrap_or_else(|no| panic!("seed {seed}: {no:?}")).lock;
            assert_eq!(*lock, crate::resolve(&problem.catalog, request, problem.now).unwrap().lock, "seed {seed}");
            let delisted = &request.running.as_ref().unwrap().delisted;
            let retained_releases = delisted.iter().filter(|delisted| {
                lock.plugins
                    .iter()
                    .any(|locked| locked.key == delisted.project && locked.release_id == delisted.release.id)
            });
            retained += retained_releases.count();
            shared += usize::from(
                request.plugins.iter().any(|plugin_request| plugin_request.version == VersionRequest::Latest),
            );
        }
    }
    assert!(retained > 100 && shared > 100, "too few cases: {retained}, {shared}");
}
