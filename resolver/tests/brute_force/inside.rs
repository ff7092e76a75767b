//! Pure. Adds names and required names to the JARs of random problems. It uses its own random numbers, so that the rest
//! of a problem does not change.

use resolver::catalog::{Catalog, Declared, Dependency, DependencyKind, Project, Source};
use resolver::unmanaged_jar::UnmanagedJar;

use super::generate::{Dice, NAMES};
use super::problem::Problem;

/// A name that may be needed and is never managed.
const ELSEWHERE: &str = "PlugOfElsewhere";

/// Marks JARs as read: those of files always, the others in some problems and for some releases.
pub(crate) fn scatter(dice: &mut Dice, problem: &mut Problem) {
    let read = *dice.one(&[0, 0, 0, 70, 100]);
    let called: Vec<(Source, String, String)> = (problem.catalog.projects.iter())
        .map(|project| (project.key.source, project.id.clone(), project.name.clone()))
        .collect();
    for project in &mut problem.catalog.projects {
        let (source, name) = (project.key.source, project.name.clone());
        for release in &mut project.releases {
            if source == Source::Url || dice.chance(read) {
                release.declared = Some(declared(dice, &name, &called));
            }
            for jar in &mut release.further {
                if dice.chance(read) {
                    let stem = jar.file.name.split('-').next().unwrap().to_owned();
                    jar.declared = Some(declared(dice, &stem, &called));
                }
            }
            let lines = release.declared.iter().flat_map(|declared| declared.depend.clone()).collect::<Vec<_>>();
            for name in lines {
                // The page usually contains the needs of a JAR, often as optional ones.
                let known = called.iter().find(|(of, _, other)| *of == source && other.eq_ignore_ascii_case(&name));
                let id = match known {
                    Some((_, id, _)) => id.clone(),
                    None if dice.chance(10) => "nobody-read-it".to_owned(),
                    None => continue,
                };
                if source == Source::Modrinth && dice.chance(50) {
                    let kind =
                        *dice.one(&[DependencyKind::Optional, DependencyKind::Optional, DependencyKind::Required]);
                    release.dependencies.push(Dependency { project_id: Some(id), name: None, version_id: None, kind });
                }
            }
        }
    }
    own(dice, &mut problem.request.unmanaged);
    needs_of_own(dice, problem);
}

/// Adds needs to unmanaged JARs, usually for running, unrequested plugins.
fn needs_of_own(dice: &mut Dice, Problem { catalog, request, now: _ }: &mut Problem) {
    let Some(running) = request.running.as_mut() else { return };
    let asked = |project: &&Project| !request.plugins.iter().any(|wish| wish.key == project.key);
    let there = |project: &&Project| project.releases.iter().any(|release| running.releases.contains(&release.id));
    let unasked: Vec<&Project> = catalog.projects.iter().filter(asked).filter(there).collect();
    running.unasked = unasked.iter().map(|project| project.key.clone()).collect();
    for jar in &mut request.unmanaged {
        if dice.chance(40) {
            let by_dice = dice.one(&NAMES).to_uppercase();
            let named = unasked.first().filter(|_| dice.chance(70)).map_or(by_dice, |project| project.name.clone());
            jar.depend.push(named);
        }
    }
}

fn declared(dice: &mut Dice, name: &str, called: &[(Source, String, String)]) -> Declared {
    let count = *dice.one(&[0, 0, 0, 1, 1, 2]);
    let needed = |dice: &mut Dice| match dice.below(12) {
        0 => ELSEWHERE.to_owned(),
        1 => dice.one(&NAMES).to_string(),
        _ => dice.one(called).2.to_uppercase(),
    };
    Declared {
        name: if dice.chance(90) { name.to_owned() } else { dice.one(&NAMES).to_uppercase() },
        provides: if dice.chance(15) { vec![dice.one(&NAMES).to_uppercase()] } else { Vec::new() },
        depend: (0..count).map(|_| needed(dice)).collect(),
    }
}

/// Adds names to unmanaged JARs, and sometimes another JAR that runs on every version.
fn own(dice: &mut Dice, unmanaged: &mut Vec<UnmanagedJar>) {
    let named = |dice: &mut Dice| if dice.chance(50) { ELSEWHERE } else { *dice.one(&NAMES) }.to_owned();
    for jar in unmanaged.iter_mut() {
        jar.name = dice.chance(80).then(|| named(dice));
    }
    if dice.chance(20) {
        let (name, provides) = (Some(named(dice)), if dice.chance(30) { vec![named(dice)] } else { Vec::new() });
        let (file, sha256) = ("economy.jar".to_owned(), Some("of economy.jar".to_owned()));
        unmanaged.push(UnmanagedJar {
            file,
            sha256,
            sha512: None,
            name,
            provides,
            depend: Vec::new(),
            api_version: None,
            java: None,
            trusted: vec!["*".to_owned()],
        });
    }
    for jar in unmanaged.iter_mut() {
        jar.api_version = dice.chance(15).then(|| dice.one(&["1.20.4", "1.21.10", "1.21.11", "26.1"]).parse().unwrap());
        jar.java = dice.chance(15).then(|| *dice.one(&[8, 21, 25]));
    }
}

/// Removes the needs of all JARs from the catalog.
pub(crate) fn forget_needs(catalog: &mut Catalog) {
    for release in catalog.projects.iter_mut().flat_map(|project| &mut project.releases) {
        let further = release.further.iter_mut().filter_map(|jar| jar.declared.as_mut());
        release.declared.iter_mut().chain(further).for_each(|declared| declared.depend.clear());
    }
}
