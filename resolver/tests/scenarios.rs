//! Edge (reads). Scenarios: one file each, a small catalog, a request, and what the answer must say.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a scenario that cannot be read has to fail")]

use std::collections::BTreeMap;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use resolver::catalog::{
    Artifact, Build, BuildChannel, Catalog, Channel, Dependency, DependencyKind, ImageTag, PaperVersion, Project,
    ProjectKey, Release, Source,
};
use resolver::explain::{WhyNot, human};
use resolver::request::{
    CompatibilityOverride, Dependencies, OverrideMode, PaperWish, PluginWish, Request, Running, VersionWish,
};
use resolver::version::Minecraft;
use resolver::{Budget, Fleet, Resolution, Unsolvable, needed_projects, resolve, resolve_fleet, why_not};
use serde::Deserialize;

#[path = "support/checker.rs"]
mod checker;
#[path = "support/needs.rs"]
mod needs;
#[path = "support/rules.rs"]
mod rules;
#[path = "support/texts.rs"]
mod texts;

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
    /// Names people know, where they differ from the project's.
    #[serde(default)]
    names: BTreeMap<String, String>,
    /// Projects that could not be read, and why.
    #[serde(default)]
    unread: BTreeMap<String, String>,
    #[serde(default)]
    plugin: BTreeMap<String, PluginFields>,
    expect: Expect,
    /// Further servers of the same namespace; the one above is `lobby`. Without any it is solved alone.
    #[serde(default)]
    server: BTreeMap<String, Another>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Another {
    request: Wanted,
    expect: Expect,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Policy {
    delay: Option<String>,
    channel: Option<BuildChannel>,
    image: Option<String>,
    /// Tags of the server image that are published.
    #[serde(default)]
    images: Vec<String>,
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
    /// `*`, `latest` (one version on all servers), or `=version`.
    plugins: BTreeMap<String, String>,
}

fn auto() -> String {
    "auto".to_owned()
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct PluginFields {
    /// The project, where it is not called as the object.
    project: Option<String>,
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
    /// The version, where several releases share one: the key of the table is then the id.
    version: Option<String>,
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
    #[serde(default)]
    optional: Vec<String>,
    #[serde(default)]
    embedded: Vec<String>,
    /// Required, by a name that the source does not have.
    #[serde(default)]
    outside: Vec<String>,
    #[serde(default = "yes")]
    hash: bool,
    #[serde(default = "yes")]
    file: bool,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(Default)]
struct PaperFields {
    published: Option<String>,
    channel: Option<BuildChannel>,
    java: Option<u32>,
    #[serde(default)]
    unsupported: bool,
    /// Instead of the one build 7.
    builds: Option<Vec<BuildFields>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BuildFields {
    number: u32,
    published: Option<String>,
    channel: Option<BuildChannel>,
    #[serde(default = "yes")]
    hash: bool,
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

/// A day, or an instant.
fn day(text: Option<&str>) -> Timestamp {
    let text = text.unwrap_or("2024-01-01");
    text.parse().unwrap_or_else(|_| format!("{text}T00:00:00Z").parse().unwrap())
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

fn image(tag: &str) -> ImageTag {
    ImageTag {
        repository: "docker.io/itzg/minecraft-server".to_owned(),
        tag: tag.to_owned(),
        digest: format!("sha256:{:b<64}", ""),
        pushed: day(None),
    }
}

fn papers(table: &toml::Table) -> Vec<PaperVersion> {
    let versions = table["versions"].as_array().unwrap().iter().map(|version| version.as_str().unwrap());
    versions
        .map(|version| {
            let fields: Option<PaperFields> = table.get(version).map(|fields| fields.clone().try_into().unwrap());
            let fields = fields.unwrap_or_default();
            let build = |number, published: Option<&str>, channel: Option<BuildChannel>, hash| Build {
                number,
                published: day(published),
                channel: channel.unwrap_or(BuildChannel::Stable),
                file: artifact(&format!("paper-{version}-{number}"), hash),
            };
            PaperVersion {
                minecraft: version.parse().unwrap(),
                java: fields.java,
                jvm_flags: Vec::new(),
                unsupported: fields.unsupported,
                builds: match &fields.builds {
                    None => vec![build(7, fields.published.as_deref(), fields.channel, true)],
                    Some(builds) => {
                        builds.iter().map(|b| build(b.number, b.published.as_deref(), b.channel, b.hash)).collect()
                    }
                },
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
                let lines = |texts: &[String], kind| -> Vec<Dependency> {
                    texts.iter().map(|text| self.dependency(text, kind)).collect()
                };
                let outside = fields.outside.iter().chain(&fields.depend).map(|name| Dependency {
                    project_id: None,
                    name: Some(name.clone()),
                    version_id: None,
                    kind: DependencyKind::Required,
                });
                let mut dependencies = lines(&fields.needs, DependencyKind::Required);
                dependencies.extend(lines(&fields.optional, DependencyKind::Optional));
                dependencies.extend(lines(&fields.incompatible, DependencyKind::Incompatible));
                dependencies.extend(lines(&fields.embedded, DependencyKind::Embedded));
                dependencies.extend(outside);
                Release {
                    id: format!("{name}-{version}"),
                    version: fields.version.unwrap_or_else(|| version.clone()),
                    published: (!self.is_file(name)).then(|| day(fields.published.as_deref())),
                    channel: fields.channel.unwrap_or(Channel::Release),
                    minecraft: if self.is_file(name) { Vec::new() } else { listed(fields.minecraft.as_ref(), &paper) },
                    api_version: fields.api_version,
                    provides: fields.provides,
                    loaders: fields.loaders.unwrap_or_else(|| vec!["paper".to_owned()]),
                    dependencies,
                    file: fields.file.then(|| artifact(&format!("{name}-{version}"), fields.hash)),
                }
            });
            Project {
                key: self.key(name),
                id: self.id(name),
                name: self.names.get(name).cloned().unwrap_or_else(|| name.clone()),
                read_at: self.at,
                releases: releases.collect(),
            }
        });
        Catalog {
            projects: projects.collect(),
            paper,
            paper_read_at: self.at,
            images: self.policy.images.iter().map(|tag| image(tag)).collect(),
            unread: self.unread.clone(),
        }
    }

    fn request(&self, server: &str, wanted: &Wanted) -> Request {
        let plugins = wanted.plugins.iter().map(|(name, version)| {
            let fields = self.plugin.get(name);
            PluginWish {
                object: name.clone(),
                key: self.key(fields.and_then(|fields| fields.project.as_deref()).unwrap_or(name)),
                version: match version.strip_prefix('=') {
                    Some(version) => VersionWish::Pin { version: version.to_owned() },
                    None if version == "latest" => VersionWish::Latest,
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
        let running = wanted.running.as_ref().map(|running| {
            let (minecraft, build) = running[0].split_once('#').unwrap();
            Running {
                minecraft: minecraft.parse().unwrap(),
                build: build.parse().unwrap(),
                releases: running[1..].iter().map(|text| text.replace(' ', "-")).collect(),
                since: None,
            }
        });
        Request {
            server: format!("games/{server}"),
            paper: match wanted.paper.as_str() {
                "auto" => PaperWish::Auto,
                "latest" => PaperWish::Latest,
                pin => pinned(pin),
            },
            delay: delay(self.policy.delay.as_deref()),
            channel: self.policy.channel.unwrap_or(BuildChannel::Stable),
            floor: wanted.floor.clone(),
            running,
            plugins: plugins.collect(),
            dependencies: self.policy.dependencies,
            image: self.policy.image.clone(),
        }
    }
}

/// A scenario that holds catalog and request as they are: what brute force prints when it finds a fault.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Verbatim {
    name: String,
    #[serde(rename = "why")]
    _why: String,
    at: Timestamp,
    problem: Parts,
    expect: Expect,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parts {
    request: Request,
    catalog: Catalog,
}

fn scenario(path: &Path) -> datatest_stable::Result<()> {
    let table: toml::Table = toml::from_str(&std::fs::read_to_string(path)?)?;
    let mut pages = Vec::new();
    let name = if table.contains_key("problem") {
        let Verbatim { name, at, problem: Parts { request, catalog }, expect, _why } = table.try_into()?;
        let why = |target: &Minecraft| why_not(&catalog, &request, target, at);
        pages.push(check(at, &catalog, &request, &expect, &resolve(&catalog, &request, at), &why));
        name
    } else {
        let scenario: Scenario = table.try_into()?;
        pages.extend(scenario.pages());
        scenario.name
    };
    assert_eq!(path.file_stem().unwrap().to_str(), Some(name.as_str()), "the file is called as the scenario");
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("scenarios/answers");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, pages.join("\n")));
    Ok(())
}

impl Scenario {
    /// The answer for each server, checked.
    fn pages(&self) -> Vec<String> {
        let catalog = self.catalog();
        let request = self.request("lobby", &self.request);
        if self.server.is_empty() {
            let answer = resolve(&catalog, &request, self.at);
            let why = |target: &Minecraft| why_not(&catalog, &request, target, self.at);
            return vec![check(self.at, &catalog, &request, &self.expect, &answer, &why)];
        }
        let others = self.server.iter().map(|(name, another)| (self.request(name, &another.request), &another.expect));
        let all: Vec<(Request, &Expect)> = std::iter::once((request, &self.expect)).chain(others).collect();
        let requests: Vec<Request> = all.iter().map(|(request, _)| request.clone()).collect();
        let answers = resolve_fleet(&catalog, &requests, self.at, Budget::default());
        let fleet = Fleet::read(&catalog, &requests, self.at);
        let decided = fleet.decide(Budget::default());
        all.iter()
            .map(|(request, expect)| {
                let (_, answer) = answers.iter().find(|(server, _)| *server == request.server).unwrap();
                let why = |target: &Minecraft| decided.why_not(&request.server, target).unwrap();
                check(self.at, &catalog, request, expect, answer, &why)
            })
            .collect()
    }
}

/// Compares an answer with what is expected of it, and returns its text.
fn check(
    at: Timestamp,
    catalog: &Catalog,
    request: &Request,
    expect: &Expect,
    answer: &Result<Resolution, Unsolvable>,
    why_not: &dyn Fn(&Minecraft) -> Result<WhyNot, Unsolvable>,
) -> String {
    let fetch: Vec<String> = needed_projects(catalog, request).iter().map(|key| key.project.clone()).collect();
    assert_eq!(fetch, expect.fetch, "projects to fetch");
    let mut text = match answer {
        Ok(resolution) => human::render(&resolution.explanation, at),
        Err(unsolvable) => human::render(&unsolvable.explanation(), at),
    };
    assert_eq!(answer.is_ok(), expect.solvable, "{text}");
    if let Ok(resolution) = answer {
        if let Some(paper) = &expect.paper {
            assert_eq!(resolution.lock.minecraft.as_str(), paper, "{text}");
            let chosen = resolution.lock.plugins.iter().map(|plugin| (plugin.name.clone(), plugin.version.clone()));
            assert_eq!(chosen.collect::<BTreeMap<_, _>>(), expect.plugins, "{text}");
        }
        if let Some(held_by) = &expect.held_by {
            assert_eq!(&resolution.explanation.held_by(), held_by, "{text}");
        }
        // The checker knows the rules of the sites, where every release has a date and a list.
        if request.plugins.iter().all(|wish| wish.key.source != Source::Url) {
            assert_eq!(checker::complaints(catalog, request, at, &resolution.lock), [""; 0], "{text}");
        }
    }
    if let Some(target) = &expect.why_not {
        let why = why_not(target).unwrap();
        text.push_str("\n-- why not ");
        text.push_str(target.as_str());
        text.push_str("? --\n");
        text.push_str(&human::render(&resolver::explain::Explanation::WhyNot(why), at));
    }
    for mention in &expect.mentions {
        assert!(text.contains(mention.as_str()), "`{mention}` is not in:\n{text}");
    }
    for never in &expect.never {
        assert!(!text.contains(never.as_str()), "`{never}` is in:\n{text}");
    }
    text
}

datatest_stable::harness! {
    { test = scenario, root = "tests/scenarios", pattern = r"\.toml$" },
}
