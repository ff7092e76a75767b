//! Edge (reads). Scenarios: one file each, a small catalog, a request, and what the answer must say.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a scenario that cannot be read has to fail")]

use std::collections::BTreeMap;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use resolver::catalog::{
    Artifact, Build, BuildChannel, Catalog, Channel, Dependency, DependencyKind, PaperVersion, Project, ProjectKey,
    Release, Source,
};
use resolver::explain::human;
use resolver::request::{
    CompatibilityOverride, Dependencies, OverrideMode, PaperWish, PluginWish, Request, Running, VersionWish,
};
use resolver::version::Minecraft;
use resolver::{needed_projects, resolve, why_not};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenario {
    name: String,
    /// For readers.
    #[serde(rename = "why")]
    _why: String,
    at: Timestamp,
    #[serde(default)]
    policy: Policy,
    request: Wanted,
    catalog: BTreeMap<String, toml::Table>,
    /// Real ids, where the solve knows them.
    #[serde(default)]
    ids: BTreeMap<String, String>,
    /// Plugins that are named by a URL: one release each, without a date and without a list.
    #[serde(default)]
    files: Vec<String>,
    #[serde(default)]
    plugin: BTreeMap<String, PluginFields>,
    expect: Expect,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Policy {
    delay: Option<String>,
    channel: Option<BuildChannel>,
    image: Option<String>,
    #[serde(default)]
    dependencies: Dependencies,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    #[serde(default = "auto")]
    paper: String,
    floor: Option<Minecraft>,
    /// `1.21.3#7`, then `plugin version`.
    running: Option<Vec<String>>,
    plugins: BTreeMap<String, String>,
}

fn auto() -> String {
    "auto".to_owned()
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct PluginFields {
    channel: Option<Channel>,
    delay: Option<String>,
    #[serde(rename = "override")]
    says: Option<Says>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Says {
    mode: OverrideMode,
    minecraft: Vec<String>,
    #[serde(default)]
    releases: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReleaseFields {
    minecraft: Option<toml::Value>,
    published: Option<String>,
    channel: Option<Channel>,
    loaders: Option<Vec<String>>,
    #[serde(default)]
    needs: Vec<String>,
    #[serde(default)]
    incompatible: Vec<String>,
    /// Of a file: what its JAR needs, by name; the least Minecraft; further names.
    #[serde(default)]
    depend: Vec<String>,
    api_version: Option<Minecraft>,
    #[serde(default)]
    provides: Vec<String>,
    #[serde(default = "yes")]
    hash: bool,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PaperFields {
    published: Option<String>,
    channel: Option<BuildChannel>,
    java: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    solvable: bool,
    paper: Option<String>,
    #[serde(default)]
    plugins: BTreeMap<String, String>,
    held_by: Option<Vec<String>>,
    #[serde(default)]
    mentions: Vec<String>,
    #[serde(default)]
    never: Vec<String>,
    /// Ask "why not" about this Paper as well, and find `mentions` there.
    why_not: Option<Minecraft>,
    /// Projects that have to be fetched first.
    #[serde(default)]
    fetch: Vec<String>,
}

fn day(text: Option<&str>) -> Timestamp {
    format!("{}T00:00:00Z", text.unwrap_or("2024-01-01")).parse().unwrap()
}

fn delay(text: Option<&str>) -> SignedDuration {
    text.map_or(SignedDuration::ZERO, |text| {
        let (number, unit) = text.split_at(text.len() - 1);
        let hours: i64 = number.parse().unwrap();
        SignedDuration::from_hours(if unit == "d" { hours * 24 } else { hours })
    })
}

fn artifact(name: &str, hash: bool) -> Artifact {
    Artifact {
        name: format!("{name}.jar"),
        url: format!("https://files.example/{name}.jar"),
        size: Some(1),
        hash: hash.then(|| format!("sha256:{:a<64}", "")),
    }
}

fn papers(table: &toml::Table) -> Vec<PaperVersion> {
    let versions = table["versions"].as_array().unwrap().iter().map(|version| version.as_str().unwrap());
    versions
        .map(|version| {
            let fields: Option<PaperFields> = table.get(version).map(|fields| fields.clone().try_into().unwrap());
            let fields = fields.unwrap_or(PaperFields { published: None, channel: None, java: None });
            PaperVersion {
                minecraft: version.parse().unwrap(),
                java: fields.java,
                jvm_flags: Vec::new(),
                unsupported: false,
                builds: vec![Build {
                    number: 7,
                    published: day(fields.published.as_deref()),
                    channel: fields.channel.unwrap_or(BuildChannel::Stable),
                    file: artifact(&format!("paper-{version}-7"), true),
                }],
            }
        })
        .collect()
}

fn listed(expression: Option<&toml::Value>, all: &[PaperVersion]) -> Vec<Minecraft> {
    let keep = |keep: &dyn Fn(&Minecraft) -> bool| {
        all.iter().map(|paper| paper.minecraft.clone()).filter(|minecraft| keep(minecraft)).collect()
    };
    match expression {
        None => keep(&|_| true),
        Some(toml::Value::Array(list)) => {
            list.iter().map(|version| version.as_str().unwrap().parse().unwrap()).collect()
        }
        Some(value) => {
            let text = value.as_str().unwrap();
            let version = |prefix: &str| text.strip_prefix(prefix).map(|rest| rest.parse::<Minecraft>().unwrap());
            if let Some(least) = version(">=") {
                keep(&|minecraft| *minecraft >= least)
            } else if let Some(most) = version("<=") {
                keep(&|minecraft| *minecraft <= most)
            } else {
                panic!("`{text}` is neither a list nor >= nor <=")
            }
        }
    }
}

impl Scenario {
    fn id(&self, project: &str) -> String {
        self.ids.get(project).cloned().unwrap_or_else(|| format!("id-{project}"))
    }

    fn is_file(&self, project: &str) -> bool {
        self.files.iter().any(|file| file == project)
    }

    fn key(&self, project: &str) -> ProjectKey {
        if self.is_file(project) {
            return ProjectKey::of_file(&format!("https://files.example/{project}.jar"), &"a".repeat(64));
        }
        ProjectKey { source: Source::Modrinth, project: project.to_owned() }
    }

    fn dependency(&self, text: &str, kind: DependencyKind) -> Dependency {
        let (project, version) =
            text.split_once('@').map_or((text, None), |(project, version)| (project, Some(version)));
        Dependency {
            project_id: Some(self.id(project)),
            name: None,
            version_id: version.map(|version| format!("{project}-{version}")),
            kind,
        }
    }

    fn catalog(&self) -> Catalog {
        let paper = papers(&self.catalog["minecraft"]);
        let projects = self.catalog.iter().filter(|(name, _)| *name != "minecraft").map(|(name, releases)| {
            let releases = releases.iter().map(|(version, fields)| {
                let fields: ReleaseFields = fields.clone().try_into().unwrap();
                let required = fields.needs.iter().map(|text| self.dependency(text, DependencyKind::Required));
                let excluded =
                    fields.incompatible.iter().map(|text| self.dependency(text, DependencyKind::Incompatible));
                let named = fields.depend.iter().map(|name| Dependency {
                    project_id: None,
                    name: Some(name.clone()),
                    version_id: None,
                    kind: DependencyKind::Required,
                });
                Release {
                    id: format!("{name}-{version}"),
                    version: version.clone(),
                    published: (!self.is_file(name)).then(|| day(fields.published.as_deref())),
                    channel: fields.channel.unwrap_or(Channel::Release),
                    minecraft: if self.is_file(name) { Vec::new() } else { listed(fields.minecraft.as_ref(), &paper) },
                    api_version: fields.api_version,
                    provides: fields.provides,
                    loaders: fields.loaders.unwrap_or_else(|| vec!["paper".to_owned()]),
                    dependencies: required.chain(excluded).chain(named).collect(),
                    file: Some(artifact(&format!("{name}-{version}"), fields.hash)),
                }
            });
            Project {
                key: self.key(name),
                id: self.id(name),
                name: name.clone(),
                read_at: self.at,
                releases: releases.collect(),
            }
        });
        Catalog {
            projects: projects.collect(),
            paper,
            paper_read_at: self.at,
            images: Vec::new(),
            unread: BTreeMap::new(),
        }
    }

    fn request(&self) -> Request {
        let plugins = self.request.plugins.iter().map(|(name, version)| {
            let fields = self.plugin.get(name);
            PluginWish {
                object: name.clone(),
                key: self.key(name),
                version: match version.strip_prefix('=') {
                    Some(version) => VersionWish::Pin { version: version.to_owned() },
                    None => VersionWish::Auto,
                },
                delay: delay(fields.and_then(|fields| fields.delay.as_deref()).or(self.policy.delay.as_deref())),
                channel: fields.and_then(|fields| fields.channel).unwrap_or(Channel::Release),
                compatibility: fields.and_then(|fields| fields.says.as_ref()).map(|says| CompatibilityOverride {
                    mode: says.mode,
                    minecraft: says.minecraft.clone(),
                    releases: says.releases.clone(),
                }),
            }
        });
        let pinned = |text: &str| match text.split_once('#') {
            Some((version, build)) => {
                PaperWish::BuildPin { version: version.parse().unwrap(), build: build.parse().unwrap() }
            }
            None => PaperWish::Pin { version: text.parse().unwrap() },
        };
        let running = self.request.running.as_ref().map(|running| {
            let (minecraft, build) = running[0].split_once('#').unwrap();
            Running {
                minecraft: minecraft.parse().unwrap(),
                build: build.parse().unwrap(),
                releases: running[1..].iter().map(|text| text.replace(' ', "-")).collect(),
                since: None,
            }
        });
        Request {
            server: "games/lobby".to_owned(),
            paper: match self.request.paper.as_str() {
                "auto" => PaperWish::Auto,
                "latest" => PaperWish::Latest,
                pin => pinned(pin),
            },
            delay: delay(self.policy.delay.as_deref()),
            channel: self.policy.channel.unwrap_or(BuildChannel::Stable),
            floor: self.request.floor.clone(),
            running,
            plugins: plugins.collect(),
            dependencies: self.policy.dependencies,
            image: self.policy.image.clone(),
        }
    }
}

fn scenario(path: &Path) -> datatest_stable::Result<()> {
    let scenario: Scenario = toml::from_str(&std::fs::read_to_string(path)?)?;
    assert_eq!(path.file_stem().unwrap().to_str(), Some(scenario.name.as_str()), "the file is called as the scenario");
    let (catalog, request) = (scenario.catalog(), scenario.request());
    let expect = &scenario.expect;
    let fetch: Vec<String> = needed_projects(&catalog, &request).iter().map(|key| key.project.clone()).collect();
    assert_eq!(fetch, expect.fetch, "projects to fetch");
    let answer = resolve(&catalog, &request, scenario.at);
    let mut text = match &answer {
        Ok(resolution) => human::render(&resolution.explanation, scenario.at),
        Err(unsolvable) => human::render(&unsolvable.explanation(), scenario.at),
    };
    assert_eq!(answer.is_ok(), expect.solvable, "{text}");
    if let Ok(resolution) = &answer {
        if let Some(paper) = &expect.paper {
            assert_eq!(resolution.lock.minecraft.as_str(), paper, "{text}");
            let chosen = resolution.lock.plugins.iter().map(|plugin| (plugin.name.clone(), plugin.version.clone()));
            assert_eq!(chosen.collect::<BTreeMap<_, _>>(), expect.plugins, "{text}");
        }
        if let Some(held_by) = &expect.held_by {
            assert_eq!(&resolution.explanation.held_by(), held_by, "{text}");
        }
    }
    if let Some(target) = &expect.why_not {
        let why = why_not(&catalog, &request, target, scenario.at)?;
        text.push_str(&human::render(&resolver::explain::Explanation::WhyNot(why), scenario.at));
    }
    for mention in &expect.mentions {
        assert!(text.contains(mention.as_str()), "`{mention}` is not in:\n{text}");
    }
    for never in &expect.never {
        assert!(!text.contains(never.as_str()), "`{never}` is in:\n{text}");
    }
    Ok(())
}

datatest_stable::harness! {
    { test = scenario, root = "tests/scenarios", pattern = r"\.toml$" },
}
