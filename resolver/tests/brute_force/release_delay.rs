//! Pure. Tests the effect of time on random small problems: a delayed release becomes eligible at the reported time,
//! and no release becomes ineligible while nothing new is published.

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
use super::rules::{Book, is_running};
use super::why_older::Tried;
use super::{jar_contents, required_count};

/// The same catalog without later publications.
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
struct Held {
    plugin: String,
    version: String,
    eligible_at: Timestamp,
    /// Delayed by its own age. Otherwise a release of its group from the same night is too young.
    by_own_age: bool,
}

/// All releases that an answer reports as delayed.
fn delayed_releases(result: &Result<Resolution, Unsolvable>) -> Vec<Held> {
    let mut found = Vec::new();
    let mut record = |plugin: &str, version: &str, unusable: &Unusable| {
        let (Unusable::Delayed { eligible_at, .. } | Unusable::DelayedWithCompanion { eligible_at, .. }) = unusable
        else {
            return;
        };
        let by_own_age = matches!(unusable, Unusable::Delayed { .. });
        found.push(Held {
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

/// The query about one release of a requested plugin, without its other releases and without possible dependencies.
/// `None` if the plugin is not requested, because its dependents then decide on its age, or if a built-in table
/// contains its needs, which may be as young.
fn isolated(problem: &Problem, held: &Held) -> Option<Problem> {
    if ["ViaBackwards", "ViaRewind", "WorldGuard"].contains(&held.plugin.as_str()) {
        return None;
    }
    let objects = objects_of(problem, &held.plugin);
    let mut single = problem.clone();
    single.request.plugins.retain(|plugin_request| objects.contains(&plugin_request.object));
    single.request.facts = CompatibilityFacts::default();
    single.request.plugins.iter_mut().for_each(|plugin_request| plugin_request.requires.clear());
    let delay = single.request.plugins.first()?.delay;
    let project = single.catalog.projects.iter_mut().find(|project| project.name == held.plugin)?;
    let is_same = |eligible_at: Timestamp| eligible_at == held.eligible_at;
    project.releases.retain(|release| {
        release.version == held.version && release.published.is_some_and(|published| is_same(published + delay))
    });
    project.releases.truncate(1);
    project.releases.first_mut()?.dependencies.clear();
    Some(single)
}

fn is_installed(result: &Result<Resolution, Unsolvable>, held: &Held) -> bool {
    let is_same = |lock: &Lock| lock.plugins.iter().any(|plugin| plugin.name == held.plugin);
    result.as_ref().is_ok_and(|resolution| is_same(&resolution.lock))
}

/// The outcome of an answer.
fn outcome_text(result: &Result<Resolution, Unsolvable>) -> Result<String, String> {
    match result {
        Ok(resolution) => Ok(resolution.lock.to_json()),
        Err(Unsolvable::NoSolution(_)) => Err("no".to_owned()),
        Err(other) => Err(other.to_string()),
    }
}

#[test]
fn delayed_release_becomes_eligible_exactly_at_its_instant() {
    let (reported_count, installed_count) = (Cell::new(0_u64), Cell::new(0_u64));
    for_all(15_000_000, |problem| {
        let current = without_later_releases(problem);
        for held in delayed_releases(&resolve_problem(&current)) {
            reported_count.set(reported_count.get() + 1);
            if held.eligible_at <= current.now {
                return Err(format!("{held:?} and it is {}", current.now));
            }
            let then = delayed_releases(&resolve_problem(&at_time(&current, held.eligible_at)));
            if then.iter().any(|other| {
                other.plugin == held.plugin && other.version == held.version && other.eligible_at <= held.eligible_at
            }) {
                return Err(format!("{held:?} is held at that instant"));
            }
            let Some(single) = isolated(&current, &held).filter(|_| held.by_own_age) else { continue };
            let before = resolve_problem(&at_time(&single, held.eligible_at - SignedDuration::from_nanos(1)));
            if is_installed(&before, &held) {
                return Err(format!("{held:?} is used before"));
            }
            let at_instant = at_time(&single, held.eligible_at);
            let mut without_delay = at_instant.clone();
            without_delay
                .request
                .plugins
                .iter_mut()
                .for_each(|plugin_request| plugin_request.delay = SignedDuration::ZERO);
            let (at_instant, without_delay) = (resolve_problem(&at_instant), resolve_problem(&without_delay));
            if outcome_text(&at_instant) != outcome_text(&without_delay) {
                return Err(format!(
                    "{held:?}: {:?}, and without a delay {:?}",
                    outcome_text(&at_instant),
                    outcome_text(&without_delay)
                ));
            }
            installed_count.set(installed_count.get() + u64::from(is_installed(&at_instant, &held)));
        }
        Ok(())
    });
    assert!(
        reported_count.get() > required_count(50) && installed_count.get() > required_count(25),
        "{} were delayed, {} were installed",
        reported_count.get(),
        installed_count.get()
    );
}

/// The same catalog with only the locked and the running releases of these plugins and of this Minecraft version. The
/// running ones decide which conflicts with unmanaged JARs are tolerated. Other Papers stay, because they affect the
/// meaning of lists.
fn only_locked(problem: &Problem, lock: &Lock) -> Problem {
    let mut restricted = problem.clone();
    // The page that allows an unmanaged JAR may lose that release here.
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
        // The owner of a name depends on all releases that were read, most of which are removed here, as are unmanaged
        // JARs.
        jar_contents::clear_needs(&mut current.catalog);
        current.request.unmanaged.iter_mut().for_each(|jar| jar.depend.clear());
        for paper in &current.catalog.paper {
            let now = force_paper(&current, &paper.minecraft, &|_| true);
            let Ok(Resolution { lock, explanation: Explanation::Solved(solved) }) = resolve_problem(&now) else {
                continue;
            };
            let later = one_month_later(&now);
            let chosen = |held: &Held| {
                lock.plugins.iter().any(|plugin| plugin.name == held.plugin && plugin.version == held.version)
            };
            if let Some(held) = delayed_releases(&resolve_problem(&later)).iter().find(|held| chosen(held)) {
                return Err(format!("used now on {}, and later {held:?}", paper.minecraft));
            }
            // An excluded plugin may be updated later, with further dependencies.
            if !solved.left_behind.is_empty() {
                continue;
            }
            let then = resolve_problem(&only_locked(&later, &lock))
                .map_err(|no| format!("{:?} only for now: {no}", lock.plugins))?;
            let ids = |lock: &Lock| lock.plugins.iter().map(|plugin| plugin.release_id.clone()).collect::<Vec<_>>();
            if ids(&then.lock) != ids(&lock) {
                return Err(format!("{:?} now and {:?} later", ids(&lock), ids(&then.lock)));
            }
            checked.set(checked.get() + lock.plugins.len() as u64);
        }
        Ok(())
    });
    assert!(checked.get() > required_count(500), "only {} releases were checked", checked.get());
}

/// Checks that requested releases stay usable. In the order of the Plugin objects, the first change is an upgrade, and
/// later plugins may be downgraded for it. Dependencies have the age and channel of their dependents, which may
/// increase later.
fn check_no_downgrade(now: &Lock, then: &Lock, later: &Problem, tried: &Tried) -> Result<(), String> {
    let Ok(book) = Book::new(&later.catalog, &later.request, later.now) else {
        return Err("later nobody knows".to_owned());
    };
    for member in book.members.iter().filter(|member| !member.objects.is_empty()) {
        let index = |lock: &Lock| {
            let locked = lock.plugins.iter().find(|plugin| plugin.project_id == member.project.id)?;
            member.usable.iter().position(|release| release.id == locked.release_id)
        };
        let [Some(was), Some(is)] = [now, then].map(index) else {
            return Err(format!("{} may not be used any more as it was", member.project.name));
        };
        if is < was {
            let [was, is] = [was, is].map(|index| &member.usable[index].version);
            return Err(format!("{} {was} now and {is} later", member.project.name));
        }
        if is > was {
            tried.record("a plugin that goes up");
            return Ok(());
        }
    }
    tried.record("a set that stays");
    Ok(())
}

#[test]
fn waiting_never_removes_a_release() {
    let tried = Tried::default();
    for_all(3_000_000, |problem| {
        let mut current = without_later_releases(problem);
        match (resolve_problem(&current), resolve_problem(&one_month_later(&current))) {
            (Ok(now), Err(then @ Unsolvable::NoSolution(_))) => {
                return Err(format!("{:?} only for now: {then}", now.lock));
            }
            (Ok(now), Ok(then)) if then.lock.minecraft < now.lock.minecraft => {
                return Err(format!("Paper {} now and {} later", now.lock.minecraft, then.lock.minecraft));
            }
            (Ok(_) | Err(_), _) => {}
        }
        // With `latest`, the excluded plugins are decided first.
        if current.request.paper == PaperRequest::Latest {
            return Ok(());
        }
        // The owner of a name in a JAR depends on the members, and later there may be more.
        jar_contents::clear_needs(&mut current.catalog);
        current.request.unmanaged.iter_mut().for_each(|jar| jar.depend.clear());
        let later = one_month_later(&current);
        match (resolve_problem(&current), resolve_problem(&later)) {
            (Ok(now), Ok(then)) if then.lock.minecraft == now.lock.minecraft => {
                check_no_downgrade(&now.lock, &then.lock, &later, &tried)
            }
            (Ok(_) | Err(_), _) => Ok(()),
        }
    });
    tried.assert_enough(&[("a set that stays", 50), ("a plugin that goes up", 3)]);
}
