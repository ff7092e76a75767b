//! Edge (reads). Reads the whole catalog: Paper, the requested projects with their dependencies, and the image's tags.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::{StreamExt, stream};
use jiff::{SignedDuration, Timestamp};

use super::catalog_builder::{CatalogBuild, FoundProject, Images, Paper, ReadFailure};
use super::disk_cache::{DiskStore, PageOrigin, StoredPage};
use super::docker_hub::{self, DockerHubRepository};
use super::fill::{self, FillBuilds, Listed};
use super::http::{Existence, Http, RetryPolicy};
use super::page_cache::{CachedPage, Pages, ReadAt, Reads, is_younger};
use super::project_page::{Name, ProjectListing, is_valid_name};
use super::url::Files;
use super::{FetchError, StartError, Upstream, Upstreams, hangar, modrinth, purpur};
use resolver::model::catalog::{Catalog, ImageTag, Owner, PaperVersion, ProjectKey, Source};
use resolver::model::software::{PaperName, Software};
use resolver::model::unmanaged_jar::UnmanagedJar;
use resolver::model::version::Minecraft;
use verify_builds::VerifiedBuild;

mod hash_lookup;
mod verify_builds;

/// Pages that are read at the same time.
const MAX_CONCURRENT: usize = 8;

/// The builds of this many Paper versions, newest first, are read as often as the list of versions, because their
/// builds change channel.
const FRESH_VERSIONS: usize = 3;

/// Limit of the rounds in which the catalog names further projects. Real chains of dependencies have two or three
/// links.
const MAX_ROUNDS: usize = 16;

/// How long cached data counts as fresh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ttl {
    /// Paper's versions and the builds of the newest few: as long as Fill itself allows them to be cached.
    pub paper: SignedDuration,
    /// Builds of older versions. The list of versions has their numbers already, so only a channel can change.
    pub old_builds: SignedDuration,
    /// A project's releases.
    pub releases: SignedDuration,
    /// The project that a slug means, and all pages of a Hangar project instead of the first.
    pub project: SignedDuration,
    /// The image's tags.
    pub images: SignedDuration,
}

impl Default for Ttl {
    fn default() -> Self {
        Self {
            paper: SignedDuration::from_mins(5),
            old_builds: SignedDuration::from_hours(24),
            releases: SignedDuration::from_mins(10),
            project: SignedDuration::from_hours(24),
            images: SignedDuration::from_hours(1),
        }
    }
}

impl Ttl {
    /// The same, but no page counts as fresh for longer than `max_age`.
    fn at_most(self, max_age: SignedDuration) -> Self {
        let Self { paper, old_builds, releases, project, images } = self;
        let [paper, old_builds, releases, project, images] =
            [paper, old_builds, releases, project, images].map(|ttl| ttl.min(max_age));
        Self { paper, old_builds, releases, project, images }
    }
}

/// Configuration of a [`Fetcher`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Base URLs of the APIs.
    pub upstreams: Upstreams,
    /// The cache directory. It is created if it is missing.
    pub store: PathBuf,
    /// The directory for files that are named by their URL: an [`artifacts::content_store`].
    pub files: PathBuf,
    /// Mail address or page of the admin, for the `User-Agent`.
    pub contact: Option<String>,
    /// How long cached data counts as fresh.
    pub ttl: Ttl,
    /// How failed requests are retried.
    pub retry_policy: RetryPolicy,
    /// Whether pages stay in memory. Set it to false in a process that reads one catalog and exits, because it would
    /// hold all pages twice.
    pub keeps_in_memory: bool,
}

impl Settings {
    /// The default settings with this cache directory. Files are in its `files` subdirectory.
    pub fn new(store: impl Into<PathBuf>) -> Self {
        let store = store.into();
        Self {
            upstreams: Upstreams::default(),
            files: files_dir(&store),
            store,
            contact: None,
            ttl: Ttl::default(),
            retry_policy: RetryPolicy::default(),
            keeps_in_memory: true,
        }
    }
}

/// The data that a catalog must contain.
#[derive(Debug, Clone, Copy)]
pub struct CatalogQuery<'a> {
    /// The software whose builds are read.
    pub software: &'a [Software],
    /// The projects that the requests name.
    pub projects: &'a [ProjectKey],
    /// The image whose tags are read: `itzg/minecraft-server`.
    pub images: Option<&'a str>,
    /// Builds that a version set would contain and whose hash must be known. A build that is not verified yet is
    /// downloaded.
    pub builds_to_verify: &'a [PaperName],
    /// Unmanaged JARs. Their projects are looked up by hash and read too.
    pub unmanaged: &'a [UnmanagedJar],
    /// The oldest Minecraft that any server can run (the lowest floor or pin of all servers). Builds of older versions
    /// are not read: those versions are in the catalog without builds. `None` means that the builds of all versions are
    /// read, once. For a proxy all builds are always read.
    pub oldest: Option<&'a Minecraft>,
    /// The maximum age of every page, if that is less than its [`Ttl`]. The failure of an older request is not used
    /// either. A pause that an upstream demanded is kept.
    pub max_age: Option<SignedDuration>,
}

impl Default for CatalogQuery<'_> {
    /// All versions of Paper.
    fn default() -> Self {
        Self {
            software: &[Software::Paper],
            projects: &[],
            images: None,
            builds_to_verify: &[],
            unmanaged: &[],
            oldest: None,
            max_age: None,
        }
    }
}

/// Reads the upstreams and caches their pages. One instance serves the whole process. All methods take `&self`.
pub struct Fetcher {
    upstreams: Upstreams,
    ttl: Ttl,
    http: Http,
    versions: Pages<Vec<Listed>>,
    builds: Pages<FillBuilds>,
    names: Pages<Name>,
    listings: Pages<ProjectListing>,
    tags: Pages<Vec<ImageTag>>,
    /// Owner of a file, by its sha256.
    owners: Pages<Option<Owner>>,
    /// Verified builds of a source that publishes only an md5, by version, number and md5. Entries do not expire.
    verified: Pages<VerifiedBuild>,
    files: Files,
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetcher").field("upstreams", &self.upstreams).finish_non_exhaustive()
    }
}

impl Fetcher {
    /// Creates a fetcher that reads the upstreams.
    pub fn new(settings: Settings) -> Result<Self, StartError> {
        let Settings { upstreams, store, files, contact, ttl, retry_policy, keeps_in_memory } = settings;
        let store = DiskStore::open(&store)?;
        let http = Http::new(contact.as_deref(), retry_policy);
        let files = Files::new(&files, &upstreams, contact.as_deref(), &store);
        Ok(Self::from_parts(upstreams, ttl, http, files, &store, keeps_in_memory))
    }

    /// Creates a fetcher that uses no network. It reads the pages that another fetcher stored in this directory,
    /// however old, and reads them again on each call.
    pub fn offline(store: &Path) -> Self {
        let pages = DiskStore::open_existing(store);
        let files = Files::offline(&files_dir(store), &pages);
        Self::from_parts(Upstreams::default(), Ttl::default(), Http::offline(), files, &pages, false)
    }

    fn from_parts(
        upstreams: Upstreams,
        ttl: Ttl,
        http: Http,
        files: Files,
        store: &DiskStore,
        remembers: bool,
    ) -> Self {
        let offline = http.is_offline();
        let most = |pages: u64| if remembers { pages } else { 0 };
        let small = if remembers { Reads::BlockingThread } else { Reads::CallerThread };
        Self {
            upstreams,
            ttl,
            http,
            versions: Pages::new("paper", most(3), store, small, offline),
            builds: Pages::new("builds", most(300), store, small, offline),
            names: Pages::new("names", most(4_000), store, small, offline),
            // A large listing takes 4 MB in memory, a typical one 50 KB.
            listings: Pages::new("releases", most(1_000), store, Reads::BlockingThread, offline),
            tags: Pages::new("images", most(20), store, small, offline),
            owners: Pages::new("owners", most(10_000), store, small, offline),
            verified: Pages::new("seen", most(1_000), store, small, offline),
            files,
        }
    }

    /// Requests sent so far, retries included, for the metrics.
    pub fn requests(&self) -> BTreeMap<Upstream, u64> {
        self.http.requests()
    }

    /// All slugs and ids in the store that name a project, for "did you mean". Blocks.
    pub fn stored_projects(&self) -> Vec<ProjectKey> {
        self.names.names().into_iter().filter_map(|name| ProjectKey::parse_site(&name)).collect()
    }

    /// Reads all data of `wanted`, as fresh as the TTLs demand. `missing` receives the catalog so far and returns the
    /// projects that it still lacks ([`missing_projects`](resolver::missing_projects) for each request), until it returns
    /// none.
    ///
    /// It never fails as a whole. A page that cannot be read is replaced by its cached form, and listed in `unread` if
    /// none exists.
    pub async fn catalog(
        &self,
        wanted: CatalogQuery<'_>,
        missing: impl Fn(&Catalog) -> Vec<ProjectKey>,
        now: Timestamp,
    ) -> CatalogBuild {
        let mut reading = CatalogBuild::empty(now);
        let at = ReadAt { now, max_age: wanted.max_age };
        let ttl = wanted.max_age.map_or(self.ttl, |max_age| self.ttl.at_most(max_age));
        reading.catalog.owners = self.owners(wanted.unmanaged, now).await;
        let owners = reading.catalog.owners.values().map(|owner| &owner.project);
        let mut requested_keys: BTreeSet<ProjectKey> = wanted.projects.iter().chain(owners).cloned().collect();
        // Projects are first: their large pages are read on other threads while this thread reads those of Paper.
        let (projects, software, tags) = futures::join!(
            self.projects(requested_keys.iter().cloned().collect(), ttl, at),
            self.software(wanted.software, wanted.oldest, ttl, at),
            self.images(wanted.images, ttl, at)
        );
        for paper in software {
            reading.add_paper(paper);
        }
        reading.copy_java_to_purpur();
        self.verify_builds(&mut reading, wanted.builds_to_verify, now).await;
        reading.add_images(tags);
        reading.add_projects(projects);
        self.files.add_metadata(&mut reading.catalog, now).await;
        for _ in 0..MAX_ROUNDS {
            let more: Vec<ProjectKey> =
                missing(&reading.catalog).into_iter().filter(|key| requested_keys.insert(key.clone())).collect();
            if more.is_empty() {
                break;
            }
            reading.add_projects(self.projects(more, ttl, at).await);
            self.files.add_metadata(&mut reading.catalog, now).await;
        }
        reading.sorted()
    }

    /// Reads one software after the other. Nearly always there is one, and all its versions are requested at once.
    async fn software(&self, wanted: &[Software], oldest: Option<&Minecraft>, ttl: Ttl, at: ReadAt) -> Vec<Paper> {
        let mut read = Vec::with_capacity(wanted.len());
        for software in wanted {
            read.push(self.paper(*software, oldest.filter(|_| software.is_minecraft()), ttl, at).await);
        }
        read
    }

    async fn paper(&self, software: Software, oldest: Option<&Minecraft>, ttl: Ttl, at: ReadAt) -> Paper {
        let now = at.now;
        let upstream = Upstream::for_builds(software);
        let (url, read): (_, fn(&_, &[u8]) -> _) = match software {
            Software::Purpur => (purpur::versions_url(&self.upstreams), purpur::parse_versions),
            Software::Paper | Software::Folia | Software::Velocity => {
                (fill::versions_url(&self.upstreams, software), fill::parse_versions)
            }
        };
        let fresh = |held: &StoredPage<_>| is_younger(&held.stamp, ttl.paper, now);
        let fetch = |held| self.http.refresh(upstream, &url, Existence::Known, held, now, |body| read(&url, body));
        let list = match self.versions.get(&builds_page_name(software, "versions"), &url, at, fresh, fetch).await {
            Ok(list) => list,
            Err(error) => {
                let unread = vec![ReadFailure { minecraft: None, error, cached_since: None }];
                return Paper { software, read_at: now, versions: Vec::new(), unread };
            }
        };
        let read_at = list.stored.stamp.checked_at;
        let count = list.stored.body.len();
        // Created before they are streamed: a closure in a stream that borrows its items keeps the future from being
        // spawned.
        let reads: Vec<_> = (list.stored.body.iter().enumerate())
            .map(|(position, listed)| async move {
                let has_builds = listed.builds.as_ref().is_none_or(|builds| !builds.is_empty());
                let wanted = has_builds && oldest.is_none_or(|oldest| listed.minecraft >= *oldest);
                let found = if wanted {
                    Some(self.builds_of(software, listed, position + FRESH_VERSIONS >= count, ttl, at).await)
                } else {
                    None
                };
                (listed, found)
            })
            .collect();
        let read = stream::iter(reads).buffered(MAX_CONCURRENT).collect::<Vec<_>>().await;
        let list_unread = list.stale.map(|error| ReadFailure { minecraft: None, error, cached_since: Some(read_at) });
        let (versions, unread) = (Vec::with_capacity(count), Vec::from_iter(list_unread));
        let mut paper = Paper { software, read_at, versions, unread };
        for (listed, found) in read {
            let (builds, error, cached_since) = match found {
                None => (Vec::new(), None, None),
                Some(Ok(CachedPage { stored, stale })) => {
                    (Arc::unwrap_or_clone(stored.body).builds, stale, Some(stored.stamp.checked_at))
                }
                Some(Err(error)) => (Vec::new(), Some(error), None),
            };
            let minecraft = Some(listed.minecraft.clone());
            paper.unread.extend(error.map(|error| ReadFailure { minecraft, error, cached_since }));
            let Listed { minecraft, java, jvm_flags, unsupported, builds: _ } = listed.clone();
            paper.versions.push(PaperVersion { minecraft, java, jvm_flags, unsupported, builds });
        }
        paper
    }

    async fn builds_of(
        &self,
        software: Software,
        listed: &Listed,
        lively: bool,
        ttl: Ttl,
        at: ReadAt,
    ) -> Result<CachedPage<FillBuilds>, Arc<FetchError>> {
        let now = at.now;
        let version = &listed.minecraft;
        let url = match software {
            Software::Purpur => purpur::builds_url(&self.upstreams, version),
            Software::Paper | Software::Folia | Software::Velocity => {
                fill::builds_url(&self.upstreams, software, version)
            }
        };
        let builds_ttl = if lively { ttl.paper } else { ttl.old_builds };
        let fresh = |held: &StoredPage<FillBuilds>| {
            // Two caches in front of Fill may disagree for a while, so builds are never read more often than the list
            // itself.
            let confirmed = is_younger(&held.stamp, ttl.paper, now);
            let as_listed = listed.builds.as_ref().is_none_or(|builds| *builds == held.body.numbers);
            confirmed || (as_listed && is_younger(&held.stamp, builds_ttl, now))
        };
        let read = |body: &[u8]| match software {
            Software::Purpur => purpur::parse_builds(&url, &self.upstreams, version, body),
            Software::Paper | Software::Folia | Software::Velocity => fill::parse_builds(&url, body),
        };
        let fetch = |held| {
            // The list of versions names this one.
            self.http.refresh(Upstream::for_builds(software), &url, Existence::Known, held, now, read)
        };
        self.builds.get(&builds_page_name(software, version.as_str()), &url, at, fresh, fetch).await
    }

    async fn images(&self, repository: Option<&str>, ttl: Ttl, at: ReadAt) -> Option<Images> {
        let written = repository?;
        let Some(repository) = DockerHubRepository::parse(written) else {
            let error = Arc::new(FetchError::NotOnDockerHub { repository: written.to_owned() });
            return Some(Images { subject: written.to_owned(), found: Err(error) });
        };
        let url = repository.url(&self.upstreams);
        let subject = repository.full_name();
        let fresh = |held: &StoredPage<_>| is_younger(&held.stamp, ttl.images, at.now);
        let fetch = |held| docker_hub::fetch_tags(&self.http, &url, &repository, held, at.now);
        let found = self.tags.get(&subject, &url, at, fresh, fetch).await;
        Some(Images { subject, found })
    }

    async fn projects(&self, keys: Vec<ProjectKey>, ttl: Ttl, at: ReadAt) -> Vec<FoundProject> {
        stream::iter(keys)
            .map(|key| async move {
                let found = match key.source {
                    Source::Hangar => self.project(Site::Hangar, &key.project, ttl, at).await,
                    Source::Modrinth => self.project(Site::Modrinth, &key.project, ttl, at).await,
                    Source::Url => self.files.project(&key, at).await,
                };
                (key, found)
            })
            .buffered(MAX_CONCURRENT)
            .collect()
            .await
    }

    async fn project(
        &self,
        site: Site,
        project: &str,
        ttl: Ttl,
        at: ReadAt,
    ) -> Result<CachedPage<ProjectListing>, Arc<FetchError>> {
        if !is_valid_name(project) {
            return Err(Arc::new(FetchError::InvalidName { upstream: site.upstream(), project: project.to_owned() }));
        }
        let now = at.now;
        let name = self.name(site, project, ttl, at).await?;
        let id = name.stored.body.id.as_str();
        let url = match site {
            Site::Hangar => hangar::list_url(&self.upstreams, id),
            Site::Modrinth => modrinth::list_url(&self.upstreams, id),
        };
        let fresh = |held: &StoredPage<_>| is_younger(&held.stamp, ttl.releases, now);
        let fetch = |held| async {
            match site {
                Site::Hangar => hangar::fetch_list(&self.http, &url, &name.stored.body, held, ttl.project, now).await,
                Site::Modrinth => modrinth::fetch_list(&self.http, &url, &name.stored.body, held, now).await,
            }
        };
        let mut found = self.listings.get(&format!("{site}/{id}"), &url, at, fresh, fetch).await?;
        found.stale = found.stale.or(name.stale);
        Ok(found)
    }

    /// Resolves a slug or id to a project. The result is stored by slug and by id, so that a dependency on a project
    /// that a user named by its slug costs no request, online and offline.
    async fn name(&self, site: Site, project: &str, ttl: Ttl, at: ReadAt) -> Result<CachedPage<Name>, Arc<FetchError>> {
        let now = at.now;
        let url_of = |name: &str| match site {
            Site::Hangar => hangar::name_url(&self.upstreams, name),
            Site::Modrinth => modrinth::name_url(&self.upstreams, name),
        };
        let url = url_of(project);
        let fresh = |held: &StoredPage<_>| is_younger(&held.stamp, ttl.project, now);
        let fetch = |held: Option<StoredPage<Name>>| async {
            // A project that was read before exists.
            let is_known = held.is_some();
            match site {
                Site::Hangar => hangar::fetch_name(&self.http, &url, held, now).await,
                Site::Modrinth => modrinth::fetch_name(&self.http, &url, held, now).await,
            }
            .map_err(|error| if is_known { error } else { not_found(error, project) })
        };
        let found = self.names.get(&format!("{site}/{project}"), &url, at, fresh, fetch).await?;
        // A page from the disk was stored under all its names when it was fetched.
        let is_fresh = found.stored.stamp.checked_at == now;
        for other in [&found.stored.body.id, &found.stored.body.slug] {
            if is_fresh && other != project {
                let stamp = PageOrigin { url: url_of(other).to_string(), etag: None, ..found.stored.stamp.clone() };
                let held = StoredPage { stamp, body: Arc::clone(&found.stored.body) };
                self.names.add(&format!("{site}/{other}"), &held).await;
            }
        }
        Ok(found)
    }
}

/// Name of a page of builds in the store. Pages of Paper have no prefix.
fn builds_page_name(software: Software, about: &str) -> String {
    if software.is_paper() { about.to_owned() } else { format!("{}/{about}", software.project()) }
}

/// Converts the upstream's 404 to an error that names the project as the user wrote it.
fn not_found(error: FetchError, project: &str) -> FetchError {
    if let FetchError::Status { upstream, url, status: 404, excerpt: _ } = error {
        FetchError::NotFound { upstream, url, project: project.to_owned() }
    } else {
        error
    }
}

/// A source with an API.
#[derive(Debug, Clone, Copy)]
enum Site {
    Hangar,
    Modrinth,
}

impl Site {
    fn upstream(self) -> Upstream {
        match self {
            Self::Hangar => Upstream::Hangar,
            Self::Modrinth => Upstream::Modrinth,
        }
    }
}

/// The prefix of its pages in the store.
impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.upstream().as_str())
    }
}

/// The directory of files below the cache directory.
fn files_dir(store: &Path) -> PathBuf {
    store.join("files")
}
