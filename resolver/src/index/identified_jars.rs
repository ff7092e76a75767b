//! Pure. Checks compatibility with unmanaged JARs whose release is known upstream: each is a package with one fixed
//! release.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::dependency_targets::{DependencyTarget, find_project, resolve_target, sorted_dependencies};
use super::eligibility::considered_releases;
use super::known_constraints::Bound;
use super::known_file::KnownFile;
use super::version_bounds::{BoundContext, guessed_minimum};
use crate::model::catalog::{Catalog, Dependency, DependencyKind, Project, Release};
use crate::model::compatibility_facts::UsedFact;
use crate::model::request::Request;
use crate::model::unmanaged_jar::UnmanagedPlugins;
use crate::model::unusable::{FileConflict, Unusable};

/// The files that count, by name. A file whose project is among `members`, at either site, is a second file of an
/// installed plugin. The check for name conflicts reports it.
pub(crate) fn identified_files<'a>(
    catalog: &'a Catalog,
    request: &'a Request,
    members: &BTreeSet<usize>,
) -> Vec<KnownFile<'a>> {
    if catalog.owners.is_empty() || request.unmanaged_plugins == UnmanagedPlugins::Ignore {
        return Vec::new();
    }
    let identified = request.unmanaged.iter().filter_map(|jar| {
        let (project, release) = catalog.release_of_file(request.software, jar.sha256.as_deref()?)?;
        let identified =
            KnownFile { file: &jar.file, position: find_project(catalog, &project.key)?, project, release };
        (!members.iter().any(|&member| identified.is_for(catalog, member))).then_some(identified)
    });
    let mut identified: Vec<KnownFile<'_>> = identified.collect();
    identified.sort_by_key(|identified| identified.file);
    identified
}

/// The known relations between one file and the releases of one project.
pub(crate) struct FileCompatibility<'x> {
    file: &'x KnownFile<'x>,
    catalog: &'x Catalog,
    /// Position of the project.
    position: usize,
    /// Its releases and those of the file's project, oldest first.
    releases: &'x [&'x Release],
    file_releases: Vec<&'x Release>,
    /// The entries on the file's page about the project: the kind, and the release that it names.
    entries: Vec<(DependencyKind, Option<&'x str>)>,
    /// The versions of it that the file needs according to a fact.
    bound: Option<Bound>,
    /// Facts are resolved with this file alone, because they mean something else for another file.
    context: BoundContext<'x>,
}

impl<'x> FileCompatibility<'x> {
    pub(crate) fn new(
        file: &'x KnownFile<'x>,
        (catalog, now): (&'x Catalog, Timestamp),
        (position, releases): (usize, &'x [&'x Release]),
        context: &BoundContext<'x>,
    ) -> Self {
        let about = |entry: &&'x Dependency| target_project(catalog, context, file.position, entry) == Some(position);
        Self {
            file,
            catalog,
            position,
            releases,
            file_releases: considered_releases(file.project, now, |release| context.is_running(release), None),
            entries: (sorted_dependencies(file.release).into_iter().filter(about))
                .map(|entry| (entry.kind, entry.version_id.as_deref()))
                .collect(),
            bound: context.file_bound(catalog, file, position),
            context: context.with_files(std::slice::from_ref(file)),
        }
    }

    /// The reason why a release is incompatible with the file: an exclusion on a page, a release that a page names, a
    /// fact, or a publication date.
    pub(crate) fn conflict(&self, release: &Release) -> Option<Unusable> {
        let split = self.page_conflict(release).or_else(|| self.fact_conflict(release))?;
        let KnownFile { file, project, release: is, position: _ } = self.file;
        Some(Unusable::BesideFile {
            file: (*file).to_owned(),
            project: project.name.clone(),
            version: is.version.clone(),
            apart: Box::new(split),
        })
    }

    /// The entries on a release's page about the file's project.
    fn entries_about_file<'r>(&self, release: &'r Release) -> Vec<(DependencyKind, Option<&'r str>)> {
        let about = |entry: &&Dependency| {
            target_project(self.catalog, &self.context, self.position, entry)
                .is_some_and(|found| self.file.is_for(self.catalog, found))
        };
        let entries = sorted_dependencies(release).into_iter().filter(about);
        entries.map(|entry| (entry.kind, entry.version_id.as_deref())).collect()
    }

    fn page_conflict(&self, release: &Release) -> Option<FileConflict> {
        let of_release = self.entries_about_file(release);
        let excluded = |entries: &[(DependencyKind, Option<&str>)], id: &str| {
            let excludes = |(kind, named): &(_, Option<&str>)| {
                *kind == DependencyKind::Incompatible && named.is_none_or(|named| named == id)
            };
            entries.iter().any(excludes)
        };
        let another =
            |entries: &[(DependencyKind, Option<&str>)], id: &str| required_ids(entries).any(|named| named != id);
        let file_release = &self.file.release.id;
        match () {
            () if excluded(&self.entries, &release.id) => Some(FileConflict::FileExcludes),
            () if excluded(&of_release, file_release) => Some(FileConflict::Excludes),
            () if another(&self.entries, &release.id) => Some(FileConflict::FileNames),
            () if another(&of_release, file_release) => Some(FileConflict::Names),
            () => None,
        }
    }

    fn fact_conflict(&self, release: &Release) -> Option<FileConflict> {
        let KnownFile { project, release: is, .. } = self.file;
        let (this_release, file_release) = ((&self.catalog.projects[self.position], release), (*project, *is));
        let of_file = self.bound.as_ref().and_then(|bound| {
            let dated = required_ids(&self.entries).next().is_none();
            Some(match unmet_bound(bound, file_release, this_release, (self.releases, dated))? {
                UnmetBound::Fact(fact) => FileConflict::FileNeeds { fact },
                UnmetBound::Guess(at_least) => {
                    FileConflict::FileGuessed { needs: this_release.0.name.clone(), at_least }
                }
            })
        });
        let of_release = || {
            let bounds = self.context.bounds(self.catalog, self.position, release).into_iter();
            let (_, bound) = bounds.rev().find(|(target, _)| matches!(target, DependencyTarget::Unmanaged))?;
            let dated = required_ids(&self.entries_about_file(release)).next().is_none();
            Some(match unmet_bound(&bound, this_release, file_release, (&self.file_releases, dated))? {
                UnmetBound::Fact(fact) => FileConflict::Needs { fact },
                UnmetBound::Guess(at_least) => FileConflict::Guessed { at_least },
            })
        };
        of_file.or_else(of_release)
    }
}

/// The target project of an entry on a project's page.
fn target_project(catalog: &Catalog, context: &BoundContext<'_>, position: usize, entry: &Dependency) -> Option<usize> {
    let DependencyTarget::Project(found) = resolve_target(catalog, context, position, entry) else { return None };
    Some(found)
}

/// The releases that entries require by id.
fn required_ids<'x>(entries: &[(DependencyKind, Option<&'x str>)]) -> impl Iterator<Item = &'x str> {
    let requires = |kind| matches!(kind, DependencyKind::Required | DependencyKind::Optional);
    entries.iter().filter(move |(kind, _)| requires(*kind)).filter_map(|(_, named)| *named)
}

/// The unmet part of a bound.
enum UnmetBound {
    Fact(UsedFact),
    /// The minimum version guessed from publication dates.
    Guess(String),
}

/// Returns why a release does not accept the installed version of the other project, if so. `others` holds the releases
/// of that project, oldest first, and whether dates count. If a page names the release, dates do not count.
fn unmet_bound(
    bound: &Bound,
    (project, release): (&Project, &Release),
    (needed, installed): (&Project, &Release),
    (others, dated): (&[&Release], bool),
) -> Option<UnmetBound> {
    match bound {
        Bound::Within(range, source) | Bound::Same(range, source) => (!range.contains(&installed.version)).then(|| {
            UnmetBound::Fact(UsedFact {
                plugin: project.name.clone(),
                version: release.version.clone(),
                needs: needed.name.clone(),
                range: range.clone(),
                says: source.clone(),
            })
        }),
        Bound::Guess => {
            let least = guessed_minimum(others, release).filter(|_| dated)?;
            let is = others.iter().position(|other| other.id == installed.id)?;
            (is + 1 < least).then(|| UnmetBound::Guess(others[least - 1].version.clone()))
        }
    }
}

/// For each of these releases (oldest first) of the project at `position`: what keeps it from running beside the files.
///
/// A file that is incompatible with a running release blocks no release. The conflict exists already, and holding back
/// updates would not fix it.
pub(super) fn file_conflicts(
    at: (&Catalog, Timestamp),
    position: usize,
    releases: &[&Release],
    files: &[KnownFile<'_>],
    context: &BoundContext<'_>,
) -> Vec<Option<Unusable>> {
    if files.is_empty() {
        return vec![None; releases.len()];
    }
    let running = || releases.iter().filter(|release| context.is_running(release));
    let all = files.iter().map(|file| FileCompatibility::new(file, at, (position, releases), context));
    let binding: Vec<FileCompatibility<'_>> =
        all.filter(|compatibility| !running().any(|release| compatibility.conflict(release).is_some())).collect();
    releases.iter().map(|release| binding.iter().find_map(|compatibility| compatibility.conflict(release))).collect()
}
