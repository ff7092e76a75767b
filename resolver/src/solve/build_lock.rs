//! Pure. Converts a decision into a lock.

use std::collections::BTreeSet;

use super::Decision;
use crate::index::CandidateIndex;
use crate::index::candidates::EdgeKind;
use crate::index::java::{image_for, image_java};
use crate::model::catalog::{Artifact, Catalog};
use crate::model::compatibility_facts::UsedFact;
use crate::model::lock::{Fact, FormatVersion, Guess, Lock, LockReason, LockedFile, LockedPlugin, safe_file_name};

/// Builds the lock.
pub(crate) fn build_lock(catalog: &Catalog, candidates: &CandidateIndex<'_>, decision: &Decision) -> Lock {
    let paper = &candidates.papers[decision.chosen.paper];
    let java = required_java(candidates, decision);
    let build = paper.build.expect("a chosen Paper version has a build");
    let mut taken = BTreeSet::new();
    let mut plugins = Vec::new();
    let software = candidates.request.software;
    let mut facts = vec![Fact { about: software.to_string(), read_at: catalog.read_at(software) }];
    for (at, release) in decision.chosen.releases.iter().enumerate() {
        let Some(release) = *release else { continue };
        let plugin = &candidates.plugins[at];
        let release = plugin.releases[release].release;
        let jars = plugin.rules.jars.select(release);
        let jars = jars.expect("a chosen release has the requested files");
        let mut files = jars.into_iter().map(|jar| {
            let mut name = safe_file_name(jar.file, plugin.name());
            while !taken.insert(name.to_ascii_lowercase()) {
                name = format!("{}-{name}", release.id);
            }
            locked_file(jar.file, name)
        });
        let file = files.next().expect("at least one file of a release is requested");
        let more = files.collect();
        if candidates.unread_page(plugin.project).is_none() {
            let about = format!("{} ({})", plugin.name(), plugin.project.key.source);
            facts.push(Fact { about, read_at: plugin.project.read_at });
        }
        let needed_by = dependents(candidates, decision, at);
        plugins.push(LockedPlugin {
            name: plugin.name().to_owned(),
            key: plugin.project.key.clone(),
            project_id: candidates.project_id(plugin.project, release).to_owned(),
            release_id: release.id.clone(),
            version: release.version.clone(),
            file,
            more,
            reason: match &plugin.requested_by {
                Some(requested_by) => {
                    LockReason::RequestedBy(requested_by.objects.iter().map(|&o| o.to_owned()).collect())
                }
                None => LockReason::NeededBy(needed_by),
            },
        });
    }
    facts.sort();
    let image = image_for(catalog, candidates.request, java, candidates.now);
    Lock {
        format_version: FormatVersion::default(),
        server: candidates.request.server.clone(),
        software,
        minecraft: paper.version.minecraft.clone(),
        build: build.number,
        java,
        image_java: image.as_deref().and_then(|image| image_java(catalog, image)),
        image,
        paper: locked_file(&build.file, safe_file_name(&build.file, software.project())),
        jvm_flags: paper.version.jvm_flags.clone(),
        plugins,
        facts,
        bounds: used_facts(candidates, decision),
        guesses: guesses(candidates, decision),
    }
}

/// The minimum Java version on which everything starts.
pub(crate) fn required_java(candidates: &CandidateIndex<'_>, decision: &Decision) -> u32 {
    let chosen = decision.chosen.releases.iter().enumerate();
    let plugins = chosen.filter_map(|(at, release)| {
        let plugin = &candidates.plugins[at];
        plugin.rules.jars.java(plugin.releases[(*release)?].release)
    });
    let paper = &candidates.papers[decision.chosen.paper];
    let unmanaged = paper.unmanaged.java.iter().map(|(java, _)| *java);
    plugins.chain(unmanaged).fold(paper.java, u32::max)
}

fn locked_file(artifact: &Artifact, name: String) -> LockedFile {
    let hash = artifact.hash.as_deref().expect("a chosen file has a hash");
    LockedFile { name, url: artifact.url.clone(), size: artifact.size, hash: hash.to_ascii_lowercase() }
}

/// The facts that no page states and that constrain two chosen plugins, by name.
pub(crate) fn used_facts(candidates: &CandidateIndex<'_>, decision: &Decision) -> Vec<UsedFact> {
    let mut used = Vec::new();
    for (at, release) in decision.chosen.releases.iter().enumerate() {
        let Some(release) = *release else { continue };
        let edges = &candidates.plugins[at].edges[release];
        used.extend(edges.iter().filter_map(|edge| candidates.fact(at, release, edge)));
    }
    used.sort();
    used
}

/// The minimum versions between chosen plugins that are guessed from publication dates, by name.
fn guesses(candidates: &CandidateIndex<'_>, decision: &Decision) -> Vec<Guess> {
    let chosen = decision.chosen.releases.iter().enumerate();
    let mut guesses: Vec<Guess> =
        chosen.filter_map(|(at, position)| Some(candidates.guesses(at, (*position)?))).flatten().collect();
    guesses.sort();
    guesses
}

/// The chosen plugins and the unmanaged JARs that need this plugin, by name.
pub(crate) fn dependents(candidates: &CandidateIndex<'_>, decision: &Decision, plugin: usize) -> Vec<String> {
    let needs = |at: usize, release: usize| {
        let edges = &candidates.plugins[at].edges[release];
        edges.iter().any(|edge| edge.to == plugin && edge.kind == EdgeKind::Required)
    };
    let chosen = decision.chosen.releases.iter().enumerate();
    let mut names: Vec<String> = chosen
        .filter(|&(at, release)| release.is_some_and(|release| needs(at, release)))
        .map(|(at, _)| candidates.plugins[at].name().to_owned())
        .collect();
    names.extend_from_slice(&candidates.plugins[plugin].unmanaged_dependents);
    names.sort();
    names
}
