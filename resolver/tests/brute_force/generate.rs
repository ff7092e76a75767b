//! Pure. Generates random problems with every feature of `docs/concepts/solve.md`, small enough for exhaustive search.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use resolver::model::catalog::{
    Artifact, Build, BuildChannel, Catalog, ImageTag, Owner, PaperVersion, Project, Source,
};

use super::problem::Problem;
use super::projects::{add_dependencies, project};
use super::requests::request;
use super::{identified_jars, jar_contents, jars, rare_features, software, sources};

/// Paper versions of a problem, and further versions on lists.
const VERSION_CHOICES: [(&[&str], &[&str]); 5] = [
    // No hotfix siblings, and no version that Paper skipped.
    (&["1.21.4", "1.21.5", "1.21.6", "1.21.11"], &["1.20.6"]),
    // Paper skipped 1.20.3. 1.20.5 and 1.20.6 are hotfix siblings.
    (&["1.20.2", "1.20.4", "1.20.5", "1.20.6"], &["1.20.3", "1.20.1"]),
    (&["1.21.7", "1.21.8", "1.21.9", "1.21.10", "1.21.11"], &["1.21.9-rc1"]),
    // Versions with the year as first number. Paper skipped 26.1.
    (&["1.21.11", "26.1.1", "26.1.2", "26.2"], &["26.1"]),
    (&["1.21.10", "1.21.11", "26.2-rc-2", "26.2"], &["1.21.9", "26.1"]),
];

/// Names of projects. Some problems also contain plugins with built-in constraints, such as `ViaVersion`.
pub(crate) const NAMES: [&str; 4] = ["arena", "books", "crops", "doors"];

/// A seeded random number generator (`SplitMix64`).
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        // The seed is mixed first, because adjacent seeds would otherwise give the same sequence, shifted by one.
        Self(Self(seed).next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() >> 33).unwrap() % end
    }

    /// Returns true with this probability in percent.
    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn choose<'x, T>(&mut self, items: &'x [T]) -> &'x T {
        &items[self.below(items.len())]
    }

    pub(crate) fn choose_some<'x, T>(&mut self, items: &'x [T], percent: usize) -> Vec<&'x T> {
        items.iter().filter(|_| self.chance(percent)).collect()
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at + 1));
        }
    }
}

/// The time of all queries.
pub(crate) fn now() -> Timestamp {
    Timestamp::constant(1_781_524_800, 0)
}

pub(super) fn hours_ago(hours: usize) -> Timestamp {
    now() - SignedDuration::from_hours(i64::try_from(hours).unwrap())
}

pub(crate) fn file(rng: &mut Rng, name: &str) -> Artifact {
    let hash = match rng.below(40) {
        0 => None,
        1 => Some("md5:0123".to_owned()),
        2 => Some(format!("sha512:{:0>128}", rng.below(1000))),
        _ => Some(format!("sha256:{:A>64}", rng.below(1000))),
    };
    Artifact { name: format!("{name}.jar"), url: format!("https://files.example/{name}"), size: None, hash }
}

/// The problem of a seed.
pub(crate) fn problem(seed: u64) -> Problem {
    let mut rng = Rng::new(seed);
    let (built, unbuilt) = *rng.choose(&VERSION_CHOICES);
    let mut versions: Vec<&str> = rng.choose_some(built, 55).into_iter().copied().collect();
    if versions.is_empty() {
        versions.push(built[0]);
    }
    let on_lists: Vec<&str> = built.iter().chain(unbuilt).copied().collect();
    let paper: Vec<PaperVersion> = versions.iter().map(|version| paper(&mut rng, version)).collect();
    let mut projects: Vec<Project> = Vec::new();
    let mut names = names(&mut rng);
    rare_features::names(&mut Rng::new(seed ^ 0x0000_1A7E), &mut names);
    for name in &names {
        let project = project(&mut rng, name, &on_lists);
        projects.push(project);
    }
    sources::randomize(&mut rng, &mut projects);
    // A plugin from a URL has no page that could list dependencies.
    for at in (0..projects.len()).filter(|at| projects[*at].key.source != Source::Url).collect::<Vec<_>>() {
        add_dependencies(&mut rng, &mut projects, at);
    }
    let images = if rng.chance(15) { images(&mut rng) } else { Vec::new() };
    let catalog = Catalog {
        paper,
        paper_read_at: now(),
        others: BTreeMap::new(),
        projects,
        images,
        unread: BTreeMap::from([("modrinth/ghost".to_owned(), "it answers 503".to_owned())]),
        owners: BTreeMap::new(),
    };
    let request = request(&mut rng, &catalog, &on_lists);
    let mut problem = Problem { catalog, request, now: now() };
    jars::randomize(&mut Rng::new(!seed), &mut problem, &on_lists);
    set_owners(&mut Rng::new(seed.reverse_bits()), &mut problem);
    jar_contents::randomize(&mut Rng::new(seed ^ 0x0000_DEBE), &mut problem);
    software::randomize(&mut Rng::new(seed ^ 0x00F0_11A0), &mut problem);
    rare_features::randomize(&mut Rng::new(seed ^ 0x0000_601D), &mut problem);
    identified_jars::randomize(&mut Rng::new(seed ^ 0x0B35_1DE5), &mut problem);
    problem
}

fn names(rng: &mut Rng) -> Vec<String> {
    let mut names: Vec<String> = NAMES.iter().map(|&name| name.to_owned()).collect();
    rng.shuffle(&mut names);
    names.truncate(1 + rng.below(4));
    if names.len() > 1 && rng.chance(15) {
        "ViaBackwards".clone_into(&mut names[0]);
        "ViaVersion".clone_into(&mut names[1]);
    }
    names
}

fn paper(rng: &mut Rng, version: &str) -> PaperVersion {
    let count = *rng.choose(&[1, 1, 2, 3]);
    let builds = (0..count).map(|at| Build {
        number: u32::try_from(at * 3 + 5).unwrap(),
        published: hours_ago(if rng.chance(90) { 24 + rng.below(240) } else { rng.below(24) }),
        channel: match rng.below(12) {
            0 => BuildChannel::Alpha,
            1 => BuildChannel::Beta,
            2 => BuildChannel::Recommended,
            _ => BuildChannel::Stable,
        },
        file: file(rng, &format!("paper-{version}-{at}")),
    });
    PaperVersion {
        minecraft: version.parse().unwrap(),
        java: Some(if version.starts_with("26") { 25 } else { 21 }),
        jvm_flags: Vec::new(),
        unsupported: false,
        builds: builds.collect(),
    }
}

fn images(rng: &mut Rng) -> Vec<ImageTag> {
    let tags = ["2026.8.1-java21", "2026.10.1-java21", "2026.8.1-java25", "2026.8.1-java17", "latest"];
    let chosen = rng.choose_some(&tags, 60);
    let tag = |tag: &&str| ImageTag {
        repository: "docker.io/itzg/minecraft-server".to_owned(),
        tag: (*tag).to_owned(),
        digest: format!("sha256:{}", tag.len()),
        pushed: hours_ago(rng.below(300)),
    };
    chosen.into_iter().map(tag).collect()
}

/// Sets the owners of unmanaged JARs, usually to an existing release.
fn set_owners(rng: &mut Rng, problem: &mut Problem) {
    let Problem { catalog, request, now: _ } = problem;
    for jar in request.unmanaged.iter().filter_map(|jar| jar.sha256.clone()) {
        if !rng.chance(50) {
            continue;
        }
        let project = rng.choose(&catalog.projects);
        let release = project.releases.iter().map(|release| release.id.clone()).collect::<Vec<_>>();
        let release =
            if release.is_empty() || rng.chance(10) { "gone".to_owned() } else { rng.choose(&release).clone() };
        let owner = Owner { project: project.key.clone(), release: Some(release) };
        catalog.owners.insert(jar, owner);
    }
}
