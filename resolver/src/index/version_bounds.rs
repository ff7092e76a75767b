//! Pure. Resolves facts that no page states: maps their names to projects and keeps the last fact about each.

use std::collections::BTreeSet;

use super::dependency_closure::{DependencyTarget, find};
use super::identified_jars::KnownFile;
use crate::catalog::{Catalog, Project, ProjectKey, Release, Source};
use crate::compatibility_facts::FactSource;
use crate::did_you_mean::nearest;
use crate::known_constraints::{
    Bound, Constraint, ConstraintSources, Needed, UserConstraint, guesses, is_called, is_module, needs,
};
use crate::request::{PluginRequest, Request, Running, has_any};
use crate::software::Software;

/// The context in which the facts of a release are resolved.
#[derive(Clone, Copy)]
pub(super) struct BoundContext<'x> {
    voices: ConstraintSources<'x>,
    wishes: &'x [PluginRequest],
    /// The positions of the requested projects.
    requested: Option<&'x BTreeSet<usize>>,
    running: Option<&'x Running>,
    /// Identified unmanaged JARs, which stand for their projects.
    files: &'x [KnownFile<'x>],
    software: Software,
}

impl<'x> BoundContext<'x> {
    /// For a plugin of a server. `own` holds the constraints of its Plugin object.
    pub(super) fn of(request: &'x Request, requested: &'x BTreeSet<usize>, own: Option<UserConstraint<'x>>) -> Self {
        let voices = ConstraintSources { cluster: &request.facts, own };
        Self {
            voices,
            wishes: &request.plugins,
            requested: Some(requested),
            running: request.running.as_ref(),
            files: &[],
            software: request.software,
        }
    }

    /// The same context on a server with these files.
    pub(super) fn beside(self, files: &'x [KnownFile<'x>]) -> Self {
        Self { files, ..self }
    }

    /// The context without a server: built-in facts only.
    pub(super) const NOBODY: BoundContext<'static> = BoundContext {
        voices: ConstraintSources::NONE,
        wishes: &[],
        requested: None,
        running: None,
        files: &[],
        software: Software::Paper,
    };

    /// Whether facts about `project` may resolve differently on another server.
    pub(super) fn mentions(&self, project: &Project) -> bool {
        self.voices.mention(project) || is_module(project)
    }

    /// Whether a guess about `project` depends on the running releases.
    pub(super) fn guesses(&self, project: &Project) -> bool {
        self.running.is_some_and(|running| guesses(project, running))
    }

    /// Whether the project has any release for the server.
    pub(super) fn has_any(&self, project: &Project) -> bool {
        has_any(project, self.software, self.running)
    }

    /// The running release of a project that is delisted.
    pub(super) fn lost(&self, project: &Project) -> Option<&'x Release> {
        self.running.and_then(|running| running.lost_release(project))
    }

    /// The ids of the releases in `running` that belong to the project at `place` or to projects that its facts bind it
    /// to.
    pub(super) fn running<'c>(&self, catalog: &'c Catalog, running: &'c Running, place: usize) -> Vec<&'c str> {
        let of = |place: usize| {
            let project = &catalog.projects[place];
            project.releases.iter().chain(running.lost_release(project)).filter(|release| running.has(release))
        };
        let bounds = of(place).flat_map(|release| self.bounds(catalog, place, release));
        let bound_to = bounds
            .filter_map(|(target, _)| if let DependencyTarget::Project(found) = target { Some(found) } else { None });
        of(place).chain(bound_to.flat_map(of)).map(|release| release.id.as_str()).collect()
    }

    /// Whether a release runs.
    pub(super) fn runs(&self, release: &Release) -> bool {
        self.running.is_some_and(|running| running.has(release))
    }

    /// The bounds of a release of the project at `place` beyond its page, with their targets. There is one for each
    /// plugin.
    pub(super) fn bounds(&self, catalog: &Catalog, place: usize, release: &Release) -> Vec<(DependencyTarget, Bound)> {
        let project = &catalog.projects[place];
        let mut bounds: Vec<(DependencyTarget, Bound)> = Vec::new();
        for Constraint { project: needed, bound } in needs(project, release, self.voices) {
            let Some(target) = self.target(catalog, place, &needed, &bound) else { continue };
            bounds.retain(|(other, _)| !same(other, &target));
            if !matches!(&target, DependencyTarget::Project(found) if *found == place) {
                bounds.push((target, bound));
            }
        }
        bounds
    }

    /// The bound of an unmanaged JAR on the project at `place` beyond its page: the last one counts. No Plugin object
    /// constrains it.
    pub(super) fn bound_of(&self, catalog: &Catalog, file: &KnownFile<'_>, place: usize) -> Option<Bound> {
        let voices = ConstraintSources { own: None, ..self.voices };
        let facing = Self { voices, files: &[], ..*self };
        let other = &catalog.projects[place];
        let is_other = |needed: &Needed<'_>, bound: &Bound| {
            let target = facing.target(catalog, file.place, needed, bound);
            let namesake =
                |key: &ProjectKey, name: &str| key.source != other.key.source && other.name.eq_ignore_ascii_case(name);
            matches!(target, Some(DependencyTarget::Project(found)) if found == place)
                || matches!(needed, Needed::Key(key, name) if namesake(key, name))
        };
        let needs = needs(file.project, file.release, voices).into_iter().rev();
        needs.filter(|need| is_other(&need.project, &need.bound)).map(|need| need.bound).next()
    }

    /// The target of a needed plugin. `None` if the need does not apply to this server.
    fn target(&self, catalog: &Catalog, place: usize, needed: &Needed<'_>, bound: &Bound) -> Option<DependencyTarget> {
        let source = catalog.projects[place].key.source;
        let (key, name) = match needed {
            Needed::Key(key, name) => (key.clone(), *name),
            Needed::Called(name) => {
                if let Some(found) = self.of_this_server(catalog, source, name) {
                    return Some(DependencyTarget::Project(found));
                }
                if self.files.iter().any(|file| is_called(file.project, name)) {
                    return Some(DependencyTarget::Own);
                }
                if source == Source::Url {
                    return Some(self.unknown(catalog, name, "no plugin of this server is called so", bound));
                }
                (ProjectKey { source, project: (*name).to_owned() }, *name)
            }
            Needed::Beside(names) => {
                let mut found = names.iter().filter_map(|name| self.asked_for(catalog, source, name));
                let is_it = |file: &KnownFile<'_>| names.iter().any(|name| is_called(file.project, name));
                let own = || self.files.iter().any(is_it).then_some(DependencyTarget::Own);
                return found.next().map(DependencyTarget::Project).or_else(own);
            }
        };
        let namesake = |file: &KnownFile<'_>| {
            file.project.key.source != key.source && file.project.name.eq_ignore_ascii_case(name)
        };
        let target = match (find(catalog, &key), catalog.unread_because(&key), needed) {
            (Some(found), _, _) if self.files.iter().any(|file| file.is_of(catalog, found)) => DependencyTarget::Own,
            (_, _, Needed::Key(..)) if self.files.iter().any(namesake) => DependencyTarget::Own,
            (Some(found), _, _) => DependencyTarget::Project(found),
            (None, None, _) => DependencyTarget::Fetch(key),
            (None, Some(because), Needed::Key(..)) => {
                DependencyTarget::Unread { project: name.to_owned(), because: because.to_owned() }
            }
            (None, Some(because), Needed::Called(_) | Needed::Beside(_)) => self.unknown(catalog, name, because, bound),
        };
        Some(target)
    }

    /// A requested plugin from any source, by its name or the name of its object.
    fn of_this_server(&self, catalog: &Catalog, source: Source, name: &str) -> Option<usize> {
        self.asked_for(catalog, source, name).or_else(|| {
            let wish = self.wishes.iter().find(|wish| wish.object.eq_ignore_ascii_case(name))?;
            find(catalog, &wish.key)
        })
    }

    /// A requested plugin by its name alone. Of two with one name, the one from the same source counts.
    fn asked_for(&self, catalog: &Catalog, source: Source, name: &str) -> Option<usize> {
        let requested = || self.requested.into_iter().flatten().copied();
        let mut called: Vec<usize> = requested().filter(|&at| is_called(&catalog.projects[at], name)).collect();
        called.sort_by_key(|&at| (catalog.projects[at].key.source != source, &catalog.projects[at].key));
        called.first().copied()
    }

    fn unknown(&self, catalog: &Catalog, name: &str, because: &str, bound: &Bound) -> DependencyTarget {
        let known = self.requested.into_iter().flatten().map(|&at| catalog.projects[at].name.as_str());
        DependencyTarget::Unknown {
            plugin: name.to_owned(),
            because: because.to_owned(),
            nearest: nearest(name, known).take(3).map(str::to_owned).collect(),
            says: match bound {
                Bound::Within(_, says) | Bound::Same(_, says) => says.clone(),
                Bound::Guess => FactSource::Plugin { object: String::new() },
            },
        }
    }
}

/// Whether two targets are the same plugin.
fn same(a: &DependencyTarget, b: &DependencyTarget) -> bool {
    match (a, b) {
        (DependencyTarget::Project(a), DependencyTarget::Project(b)) => a == b,
        (DependencyTarget::Fetch(a), DependencyTarget::Fetch(b)) => a == b,
        (DependencyTarget::Own, DependencyTarget::Own) => true,
        (DependencyTarget::Unknown { plugin: a, .. }, DependencyTarget::Unknown { plugin: b, .. }) => {
            a.eq_ignore_ascii_case(b)
        }
        _ => false,
    }
}
