//! Pure. Resolves facts that no page states: maps their names to projects and keeps the last fact about each.

use std::collections::BTreeSet;

use super::dependency_targets::{DependencyTarget, find_project};
use super::known_constraints::{
    self, Bound, Constraint, ConstraintSources, NeededProject, UserConstraint, constraints_on, has_guessed_constraint,
    is_module, is_named,
};
use super::known_file::KnownFile;
use super::rules::eligible_at;
use crate::model::catalog::{Catalog, Project, ProjectKey, Release, Source};
use crate::model::compatibility_facts::FactSource;
use crate::model::delisted::has_any_release;
use crate::model::did_you_mean::nearest;
use crate::model::request::{PluginRequest, Request, Running};
use crate::model::software::Software;

/// The context in which the facts of a release are resolved.
#[derive(Clone, Copy)]
pub(crate) struct BoundContext<'x> {
    sources: ConstraintSources<'x>,
    plugin_requests: &'x [PluginRequest],
    /// The positions of the requested projects.
    requested: Option<&'x BTreeSet<usize>>,
    running: Option<&'x Running>,
    /// Identified unmanaged JARs, which stand for their projects.
    files: &'x [KnownFile<'x>],
    software: Software,
}

impl<'x> BoundContext<'x> {
    /// For a plugin of a server. `user` holds the constraints of its Plugin object.
    pub(super) fn new(request: &'x Request, requested: &'x BTreeSet<usize>, user: Option<UserConstraint<'x>>) -> Self {
        let sources = ConstraintSources { cluster: &request.facts, user };
        Self {
            sources,
            plugin_requests: &request.plugins,
            requested: Some(requested),
            running: request.running.as_ref(),
            files: &[],
            software: request.software,
        }
    }

    /// The same context on a server with these files.
    pub(super) fn with_files(self, files: &'x [KnownFile<'x>]) -> Self {
        Self { files, ..self }
    }

    /// The context without a server: built-in facts only.
    pub(super) const BUILT_IN: BoundContext<'static> = BoundContext {
        sources: ConstraintSources::NONE,
        plugin_requests: &[],
        requested: None,
        running: None,
        files: &[],
        software: Software::Paper,
    };

    /// Whether facts about `project` may resolve differently on another server.
    pub(super) fn depends_on_server(&self, project: &Project) -> bool {
        self.sources.mentions(project) || is_module(project)
    }

    /// Whether a guess about `project` depends on the running releases.
    pub(super) fn has_running_guess(&self, project: &Project) -> bool {
        self.running.is_some_and(|running| has_guessed_constraint(project, running))
    }

    /// Whether the project has any release for the server.
    pub(super) fn has_release(&self, project: &Project) -> bool {
        has_any_release(project, self.software, self.running)
    }

    /// The running release of a project that is delisted.
    pub(super) fn delisted_release(&self, project: &Project) -> Option<&'x Release> {
        self.running.and_then(|running| running.delisted_release(project))
    }

    /// The ids of the releases in `running` that belong to the project at `position` or to projects that its facts bind
    /// it to.
    pub(super) fn running_ids<'c>(&self, catalog: &'c Catalog, running: &'c Running, position: usize) -> Vec<&'c str> {
        let running_releases_of = |position: usize| {
            let project = &catalog.projects[position];
            project
                .releases
                .iter()
                .chain(running.delisted_release(project))
                .filter(|release| running.runs_release(release))
        };
        let bounds = running_releases_of(position).flat_map(|release| self.bounds(catalog, position, release));
        let bound_to = bounds
            .filter_map(|(target, _)| if let DependencyTarget::Project(found) = target { Some(found) } else { None });
        running_releases_of(position)
            .chain(bound_to.flat_map(running_releases_of))
            .map(|release| release.id.as_str())
            .collect()
    }

    /// Whether a release runs.
    pub(super) fn is_running(&self, release: &Release) -> bool {
        self.running.is_some_and(|running| running.runs_release(release))
    }

    /// The bounds of a release of the project at `position` beyond its page, with their targets. There is one for each
    /// plugin.
    pub(super) fn bounds(
        &self,
        catalog: &Catalog,
        position: usize,
        release: &Release,
    ) -> Vec<(DependencyTarget, Bound)> {
        let project = &catalog.projects[position];
        let mut bounds: Vec<(DependencyTarget, Bound)> = Vec::new();
        for Constraint { project: needed, bound } in constraints_on(project, release, self.sources) {
            let Some(target) = self.resolve_target(catalog, position, &needed, &bound) else { continue };
            bounds.retain(|(other, _)| !is_same_target(other, &target));
            if !matches!(&target, DependencyTarget::Project(found) if *found == position) {
                bounds.push((target, bound));
            }
        }
        bounds
    }

    /// The bound of an unmanaged JAR on the project at `position` beyond its page: the last one counts. No Plugin
    /// object constrains it.
    pub(super) fn file_bound(&self, catalog: &Catalog, file: &KnownFile<'_>, position: usize) -> Option<Bound> {
        let sources = ConstraintSources { user: None, ..self.sources };
        let context = Self { sources, files: &[], ..*self };
        let other = &catalog.projects[position];
        let is_other = |needed: &NeededProject<'_>, bound: &Bound| {
            let target = context.resolve_target(catalog, file.position, needed, bound);
            let namesake =
                |key: &ProjectKey, name: &str| key.source != other.key.source && other.name.eq_ignore_ascii_case(name);
            matches!(target, Some(DependencyTarget::Project(found)) if found == position)
                || matches!(needed, NeededProject::Key(key, name) if namesake(key, name))
        };
        let needs = constraints_on(file.project, file.release, sources).into_iter().rev();
        needs.filter(|need| is_other(&need.project, &need.bound)).map(|need| need.bound).next()
    }

    /// The target of a needed plugin. `None` if the need does not apply to this server.
    fn resolve_target(
        &self,
        catalog: &Catalog,
        position: usize,
        needed: &NeededProject<'_>,
        bound: &Bound,
    ) -> Option<DependencyTarget> {
        let source = catalog.projects[position].key.source;
        let (key, name) = match needed {
            NeededProject::Key(key, name) => (key.clone(), *name),
            NeededProject::Name(name) => {
                if let Some(found) = self.find_requested(catalog, source, name) {
                    return Some(DependencyTarget::Project(found));
                }
                if self.files.iter().any(|file| is_named(file.project, name)) {
                    return Some(DependencyTarget::Unmanaged);
                }
                if source == Source::Url {
                    return Some(self.unknown_target(catalog, name, "no plugin of this server has that name", bound));
                }
                (ProjectKey { source, project: (*name).to_owned() }, *name)
            }
            NeededProject::AnyRequested(names) => {
                let mut found = names.iter().filter_map(|name| self.find_requested_by_name(catalog, source, name));
                let matches_name = |file: &KnownFile<'_>| names.iter().any(|name| is_named(file.project, name));
                let unmanaged = || self.files.iter().any(matches_name).then_some(DependencyTarget::Unmanaged);
                return found.next().map(DependencyTarget::Project).or_else(unmanaged);
            }
        };
        let namesake = |file: &KnownFile<'_>| {
            file.project.key.source != key.source && file.project.name.eq_ignore_ascii_case(name)
        };
        let target = match (find_project(catalog, &key), catalog.unread_reason(&key), needed) {
            (Some(found), _, _) if self.files.iter().any(|file| file.is_for(catalog, found)) => {
                DependencyTarget::Unmanaged
            }
            (_, _, NeededProject::Key(..)) if self.files.iter().any(namesake) => DependencyTarget::Unmanaged,
            (Some(found), _, _) => DependencyTarget::Project(found),
            (None, None, _) => DependencyTarget::Fetch(key),
            (None, Some(because), NeededProject::Key(..)) => {
                DependencyTarget::Unread { project: name.to_owned(), because: because.to_owned() }
            }
            (None, Some(because), NeededProject::Name(_) | NeededProject::AnyRequested(_)) => {
                self.unknown_target(catalog, name, because, bound)
            }
        };
        Some(target)
    }

    /// A requested plugin from any source, by its name or the name of its object.
    fn find_requested(&self, catalog: &Catalog, source: Source, name: &str) -> Option<usize> {
        self.find_requested_by_name(catalog, source, name).or_else(|| {
            let plugin_request =
                self.plugin_requests.iter().find(|plugin_request| plugin_request.object.eq_ignore_ascii_case(name))?;
            find_project(catalog, &plugin_request.key)
        })
    }

    /// A requested plugin by its name alone. Of two with one name, the one from the same source counts.
    fn find_requested_by_name(&self, catalog: &Catalog, source: Source, name: &str) -> Option<usize> {
        let requested = || self.requested.into_iter().flatten().copied();
        let mut matching: Vec<usize> = requested().filter(|&at| is_named(&catalog.projects[at], name)).collect();
        matching.sort_by_key(|&at| (catalog.projects[at].key.source != source, &catalog.projects[at].key));
        matching.first().copied()
    }

    fn unknown_target(&self, catalog: &Catalog, name: &str, because: &str, bound: &Bound) -> DependencyTarget {
        let requested_names = self.requested.into_iter().flatten().map(|&at| catalog.projects[at].name.as_str());
        DependencyTarget::Unknown {
            plugin: name.to_owned(),
            because: because.to_owned(),
            nearest: nearest(name, requested_names).take(3).map(str::to_owned).collect(),
            says: match bound {
                Bound::Within(_, source) | Bound::Same(_, source) => source.clone(),
                Bound::Guess => FactSource::Plugin { object: String::new() },
            },
        }
    }
}

/// Whether two targets are the same plugin.
fn is_same_target(a: &DependencyTarget, b: &DependencyTarget) -> bool {
    match (a, b) {
        (DependencyTarget::Project(a), DependencyTarget::Project(b)) => a == b,
        (DependencyTarget::Fetch(a), DependencyTarget::Fetch(b)) => a == b,
        (DependencyTarget::Unmanaged, DependencyTarget::Unmanaged) => true,
        (DependencyTarget::Unknown { plugin: a, .. }, DependencyTarget::Unknown { plugin: b, .. }) => {
            a.eq_ignore_ascii_case(b)
        }
        _ => false,
    }
}

/// The index of the oldest release (of releases sorted oldest first) that a release is assumed to need: the newest of
/// its channel on its day.
pub(crate) fn guessed_minimum(others: &[&Release], release: &Release) -> Option<usize> {
    let until = release.published.map(|published| eligible_at(published, known_constraints::SAME_RELEASE_WINDOW));
    // The day of a release without a date is unknown.
    let on_its_day =
        |other: &&Release| other.channel == release.channel && other.published.is_some() && other.published <= until;
    others.iter().rposition(on_its_day).map(|at| at + 1)
}
