//! Pure. Where the facts lead that no page states: from names to projects, the last word about each.

use std::collections::BTreeSet;

use super::closure::{Target, find};
use crate::catalog::{Catalog, Project, ProjectKey, Release, Source};
use crate::facts::Says;
use crate::nearest::nearest;
use crate::overlay::{Bound, Need, Needed, Own, Voices, guesses, is_called, is_module, needs};
use crate::request::{PluginWish, Request, Running};

/// What a release's facts are read with.
#[derive(Clone, Copy)]
pub(super) struct Facing<'x> {
    voices: Voices<'x>,
    wishes: &'x [PluginWish],
    /// The places of what is asked for.
    requested: Option<&'x BTreeSet<usize>>,
    running: Option<&'x Running>,
}

impl<'x> Facing<'x> {
    /// For a plugin of a server; `own` is what its Plugin object says.
    pub(super) fn of(request: &'x Request, requested: &'x BTreeSet<usize>, own: Option<Own<'x>>) -> Self {
        let voices = Voices { cluster: &request.facts, own };
        Self { voices, wishes: &request.plugins, requested: Some(requested), running: request.running.as_ref() }
    }

    /// For nobody's server: what is built in.
    pub(super) const NOBODY: Facing<'static> =
        Facing { voices: Voices::NONE, wishes: &[], requested: None, running: None };

    /// Whether anything is said about `project` that may be another matter on another server.
    pub(super) fn mentions(&self, project: &Project) -> bool {
        self.voices.mention(project) || is_module(project)
    }

    /// Whether a guess about `project` asks what runs.
    pub(super) fn guesses(&self, project: &Project) -> bool {
        self.running.is_some_and(|running| guesses(project, running))
    }

    /// What runs of the project at `place` and of those that its facts bind it to, by the ids of the releases.
    pub(super) fn running<'c>(&self, catalog: &'c Catalog, place: usize) -> Vec<&'c str> {
        let of = |place: usize| catalog.projects[place].releases.iter().filter(|release| self.runs(release));
        let bounds = of(place).flat_map(|release| self.bounds(catalog, place, release));
        let bound_to =
            bounds.filter_map(|(target, _)| if let Target::Project(found) = target { Some(found) } else { None });
        of(place).chain(bound_to.flat_map(of)).map(|release| release.id.as_str()).collect()
    }

    /// Whether a release runs.
    pub(super) fn runs(&self, release: &Release) -> bool {
        self.running.is_some_and(|running| running.has(release))
    }

    /// What a release of the project at `place` needs beside its page, and where that leads; one for each plugin.
    pub(super) fn bounds(&self, catalog: &Catalog, place: usize, release: &Release) -> Vec<(Target, Bound)> {
        let project = &catalog.projects[place];
        let mut bounds: Vec<(Target, Bound)> = Vec::new();
        for Need { project: needed, bound } in needs(project, release, self.voices) {
            let Some(target) = self.target(catalog, place, &needed, &bound) else { continue };
            bounds.retain(|(other, _)| !same(other, &target));
            if !matches!(&target, Target::Project(found) if *found == place) {
                bounds.push((target, bound));
            }
        }
        bounds
    }

    /// None: nothing is needed on this server.
    fn target(&self, catalog: &Catalog, place: usize, needed: &Needed<'_>, bound: &Bound) -> Option<Target> {
        let source = catalog.projects[place].key.source;
        let (key, name) = match needed {
            Needed::Key(key, name) => (key.clone(), *name),
            Needed::Called(name) => {
                if let Some(found) = self.of_this_server(catalog, source, name) {
                    return Some(Target::Project(found));
                }
                if source == Source::Url {
                    return Some(self.unknown(catalog, name, "no plugin of this server is called so", bound));
                }
                (ProjectKey { source, project: (*name).to_owned() }, *name)
            }
            Needed::Beside(names) => {
                let mut found = names.iter().filter_map(|name| self.asked_for(catalog, source, name));
                return found.next().map(Target::Project);
            }
        };
        let target = match (find(catalog, &key), catalog.unread_because(&key), needed) {
            (Some(found), _, _) => Target::Project(found),
            (None, None, _) => Target::Fetch(key),
            (None, Some(because), Needed::Key(..)) => {
                Target::Unread { project: name.to_owned(), because: because.to_owned() }
            }
            (None, Some(because), Needed::Called(_) | Needed::Beside(_)) => self.unknown(catalog, name, because, bound),
        };
        Some(target)
    }

    /// A plugin that is asked for, wherever it comes from, by its name or that of its object.
    fn of_this_server(&self, catalog: &Catalog, source: Source, name: &str) -> Option<usize> {
        self.asked_for(catalog, source, name).or_else(|| {
            let wish = self.wishes.iter().find(|wish| wish.object.eq_ignore_ascii_case(name))?;
            find(catalog, &wish.key)
        })
    }

    /// The same by its name alone: of two with one name, the one of the same source.
    fn asked_for(&self, catalog: &Catalog, source: Source, name: &str) -> Option<usize> {
        let requested = || self.requested.into_iter().flatten().copied();
        let mut called: Vec<usize> = requested().filter(|&at| is_called(&catalog.projects[at], name)).collect();
        called.sort_by_key(|&at| (catalog.projects[at].key.source != source, &catalog.projects[at].key));
        called.first().copied()
    }

    fn unknown(&self, catalog: &Catalog, name: &str, because: &str, bound: &Bound) -> Target {
        let known = self.requested.into_iter().flatten().map(|&at| catalog.projects[at].name.as_str());
        Target::Unknown {
            plugin: name.to_owned(),
            because: because.to_owned(),
            nearest: nearest(name, known).take(3).map(str::to_owned).collect(),
            says: match bound {
                Bound::Within(_, says) | Bound::Same(_, says) => says.clone(),
                Bound::Guess => Says::Plugin { object: String::new() },
            },
        }
    }
}

/// Whether two words are about one plugin.
fn same(a: &Target, b: &Target) -> bool {
    match (a, b) {
        (Target::Project(a), Target::Project(b)) => a == b,
        (Target::Fetch(a), Target::Fetch(b)) => a == b,
        (Target::Unknown { plugin: a, .. }, Target::Unknown { plugin: b, .. }) => a.eq_ignore_ascii_case(b),
        _ => false,
    }
}
