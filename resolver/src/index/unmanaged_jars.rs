//! Pure. Checks unmanaged JARs against Paper versions: which of them are not known to run, which the server refuses,
//! and the Java they need.

use jiff::Timestamp;

use super::java::AvailableJava;
use super::listed_versions::{ListingEvidence, ListingPolicy, ListingReader, api_version_refusal};
use super::paper_candidates;
use crate::model::catalog::{Catalog, PaperVersion};
use crate::model::request::Request;
use crate::model::software::Software;
use crate::model::unmanaged_jar::{UnmanagedJar, UnmanagedPlugins};
use crate::model::unusable::Unusable;
use crate::model::version::Minecraft;

/// The relation of the unmanaged JARs to one Paper version.
#[derive(Debug, Clone, Default)]
pub(crate) struct UnmanagedJarCompatibility {
    /// The files that are not known to run on it, by name.
    pub(crate) unknown: Vec<String>,
    /// The files that do not load on it regardless of overrides, by name.
    pub(crate) refused: Vec<(String, Unusable)>,
    /// The newest Java version that a file needs and the server can have, with the files that need it, by name.
    pub(crate) java: Option<(u32, Vec<String>)>,
    /// Whether it is the running Minecraft version or the one that opened the world. The files already load there, or
    /// already fail to.
    is_running: bool,
}

impl UnmanagedJarCompatibility {
    /// The reason why no server with these files updates to this Paper version. Only the first reason is returned, and
    /// the next one follows once it is resolved.
    pub(super) fn blocking_reason(&self, policy: UnmanagedPlugins) -> Option<Unusable> {
        if self.is_running {
            return None;
        }
        let refused = self.refused.first().map(|(file, because)| Unusable::UnmanagedRefused {
            file: file.clone(),
            because: Box::new(because.clone()),
        });
        let waits = policy == UnmanagedPlugins::Hold && !self.unknown.is_empty();
        refused.or_else(|| waits.then(|| Unusable::Unmanaged { files: self.unknown.clone() }))
    }
}

/// The relation of the files to each of these Paper versions (oldest first).
///
/// All files are known on the Minecraft version that runs or has opened the world. Before the first run no file counts
/// at all. The user's declaration and the page of an identified release can make a file known. They do not make a
/// server load a file that it refuses.
pub(super) fn unmanaged_compatibility<'a>(
    catalog: &'a Catalog,
    request: &Request,
    papers: &[&'a PaperVersion],
    available_java: AvailableJava<'_>,
    now: Timestamp,
) -> Vec<UnmanagedJarCompatibility> {
    let runs = request.running.as_ref().map(|running| &running.minecraft).or(request.floor.as_ref());
    let counts = request.unmanaged_plugins != UnmanagedPlugins::Ignore && !request.unmanaged.is_empty();
    let (true, Some(runs)) = (counts, runs) else { return vec![UnmanagedJarCompatibility::default(); papers.len()] };
    let built = paper_candidates::built_versions(catalog, papers.iter().copied(), request.software, now);
    let reader = ListingReader::new(papers.iter().copied(), ListingPolicy::from_request(request), &built);
    let mut jars: Vec<(&UnmanagedJar, Vec<bool>)> = request
        .unmanaged
        .iter()
        .map(|jar| (jar, listed_papers(catalog, request.software, &reader, jar, papers.len())))
        .collect();
    jars.sort_by_key(|(jar, _)| &jar.file);
    let java = needed_java(request, available_java);
    let compatibility = |(at, paper): (usize, &&PaperVersion)| {
        let minecraft = &paper.minecraft;
        let is_supported = |(jar, listed): &&(&UnmanagedJar, Vec<bool>)| listed[at] || jar.is_trusted(minecraft);
        let unknown = jars.iter().filter(|jar| minecraft != runs && !is_supported(jar));
        let refused = jars.iter().filter_map(|(jar, _)| {
            Some((jar.file.clone(), refusal(request.software, jar, minecraft, available_java)?))
        });
        UnmanagedJarCompatibility {
            unknown: unknown.map(|(jar, _)| jar.file.clone()).collect(),
            refused: refused.collect(),
            java: java.clone(),
            is_running: minecraft == runs,
        }
    };
    papers.iter().enumerate().map(compatibility).collect()
}

/// The reason why a server with this Minecraft version and the Java that it can have does not load a file. A proxy
/// ignores descriptors for Minecraft plugins.
fn refusal(
    software: Software,
    jar: &UnmanagedJar,
    minecraft: &Minecraft,
    available_java: AvailableJava<'_>,
) -> Option<Unusable> {
    if !software.is_minecraft() {
        return None;
    }
    api_version_refusal(jar.api_version.as_ref(), minecraft).or_else(|| available_java.unusable_for(jar.java?))
}

/// The newest Java version that a file needs, among those that the server can have.
fn needed_java(request: &Request, available_java: AvailableJava<'_>) -> Option<(u32, Vec<String>)> {
    let can_have = |java: &u32| request.software.is_minecraft() && available_java.unusable_for(*java).is_none();
    let java = request.unmanaged.iter().filter_map(|jar| jar.java).filter(can_have).max()?;
    let mut files: Vec<String> =
        request.unmanaged.iter().filter(|jar| jar.java == Some(java)).map(|jar| jar.file.clone()).collect();
    files.sort();
    Some((java, files))
}

/// Per Paper version, whether the page of the file's release lists it. A page without a list is no evidence.
fn listed_papers(
    catalog: &Catalog,
    software: Software,
    reader: &ListingReader,
    jar: &UnmanagedJar,
    papers: usize,
) -> Vec<bool> {
    let Some((project, release)) = jar.sha256.as_deref().and_then(|sha256| catalog.release_of_file(software, sha256))
    else {
        return vec![false; papers];
    };
    let states: Vec<_> = release.api_version.iter().filter(|_| software.is_minecraft()).collect();
    let evidence = reader.evidence(project.key.source, release, &states, None);
    evidence
        .iter()
        .map(|evidence| matches!(evidence, Some(ListingEvidence::Listed | ListingEvidence::Sibling(_))))
        .collect()
}
