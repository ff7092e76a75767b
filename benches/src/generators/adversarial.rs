//! Pure. Generates catalogs that are hard to solve for one server or for many. The encoding and the budget exist for them.

use fixtures::rng::Rng;
use resolver::model::catalog::{Catalog, Channel, DependencyKind};
use resolver::model::request::{PaperRequest, Request, VersionRequest};

use super::{
    PAPERS, RELEASES, catalog, dependency, fleet, minecraft, papers, plugin_request, project, release, request,
};

/// The number of plugins of the one big server.
pub const PLUGINS: usize = 40;

/// One big server as plain numbers, from which every encoding is made.
pub struct Big {
    /// The oldest and the newest Paper of each release, and whether it may be used, by plugin.
    pub plugins: Vec<Vec<(usize, usize, bool)>>,
}

/// 40 plugins of 900 releases, of which 3 in 10 may not be used, with ranges of 4 to 19 Papers. For each of the newest `blocked` Papers, one random
/// plugin has no release.
pub fn big(blocked: usize) -> Big {
    let mut random = Rng::new(3);
    let plugins = (0..PLUGINS).map(|_| {
        let width = 4 + random.number_below(16);
        let releases = (0..RELEASES).map(|number| {
            let to = number * (PAPERS - 1) / (RELEASES - 1);
            (to.saturating_sub(width), to, random.number_below(10) >= 3)
        });
        releases.collect()
    });
    let mut big = Big { plugins: plugins.collect() };
    for paper in PAPERS - blocked..PAPERS {
        let plugin = random.number_below(PLUGINS);
        for (from, to, usable) in &mut big.plugins[plugin] {
            *usable = *usable && !(*from..=*to).contains(&paper);
        }
    }
    big
}

impl Big {
    /// The same for the resolver. A release that may not be used is a beta.
    pub fn catalog(&self) -> Catalog {
        let projects = self.plugins.iter().enumerate().map(|(plugin, releases)| {
            let name = format!("b{plugin:02}");
            let releases = releases.iter().enumerate().map(|(number, &(from, to, usable))| {
                let mut release = release(&name, number, (from..=to).map(minecraft).collect());
                release.channel = if usable { Channel::Release } else { Channel::Beta };
                release
            });
            project(&name, releases.collect())
        });
        catalog(papers(PAPERS), projects.collect())
    }

    /// A server that requests all plugins.
    pub fn request(&self) -> Request {
        let plugin_requests =
            (0..self.plugins.len()).map(|plugin| plugin_request(&format!("b{plugin:02}"), VersionRequest::Auto));
        request("games/big".to_owned(), PaperRequest::Auto, plugin_requests.collect())
    }
}

/// Plugins in a ring: release `k` of each excludes the releases of the next plugin from `k` up. No combination works.
pub fn ladder(plugins: usize, releases: usize) -> (Catalog, Request) {
    let name = |index: usize| format!("l{}", index % plugins);
    let projects = (0..plugins).map(|index| {
        let list = (1..=releases).map(|number| {
            let mut release = release(&name(index), number, vec![minecraft(0)]);
            let excludes = (number..=releases).map(|to| dependency(&name(index + 1), to, DependencyKind::Incompatible));
            release.dependencies = excludes.collect();
            release
        });
        project(&name(index), list.collect())
    });
    let catalog = catalog(papers(1), projects.collect());
    (catalog, request_all(plugins, "l"))
}

/// A stack of plugins: release `k` of each needs release `k` or `k - 1` of the next one below. The lowest plugin works with the first release of the
/// highest only. So only the oldest release of each plugin works.
pub fn tower(plugins: usize, releases: usize) -> (Catalog, Request) {
    let name = |index: usize| format!("l{index}");
    let projects = (0..plugins).map(|index| {
        let list = (1..=releases).map(|number| {
            let mut release = release(&name(index), number, vec![minecraft(0)]);
            let below = index + 1;
            release.dependencies = if below < plugins {
                // Excludes all but the two releases that it works with.
                let excluded = (1..=releases).filter(|&other| other != number && other + 1 != number);
                excluded.map(|other| dependency(&name(below), other, DependencyKind::Incompatible)).collect()
            } else {
                (2..=releases).map(|other| dependency(&name(0), other, DependencyKind::Incompatible)).collect()
            };
            release
        });
        project(&name(index), list.collect())
    });
    let catalog = catalog(papers(1), projects.collect());
    (catalog, request_all(plugins, "l"))
}

fn request_all(plugins: usize, prefix: &str) -> Request {
    let plugin_requests =
        (0..plugins).map(|index| plugin_request(&format!("{prefix}{index}"), VersionRequest::Auto)).collect();
    request("games/lobby".to_owned(), PaperRequest::Auto, plugin_requests)
}

/// A fleet that converges slowly: the shared plugins run on ranges of 12 Papers. The last server accepts no Paper above number 19, so all other
/// servers have to move down to it step by step.
pub fn crawl(servers: usize) -> (Catalog, Vec<Request>) {
    let mut catalog = super::fleet_catalog();
    for project in catalog.projects.iter_mut().take(super::SHARED) {
        for (number, release) in project.releases.iter_mut().enumerate() {
            let to = number * (PAPERS - 4) / (RELEASES - 1);
            release.minecraft = (to.saturating_sub(11)..=to).map(minecraft).collect();
        }
    }
    catalog.projects.push(project("stuck", vec![release("stuck", 0, (0..20).map(minecraft).collect())]));
    let mut requests = fleet(servers);
    if let Some(last) = requests.last_mut() {
        last.plugins.truncate(super::SHARED);
        last.plugins.push(plugin_request("stuck", VersionRequest::Auto));
    }
    (catalog, requests)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use resolver::{Budget, BudgetExceeded, Limit, Unsolvable, resolve_fleet, resolve_within};

    use super::super::now;
    use super::*;

    /// The result of an answer: the sorted versions of all plugins, or `None` if there is no solution.
    type End = Option<Vec<String>>;

    /// The budget of every real question without its time limit, which a build without optimisation may exceed.
    fn untimed_budget() -> Budget {
        Budget { time: Duration::MAX, ..Budget::default() }
    }

    /// Budgets in steps, words and time, the smallest first.
    fn budgets() -> [Budget; 6] {
        let limited = |steps, words| Budget { steps, words, ..untimed_budget() };
        let short = Budget { time: Duration::from_micros(500), ..untimed_budget() };
        [
            limited(50, 8_000_000),
            limited(500, 8_000_000),
            limited(200_000, 2_000),
            limited(5_000, 200_000),
            short,
            untimed_budget(),
        ]
    }

    /// The answer within a budget. If the solver gave up, the reported limit must be the one that was used up.
    fn solve_within((catalog, request): &(Catalog, Request), budget: Budget) -> Result<End, BudgetExceeded> {
        match resolve_within(catalog, request, now(), budget) {
            Ok(resolution) => {
                let mut versions: Vec<String> =
                    resolution.lock.plugins.into_iter().map(|plugin| plugin.version).collect();
                versions.sort();
                Ok(Some(versions))
            }
            Err(Unsolvable::NoSolution(conflict)) => {
                assert!(!conflict.reasons.is_empty(), "a conflict must have a reason");
                Ok(None)
            }
            Err(Unsolvable::GaveUp(gave_up)) => {
                match gave_up.limit {
                    Limit::Steps => assert_eq!(gave_up.steps, budget.steps),
                    Limit::Memory => assert!(gave_up.steps < budget.steps, "{gave_up:?} of {budget:?}"),
                    Limit::Time => assert!(budget.time < Duration::MAX, "{gave_up:?} of {budget:?}"),
                }
                assert!(gave_up.clashing.len() <= 3, "{gave_up:?}");
                Err(gave_up)
            }
            Err(unanswerable @ Unsolvable::Unanswerable(_)) => panic!("the catalog is complete: {unanswerable}"),
        }
    }

    /// Checks that a question has the expected answer within every budget, or that the solver gives up. Within the budget of real questions it must
    /// not give up.
    fn assert_end(label: &str, question: &(Catalog, Request), end: &End) {
        for budget in budgets() {
            match solve_within(question, budget) {
                Ok(found) => assert_eq!(found, *end, "{label} within {budget:?}"),
                Err(gave_up) => assert!(budget != untimed_budget(), "{label}: {gave_up:?}"),
            }
        }
    }

    #[test]
    fn small_ladder_conflicts_or_reports_used_budget() {
        for (plugins, rungs) in [(2, 1), (2, 2), (2, 5), (2, 20), (2, 60), (3, 1), (3, 5), (3, 20)] {
            assert_end(&format!("ladder of {plugins} by {rungs}"), &ladder(plugins, rungs), &None);
        }
    }

    #[test]
    fn small_tower_uses_oldest_releases_or_reports_used_budget() {
        for (plugins, releases) in [(2, 2), (3, 10), (6, 10), (6, 30), (12, 10)] {
            let oldest = Some(vec!["1.0".to_owned(); plugins]);
            assert_end(&format!("tower of {plugins} by {releases}"), &tower(plugins, releases), &oldest);
        }
    }

    #[test]
    fn exceeded_budget_names_clashing_plugins() {
        let gave_up = solve_within(&ladder(3, 60), Budget { steps: 500, ..untimed_budget() }).unwrap_err();
        let BudgetExceeded { steps, limit, clashing } = gave_up;
        assert_eq!((steps, limit), (500, Limit::Steps));
        assert!(!clashing.is_empty() && clashing.iter().all(|name| ["l0", "l1", "l2"].contains(&name.as_str())));
    }

    #[test]
    fn crawling_fleet_answers_every_server_or_reports_used_budget() {
        let (catalog, requests) = crawl(6);
        for budget in [Budget { steps: 500, ..untimed_budget() }, untimed_budget()] {
            let results = resolve_fleet(&catalog, &requests, now(), budget);
            assert_eq!(results.len(), requests.len());
            for (server, result) in results {
                match result {
                    Ok(_) => {}
                    Err(Unsolvable::NoSolution(conflict)) => {
                        assert!(!conflict.reasons.is_empty(), "{server}: a conflict must have a reason");
                    }
                    Err(Unsolvable::GaveUp(BudgetExceeded { steps, limit, clashing })) => {
                        assert!(steps > 0 && clashing.len() <= 3, "{server}: {steps} {limit:?} {clashing:?}");
                    }
                    Err(unsolvable @ Unsolvable::Unanswerable(_)) => {
                        panic!("the catalog is complete: {server}: {unsolvable}")
                    }
                }
            }
        }
    }
}
