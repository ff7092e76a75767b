//! Pure. Adds unmanaged JARs with a known release to random problems, with dependency lines and facts about them. Their
//! plugin is not requested.
//!
//! It uses its own random numbers, so that the rest of a problem does not change.

use resolver::catalog::{Dependency, DependencyKind, Owner, Source};
use resolver::compatibility_facts::{Requirement, VersionFact};
use resolver::unmanaged_jar::UnmanagedJar;

use super::generate::Dice;
use super::problem::Problem;
use super::rules::place_of;
use super::wishes::range;

/// In some problems, installs a plugin as an unmanaged file instead of requesting it.
pub(crate) fn scatter(dice: &mut Dice, problem: &mut Problem) {
    let Problem { catalog, request, now: _ } = problem;
    if !dice.chance(25) || catalog.projects.len() < 2 {
        return;
    }
    let at = dice.below(catalog.projects.len());
    request.plugins.retain(|wish| place_of(catalog, &wish.key) != Some(at));
    let own = dice.below(catalog.projects[at].releases.len());
    let sha256 = "of known.jar".to_owned();
    let owner = Owner {
        project: catalog.projects[at].key.clone(),
        release: Some(catalog.projects[at].releases[own].id.clone()),
    };
    catalog.owners.insert(sha256.clone(), owner);
    request.unmanaged.push(UnmanagedJar {
        file: "known.jar".to_owned(),
        sha256: Some(sha256),
        sha512: None,
        name: Some(catalog.projects[at].name.clone()),
        provides: Vec::new(),
        depend: Vec::new(),
        api_version: None,
        java: None,
        trusted: if dice.chance(80) { vec!["*".to_owned()] } else { Vec::new() },
    });
    // Pages of files and of Hangar have fewer lines, see `sites`.
    for other in (0..catalog.projects.len()).filter(|other| *other != at) {
        let by_page = [at, other].iter().all(|place| catalog.projects[*place].key.source == Source::Modrinth);
        if by_page && dice.chance(40) {
            let line = line(dice, &catalog.projects[other]);
            catalog.projects[at].releases[own].dependencies.push(line);
        }
        for place in 0..catalog.projects[other].releases.len() {
            if by_page && dice.chance(25) {
                let line = line(dice, &catalog.projects[at]);
                catalog.projects[other].releases[place].dependencies.push(line);
            }
        }
        if dice.chance(30) {
            let (plugin, needed) = if dice.chance(50) { (at, other) } else { (other, at) };
            let (plugin, needed) = (&catalog.projects[plugin], &catalog.projects[needed]);
            let mut facts = request.facts.all().to_vec();
            facts.push(VersionFact {
                plugin: plugin.name.clone(),
                releases: if dice.chance(50) { range(dice, plugin) } else { "*".parse().unwrap() },
                requires: Requirement { plugin: needed.name.clone(), version: range(dice, needed) },
                source: "who put it there".to_owned(),
                date: "2026-01-11".parse().unwrap(),
            });
            request.facts = facts.into();
        }
    }
    let known = &catalog.projects[at];
    for wish in &mut request.plugins {
        if dice.chance(15) {
            wish.requires.push(Requirement { plugin: known.id.clone(), version: range(dice, known) });
        }
    }
}

/// A line of one page about another project, usually an incompatibility.
fn line(dice: &mut Dice, to: &resolver::catalog::Project) -> Dependency {
    let kind = *dice.one(&[
        DependencyKind::Incompatible,
        DependencyKind::Incompatible,
        DependencyKind::Required,
        DependencyKind::Optional,
        DependencyKind::Embedded,
    ]);
    let version_id = dice.chance(60).then(|| dice.one(&to.releases).id.clone());
    Dependency { project_id: Some(to.id.clone()), name: None, version_id, kind }
}
