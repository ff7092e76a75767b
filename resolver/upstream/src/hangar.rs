//! Edge (reads). Hangar v1: reads a project and its versions, 25 at a time.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt, TryStreamExt, stream};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::disk_cache::StoredPage;
use super::http::{Existence, Http, HttpResponse, parse};
use super::page_cache::Fetched;
use super::project_page::{Name, ProjectListing, format_hash};
use super::rows::{UnreadableRow, read_row};
use super::{FetchError, Upstream, Upstreams};
use resolver::model::catalog::{Artifact, Channel, Dependency, DependencyKind, Release, Source};

/// Hangar's largest page. Hangar silently reduces a larger one to it.
const PAGE_SIZE: usize = 25;

/// Maximum number of pages in one scan, also where Hangar's pages are smaller than requested. At Hangar's rate limit
/// this takes a minute.
const MAX_PAGES: usize = MAX_VERSIONS / PAGE_SIZE;

/// Pages that a scan requests at the same time.
const CONCURRENT_PAGES: usize = 3;

/// Maximum number of versions in one scan. Hangar itself ends its lists at 5,000.
const MAX_VERSIONS: usize = 5_000;

/// State of the last scan of all pages. With it, the first page is enough for later updates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PageScan {
    /// When all pages were read. Authors edit lists of Minecraft versions and channels later, also of old releases.
    at: Timestamp,
    /// Number of versions on all platforms that Hangar reported in its latest response.
    count: usize,
    /// Ids of the versions without a download for a supported software, and of unreadable ones.
    others: BTreeSet<String>,
    /// The unreadable versions, by id.
    unreadable: BTreeMap<String, UnreadableRow>,
}

pub(super) fn name_url(upstreams: &Upstreams, name: &str) -> reqwest::Url {
    upstreams.url(Upstream::Hangar, &["projects", name], &[])
}

pub(super) fn list_url(upstreams: &Upstreams, id: &str) -> reqwest::Url {
    upstreams.url(Upstream::Hangar, &["projects", id, "versions"], &[])
}

/// Resolves a slug or id to a project.
pub(super) async fn fetch_name(
    http: &Http,
    url: &reqwest::Url,
    stored: Option<StoredPage<Name>>,
    now: Timestamp,
) -> Result<Fetched<Name>, FetchError> {
    http.refresh(Upstream::Hangar, url, Existence::Unknown, stored, now, |body| parse_name(url, body)).await
}

/// The project in a response.
pub(super) fn parse_name(url: &reqwest::Url, body: &[u8]) -> Result<Name, FetchError> {
    let project: wire::HangarProject = parse(Upstream::Hangar, url, body)?;
    Ok(Name { id: project.id.to_string(), slug: project.namespace.slug, title: project.name })
}

/// All releases of a project. Reads the first page and merges it into the cached list, or reads all pages when that is
/// not enough or `scan_interval` has passed.
pub(super) async fn fetch_list(
    http: &Http,
    url: &reqwest::Url,
    name: &Name,
    stored: Option<StoredPage<ProjectListing>>,
    scan_interval: SignedDuration,
    now: Timestamp,
) -> Result<Fetched<ProjectListing>, FetchError> {
    let first = fetch_page(http, url, 0, now).await?;
    let cached = stored.and_then(|stored| {
        let scan = stored.body.walk.clone()?;
        (now.duration_since(scan.at) < scan_interval).then(|| (stored.body.project.releases.clone(), scan))
    });
    let merged = cached.and_then(|(releases, scan)| merge(&first, releases, scan));
    let (releases, scan) = match merged {
        Some(merged) => merged,
        None => scan(http, url, first, now).await?,
    };
    if releases.is_empty() && !scan.unreadable.is_empty() {
        let rows = scan.unreadable.len();
        return Err(FetchError::NoUsableEntry { upstream: Upstream::Hangar, url: url.to_string(), rows });
    }
    Ok(Fetched::New { body: build_listing(name, releases, scan, now), etag: None })
}

/// The listing of these releases, sorted.
pub(super) fn build_listing(name: &Name, releases: Vec<Release>, scan: PageScan, now: Timestamp) -> ProjectListing {
    let unreadable = scan.unreadable.values().cloned().collect();
    ProjectListing { project: name.project(Source::Hangar, releases, now), walk: Some(scan), unreadable }
}

/// Merges the first page into the cached list. `None` means that more may have changed than the page shows: a version
/// was withdrawn, or so many are new that the page contains no known one.
pub(super) fn merge(
    first: &HangarPage,
    mut releases: Vec<Release>,
    mut scan: PageScan,
) -> Option<(Vec<Release>, PageScan)> {
    let known_ids: BTreeSet<&str> =
        releases.iter().map(version_of).chain(scan.others.iter().map(String::as_str)).collect();
    let new = first.ids().filter(|id| !known_ids.contains(id)).count();
    let reaches = new < first.rows.len() || first.rows.is_empty() || first.is_last();
    if !reaches || first.count.checked_sub(new) != Some(scan.count) {
        return None;
    }
    let shown: BTreeSet<&str> = first.ids().collect();
    releases.retain(|release| !shown.contains(version_of(release)));
    scan.others.retain(|id| !shown.contains(id.as_str()));
    scan.unreadable.retain(|id, _| !shown.contains(id.as_str()));
    scan.count = first.count;
    for row in &first.rows {
        row.clone().add_to(&mut releases, &mut scan);
    }
    Some((releases, scan))
}

/// Reads all pages, and the first one again at the end, because a version that is published meanwhile shifts all
/// others.
async fn scan(
    http: &Http,
    url: &reqwest::Url,
    first: HangarPage,
    now: Timestamp,
) -> Result<(Vec<Release>, PageScan), FetchError> {
    let mut pages = Vec::new();
    if !first.is_last() {
        pages = stream::iter(first.further_offsets())
            .map(|offset| fetch_page(http, url, offset, now))
            .buffered(CONCURRENT_PAGES)
            .try_collect::<Vec<_>>()
            .await?;
        pages.insert(0, fetch_page(http, url, 0, now).await?);
    }
    pages.push(first);
    Ok(join_pages(pages, now))
}

/// Joins the pages, newest first, to one list.
pub(super) fn join_pages(pages: Vec<HangarPage>, now: Timestamp) -> (Vec<Release>, PageScan) {
    let count = pages[0].count;
    let (mut releases, mut seen) = (Vec::new(), BTreeSet::new());
    let mut scan = PageScan { at: now, count, others: BTreeSet::new(), unreadable: BTreeMap::new() };
    for row in pages.into_iter().flat_map(|page| page.rows) {
        if seen.insert(row.id.clone()) {
            row.add_to(&mut releases, &mut scan);
        }
    }
    (releases, scan)
}

/// One parsed page.
pub(super) struct HangarPage {
    rows: Vec<HangarRow>,
    offset: usize,
    /// The limit that Hangar applied.
    limit: usize,
    count: usize,
}

/// One version.
#[derive(Debug, Clone)]
struct HangarRow {
    id: String,
    /// One release per supported platform. Empty when the version is for other platforms only or is unreadable.
    releases: Vec<Release>,
    unreadable: Option<UnreadableRow>,
}

impl HangarRow {
    fn add_to(self, releases: &mut Vec<Release>, scan: &mut PageScan) {
        let Self { id, releases: of_row, unreadable } = self;
        if let Some(unreadable) = unreadable {
            scan.unreadable.insert(id.clone(), unreadable);
        }
        if of_row.is_empty() {
            scan.others.insert(id);
        }
        releases.extend(of_row);
    }
}

/// Suffix of the id of a version's release for Velocity, which has its own file, list and dependencies. Ids and names
/// of Hangar contain no `@`.
const VELOCITY_SUFFIX: &str = "@velocity";

/// The id of the version that a release belongs to.
fn version_of(release: &Release) -> &str {
    release.id.strip_suffix(VELOCITY_SUFFIX).unwrap_or(&release.id)
}

impl HangarPage {
    fn ids(&self) -> impl Iterator<Item = &str> {
        self.rows.iter().map(|row| row.id.as_str())
    }

    /// Offsets of the pages after the first one.
    pub(super) fn further_offsets(&self) -> impl Iterator<Item = usize> + use<> {
        (self.limit..self.count.min(MAX_VERSIONS)).step_by(self.limit).take(MAX_PAGES - 1)
    }

    /// Whether this is the last page. Decided by the count and not by the page's length, because hidden channels make
    /// pages short.
    fn is_last(&self) -> bool {
        self.offset + self.limit >= self.count
    }
}

async fn fetch_page(http: &Http, url: &reqwest::Url, offset: usize, now: Timestamp) -> Result<HangarPage, FetchError> {
    let mut url = url.clone();
    url.query_pairs_mut().append_pair("limit", &PAGE_SIZE.to_string()).append_pair("offset", &offset.to_string());
    // Without an ETag: Hangar sends none.
    let HttpResponse::New { body, etag: _ } = http.get(Upstream::Hangar, &url, Existence::Known, None, now).await?
    else {
        unreachable!("the request was not conditional");
    };
    parse_page(&url, &body, offset)
}

/// Parses a page.
pub(super) fn parse_page(url: &reqwest::Url, body: &[u8], offset: usize) -> Result<HangarPage, FetchError> {
    let answer: wire::HangarVersions = parse(Upstream::Hangar, url, body)?;
    let rows = answer.result.iter().enumerate().map(|(at, row)| read_hangar_row(row, offset + at)).collect();
    let wire::Pagination { limit, count } = answer.pagination;
    Ok(HangarPage { rows, offset, limit: limit.clamp(1, PAGE_SIZE), count })
}

/// Reads the row at this position of the whole list.
fn read_hangar_row(row: &Value, at: usize) -> HangarRow {
    match read_row(row, &["name", "id"]) {
        Ok(version) => read_version(version),
        Err(unreadable) => {
            let id = row["id"].as_u64().map(|id| id.to_string());
            let id = id.or_else(|| row["name"].as_str().map(str::to_owned)).unwrap_or_else(|| format!("#{at}"));
            HangarRow { id, releases: Vec::new(), unreadable: Some(unreadable) }
        }
    }
}

fn read_version(mut version: wire::HangarVersion) -> HangarRow {
    // Responses before 2025 had no id. The name is unique within the project.
    let id = version.id.map_or_else(|| version.name.clone(), |id| id.to_string());
    let mut loaders: Vec<_> = version.downloads.keys().map(|platform| platform.to_ascii_lowercase()).collect();
    // The Velocity download becomes a separate release.
    loaders.retain(|platform| !platform.eq_ignore_ascii_case(VELOCITY));
    let paper = read_platform(&mut version, PAPER, id.clone(), loaders);
    let velocity = read_platform(&mut version, VELOCITY, format!("{id}{VELOCITY_SUFFIX}"), vec!["velocity".to_owned()]);
    HangarRow { id, releases: paper.into_iter().chain(velocity).collect(), unreadable: None }
}

/// The release of a version for one platform, if it has one.
fn read_platform(
    version: &mut wire::HangarVersion,
    platform: &str,
    id: String,
    loaders: Vec<String>,
) -> Option<Release> {
    let download = version.downloads.remove(platform)?;
    let list = version.platform_dependencies.remove(platform).unwrap_or_default();
    let mut minecraft: Vec<_> = list.iter().filter_map(|text| text.parse().ok()).collect();
    minecraft.sort();
    minecraft.dedup();
    let needs = version.plugin_dependencies.remove(platform).unwrap_or_default();
    let mut dependencies: Vec<_> = needs.into_iter().map(read_dependency).collect();
    dependencies.sort_by(|a, b| (&a.project_id, &a.name, a.kind).cmp(&(&b.project_id, &b.name, b.kind)));
    dependencies.dedup();
    Some(Release {
        id,
        version: version.name.clone(),
        published: Some(version.created_at),
        api_version: None,
        refused: None,
        java: None,
        folia: None,
        declared: None,
        channel: read_channel(&version.channel),
        minecraft,
        loaders,
        dependencies,
        file: read_file(download),
        // A version has one download for each platform.
        further: Vec::new(),
    })
}

const PAPER: &str = "PAPER";
const VELOCITY: &str = "VELOCITY";

/// Channel names are free text of the authors. Only the flag is machine-readable.
fn read_channel(channel: &wire::HangarChannel) -> Channel {
    match channel.name.to_ascii_lowercase().as_str() {
        "alpha" => Channel::Alpha,
        "beta" | "snapshot" => Channel::Beta,
        _ if channel.flags.iter().any(|flag| flag == "UNSTABLE") => Channel::Beta,
        _ => Channel::Release,
    }
}

/// `None` when the author hosts the file elsewhere: hash and size are unknown, and the link may lead to something other
/// than a JAR.
fn read_file(download: wire::HangarDownload) -> Option<Artifact> {
    let (file, url) = (download.file_info?, download.download_url?);
    let checked = format_hash("sha256", 32, file.sha256_hash.as_deref());
    Some(Artifact { name: file.name, url, size: file.size_bytes, hash: checked })
}

fn read_dependency(dependency: wire::HangarDependency) -> Dependency {
    Dependency {
        project_id: dependency.project_id.map(|id| id.to_string()),
        name: Some(dependency.name),
        version_id: None,
        kind: if dependency.required { DependencyKind::Required } else { DependencyKind::Optional },
    }
}

/// Response format of Hangar, reduced to the fields that are used. `platformDependenciesFormatted` has had two shapes
/// and is ignored.
mod wire {
    use std::collections::BTreeMap;

    use jiff::Timestamp;
    use serde::Deserialize;
    use serde_json::Value;

    #[derive(Deserialize)]
    pub(super) struct HangarProject {
        pub(super) id: u64,
        pub(super) name: String,
        pub(super) namespace: Namespace,
    }

    #[derive(Deserialize)]
    pub(super) struct Namespace {
        pub(super) slug: String,
    }

    #[derive(Deserialize)]
    pub(super) struct HangarVersions {
        pub(super) pagination: Pagination,
        pub(super) result: Vec<Value>,
    }

    #[derive(Deserialize)]
    pub(super) struct Pagination {
        pub(super) limit: usize,
        pub(super) count: usize,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    pub(super) struct HangarVersion {
        pub(super) id: Option<u64>,
        pub(super) name: String,
        pub(super) created_at: Timestamp,
        #[serde(default)]
        pub(super) channel: HangarChannel,
        #[serde(default)]
        pub(super) downloads: BTreeMap<String, HangarDownload>,
        #[serde(default)]
        pub(super) plugin_dependencies: BTreeMap<String, Vec<HangarDependency>>,
        #[serde(default)]
        pub(super) platform_dependencies: BTreeMap<String, Vec<String>>,
    }

    #[derive(Deserialize, Default)]
    pub(super) struct HangarChannel {
        #[serde(default)]
        pub(super) name: String,
        #[serde(default)]
        pub(super) flags: Vec<String>,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    pub(super) struct HangarDownload {
        pub(super) file_info: Option<FileInfo>,
        pub(super) download_url: Option<String>,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    pub(super) struct FileInfo {
        pub(super) name: String,
        pub(super) size_bytes: Option<u64>,
        pub(super) sha256_hash: Option<String>,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    pub(super) struct HangarDependency {
        pub(super) name: String,
        pub(super) project_id: Option<u64>,
        #[serde(default)]
        pub(super) required: bool,
    }
}
