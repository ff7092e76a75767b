//! Pure. Unmanaged JARs whose release is known, and their conflicts: a second implementation without the solver's code.

use std::collections::BTreeSet;

use resolver::catalog::{Catalog, Dependency, DependencyKind, Project, ProjectKey, Release};
use resolver::request::Request;
use resolver::unmanaged_jar::{UnmanagedJar, UnmanagedPlugins};

use super::membership::out;
use super::needs::{BuiltIn, Leads, Needs, built_in, guessed, is_called};
use super::own_jars::release_of;
use super::rules::all_that_runs;
use super::texts;

/// An unmanaged JAR that is a release of a project.
#[derive(Clone, Copy)]
pub(crate) struct KnownFile<'a> {
    pub(super) jar: &'a UnmanagedJar,
    pub(super) place: usize,
    pub(super) project: &'a Project,
    pub(super) release: &'a Release,
}

/// The files that count: unmanaged JARs are not ignored, and their plugin is not installed anyway.
pub(super) fn known_files<'a>(
    catalog: &'a Catalog,
    request: &'a Request,
    there: &BTreeSet<usize>,
) -> Vec<KnownFile<'a>> {
    let minded = request.unmanaged.iter().filter(|_| request.unmanaged_plugins != UnmanagedPlugins::Ignore);
    let known = minded.filter_map(|jar| {
        let (project, release) = release_of(catalog, request, jar)?;
        let place = catalog.projects.iter().position(|other| other.key == project.key)?;
        Some(KnownFile { jar, place, project, release })
    });
    known.filter(|file| !there.iter().any(|at| file.is_of(catalog, *at))).collect()
}

impl KnownFile<'_> {
    /// Whether the file is of this project, or of the project of the same name at another site.
    pub(super) fn is_of(&self, catalog: &Catalog, at: usize) -> bool {
        self.place == at || same_elsewhere(self.project, &catalog.projects[at].key, &catalog.projects[at].name)
    }

    /// Whether the file is of the project that is known under this key at another site.
    pub(super) fn is_called_elsewhere(&self, key: &ProjectKey) -> bool {
        same_elsewhere(self.project, key, name_of(key))
    }

    pub(super) fn is_core_of_essentials(&self) -> bool {
        ["EssentialsX", "Essentials"].iter().any(|name| is_called(self.project, name))
    }
}

pub(super) fn same_elsewhere(project: &Project, key: &ProjectKey, name: &str) -> bool {
    project.key.source != key.source && project.name.to_lowercase() == name.to_lowercase()
}

/// Display names of the projects with built-in constraints.
fn name_of(key: &ProjectKey) -> &str {
    match key.project.as_str() {
        "P1OZGk5p" => "ViaVersion",
        "NpvuJQoq" => "ViaBackwards",
        name => name,
    }
}

/// Whether a dependency line about a release of the right project allows this release.
fn lets(line: &Dependency, id: &str) -> bool {
    let named = line.version_id.as_deref();
    match line.kind {
        DependencyKind::Incompatible => named.is_some_and(|named| named != id),
        DependencyKind::Required | DependencyKind::Optional => named.is_none_or(|named| named == id),
        DependencyKind::Embedded => true,
    }
}

/// Whether a line requests one release by its id.
fn names_one<'x>(mut lines: impl Iterator<Item = &'x Dependency>) -> bool {
    let asks = |line: &Dependency| matches!(line.kind, DependencyKind::Required | DependencyKind::Optional);
    lines.any(|line| asks(line) && line.version_id.is_some())
}

impl<'a> Needs<'a> {
    /// Whether a release is compatible with all files. A file that the running release is not compatible with does not
    /// count.
    pub(super) fn goes_beside_files(&self, place: usize, release: &Release) -> bool {
        self.files.iter().all(|file| {
            let mut running = all_that_runs(self.request, &self.catalog.projects[place]);
            self.go_together(file, place, release) || running.any(|other| !self.go_together(file, place, other))
        })
    }

    fn go_together(&self, file: &KnownFile<'a>, place: usize, release: &Release) -> bool {
        let project = &self.catalog.projects[place];
        let about_it = |line: &&Dependency| matches!(self.line(file.place, line), Leads::To(to) if to == place);
        let about_file =
            |line: &&Dependency| matches!(self.line(place, line), Leads::To(to) if file.is_of(self.catalog, to));
        let of_file = || file.release.dependencies.iter().filter(about_it);
        let of_release = || release.dependencies.iter().filter(about_file);
        let by_pages =
            of_file().all(|line| lets(line, &release.id)) && of_release().all(|line| lets(line, &file.release.id));
        let said = self.facts(file.place, file.release, &[]);
        let said = said.iter().find(|(leads, _)| matches!(leads, Leads::To(to) if *to == place));
        let built_in = built_in(file.project, file.release);
        let elsewhere = built_in.iter().find(|(key, _)| same_elsewhere(project, key, name_of(key)));
        let needs_it = said.map(|(_, bound)| bound).or(elsewhere.map(|(_, bound)| bound));
        let of_fact = self.facts(place, release, std::slice::from_ref(file));
        let needs_file = of_fact.iter().find(|(leads, _)| matches!(leads, Leads::File)).map(|(_, bound)| bound);
        by_pages
            && needs_it.is_none_or(|bound| self.allows(bound, (file.release, names_one(of_file())), project, release))
            && needs_file
                .is_none_or(|bound| self.allows(bound, (release, names_one(of_release())), file.project, file.release))
    }

    /// Whether a bound of a release allows a release of another project. Publication dates decide where no page names a
    /// release.
    fn allows(&self, bound: &BuiltIn, (from, by_page): (&Release, bool), project: &Project, there: &Release) -> bool {
        match bound {
            BuiltIn::Range(range) | BuiltIn::Same(range) => texts::in_range(range, &there.version),
            BuiltIn::Guess => {
                let out = out(self.request, project, self.now);
                let (_, will_do) = guessed(from, &out);
                by_page || will_do.contains(there.id.as_str()) || !out.iter().any(|other| other.id == there.id)
            }
        }
    }
}
