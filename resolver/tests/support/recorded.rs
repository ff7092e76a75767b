//! Edge (reads). Reads the recorded responses of fixtures/recorded as a catalog without HTTP, and creates requests for
//! them. For tests only.
//!
//! The recorded lists of `ViaVersion` and `ViaBackwards` end on 20 January 2026. Later releases are derived from git
//! tags, so that 26.x has releases (`fixtures/recorded/README.md`, "Modrinth").

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use jiff::{SignedDuration, Timestamp};
use resolver::model::catalog::{
    Artifact, Build, BuildChannel, Catalog, Channel, Dependency, DependencyKind, PaperVersion, Project, ProjectKey,
    Release, Source,
};
use resolver::model::request::{Dependencies, ImagePolicy, PaperRequest, PluginRequest, Request, VersionRequest};
use resolver::model::software::Software;
use resolver::model::unmanaged_jar::UnmanagedPlugins;
use serde::Deserialize;

/// When the recorded lists were read.
pub(crate) const READ_AT: &str = "2026-01-21T18:00:00Z";

/// Projects whose recorded lists are continued with data derived from tags.
const DERIVED: [&str; 2] = ["viaversion", "viabackwards"];

#[derive(Deserialize)]
struct Version {
    id: String,
    java: u32,
    channels: Vec<(u32, BuildChannel)>,
}

#[derive(Deserialize)]
pub(crate) struct ModrinthVersion {
    id: String,
    version_number: String,
    version_type: String,
    date_published: Timestamp,
    game_versions: Vec<String>,
    loaders: Vec<String>,
    dependencies: Vec<ModrinthDependency>,
    files: Vec<ModrinthFile>,
}

#[derive(Deserialize)]
struct ModrinthDependency {
    version_id: Option<String>,
    project_id: Option<String>,
    dependency_type: String,
}

#[derive(Deserialize)]
struct ModrinthFile {
    hashes: BTreeMap<String, String>,
    url: String,
    filename: String,
    size: u64,
}

#[derive(Deserialize)]
struct ModrinthProject {
    id: String,
    slug: String,
    title: String,
}

pub(crate) fn read<T: serde::de::DeserializeOwned>(path: &str) -> T {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fixtures/recorded").join(path);
    let text = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn paper() -> Vec<PaperVersion> {
    let versions: Vec<Version> = read("fill/versions.json");
    let first_seen: BTreeMap<String, BTreeMap<u32, String>> = read("fill/first-seen.json");
    let mut paper: Vec<PaperVersion> = versions
        .iter()
        .filter_map(|version| {
            let builds = first_seen.get(&version.id)?.iter().map(|(&number, day)| Build {
                number,
                published: format!("{day}T12:00:00Z").parse().unwrap(),
                channel: version.channels.iter().rfind(|(from, _)| *from <= number).unwrap().1,
                file: Artifact {
                    name: format!("paper-{}-{number}.jar", version.id),
                    url: format!("https://files.example/paper-{}-{number}.jar", version.id),
                    size: None,
                    hash: Some(format!("sha256:{number:064x}")),
                },
            });
            Some(PaperVersion {
                minecraft: version.id.parse().unwrap(),
                java: Some(version.java),
                jvm_flags: Vec::new(),
                unsupported: false,
                builds: builds.collect(),
            })
        })
        .collect();
    paper.sort_by(|a, b| a.minecraft.cmp(&b.minecraft));
    paper
}

/// An invented checksum for a release that is known only by its tag and has no file. Each id has another checksum.
pub(crate) fn invented_checksum(id: &str) -> String {
    let digits = id.bytes().fold(String::new(), |mut digits, byte| {
        write!(digits, "{byte:02x}").unwrap();
        digits
    });
    format!("sha512:{digits:0>128}")
}

pub(crate) fn release(version: ModrinthVersion) -> Release {
    let file = version.files.into_iter().next();
    let invented = invented_checksum(&version.id);
    Release {
        id: version.id,
        version: version.version_number,
        published: Some(version.date_published),
        api_version: None,
        refused: None,
        java: None,
        folia: None,
        declared: None,
        channel: match version.version_type.as_str() {
            "release" => Channel::Release,
            "beta" => Channel::Beta,
            _ => Channel::Alpha,
        },
        minecraft: version.game_versions.iter().map(|version| version.parse().unwrap()).collect(),
        loaders: version.loaders,
        dependencies: version
            .dependencies
            .into_iter()
            .map(|dependency| Dependency {
                project_id: dependency.project_id,
                name: None,
                version_id: dependency.version_id,
                kind: match dependency.dependency_type.as_str() {
                    "required" => DependencyKind::Required,
                    "incompatible" => DependencyKind::Incompatible,
                    "embedded" => DependencyKind::Embedded,
                    _ => DependencyKind::Optional,
                },
            })
            .collect(),
        file: file.map(|file| Artifact {
            name: file.filename,
            url: file.url,
            size: Some(file.size),
            hash: Some(file.hashes.get("sha512").map_or(invented, |hash| format!("sha512:{hash}"))),
        }),
        further: Vec::new(),
    }
}

fn project(slug: &str) -> Project {
    let about: ModrinthProject = read(&format!("modrinth/{slug}-project.json"));
    let mut versions: Vec<ModrinthVersion> = read(&format!("modrinth/{slug}.json"));
    if DERIVED.contains(&slug) {
        versions.extend(read::<Vec<ModrinthVersion>>(&format!("modrinth/{slug}-derived.json")));
    }
    let mut releases: Vec<Release> = versions.into_iter().map(release).collect();
    releases.sort_by_key(|release| std::cmp::Reverse(release.published));
    Project {
        key: ProjectKey { source: Source::Modrinth, project: about.slug },
        id: about.id,
        name: about.title,
        read_at: READ_AT.parse().unwrap(),
        releases,
    }
}

/// 66 Paper versions, and ViaVersion, ViaBackwards, DiscordSRV and GriefPrevention.
pub(crate) fn catalog() -> Catalog {
    Catalog {
        paper: paper(),
        projects: ["viaversion", "viabackwards", "discordsrv", "griefprevention"].map(project).into(),
        // ViaFabric, which was not recorded: a mod for another loader that two old releases name.
        unread: BTreeMap::from([("modrinth/YlKdE5VK".to_owned(), "not recorded".to_owned())]),
        ..Catalog::empty(READ_AT.parse().unwrap())
    }
}

/// A request for the newest release of a Modrinth plugin.
pub(crate) fn plugin_request(slug: &str) -> PluginRequest {
    PluginRequest {
        object: slug.to_owned(),
        key: ProjectKey { source: Source::Modrinth, project: slug.to_owned() },
        jars: Vec::new(),
        version: VersionRequest::Auto,
        delay: SignedDuration::ZERO,
        channel: Channel::Release,
        compatibility: None,
        requires: Vec::new(),
        allow_downgrade: false,
        hold: None,
        delay_together: Vec::new(),
        selector: None,
    }
}

/// A server with these plugins, without any delay.
pub(crate) fn request(paper: PaperRequest, plugins: &[&str]) -> Request {
    Request {
        server: "games/lobby".to_owned(),
        software: Software::Paper,
        paper,
        delay: SignedDuration::ZERO,
        channel: BuildChannel::Stable,
        floor: None,
        running: None,
        plugins: plugins.iter().map(|slug| plugin_request(slug)).collect(),
        dependencies: Dependencies::Install,
        image: None,
        image_is_given: false,
        image_policy: ImagePolicy::Follow,
        unmanaged: Vec::new(),
        unmanaged_plugins: UnmanagedPlugins::Hold,
        checked_at: None,
        hotfix_siblings: resolver::model::request::HotfixSiblings::default(),
        unlisted: resolver::model::request::Unlisted::default(),
        facts: resolver::model::compatibility_facts::CompatibilityFacts::default(),
    }
}
