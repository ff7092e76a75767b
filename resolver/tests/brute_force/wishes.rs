//! Pure. Generates the requests of random problems, and the users' settings for plugins.

use jiff::SignedDuration;
use resolver::catalog::{BuildChannel, Catalog, Channel, Project, ProjectKey, Source};
use resolver::compatibility_facts::{Requirement, VersionFact};
use resolver::request::{
    CompatibilityOverride, Dependencies, Hold, HotfixSiblings, ImagePolicy, OverrideMode, PaperRequest, PluginRequest,
    Request, Running, Unlisted, VersionRequest,
};
use resolver::software::Software;
use resolver::unmanaged_jar::{UnmanagedJar, UnmanagedPlugins};
use resolver::version::range::Range;

use super::generate::Dice;

pub(super) fn request(dice: &mut Dice, catalog: &Catalog, named: &[&str]) -> Request {
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
            0..5 => PaperRequest::Latest,
            5..8 => {
                PaperRequest::Pin { version: if dice.chance(90) { version.clone() } else { "1.99".parse().unwrap() } }
            }
            8 => PaperRequest::BuildPin { version: version.clone(), build },
            9 => PaperRequest::BuildPin { version: version.clone(), build: 6 },
            _ => PaperRequest::Auto,
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
                versions: Vec::new(),
                lost: Vec::new(),
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

/// A version requirement, usually on an existing plugin by one of its names.
fn requirement(dice: &mut Dice, catalog: &Catalog, wishes: &[PluginRequest]) -> Requirement {
    let other = dice.one(&catalog.projects);
    let plugin = match dice.below(20) {
        0 => "Ghost".to_owned(),
        1..5 => other.id.clone(),
        5 if !wishes.is_empty() => dice.one(wishes).object.clone(),
        _ => other.name.to_uppercase(),
    };
    Requirement { plugin, version: range(dice, other) }
}

pub(super) fn range(dice: &mut Dice, of: &Project) -> Range {
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

fn wish(dice: &mut Dice, project: &Project, named: &[&str], count: usize) -> PluginRequest {
    let pin = match dice.below(20) {
        // A file is one release, and its checksum pins it.
        _ if project.key.source == Source::Url => None,
        0 | 1 => Some(dice.one(&project.releases).version.clone()),
        2 => Some(format!("V{}", dice.one(&project.releases).version.trim_start_matches('v'))),
        3 if dice.chance(40) => Some("7.7.7".to_owned()),
        _ => None,
    };
    PluginRequest {
        object: format!("{}-{count}", dice.one(&["x", "y", "z"])),
        key: ProjectKey {
            source: project.key.source,
            project: if dice.chance(20) { project.id.clone() } else { project.key.project.clone() },
        },
        jars: Vec::new(),
        version: match pin {
            Some(version) => VersionRequest::Pin { version },
            None if dice.chance(20) => VersionRequest::Latest,
            None => VersionRequest::Auto,
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
