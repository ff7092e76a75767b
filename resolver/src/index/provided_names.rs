//! Pure. Resolves the names in JARs: the names of a server's plugins, and the targets of the names that they cannot
//! load without.

use std::collections::{BTreeMap, BTreeSet};

use super::dependency_targets::{DependencyTarget, resolve_target, sorted_dependencies};
use super::jar_selection::Jars;
use super::known_constraints::is_named;
use super::version_bounds::BoundContext;
use crate::model::bundled_plugins::bundled_in_any;
use crate::model::catalog::{Catalog, Declared, DependencyKind, Project, Release, Source};
use crate::model::delisted::has_any_release;
use crate::model::name_conflict::folded;
use crate::model::request::Request;
use crate::model::unmanaged_jar::UnmanagedJar;

/// The names in the selected JARs of a plugin, over all its releases. Names are folded.
#[derive(Debug, Default)]
pub(crate) struct DeclaredNames {
    /// Its own names.
    own_names: BTreeSet<String>,
    /// Further names under which other plugins find it.
    provides: BTreeSet<String>,
    /// Names that some release does not load without.
    requires: BTreeSet<String>,
    /// Whether all selected JARs of some release were read.
    read: bool,
    /// Whether JARs can be selected, but no release was read completely.
    unread: bool,
}

impl DeclaredNames {
    pub(super) fn from_jars(project: &Project, jars: &Jars<'_>) -> Self {
        let mut names = Self::default();
        for release in project.releases.iter().filter(|release| has_read_jar(release)) {
            let Some(picked) = jars.declared(release) else { continue };
            names.read |= picked.iter().all(Option::is_some);
            for declared in picked.into_iter().flatten() {
                names.own_names.insert(folded(&declared.name));
                names.provides.extend(declared.provides.iter().map(|name| folded(name)));
                names.requires.extend(declared.depend.iter().map(|name| folded(name)));
            }
        }
        names.unread = !names.read && project.releases.iter().any(|release| jars.select(release).is_ok());
        names
    }

    /// Whether other plugins find the project under this name (folded).
    pub(super) fn has_name(&self, project: &Project, name: &str) -> bool {
        if self.read { self.own_names.contains(name) || self.provides.contains(name) } else { is_named(project, name) }
    }

    /// The names (folded) under which other plugins find the project.
    pub(super) fn names(&self, project: &Project) -> BTreeSet<String> {
        if self.read {
            return self.own_names.union(&self.provides).cloned().collect();
        }
        [&project.name, &project.key.project, &project.id].into_iter().map(|name| folded(name)).collect()
    }

    /// Whether any release requires another plugin by name.
    pub(super) fn has_requirements(&self) -> bool {
        !self.requires.is_empty()
    }
}

fn has_read_jar(release: &Release) -> bool {
    release.jars().any(|jar| jar.declared.is_some())
}

/// An owner of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// The project at this position of the catalog.
    Project(usize),
    /// An unmanaged JAR on the server.
    Unmanaged,
    /// The server itself, from some version on.
    Server,
}

/// The owners of names on one server.
pub(crate) struct NameTable {
    /// The owners by folded name, preferred owner first. `None` before the members are known.
    owners: Option<BTreeMap<String, Vec<Owner>>>,
    /// Whether every JAR that can be selected was read.
    read: bool,
    /// Whether the server has run, so that its unmanaged JARs are known.
    has_run: bool,
}

/// The meaning of the names that one plugin requires, on one server.
#[derive(PartialEq, Eq)]
pub(super) struct NameResolution {
    names: Vec<(String, Vec<Owner>)>,
    read: bool,
    has_run: bool,
}

/// A member of the dependency closure.
pub(crate) struct NameOwner<'x> {
    pub(super) position: usize,
    pub(super) requested: bool,
    pub(super) declared: &'x DeclaredNames,
}

impl NameTable {
    /// The table before the members are known: names have no target.
    pub(super) fn empty() -> Self {
        Self { owners: None, read: false, has_run: false }
    }

    /// The names of the members. Own names come before provided names, requested plugins before dependencies, and all
    /// of them before unmanaged JARs. A project without a JAR that was read is found under its display name and its
    /// slug.
    pub(super) fn new(catalog: &Catalog, request: &Request, members: &[NameOwner<'_>]) -> Self {
        let mut claims = Vec::new();
        for NameOwner { position, requested, declared } in members {
            let project = &catalog.projects[*position];
            if !has_any_release(project, request.software, request.running.as_ref()) {
                continue;
            }
            let mut claim =
                |second: bool, name: String| claims.push((second, !requested, &project.key, name, *position));
            if declared.read {
                declared.own_names.iter().for_each(|name| claim(false, name.clone()));
                declared.provides.iter().for_each(|name| claim(true, name.clone()));
            } else {
                claim(false, folded(&project.name));
                claim(true, folded(&project.key.project));
            }
        }
        claims.sort();
        let mut owners: BTreeMap<String, Vec<Owner>> = BTreeMap::new();
        let claimed = claims.into_iter().map(|(_, _, _, name, position)| (name, Owner::Project(position)));
        let unmanaged =
            request.unmanaged.iter().flat_map(UnmanagedJar::names).map(|name| (folded(name), Owner::Unmanaged));
        let bundled = bundled_in_any(request.software).map(|plugin| (folded(plugin.name), Owner::Server));
        for (name, owner) in claimed.chain(unmanaged).chain(bundled) {
            let name_owners = owners.entry(name).or_default();
            if !name_owners.contains(&owner) {
                name_owners.push(owner);
            }
        }
        let read = members.iter().all(|member| !member.declared.unread)
            && request.unmanaged.iter().all(|jar| jar.name.is_some());
        Self { owners: Some(owners), read, has_run: request.running.is_some() }
    }

    /// The part of the table that matters to one plugin. `None` if no part does.
    pub(super) fn resolve(&self, declared: &DeclaredNames) -> Option<NameResolution> {
        let owners = self.owners.as_ref().filter(|_| declared.has_requirements())?;
        let names = declared.requires.iter().map(|name| (name.clone(), owners.get(name).cloned().unwrap_or_default()));
        Some(NameResolution { names: names.collect(), read: self.read, has_run: self.has_run })
    }

    /// The targets of the names that the selected JARs of a release cannot load without. They outrank the page: a
    /// dependency that the page calls optional becomes required.
    pub(super) fn required_targets(
        &self,
        catalog: &Catalog,
        position: usize,
        (release, jars): (&Release, &Jars<'_>),
        context: &BoundContext<'_>,
    ) -> Vec<DependencyTarget> {
        let Some(owners) = self.owners.as_ref().filter(|_| has_read_jar(release)) else { return Vec::new() };
        let declared: Vec<&Declared> = jars.declared(release).into_iter().flatten().flatten().collect();
        let own_names: BTreeSet<String> = declared.iter().flat_map(|declared| declared.names()).map(folded).collect();
        let required: BTreeSet<&str> =
            declared.iter().flat_map(|declared| &declared.depend).map(String::as_str).collect();
        let mut targets = Vec::new();
        for name in required {
            let folded = folded(name);
            let others = owners.get(&folded).into_iter().flatten();
            match others.copied().find(|owner| *owner != Owner::Project(position)) {
                _ if own_names.contains(&folded) => {}
                Some(Owner::Project(found)) => targets.push(DependencyTarget::Project(found)),
                Some(Owner::Unmanaged) => {}
                // Whether the server has it depends on the chosen version. It is at no source, so it is not installed.
                Some(Owner::Server) => targets.push(DependencyTarget::NotAtSource(name.to_owned())),
                None => targets.extend(self.page_targets(catalog, position, (release, name), context)),
            }
        }
        targets
    }

    /// The targets of a name that no plugin of the server has. The page may list the project as optional.
    fn page_targets(
        &self,
        catalog: &Catalog,
        position: usize,
        (release, name): (&Release, &str),
        context: &BoundContext<'_>,
    ) -> Vec<DependencyTarget> {
        let (mut unfetched, mut unsure) = (Vec::new(), false);
        for entry in sorted_dependencies(release) {
            match entry.kind {
                DependencyKind::Required | DependencyKind::Optional => {}
                DependencyKind::Incompatible | DependencyKind::Embedded => continue,
            }
            match resolve_target(catalog, context, position, entry) {
                DependencyTarget::Project(found) if has_name(&catalog.projects[found], name) => {
                    return vec![DependencyTarget::Project(found)];
                }
                DependencyTarget::Fetch(key) => unfetched.push(DependencyTarget::Fetch(key)),
                DependencyTarget::Unread { .. } => unsure = true,
                // No page refers to the last three.
                DependencyTarget::Project(_)
                | DependencyTarget::NotAtSource(_)
                | DependencyTarget::NeverLoaded
                | DependencyTarget::Unknown { .. }
                | DependencyTarget::Unmanaged
                | DependencyTarget::Missing(_) => {}
            }
        }
        if !unfetched.is_empty() {
            return unfetched;
        }
        // A user who wrote the URL of a file knows what it needs and can name the plugin.
        let knows_unmanaged = self.has_run || catalog.projects[position].key.source == Source::Url;
        let certain = self.read && knows_unmanaged && !unsure;
        vec![if certain {
            DependencyTarget::Missing(name.to_owned())
        } else {
            DependencyTarget::NotAtSource(name.to_owned())
        }]
    }
}

/// Whether a project, or any JAR of its releases that was read, has this name.
fn has_name(project: &Project, name: &str) -> bool {
    let mut read = project.releases.iter().filter_map(|release| release.declared.as_ref()).flat_map(Declared::names);
    is_named(project, name) || read.any(|declared_name| folded(declared_name) == folded(name))
}
