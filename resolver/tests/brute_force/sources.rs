//! Pure. Generates the projects of random problems that are not on Modrinth: those on Hangar, and plugins from URLs.

use resolver::model::catalog::{Channel, Dependency, DependencyKind, Project, ProjectKey, Source};

use super::generate::Rng;

/// Converts some of the projects to projects on Hangar or to plugins from a URL. Must run before dependencies are
/// generated, because a dependency names a project of the same source.
pub(crate) fn randomize(rng: &mut Rng, projects: &mut [Project]) {
    match rng.below(10) {
        // All projects on Hangar, so that they can depend on each other.
        0 => projects.iter_mut().for_each(|project| to_hangar(rng, project)),
        1 => {
            let at = rng.below(projects.len());
            to_hangar(rng, &mut projects[at]);
        }
        2 => {
            let at = rng.below(projects.len());
            to_file(rng, &mut projects[at]);
        }
        3 => {
            for project in projects.iter_mut() {
                match rng.below(4) {
                    0 => to_hangar(rng, project),
                    1 => to_file(rng, project),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

/// Converts a project to the form of Hangar: a slug with a capital letter, and a random channel for each release.
fn to_hangar(rng: &mut Rng, project: &mut Project) {
    let mut letters = project.name.chars();
    let slug: String = letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
    project.key = ProjectKey { source: Source::Hangar, project: slug };
    for release in &mut project.releases {
        release.channel = *rng.choose(&[Channel::Release, Channel::Release, Channel::Beta, Channel::Alpha]);
    }
}

/// Converts a project to a plugin from a URL: one release without a date and without a list.
fn to_file(rng: &mut Rng, project: &mut Project) {
    let at = rng.below(project.releases.len());
    let mut release = project.releases.swap_remove(at);
    project.releases.clear();
    release.published = None;
    release.channel = Channel::Release;
    release.minecraft.clear();
    release.loaders = vec!["paper".to_owned()];
    // Without a file with a hash, the JAR could not have been read.
    let name = release.id.clone();
    let file = release.file.get_or_insert_with(|| super::generate::file(rng, &name));
    file.hash.get_or_insert_with(|| format!("sha256:{:b>64}", ""));
    project.key = ProjectKey::from_file(&format!("https://files.example/{}", project.name), &"b".repeat(64));
    project.id.clone_from(&project.key.project);
    project.releases.push(release);
}

/// A dependency of a Hangar release, which never names a version.
pub(crate) fn random_dependency(rng: &mut Rng, to: &Project, kind: DependencyKind) -> Dependency {
    let bare = Dependency { project_id: None, name: None, version_id: None, kind };
    let kind = match kind {
        DependencyKind::Required => DependencyKind::Required,
        DependencyKind::Optional | DependencyKind::Incompatible | DependencyKind::Embedded => DependencyKind::Optional,
    };
    let project_id = rng.chance(70).then(|| to.id.clone());
    Dependency { project_id, name: Some(to.name.clone()), kind, ..bare }
}
