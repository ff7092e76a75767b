//! Pure. Tests the query "why not this release?" on random small problems: the reported reason is true, and the result
//! with the release pinned is that of exhaustive search.

use std::collections::BTreeMap;
use std::slice;

use resolver::explanation::{OtherRelease, Pinned, ReleaseState, WhyNotRelease, WhyOlder};
use resolver::model::catalog::{Project, Release};
use resolver::model::lock::Lock;
use resolver::model::request::{PluginRequest, VersionRequest};
use resolver::{Budget, Fleet, Unsolvable};

use super::blockers_complete::Candidate;
use super::oracle::{self, Outcome, is_older};
use super::problem::Problem;
use super::properties::{for_all, resolve_problem};
use super::rules::{ServerRules, is_running};
use super::why_older::{CaseCounts, check_why_older};

/// The problem with every request for this project pinned to a version.
fn with_pin(problem: &Problem, plugin_request: &PluginRequest, version: &str) -> Problem {
    let mut pinned = problem.clone();
    for other in pinned.request.plugins.iter_mut().filter(|other| other.key == plugin_request.key) {
        other.version = VersionRequest::Pin { version: version.to_owned() };
    }
    pinned
}

fn read_fleet(problem: &Problem) -> Fleet<'_> {
    Fleet::read(&problem.catalog, slice::from_ref(&problem.request), problem.now)
}

fn why_not(
    problem: &Problem,
    plugin_request: &PluginRequest,
    version: &str,
) -> Option<Result<WhyNotRelease, Unsolvable>> {
    let with_pin = with_pin(problem, plugin_request, version);
    let (fleet, with_pin) = (read_fleet(problem), read_fleet(&with_pin));
    let with_pin = with_pin.decide(Budget::default());
    fleet.decide(Budget::default()).why_not_release(
        &problem.request.server,
        (&plugin_request.object, version),
        &with_pin,
    )
}

fn check_state(
    problem: &Problem,
    (project, release): (&Project, &Release),
    lock: Option<&Lock>,
    why: &WhyNotRelease,
    counts: &CaseCounts,
) -> Result<(), String> {
    let chosen = lock.and_then(|lock| lock.plugins.iter().find(|plugin| plugin.project_id == project.id));
    let version = chosen.map(|chosen| chosen.version.as_str());
    if why.instead.as_deref() != version {
        return Err(format!("{version:?} is chosen, but {:?} is reported", why.instead));
    }
    let objects = [why.object.clone()];
    let is_published =
        release.published.is_none_or(|date| date <= problem.now) || is_running(&problem.request, release);
    match (&why.state, lock) {
        (ReleaseState::NoSuchRelease { .. }, _) if !is_published => counts.record("no such release"),
        (ReleaseState::Chosen, _) if version == Some(why.version.as_str()) => counts.record("chosen"),
        (ReleaseState::NoReleaseMatches, None) => counts.record("no release matches"),
        // Without a version set, other tests check which of several reasons is reported.
        (ReleaseState::Excluded { because: WhyOlder::Unusable { .. } }, None) => {
            counts.record("excluded without a version set");
        }
        (ReleaseState::Older, Some(lock)) => {
            let reported = (why.version.as_str(), why.published);
            let Some(candidate) = Candidate::find(problem, &project.name, reported, &lock.minecraft) else {
                return Ok(());
            };
            let newer =
                project.releases.iter().find(|other| chosen.is_some_and(|chosen| other.id == chosen.release_id));
            if candidate.is_allowed(problem) == Some(false)
                || newer.is_some_and(|newer| !is_older(project, candidate.release, newer))
            {
                return Err(format!("{} is reported as only older, but it is ineligible or not older", why.version));
            }
            counts.record("older");
        }
        // If the plugin is not in the version set, there may be further reasons.
        (ReleaseState::Excluded { .. }, Some(_)) if chosen.is_none() => counts.record("plugin not in the version set"),
        (ReleaseState::Excluded { because }, Some(lock)) => {
            let reported = (project.name.as_str(), objects.as_slice(), (why.version.as_str(), why.published));
            check_why_older(problem, lock, reported, because, counts)?;
        }
        (state, _) => return Err(format!("{} is reported as {state:?}, but {version:?} is chosen", why.version)),
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

fn check_pin(problem: &Problem, with_pin: &Problem, why: &WhyNotRelease, counts: &CaseCounts) -> Result<(), String> {
    let best = |problem: &Problem| {
        ServerRules::new(&problem.catalog, &problem.request, problem.now)
            .map_or(Outcome::Unknown, |rules| oracle::best(&rules))
    };
    match (&why.pinned, best(with_pin)) {
        (None, _) | (Some(_), Outcome::Unknown) => Ok(()),
        (Some(Pinned::NoSet { .. }), Outcome::NoSolution) => {
            counts.record("no version set with the pin");
            Ok(())
        }
        // The version set exists, but two of its files have the same plugin name, so the server cannot run it.
        (Some(Pinned::NoSet { answer }), Outcome::Chosen { .. }) if answer.deploy_blocker().is_some() => {
            counts.record("a version set that a name conflict stops");
            Ok(())
        }
        (Some(Pinned::Set { paper, changes }), Outcome::Chosen { minecraft, build, releases, .. }) => {
            if (paper.minecraft.as_str(), paper.build) != (minecraft.as_str(), build) {
                return Err(format!("with the pin, Paper is {minecraft} build {build}, but {paper:?} is reported"));
            }
            let Outcome::Chosen { releases: before, .. } = best(problem) else { return Ok(()) };
            let (was, is) = (versions(problem, &before), versions(with_pin, &releases));
            let other = |name: &&&str| **name != why.plugin && was.get(**name) != is.get(**name);
            let names = was.keys().chain(is.keys().filter(|name| !was.contains_key(**name)));
            let of =
                |by_name: &BTreeMap<&str, &str>, name: &str| by_name.get(name).map(|version| (*version).to_owned());
            let change = |name: &&str| OtherRelease {
                plugin: (*name).to_owned(),
                version: of(&is, name),
                instead_of: of(&was, name),
            };
            let mut expected: Vec<OtherRelease> = names.filter(other).map(change).collect();
            expected.sort_by(|a, b| a.plugin.cmp(&b.plugin));
            if *changes != expected {
                return Err(format!("with the pin, {expected:?} change, but {changes:?} are reported"));
            }
            let kind = if changes.is_empty() { "no other change with the pin" } else { "other changes with the pin" };
            counts.record(kind);
            Ok(())
        }
        (Some(reported), found) => Err(format!("with the pin, the result is {found:?}, but {reported:?} is reported")),
    }
}

#[test]
fn why_not_release_reason_and_pinned_result_are_true() {
    let counts = CaseCounts::default();
    for_all(26_000_000, |problem| {
        let lock = resolve_problem(problem).ok().map(|resolution| resolution.lock);
        for plugin_request in &problem.request.plugins {
            let Some(project) = problem.catalog.project(&plugin_request.key) else { continue };
            for release in &project.releases {
                // If a version was uploaded several times, the newest upload counts. Another test checks that.
                if project.releases.iter().filter(|other| other.version == release.version).count() > 1 {
                    continue;
                }
                let why = match why_not(problem, plugin_request, &release.version) {
                    Some(Ok(why)) => why,
                    Some(Err(Unsolvable::Unanswerable(_))) => continue,
                    other => return Err(format!("{} {}: {other:?}", project.name, release.version)),
                };
                check_state(problem, (project, release), lock.as_ref(), &why, &counts)?;
                check_pin(problem, &with_pin(problem, plugin_request, &release.version), &why, &counts)?;
            }
        }
        Ok(())
    });
    counts.assert_enough(&[
        ("no other change with the pin", 80),
        ("other changes with the pin", 4),
        ("chosen", 50),
        ("no version set with the pin", 250),
        ("no such release", 14),
        ("notListed", 8),
        ("no release matches", 240),
        ("older", 18),
        ("others", 1),
        ("pinned", 4),
        ("unusable channel", 11),
        ("unusable delayed", 2),
    ]);
}
