//! Pure. JARs of people's own: on which Papers nobody knows whether they run, which of them a server refuses, and the
//! Java they need.

use jiff::Timestamp;

use super::java::AvailableJava;
use super::listed_versions::{ListingEvidence, ListingPolicy, ListingReader, refuses};
use super::paper_candidates;
use crate::catalog::{Catalog, PaperVersion};
use crate::request::Request;
use crate::software::Software;
use crate::unmanaged_jar::{UnmanagedJar, UnmanagedPlugins};
use crate::unusable::Unusable;
use crate::version::Minecraft;

/// What the JARs of people's own are to one Paper.
#[derive(Debug, Clone, Default)]
pub(crate) struct Strangers {
    /// The files of which nobody knows whether they run on it, by name.
    pub(crate) unknown: Vec<String>,
    /// The files that do not load on it, whatever anybody says, by name.
    pub(crate) refused: Vec<(String, Unusable)>,
    /// The newest Java that a file needs and the server can have, with the files that need it, by name.
    pub(crate) java: Option<(u32, Vec<String>)>,
    /// Whether it is the Minecraft that runs, or has opened the world: there they load, or do not, already.
    runs: bool,
}

impl Strangers {
    /// Why no server goes to this Paper with them. The first of its reasons: when that is gone, the next one is told.
    pub(super) fn fault(&self, says: UnmanagedPlugins) -> Option<Unusable> {
        if self.runs {
            return None;
        }
        let refused = self.refused.first().map(|(file, because)| Unusable::UnmanagedRefused {
            file: file.clone(),
            because: Box::new(because.clone()),
        });
        let waits = says == UnmanagedPlugins::Hold && !self.unknown.is_empty();
        refused.or_else(|| waits.then(|| Unusable::Unmanaged { files: self.unknown.clone() }))
    }
}

/// What the files are to each of these Papers (oldest first).
///
/// Nothing is unknown on the Minecraft that runs (or has opened the world), and nothing at all while nothing has run.
/// The owner of the server may know more, and the page of the release that a file is, if a site knows its bytes.
/// Neither makes a server load what it refuses.
pub(super) fn strangers<'a>(
    catalog: &'a Catalog,
    request: &Request,
    papers: &[&'a PaperVersion],
    offer: AvailableJava<'_>,
    now: Timestamp,
) -> Vec<Strangers> {
    let runs = request.running.as_ref().map(|running| &running.minecraft).or(request.floor.as_ref());
    let counts = request.unmanaged_plugins != UnmanagedPlugins::Ignore && !request.unmanaged.is_empty();
    let (true, Some(runs)) = (counts, runs) else { return vec![Strangers::default(); papers.len()] };
    let built = paper_candidates::built(catalog, papers.iter().copied(), request.software, now);
    let reader = ListingReader::new(papers.iter().copied(), ListingPolicy::of(request), &built);
    let mut jars: Vec<(&UnmanagedJar, Vec<bool>)> = request
        .unmanaged
        .iter()
        .map(|jar| (jar, listed(catalog, request.software, &reader, jar, papers.len())))
        .collect();
    jars.sort_by_key(|(jar, _)| &jar.file);
    let java = java(request, offer);
    let on_paper = |(at, paper): (usize, &&PaperVersion)| {
        let minecraft = &paper.minecraft;
        let known = |(jar, listed): &&(&UnmanagedJar, Vec<bool>)| listed[at] || jar.is_trusted(minecraft);
        let unknown = jars.iter().filter(|jar| minecraft != runs && !known(jar));
        let refused = jars
            .iter()
            .filter_map(|(jar, _)| Some((jar.file.clone(), refusal(request.software, jar, minecraft, offer)?)));
        Strangers {
            unknown: unknown.map(|(jar, _)| jar.file.clone()).collect(),
            refused: refused.collect(),
            java: java.clone(),
            runs: minecraft == runs,
        }
    };
    papers.iter().enumerate().map(on_paper).collect()
}

/// Why a server of this Minecraft, and with the Java that it can have, does not load a file. A proxy reads no
/// description of a plugin for Minecraft.
fn refusal(
    software: Software,
    jar: &UnmanagedJar,
    minecraft: &Minecraft,
    offer: AvailableJava<'_>,
) -> Option<Unusable> {
    if !software.is_minecraft() {
        return None;
    }
    refuses(jar.api_version.as_ref(), minecraft).or_else(|| offer.fault(jar.java?))
}

/// The newest Java that a file needs, of those that the server can have.
fn java(request: &Request, offer: AvailableJava<'_>) -> Option<(u32, Vec<String>)> {
    let can_have = |java: &u32| request.software.is_minecraft() && offer.fault(*java).is_none();
    let java = request.unmanaged.iter().filter_map(|jar| jar.java).filter(can_have).max()?;
    let mut files: Vec<String> =
        request.unmanaged.iter().filter(|jar| jar.java == Some(java)).map(|jar| jar.file.clone()).collect();
    files.sort();
    Some((java, files))
}

/// For each Paper whether the page of the release that a file is lists it. A page without a list says nothing.
fn listed(
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
    let needs = release.api_version.as_ref().filter(|_| software.is_minecraft());
    let known = reader.read(project.key.source, release, needs, None);
    known.iter().map(|known| matches!(known, Some(ListingEvidence::Listed | ListingEvidence::Sibling(_)))).collect()
}
