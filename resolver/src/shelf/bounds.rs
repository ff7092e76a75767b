//! Pure. Where the facts lead that no page states: from names to projects, the last word about each.

use std::collections::BTreeSet;

use super::closure::{Target, find};
use crate::catalog::{Catalog, Project, ProjectKey, Release, Source};
use crate::facts::Says;
use crate::overlay::{Bound, Need, Needed, Own, Voices, is_called, needs};
use crate::request::{PluginWish, Request};

/// What a release's facts are read with.
#[derive(Clone, Copy)]
pub(super) struct Facing<'x> {
    voices: Voices<'x>,
    wishes: &'x [PluginWish],
    /// The places of what is asked for.
    requested: Option<&'x BTreeSet<usize>>,
}

impl<'x> Facing<'x> {
    /// For a plugin of a server; `own` is what its Plugin object says.
    pub(super) fn of(request: &'x Request, requested: &'x BTreeSet<usize>, own: Option<Own<'x>>) -> Self {
        let voices = Voices { cluster: &request.facts, own };
        Self { voices, wishes: &request.plugins, requested: Some(requested) }
    }

    /// For nobody's server: what is built in.
    pub(super) const NOBODY: Facing<'static> = Facing { voices: Voices::NONE, wishes: &[], requested: None };

    /// Whether anybody says anything about `project` that is not built in.
    pub(super) fn mentions(&self, project: &Project) -> bool {
        self.voices.mention(project)
    }

    /// What a release of the project at `place` needs beside its page, and where that leads; one for each plugin.
    pub(super) fn bounds(&self, catalog: &Catalog, place: usize, release: &Release) -> Vec<(Target, Bound)> {
        let project = &catalog.projects[place];
        let mut bounds: Vec<(Target, Bound)> = Vec::new();
        for Need { project: needed, bound } in needs(project, release, self.voices) {
            let target = self.target(catalog, place, &needed, &bound);
            bounds.retain(|(other, _)| !same(other, &target));
            if !matches!(&target, Target::Project(found) if *found == place) {
                bounds.push((target, bound));
            }
        }
        bounds
    }

    fn target(&self, catalog: &Catalog, place: usize, needed: &Needed<'_>, bound: &Bound) -> Target {
        let source = catalog.projects[place].key.source;
        let (key, name) = match needed {
            Needed::Key(key, name) => (key.clone(), *name),
            Needed::Called(name) => {
                if let Some(found) = self.of_this_server(catalog, source, name) {
                    return Target::Project(found);
                }
                if source == Source::Url {
                    return self.unknown(catalog, name, "no plugin of this server is called so", bound);
                }
                (ProjectKey { source, project: (*name).to_owned() }, *name)
            }
        };
        match (find(catalog, &key), catalog.unread_because(&key), needed) {
            (Some(found), _, _) => Target::Project(found),
            (None, None, _) => Target::Fetch(key),
            (None, Some(because), Needed::Key(..)) => {
                Target::Unread { project: name.to_owned(), because: because.to_owned() }
            }
            (None, Some(because), Needed::Called(_)) => self.unknown(catalog, name, because, bound),
        }
    }

    /// A plugin that is asked for, wherever it comes from: of two with one name, the one of the same source.
    fn of_this_server(&self, catalog: &Catalog, source: Source, name: &str) -> Option<usize> {
        let requested = || self.requested.into_iter().flatten().copied();
        let mut called: Vec<usize> = requested().filter(|&at| is_called(&catalog.projects[at], name)).collect();
        called.sort_by_key(|&at| (catalog.projects[at].key.source != source, &catalog.projects[at].key));
        called.first().copied().or_else(|| {
            let wish = self.wishes.iter().find(|wish| wish.object.eq_ignore_ascii_case(name))?;
            find(catalog, &wish.key)
        })
    }

    fn unknown(&self, catalog: &Catalog, name: &str, because: &str, bound: &Bound) -> Target {
        let known = self.requested.into_iter().flatten().map(|&at| catalog.projects[at].name.as_str());
        Target::Unknown {
            plugin: name.to_owned(),
            because: because.to_owned(),
            nearest: near(name, known),
            says: match bound {
                Bound::Within(_, says) => says.clone(),
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

/// Up to three of `known` that `name` may have been meant to be, nearest first.
fn near<'x>(name: &str, known: impl Iterator<Item = &'x str>) -> Vec<String> {
    let plain = |text: &str| text.to_lowercase().replace(['-', '_', ' '], "");
    let name = plain(name);
    // One slip in every three letters, as the command line has it.
    let most = (name.chars().count() / 3).max(1);
    let mut near: Vec<(usize, &str)> =
        known.map(|other| (distance(&name, &plain(other)), other)).filter(|(distance, _)| *distance <= most).collect();
    near.sort_unstable();
    near.into_iter().take(3).map(|(_, other)| other.to_owned()).collect()
}

/// How many letters have to be put in, taken out or exchanged.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (line, letter) in a.chars().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], line + 1);
        for (at, other) in b.iter().enumerate() {
            let exchanged = corner + usize::from(letter != *other);
            corner = row[at + 1];
            row[at + 1] = exchanged.min(corner + 1).min(row[at] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_plugin_and_another_word_finds_none() {
        let known = || ["WorldEdit", "WorldGuard", "ViaVersion"].into_iter();
        assert_eq!(near("Wordedit", known()), ["WorldEdit"]);
        assert_eq!(near("world-edit", known()), ["WorldEdit"]);
        assert_eq!(near("LuckPerms", known()), [""; 0]);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
    }
}
