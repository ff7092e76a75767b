//! Pure. Resolves the names in JARs to plugins, by the rules of `docs/concepts/solve.md`. For tests only.

use std::collections::{BTreeMap, BTreeSet};

use resolver::model::catalog::{Declared, Dependency, DependencyKind, Release, Source};

use resolver::model::software::Software;

use super::dependencies::{Needs, Resolved, is_named};
use super::rules::Terms;

/// The names of the plugins of a server, with the plugins that declare them.
pub(crate) struct NameOwners {
    /// The projects with each name, by index, the preferred one first. `None` is an unmanaged JAR.
    owners: BTreeMap<String, Vec<Option<usize>>>,
    /// Whether the JARs of all plugins were read.
    is_complete: bool,
}

/// A name as Bukkit compares it: spaces become underscores, and case is ignored.
pub(super) fn normalized(name: &str) -> String {
    name.to_lowercase().replace(' ', "_")
}

fn declared_names(declared: &Declared) -> BTreeSet<String> {
    declared.provides.iter().chain([&declared.name]).map(|name| normalized(name)).collect()
}

impl NameOwners {
    /// Names from the installed JARs of these members, as far as they were read.
    pub(crate) fn from_members(needs: &Needs<'_>, terms: &BTreeMap<usize, Terms<'_>>) -> Self {
        let (mut first, mut second, mut is_complete) = (Vec::new(), Vec::new(), true);
        let mut members: Vec<(&usize, &Terms<'_>)> = terms.iter().collect();
        members.sort_by_key(|(at, _)| (!needs.requested.contains(at), &needs.catalog.projects[**at].key));
        for (&at, terms) in members {
            let project = &needs.catalog.projects[at];
            let installed: Vec<_> = project.releases.iter().filter_map(|release| terms.files(release)).collect();
            let read = installed.iter().any(|files| files.iter().all(|file| file.declared.is_some()));
            is_complete &= read || installed.is_empty();
            if !needs.is_for_server(at) {
                continue;
            }
            if !read {
                first.push((normalized(&project.name), Some(at)));
                second.push((normalized(&project.key.project), Some(at)));
                continue;
            }
            for declared in installed.iter().flatten().filter_map(|file| file.declared) {
                first.push((normalized(&declared.name), Some(at)));
                second.extend(declared.provides.iter().map(|name| (normalized(name), Some(at))));
            }
        }
        let mut owners: BTreeMap<String, Vec<Option<usize>>> = BTreeMap::new();
        for (name, at) in first.into_iter().chain(second) {
            owners.entry(name).or_default().push(at);
        }
        for jar in &needs.request.unmanaged {
            is_complete &= jar.name.is_some();
            for name in jar.name.iter().chain(&jar.provides) {
                owners.entry(normalized(name)).or_default().push(None);
            }
        }
        // No other plugin has to be installed for a name that Paper itself has from 1.21 on.
        if matches!(needs.request.software, Software::Paper | Software::Purpur) {
            owners.entry("spark".to_owned()).or_default().push(None);
        }
        Self { owners, is_complete }
    }
}

impl Needs<'_> {
    /// The names by which other plugins find a project with these terms. These are the names in the installed JARs, if
    /// all installed JARs of at least one release were read, else the names on its page.
    pub(super) fn names_of(&self, at: usize, terms: &Terms<'_>) -> BTreeSet<String> {
        let project = &self.catalog.projects[at];
        let installed: Vec<_> = project.releases.iter().filter_map(|release| terms.files(release)).collect();
        if installed.iter().any(|files| files.iter().all(|file| file.declared.is_some())) {
            installed.iter().flatten().filter_map(|file| file.declared).flat_map(declared_names).collect()
        } else {
            [&project.name, &project.key.project, &project.id].into_iter().map(|name| normalized(name)).collect()
        }
    }

    /// The plugins with the names that the JARs of a release require.
    pub(super) fn jar_requirements(&self, index: usize, terms: &Terms<'_>, release: &Release) -> Vec<Resolved> {
        let Some(names_in_jars) = &self.names_in_jars else { return Vec::new() };
        let files = terms.files(release).unwrap_or_default();
        let inside: Vec<&Declared> = files.iter().filter_map(|file| file.declared).collect();
        let own_names: BTreeSet<String> = inside.iter().flat_map(|declared| declared_names(declared)).collect();
        let names: BTreeSet<String> =
            inside.iter().flat_map(|declared| &declared.depend).map(|name| normalized(name)).collect();
        names.difference(&own_names).flat_map(|name| self.resolve_name(names_in_jars, index, release, name)).collect()
    }

    fn resolve_name(&self, names_in_jars: &NameOwners, index: usize, release: &Release, name: &str) -> Vec<Resolved> {
        match names_in_jars.owners.get(name).and_then(|owners| owners.iter().find(|at| **at != Some(index))) {
            Some(Some(other)) => return vec![Resolved::Project(*other)],
            Some(None) => return Vec::new(),
            None => {}
        }
        let (mut unknown, mut unread) = (Vec::new(), false);
        let mut dependencies: Vec<&Dependency> = release.dependencies.iter().collect();
        dependencies.sort_by_key(|dependency| (&dependency.project_id, &dependency.name));
        for dependency in dependencies {
            if !matches!(dependency.kind, DependencyKind::Required | DependencyKind::Optional) {
                continue;
            }
            match self.resolve_dependency(index, dependency) {
                Resolved::Project(other) if self.has_name(other, name) => return vec![Resolved::Project(other)],
                Resolved::Unknown => unknown.push(Resolved::Unknown),
                Resolved::Unread => unread = true,
                Resolved::Project(_) | Resolved::Missing | Resolved::UnmanagedFile | Resolved::Unavailable => {}
            }
        }
        if !unknown.is_empty() {
            return unknown;
        }
        let is_file = self.catalog.projects[index].key.source == Source::Url;
        let has_run = self.request.running.is_some();
        if names_in_jars.is_complete && (is_file || has_run) && !unread { vec![Resolved::Missing] } else { Vec::new() }
    }

    /// Whether the project has this display name, or the main JAR of any release declares it.
    fn has_name(&self, at: usize, name: &str) -> bool {
        let project = &self.catalog.projects[at];
        let mut read = project.releases.iter().filter_map(|release| release.declared.as_ref());
        read.any(|declared| declared_names(declared).contains(name)) || is_named(project, name)
    }
}
