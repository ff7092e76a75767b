//! Edge (reads). Reads further plugins of fixtures/recorded.
//!
//! Some have lists of Minecraft versions (recorded or derived from tags, on Modrinth and on Hangar). Three are known by
//! their git tags only, without a recorded page: they have a date, a version and the content of their `plugin.yml`, but
//! no list.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use resolver::model::catalog::{
    Artifact, BuildChannel, Catalog, Channel, Dependency, DependencyKind, Project, ProjectKey, Release, Source,
};
use resolver::model::request::PluginRequest;
use serde::Deserialize;

use super::recorded::{self, ModrinthVersion, READ_AT, invented_checksum, read};

/// Known by tags: the slug, the name in `plugin.yml`, the repository.
const TAGGED: [(&str, &str, &str); 3] = [
    ("worldedit", "WorldEdit", "EngineHub/WorldEdit"),
    ("worldguard", "WorldGuard", "EngineHub/WorldGuard"),
    ("essentialsx", "Essentials", "EssentialsX/Essentials"),
];

/// On Hangar: the slug, which is also the name, and the file.
const HANGAR: [(&str, &str); 2] =
    [("BlueMap", "hangar/bluemap-derived.json"), ("Maintenance", "hangar/maintenance.json")];

/// A version of Hangar, reduced to Paper.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HangarVersion {
    name: String,
    created_at: Timestamp,
    channel: HangarChannel,
    platform_dependencies: BTreeMap<String, Vec<String>>,
}

/// A page as it was recorded, or the versions alone.
#[derive(Deserialize)]
#[serde(untagged)]
enum HangarList {
    Page { result: Vec<HangarVersion> },
    Versions(Vec<HangarVersion>),
}

#[derive(Deserialize)]
struct HangarChannel {
    name: String,
}

/// A `plugin.yml` at a tag.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Row {
    repo: String,
    #[serde(rename = "ref")]
    tag: String,
    date: String,
    name: String,
    api_version: Option<String>,
    #[serde(default)]
    depend: Vec<String>,
}

fn project(source: Source, slug: &str, name: &str, mut releases: Vec<Release>) -> Project {
    releases.sort_by_key(|release| std::cmp::Reverse(release.published));
    Project {
        key: ProjectKey { source, project: slug.to_owned() },
        id: slug.to_owned(),
        name: name.to_owned(),
        read_at: READ_AT.parse().unwrap(),
        releases,
    }
}

fn plain_release(slug: &str, version: &str, published: Timestamp) -> Release {
    let id = format!("{slug}-{version}");
    Release {
        version: version.to_owned(),
        published: Some(published),
        channel: Channel::Release,
        minecraft: Vec::new(),
        loaders: vec!["paper".to_owned()],
        folia: None,
        api_version: None,
        refused: None,
        java: None,
        declared: None,
        dependencies: Vec::new(),
        file: Some(Artifact {
            name: format!("{id}.jar"),
            url: format!("https://files.example/{id}.jar"),
            size: None,
            hash: Some(invented_checksum(&id)),
        }),
        further: Vec::new(),
        id,
    }
}

fn modrinth_project(slug: &str, name: &str, files: &[&str]) -> Project {
    let versions = files.iter().flat_map(|file| read::<Vec<ModrinthVersion>>(file));
    project(Source::Modrinth, slug, name, versions.map(recorded::release).collect())
}

fn hangar_project(slug: &str, file: &str) -> Project {
    let (HangarList::Page { result: versions } | HangarList::Versions(versions)) = read(file);
    let releases = versions.into_iter().map(|version| {
        let list = version.platform_dependencies.get("PAPER").into_iter().flatten();
        let minecraft = list.map(|text| text.parse().unwrap()).collect();
        let channel = if version.channel.name == "Release" { Channel::Release } else { Channel::Beta };
        Release { minecraft, channel, ..plain_release(slug, &version.name, version.created_at) }
    });
    project(Source::Hangar, slug, slug, releases.collect())
}

/// A tag with two such files is one release. This happened once, when the file was moved.
fn tagged_project(slug: &str, name: &str, repo: &str, tags: &[Row]) -> Project {
    let mut seen_tags = BTreeSet::new();
    let matching_tags = tags
        .iter()
        .filter(|tag| tag.repo == repo && tag.name == name && tag.tag.starts_with(|c: char| c.is_ascii_digit()));
    let releases = matching_tags.filter(|tag| seen_tags.insert(&tag.tag)).map(|tag| {
        let needs = |other: &String| {
            let (slug, ..) = TAGGED.iter().find(|(_, name, _)| name == other)?;
            let (project_id, name) = (Some((*slug).to_owned()), Some(other.clone()));
            Some(Dependency { project_id, name, version_id: None, kind: DependencyKind::Required })
        };
        Release {
            channel: if tag.tag.contains('-') { Channel::Beta } else { Channel::Release },
            api_version: tag.api_version.as_deref().map(Into::into),
            dependencies: tag.depend.iter().filter_map(needs).collect(),
            ..plain_release(slug, &tag.tag, format!("{}T12:00:00Z", tag.date).parse().unwrap())
        }
    });
    project(Source::Modrinth, slug, name, releases.collect())
}

/// All recorded plugins that have releases for Paper.
pub(crate) fn add_all(catalog: Catalog) -> Catalog {
    let tags: Vec<Row> = read("plugins/facts.json");
    let multiverse = ["modrinth/multiverse-core.json", "modrinth/multiverse-core-derived.json"];
    let mut projects = catalog.projects;
    projects.push(modrinth_project("multiverse-core", "Multiverse-Core", &multiverse));
    projects.push(modrinth_project("clickvillagers", "ClickVillagers", &["modrinth/clickvillagers.json"]));
    projects.extend(HANGAR.map(|(slug, file)| hangar_project(slug, file)));
    projects.extend(TAGGED.map(|(slug, name, repo)| tagged_project(slug, name, repo, &tags)));
    Catalog { projects, ..catalog }
}

/// The catalog as of a past time: without later releases, and without builds that were replaced by then and are never
/// chosen.
pub(crate) fn as_of(catalog: &Catalog, now: Timestamp) -> Catalog {
    let mut catalog = catalog.clone();
    for paper in &mut catalog.paper {
        paper.builds.retain(|build| build.published <= now);
        let newest =
            |channel| paper.builds.iter().filter(|build| build.channel == channel).map(|build| build.number).max();
        let stable = newest(BuildChannel::Stable);
        let last = paper.builds.iter().map(|build| build.number).max();
        paper.builds.retain(|build| [stable, last].contains(&Some(build.number)));
    }
    catalog.paper.retain(|paper| !paper.builds.is_empty());
    for project in &mut catalog.projects {
        project.releases.retain(|release| release.published <= Some(now));
    }
    catalog
}

/// A request for the newest release of a plugin, by its slug at the recorded source.
pub(crate) fn plugin_request(slug: &str) -> PluginRequest {
    let mut plugin_request = recorded::plugin_request(slug);
    if HANGAR.iter().any(|(hangar, _)| *hangar == slug) {
        plugin_request.key.source = Source::Hangar;
        plugin_request.object = slug.to_lowercase();
    }
    plugin_request
}
