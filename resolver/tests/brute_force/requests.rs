//! Pure. Generates the requests of random problems, with the settings of servers and Plugins.

use jiff::SignedDuration;
use resolver::model::catalog::{BuildChannel, Catalog, Channel, Project, ProjectKey, Source};
use resolver::model::compatibility_facts::{Requirement, VersionFact};
use resolver::model::request::{
    CompatibilityOverride, Dependencies, Hold, HotfixSiblings, ImagePolicy, OverrideMode, PaperRequest, PluginRequest,
    Request, Running, Unlisted, VersionRequest,
};
use resolver::model::software::Software;
use resolver::model::unmanaged_jar::{UnmanagedJar, UnmanagedPlugins};
use resolver::model::version::range::Range;

use super::generate::Rng;

pub(super) fn request(rng: &mut Rng, catalog: &Catalog, named: &[&str]) -> Request {
    let mut plugins = Vec::new();
    for project in &catalog.projects {
        let request_count = *rng.choose(&[0, 1, 1, 1, 1, 1, 1, 1, 1, 2]);
        for _ in 0..request_count {
            let plugin_request = plugin_request(rng, project, named, plugins.len());
            plugins.push(plugin_request);
        }
    }
    for at in 0..plugins.len() {
        if rng.chance(12) {
            let requirement = requirement(rng, catalog, &plugins);
            plugins[at].requires.push(requirement);
        }
        if rng.chance(15) {
            plugins[at].delay_together.push(rng.choose(&catalog.projects).name.to_uppercase());
        }
    }
    let paper = &catalog.paper[rng.below(catalog.paper.len())];
    let build = paper.builds[rng.below(paper.builds.len())].number;
    let version = paper.minecraft.clone();
    let running = rng.chance(35).then(|| {
        let installed = rng.choose_some(&catalog.projects, 70);
        installed.iter().map(|project| rng.choose(&project.releases).id.clone()).collect()
    });
    Request {
        server: "games/lobby".to_owned(),
        software: Software::Paper,
        paper: match rng.below(20) {
            0..5 => PaperRequest::Latest,
            5..8 => {
                PaperRequest::Pin { version: if rng.chance(90) { version.clone() } else { "1.99".parse().unwrap() } }
            }
            8 => PaperRequest::BuildPin { version: version.clone(), build },
            9 => PaperRequest::BuildPin { version: version.clone(), build: 6 },
            _ => PaperRequest::Auto,
        },
        delay: SignedDuration::from_hours(*rng.choose(&[0, 0, 48])),
        channel: *rng.choose(&[BuildChannel::Stable, BuildChannel::Stable, BuildChannel::Beta, BuildChannel::Alpha]),
        floor: rng.chance(10).then(|| version.clone()),
        running: running.map(|releases| {
            let image =
                rng.chance(60).then(|| (*rng.choose(&["itzg:2026.8.1-java21", "itzg:2026.1.0-java25"])).to_owned());
            let java = image.as_deref().and_then(super::texts::java_in).or(rng.chance(50).then_some(21));
            let unrequested = Vec::new();
            Running {
                software: Software::Paper,
                minecraft: version,
                build,
                releases,
                unrequested,
                versions: Vec::new(),
                delisted: Vec::new(),
                image,
                java,
                since: None,
            }
        }),
        plugins,
        dependencies: match rng.below(20) {
            0 | 1 => Dependencies::Forbid,
            2 | 3 => Dependencies::Propose,
            _ => Dependencies::Install,
        },
        image: rng.chance(8).then(|| {
            (*rng.choose(&[
                "itzg/minecraft-server:2026.1.0-java21",
                "mine:5",
                "x/papermc:1.21.11-8",
                "x/papermc:1.20.4-5",
                "x/papermc:1.21.10-5@sha256:0",
            ]))
            .to_owned()
        }),
        image_is_given: false,
        image_policy: *rng.choose(&[
            ImagePolicy::Follow,
            ImagePolicy::Follow,
            ImagePolicy::SameJava,
            ImagePolicy::Keep,
        ]),
        unmanaged: if rng.chance(25) { unmanaged_jars(rng, named) } else { Vec::new() },
        unmanaged_plugins: *rng.choose(&[UnmanagedPlugins::Hold, UnmanagedPlugins::Hold, UnmanagedPlugins::Warn]),
        checked_at: None,
        hotfix_siblings: if rng.chance(20) { HotfixSiblings::Ask } else { HotfixSiblings::Trust },
        unlisted: if rng.chance(20) { Unlisted::Refuse } else { Unlisted::Assume },
        facts: facts(rng, catalog).into(),
    }
}

fn unmanaged_jars(rng: &mut Rng, named: &[&str]) -> Vec<UnmanagedJar> {
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
    let trusted_versions =
        |rng: &mut Rng| rng.choose_some(named, 40).into_iter().map(|version| (*version).to_owned()).collect();
    vec![jar("shop.jar", trusted_versions(rng)), jar("anticheat.jar", vec!["*".to_owned()])]
}

/// A version requirement, usually on an existing plugin by one of its names.
fn requirement(rng: &mut Rng, catalog: &Catalog, plugin_requests: &[PluginRequest]) -> Requirement {
    let other = rng.choose(&catalog.projects);
    let plugin = match rng.below(20) {
        0 => "Ghost".to_owned(),
        1..5 => other.id.clone(),
        5 if !plugin_requests.is_empty() => rng.choose(plugin_requests).object.clone(),
        _ => other.name.to_uppercase(),
    };
    Requirement { plugin, version: range(rng, other) }
}

pub(super) fn range(rng: &mut Rng, of: &Project) -> Range {
    let version = rng.choose(&of.releases).version.replace(['/', ' '], "");
    let text = match rng.below(8) {
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

fn facts(rng: &mut Rng, catalog: &Catalog) -> Vec<VersionFact> {
    let count = *rng.choose(&[0, 0, 0, 0, 1, 2]);
    let fact = |rng: &mut Rng| {
        let project = rng.choose(&catalog.projects);
        VersionFact {
            plugin: project.name.to_lowercase(),
            releases: range(rng, project),
            requires: requirement(rng, catalog, &[]),
            source: "an admin".to_owned(),
            date: "2026-01-10".parse().unwrap(),
        }
    };
    (0..count).map(|_| fact(rng)).collect()
}

fn plugin_request(rng: &mut Rng, project: &Project, named: &[&str], count: usize) -> PluginRequest {
    let pin = match rng.below(20) {
        // A plugin from a URL has one release, which its checksum pins.
        _ if project.key.source == Source::Url => None,
        0 | 1 => Some(rng.choose(&project.releases).version.clone()),
        2 => Some(format!("V{}", rng.choose(&project.releases).version.trim_start_matches('v'))),
        3 if rng.chance(40) => Some("7.7.7".to_owned()),
        _ => None,
    };
    PluginRequest {
        object: format!("{}-{count}", rng.choose(&["x", "y", "z"])),
        key: ProjectKey {
            source: project.key.source,
            project: if rng.chance(20) { project.id.clone() } else { project.key.project.clone() },
        },
        jars: Vec::new(),
        version: match pin {
            Some(version) => VersionRequest::Pin { version },
            None if rng.chance(20) => VersionRequest::Latest,
            None => VersionRequest::Auto,
        },
        delay: SignedDuration::from_hours(*rng.choose(&[0, 0, 0, 24, 72])),
        channel: *rng.choose(&[Channel::Release, Channel::Release, Channel::Beta, Channel::Alpha]),
        allow_downgrade: rng.chance(30),
        hold: rng.chance(10).then_some(Hold::Plugin),
        compatibility: rng.chance(15).then(|| compatibility_override(rng, project, named)),
        requires: Vec::new(),
        delay_together: Vec::new(),
        selector: None,
    }
}

fn compatibility_override(rng: &mut Rng, project: &Project, named: &[&str]) -> CompatibilityOverride {
    let pattern = match rng.below(5) {
        0 => Vec::new(),
        1 => vec!["1.21.x".to_owned()],
        2 => vec!["*".to_owned()],
        _ => vec![(*rng.choose(named)).to_owned()],
    };
    CompatibilityOverride {
        mode: *rng.choose(&[OverrideMode::Add, OverrideMode::Replace, OverrideMode::Remove]),
        minecraft: pattern,
        releases: if rng.chance(50) { vec![rng.choose(&project.releases).version.clone()] } else { Vec::new() },
    }
}
