//! Pure. Adds further JARs to releases of random problems, and `jars` to Plugins. It uses its own random numbers, so
//! that the rest of a problem does not change.

use resolver::catalog::{FurtherJar, Source};

use super::generate::{Dice, file};
use super::problem::Problem;

/// Adds further JARs to some Modrinth releases, and `jars` to some Plugins.
pub(crate) fn scatter(dice: &mut Dice, problem: &mut Problem, named: &[&str]) {
    let sites = problem.catalog.projects.iter_mut().filter(|project| project.key.source == Source::Modrinth);
    for project in sites {
        for (at, release) in project.releases.iter_mut().enumerate() {
            if dice.chance(40) {
                release.further = further(dice, &project.name, at, named);
            }
        }
    }
    for wish in problem.request.plugins.iter_mut().filter(|wish| wish.key.source == Source::Modrinth) {
        if dice.chance(25) {
            let found = problem.catalog.project(&wish.key);
            wish.jars = found.map(|project| wanted(dice, &project.name)).unwrap_or_default();
        }
    }
}

/// Modules of a plugin.
fn further(dice: &mut Dice, project: &str, at: usize, named: &[&str]) -> Vec<FurtherJar> {
    let called = [format!("{project}Chat-{at}"), format!("{project}_Spawn-v{at}.0"), format!("Chat-{at}")];
    let called = dice.some(&called, 60);
    let jars = called.into_iter().map(|name| FurtherJar {
        file: file(dice, name),
        api_version: dice.chance(12).then(|| dice.one(named).parse().unwrap()),
        java: dice.chance(15).then(|| *dice.one(&[8, 21, 25])),
        folia: None,
        declared: None,
    });
    jars.collect()
}

/// Patterns that usually match a file of some release.
fn wanted(dice: &mut Dice, project: &str) -> Vec<String> {
    let plain = project.to_lowercase();
    let all =
        [project.to_owned(), format!("{plain}chat"), "*Chat".to_owned(), format!("{plain}?spawn"), "*_*".to_owned()];
    dice.some(&all, 30).into_iter().cloned().collect()
}
