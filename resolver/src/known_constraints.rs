//! Pure. The overlay: bounds between plugins that no page states. Three layers, of which later ones win: what is built
//! in, the cluster's facts, and what a Plugin says itself.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jiff::SignedDuration;
use jiff::civil::{Date, date};
use serde::Deserialize;

use crate::catalog::{FALLBACK_VERSION, Project, ProjectKey, Release, Source};
use crate::compatibility_facts::{CompatibilityFacts, FactSource, Requirement};
use crate::request::Running;
use crate::version::lenient;
use crate::version::range::Range;

/// How long after a dependent its dependency may be published and still belong to it: in 12 of 30 recorded pairs of one
/// version ViaBackwards came out first, by 1 second to 7 minutes.
pub(crate) const SAME_RELEASE_NIGHT: SignedDuration = SignedDuration::from_hours(1);

/// A pair whose dependent needs the other one, in at least a certain version.
#[derive(Debug)]
struct Pair {
    dependent: Identity,
    dependency: Identity,
    table: &'static LazyLock<ConstraintTable>,
    /// From which version on the dates tell about a release that is not in the table; None: they tell nothing.
    guess_from: Option<&'static str>,
}

/// One project at every source.
#[derive(Debug)]
struct Identity {
    modrinth: Modrinth,
    name: &'static str,
}

/// How a project is known at Modrinth.
#[derive(Debug, Clone, Copy)]
enum Modrinth {
    /// By the id that its pages use.
    Id(&'static str),
    /// By its slug: no recording holds its id.
    Slug(&'static str),
}

/// Who says what about the releases of one project, beside its page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConstraintSources<'x> {
    /// The cluster's facts.
    pub(crate) cluster: &'x CompatibilityFacts,
    /// `spec.requires` of the Plugin object that decides, if it says anything.
    pub(crate) own: Option<UserConstraint<'x>>,
}

/// `spec.requires` of a Plugin object, by its name.
pub(crate) type UserConstraint<'x> = (&'x str, &'x [Requirement]);

/// What is known about the release of a dependent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Bound {
    /// Somebody says which versions will do.
    Within(Range, FactSource),
    /// Of one version with it, which is written here.
    Same(Range, FactSource),
    /// Nothing is recorded: guessed from dates.
    Guess,
}

/// A project that a release needs, and in which version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Constraint<'x> {
    /// The project.
    pub(crate) project: Needed<'x>,
    /// How new it has to be.
    pub(crate) bound: Bound,
}

/// How a needed project is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Needed<'x> {
    /// By its key at its source, and the name people know.
    Key(ProjectKey, &'static str),
    /// By what somebody calls it.
    Called(&'x str),
    /// One that the server asks for and that is called so; where it asks for none, nothing is needed.
    Beside(&'static [&'static str]),
}

/// `depend: [ViaVersion]` stands in every `ViaBackwards` JAR, although Modrinth calls it optional in 257 of 517
/// releases, and `depend: [WorldEdit]` in every `WorldGuard` JAR: what the JAR needs outranks the page.
/// `ViaVersion` stands in every `ViaRewind` JAR from 3.0.0 on, and `ViaBackwards` from 3.1.0 on
/// (github.com/ViaVersion/ViaRewind, read on 2026-11-23 at its 26 tags).
///
/// Nothing in `ViaRewind` refuses an older `ViaVersion`: it is built against that of its day. Of its 21 tags from the
/// time of the recorded dates (until 2026-01-18) 12 name the newest one that was out, and 9 an older one or its
/// snapshot; none names a newer one. So a guess may ask for too much, never for too little.
static PAIRS: &[Pair] = &[
    Pair {
        dependent: Identity { modrinth: Modrinth::Id("NpvuJQoq"), name: "ViaBackwards" },
        dependency: Identity { modrinth: Modrinth::Id("P1OZGk5p"), name: "ViaVersion" },
        table: &VIABACKWARDS,
        guess_from: Some("0"),
    },
    Pair {
        dependent: VIAREWIND,
        dependency: Identity { modrinth: Modrinth::Id("P1OZGk5p"), name: "ViaVersion" },
        table: &VIAREWIND_VIAVERSION,
        guess_from: Some("0"),
    },
    Pair {
        dependent: VIAREWIND,
        dependency: Identity { modrinth: Modrinth::Id("NpvuJQoq"), name: "ViaBackwards" },
        table: &VIAREWIND_VIABACKWARDS,
        guess_from: Some("3.1.0"),
    },
    Pair {
        dependent: Identity { modrinth: Modrinth::Slug("worldguard"), name: "WorldGuard" },
        dependency: Identity { modrinth: Modrinth::Slug("worldedit"), name: "WorldEdit" },
        table: &WORLDGUARD,
        // They are not published in one night.
        guess_from: None,
    },
];

/// The ids stand in pages of `ViaVersion` that were recorded.
const VIAREWIND: Identity = Identity { modrinth: Modrinth::Id("TbHIxhx5"), name: "ViaRewind" };

/// `EssentialsX`, then its modules, as pages name them; their JARs say `Essentials` for `EssentialsX`. Letter case,
/// blanks, `-` and `_` left out.
pub(crate) const ESSENTIALS: [&str; 9] = [
    "essentialsx",
    "essentialsxantibuild",
    "essentialsxchat",
    "essentialsxdiscord",
    "essentialsxdiscordlink",
    "essentialsxgeoip",
    "essentialsxprotect",
    "essentialsxspawn",
    "essentialsxxmpp",
];

/// When its modules start they compare their version with that of `EssentialsX`, and write `Version mismatch! Please
/// update all Essentials jars to the same version.` where it is another one: `onEnable` of `EssentialsSpawn`,
/// `EssentialsDiscord` and the others.
const ESSENTIALS_SOURCE: (&str, Date) =
    ("github.com/EssentialsX/Essentials, whose modules ask for the version of the core", date(2026, 11, 23));

static VIABACKWARDS: LazyLock<ConstraintTable> =
    LazyLock::new(|| ConstraintTable::read(include_str!("known_constraints/viabackwards.json")));
static VIAREWIND_VIAVERSION: LazyLock<ConstraintTable> =
    LazyLock::new(|| ConstraintTable::read(include_str!("known_constraints/viarewind-viaversion.json")));
static VIAREWIND_VIABACKWARDS: LazyLock<ConstraintTable> =
    LazyLock::new(|| ConstraintTable::read(include_str!("known_constraints/viarewind-viabackwards.json")));
static WORLDGUARD: LazyLock<ConstraintTable> =
    LazyLock::new(|| ConstraintTable::read(include_str!("known_constraints/worldguard.json")));

/// The file format; `about` and `source` are for readers of the file.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConstraintTable {
    repository: String,
    read_on: Date,
    /// Release, least version of the other one, commit.
    at_least: Vec<(String, String, String)>,
    /// The place of each release in `at_least`.
    #[serde(skip)]
    places: BTreeMap<String, usize>,
}

impl ConstraintTable {
    fn read(text: &str) -> Self {
        let mut table: Self = serde_json::from_str(text).expect("a test parses it");
        let rows = table.at_least.iter().enumerate();
        table.places = rows.map(|(place, (release, _, _))| (release.clone(), place)).collect();
        table
    }

    fn bound(&self, release: &str) -> Option<Bound> {
        let (_, least, commit) = &self.at_least[*self.places.get(release)?];
        let source = format!("{} at {commit}", self.repository);
        Some(Bound::Within(Range::at_least(least), FactSource::BuiltIn { source, date: self.read_on }))
    }
}

impl Identity {
    fn is(&self, project: &Project) -> bool {
        match (project.key.source, self.modrinth) {
            (Source::Modrinth, Modrinth::Id(id)) => project.id == id,
            (Source::Modrinth, Modrinth::Slug(slug)) => project.key.project.eq_ignore_ascii_case(slug),
            (Source::Hangar, _) => project.name.eq_ignore_ascii_case(self.name),
            // Its JAR says itself what it needs.
            (Source::Url, _) => false,
        }
    }

    fn at(&self, source: Source) -> Option<ProjectKey> {
        let project = match (source, self.modrinth) {
            (Source::Modrinth, Modrinth::Id(project) | Modrinth::Slug(project)) => project,
            (Source::Hangar, _) => self.name,
            (Source::Url, _) => return None,
        };
        Some(ProjectKey { source, project: project.to_owned() })
    }
}

impl Pair {
    /// What is known, or guessed, about a release.
    fn bound(&self, release: &str) -> Option<Bound> {
        let guesses = || self.guess_from.is_some_and(|first| lenient::compare(release, first).is_ge());
        self.table.bound(release).or_else(|| guesses().then_some(Bound::Guess))
    }
}

/// A name in small letters without blanks, `-` and `_`: as [`ESSENTIALS`] and other lists of ours have them.
pub(crate) fn letters(name: &str) -> impl Iterator<Item = char> {
    name.chars().filter(|c| !matches!(c, '-' | '_' | ' ')).flat_map(char::to_lowercase)
}

/// Whether a project is a module of `EssentialsX`: what its releases need depends on what else is asked for. Asked for each
/// release there is, so a name that begins otherwise costs a few letters and no text.
pub(crate) fn is_module(project: &Project) -> bool {
    let mut letters = letters(&project.name);
    if !"essentials".chars().all(|letter| letters.next() == Some(letter)) {
        return false;
    }
    let rest: String = letters.collect();
    let is = |module: &str| rest == module || rest.strip_prefix('x') == Some(module);
    ESSENTIALS[1..].iter().filter_map(|module| module.strip_prefix("essentialsx")).any(is)
}

/// Whether anything is guessed about a release of a project that runs.
pub(crate) fn guesses(project: &Project, running: &Running) -> bool {
    let guessed = |pair: &Pair, release: &Release| pair.bound(&release.version) == Some(Bound::Guess);
    let mut pairs = PAIRS.iter().filter(|pair| pair.guess_from.is_some() && pair.dependent.is(project));
    let releases = || project.releases.iter().chain(running.lost_release(project));
    pairs.any(|pair| releases().any(|release| running.has(release) && guessed(pair, release)))
}

impl ConstraintSources<'_> {
    /// Nobody but what is built in.
    pub(crate) const NONE: ConstraintSources<'static> =
        ConstraintSources { cluster: &CompatibilityFacts::NONE, own: None };

    /// Whether anybody says anything about any release of `project`.
    pub(crate) fn mention(&self, project: &Project) -> bool {
        self.own.is_some() || self.cluster.all().iter().any(|fact| is_called(project, &fact.plugin))
    }
}

/// Whether people call a project so: by its name, its slug or its id.
pub(crate) fn is_called(project: &Project, name: &str) -> bool {
    let is = |own: &str| own.eq_ignore_ascii_case(name.trim());
    is(&project.name) || is(&project.id) || project.key.source != Source::Url && is(&project.key.project)
}

/// What `release` of `project` needs although its page may not say so; of several words about one plugin the last
/// counts.
pub(crate) fn needs<'x>(project: &Project, release: &Release, voices: ConstraintSources<'x>) -> Vec<Constraint<'x>> {
    let mut needs = Vec::new();
    if is_module(project) && release.version != FALLBACK_VERSION {
        let (source, date) = ESSENTIALS_SOURCE;
        let says = FactSource::BuiltIn { source: source.to_owned(), date };
        let bound = Bound::Same(Range::exactly(&release.version), says);
        needs.push(Constraint { project: Needed::Beside(&["EssentialsX", "Essentials"]), bound });
    }
    for pair in PAIRS.iter().filter(|pair| pair.dependent.is(project)) {
        if let (Some(bound), Some(key)) = (pair.bound(&release.version), pair.dependency.at(project.key.source)) {
            needs.push(Constraint { project: Needed::Key(key, pair.dependency.name), bound });
        }
    }
    for fact in voices.cluster.all() {
        if is_called(project, &fact.plugin) && fact.releases.has(&release.version) {
            let says = FactSource::Cluster { source: fact.source.clone(), date: fact.date };
            needs.push(called(&fact.requires, says));
        }
    }
    if let Some((object, requirements)) = voices.own {
        let says = || FactSource::Plugin { object: object.to_owned() };
        needs.extend(requirements.iter().map(|requirement| called(requirement, says())));
    }
    needs
}

fn called(requirement: &Requirement, says: FactSource) -> Constraint<'_> {
    let bound = Bound::Within(requirement.version.clone(), says);
    Constraint { project: Needed::Called(requirement.plugin.trim()), bound }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorded_minimums_parse_and_are_not_all_the_own_number() {
        let least = |table: &ConstraintTable, release: &str| match table.bound(release).unwrap() {
            Bound::Within(range, _) => range.as_str().to_owned(),
            Bound::Same(..) | Bound::Guess => panic!("{release} is recorded"),
        };
        assert_eq!(VIABACKWARDS.places.len(), 56);
        assert_eq!(least(&VIABACKWARDS, "5.10.0"), ">=5.9.2");
        assert_eq!(least(&VIABACKWARDS, "4.9.2"), ">=4.9.3");
        assert_eq!(WORLDGUARD.places.len(), 9);
        assert_eq!(least(&WORLDGUARD, "7.0.10"), ">=7.3.0");
        assert_eq!(least(&VIAREWIND_VIAVERSION, "4.0.12"), ">=5.5.1");
        assert_eq!(VIAREWIND_VIABACKWARDS.bound("3.0.6"), None, "its JAR only knows of it");
        for table in [&*VIABACKWARDS, &*WORLDGUARD, &*VIAREWIND_VIAVERSION, &*VIAREWIND_VIABACKWARDS] {
            for (release, least, _) in &table.at_least {
                let parsed: Range = format!(">={least}").parse().unwrap();
                assert_eq!(
                    Some(parsed),
                    table.bound(release).and_then(|bound| match bound {
                        Bound::Within(range, _) => Some(range),
                        Bound::Same(..) | Bound::Guess => None,
                    })
                );
            }
        }
    }
}
