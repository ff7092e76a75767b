//! Pure. Finds the projects that a dependency of a release names.

use std::collections::BTreeSet;

use super::jar_selection::Jars;
use super::known_file::KnownFile;
use super::provided_names::NameTable;
use super::version_bounds::BoundContext;
use crate::model::catalog::{Catalog, Dependency, DependencyKind, Project, ProjectKey, Release};
use crate::model::compatibility_facts::FactSource;
use crate::model::gap::Gap;
use crate::model::request::{Dependencies, Request};
use crate::model::unusable::Unusable;

/// The target of a dependency.
pub(crate) enum DependencyTarget {
    /// A project of the catalog, by position.
    Project(usize),
    /// A project that has to be fetched.
    Fetch(ProjectKey),
    /// A project that could not be read.
    Unread { project: String, because: String },
    /// A name used in a fact or constraint that matches no readable project.
    Unknown { plugin: String, because: String, nearest: Vec<String>, says: FactSource },
    /// A project that its source does not have.
    NotAtSource(String),
    /// A required name that no plugin of this server has.
    Missing(String),
    /// An unmanaged JAR that is installed.
    Unmanaged,
    /// A project that this server would never load: pages do not state for which loader a dependency is meant.
    NeverLoaded,
}

pub(crate) fn find_project(catalog: &Catalog, key: &ProjectKey) -> Option<usize> {
    let found = catalog.project(key)?;
    catalog.projects.iter().position(|project| std::ptr::eq(project, found))
}

#[derive(Clone, Copy)]
pub(crate) struct Follow<'x> {
    pub(super) catalog: &'x Catalog,
    pub(super) request: &'x Request,
    pub(super) runs: bool,
    pub(super) requested: &'x BTreeSet<usize>,
    pub(super) files: &'x [KnownFile<'x>],
}

/// Records the required dependencies of one release. Returns why the release cannot be used if a target of them is
/// unavailable.
pub(crate) fn collect_dependencies(
    targets: Vec<DependencyTarget>,
    at: Follow<'_>,
    required: &mut BTreeSet<usize>,
    missing_at_source: &mut Vec<String>,
    gap: &mut Gap,
) -> Option<Unusable> {
    let mut unusable = None;
    let mut needed = Vec::new();
    let mut proposed = Vec::new();
    for target in targets {
        match target {
            DependencyTarget::Project(position) if at.files.iter().any(|file| file.is_for(at.catalog, position)) => {}
            DependencyTarget::Project(position) => {
                let project = &at.catalog.projects[position];
                match at.request.dependencies {
                    Dependencies::Propose | Dependencies::Forbid if at.requested.contains(&position) => {
                        needed.push(position);
                    }
                    Dependencies::Install => needed.push(position),
                    Dependencies::Propose => proposed.push((project.name.clone(), project.key.clone())),
                    Dependencies::Forbid => {
                        unusable.get_or_insert(Unusable::NeedsForbidden { project: project.name.clone() });
                    }
                }
            }
            DependencyTarget::Fetch(key) => {
                gap.fetch.insert(key);
            }
            // A running release has what it needs, since it runs.
            DependencyTarget::Unread { project, .. } if at.runs => missing_at_source.push(project),
            DependencyTarget::Unread { project, because } => {
                unusable.get_or_insert(Unusable::NeedsUnread { project, because });
            }
            DependencyTarget::NotAtSource(name) => missing_at_source.push(name),
            DependencyTarget::Unknown { plugin, because, nearest, says } => {
                unusable.get_or_insert(Unusable::NeedsUnknown { plugin, because, nearest, says });
            }
            DependencyTarget::Missing(plugin) => {
                unusable.get_or_insert(Unusable::NeedsMissing { plugin });
            }
            DependencyTarget::Unmanaged | DependencyTarget::NeverLoaded => {}
        }
    }
    proposed.sort();
    proposed.dedup();
    // With another error, creating these Plugin objects would not be enough.
    let unusable =
        unusable.or_else(|| (!proposed.is_empty()).then_some(Unusable::NeedsProposed { projects: proposed }));
    // A release that may not be used adds no dependencies and passes on no rules.
    if unusable.is_none() {
        required.extend(needed);
    }
    unusable
}

/// The targets of the required dependencies of a release, including those from facts.
pub(crate) fn required_targets(
    catalog: &Catalog,
    names: &NameTable,
    position: usize,
    (release, jars): (&Release, &Jars<'_>),
    context: &BoundContext<'_>,
) -> Vec<DependencyTarget> {
    let page = sorted_dependencies(release)
        .into_iter()
        .filter(|dependency| dependency.kind == DependencyKind::Required)
        .map(|dependency| resolve_target(catalog, context, position, dependency));
    let fact_targets = context.bounds(catalog, position, release).into_iter().map(|(target, _)| target);
    page.chain(names.required_targets(catalog, position, (release, jars), context)).chain(fact_targets).collect()
}

/// The dependencies of a page in an order that does not depend on the page: the first of several errors is the one that
/// is reported.
pub(crate) fn sorted_dependencies(release: &Release) -> Vec<&Dependency> {
    let mut entries: Vec<&Dependency> = release.dependencies.iter().collect();
    entries.sort_by(|a, b| {
        (&a.project_id, &a.name, &a.version_id, a.kind).cmp(&(&b.project_id, &b.name, &b.version_id, b.kind))
    });
    entries
}

/// The target of one dependency on a page. A running release counts as available even if its page no longer lists it.
pub(crate) fn resolve_target(
    catalog: &Catalog,
    context: &BoundContext<'_>,
    position: usize,
    dependency: &Dependency,
) -> DependencyTarget {
    let source = catalog.projects[position].key.source;
    let keys = [&dependency.project_id, &dependency.name].into_iter().flatten();
    let keys: Vec<ProjectKey> = keys.map(|project| ProjectKey { source, project: project.clone() }).collect();
    let by_release = || {
        let id = dependency.version_id.as_ref()?;
        let has = |project: &Project| {
            project.releases.iter().chain(context.delisted_release(project)).any(|release| release.id == *id)
        };
        catalog.projects.iter().position(|project| project.key.source == source && has(project))
    };
    if let Some(found) = keys.iter().find_map(|key| find_project(catalog, key)).or_else(by_release) {
        let usable = found != position && context.has_release(&catalog.projects[found]);
        return if usable { DependencyTarget::Project(found) } else { DependencyTarget::NeverLoaded };
    }
    let shown = dependency.name.as_ref().or(dependency.project_id.as_ref()).or(dependency.version_id.as_ref());
    let shown = shown.map_or("another project", String::as_str);
    if let Some(because) = keys.iter().find_map(|key| catalog.unread_reason(key)) {
        return DependencyTarget::Unread { project: shown.to_owned(), because: because.to_owned() };
    }
    match &dependency.project_id {
        Some(id) => absent_target(catalog, ProjectKey { source, project: id.clone() }, shown),
        None => DependencyTarget::NotAtSource(shown.to_owned()),
    }
}

fn absent_target(catalog: &Catalog, key: ProjectKey, shown: &str) -> DependencyTarget {
    match catalog.unread_reason(&key) {
        Some(because) => DependencyTarget::Unread { project: shown.to_owned(), because: because.to_owned() },
        None => DependencyTarget::Fetch(key),
    }
}
