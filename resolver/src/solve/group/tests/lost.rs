//! Pure. Tests groups whose servers run delisted releases.

use super::small::{Small, fleet};
use super::*;
use crate::request::{PaperRequest, Running};

/// Creates servers with the same request that run its solution, on the Minecraft version of that solution, after all
/// those releases were delisted. `None` if there is no solution.
fn like_one(seed: u64, servers: usize) -> Option<Small> {
    let mut problem = fleet(seed);
    let mut request = problem.requests.swap_remove(0);
    // Strategy `latest` leaves plugins behind, and with the pin below no plugin is left behind any more.
    (request.running, request.paper) = (None, PaperRequest::Auto);
    let lock = crate::resolve(&problem.catalog, &request, problem.now).ok()?.lock;
    for project in &mut problem.catalog.projects {
        project.releases.retain(|release| lock.plugins.iter().all(|locked| locked.release_id != release.id));
    }
    request.paper = PaperRequest::Pin { version: lock.minecraft.clone() };
    request.running = Some(Running::of(&lock).with_lost(&lock, &problem.catalog));
    let copy = |number: usize| Request { server: format!("games/{number:03}"), ..request.clone() };
    problem.requests = (0..servers).map(copy).collect();
    Some(problem)
}

/// The number of delisted releases in the shared tables, of shared eligibilities, and of plugins.
fn at_the_tables(problem: &Small) -> (usize, usize, usize) {
    let fleet = Fleet::read(&problem.catalog, &problem.requests, problem.now);
    let listed = fleet.tables.projects.values().map(|listing| listing.releases.len()).sum::<usize>();
    let on_page = |place: &usize| problem.catalog.projects[*place].releases.len();
    let on_pages = fleet.tables.projects.keys().map(on_page).sum::<usize>();
    (listed - on_pages, fleet.tables.sheets.len(), fleet.tables.projects.len())
}

#[test]
fn delisted_release_is_indexed_once_for_many_servers() {
    let groups = |problem: &Small| groups(&problem.requests).len() == 1 && problem.requests[0].plugins.len() > 1;
    let problem = (0..500).filter_map(|seed| like_one(seed, 200)).find(groups).unwrap();
    let run = problem.requests[0].running.as_ref().unwrap().lost.len();
    let (lost, sheets, plugins) = at_the_tables(&problem);
    assert!(run > 0 && (lost, sheets) == (run, plugins), "{lost} of {run}, {sheets} of {plugins}");

    // A lock that describes a delisted release differently gets its own entry. Other releases are not affected.
    let mut apart = problem;
    apart.requests[7].running.as_mut().unwrap().lost[0].release.java = Some(8);
    assert_eq!(at_the_tables(&apart).0, run + 1);
}

#[test]
fn servers_with_equal_delisted_releases_match_single_answers() {
    let (mut kept, mut shared) = (0, 0);
    for seed in 0..400 {
        let Some(problem) = like_one(seed, 3) else { continue };
        let answers = resolve_fleet(&problem.catalog, &problem.requests, problem.now, Budget::default());
        for ((_, answer), request) in answers.iter().zip(&problem.requests) {
            // The running releases are compatible, so there is a solution.
            let lock = &answer.as_ref().unwrap_or_else(|no| panic!("seed {seed}: {no:?}")).lock;
            assert_eq!(*lock, crate::resolve(&problem.catalog, request, problem.now).unwrap().lock, "seed {seed}");
            let lost = &request.running.as_ref().unwrap().lost;
            let stays = lost.iter().filter(|lost| {
                lock.plugins.iter().any(|locked| locked.key == lost.project && locked.release_id == lost.release.id)
            });
            kept += stays.count();
            shared += usize::from(request.plugins.iter().any(|wish| wish.version == VersionRequest::Latest));
        }
    }
    assert!(kept > 100 && shared > 100, "too few to prove anything: {kept}, {shared}");
}
