//! Pure. Tests "why not this release?" on random small problems: the reported reason is true, and the answer for the
//! pinned release is that of exhaustive search.

use std::collections::BTreeMap;
use std::slice;

use resolver::catalog::{Project, Release};
use resolver::explain::{OtherRelease, Pinned, ReleaseState, WhyNotRelease, WhyOlder};
use resolver::lock::Lock;
use resolver::request::{PluginRequest, VersionRequest};
use resolver::{Budget, Fleet, Unsolvable};

use super::because::{Tried, because_is_true};
use super::oracle::{self, Outcome};
use super::problem::Problem;
use super::properties::{always, answer};
use super::rules::{Book, age, runs};
use super::stands::Asked;

/// The problem with every request for this project pinned to a version.
fn pinned(problem: &Problem, wish: &PluginRequest, version: &str) -> Problem {
    let mut pinned = problem.clone();
    for other in pinned.request.plugins.iter_mut().filter(|other| other.key == wish.key) {
        other.version = VersionRequest::Pin { version: version.to_owned() };
    }
    pinned
}

fn read(problem: &Problem) -> Fleet<'_> {
    Fleet::read(&problem.catalog, slice::from_ref(&problem.request), problem.now)
}

fn why_not(problem: &Problem, wish: &PluginRequest, version: &str) -> Option<Result<WhyNotRelease, Unsolvable>> {
    let with_it = pinned(problem, wish, version);
    let (fleet, with_it) = (read(problem), read(&with_it));
    let with_it = with_it.decide(Budget::default());
    fleet.decide(Budget::default()).why_not_release(&problem.request.server, (&wish.object, version), &with_it)
}

fn state_is_true(
    problem: &Problem,
    (project, release): (&Project, &Release),
    lock: Option<&Lock>,
    why: &WhyNotRelease,
    tried: &Tried,
) -> Result<(), String> {
    let chosen = lock.and_then(|lock| lock.plugins.iter().find(|plugin| plugin.project_id == project.id));
    let version = chosen.map(|chosen| chosen.version.as_str());
    if why.instead.as_deref() != version {
        return Err(format!("{version:?} is chosen, and {:?} is told", why.instead));
    }
    let objects = [why.object.clone()];
    let is_out = release.published.is_none_or(|date| date <= problem.now) || runs(&problem.request, release);
    match (&why.state, lock) {
        (ReleaseState::NoSuchRelease { .. }, _) if !is_out => tried.note("no such release"),
        (ReleaseState::Chosen, _) if version == Some(why.version.as_str()) => tried.note("chosen"),
        (ReleaseState::NothingMeets, None) => tried.note("nothing meets"),
        // Other properties test which of several reasons is reported without a version set.
        (ReleaseState::KeptOut { because: WhyOlder::Unusable { .. } }, None) => tried.note("kept out of nothing"),
        (ReleaseState::Older, Some(lock)) => {
            let told = (why.version.as_str(), why.published);
            let Some(asked) = Asked::of(problem, &project.name, told, &lock.minecraft) else { return Ok(()) };
            let newer =
                project.releases.iter().find(|other| chosen.is_some_and(|chosen| other.id == chosen.release_id));
            if asked.goes(problem) == Some(false) || newer.is_some_and(|newer| age(newer) <= age(asked.release)) {
                return Err(format!("{} is not only older", why.version));
            }
            tried.note("older");
        }
        // If no release of the plugin is in the version set, there may be further reasons.
        (ReleaseState::KeptOut { .. }, Some(_)) if chosen.is_none() => tried.note("left behind"),
        (ReleaseState::KeptOut { because }, Some(lock)) => {
            let told = (project.name.as_str(), objects.as_slice(), (why.version.as_str(), why.published));
            because_is_true(problem, lock, told, because, tried)?;
        }
        (state, _) => return Err(format!("{} is {state:?}, and {version:?} is chosen", why.version)),
    }
    Ok(())
}

/// The versions of a version set, by project name.
fn versions<'p>(problem: &'p Problem, ids: &[String]) -> BTreeMap<&'p str, &'p str> {
    let of = |project: &'p Project| {
        let release = project.releases.iter().find(|release| ids.contains(&release.id))?;
        Some((project.name.as_str(), release.version.as_str()))
    };
    problem.catalog.projects.iter().filter_map(of).collect()
}

fn pin_is_true(problem: &Problem, with_it: &Problem, why: &WhyNotRelease, tried: &Tried) -> Result<(), String> {
    let best = |problem: &Problem| {
        Book::open(&problem.catalog, &problem.request, problem.now).map_or(Outcome::Unknown, |book| oracle::best(&book))
    };
    match (&why.pinned, best(with_it)) {
        (None, _) | (Some(_), Outcome::Unknown) => Ok(()),
        (Some(Pinned::NoSet { .. }), Outcome::Nothing) => {
            tried.note("no set");
            Ok(())
        }
        // Two of its files have the same plugin name, so the version set is found but stopped.
        (Some(Pinned::NoSet { answer }), Outcome::Chosen { .. }) if answer.stopped_by().is_some() => {
            tried.note("stopped");
            Ok(())
        }
        (Some(Pinned::Set { paper, changes }), Outcome::Chosen { minecraft, build, releases, .. }) => {
            if (paper.minecraft.as_str(), paper.build) != (minecraft.as_str(), build) {
                return Err(format!("with the pin it is {minecraft} {build}, and {paper:?} is told"));
            }
            let Outcome::Chosen { releases: before, .. } = best(problem) else { return Ok(()) };
            let (was, is) = (versions(problem, &before), versions(with_it, &releases));
            let other = |name: &&&str| **name != why.plugin && was.get(**name) != is.get(**name);
            let names = was.keys().chain(is.keys().filter(|name| !was.contains_key(**name)));
            let of = |set: &BTreeMap<&str, &str>, name: &str| set.get(name).map(|version| (*version).to_owned());
            let change = |name: &&str| OtherRelease {
                plugin: (*name).to_owned(),
                version: of(&is, name),
                instead_of: of(&was, name),
            };
            let mut expected: Vec<OtherRelease> = names.filter(other).map(change).collect();
            expected.sort_by(|a, b| a.plugin.cmp(&b.plugin));
            if *changes != expected {
                return Err(format!("with the pin these change: {expected:?}, and {changes:?} are told"));
            }
            tried.note(if changes.is_empty() { "a set" } else { "a set with others" });
            Ok(())
        }
        (Some(told), found) => Err(format!("with the pin there is {found:?}, and {told:?} is told")),
    }
}

#[test]
fn missed_release_reason_and_pin_outcome_are_true() {
    let tried = Tried::default();
    always(26_000_000, |problem| {
        let lock = answer(problem).ok().map(|yes| yes.lock);
        for wish in &problem.request.plugins {
            let Some(project) = problem.catalog.project(&wish.key) else { continue };
            for release in &project.releases {
                // Among several uploads of one version the newest counts, which another property tests.
                if project.releases.iter().filter(|other| other.version == release.version).count() > 1 {
                    continue;
                }
                let why = match why_not(problem, wish, &release.version) {
                    Some(Ok(why)) => why,
                    Some(Err(Unsolvable::Unanswerable(_))) => continue,
                    other => return Err(format!("{} {}: {other:?}", project.name, release.version)),
                };
                state_is_true(problem, (project, release), lock.as_ref(), &why, &tried)?;
                pin_is_true(problem, &pinned(problem, wish, &release.version), &why, &tried)?;
            }
        }
        Ok(())
    });
    tried.are_enough(&[
        ("a set", 80),
        ("a set with others", 4),
        ("chosen", 50),
        ("no set", 250),
        ("no such release", 14),
        ("notListed", 8),
        ("nothing meets", 240),
        ("older", 18),
        ("others", 1),
        ("pinned", 4),
        ("unusable channel", 11),
        ("unusable heldBack", 2),
    ]);
}
