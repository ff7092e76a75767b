//! Pure. The overlay: bounds between known plugins that no page states, each with its source.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jiff::SignedDuration;
use serde::Deserialize;

use crate::catalog::{Project, ProjectKey, Release, Source};

/// How long after a dependent its dependency may be published and still belong to it: in 12 of 30 recorded pairs of one
/// version ViaBackwards came out first, by 1 second to 7 minutes.
pub(crate) const SAME_RELEASE_NIGHT: SignedDuration = SignedDuration::from_hours(1);

/// A pair whose dependent always needs the other one, in at least a certain version.
#[derive(Debug)]
pub(crate) struct Pair {
    dependent: Identity,
    dependency: Identity,
    facts: &'static LazyLock<BTreeMap<String, semver::Version>>,
}

/// One project at every source.
#[derive(Debug)]
struct Identity {
    modrinth: &'static str,
    hangar: &'static str,
}

/// What is known about the release of a dependent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Bound {
    /// Its code refuses anything older.
    AtLeast(semver::Version),
    /// Nothing is recorded: guessed from dates.
    Guess,
}

/// The project a known pair's dependent needs, and in which version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Need {
    /// Its id (Modrinth) or name (Hangar).
    pub(crate) project: &'static str,
    /// How new it has to be.
    pub(crate) bound: Bound,
}

/// `depend: [ViaVersion]` stands in every ViaBackwards JAR, although Modrinth calls it optional in 257 of 517 releases:
/// what the JAR needs outranks the page.
static PAIRS: &[Pair] = &[Pair {
    dependent: Identity { modrinth: "NpvuJQoq", hangar: "ViaBackwards" },
    dependency: Identity { modrinth: "P1OZGk5p", hangar: "ViaVersion" },
    facts: &VIABACKWARDS,
}];

static VIABACKWARDS: LazyLock<BTreeMap<String, semver::Version>> = LazyLock::new(|| {
    let table: Table = serde_json::from_str(include_str!("overlay/viabackwards.json")).expect("a test parses it");
    table
        .at_least
        .into_iter()
        .map(|(release, minimum, _commit)| (release, minimum.parse().expect("a test parses it")))
        .collect()
});

/// The file format; `about`, `source` and `readOn` are for readers of the file.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Table {
    at_least: Vec<(String, String, String)>,
}

impl Identity {
    fn is(&self, project: &Project) -> bool {
        match project.key.source {
            Source::Modrinth => project.id == self.modrinth,
            Source::Hangar => project.name.eq_ignore_ascii_case(self.hangar),
            // Its JAR says itself what it needs.
            Source::Url => false,
        }
    }

    fn at(&self, source: Source) -> Option<&'static str> {
        match source {
            Source::Modrinth => Some(self.modrinth),
            Source::Hangar => Some(self.hangar),
            Source::Url => None,
        }
    }
}

/// What `release` of `project` needs although its page may not say so.
pub(crate) fn need(project: &Project, release: &Release) -> Option<Need> {
    let pair = PAIRS.iter().find(|pair| pair.dependent.is(project))?;
    let bound = match pair.facts.get(release.version.as_str()) {
        Some(minimum) => Bound::AtLeast(minimum.clone()),
        None => Bound::Guess,
    };
    Some(Need { project: pair.dependency.at(project.key.source)?, bound })
}

/// The dependency of a known pair as something to fetch.
pub(crate) fn need_key(project: &Project, need: &Need) -> ProjectKey {
    ProjectKey { source: project.key.source, project: need.project.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorded_minimums_parse_and_are_not_all_the_own_number() {
        assert_eq!(VIABACKWARDS.len(), 56);
        assert_eq!(VIABACKWARDS["5.10.0"], "5.9.2".parse().unwrap());
        assert_eq!(VIABACKWARDS["4.9.2"], "4.9.3".parse().unwrap());
    }
}
