//! Pure. Changes catalog and requests for hypothetical queries: a future Paper, an unpublished release, a plugin left
//! out.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::output::join::or_list;
use resolver::explanation::Explanation;
use resolver::model::catalog::{
    Artifact, Build, BuildChannel, Catalog, Channel, FurtherJar, PaperVersion, Project, Release,
};
use resolver::model::did_you_mean::nearest;
use resolver::model::request::{PluginRequest, Request, VersionRequest};
use resolver::model::software::Software;
use resolver::model::version::Minecraft;
use resolver::namespace;
use resolver::render::phrases::{date, list};

/// The hash of hypothetical files. It has the length of a hash and matches no file.
const HYPOTHETICAL_HASH: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

/// A hypothetical file.
fn hypothetical_file() -> Artifact {
    hypothetical_file_named("what_if.jar")
}

/// A hypothetical file of this name.
fn hypothetical_file_named(name: &str) -> Artifact {
    Artifact { name: name.to_owned(), url: String::new(), size: None, hash: Some(HYPOTHETICAL_HASH.to_owned()) }
}

/// Adds a build for `target` to each server software that may still publish it: the target is newer than every release
/// that was published at this time. `None` where the version exists or was skipped.
pub(super) fn with_future_versions(catalog: &Catalog, target: &Minecraft, at: Timestamp) -> Option<Catalog> {
    let is_published = |version: &&PaperVersion| version.builds.iter().any(|build| build.published <= at);
    let may_publish = |software: &Software| {
        let released =
            catalog.versions(*software).iter().filter(|version| version.minecraft.is_release()).filter(is_published);
        released.map(|version| &version.minecraft).max().is_some_and(|newest| target > newest)
    };
    let servers = Software::ALL.into_iter().filter(|software| software.is_minecraft());
    let publishing: Vec<Software> = servers.filter(may_publish).collect();
    let mut changed = (!publishing.is_empty()).then(|| catalog.clone())?;
    for software in publishing {
        let Some(versions) = changed.versions_mut(software) else { continue };
        versions.retain(|version| version.minecraft != *target);
        let build = Build { number: 1, published: at, channel: BuildChannel::Stable, file: hypothetical_file() };
        let (java, jvm_flags, builds) = (None, Vec::new(), vec![build]);
        versions.push(PaperVersion { minecraft: target.clone(), java, jvm_flags, unsupported: false, builds });
    }
    Some(changed)
}

/// `PLUGIN=VERSION` as the user types it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct NamedRelease {
    pub(super) plugin: String,
    pub(super) version: String,
}

/// Argument of `--why-not`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WhyNotArg {
    Minecraft(Minecraft),
    Release(NamedRelease),
}

impl FromStr for WhyNotArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains('=') {
            return text.parse().map(Self::Release);
        }
        text.parse().map(Self::Minecraft).map_err(|error: <Minecraft as FromStr>::Err| error.to_string())
    }
}

impl FromStr for NamedRelease {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((plugin, version)) if !plugin.is_empty() && !version.is_empty() && version.trim() == version => {
                Ok(Self { plugin: plugin.to_owned(), version: version.to_owned() })
            }
            _ => Err("write a plugin and a version, such as `griefprevention=17.0`".to_owned()),
        }
    }
}

/// Assumptions that differ from reality.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Assumptions {
    /// Plugins that were left out.
    pub(super) without: Vec<Excluded>,
    /// Releases that do not exist, or are not listed for every version.
    pub(super) assumed: Vec<SupposedRelease>,
}

/// A plugin that was left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Excluded {
    /// The display name.
    pub(super) plugin: String,
    /// The servers that request it.
    pub(super) servers: Vec<String>,
}

/// An assumed release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SupposedRelease {
    /// The display name.
    pub(super) plugin: String,
    /// The version.
    pub(super) version: String,
    /// The assumed time of publication. Absent for an existing release without a date.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) published: Option<Timestamp>,
    /// Whether the release exists, and only its list was assumed.
    pub(super) exists: bool,
}

/// An answer under assumptions, as JSON that cannot be mistaken for a real answer.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WhatIf<'a> {
    /// `whatIf`, in the field where other answers have their kind.
    answer: &'static str,
    assumptions: &'a Assumptions,
    then: &'a Explanation,
}

impl<'a> WhatIf<'a> {
    /// An answer with its assumptions.
    pub(super) fn new(assumptions: &'a Assumptions, then: &'a Explanation) -> Self {
        Self { answer: "whatIf", assumptions, then }
    }
}

impl Assumptions {
    /// Whether there are no assumptions.
    pub(super) fn is_empty(&self) -> bool {
        self.without.is_empty() && self.assumed.is_empty()
    }

    /// One line for each assumption.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for Excluded { plugin, servers } in &self.without {
            lines.push(format!("assumption: no Plugin requests {plugin} (on {})", list(servers, 4)));
        }
        for SupposedRelease { plugin, version, published, exists } in &self.assumed {
            let day = published.map(date);
            lines.push(match (exists, day) {
                (true, Some(day)) => {
                    format!("assumption: {plugin} {version} of {day} is listed for every Minecraft version")
                }
                (true, None) => format!("assumption: {plugin} {version} is listed for every Minecraft version"),
                (false, day) => {
                    let day = day.unwrap_or_default();
                    format!(
                        "assumption: {plugin} {version} is released on {day} and listed for every Minecraft version"
                    )
                }
            });
        }
        lines
    }
}

/// Removes all requests for this plugin, found by object, by project, or by display name.
pub(super) fn leave_out(catalog: &Catalog, requests: &mut [Request], name: &str) -> Result<Excluded, String> {
    let matches_name = |plugin_request: &PluginRequest| {
        plugin_names(catalog, plugin_request).iter().any(|known_name| known_name.eq_ignore_ascii_case(name))
    };
    let all_names = all_plugin_names(catalog, requests);
    let mut servers = Vec::new();
    let mut plugin = name.to_owned();
    for request in requests {
        if let Some(plugin_request) = request.plugins.iter().find(|plugin_request| matches_name(plugin_request)) {
            plugin = catalog
                .project(&plugin_request.key)
                .map_or_else(|| plugin_request.object.clone(), |project| project.name.clone());
            servers.push(request.server.clone());
        }
        request.plugins.retain(|plugin_request| !matches_name(plugin_request));
    }
    if servers.is_empty() {
        Err(unknown_plugin(&format!("--without {name}"), name, &all_names))
    } else {
        Ok(Excluded { plugin, servers })
    }
}

/// The same servers with this release of a plugin pinned, and the Plugin object with which each server of the query
/// requests it.
pub(super) fn pin(
    catalog: &Catalog,
    requests: &[Request],
    NamedRelease { plugin, version }: &NamedRelease,
    is_queried: impl Fn(&Request) -> bool,
) -> Result<(Vec<Request>, BTreeMap<String, String>), String> {
    let matches_name = |plugin_request: &&PluginRequest| {
        plugin_names(catalog, plugin_request).iter().any(|known_name| known_name.eq_ignore_ascii_case(plugin))
    };
    let (mut objects, mut pins) = (BTreeMap::new(), BTreeSet::new());
    for request in requests.iter().filter(|request| is_queried(request)) {
        for plugin_request in request.plugins.iter().filter(matches_name) {
            objects.entry(request.server.clone()).or_insert_with(|| plugin_request.object.clone());
            pins.insert((namespace(&request.server), plugin_request.object.as_str()));
        }
    }
    if objects.is_empty() {
        let flag = format!("--why-not {plugin}={version}");
        return Err(unknown_plugin(&flag, plugin, &all_plugin_names(catalog, requests)));
    }
    let mut pinned = requests.to_vec();
    // A pin applies to an object, and so to all servers that it selects.
    for request in &mut pinned {
        let Request { server, plugins, .. } = request;
        for plugin_request in plugins
            .iter_mut()
            .filter(|plugin_request| pins.contains(&(namespace(server), plugin_request.object.as_str())))
        {
            plugin_request.version = VersionRequest::Pin { version: version.clone() };
        }
    }
    Ok((pinned, objects))
}

/// Adds the release to the catalog, or adds all Minecraft versions to its list if it exists.
pub(super) fn release(
    catalog: &mut Catalog,
    requests: &[Request],
    assumed: &NamedRelease,
    at: Timestamp,
    target: Option<&Minecraft>,
) -> Result<SupposedRelease, String> {
    let NamedRelease { plugin, version } = assumed;
    let plugin_requests = requests.iter().flat_map(|request| &request.plugins);
    // Found by object name too. Users may also mean a dependency, which has no object.
    let object = plugin_requests
        .clone()
        .find(|plugin_request| plugin_request.object.eq_ignore_ascii_case(plugin))
        .map(|plugin_request| plugin_request.key.clone());
    let id = object.and_then(|key| catalog.project(&key)).map(|project| (project.key.source, project.id.clone()));
    let mut all_versions: Vec<Minecraft> = catalog.paper.iter().map(|paper| paper.minecraft.clone()).collect();
    all_versions.extend(target.filter(|target| !all_versions.contains(target)).cloned());
    all_versions.sort();
    let matches_name = |project: &Project| match &id {
        Some((source, id)) => project.key.source == *source && project.id == *id,
        None => project.name.eq_ignore_ascii_case(plugin) || project.key.project.eq_ignore_ascii_case(plugin),
    };
    let Some(index) = catalog.projects.iter().position(matches_name) else {
        return Err(unknown_plugin(&format!("--assume {plugin}"), plugin, &all_plugin_names(catalog, requests)));
    };
    let project = &mut catalog.projects[index];
    let mut existing = project.releases.iter_mut().filter(|release| release.version == *version).peekable();
    if let Some(published) = existing.peek().map(|release| release.published) {
        existing.for_each(|release| release.minecraft.clone_from(&all_versions));
        let (plugin, version) = (project.name.clone(), version.clone());
        return Ok(SupposedRelease { plugin, version, published, exists: true });
    }
    if project.key.file().is_some() {
        let fix = "it is a file by URL, which has no other releases: change its `source` in the manifest";
        return Err(format!("`--assume {plugin}={version}`: {fix}"));
    }
    // The assumed release has the dependencies of the newest one.
    let newest = project.releases.iter().max_by_key(|release| release.published);
    let release = Release {
        id: format!("supposed-{version}"),
        version: version.clone(),
        published: Some(at),
        channel: Channel::Release,
        minecraft: all_versions,
        loaders: newest.map_or_else(|| vec!["paper".to_owned()], |newest| newest.loaders.clone()),
        folia: newest.and_then(|newest| newest.folia),
        api_version: None,
        refused: None,
        java: None,
        declared: None,
        dependencies: newest.map(|newest| newest.dependencies.clone()).unwrap_or_default(),
        file: Some(
            newest
                .and_then(|newest| newest.file.as_ref())
                .map_or_else(hypothetical_file, |file| hypothetical_file_named(&file.name)),
        ),
        further: newest.map(further_files).unwrap_or_default(),
    };
    project.releases.push(release);
    project.releases.sort_by_key(|release| Reverse(release.published));
    Ok(SupposedRelease { plugin: project.name.clone(), version: version.clone(), published: Some(at), exists: false })
}

/// Hypothetical files with the names of a release's further files, because `spec.source.jars` selects by name.
fn further_files(release: &Release) -> Vec<FurtherJar> {
    release.further.iter().map(|jar| FurtherJar::unread(hypothetical_file_named(&jar.file.name))).collect()
}

/// All names of a plugin.
fn plugin_names(catalog: &Catalog, plugin_request: &PluginRequest) -> Vec<String> {
    let project = catalog.project(&plugin_request.key).map(|project| project.name.clone());
    [plugin_request.object.clone(), plugin_request.key.project.clone()].into_iter().chain(project).collect()
}

fn all_plugin_names(catalog: &Catalog, requests: &[Request]) -> BTreeSet<String> {
    let plugin_requests = requests.iter().flat_map(|request| &request.plugins);
    plugin_requests.map(|plugin_request| plugin_names(catalog, plugin_request).pop().unwrap_or_default()).collect()
}

/// `flag` is the text that the user typed, and `name` the plugin in it.
fn unknown_plugin(flag: &str, name: &str, all_names: &BTreeSet<String>) -> String {
    let all_names: Vec<&str> = all_names.iter().map(String::as_str).collect();
    let fix = match nearest(name, all_names.iter().copied()).next() {
        Some(suggestion) => format!("did you mean `{suggestion}`?"),
        None if all_names.is_empty() => "no server here has a plugin".to_owned(),
        None => format!("the plugins here are {}", or_list(all_names.iter().copied())),
    };
    format!("`{flag}` matches no plugin here: {fix}")
}
