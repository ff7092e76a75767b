//! Pure. Adds declared and required plugin names to the JARs of random problems. It uses its own random numbers, so
//! that the rest of a problem does not change.

use resolver::model::api_version::ApiVersion;
use resolver::model::catalog::{Catalog, Declared, Dependency, DependencyKind, Project, Source};
use resolver::model::unmanaged_jar::UnmanagedJar;

use super::generate::{NAMES, Rng};
use super::problem::Problem;

/// A plugin name that JARs may require and that no project of the catalog has.
const UNKNOWN_PLUGIN: &str = "UnknownPlugin";

/// Adds the content of JARs that were read: always for plugins from a URL, for others in some problems and releases.
pub(crate) fn randomize(rng: &mut Rng, problem: &mut Problem) {
    let read = *rng.choose(&[0, 0, 0, 70, 100]);
    let projects: Vec<(Source, String, String)> = (problem.catalog.projects.iter())
        .map(|project| (project.key.source, project.id.clone(), project.name.clone()))
        .collect();
    for project in &mut problem.catalog.projects {
        let (source, name) = (project.key.source, project.name.clone());
        for release in &mut project.releases {
            if source == Source::Url || rng.chance(read) {
                release.declared = Some(declared(rng, &name, &projects));
            }
            for jar in &mut release.further {
                if rng.chance(read) {
                    let stem = jar.file.name.split('-').next().unwrap().to_owned();
                    jar.declared = Some(declared(rng, &stem, &projects));
                }
            }
            let lines = release.declared.iter().flat_map(|declared| declared.depend.clone()).collect::<Vec<_>>();
            for name in lines {
                // A page usually lists the plugins that the JAR requires, often as optional dependencies.
                let named_project =
                    projects.iter().find(|(of, _, other)| *of == source && other.eq_ignore_ascii_case(&name));
                let id = match named_project {
                    Some((_, id, _)) => id.clone(),
                    None if rng.chance(10) => "not-fetched".to_owned(),
                    None => continue,
                };
                if source == Source::Modrinth && rng.chance(50) {
                    let kind =
                        *rng.choose(&[DependencyKind::Optional, DependencyKind::Optional, DependencyKind::Required]);
                    release.dependencies.push(Dependency { project_id: Some(id), name: None, version_id: None, kind });
                }
            }
        }
    }
    add_unmanaged_names(rng, &mut problem.request.unmanaged);
    add_unmanaged_needs(rng, problem);
}

/// Adds required names to unmanaged JARs, usually those of running, unrequested plugins.
fn add_unmanaged_needs(rng: &mut Rng, Problem { catalog, request, now: _ }: &mut Problem) {
    let Some(running) = request.running.as_mut() else { return };
    let is_unrequested =
        |project: &&Project| !request.plugins.iter().any(|plugin_request| plugin_request.key == project.key);
    let is_running = |project: &&Project| project.releases.iter().any(|release| running.releases.contains(&release.id));
    let unrequested: Vec<&Project> = catalog.projects.iter().filter(is_unrequested).filter(is_running).collect();
    running.unrequested = unrequested.iter().map(|project| project.key.clone()).collect();
    for jar in &mut request.unmanaged {
        if rng.chance(40) {
            let random_name = rng.choose(&NAMES).to_uppercase();
            let named =
                unrequested.first().filter(|_| rng.chance(70)).map_or(random_name, |project| project.name.clone());
            jar.depend.push(named);
        }
    }
}

fn declared(rng: &mut Rng, name: &str, projects: &[(Source, String, String)]) -> Declared {
    let count = *rng.choose(&[0, 0, 0, 1, 1, 2]);
    let needed = |rng: &mut Rng| match rng.below(12) {
        0 => UNKNOWN_PLUGIN.to_owned(),
        1 => rng.choose(&NAMES).to_string(),
        _ => rng.choose(projects).2.to_uppercase(),
    };
    Declared {
        name: if rng.chance(90) { name.to_owned() } else { rng.choose(&NAMES).to_uppercase() },
        main: None,
        provides: if rng.chance(15) { vec![rng.choose(&NAMES).to_uppercase()] } else { Vec::new() },
        depend: (0..count).map(|_| needed(rng)).collect(),
    }
}

/// Adds declared names to unmanaged JARs, and sometimes another JAR that is trusted on every Minecraft version.
fn add_unmanaged_names(rng: &mut Rng, unmanaged: &mut Vec<UnmanagedJar>) {
    let named = |rng: &mut Rng| if rng.chance(50) { UNKNOWN_PLUGIN } else { *rng.choose(&NAMES) }.to_owned();
    for jar in unmanaged.iter_mut() {
        jar.name = rng.chance(80).then(|| named(rng));
    }
    if rng.chance(20) {
        let (name, provides) = (Some(named(rng)), if rng.chance(30) { vec![named(rng)] } else { Vec::new() });
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
        jar.api_version = rng.chance(15).then(|| api_version(rng, &["1.20.4", "1.21.10", "1.21.11", "26.1"]));
        jar.java = rng.chance(15).then(|| *rng.choose(&[8, 21, 25]));
    }
}

/// What a descriptor states: one of these versions, or a form with a rule of its own.
pub(crate) fn api_version(rng: &mut Rng, named: &[&str]) -> ApiVersion {
    let odd = ["1.2", "1.20", "1.21.x", "paper-plugin.yml 1.18", "paper-plugin.yml 1.20", "paper-plugin.yml 1.21.10"];
    let texts: Vec<&str> = named.iter().copied().chain(odd).collect();
    (*rng.choose(&texts)).into()
}

/// Removes the required names of all JARs from the catalog.
pub(crate) fn clear_needs(catalog: &mut Catalog) {
    for release in catalog.projects.iter_mut().flat_map(|project| &mut project.releases) {
        let further = release.further.iter_mut().filter_map(|jar| jar.declared.as_mut());
        release.declared.iter_mut().chain(further).for_each(|declared| declared.depend.clear());
    }
}
