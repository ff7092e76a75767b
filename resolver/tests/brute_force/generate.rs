//! Pure. Random small problems: everything the page speaks of, in worlds small enough to try everything.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use resolver::catalog::{
    Artifact, Build, BuildChannel, Catalog, Channel, Dependency, DependencyKind, ImageTag, Owner, PaperVersion,
    Project, ProjectKey, Release, Source,
};
use resolver::facts::{Requirement, VersionFact};
use resolver::request::{
    CompatibilityOverride, Dependencies, Hold, HotfixSiblings, ImagePolicy, OverrideMode, PaperWish, PluginWish,
    Request, Running, Unlisted, VersionWish,
};
use resolver::software::Software;
use resolver::unmanaged::{UnmanagedJar, UnmanagedPlugins};

use resolver::version::range::Range;

use super::problem::Problem;
use super::{inside, jars, rarer, sites, software};

/// Papers that are built together, and what lists name beside them.
const LINES: [(&[&str], &[&str]); 5] = [
    // No siblings, nothing skipped.
    (&["1.21.4", "1.21.5", "1.21.6", "1.21.11"], &["1.20.6"]),
    // 1.20.3 was never built; 1.20.5 and 1.20.6 are siblings.
    (&["1.20.2", "1.20.4", "1.20.5", "1.20.6"], &["1.20.3", "1.20.1"]),
    (&["1.21.7", "1.21.8", "1.21.9", "1.21.10", "1.21.11"], &["1.21.9-rc1"]),
    // The new scheme; 26.1 was never built.
    (&["1.21.11", "26.1.1", "26.1.2", "26.2"], &["26.1"]),
    (&["1.21.10", "1.21.11", "26.2-rc-2", "26.2"], &["1.21.9", "26.1"]),
];

/// What projects are called, beside two that are known.
pub(crate) const NAMES: [&str; 4] = ["arena", "books", "crops", "doors"];

/// A seeded source of choices (`SplitMix64`).
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        // Mixed first: else the choices of one seed are those of its neighbour, one later.
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

    /// True in so many of 100 cases.
    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn one<'x, T>(&mut self, of: &'x [T]) -> &'x T {
        &of[self.below(of.len())]
    }

    pub(crate) fn some<'x, T>(&mut self, of: &'x [T], percent: usize) -> Vec<&'x T> {
        of.iter().filter(|_| self.chance(percent)).collect()
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at + 1));
        }
    }
}

/// The instant of all questions.
pub(crate) fn now() -> Timestamp {
    Timestamp::constant(1_781_524_800, 0)
}

fn hours_ago(hours: usize) -> Timestamp {
    now() - SignedDuration::from_hours(i64::try_from(hours).unwrap())
}

pub(crate) fn file(dice: &mut Dice, name: &str) -> Artifact {
    let hash = match dice.below(40) {
        0 => None,
        1 => Some("md5:0123".to_owned()),
        2 => Some(format!("sha512:{:0>128}", dice.below(1000))),
        _ => Some(format!("sha256:{:A>64}", dice.below(1000))),
    };
    Artifact { name: format!("{name}.jar"), url: format!("https://files.example/{name}"), size: None, hash }
}

/// The problem of a seed.
pub(crate) fn problem(seed: u64) -> Problem {
    let mut dice = Dice::new(seed);
    let (built, beside) = *dice.one(&LINES);
    let mut versions: Vec<&str> = dice.some(built, 55).into_iter().copied().collect();
    if versions.is_empty() {
        versions.push(built[0]);
    }
    let on_lists: Vec<&str> = built.iter().chain(beside).copied().collect();
    let paper: Vec<PaperVersion> = versions.iter().map(|version| paper(&mut dice, version)).collect();
    let mut projects: Vec<Project> = Vec::new();
    let mut names = names(&mut dice);
    rarer::names(&mut Dice::new(seed ^ 0x0000_1A7E), &mut names);
    for name in &names {
        let project = project(&mut dice, name, &on_lists);
        projects.push(project);
    }
    sites::scatter(&mut dice, &mut projects);
    // A file has no page.
    for at in (0..projects.len()).filter(|at| projects[*at].key.source != Source::Url).collect::<Vec<_>>() {
        link(&mut dice, &mut projects, at);
    }
    let images = if dice.chance(15) { images(&mut dice) } else { Vec::new() };
    let catalog = Catalog {
        paper,
        paper_read_at: now(),
        others: BTreeMap::new(),
        projects,
        images,
        unread: BTreeMap::from([("modrinth/ghost".to_owned(), "it answers 503".to_owned())]),
        owners: BTreeMap::new(),
    };
    let request = request(&mut dice, &catalog, &on_lists);
    let mut problem = Problem { catalog, request, now: now() };
    jars::scatter(&mut Dice::new(!seed), &mut problem, &on_lists);
    own(&mut Dice::new(seed.reverse_bits()), &mut problem);
    inside::scatter(&mut Dice::new(seed ^ 0x0000_DEBE), &mut problem);
    software::scatter(&mut Dice::new(seed ^ 0x00F0_11A0), &mut problem);
    rarer::scatter(&mut Dice::new(seed ^ 0x0000_601D), &mut problem);
    problem
}

fn names(dice: &mut Dice) -> Vec<String> {
    let mut names: Vec<String> = NAMES.iter().map(|&name| name.to_owned()).collect();
    dice.shuffle(&mut names);
    names.truncate(1 + dice.below(4));
    if names.len() > 1 && dice.chance(15) {
        "ViaBackwards".clone_into(&mut names[0]);
        "ViaVersion".clone_into(&mut names[1]);
    }
    names
}

fn paper(dice: &mut Dice, version: &str) -> PaperVersion {
    let count = *dice.one(&[1, 1, 2, 3]);
    let builds = (0..count).map(|at| Build {
        number: u32::try_from(at * 3 + 5).unwrap(),
        published: hours_ago(if dice.chance(90) { 24 + dice.below(240) } else { dice.below(24) }),
        channel: match dice.below(12) {
            0 => BuildChannel::Alpha,
            1 => BuildChannel::Beta,
            2 => BuildChannel::Recommended,
            _ => BuildChannel::Stable,
        },
        file: file(dice, &format!("paper-{version}-{at}")),
    });
    PaperVersion {
        minecraft: version.parse().unwrap(),
        java: Some(if version.starts_with("26") { 25 } else { 21 }),
        jvm_flags: Vec::new(),
        unsupported: false,
        builds: builds.collect(),
    }
}

fn project(dice: &mut Dice, name: &str, named: &[&str]) -> Project {
    let id = match name {
        "ViaBackwards" => "NpvuJQoq".to_owned(),
        "ViaVersion" => "P1OZGk5p".to_owned(),
        "ViaRewind" => "TbHIxhx5".to_owned(),
        _ => format!("id-{name}"),
    };
    let count = 1 + dice.below(4);
    let mut releases: Vec<Release> = (0..count).map(|at| release(dice, name, at, named)).collect();
    // Put up twice.
    if let [first, second, ..] = releases.as_mut_slice()
        && dice.chance(5)
    {
        first.version.clone_from(&second.version);
        first.published = second.published;
    }
    Project {
        key: ProjectKey { source: Source::Modrinth, project: name.to_lowercase() },
        id,
        name: name.to_owned(),
        read_at: now(),
        releases,
    }
}

fn release(dice: &mut Dice, project: &str, at: usize, named: &[&str]) -> Release {
    let id = format!("{project}-{at}");
    let base: &[&str] = match project {
        "ViaBackwards" => &["4.9.2", "5.0.0", "5.2.0", "5.10.0", "9.9.9", "5.2.1-SNAPSHOT+7"],
        "ViaVersion" => &["4.9.2", "4.9.3", "5.0.0", "5.1.2", "5.9.2", "9.9.9", "5.1.2-SNAPSHOT+9"],
        _ => rarer::versions(project).unwrap_or(&[
            "1.0.0",
            "1.0.1",
            "1.0.2",
            "1.1",
            "v2.0",
            "2.0.0-beta.9",
            "2.0.0-beta.39",
            "1.1+4",
            "1.1+12",
            "1.2-24w05b",
        ]),
    };
    let channel = match dice.below(10) {
        0 => Channel::Alpha,
        1 | 2 => Channel::Beta,
        _ => Channel::Release,
    };
    let loaders: &[&str] = match dice.below(30) {
        0 => &[],
        1 => &["velocity"],
        2 => &["fabric", "Spigot"],
        _ => &["paper"],
    };
    let hours = if dice.chance(4) { None } else { Some(dice.below(14) * 12) };
    Release {
        version: (*dice.one(base)).to_owned(),
        published: Some(hours.map_or(now() + SignedDuration::from_hours(5), hours_ago)),
        channel,
        minecraft: if dice.chance(8) {
            Vec::new()
        } else {
            let width = *dice.one(&[35, 65, 95]);
            dice.some(named, width).into_iter().map(|version| version.parse().unwrap()).collect()
        },
        api_version: dice.chance(12).then(|| dice.one(named).parse().unwrap()),
        java: dice.chance(15).then(|| *dice.one(&[8, 21, 25])),
        folia: None,
        loaders: loaders.iter().map(|&loader| loader.to_owned()).collect(),
        declared: None,
        dependencies: Vec::new(),
        file: if dice.chance(3) { None } else { Some(file(dice, &id)) },
        further: Vec::new(),
        id,
    }
}

fn link(dice: &mut Dice, projects: &mut [Project], at: usize) {
    for place in 0..projects[at].releases.len() {
        let count = *dice.one(&[0, 0, 0, 1, 1, 2]);
        let lines = (0..count).map(|_| line(dice, projects, at)).collect();
        projects[at].releases[place].dependencies = lines;
    }
}

fn line(dice: &mut Dice, projects: &[Project], at: usize) -> Dependency {
    let kind = match dice.below(10) {
        0..5 => DependencyKind::Required,
        5 | 6 => DependencyKind::Optional,
        7 | 8 => DependencyKind::Incompatible,
        _ => DependencyKind::Embedded,
    };
    let own = projects[at].key.source;
    let bare = Dependency { project_id: None, name: None, version_id: None, kind };
    match dice.below(100) {
        0 => return Dependency { project_id: Some("nobody-read-it".to_owned()), ..bare },
        1 | 2 => return Dependency { project_id: Some("ghost".to_owned()), ..bare },
        3 | 4 => return Dependency { name: Some("PlugOfElsewhere".to_owned()), ..bare },
        _ => {}
    }
    let mut to = dice.one(projects);
    if to.key.source != own {
        // Mostly of the same site: of another one it is not known there, and the whole question without an answer.
        let same: Vec<&Project> = projects.iter().filter(|project| project.key.source == own).collect();
        to = if dice.chance(95) { *dice.one(&same) } else { to };
    }
    if own != Source::Modrinth {
        return sites::line(dice, to, kind);
    }
    let release = match dice.below(6) {
        0 | 1 => Some(dice.one(&to.releases).id.clone()),
        2 if dice.chance(20) => Some("gone".to_owned()),
        _ => None,
    };
    match dice.below(10) {
        0 => Dependency { name: Some(to.name.clone()), version_id: release, ..bare },
        1 if release.is_some() => Dependency { version_id: release, ..bare },
        _ => Dependency { project_id: Some(to.id.clone()), version_id: release, ..bare },
    }
}

fn images(dice: &mut Dice) -> Vec<ImageTag> {
    let tags = ["2026.8.1-java21", "2026.10.1-java21", "2026.8.1-java25", "2026.8.1-java17", "latest"];
    let chosen = dice.some(&tags, 60);
    let tag = |tag: &&str| ImageTag {
        repository: "docker.io/itzg/minecraft-server".to_owned(),
        tag: (*tag).to_owned(),
        digest: format!("sha256:{}", tag.len()),
        pushed: hours_ago(dice.below(300)),
    };
    chosen.into_iter().map(tag).collect()
}

fn request(dice: &mut Dice, catalog: &Catalog, named: &[&str]) -> Request {
    let mut plugins = Vec::new();
    for project in &catalog.projects {
        let wishes = *dice.one(&[0, 1, 1, 1, 1, 1, 1, 1, 1, 2]);
        for _ in 0..wishes {
            let wish = wish(dice, project, named, plugins.len());
            plugins.push(wish);
        }
    }
    for at in 0..plugins.len() {
        if dice.chance(12) {
            let requirement = requirement(dice, catalog, &plugins);
            plugins[at].requires.push(requirement);
        }
        if dice.chance(15) {
            plugins[at].delay_together.push(dice.one(&catalog.projects).name.to_uppercase());
        }
    }
    let paper = &catalog.paper[dice.below(catalog.paper.len())];
    let build = paper.builds[dice.below(paper.builds.len())].number;
    let version = paper.minecraft.clone();
    let running = dice.chance(35).then(|| {
        let there = dice.some(&catalog.projects, 70);
        there.iter().map(|project| dice.one(&project.releases).id.clone()).collect()
    });
    Request {
        server: "games/lobby".to_owned(),
        software: Software::Paper,
        paper: match dice.below(20) {
            0..5 => PaperWish::Latest,
            5..8 => PaperWish::Pin { version: if dice.chance(90) { version.clone() } else { "1.99".parse().unwrap() } },
            8 => PaperWish::BuildPin { version: version.clone(), build },
            9 => PaperWish::BuildPin { version: version.clone(), build: 6 },
            _ => PaperWish::Auto,
        },
        delay: SignedDuration::from_hours(*dice.one(&[0, 0, 48])),
        channel: *dice.one(&[BuildChannel::Stable, BuildChannel::Stable, BuildChannel::Beta, BuildChannel::Alpha]),
        floor: dice.chance(10).then(|| version.clone()),
        running: running.map(|releases| {
            let image =
                dice.chance(60).then(|| (*dice.one(&["itzg:2026.8.1-java21", "itzg:2026.1.0-java25"])).to_owned());
            let java = image.as_deref().and_then(super::texts::java_in).or(dice.chance(50).then_some(21));
            let unasked = Vec::new();
            Running {
                software: Software::Paper,
                minecraft: version,
                build,
                releases,
                unasked,
                image,
                java,
                since: None,
            }
        }),
        plugins,
        dependencies: match dice.below(20) {
            0 | 1 => Dependencies::Forbid,
            2 | 3 => Dependencies::Propose,
            _ => Dependencies::Install,
        },
        image: dice.chance(8).then(|| {
            (*dice.one(&[
                "itzg/minecraft-server:2026.1.0-java21",
                "mine:5",
                "x/papermc:1.21.11-8",
                "x/papermc:1.20.4-5",
                "x/papermc:1.21.10-5@sha256:0",
            ]))
            .to_owned()
        }),
        image_is_given: false,
        image_policy: *dice.one(&[ImagePolicy::Follow, ImagePolicy::Follow, ImagePolicy::SameJava, ImagePolicy::Keep]),
        unmanaged: if dice.chance(25) { strangers(dice, named) } else { Vec::new() },
        unmanaged_plugins: *dice.one(&[UnmanagedPlugins::Hold, UnmanagedPlugins::Hold, UnmanagedPlugins::Warn]),
        hotfix_siblings: if dice.chance(20) { HotfixSiblings::Ask } else { HotfixSiblings::Trust },
        unlisted: if dice.chance(20) { Unlisted::Refuse } else { Unlisted::Assume },
        facts: facts(dice, catalog).into(),
    }
}

fn strangers(dice: &mut Dice, named: &[&str]) -> Vec<UnmanagedJar> {
    let jar = |file: &str, trusted: Vec<String>| UnmanagedJar {
        file: file.to_owned(),
        sha256: Some(format!("of {file}")),
        sha512: None,
        name: None,
        provides: Vec::new(),
        depend: Vec::new(),
        api_version: None,
        java: None,
        trusted,
    };
    let vouched = |dice: &mut Dice| dice.some(named, 40).into_iter().map(|version| (*version).to_owned()).collect();
    vec![jar("shop.jar", vouched(dice)), jar("anticheat.jar", vec!["*".to_owned()])]
}

/// A site knows whose a JAR of people's own is: mostly a release that is there.
fn own(dice: &mut Dice, problem: &mut Problem) {
    let Problem { catalog, request, now: _ } = problem;
    for jar in request.unmanaged.iter().filter_map(|jar| jar.sha256.clone()) {
        if !dice.chance(50) {
            continue;
        }
        let project = dice.one(&catalog.projects);
        let release = project.releases.iter().map(|release| release.id.clone()).collect::<Vec<_>>();
        let release =
            if release.is_empty() || dice.chance(10) { "gone".to_owned() } else { dice.one(&release).clone() };
        let owner = Owner { project: project.key.clone(), release: Some(release) };
        catalog.owners.insert(jar, owner);
    }
}

/// A word about versions: of a plugin that is there, mostly, by one of the names it has.
fn requirement(dice: &mut Dice, catalog: &Catalog, wishes: &[PluginWish]) -> Requirement {
    let other = dice.one(&catalog.projects);
    let plugin = match dice.below(20) {
        0 => "Ghost".to_owned(),
        1..5 => other.id.clone(),
        5 if !wishes.is_empty() => dice.one(wishes).object.clone(),
        _ => other.name.to_uppercase(),
    };
    Requirement { plugin, version: range(dice, other) }
}

fn range(dice: &mut Dice, of: &Project) -> Range {
    let version = dice.one(&of.releases).version.replace(['/', ' '], "");
    let text = match dice.below(8) {
        0 => "*".to_owned(),
        1 => format!("<{version}"),
        2 => version,
        3 => format!("<= {version}"),
        4 => format!(">{version}"),
        5 => format!(
            "{}.x",
            version.trim_start_matches(|c: char| !c.is_ascii_digit()).split(['.', '-', '+']).next().unwrap_or("1")
        ),
        _ => format!(">={version}"),
    };
    text.parse().unwrap()
}

fn facts(dice: &mut Dice, catalog: &Catalog) -> Vec<VersionFact> {
    let count = *dice.one(&[0, 0, 0, 0, 1, 2]);
    let fact = |dice: &mut Dice| {
        let project = dice.one(&catalog.projects);
        VersionFact {
            plugin: project.name.to_lowercase(),
            releases: range(dice, project),
            requires: requirement(dice, catalog, &[]),
            source: "somebody".to_owned(),
            date: "2026-01-10".parse().unwrap(),
        }
    };
    (0..count).map(|_| fact(dice)).collect()
}

fn wish(dice: &mut Dice, project: &Project, named: &[&str], count: usize) -> PluginWish {
    let pin = match dice.below(20) {
        // A file is one release, and its checksum pins it.
        _ if project.key.source == Source::Url => None,
        0 | 1 => Some(dice.one(&project.releases).version.clone()),
        2 => Some(format!("V{}", dice.one(&project.releases).version.trim_start_matches('v'))),
        3 if dice.chance(40) => Some("7.7.7".to_owned()),
        _ => None,
    };
    PluginWish {
        object: format!("{}-{count}", dice.one(&["x", "y", "z"])),
        key: ProjectKey {
            source: project.key.source,
            project: if dice.chance(20) { project.id.clone() } else { project.key.project.clone() },
        },
        jars: Vec::new(),
        version: match pin {
            Some(version) => VersionWish::Pin { version },
            None if dice.chance(20) => VersionWish::Latest,
            None => VersionWish::Auto,
        },
        delay: SignedDuration::from_hours(*dice.one(&[0, 0, 0, 24, 72])),
        channel: *dice.one(&[Channel::Release, Channel::Release, Channel::Beta, Channel::Alpha]),
        allow_downgrade: dice.chance(30),
        hold: dice.chance(10).then_some(Hold::Plugin),
        compatibility: dice.chance(15).then(|| says(dice, project, named)),
        requires: Vec::new(),
        delay_together: Vec::new(),
        selector: None,
    }
}

fn says(dice: &mut Dice, project: &Project, named: &[&str]) -> CompatibilityOverride {
    let pattern = match dice.below(5) {
        0 => Vec::new(),
        1 => vec!["1.21.x".to_owned()],
        2 => vec!["*".to_owned()],
        _ => vec![(*dice.one(named)).to_owned()],
    };
    CompatibilityOverride {
        mode: *dice.one(&[OverrideMode::Add, OverrideMode::Replace, OverrideMode::Remove]),
        minecraft: pattern,
        releases: if dice.chance(50) { vec![dice.one(&project.releases).version.clone()] } else { Vec::new() },
    }
}
