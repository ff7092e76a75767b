//! Pure. Resolves the names in JARs to plugins, by the rules of `docs/concepts/solve.md`. For tests only.

use std::collections::{BTreeMap, BTreeSet};

use resolver::catalog::{Declared, Dependency, DependencyKind, Release, Source};

use super::needs::{Leads, Needs, is_called};
use super::rules::Terms;

/// Names of the plugins of a server.
pub(crate) struct Called {
    /// Owners of each name, the preferred one first. `None` is an unmanaged JAR.
    bearers: BTreeMap<String, Vec<Option<usize>>>,
    /// Whether the JARs of all plugins were read.
    all: bool,
}

/// A name as Bukkit reads it, without case.
pub(super) fn plain(name: &str) -> String {
    name.to_lowercase().replace(' ', "_")
}

fn own(declared: &Declared) -> BTreeSet<String> {
    declared.provides.iter().chain([&declared.name]).map(|name| plain(name)).collect()
}

impl Called {
    /// Names from the installed JARs of these members, as far as they were read.
    pub(crate) fn among(needs: &Needs<'_>, terms: &BTreeMap<usize, Terms<'_>>) -> Self {
        let (mut first, mut second, mut all) = (Vec::new(), Vec::new(), true);
        let mut members: Vec<(&usize, &Terms<'_>)> = terms.iter().collect();
        members.sort_by_key(|(at, _)| (!needs.asked.contains(at), &needs.catalog.projects[**at].key));
        for (&at, terms) in members {
            let project = &needs.catalog.projects[at];
            let coming: Vec<_> = project.releases.iter().filter_map(|release| terms.files(release)).collect();
            let read = coming.iter().any(|files| files.iter().all(|file| file.declared.is_some()));
            all &= read || coming.is_empty();
            if !needs.is_for_us(at) {
                continue;
            }
            if !read {
                first.push((plain(&project.name), Some(at)));
                second.push((plain(&project.key.project), Some(at)));
                continue;
            }
            for declared in coming.iter().flatten().filter_map(|file| file.declared) {
                first.push((plain(&declared.name), Some(at)));
                second.extend(declared.provides.iter().map(|name| (plain(name), Some(at))));
            }
        }
        let mut bearers: BTreeMap<String, Vec<Option<usize>>> = BTreeMap::new();
        for (name, at) in first.into_iter().chain(second) {
            bearers.entry(name).or_default().push(at);
        }
        for jar in &needs.request.unmanaged {
            all &= jar.name.is_some();
            for name in jar.name.iter().chain(&jar.provides) {
                bearers.entry(plain(name)).or_default().push(None);
            }
        }
        Self { bearers, all }
    }
}

impl Needs<'_> {
    /// The names under which other plugins find a project on these terms: the names in the installed JARs, if all JARs
    /// of any release were read, else the display names.
    pub(super) fn names_of(&self, at: usize, terms: &Terms<'_>) -> BTreeSet<String> {
        let project = &self.catalog.projects[at];
        let coming: Vec<_> = project.releases.iter().filter_map(|release| terms.files(release)).collect();
        if coming.iter().any(|files| files.iter().all(|file| file.declared.is_some())) {
            coming.iter().flatten().filter_map(|file| file.declared).flat_map(own).collect()
        } else {
            [&project.name, &project.key.project, &project.id].into_iter().map(|name| plain(name)).collect()
        }
    }

    /// The plugins behind the names that a release requires to load.
    pub(super) fn by_jars(&self, place: usize, terms: &Terms<'_>, release: &Release) -> Vec<Leads> {
        let Some(called) = &self.called else { return Vec::new() };
        let files = terms.files(release).unwrap_or_default();
        let inside: Vec<&Declared> = files.iter().filter_map(|file| file.declared).collect();
        let own: BTreeSet<String> = inside.iter().flat_map(|declared| own(declared)).collect();
        let names: BTreeSet<String> =
            inside.iter().flat_map(|declared| &declared.depend).map(|name| plain(name)).collect();
        names.difference(&own).flat_map(|name| self.by_name(called, place, release, name)).collect()
    }

    fn by_name(&self, called: &Called, place: usize, release: &Release, name: &str) -> Vec<Leads> {
        match called.bearers.get(name).and_then(|bearers| bearers.iter().find(|at| **at != Some(place))) {
            Some(Some(other)) => return vec![Leads::To(*other)],
            Some(None) => return Vec::new(),
            None => {}
        }
        let (mut unknown, mut unread) = (Vec::new(), false);
        let mut lines: Vec<&Dependency> = release.dependencies.iter().collect();
        lines.sort_by_key(|line| (&line.project_id, &line.name));
        for line in lines {
            if !matches!(line.kind, DependencyKind::Required | DependencyKind::Optional) {
                continue;
            }
            match self.line(place, line) {
                Leads::To(other) if self.has_name(other, name) => return vec![Leads::To(other)],
                Leads::Unknown => unknown.push(Leads::Unknown),
                Leads::Unread => unread = true,
                Leads::To(_) | Leads::Nobody | Leads::File | Leads::Nowhere => {}
            }
        }
        if !unknown.is_empty() {
            return unknown;
        }
        let is_file = self.catalog.projects[place].key.source == Source::Url;
        let has_run = self.request.running.is_some();
        if called.all && (is_file || has_run) && !unread { vec![Leads::Nobody] } else { Vec::new() }
    }

    /// Whether the project has this display name, or the main JAR of any release declares it.
    fn has_name(&self, at: usize, name: &str) -> bool {
        let project = &self.catalog.projects[at];
        let mut read = project.releases.iter().filter_map(|release| release.declared.as_ref());
        read.any(|declared| own(declared).contains(name)) || is_called(project, name)
    }
}
