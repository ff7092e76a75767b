//! Pure. Combines the constraints between plugins that no page states. There are three layers, and later ones override
//! earlier ones: built-in facts, the cluster's facts, and the constraints of a Plugin.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jiff::SignedDuration;
use jiff::civil::{Date, date};
use serde::Deserialize;

use crate::model::catalog::{FALLBACK_VERSION, Project, ProjectKey, Release, Source};
use crate::model::compatibility_facts::{CompatibilityFacts, FactSource, Requirement};
use crate::model::did_you_mean::folded_letters;
use crate::model::request::Running;
use crate::model::version::lenient;
use crate::model::version::range::Range;

/// How long after a dependent its dependency may be published and still belong to it. In 12 of 30 recorded pairs of one
/// version, ViaBackwards was published first, by 1 second to 7 minutes.
pub(crate) const SAME_RELEASE_WINDOW: SignedDuration = SignedDuration::from_hours(1);

/// A pair whose dependent needs the dependency in at least a certain version.
#[derive(Debug)]
struct Pair {
    dependent: Identity,
    dependency: Identity,
    table: &'static LazyLock<ConstraintTable>,
    /// The first version from which dates are used for a release that is not in the table. `None` if dates are not
    /// used.
    guess_from: Option<&'static str>,
}

/// One project at every source.
#[derive(Debug)]
struct Identity {
    modrinth: Modrinth,
    name: &'static str,
}

/// How a project is identified at Modrinth.
#[derive(Debug, Clone, Copy)]
enum Modrinth {
    /// By the id that its pages use.
    Id(&'static str),
    /// By its slug, because no recording holds its id.
    Slug(&'static str),
}

/// The sources of constraints on the releases of one project beyond its page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConstraintSources<'x> {
    /// The facts of the cluster.
    pub(crate) cluster: &'x CompatibilityFacts,
    /// `spec.requires` of the Plugin object that applies, if it has any entry.
    pub(crate) user: Option<UserConstraint<'x>>,
}

/// `spec.requires` of a Plugin object, with its name.
pub(crate) type UserConstraint<'x> = (&'x str, &'x [Requirement]);

/// The constraint on a dependency of a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Bound {
    /// A source states the sufficient versions.
    Within(Range, FactSource),
    /// The dependency needs the same version, which is the given range.
    Same(Range, FactSource),
    /// No source states a version, so it is guessed from dates.
    Guess,
}

/// A project that a release needs, with the constraint on its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Constraint<'x> {
    /// The project.
    pub(crate) project: NeededProject<'x>,
    /// The constraint on its version.
    pub(crate) bound: Bound,
}

/// How a needed project is identified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NeededProject<'x> {
    /// By its key at its source, with the display name.
    Key(ProjectKey, &'static str),
    /// By a name in a fact or constraint.
    Name(&'x str),
    /// A requested plugin with one of these names. If there is none, nothing is needed.
    AnyRequested(&'static [&'static str]),
}

/// `depend: [ViaVersion]` is in every `ViaBackwards` JAR, although Modrinth calls it optional in 257 of 517 releases.
/// `depend: [WorldEdit]` is in every `WorldGuard` JAR. The requirement in the JAR outranks the page. `ViaVersion` is in
/// every `ViaRewind` JAR from 3.0.0 on, and `ViaBackwards` from 3.1.0 on (github.com/ViaVersion/ViaRewind, read on
/// 2026-11-23 at its 26 tags).
///
/// `ViaRewind` does not refuse an older `ViaVersion`: it is built against that of its day. Of its 21 tags from the time
/// of the recorded dates (until 2026-01-18) 12 name the newest one at that time, and 9 an older one or its snapshot. No
/// tag names a newer one. So a guess may require too much, but never too little.
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

/// The id is in recorded pages of `ViaVersion`.
const VIAREWIND: Identity = Identity { modrinth: Modrinth::Id("TbHIxhx5"), name: "ViaRewind" };

/// `EssentialsX`, then its modules, as pages name them. Their JARs use `Essentials` for `EssentialsX`. In lower case,
/// without spaces, `-` and `_`.
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

/// When its modules start, they compare their version with that of `EssentialsX`. If it differs, they log `Version
/// mismatch! Please update all Essentials jars to the same version.`: `onEnable` of `EssentialsSpawn`,
/// `EssentialsDiscord` and the others.
const ESSENTIALS_SOURCE: (&str, Date) =
    ("github.com/EssentialsX/Essentials, whose modules ask for the version of the core", date(2026, 11, 23));

static VIABACKWARDS: LazyLock<ConstraintTable> =
    LazyLock::new(|| ConstraintTable::parse(include_str!("known_constraints/viabackwards.json")));
static VIAREWIND_VIAVERSION: LazyLock<ConstraintTable> =
    LazyLock::new(|| ConstraintTable::parse(include_str!("known_constraints/viarewind-viaversion.json")));
static VIAREWIND_VIABACKWARDS: LazyLock<ConstraintTable> =
    LazyLock::new(|| ConstraintTable::parse(include_str!("known_constraints/viarewind-viabackwards.json")));
static WORLDGUARD: LazyLock<ConstraintTable> =
    LazyLock::new(|| ConstraintTable::parse(include_str!("known_constraints/worldguard.json")));

/// The file format. `about` and `source` are for readers of the file.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConstraintTable {
    repository: String,
    read_on: Date,
    /// Release, minimum version of the dependency, commit.
    at_least: Vec<(String, String, String)>,
    /// The position of each release in `at_least`.
    #[serde(skip)]
    places: BTreeMap<String, usize>,
}

impl ConstraintTable {
    fn parse(text: &str) -> Self {
        let mut table: Self = serde_json::from_str(text).expect("a test parses every built-in table");
        let rows = table.at_least.iter().enumerate();
        table.places = rows.map(|(position, (release, _, _))| (release.clone(), position)).collect();
        table
    }

    fn bound(&self, release: &str) -> Option<Bound> {
        let (_, least, commit) = &self.at_least[*self.places.get(release)?];
        let source = format!("{} at {commit}", self.repository);
        Some(Bound::Within(Range::at_least(least), FactSource::BuiltIn { source, date: self.read_on }))
    }
}

impl Identity {
    fn matches(&self, project: &Project) -> bool {
        match (project.key.source, self.modrinth) {
            (Source::Modrinth, Modrinth::Id(id)) => project.id == id,
            (Source::Modrinth, Modrinth::Slug(slug)) => project.key.project.eq_ignore_ascii_case(slug),
            (Source::Hangar, _) => project.name.eq_ignore_ascii_case(self.name),
            // Its JAR states its dependencies.
            (Source::Url, _) => false,
        }
    }

    fn key_at(&self, source: Source) -> Option<ProjectKey> {
        let project = match (source, self.modrinth) {
            (Source::Modrinth, Modrinth::Id(project) | Modrinth::Slug(project)) => project,
            (Source::Hangar, _) => self.name,
            (Source::Url, _) => return None,
        };
        Some(ProjectKey { source, project: project.to_owned() })
    }
}

impl Pair {
    /// The recorded or guessed constraint of a release.
    fn bound(&self, release: &str) -> Option<Bound> {
        let guesses = || self.guess_from.is_some_and(|first| lenient::compare(release, first).is_ge());
        self.table.bound(release).or_else(|| guesses().then_some(Bound::Guess))
    }
}

/// Whether a project is a module of `EssentialsX`: the constraints of its releases depend on the other requested
/// plugins. Called for every release, so a name with another prefix costs a few letters and no allocation.
pub(crate) fn is_module(project: &Project) -> bool {
    let mut letters = folded_letters(&project.name);
    if !"essentials".chars().all(|letter| letters.next() == Some(letter)) {
        return false;
    }
    let rest: String = letters.collect();
    let is = |module: &str| rest == module || rest.strip_prefix('x') == Some(module);
    ESSENTIALS[1..].iter().filter_map(|module| module.strip_prefix("essentialsx")).any(is)
}

/// Whether a constraint on a running release of a project is guessed.
pub(crate) fn has_guessed_constraint(project: &Project, running: &Running) -> bool {
    let guessed = |pair: &Pair, release: &Release| pair.bound(&release.version) == Some(Bound::Guess);
    let mut pairs = PAIRS.iter().filter(|pair| pair.guess_from.is_some() && pair.dependent.matches(project));
    let releases = || project.releases.iter().chain(running.delisted_release(project));
    pairs.any(|pair| releases().any(|release| running.runs_release(release) && guessed(pair, release)))
}

impl ConstraintSources<'_> {
    /// Built-in facts only.
    pub(crate) const NONE: ConstraintSources<'static> =
        ConstraintSources { cluster: &CompatibilityFacts::NONE, user: None };

    /// Whether a fact of the cluster or a Plugin constrains any release of `project`.
    pub(crate) fn mentions(&self, project: &Project) -> bool {
        self.user.is_some() || self.cluster.all().iter().any(|fact| is_named(project, &fact.plugin))
    }
}

/// Whether a project has this name: its display name, its slug or its id.
pub(crate) fn is_named(project: &Project, name: &str) -> bool {
    let is = |value: &str| value.eq_ignore_ascii_case(name.trim());
    is(&project.name) || is(&project.id) || project.key.source != Source::Url && is(&project.key.project)
}

/// The constraints on `release` of `project` that its page may not state. If several are about one plugin, the last one
/// counts.
pub(crate) fn constraints_on<'x>(
    project: &Project,
    release: &Release,
    sources: ConstraintSources<'x>,
) -> Vec<Constraint<'x>> {
    let mut needs = Vec::new();
    if is_module(project) && release.version != FALLBACK_VERSION {
        let (source, date) = ESSENTIALS_SOURCE;
        let fact_source = FactSource::BuiltIn { source: source.to_owned(), date };
        let bound = Bound::Same(Range::exactly(&release.version), fact_source);
        needs.push(Constraint { project: NeededProject::AnyRequested(&["EssentialsX", "Essentials"]), bound });
    }
    for pair in PAIRS.iter().filter(|pair| pair.dependent.matches(project)) {
        if let (Some(bound), Some(key)) = (pair.bound(&release.version), pair.dependency.key_at(project.key.source)) {
            needs.push(Constraint { project: NeededProject::Key(key, pair.dependency.name), bound });
        }
    }
    for fact in sources.cluster.all() {
        if is_named(project, &fact.plugin) && fact.releases.contains(&release.version) {
            let fact_source = FactSource::Cluster { source: fact.source.clone(), date: fact.date };
            needs.push(named_constraint(&fact.requires, fact_source));
        }
    }
    if let Some((object, requirements)) = sources.user {
        let fact_source = || FactSource::Plugin { object: object.to_owned() };
        needs.extend(requirements.iter().map(|requirement| named_constraint(requirement, fact_source())));
    }
    needs
}

fn named_constraint(requirement: &Requirement, fact_source: FactSource) -> Constraint<'_> {
    let bound = Bound::Within(requirement.version.clone(), fact_source);
    Constraint { project: NeededProject::Name(requirement.plugin.trim()), bound }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_minimums_parse_and_differ_from_own_version() {
        let least = |table: &ConstraintTable, release: &str| match table.bound(release).unwrap() {
            Bound::Within(range, _) => range.as_str().to_owned(),
            Bound::Same(..) | Bound::Guess => panic!("{release} must have a recorded minimum"),
        };
        assert_eq!(VIABACKWARDS.places.len(), 56);
        assert_eq!(least(&VIABACKWARDS, "5.10.0"), ">=5.9.2");
        assert_eq!(least(&VIABACKWARDS, "4.9.2"), ">=4.9.3");
        assert_eq!(WORLDGUARD.places.len(), 9);
        assert_eq!(least(&WORLDGUARD, "7.0.10"), ">=7.3.0");
        assert_eq!(least(&VIAREWIND_VIAVERSION, "4.0.12"), ">=5.5.1");
        assert_eq!(VIAREWIND_VIABACKWARDS.bound("3.0.6"), None, "this release does not require ViaBackwards");
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
