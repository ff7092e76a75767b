//! Pure. Generates random problems with software other than Paper. It uses its own random numbers, so that the rest of
//! a problem does not change.

use resolver::model::catalog::{Catalog, OtherSoftware, Release, Source};
use resolver::model::software::{PaperName, Software};
use resolver::model::version::Minecraft;

use super::generate::{Rng, now};
use super::problem::Problem;

/// The hash of an unverified build.
const UNVERIFIED_HASH: &str = "md5:0123456789abcdef0123456789abcdef";

/// Converts some of the servers to Purpur, Folia or Velocity, with builds and plugin releases for that software.
pub(crate) fn randomize(rng: &mut Rng, problem: &mut Problem) {
    if !rng.chance(18) {
        return;
    }
    let software = *rng.choose(&[Software::Purpur, Software::Folia, Software::Velocity]);
    problem.request.software = software;
    let mut versions: Vec<_> = rng.choose_some(&problem.catalog.paper, 75).into_iter().cloned().collect();
    if versions.is_empty() {
        versions.push(problem.catalog.paper[0].clone());
    }
    if software == Software::Purpur {
        // A Purpur build is verified only after a download.
        for build in versions.iter_mut().flat_map(|version| &mut version.builds).filter(|_| rng.chance(80)) {
            build.file.hash = build.file.hash.as_ref().map(|_| UNVERIFIED_HASH.to_owned());
        }
    }
    problem.catalog.others.insert(software, OtherSoftware { versions, read_at: now() });
    if let Some(running) = &mut problem.request.running {
        running.software = if rng.chance(70) { software } else { Software::Paper };
    }
    for project in &mut problem.catalog.projects {
        let source = project.key.source;
        for release in &mut project.releases {
            match software {
                Software::Paper => {}
                Software::Purpur => adapt_for_purpur(rng, release),
                Software::Folia => adapt_for_folia(rng, source, release),
                Software::Velocity => adapt_for_velocity(rng, source, release),
            }
        }
    }
}

/// The catalog after this build is verified.
pub(crate) fn with_verified_build(catalog: &Catalog, PaperName { software, minecraft, build }: &PaperName) -> Catalog {
    let mut catalog = catalog.clone();
    let versions = &mut catalog.others.get_mut(software).unwrap().versions;
    let version = versions.iter_mut().find(|version| version.minecraft == *minecraft).unwrap();
    let build = version.builds.iter_mut().find(|other| other.number == *build).unwrap();
    assert_eq!(build.file.hash.as_deref(), Some(UNVERIFIED_HASH), "only an unverified build needs to be verified");
    build.file.hash = Some(sha256());
    catalog
}

/// Verifies every build.
pub(crate) fn verify_all_builds(catalog: &mut Catalog) {
    let versions = catalog.others.values_mut().flat_map(|other| &mut other.versions);
    let builds = versions.flat_map(|version| &mut version.builds);
    builds
        .filter(|build| build.file.hash.as_deref() == Some(UNVERIFIED_HASH))
        .for_each(|build| build.file.hash = Some(sha256()));
}

/// An arbitrary hash.
pub(crate) fn sha256() -> String {
    format!("sha256:{:e<64}", "")
}

fn adapt_for_purpur(rng: &mut Rng, release: &mut Release) {
    match rng.below(10) {
        0 | 1 => release.loaders = vec!["purpur".to_owned()],
        2 | 3 => release.loaders.push("Purpur".to_owned()),
        _ => {}
    }
}

fn adapt_for_folia(rng: &mut Rng, source: Source, release: &mut Release) {
    if source == Source::Modrinth && rng.chance(85) {
        release.loaders.push("folia".to_owned());
    }
    // The JAR of a plugin from a URL was always read. Other JARs were read only if they were downloaded.
    let is_read = source == Source::Url || rng.chance(45);
    release.folia = is_read.then(|| rng.chance(92));
    for jar in &mut release.further {
        jar.folia = rng.chance(60).then(|| rng.chance(92));
    }
}

fn adapt_for_velocity(rng: &mut Rng, source: Source, release: &mut Release) {
    if rng.chance(92) {
        release.loaders.push("velocity".to_owned());
    }
    if source == Source::Hangar {
        // For proxies, Hangar lists only minor versions such as `3.4`.
        let lines = release.minecraft.iter().filter_map(Minecraft::parts);
        let mut lines: Vec<Minecraft> =
            lines.map(|[major, minor, _]| format!("{major}.{minor}").parse().unwrap()).collect();
        lines.sort();
        lines.dedup();
        release.minecraft = lines;
    }
}
