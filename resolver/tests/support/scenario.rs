//! Pure. Parses a scenario file to its catalog and requests.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use resolver::Budget;
use resolver::model::catalog::{
    BuildChannel, Catalog, Channel, Dependency, DependencyKind, ImageTag, OtherSoftware, Owner, Project, ProjectKey,
    Source,
};
use resolver::model::compatibility_facts::{CompatibilityFacts, Requirement};
use resolver::model::request::{
    CompatibilityOverride, DelistedRelease, Dependencies, Hold, HotfixSiblings, ImagePolicy, OverrideMode,
    PaperRequest, PluginRequest, Request, Running, RunningEvidence, RunningVersion, Unlisted, VersionRequest,
};
use resolver::model::software::Software;
use resolver::model::unmanaged_jar::{UnmanagedJar, UnmanagedPlugins};
use resolver::model::version::Minecraft;
use serde::Deserialize;

use super::published::{ReleaseFields, artifact, parse_day, parse_papers};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    /// The reason for the scenario, for its readers.
    #[serde(rename = "why")]
    _why: String,
    pub(crate) at: Timestamp,
    #[serde(default)]
    policy: Policy,
    #[serde(default)]
    budget: Limits,
    pub(crate) request: RequestFields,
    catalog: BTreeMap<String, toml::Table>,
    /// Real ids, for projects with built-in constraints.
    #[serde(default)]
    ids: BTreeMap<String, String>,
    /// Projects on Hangar. All others are on Modrinth.
    #[serde(default)]
    hangar: Vec<String>,
    /// Plugins from a URL: one release each, without a date and without a list.
    #[serde(default)]
    files: Vec<String>,
    /// The cluster's facts.
    #[serde(default)]
    facts: CompatibilityFacts,
    /// Display names that differ from the name of the project.
    #[serde(default)]
    names: BTreeMap<String, String>,
    /// Projects that could not be read, and the reasons.
    #[serde(default)]
    unread: BTreeMap<String, String>,
    /// Owners of the unmanaged JARs, by sha256.
    #[serde(default)]
    owners: BTreeMap<String, Owner>,
    #[serde(default)]
    plugin: BTreeMap<String, PluginFields>,
    pub(crate) expect: Expect,
    /// Further servers of the same namespace. The server of `request` is `lobby`. Without further servers, `lobby` is
    /// solved alone.
    #[serde(default)]
    pub(crate) server: BTreeMap<String, FurtherServer>,
}

/// Limits of the query's budget that differ from the default.
#[derive(Deserialize, Default, Clone, Copy)]
#[serde(deny_unknown_fields)]
struct Limits {
    steps: Option<u64>,
    words: Option<u64>,
    milliseconds: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FurtherServer {
    /// Number of servers with this request. Only the first server's answer is shown.
    #[serde(default = "one")]
    pub(crate) copies: usize,
    pub(crate) request: RequestFields,
    pub(crate) expect: Expect,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_field_names, reason = "named like the fields of the server")]
struct Policy {
    delay: Option<String>,
    channel: Option<BuildChannel>,
    image: Option<String>,
    #[serde(default)]
    image_policy: ImagePolicy,
    #[serde(default)]
    image_is_given: bool,
    /// Published tags of the server image.
    #[serde(default)]
    images: Vec<String>,
    #[serde(default)]
    dependencies: Dependencies,
    #[serde(default, rename = "hotfix-siblings")]
    hotfix_siblings: HotfixSiblings,
    #[serde(default)]
    unlisted: Unlisted,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RequestFields {
    #[serde(default)]
    software: Software,
    #[serde(default = "auto")]
    paper: String,
    floor: Option<Minecraft>,
    /// The running version set: `1.21.3#7` for Paper, then `plugin version` for each plugin.
    running: Option<Vec<String>>,
    #[serde(default)]
    running_software: Software,
    /// Releases of `running` that are delisted and known from the lock, with their dependents by slug.
    #[serde(default)]
    running_delisted: BTreeMap<String, Vec<String>>,
    /// The ids of running projects whose slugs lead to another project now.
    #[serde(default)]
    running_projects: BTreeMap<String, String>,
    /// The tag of the running image.
    running_image: Option<String>,
    /// The running plugins that are not requested, by slug.
    #[serde(default)]
    running_unrequested: Vec<String>,
    /// Unmanaged JARs on the server.
    #[serde(default)]
    unmanaged: Vec<UnmanagedJar>,
    #[serde(default)]
    unmanaged_plugins: UnmanagedPlugins,
    /// `spec.hold` of the server.
    #[serde(default)]
    hold: Vec<String>,
    /// `*`, `latest` (one version on all servers), or `=version`.
    plugins: BTreeMap<String, String>,
}

fn one() -> usize {
    1
}

fn auto() -> String {
    "auto".to_owned()
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct PluginFields {
    /// The project, if it differs from the name of the object.
    project: Option<String>,
    channel: Option<Channel>,
    delay: Option<String>,
    /// `spec.source.jars`.
    #[serde(default)]
    jars: Vec<String>,
    /// `spec.requires`.
    #[serde(default)]
    requires: Vec<Requirement>,
    /// `spec.delayTogether`.
    #[serde(default, rename = "delay-together")]
    delay_together: Vec<String>,
    /// `spec.allowDowngrade`.
    #[serde(default, rename = "allow-downgrade")]
    allow_downgrade: bool,
    /// `spec.hold`.
    #[serde(default)]
    hold: bool,
    #[serde(rename = "override")]
    compatibility: Option<OverrideFields>,
    /// `spec.instanceSelector` as JSON.
    selector: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OverrideFields {
    mode: OverrideMode,
    minecraft: Vec<String>,
    #[serde(default)]
    releases: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expect {
    pub(crate) solvable: bool,
    pub(crate) paper: Option<String>,
    #[serde(default)]
    pub(crate) plugins: BTreeMap<String, String>,
    /// The minimum Java of the version set.
    pub(crate) java: Option<u32>,
    /// The tag of the image.
    pub(crate) image: Option<String>,
    pub(crate) blocked_by: Option<Vec<String>>,
    /// All files in `plugins/`.
    pub(crate) files: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) mentions: Vec<String>,
    #[serde(default)]
    pub(crate) never: Vec<String>,
    /// Also queries "why not" for this Paper. Its answer must contain `mentions`.
    pub(crate) why_not: Option<Minecraft>,
    /// Also queries "why not" for this release, as `plugin=version`. Not combined with `why_not`.
    pub(crate) why_not_release: Option<String>,
    /// Projects that have to be fetched first.
    #[serde(default)]
    pub(crate) fetch: Vec<String>,
    /// Shows the lock below the answer, as `resolver lock` writes it.
    #[serde(default)]
    pub(crate) shows_lock: bool,
}

fn parse_delay(text: Option<&str>) -> SignedDuration {
    text.map_or(SignedDuration::ZERO, |text| {
        let (number, unit) = text.split_at(text.len() - 1);
        let hours: i64 = number.parse().unwrap();
        SignedDuration::from_hours(if unit == "d" { hours * 24 } else { hours })
    })
}

fn image_tag(tag: &str) -> ImageTag {
    ImageTag {
        repository: "docker.io/itzg/minecraft-server".to_owned(),
        tag: tag.to_owned(),
        digest: format!("sha256:{:b<64}", ""),
        pushed: parse_day(None),
    }
}

/// The tables of a catalog that are not plugins.
const SOFTWARE: [&str; 4] = ["minecraft", "purpur", "folia", "velocity"];

impl Scenario {
    pub(crate) fn budget(&self) -> Budget {
        let usual = Budget::default();
        let Limits { steps, words, milliseconds } = self.budget;
        Budget {
            steps: steps.unwrap_or(usual.steps),
            words: words.unwrap_or(usual.words),
            time: milliseconds.map_or(usual.time, Duration::from_millis),
        }
    }

    fn id(&self, project: &str) -> String {
        self.ids.get(project).cloned().unwrap_or_else(|| format!("id-{project}"))
    }

    fn is_file(&self, project: &str) -> bool {
        self.files.iter().any(|file| file == project)
    }

    fn key(&self, project: &str) -> ProjectKey {
        if self.is_file(project) {
            return ProjectKey::from_file(&format!("https://files.example/{project}.jar"), &"a".repeat(64));
        }
        let is_hangars = self.hangar.iter().any(|other| other == project);
        let source = if is_hangars { Source::Hangar } else { Source::Modrinth };
        ProjectKey { source, project: project.to_owned() }
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

    fn other_software(&self) -> BTreeMap<Software, OtherSoftware> {
        let others = Software::ALL.into_iter().filter_map(|software| {
            let versions = parse_papers(self.catalog.get(software.project())?, software.project());
            Some((software, OtherSoftware { versions, read_at: self.at }))
        });
        others.collect()
    }

    pub(crate) fn catalog(&self) -> Catalog {
        let paper = parse_papers(&self.catalog["minecraft"], "paper");
        let projects =
            self.catalog.iter().filter(|(name, _)| !SOFTWARE.contains(&name.as_str())).map(|(name, releases)| {
                let shown = self.names.get(name).unwrap_or(name);
                let releases = releases.iter().map(|(version, fields)| {
                    let fields: ReleaseFields = fields.clone().try_into().unwrap();
                    let lines = fields.dependencies(|text, kind| self.dependency(text, kind));
                    fields.release((name, shown), version, lines, self.is_file(name), &paper)
                });
                Project {
                    key: self.key(name),
                    id: self.id(name),
                    name: shown.clone(),
                    read_at: self.at,
                    releases: releases.collect(),
                }
            });
        Catalog {
            projects: projects.collect(),
            paper,
            paper_read_at: self.at,
            others: self.other_software(),
            images: self.policy.images.iter().map(|tag| image_tag(tag)).collect(),
            unread: self.unread.clone(),
            owners: self.owners.clone(),
        }
    }

    pub(crate) fn request(&self, server: &str, wanted: &RequestFields) -> Request {
        let plugins = wanted.plugins.iter().map(|(name, version)| {
            let fields = self.plugin.get(name);
            PluginRequest {
                object: name.clone(),
                key: self.key(fields.and_then(|fields| fields.project.as_deref()).unwrap_or(name)),
                jars: fields.map(|fields| fields.jars.clone()).unwrap_or_default(),
                version: match version.strip_prefix('=') {
                    Some(version) => VersionRequest::Pin { version: version.to_owned() },
                    None if version == "latest" => VersionRequest::Latest,
                    None => VersionRequest::Auto,
                },
                delay: parse_delay(fields.and_then(|fields| fields.delay.as_deref()).or(self.policy.delay.as_deref())),
                channel: fields.and_then(|fields| fields.channel).unwrap_or(Channel::Release),
                compatibility: fields.and_then(|fields| fields.compatibility.as_ref()).map(|compatibility| {
                    CompatibilityOverride {
                        mode: compatibility.mode,
                        minecraft: compatibility.minecraft.clone(),
                        releases: compatibility.releases.clone(),
                    }
                }),
                requires: fields.map(|fields| fields.requires.clone()).unwrap_or_default(),
                allow_downgrade: fields.is_some_and(|fields| fields.allow_downgrade),
                hold: match fields {
                    Some(fields) if fields.hold => Some(Hold::Plugin),
                    _ => wanted.hold.contains(name).then_some(Hold::Server),
                },
                delay_together: fields.map(|fields| fields.delay_together.clone()).unwrap_or_default(),
                selector: fields.and_then(|fields| fields.selector.clone()),
            }
        });
        let pinned = |text: &str| match text.split_once('#') {
            Some((version, build)) => {
                PaperRequest::BuildPin { version: version.parse().unwrap(), build: build.parse().unwrap() }
            }
            None => PaperRequest::Pin { version: text.parse().unwrap() },
        };
        let running = wanted.running.as_ref().map(|running| {
            let (minecraft, build) = running[0].split_once('#').unwrap();
            Running {
                software: wanted.running_software,
                minecraft: minecraft.parse().unwrap(),
                build: build.parse().unwrap(),
                releases: running[1..].iter().map(|text| text.replace(' ', "-")).collect(),
                versions: running[1..]
                    .iter()
                    .filter_map(|text| text.split_once(' '))
                    .map(|(slug, version)| RunningVersion { project: self.key(slug), version: version.to_owned() })
                    .collect(),
                delisted: (wanted.running_delisted.iter())
                    .map(|(text, needs)| {
                        let (slug, version) = text.split_once(' ').unwrap();
                        let minecraft: Minecraft = minecraft.parse().unwrap();
                        let on =
                            RunningEvidence { software: wanted.running_software, minecraft: &minecraft, java: None };
                        let ids = (text.replace(' ', "-"), version.to_owned());
                        let file = artifact(&ids.0, true);
                        let needs = needs.iter().map(|slug| self.id(slug));
                        let delisted = DelistedRelease::new(self.key(slug), ids, on, needs, [file]).unwrap();
                        DelistedRelease { project_id: wanted.running_projects.get(slug).cloned(), ..delisted }
                    })
                    .collect(),
                unrequested: wanted.running_unrequested.iter().map(|slug| self.key(slug)).collect(),
                image: wanted.running_image.as_deref().map(|tag| {
                    let ImageTag { repository, tag, digest, pushed: _ } = image_tag(tag);
                    format!("{repository}:{tag}@{digest}")
                }),
                java: wanted.running_image.as_deref().and_then(super::texts::java_in),
                since: None,
            }
        });
        Request {
            server: format!("games/{server}"),
            software: wanted.software,
            paper: match wanted.paper.as_str() {
                "auto" => PaperRequest::Auto,
                "latest" => PaperRequest::Latest,
                pin => pinned(pin),
            },
            delay: parse_delay(self.policy.delay.as_deref()),
            channel: self.policy.channel.unwrap_or(BuildChannel::Stable),
            floor: wanted.floor.clone(),
            running,
            plugins: plugins.collect(),
            dependencies: self.policy.dependencies,
            image: self.policy.image.clone(),
            image_is_given: self.policy.image_is_given,
            image_policy: self.policy.image_policy,
            unmanaged: wanted.unmanaged.clone(),
            unmanaged_plugins: wanted.unmanaged_plugins,
            checked_at: None,
            hotfix_siblings: self.policy.hotfix_siblings,
            unlisted: self.policy.unlisted,
            facts: self.facts.clone(),
        }
    }
}
