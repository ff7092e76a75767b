//! Pure. Finds unmanaged JARs whose release is known, and conflicts with them: a second implementation without the
//! solver's code.

use std::collections::BTreeSet;

use resolver::model::catalog::{Catalog, Dependency, DependencyKind, Project, ProjectKey, Release};
use resolver::model::request::Request;
use resolver::model::unmanaged_jar::{UnmanagedJar, UnmanagedPlugins};

use super::dependencies::{BuiltIn, Needs, Resolved, built_in, guess_accepted, is_named};
use super::membership::published_releases;
use super::rules::running_releases;
use super::texts;
use super::unmanaged_jars::release_of;

/// An unmanaged JAR that is a release of a project.
#[derive(Clone, Copy)]
pub(crate) struct KnownFile<'a> {
    pub(super) jar: &'a UnmanagedJar,
    pub(super) index: usize,
    pub(super) project: &'a Project,
    pub(super) release: &'a Release,
}

/// The unmanaged JARs whose release is known. Empty if unmanaged JARs are ignored. Without JARs of installed plugins.
pub(super) fn known_files<'a>(
    catalog: &'a Catalog,
    request: &'a Request,
    installed: &BTreeSet<usize>,
) -> Vec<KnownFile<'a>> {
    let relevant = request.unmanaged.iter().filter(|_| request.unmanaged_plugins != UnmanagedPlugins::Ignore);
    let identified = relevant.filter_map(|jar| {
        let (project, release) = release_of(catalog, request, jar)?;
        let index = catalog.projects.iter().position(|other| other.key == project.key)?;
        Some(KnownFile { jar, index, project, release })
    });
    identified.filter(|file| !installed.iter().any(|at| file.is_of(catalog, *at))).collect()
}

impl KnownFile<'_> {
    /// Whether the file is of this project, or of a project with the same name at another source.
    pub(super) fn is_of(&self, catalog: &Catalog, at: usize) -> bool {
        self.index == at || is_same_elsewhere(self.project, &catalog.projects[at].key, &catalog.projects[at].name)
    }

    /// Whether the file is of the project with this key, but from another source.
    pub(super) fn is_known_elsewhere(&self, key: &ProjectKey) -> bool {
        is_same_elsewhere(self.project, key, display_name(key))
    }

    pub(super) fn is_core_of_essentials(&self) -> bool {
        ["EssentialsX", "Essentials"].iter().any(|name| is_named(self.project, name))
    }
}

pub(super) fn is_same_elsewhere(project: &Project, key: &ProjectKey, name: &str) -> bool {
    project.key.source != key.source && project.name.to_lowercase() == name.to_lowercase()
}

/// Display names of the projects with built-in constraints.
fn display_name(key: &ProjectKey) -> &str {
    match key.project.as_str() {
        "P1OZGk5p" => "ViaVersion",
        "NpvuJQoq" => "ViaBackwards",
        name => name,
    }
}

/// Whether a dependency on the right project allows this release of it.
fn allows_release(dependency: &Dependency, id: &str) -> bool {
    let named = dependency.version_id.as_deref();
    match dependency.kind {
        DependencyKind::Incompatible => named.is_some_and(|named| named != id),
        DependencyKind::Required | DependencyKind::Optional => named.is_none_or(|named| named == id),
        DependencyKind::Embedded => true,
    }
}

/// Whether one of the dependencies names a release by its id.
fn names_release<'x>(mut dependencies: impl Iterator<Item = &'x Dependency>) -> bool {
    let is_dependency =
        |dependency: &Dependency| matches!(dependency.kind, DependencyKind::Required | DependencyKind::Optional);
    dependencies.any(|dependency| is_dependency(dependency) && dependency.version_id.is_some())
}

impl<'a> Needs<'a> {
    /// Whether a release is compatible with all identified unmanaged JARs. A JAR is ignored if it is already
    /// incompatible with the running release.
    pub(super) fn is_compatible_with_files(&self, index: usize, release: &Release) -> bool {
        self.files.iter().all(|file| {
            let mut running = running_releases(self.request, &self.catalog.projects[index]);
            self.is_compatible(file, index, release) || running.any(|other| !self.is_compatible(file, index, other))
        })
    }

    fn is_compatible(&self, file: &KnownFile<'a>, index: usize, release: &Release) -> bool {
        let project = &self.catalog.projects[index];
        let about_project = |dependency: &&Dependency| matches!(self.resolve_dependency(file.index, dependency), Resolved::Project(to) if to == index);
        let about_file = |dependency: &&Dependency| matches!(self.resolve_dependency(index, dependency), Resolved::Project(to) if file.is_of(self.catalog, to));
        let of_file = || file.release.dependencies.iter().filter(about_project);
        let of_release = || release.dependencies.iter().filter(about_file);
        let by_pages = of_file().all(|dependency| allows_release(dependency, &release.id))
            && of_release().all(|dependency| allows_release(dependency, &file.release.id));
        let stated = self.constraints(file.index, file.release, &[]);
        let stated = stated.iter().find(|(resolved, _)| matches!(resolved, Resolved::Project(to) if *to == index));
        let built_in = built_in(file.project, file.release);
        let elsewhere = built_in.iter().find(|(key, _)| is_same_elsewhere(project, key, display_name(key)));
        let bound_of_file = stated.map(|(_, bound)| bound).or(elsewhere.map(|(_, bound)| bound));
        let of_fact = self.constraints(index, release, std::slice::from_ref(file));
        let bound_of_release =
            of_fact.iter().find(|(resolved, _)| matches!(resolved, Resolved::UnmanagedFile)).map(|(_, bound)| bound);
        by_pages
            && bound_of_file
                .is_none_or(|bound| self.allows(bound, (file.release, names_release(of_file())), project, release))
            && bound_of_release.is_none_or(|bound| {
                self.allows(bound, (release, names_release(of_release())), file.project, file.release)
            })
    }

    /// Whether a constraint of a release allows a release of another project. A guess from publication dates does not
    /// apply if a page names a release.
    fn allows(
        &self,
        bound: &BuiltIn,
        (from, by_page): (&Release, bool),
        project: &Project,
        candidate: &Release,
    ) -> bool {
        match bound {
            BuiltIn::Range(range) | BuiltIn::Same(range) => texts::in_range(range, &candidate.version),
            BuiltIn::Guess => {
                let available = published_releases(self.request, project, self.now);
                let (_, accepted) = guess_accepted(from, &available);
                by_page
                    || accepted.contains(candidate.id.as_str())
                    || !available.iter().any(|other| other.id == candidate.id)
            }
        }
    }
}
