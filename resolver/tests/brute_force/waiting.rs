//! Pure. Tests the effect of time on random small problems: a delayed release becomes eligible at the reported time,
//! and no release becomes ineligible while nothing new is published.

use std::cell::Cell;

use jiff::{SignedDuration, Timestamp};
use resolver::compatibility_facts::CompatibilityFacts;
use resolver::explain::{Blocker, ChosenPlugin, Explanation, Reason, WhyOlder};
use resolver::lock::Lock;
use resolver::request::PaperRequest;
use resolver::unusable::Unusable;
use resolver::{Resolution, Unsolvable};

use super::because::Tried;
use super::inside;
use super::least_of;
use super::problem::Problem;
use super::properties::{always, answer, forced, objects_of};
use super::rules::{Book, runs};

/// The same catalog without later publications.
fn still(problem: &Problem) -> Problem {
    let mut still = problem.clone();
    for project in &mut still.catalog.projects {
        project.releases.retain(|release| release.published <= Some(problem.now));
    }
    for version in &mut still.catalog.paper {
        version.builds.retain(|build| build.published <= problem.now);
    }
    still.catalog.images.retain(|image| image.pushed <= problem.now);
    still
}

fn at(problem: &Problem, now: Timestamp) -> Problem {
    Problem { now, ..problem.clone() }
}

fn a_month_later(problem: &Problem) -> Problem {
    at(problem, problem.now + SignedDuration::from_hours(24 * 30))
}

/// A release that is reported as delayed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Held {
    plugin: String,
    version: String,
    ripe_at: Timestamp,
    /// Delayed by its own age. Otherwise a release of its group from the same night is too young.
    itself: bool,
}

/// All releases that an answer reports as delayed.
fn held(answer: &Result<Resolution, Unsolvable>) -> Vec<Held> {
    let mut found = Vec::new();
    let mut note = |plugin: &str, version: &str, unusable: &Unusable| {
        let (Unusable::HeldBack { ripe_at, .. } | Unusable::HeldBackTogether { ripe_at, .. }) = unusable else {
            return;
        };
        let itself = matches!(unusable, Unusable::HeldBack { .. });
        found.push(Held { plugin: plugin.to_owned(), version: version.to_owned(), ripe_at: *ripe_at, itself });
    };
    match answer {
        Ok(Resolution { lock: _, explanation: Explanation::Solved(solved) }) => {
            for (plugin, newer) in ChosenPlugin::newer(&solved.plugins) {
                if let WhyOlder::Unusable { unusable } = &newer.because {
                    note(&plugin.name, &newer.version, unusable);
                }
            }
            let holders = solved.newer_paper.iter().flat_map(|newer| &newer.held_by);
            let holders = holders.chain(solved.unfollowed.iter().map(|left| &left.holder));
            for Blocker { name, nearly, .. } in holders {
                if let Some(nearly) = nearly {
                    note(name, &nearly.version, &nearly.unusable);
                }
            }
        }
        Err(Unsolvable::NoSolution(impossible)) => {
            for reason in &impossible.reasons {
                if let Reason::ReleasesUnusable { plugin, version, unusable, .. } = reason {
                    note(plugin, version, unusable);
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
fn about(problem: &Problem, held: &Held) -> Option<Problem> {
    if ["ViaBackwards", "ViaRewind", "WorldGuard"].contains(&held.plugin.as_str()) {
        return None;
    }
    let objects = objects_of(problem, &held.plugin);
    let mut alone = problem.clone();
    alone.request.plugins.retain(|wish| objects.contains(&wish.object));
    alone.request.facts = CompatibilityFacts::default();
    alone.request.plugins.iter_mut().for_each(|wish| wish.requires.clear());
    let delay = alone.request.plugins.first()?.delay;
    let project = alone.catalog.projects.iter_mut().find(|project| project.name == held.plugin)?;
    let is_it = |ripe: Timestamp| ripe == held.ripe_at;
    project.releases.retain(|release| {
        release.version == held.version && release.published.is_some_and(|published| is_it(published + delay))
    });
    project.releases.truncate(1);
    project.releases.first_mut()?.dependencies.clear();
    Some(alone)
}

fn has(answer: &Result<Resolution, Unsolvable>, held: &Held) -> bool {
    let is_it = |lock: &Lock| lock.plugins.iter().any(|plugin| plugin.name == held.plugin);
    answer.as_ref().is_ok_and(|resolution| is_it(&resolution.lock))
}

/// The outcome of an answer.
fn brief(answer: &Result<Resolution, Unsolvable>) -> Result<String, String> {
    match answer {
        Ok(resolution) => Ok(resolution.lock.to_json()),
        Err(Unsolvable::NoSolution(_)) => Err("no".to_owned()),
        Err(other) => Err(other.to_string()),
    }
}

#[test]
fn delayed_release_becomes_eligible_exactly_at_its_instant() {
    let (said, came) = (Cell::new(0_u64), Cell::new(0_u64));
    always(15_000_000, |problem| {
        let still = still(problem);
        for held in held(&answer(&still)) {
            said.set(said.get() + 1);
            if held.ripe_at <= still.now {
                return Err(format!("{held:?} and it is {}", still.now));
            }
            let then = self::held(&answer(&at(&still, held.ripe_at)));
            if then.iter().any(|other| {
                other.plugin == held.plugin && other.version == held.version && other.ripe_at <= held.ripe_at
            }) {
                return Err(format!("{held:?} is held at that instant"));
            }
            let Some(alone) = about(&still, &held).filter(|_| held.itself) else { continue };
            let before = answer(&at(&alone, held.ripe_at - SignedDuration::from_nanos(1)));
            if has(&before, &held) {
                return Err(format!("{held:?} is used before"));
            }
            let ripe = at(&alone, held.ripe_at);
            let mut without_delay = ripe.clone();
            without_delay.request.plugins.iter_mut().for_each(|wish| wish.delay = SignedDuration::ZERO);
            let (ripe, without_delay) = (answer(&ripe), answer(&without_delay));
            if brief(&ripe) != brief(&without_delay) {
                return Err(format!("{held:?}: {:?}, and without a delay {:?}", brief(&ripe), brief(&without_delay)));
            }
            came.set(came.get() + u64::from(has(&ripe, &held)));
        }
        Ok(())
    });
    assert!(said.get() > least_of(50) && came.get() > least_of(25), "{} were held, {} came", said.get(), came.get());
}

/// The same catalog with only the locked and the running releases of these plugins and of this Minecraft version. The
/// running ones decide which conflicts with unmanaged JARs are tolerated. Other Papers stay, because they affect the
/// meaning of lists.
fn only(problem: &Problem, lock: &Lock) -> Problem {
    let mut only = problem.clone();
    // The page that allows an unmanaged JAR may lose that release here.
    only.request.unmanaged.iter_mut().for_each(|jar| jar.trusted = vec!["*".to_owned()]);
    for paper in only.catalog.paper.iter_mut().filter(|paper| paper.minecraft == lock.minecraft) {
        paper.builds.retain(|build| build.number == lock.build);
    }
    for plugin in &lock.plugins {
        for project in only.catalog.projects.iter_mut().filter(|project| project.id == plugin.project_id) {
            project.releases.retain(|release| release.id == plugin.release_id || runs(&problem.request, release));
        }
    }
    only
}

#[test]
fn eligible_release_is_never_delayed_later() {
    let looked_at = Cell::new(0_u64);
    always(16_000_000, |problem| {
        let mut still = still(problem);
        // The owner of a name depends on all releases that were read, most of which are removed here, as are unmanaged
        // JARs.
        inside::forget_needs(&mut still.catalog);
        still.request.unmanaged.iter_mut().for_each(|jar| jar.depend.clear());
        for paper in &still.catalog.paper {
            let now = forced(&still, &paper.minecraft, &|_| true);
            let Ok(Resolution { lock, explanation: Explanation::Solved(solved) }) = answer(&now) else { continue };
            let later = a_month_later(&now);
            let chosen = |held: &Held| {
                lock.plugins.iter().any(|plugin| plugin.name == held.plugin && plugin.version == held.version)
            };
            if let Some(held) = held(&answer(&later)).iter().find(|held| chosen(held)) {
                return Err(format!("used now on {}, and later {held:?}", paper.minecraft));
            }
            // An excluded plugin may be updated later, with further dependencies.
            if !solved.unfollowed.is_empty() {
                continue;
            }
            let then = answer(&only(&later, &lock)).map_err(|no| format!("{:?} only for now: {no}", lock.plugins))?;
            let ids = |lock: &Lock| lock.plugins.iter().map(|plugin| plugin.release_id.clone()).collect::<Vec<_>>();
            if ids(&then.lock) != ids(&lock) {
                return Err(format!("{:?} now and {:?} later", ids(&lock), ids(&then.lock)));
            }
            looked_at.set(looked_at.get() + lock.plugins.len() as u64);
        }
        Ok(())
    });
    assert!(looked_at.get() > least_of(500), "only {} releases were looked at", looked_at.get());
}

/// Checks that requested releases stay usable. In the order of the Plugin objects, the first change is an upgrade, and
/// later plugins may be downgraded for it. Dependencies have the age and channel of their dependents, which may
/// increase later.
fn none_goes_down(now: &Lock, then: &Lock, later: &Problem, tried: &Tried) -> Result<(), String> {
    let Ok(book) = Book::open(&later.catalog, &later.request, later.now) else {
        return Err("later nobody knows".to_owned());
    };
    for member in book.members.iter().filter(|member| !member.objects.is_empty()) {
        let place = |lock: &Lock| {
            let locked = lock.plugins.iter().find(|plugin| plugin.project_id == member.project.id)?;
            member.usable.iter().position(|release| release.id == locked.release_id)
        };
        let [Some(was), Some(is)] = [now, then].map(place) else {
            return Err(format!("{} may not be used any more as it was", member.project.name));
        };
        if is < was {
            let [was, is] = [was, is].map(|place| &member.usable[place].version);
            return Err(format!("{} {was} now and {is} later", member.project.name));
        }
        if is > was {
            tried.note("a plugin that goes up");
            return Ok(());
        }
    }
    tried.note("a set that stays");
    Ok(())
}

#[test]
fn waiting_never_removes_a_release() {
    let tried = Tried::default();
    always(3_000_000, |problem| {
        let mut still = still(problem);
        match (answer(&still), answer(&a_month_later(&still))) {
            (Ok(now), Err(then @ Unsolvable::NoSolution(_))) => {
                return Err(format!("{:?} only for now: {then}", now.lock));
            }
            (Ok(now), Ok(then)) if then.lock.minecraft < now.lock.minecraft => {
                return Err(format!("Paper {} now and {} later", now.lock.minecraft, then.lock.minecraft));
            }
            (Ok(_) | Err(_), _) => {}
        }
        // With `latest`, the excluded plugins are decided first.
        if still.request.paper == PaperRequest::Latest {
            return Ok(());
        }
        // The owner of a name in a JAR depends on the members, and later there may be more.
        inside::forget_needs(&mut still.catalog);
        still.request.unmanaged.iter_mut().for_each(|jar| jar.depend.clear());
        let later = a_month_later(&still);
        match (answer(&still), answer(&later)) {
            (Ok(now), Ok(then)) if then.lock.minecraft == now.lock.minecraft => {
                none_goes_down(&now.lock, &then.lock, &later, &tried)
            }
            (Ok(_) | Err(_), _) => Ok(()),
        }
    });
    tried.are_enough(&[("a set that stays", 50), ("a plugin that goes up", 3)]);
}
