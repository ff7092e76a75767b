//! Pure. JARs of people's own: on which Papers nobody knows whether they run.

use jiff::Timestamp;

use super::listing::{Known, Policy, Reader};
use super::paper;
use crate::catalog::{Catalog, PaperVersion};
use crate::request::Request;
use crate::software::Software;
use crate::unmanaged::{UnmanagedJar, UnmanagedPlugins};

/// For each of these Papers (oldest first) the files of which nobody knows whether they run on it.
///
/// None on the Minecraft that runs (or has opened the world): they run there, or do not, already. None while nothing has run.
/// The owner of the server may know, and the page of the release that a file is, if a site knows its bytes.
pub(super) fn unknown<'a>(
    catalog: &'a Catalog,
    request: &Request,
    papers: &[&'a PaperVersion],
    now: Timestamp,
) -> Vec<Vec<String>> {
    let runs = request.running.as_ref().map(|running| &running.minecraft).or(request.floor.as_ref());
    let counts = request.unmanaged_plugins != UnmanagedPlugins::Ignore && !request.unmanaged.is_empty();
    let (true, Some(runs)) = (counts, runs) else { return vec![Vec::new(); papers.len()] };
    let built = paper::built(catalog, papers.iter().copied(), request.software, now);
    let reader = Reader::new(papers.iter().copied(), Policy::of(request), &built);
    let listed: Vec<(&UnmanagedJar, Vec<bool>)> = request
        .unmanaged
        .iter()
        .map(|jar| (jar, listed(catalog, request.software, &reader, jar, papers.len())))
        .collect();
    let unknown = |(at, paper): (usize, &&PaperVersion)| {
        let known = |jar: &UnmanagedJar, listed: &[bool]| listed[at] || jar.is_trusted(&paper.minecraft);
        let files = listed.iter().filter(|(jar, listed)| paper.minecraft != *runs && !known(jar, listed));
        let mut files: Vec<String> = files.map(|(jar, _)| jar.file.clone()).collect();
        files.sort();
        files
    };
    papers.iter().enumerate().map(unknown).collect()
}

/// For each Paper whether the page of the release that a file is lists it. A page without a list says nothing.
fn listed(catalog: &Catalog, software: Software, reader: &Reader, jar: &UnmanagedJar, papers: usize) -> Vec<bool> {
    let Some((project, release)) = jar.sha256.as_deref().and_then(|sha256| catalog.release_of_file(software, sha256))
    else {
        return vec![false; papers];
    };
    let needs = release.api_version.as_ref().filter(|_| software.is_minecraft());
    let known = reader.read(project.key.source, release, needs, None);
    known.iter().map(|known| matches!(known, Some(Known::Listed | Known::Sibling(_)))).collect()
}
