//! Pure. Converts a decision into a lock.

use std::collections::BTreeSet;

use super::Decision;
use crate::catalog::{Artifact, Catalog};
use crate::compatibility_facts::UsedFact;
use crate::index::java::{image_for, image_java};
use crate::index::{CandidateIndex, EdgeKind};
use crate::lock::{Fact, FormatVersion, Guess, Lock, LockReason, LockedFile, LockedPlugin, safe_file_name};

/// Builds the lock.
pub(super) fn lock(catalog: &Catalog, world: &CandidateIndex<'_>, decision: &Decision) -> Lock {
    let paper = &world.papers[decision.chosen.paper];
    let java = java(world, decision);
    let build = paper.build.expect("a Paper without a build is unusable, and was not chosen");
    let mut taken = BTreeSet::new();
    let mut plugins = Vec::new();
    let software = world.request.software;
    let mut facts = vec![Fact { about: software.to_string(), read_at: catalog.read_at(software) }];
    for (at, release) in decision.chosen.releases.iter().enumerate() {
        let Some(release) = *release else { continue };
        let shelf = &world.shelves[at];
        let release = shelf.releases[release].release;
        let jars = shelf.rules.jars.pick(release);
        let jars = jars.expect("a release without the files that are asked for is unusable, and was not chosen");
        let mut files = jars.into_iter().map(|jar| {
            let mut name = safe_file_name(jar.file, shelf.name());
            while !taken.insert(name.to_ascii_lowercase()) {
                name = format!("{}-{name}", release.id);
            }
            locked(jar.file, name)
        });
        let file = files.next().expect("what is asked for of a release is one file at least");
        let more = files.collect();
        facts.push(Fact {
            about: format!("{} ({})", shelf.name(), shelf.project.key.source),
            read_at: shelf.project.read_at,
        });
        let needed_by = needed_by(world, decision, at);
        plugins.push(LockedPlugin {
            name: shelf.name().to_owned(),
            key: shelf.project.key.clone(),
            project_id: shelf.project.id.clone(),
            release_id: release.id.clone(),
            version: release.version.clone(),
            file,
            more,
            reason: match &shelf.asked {
                Some(asked) => LockReason::RequestedBy(asked.objects.iter().map(|&o| o.to_owned()).collect()),
                None => LockReason::NeededBy(needed_by),
            },
        });
    }
    facts.sort();
    let image = image_for(catalog, world.request, java, world.now);
    Lock {
        format_version: FormatVersion::default(),
        server: world.request.server.clone(),
        software,
        minecraft: paper.version.minecraft.clone(),
        build: build.number,
        java,
        image_java: image.as_deref().and_then(|image| image_java(catalog, image)),
        image,
        paper: locked(&build.file, safe_file_name(&build.file, software.project())),
        jvm_flags: paper.version.jvm_flags.clone(),
        plugins,
        facts,
        bounds: used_facts(world, decision),
        guesses: guesses(world, decision),
    }
}

/// The minimum Java version on which everything starts.
pub(crate) fn java(world: &CandidateIndex<'_>, decision: &Decision) -> u32 {
    let chosen = decision.chosen.releases.iter().enumerate();
    let plugins = chosen.filter_map(|(at, release)| {
        let shelf = &world.shelves[at];
        shelf.rules.jars.java(shelf.releases[(*release)?].release)
    });
    let paper = &world.papers[decision.chosen.paper];
    let own = paper.strangers.java.iter().map(|(java, _)| *java);
    plugins.chain(own).fold(paper.java, u32::max)
}

fn locked(artifact: &Artifact, name: String) -> LockedFile {
    let hash = artifact.hash.as_deref().expect("a file without a hash is unusable, and was not chosen");
    LockedFile { name, url: artifact.url.clone(), size: artifact.size, hash: hash.to_ascii_lowercase() }
}

/// The facts that no page states and that constrain two chosen plugins, by name.
pub(crate) fn used_facts(world: &CandidateIndex<'_>, decision: &Decision) -> Vec<UsedFact> {
    let mut used = Vec::new();
    for (at, release) in decision.chosen.releases.iter().enumerate() {
        let Some(release) = *release else { continue };
        let links = &world.shelves[at].links[release];
        used.extend(links.iter().filter_map(|link| world.fact(at, release, link)));
    }
    used.sort();
    used
}

/// The minimum versions between chosen plugins that are guessed from publication dates, by name.
fn guesses(world: &CandidateIndex<'_>, decision: &Decision) -> Vec<Guess> {
    let chosen = decision.chosen.releases.iter().enumerate();
    let mut guesses: Vec<Guess> =
        chosen.filter_map(|(at, place)| Some(world.guesses(at, (*place)?))).flatten().collect();
    guesses.sort();
    guesses
}

/// The chosen plugins and the unmanaged JARs that need this plugin, by name.
pub(crate) fn needed_by(world: &CandidateIndex<'_>, decision: &Decision, shelf: usize) -> Vec<String> {
    let needs = |at: usize, release: usize| {
        let links = &world.shelves[at].links[release];
        links.iter().any(|link| link.to == shelf && link.kind == EdgeKind::Required)
    };
    let chosen = decision.chosen.releases.iter().enumerate();
    let mut names: Vec<String> = chosen
        .filter(|&(at, release)| release.is_some_and(|release| needs(at, release)))
        .map(|(at, _)| world.shelves[at].name().to_owned())
        .collect();
    names.extend_from_slice(&world.shelves[shelf].kept_for);
    names.sort();
    names
}
