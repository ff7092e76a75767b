//! Pure. Tests the effect of time on random small problems: a delayed release becomes eligible at the reported time,
//! and without new publications no eligible release becomes ineligible.

use std::cell::Cell;

use jiff::{SignedDuration, Timestamp};
use resolver::explanation::{Blocker, ChosenPlugin, Explanation, Reason, WhyOlder};
use resolver::model::compatibility_facts::CompatibilityFacts;
use resolver::model::lock::Lock;
use resolver::model::request::PaperRequest;
use resolver::model::unusable::Unusable;
use resolver::{Resolution, Unsolvable};

use super::problem::Problem;
use super::properties::{for_all, force_paper, objects_of, resolve_problem};
use super::rules::{ServerRules, is_running};
use super::why_older::CaseCounts;
use super::{jar_contents, required_count};

/// The problem without releases, builds and images that are published later than its time.
fn without_later_releases(problem: &Problem) -> Problem {
    let mut current = problem.clone();
    for project in &mut current.catalog.projects {
        project.releases.retain(|release| release.published <= Some(problem.now));
    }
    for version in &mut current.catalog.paper {
        version.builds.retain(|build| build.published <= problem.now);
    }
    current.catalog.images.retain(|image| image.pushed <= problem.now);
    current
}

fn at_time(problem: &Problem, now: Timestamp) -> Problem {
    Problem { now, ..problem.clone() }
}

fn one_month_later(problem: &Problem) -> Problem {
    at_time(problem, problem.now + SignedDuration::from_hours(24 * 30))
}

/// A release that is reported as delayed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct DelayedRelease {
    plugin: String,
    version: String,
    eligible_at: Timestamp,
    /// Whether its own age delays it. Otherwise a release of its delay group from the same hour delays it.
    by_own_age: bool,
}

/// All releases that an answer reports as delayed.
fn delayed_releases(result: &Result<Resolution, Unsolvable>) -> Vec<DelayedRelease> {
    let mut found = Vec::new();
    let mut record = |plugin: &str, version: &str, unusable: &Unusable| {
        let (Unusable::Delayed { eligible_at, .. } | Unusable::DelayedWithCompanion { eligible_at, .. }) = unusable
        else {
            return;
        };
        let by_own_age = matches!(unusable, Unusable::Delayed { .. });
        found.push(DelayedRelease {
            plugin: plugin.to_owned(),
            version: version.to_owned(),
            eligible_at: *eligible_at,
            by_own_age,
        });
    };
    match result {
        Ok(Resolution { lock: _, explanation: Explanation::Solved(solved) }) => {
            for (plugin, newer) in ChosenPlugin::newer(&solved.plugins) {
                if let WhyOlder::Unusable { unusable } = &newer.because {
                    record(&plugin.name, &newer.version, unusable);
                }
            }
            let blockers = solved.newer_paper.iter().flat_map(|newer| &newer.blocked_by);
            let blockers = blockers.chain(solved.left_behind.iter().map(|plugin| &plugin.blocker));
            for Blocker { name, nearly, .. } in blockers {
                if let Some(nearly) = nearly {
                    record(name, &nearly.version, &nearly.unusable);
                }
            }
        }
        Err(Unsolvable::NoSolution(impossible)) => {
            for reason in &impossible.reasons {
                if let Reason::ReleasesUnusable { plugin, version, unusable, .. } = reason {
                    record(plugin, version, unusable);
                }
            }
        }
        Ok(_) | Err(_) => {}
    }
    found
}

/// The query with one release of a requested plugin as its only release, without dependencies. `None` if the plugin is
/// not requested, because the delay of its dependents then applies. `None` also if a built-in table gives it
/// dependencies, which may be delayed too.
fn isolated(problem: &Problem, delayed: &DelayedRelease) -> Option<Problem> {
    if ["ViaBackwards", "ViaRewind", "WorldGuard"].contains(&delayed.plugin.as_str()) {
        return None;
    }
    let objects = objects_of(problem, &delayed.plugin);
    let mut single = problem.clone();
    single.request.plugins.retain(|plugin_request| objects.contains(&plugin_request.object));
    single.request.facts = CompatibilityFacts::default();
    single.request.plugins.iter_mut().for_each(|plugin_request| plugin_request.requires.clear());
    let delay = single.request.plugins.first()?.delay;
    let project = single.catalog.projects.iter_mut().find(|project| project.name == delayed.plugin)?;
    let is_same = |eligible_at: Timestamp| eligible_at == delayed.eligible_at;
    project.releases.retain(|release| {
        release.version == delayed.version && release.published.is_some_and(|published| is_same(published + delay))
    });
    project.releases.truncate(1);
    project.releases.first_mut()?.dependencies.clear();
    Some(single)
}

/// Whether the plugin of the release is in the version set.
fn is_installed(result: &Result<Resolution, Unsolvable>, delayed: &DelayedRelease) -> bool {
    let is_same = |lock: &Lock| lock.plugins.iter().any(|plugin| plugin.name == delayed.plugin);
    result.as_ref().is_ok_and(|resolution| is_same(&resolution.lock))
}

/// The lock as text, or the kind of failure.
fn outcome_text(result: &Result<Resolution, Unsolvable>) -> Result<String, String> {
    match result {
        Ok(resolution) => Ok(resolution.lock.to_json()),
        Err(Unsolvable::NoSolution(_)) => Err("no solution".to_owned()),
        Err(other) => Err(other.to_string()),
    }
}

#[test]
fn delayed_release_becomes_eligible_at_reported_time() {
    let (reported_count, installed_count) = (Cell::new(0_u64), Cell::new(0_u64));
    for_all(15_000_000, |problem| {
        let current = without_later_releases(problem);
        for delayed in delayed_releases(&resolve_problem(&current)) {
            reported_count.set(reported_count.get() + 1);
            if delayed.eligible_at <= current.now {
                return Err(format!("{delayed:?} is reported as delayed, but it is already {}", current.now));
            }
            let then = delayed_releases(&resolve_problem(&at_time(&current, delayed.eligible_at)));
            if then.iter().any(|other| {
                (&other.plugin, &other.version) == (&delayed.plugin, &delayed.version)
                    && other.eligible_at <= delayed.eligible_at
            }) {
                return Err(format!("{delayed:?} is still reported as delayed at the time when it becomes eligible"));
            }
            let Some(single) = isolated(&current, &delayed).filter(|_| delayed.by_own_age) else { continue };
            let before = resolve_problem(&at_time(&single, delayed.eligible_at - SignedDuration::from_nanos(1)));
            if is_installed(&before, &delayed) {
                return Err(format!("{delayed:?} is installed before it becomes eligible"));
            }
            let at_instant = at_time(&single, delayed.eligible_at);
            let mut without_delay = at_instant.clone();
            without_delay
                .request
                .plugins
                .iter_mut()
                .for_each(|plugin_request| plugin_request.delay = SignedDuration::ZERO);
            let (at_instant, without_delay) = (resolve_problem(&at_instant), resolve_problem(&without_delay));
            if outcome_text(&at_instant) != outcome_text(&without_delay) {
                return Err(format!(
                    "{delayed:?}: the answer is {:?} when it becomes eligible, but {:?} without a delay",
                    outcome_text(&at_instant),
                    outcome_text(&without_delay)
                ));
            }
            installed_count.set(installed_count.get() + u64::from(is_installed(&at_instant, &delayed)));
        }
        Ok(())
    });
    assert!(
        reported_count.get() > required_count(50) && installed_count.get() > required_count(25),
        "too few cases: {} releases were delayed, {} of them were installed later",
        reported_count.get(),
        installed_count.get()
    );
}

/// The problem with only the locked and the running releases of the locked plugins, and only the locked build of the
/// locked Minecraft version. Running releases are kept, because they determine which conflicts with unmanaged JARs are
/// tolerated. Other Papers are kept, because they determine for which Papers a list counts.
fn only_locked(problem: &Problem, lock: &Lock) -> Problem {
    let mut restricted = problem.clone();
    // The release of an unmanaged JAR, whose page allows the Minecraft version, may be removed here.
    restricted.request.unmanaged.iter_mut().for_each(|jar| jar.trusted = vec!["*".to_owned()]);
    for paper in restricted.catalog.paper.iter_mut().filter(|paper| paper.minecraft == lock.minecraft) {
        paper.builds.retain(|build| build.number == lock.build);
    }
    for plugin in &lock.plugins {
        for project in restricted.catalog.projects.iter_mut().filter(|project| project.id == plugin.project_id) {
            project.releases.retain(|release| release.id == plugin.release_id || is_running(&problem.request, release));
        }
    }
    restricted
}

#[test]
fn eligible_release_is_never_delayed_later() {
    let checked = Cell::new(0_u64);
    for_all(16_000_000, |problem| {
        let mut current = without_later_releases(problem);
        // Which plugin has a required name depends on all releases of the catalog, and most of them are removed below.
        jar_contents::clear_needs(&mut current.catalog);
        current.request.unmanaged.iter_mut().for_each(|jar| jar.depend.clear());
        for paper in &current.catalog.paper {
            let now = force_paper(&current, &paper.minecraft, &|_| true);
            let Ok(Resolution { lock, explanation: Explanation::Solved(solved) }) = resolve_problem(&now) else {
                continue;
            };
            let later = one_month_later(&now);
            let chosen = |delayed: &DelayedRelease| {
                lock.plugins.iter().any(|plugin| plugin.name == delayed.plugin && plugin.version == delayed.version)
            };
            if let Some(delayed) = delayed_releases(&resolve_problem(&later)).iter().find(|delayed| chosen(delayed)) {
                return Err(format!(
                    "a release is chosen now on {}, but delayed one month later: {delayed:?}",
                    paper.minecraft
                ));
            }
            // An excluded plugin may be updated later, with further dependencies.
            if !solved.left_behind.is_empty() {
                continue;
            }
            let then = resolve_problem(&only_locked(&later, &lock))
                .map_err(|unsolvable| format!("{:?} is valid now, but one month later: {unsolvable}", lock.plugins))?;
            let ids = |lock: &Lock| lock.plugins.iter().map(|plugin| plugin.release_id.clone()).collect::<Vec<_>>();
            if ids(&then.lock) != ids(&lock) {
                return Err(format!("the releases are {:?} now and {:?} one month later", ids(&lock), ids(&then.lock)));
            }
            checked.set(checked.get() + lock.plugins.len() as u64);
        }
        Ok(())
    });
    assert!(checked.get() > required_count(500), "too few releases were checked: {}", checked.get());
}

/// Checks that the chosen releases of requested plugins stay usable, and that the first change in the order of the
/// Plugin objects is an upgrade. Plugins after it may be downgraded for that upgrade. Dependencies are not checked,
/// because their delay and channel are those of their dependents, which may change.
fn check_no_downgrade(now: &Lock, then: &Lock, later: &Problem, counts: &CaseCounts) -> Result<(), String> {
    let Ok(rules) = ServerRules::new(&later.catalog, &later.request, later.now) else {
        return Err("the answer is unknown one month later".to_owned());
    };
    for member in rules.members.iter().filter(|member| !member.objects.is_empty()) {
        let index = |lock: &Lock| {
            let locked = lock.plugins.iter().find(|plugin| plugin.project_id == member.project.id)?;
            member.usable.iter().position(|release| release.id == locked.release_id)
        };
        let [Some(was), Some(is)] = [now, then].map(index) else {
            return Err(format!(
                "{} is missing from a lock, or its release is not usable one month later",
                member.project.name
            ));
        };
        if is < was {
            let [was, is] = [was, is].map(|index| &member.usable[index].version);
            return Err(format!("{} is downgraded from {was} to {is} one month later", member.project.name));
        }
        if is > was {
            counts.record("an upgraded plugin");
            return Ok(());
        }
    }
    counts.record("an unchanged version set");
    Ok(())
}

#[test]
fn answer_one_month_later_is_no_downgrade() {
    let counts = CaseCounts::default();
    for_all(3_000_000, |problem| {
        let mut current = without_later_releases(problem);
        match (resolve_problem(&current), resolve_problem(&one_month_later(&current))) {
            (Ok(now), Err(then @ Unsolvable::NoSolution(_))) => {
                return Err(format!("{:?} is valid now, but one month later: {then}", now.lock));
            }
            (Ok(now), Ok(then)) if then.lock.minecraft < now.lock.minecraft => {
                return Err(format!(
                    "Paper is downgraded from {} to {} one month later",
                    now.lock.minecraft, then.lock.minecraft
                ));
            }
            (Ok(_) | Err(_), _) => {}
        }
        // With strategy `latest`, other excluded plugins may change the versions of the rest.
        if current.request.paper == PaperRequest::Latest {
            return Ok(());
        }
        // Which plugin has a required name depends on the members, and there may be more members later.
        jar_contents::clear_needs(&mut current.catalog);
        current.request.unmanaged.iter_mut().for_each(|jar| jar.depend.clear());
        let later = one_month_later(&current);
        match (resolve_problem(&current), resolve_problem(&later)) {
            (Ok(now), Ok(then)) if then.lock.minecraft == now.lock.minecraft => {
                check_no_downgrade(&now.lock, &then.lock, &later, &counts)
            }
            (Ok(_) | Err(_), _) => Ok(()),
        }
    });
    counts.assert_enough(&[("an unchanged version set", 50), ("an upgraded plugin", 3)]);
}
