//! Pure. Adds unmanaged JARs whose release is known to random problems, with dependencies and facts about them. Their
//! plugins are not requested.
//!
//! It uses its own random numbers, so that the rest of a problem does not change.

use resolver::model::catalog::{Dependency, DependencyKind, Owner, Source};
use resolver::model::compatibility_facts::{Requirement, VersionFact};
use resolver::model::unmanaged_jar::UnmanagedJar;

use super::generate::Rng;
use super::problem::Problem;
use super::requests::range;
use super::rules::project_index;

/// Replaces the request for a plugin by an unmanaged JAR of it, in some problems.
pub(crate) fn randomize(rng: &mut Rng, problem: &mut Problem) {
    let Problem { catalog, request, now: _ } = problem;
    if !rng.chance(25) || catalog.projects.len() < 2 {
        return;
    }
    let at = rng.below(catalog.projects.len());
    request.plugins.retain(|plugin_request| project_index(catalog, &plugin_request.key) != Some(at));
    let release_index = rng.below(catalog.projects[at].releases.len());
    let sha256 = "of known.jar".to_owned();
    let owner = Owner {
        project: catalog.projects[at].key.clone(),
        release: Some(catalog.projects[at].releases[release_index].id.clone()),
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
        trusted: if rng.chance(80) { vec!["*".to_owned()] } else { Vec::new() },
    });
    // Only pages on Modrinth have all kinds of dependencies, see `sources`.
    for other in (0..catalog.projects.len()).filter(|other| *other != at) {
        let by_page = [at, other].iter().all(|index| catalog.projects[*index].key.source == Source::Modrinth);
        if by_page && rng.chance(40) {
            let dependency = random_dependency(rng, &catalog.projects[other]);
            catalog.projects[at].releases[release_index].dependencies.push(dependency);
        }
        for index in 0..catalog.projects[other].releases.len() {
            if by_page && rng.chance(25) {
                let dependency = random_dependency(rng, &catalog.projects[at]);
                catalog.projects[other].releases[index].dependencies.push(dependency);
            }
        }
        if rng.chance(30) {
            let (plugin, needed) = if rng.chance(50) { (at, other) } else { (other, at) };
            let (plugin, needed) = (&catalog.projects[plugin], &catalog.projects[needed]);
            let mut facts = request.facts.all().to_vec();
            facts.push(VersionFact {
                plugin: plugin.name.clone(),
                releases: if rng.chance(50) { range(rng, plugin) } else { "*".parse().unwrap() },
                requires: Requirement { plugin: needed.name.clone(), version: range(rng, needed) },
                source: "the owner of known.jar".to_owned(),
                date: "2026-01-11".parse().unwrap(),
            });
            request.facts = facts.into();
        }
    }
    let installed = &catalog.projects[at];
    for plugin_request in &mut request.plugins {
        if rng.chance(15) {
            plugin_request.requires.push(Requirement { plugin: installed.id.clone(), version: range(rng, installed) });
        }
    }
}

/// A dependency of one project on another, usually an incompatibility.
fn random_dependency(rng: &mut Rng, to: &resolver::model::catalog::Project) -> Dependency {
    let kind = *rng.choose(&[
        DependencyKind::Incompatible,
        DependencyKind::Incompatible,
        DependencyKind::Required,
        DependencyKind::Optional,
        DependencyKind::Embedded,
    ]);
    let version_id = rng.chance(60).then(|| rng.choose(&to.releases).id.clone());
    Dependency { project_id: Some(to.id.clone()), name: None, version_id, kind }
}
