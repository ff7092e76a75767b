//! Pure. Projects of random problems that are not Modrinth's: those of Hangar, and files by their URLs.

use resolver::catalog::{Channel, Dependency, DependencyKind, Project, ProjectKey, Source};

use super::generate::Dice;

/// Makes some of the projects Hangar's or files. Before their dependencies are made: these stay within a site.
pub(crate) fn scatter(dice: &mut Dice, projects: &mut [Project]) {
    match dice.below(10) {
        // All of one site: what they need of each other can be found.
        0 => projects.iter_mut().for_each(|project| to_hangar(dice, project)),
        1 => {
            let at = dice.below(projects.len());
            to_hangar(dice, &mut projects[at]);
        }
        2 => {
            let at = dice.below(projects.len());
            to_file(dice, &mut projects[at]);
        }
        3 => {
            for project in projects.iter_mut() {
                match dice.below(4) {
                    0 => to_hangar(dice, project),
                    1 => to_file(dice, project),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

/// As Hangar has it: a slug with capitals, numbers for ids, and the name of a channel for each release, which says nothing
/// about the next one.
fn to_hangar(dice: &mut Dice, project: &mut Project) {
    let mut letters = project.name.chars();
    let slug: String = letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
    project.key = ProjectKey { source: Source::Hangar, project: slug };
    for release in &mut project.releases {
        release.channel = *dice.one(&[Channel::Release, Channel::Release, Channel::Beta, Channel::Alpha]);
    }
}

/// One release, without a date and a list.
fn to_file(dice: &mut Dice, project: &mut Project) {
    let at = dice.below(project.releases.len());
    let mut release = project.releases.swap_remove(at);
    project.releases.clear();
    release.published = None;
    release.channel = Channel::Release;
    release.minecraft.clear();
    release.loaders = vec!["paper".to_owned()];
    // Nobody reads a file that is not there, or of which only its address is known.
    let name = release.id.clone();
    let file = release.file.get_or_insert_with(|| super::generate::file(dice, &name));
    file.hash.get_or_insert_with(|| format!("sha256:{:b>64}", ""));
    project.key = ProjectKey::of_file(&format!("https://files.example/{}", project.name), &"b".repeat(64));
    project.id.clone_from(&project.key.project);
    project.releases.push(release);
}

/// What a release of Hangar says it needs: never in a version.
pub(crate) fn line(dice: &mut Dice, to: &Project, kind: DependencyKind) -> Dependency {
    let bare = Dependency { project_id: None, name: None, version_id: None, kind };
    let kind = match kind {
        DependencyKind::Required => DependencyKind::Required,
        DependencyKind::Optional | DependencyKind::Incompatible | DependencyKind::Embedded => DependencyKind::Optional,
    };
    let project_id = dice.chance(70).then(|| to.id.clone());
    Dependency { project_id, name: Some(to.name.clone()), kind, ..bare }
}
