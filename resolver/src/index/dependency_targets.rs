//! Pure. Finds the projects that a dependency of a release names.

use super::jar_selection::Jars;
use super::provided_names::NameTable;
use super::version_bounds::BoundContext;
use crate::model::catalog::{Catalog, Dependency, DependencyKind, Project, ProjectKey, Release};
use crate::model::compatibility_facts::FactSource;

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
