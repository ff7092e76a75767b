//! Pure. Resolves the names in JARs: the names of a server's plugins, and the targets of the names that they cannot
//! load without.

use std::collections::{BTreeMap, BTreeSet};

use super::dependency_closure::{DependencyTarget, in_order, target};
use super::jar_selection::Jars;
use super::version_bounds::BoundContext;
use crate::catalog::{Catalog, Declared, DependencyKind, Project, Release, Source};
use crate::known_constraints::is_called;
use crate::name_conflict::folded;
use crate::request::{Request, has_any};
use crate::unmanaged_jar::UnmanagedJar;

/// The names in the selected JARs of a plugin, over all its releases. Names are folded.
#[derive(Debug, Default)]
pub(super) struct DeclaredNames {
    /// Its own names.
    own: BTreeSet<String>,
    /// Further names under which other plugins find it.
    provides: BTreeSet<String>,
    /// Names that some release does not load without.
    asks: BTreeSet<String>,
    /// Whether all selected JARs of some release were read.
    read: bool,
    /// Whether JARs can be selected, but no release was read completely.
    unread: bool,
}

impl DeclaredNames {
    pub(super) fn of(project: &Project, jars: &Jars<'_>) -> Self {
        let mut spoken = Self::default();
        for release in project.releases.iter().filter(|release| is_read(release)) {
            let Some(picked) = jars.declared(release) else { continue };
            spoken.read |= picked.iter().all(Option::is_some);
            for declared in picked.into_iter().flatten() {
                spoken.own.insert(folded(&declared.name));
                spoken.provides.extend(declared.provides.iter().map(|name| folded(name)));
                spoken.asks.extend(declared.depend.iter().map(|name| folded(name)));
            }
        }
        spoken.unread = !spoken.read && project.releases.iter().any(|release| jars.pick(release).is_ok());
        spoken
    }

    /// Whether other plugins find the project under this name (folded).
    pub(super) fn bears(&self, project: &Project, name: &str) -> bool {
        if self.read { self.own.contains(name) || self.provides.contains(name) } else { is_called(project, name) }
    }

    /// The names (folded) under which other plugins find the project.
    pub(super) fn names(&self, project: &Project) -> BTreeSet<String> {
        if self.read {
            return self.own.union(&self.provides).cloned().collect();
        }
        [&project.name, &project.key.project, &project.id].into_iter().map(|name| folded(name)).collect()
    }

    /// Whether any release requires another plugin by name.
    pub(super) fn asks(&self) -> bool {
        !self.asks.is_empty()
    }
}

fn is_read(release: &Release) -> bool {
    release.jars().any(|jar| jar.declared.is_some())
}

/// An owner of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NameOwners {
    /// The project at this position of the catalog.
    Project(usize),
    /// An unmanaged JAR on the server.
    Own,
}

/// The owners of names on one server.
pub(super) struct NameTable {
    /// The owners by folded name, preferred owner first. `None` before the members are known.
    called: Option<BTreeMap<String, Vec<NameOwners>>>,
    /// Whether every JAR that can be selected was read.
    read: bool,
    /// Whether the server has run, so that its unmanaged JARs are known.
    ran: bool,
}

/// The meaning of the names that one plugin requires, on one server.
#[derive(PartialEq, Eq)]
pub(super) struct NameResolution {
    names: Vec<(String, Vec<NameOwners>)>,
    read: bool,
    ran: bool,
}

/// A member of the dependency closure.
pub(super) struct NameOwner<'x> {
    pub(super) place: usize,
    pub(super) requested: bool,
    pub(super) spoken: &'x DeclaredNames,
}

impl NameTable {
    /// The table before the members are known: names have no target.
    pub(super) fn unasked() -> Self {
        Self { called: None, read: false, ran: false }
    }

    /// The names of the members. Own names come before provided names, requested plugins before dependencies, and all
    /// of them before unmanaged JARs. A project without a JAR that was read is found under its display name and its
    /// slug.
    pub(super) fn of(catalog: &Catalog, request: &Request, bearers: &[NameOwner<'_>]) -> Self {
        let mut claims = Vec::new();
        for NameOwner { place, requested, spoken } in bearers {
            let project = &catalog.projects[*place];
            if !has_any(project, request.software, request.running.as_ref()) {
                continue;
            }
            let mut claim = |second: bool, name: String| claims.push((second, !requested, &project.key, name, *place));
            if spoken.read {
                spoken.own.iter().for_each(|name| claim(false, name.clone()));
                spoken.provides.iter().for_each(|name| claim(true, name.clone()));
            } else {
                claim(false, folded(&project.name));
                claim(true, folded(&project.key.project));
            }
        }
        claims.sort();
        let mut called: BTreeMap<String, Vec<NameOwners>> = BTreeMap::new();
        let claimed = claims.into_iter().map(|(_, _, _, name, place)| (name, NameOwners::Project(place)));
        let own = request.unmanaged.iter().flat_map(UnmanagedJar::names).map(|name| (folded(name), NameOwners::Own));
        for (name, who) in claimed.chain(own) {
            let bearers = called.entry(name).or_default();
            if !bearers.contains(&who) {
                bearers.push(who);
            }
        }
        let read = bearers.iter().all(|bearer| !bearer.spoken.unread)
            && request.unmanaged.iter().all(|jar| jar.name.is_some());
        Self { called: Some(called), read, ran: request.running.is_some() }
    }

    /// The part of the table that matters to one plugin. `None` if no part does.
    pub(super) fn meaning(&self, spoken: &DeclaredNames) -> Option<NameResolution> {
        let called = self.called.as_ref().filter(|_| spoken.asks())?;
        let names = spoken.asks.iter().map(|name| (name.clone(), called.get(name).cloned().unwrap_or_default()));
        Some(NameResolution { names: names.collect(), read: self.read, ran: self.ran })
    }

    /// The targets of the names that the selected JARs of a release cannot load without. They outrank the page: a
    /// dependency that the page calls optional becomes required.
    pub(super) fn asked_by(
        &self,
        catalog: &Catalog,
        place: usize,
        (release, jars): (&Release, &Jars<'_>),
        facing: &BoundContext<'_>,
    ) -> Vec<DependencyTarget> {
        let Some(called) = self.called.as_ref().filter(|_| is_read(release)) else { return Vec::new() };
        let declared: Vec<&Declared> = jars.declared(release).into_iter().flatten().flatten().collect();
        let own: BTreeSet<String> = declared.iter().flat_map(|declared| declared.names()).map(folded).collect();
        let asks: BTreeSet<&str> = declared.iter().flat_map(|declared| &declared.depend).map(String::as_str).collect();
        let mut targets = Vec::new();
        for name in asks {
            let folded = folded(name);
            let others = called.get(&folded).into_iter().flatten();
            match others.copied().find(|who| *who != NameOwners::Project(place)) {
                _ if own.contains(&folded) => {}
                Some(NameOwners::Project(found)) => targets.push(DependencyTarget::Project(found)),
                Some(NameOwners::Own) => {}
                None => targets.extend(self.on_page(catalog, place, (release, name), facing)),
            }
        }
        targets
    }

    /// The targets of a name that no plugin of the server has. The page may list the project as optional.
    fn on_page(
        &self,
        catalog: &Catalog,
        place: usize,
        (release, name): (&Release, &str),
        facing: &BoundContext<'_>,
    ) -> Vec<DependencyTarget> {
        let (mut unfetched, mut unsure) = (Vec::new(), false);
        for line in in_order(release) {
            match line.kind {
                DependencyKind::Required | DependencyKind::Optional => {}
                DependencyKind::Incompatible | DependencyKind::Embedded => continue,
            }
            match target(catalog, facing, place, line) {
                DependencyTarget::Project(found) if bears(&catalog.projects[found], name) => {
                    return vec![DependencyTarget::Project(found)];
                }
                DependencyTarget::Fetch(key) => unfetched.push(DependencyTarget::Fetch(key)),
                DependencyTarget::Unread { .. } => unsure = true,
                // No page refers to the last three.
                DependencyTarget::Project(_)
                | DependencyTarget::Outside(_)
                | DependencyTarget::Nothing
                | DependencyTarget::Unknown { .. }
                | DependencyTarget::Own
                | DependencyTarget::Missing(_) => {}
            }
        }
        if !unfetched.is_empty() {
            return unfetched;
        }
        // A user who wrote the URL of a file knows what it needs and can name the plugin.
        let seen = self.ran || catalog.projects[place].key.source == Source::Url;
        let certain = self.read && seen && !unsure;
        vec![if certain {
            DependencyTarget::Missing(name.to_owned())
        } else {
            DependencyTarget::Outside(name.to_owned())
        }]
    }
}

/// Whether a project, or any JAR of its releases that was read, has this name.
fn bears(project: &Project, name: &str) -> bool {
    let mut read = project.releases.iter().filter_map(|release| release.declared.as_ref()).flat_map(Declared::names);
    is_called(project, name) || read.any(|own| folded(own) == folded(name))
}
