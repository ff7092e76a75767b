//! Pure. Generates the projects of random problems, with releases and their dependencies.

use jiff::SignedDuration;
use resolver::model::catalog::{Channel, Dependency, DependencyKind, Project, ProjectKey, Release, Source};

use super::generate::{Rng, file, hours_ago, now};
use super::jar_contents::api_version;
use super::{rare_features, sources};

pub(super) fn project(rng: &mut Rng, name: &str, named: &[&str]) -> Project {
    let id = match name {
        "ViaBackwards" => "NpvuJQoq".to_owned(),
        "ViaVersion" => "P1OZGk5p".to_owned(),
        "ViaRewind" => "TbHIxhx5".to_owned(),
        _ => format!("id-{name}"),
    };
    let count = 1 + rng.below(4);
    let mut releases: Vec<Release> = (0..count).map(|at| release(rng, name, at, named)).collect();
    // The same version, uploaded twice.
    if let [first, second, ..] = releases.as_mut_slice()
        && rng.chance(5)
    {
        first.version.clone_from(&second.version);
        first.published = second.published;
    }
    Project {
        key: ProjectKey { source: Source::Modrinth, project: name.to_lowercase() },
        id,
        name: name.to_owned(),
        read_at: now(),
        releases,
    }
}

fn release(rng: &mut Rng, project: &str, at: usize, named: &[&str]) -> Release {
    let id = format!("{project}-{at}");
    let base: &[&str] = match project {
        "ViaBackwards" => &["4.9.2", "5.0.0", "5.2.0", "5.10.0", "9.9.9", "5.2.1-SNAPSHOT+7"],
        "ViaVersion" => &["4.9.2", "4.9.3", "5.0.0", "5.1.2", "5.9.2", "9.9.9", "5.1.2-SNAPSHOT+9"],
        _ => rare_features::versions(project).unwrap_or(&[
            "1.0.0",
            "1.0.1",
            "1.0.2",
            "1.1",
            "v2.0",
            "2.0.0-beta.9",
            "2.0.0-beta.39",
            "1.1+4",
            "1.1+12",
            "1.2-24w05b",
        ]),
    };
    let channel = match rng.below(10) {
        0 => Channel::Alpha,
        1 | 2 => Channel::Beta,
        _ => Channel::Release,
    };
    let loaders: &[&str] = match rng.below(30) {
        0 => &[],
        1 => &["velocity"],
        2 => &["fabric", "Spigot"],
        _ => &["paper"],
    };
    let hours = if rng.chance(4) { None } else { Some(rng.below(14) * 12) };
    Release {
        version: (*rng.choose(base)).to_owned(),
        published: Some(hours.map_or(now() + SignedDuration::from_hours(5), hours_ago)),
        channel,
        minecraft: if rng.chance(8) {
            Vec::new()
        } else {
            let width = *rng.choose(&[35, 65, 95]);
            rng.choose_some(named, width).into_iter().map(|version| version.parse().unwrap()).collect()
        },
        api_version: rng.chance(12).then(|| api_version(rng, named)),
        refused: None,
        java: rng.chance(15).then(|| *rng.choose(&[8, 21, 25])),
        folia: None,
        loaders: loaders.iter().map(|&loader| loader.to_owned()).collect(),
        declared: None,
        dependencies: Vec::new(),
        file: if rng.chance(3) { None } else { Some(file(rng, &id)) },
        further: Vec::new(),
        id,
    }
}

pub(super) fn add_dependencies(rng: &mut Rng, projects: &mut [Project], at: usize) {
    for index in 0..projects[at].releases.len() {
        let count = *rng.choose(&[0, 0, 0, 1, 1, 2]);
        let lines = (0..count).map(|_| random_dependency(rng, projects, at)).collect();
        projects[at].releases[index].dependencies = lines;
    }
}

fn random_dependency(rng: &mut Rng, projects: &[Project], at: usize) -> Dependency {
    let kind = match rng.below(10) {
        0..5 => DependencyKind::Required,
        5 | 6 => DependencyKind::Optional,
        7 | 8 => DependencyKind::Incompatible,
        _ => DependencyKind::Embedded,
    };
    let source = projects[at].key.source;
    let bare = Dependency { project_id: None, name: None, version_id: None, kind };
    match rng.below(100) {
        0 => return Dependency { project_id: Some("not-fetched".to_owned()), ..bare },
        1 | 2 => return Dependency { project_id: Some("ghost".to_owned()), ..bare },
        3 | 4 => return Dependency { name: Some("UnknownPlugin".to_owned()), ..bare },
        _ => {}
    }
    let mut to = rng.choose(projects);
    if to.key.source != source {
        // Usually a project of the same source. With a project of another source, the query has no answer.
        let same: Vec<&Project> = projects.iter().filter(|project| project.key.source == source).collect();
        to = if rng.chance(95) { *rng.choose(&same) } else { to };
    }
    if source != Source::Modrinth {
        return sources::random_dependency(rng, to, kind);
    }
    let release = match rng.below(6) {
        0 | 1 => Some(rng.choose(&to.releases).id.clone()),
        2 if rng.chance(20) => Some("gone".to_owned()),
        _ => None,
    };
    match rng.below(10) {
        0 => Dependency { name: Some(to.name.clone()), version_id: release, ..bare },
        1 if release.is_some() => Dependency { version_id: release, ..bare },
        _ => Dependency { project_id: Some(to.id.clone()), version_id: release, ..bare },
    }
}
