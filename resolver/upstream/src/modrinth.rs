//! Edge (reads). Modrinth v2: reads a project and all its versions.

use jiff::Timestamp;
use serde_json::Value;

use super::disk_cache::StoredPage;
use super::http::{Existence, Http, parse};
use super::page_cache::Fetched;
use super::project_page::{Name, ProjectListing, format_hash};
use super::release_files::{ListedFile, pick_jars};
use super::rows::read_rows;
use super::{FetchError, Upstream, Upstreams};
use resolver::model::catalog::{Artifact, Channel, Dependency, DependencyKind, Release, Source};

pub(super) fn name_url(upstreams: &Upstreams, name: &str) -> reqwest::Url {
    upstreams.url(Upstream::Modrinth, &["project", name], &[])
}

/// All versions in one response. Without a loader filter: Modrinth silently ignores a filter that it cannot parse, and
/// one version may be plugin and mod at once. Without the change logs the response is a third of the size.
pub(super) fn list_url(upstreams: &Upstreams, id: &str) -> reqwest::Url {
    upstreams.url(Upstream::Modrinth, &["project", id, "version"], &[("include_changelog", "false")])
}

/// Resolves a slug or id to a project.
pub(super) async fn fetch_name(
    http: &Http,
    url: &reqwest::Url,
    stored: Option<StoredPage<Name>>,
    now: Timestamp,
) -> Result<Fetched<Name>, FetchError> {
    http.refresh(Upstream::Modrinth, url, Existence::Unknown, stored, now, |body| parse_name(url, body)).await
}

/// All releases of a project.
pub(super) async fn fetch_list(
    http: &Http,
    url: &reqwest::Url,
    name: &Name,
    stored: Option<StoredPage<ProjectListing>>,
    now: Timestamp,
) -> Result<Fetched<ProjectListing>, FetchError> {
    let read = |body: &[u8]| parse_listing(url, body, name, now);
    http.refresh(Upstream::Modrinth, url, Existence::Known, stored, now, read).await
}

/// The project in a response.
pub(super) fn parse_name(url: &reqwest::Url, body: &[u8]) -> Result<Name, FetchError> {
    let wire::ModrinthProject { id, slug, title } = parse(Upstream::Modrinth, url, body)?;
    let slug = slug.filter(|slug| !slug.is_empty()).unwrap_or_else(|| id.clone());
    Ok(Name { id, slug, title })
}

/// The releases in a response.
pub(super) fn parse_listing(
    url: &reqwest::Url,
    body: &[u8],
    name: &Name,
    now: Timestamp,
) -> Result<ProjectListing, FetchError> {
    let rows: Vec<Value> = parse(Upstream::Modrinth, url, body)?;
    let (versions, unreadable) = read_rows(Upstream::Modrinth, url, &rows, &["version_number", "id"])?;
    let releases = versions.into_iter().map(|version| read_version(version, name)).collect();
    Ok(ProjectListing { project: name.project(Source::Modrinth, releases, now), walk: None, unreadable })
}

fn read_version(version: wire::ModrinthVersion, project: &Name) -> Release {
    let mut minecraft: Vec<_> = version.game_versions.iter().filter_map(|text| text.parse().ok()).collect();
    minecraft.sort();
    minecraft.dedup();
    let mut loaders: Vec<_> = version.loaders.iter().map(|loader| loader.to_ascii_lowercase()).collect();
    loaders.sort();
    loaders.dedup();
    let mut dependencies: Vec<_> = version.dependencies.into_iter().filter_map(read_dependency).collect();
    dependencies.sort_by(|a, b| {
        (&a.project_id, &a.name, &a.version_id, a.kind).cmp(&(&b.project_id, &b.name, &b.version_id, b.kind))
    });
    dependencies.dedup();
    let (file, further) = pick_jars(version.files.into_iter().map(read_file).collect(), project);
    Release {
        id: version.id,
        version: version.number,
        published: Some(version.date_published),
        api_version: None,
        refused: None,
        java: None,
        folia: None,
        declared: None,
        channel: match version.kind.as_str() {
            "release" => Channel::Release,
            "beta" => Channel::Beta,
            // `alpha`, and every unknown type.
            _ => Channel::Alpha,
        },
        minecraft,
        loaders,
        dependencies,
        file,
        further,
    }
}

fn read_file(file: wire::ModrinthFile) -> ListedFile {
    ListedFile {
        primary: file.primary,
        attached: matches!(file.kind.as_deref(), Some("sources-jar" | "dev-jar" | "javadoc-jar" | "signature")),
        file: Artifact {
            hash: format_hash("sha512", 64, file.hashes.sha512.as_deref()),
            name: file.filename,
            url: file.url,
            size: file.size,
        },
    }
}

/// `None` for an unknown kind, because its meaning is unknown.
fn read_dependency(dependency: wire::ModrinthDependency) -> Option<Dependency> {
    let kind = match dependency.kind.as_str() {
        "required" => DependencyKind::Required,
        "optional" => DependencyKind::Optional,
        "incompatible" => DependencyKind::Incompatible,
        "embedded" => DependencyKind::Embedded,
        _ => return None,
    };
    Some(Dependency {
        project_id: dependency.project_id,
        // The only field of a dependency that is not on Modrinth.
        name: dependency.file_name,
        version_id: dependency.version_id,
        kind,
    })
}

/// Response format of Modrinth, reduced to the fields that are used.
mod wire {
    use jiff::Timestamp;
    use serde::Deserialize;

    #[derive(Deserialize)]
    pub(super) struct ModrinthProject {
        pub(super) id: String,
        pub(super) slug: Option<String>,
        pub(super) title: String,
    }

    #[derive(Deserialize)]
    pub(super) struct ModrinthVersion {
        pub(super) id: String,
        #[serde(rename = "version_number")]
        pub(super) number: String,
        #[serde(rename = "version_type")]
        pub(super) kind: String,
        pub(super) date_published: Timestamp,
        #[serde(default)]
        pub(super) game_versions: Vec<String>,
        #[serde(default)]
        pub(super) loaders: Vec<String>,
        #[serde(default)]
        pub(super) dependencies: Vec<ModrinthDependency>,
        #[serde(default)]
        pub(super) files: Vec<ModrinthFile>,
    }

    #[derive(Deserialize)]
    pub(super) struct ModrinthDependency {
        pub(super) project_id: Option<String>,
        pub(super) version_id: Option<String>,
        pub(super) file_name: Option<String>,
        #[serde(rename = "dependency_type")]
        pub(super) kind: String,
    }

    #[derive(Deserialize)]
    pub(super) struct ModrinthFile {
        pub(super) url: String,
        pub(super) filename: String,
        #[serde(default)]
        pub(super) primary: bool,
        pub(super) size: Option<u64>,
        /// Purpose of the file. Most files have null.
        #[serde(rename = "file_type")]
        pub(super) kind: Option<String>,
        #[serde(default)]
        pub(super) hashes: ModrinthHashes,
    }

    #[derive(Deserialize, Default)]
    pub(super) struct ModrinthHashes {
        pub(super) sha512: Option<String>,
    }
}
