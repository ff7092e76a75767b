//! Pure. Adds further JARs to releases of random problems, and `jars` to Plugins. It uses its own random numbers, so
//! that the rest of a problem does not change.

use resolver::model::catalog::{FurtherJar, Source};

use super::generate::{Rng, file};
use super::jar_contents::api_version;
use super::problem::Problem;

/// Adds further JARs to some Modrinth releases, and `jars` to some Plugins.
pub(crate) fn randomize(rng: &mut Rng, problem: &mut Problem, named: &[&str]) {
    let sites = problem.catalog.projects.iter_mut().filter(|project| project.key.source == Source::Modrinth);
    for project in sites {
        for (at, release) in project.releases.iter_mut().enumerate() {
            if rng.chance(40) {
                release.further = further_jars(rng, &project.name, at, named);
            }
        }
    }
    for plugin_request in
        problem.request.plugins.iter_mut().filter(|plugin_request| plugin_request.key.source == Source::Modrinth)
    {
        if rng.chance(25) {
            let found = problem.catalog.project(&plugin_request.key);
            plugin_request.jars = found.map(|project| jar_patterns(rng, &project.name)).unwrap_or_default();
        }
    }
}

/// Modules of a plugin.
fn further_jars(rng: &mut Rng, project: &str, at: usize, named: &[&str]) -> Vec<FurtherJar> {
    let file_names = [format!("{project}Chat-{at}"), format!("{project}_Spawn-v{at}.0"), format!("Chat-{at}")];
    let file_names = rng.choose_some(&file_names, 60);
    let jars = file_names.into_iter().map(|name| FurtherJar {
        file: file(rng, name),
        api_version: rng.chance(12).then(|| api_version(rng, named)),
        refused: None,
        java: rng.chance(15).then(|| *rng.choose(&[8, 21, 25])),
        folia: None,
        declared: None,
    });
    jars.collect()
}

/// Patterns that usually match a file of some release.
fn jar_patterns(rng: &mut Rng, project: &str) -> Vec<String> {
    let plain = project.to_lowercase();
    let all =
        [project.to_owned(), format!("{plain}chat"), "*Chat".to_owned(), format!("{plain}?spawn"), "*_*".to_owned()];
    rng.choose_some(&all, 30).into_iter().cloned().collect()
}
