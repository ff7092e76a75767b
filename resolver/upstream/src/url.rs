//! Edge (writes). Downloads and reads files that are named by URL and hash, each as a project with one release.
//!
//! Builds for which only an md5 is published are downloaded once, to find their sha256 and size.
//!
//! The files are in a [`ContentStore`], which the operator's store shares. The content of a JAR is cached forever,
//! because its name is its hash.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use reqwest::Url;
use serde::{Deserialize, Serialize};

use super::disk_cache::{DiskStore, StoredPage};
use super::page_cache::{CachedPage, Fetched, Pages, ReadAt, Reads};
use super::project_page::ProjectListing;
use super::{FetchError, Upstreams};
use artifacts::content_store::{ContentStore, StoredContent};
use artifacts::download::{DownloadError, DownloadPolicy, Downloads};
use artifacts::plugin_descriptor::{PluginFacts, facts};
use artifacts::{Algorithm, FactsError, Hash};
use resolver::model::api_version::ApiVersion;
use resolver::model::catalog::{
    Artifact, Catalog, Channel, Declared, FALLBACK_VERSION, FurtherJar, Project, ProjectKey, Release, Source,
};
use resolver::model::untrusted_text::hide_url_secrets;

/// Cached content of a JAR.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Read {
    size: u64,
    content: JarContent,
}

/// What a server finds in a JAR.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum JarContent {
    /// A plugin.
    Plugin(PluginFacts),
    /// A plugin that Paper refuses by this rule, or a JAR of a site without a plugin for Paper.
    Refused(String),
}

/// The directory of files with its cache.
pub(super) struct Files {
    store: ContentStore,
    /// Download policy and client. The client is created for the first download. `None` means offline: nothing is
    /// downloaded.
    downloads: Option<(DownloadPolicy, OnceLock<Downloads>)>,
    read: Pages<Read>,
}

impl Files {
    /// Files that may be downloaded. A URL with the origin of an upstream is trusted as that upstream is.
    pub(super) fn new(dir: &Path, upstreams: &Upstreams, contact: Option<&str>, pages: &DiskStore) -> Self {
        let policy = DownloadPolicy { contact: contact.map(str::to_owned), ..DownloadPolicy::new(upstreams.all()) };
        Self { downloads: Some((policy, OnceLock::new())), ..Self::offline(dir, pages) }
    }

    /// Files that exist already.
    pub(super) fn offline(dir: &Path, pages: &DiskStore) -> Self {
        Self {
            store: ContentStore::new(dir),
            downloads: None,
            read: Pages::new("jars", 1_000, pages, Reads::BlockingThread, false),
        }
    }

    /// The project of a file.
    pub(super) async fn project(
        &self,
        key: &ProjectKey,
        at: ReadAt,
    ) -> Result<CachedPage<ProjectListing>, Arc<FetchError>> {
        let not_a_file = || FetchError::InvalidFileKey { project: key.project.clone() };
        let (url, sha256) = key.file().ok_or_else(not_a_file)?;
        let hash = Hash::from_parts("sha256", sha256).ok_or_else(not_a_file)?;
        let page = Url::parse(url).map_err(|_| not_a_file())?;
        let fetch = |_| async { self.fetch(url, &hash).await.map(|body| Fetched::New { body, etag: None }) };
        // The URL is part of the name: another URL may have the right bytes where this one failed.
        let found = self.read.get(&key.project, &page, at, |_| true, fetch).await?;
        let StoredPage { stamp, body } = found.stored;
        let project = project(key, url, &hash, &body, stamp.checked_at)?;
        let held = StoredPage { stamp, body: Arc::new(ProjectListing { project, walk: None, unreadable: Vec::new() }) };
        Ok(CachedPage { stored: held, stale: None })
    }

    /// Adds the metadata of the JARs in the directory to the catalog. They were staged or downloaded earlier, and
    /// upstream pages do not contain this metadata.
    ///
    /// Every JAR is read once. An unreadable JAR adds no metadata. The error is reported where the file is used.
    pub(super) async fn add_metadata(&self, catalog: &mut Catalog, now: Timestamp) {
        let stored = self.stored_hashes().await;
        if stored.is_empty() {
            return;
        }
        let releases = catalog.projects.iter_mut().filter(|project| project.key.source != Source::Url);
        for release in releases.flat_map(|project| &mut project.releases) {
            let Release { file: main, api_version, refused, java, folia, declared, further, .. } = release;
            let main = main.as_ref().map(|file| (file, api_version, refused, java, folia, declared));
            let further = further.iter_mut().map(|FurtherJar { file, api_version, refused, java, folia, declared }| {
                (&*file, api_version, refused, java, folia, declared)
            });
            for (file, api_version, refused, java, folia, declared) in main.into_iter().chain(further) {
                match self.jar_metadata(file, &stored, now).await {
                    Some(JarContent::Plugin(facts)) => {
                        *java = facts.java.map(u32::from);
                        *folia = Some(facts.folia);
                        *api_version = stated_api_version(&facts);
                        *declared = Some(declared_names(&facts));
                    }
                    Some(JarContent::Refused(rule)) => *refused = Some(rule),
                    None => {}
                }
            }
        }
    }

    /// Metadata of a JAR that is in `stored`. `None` for any other.
    async fn jar_metadata(&self, file: &Artifact, stored: &BTreeSet<Hash>, now: Timestamp) -> Option<JarContent> {
        let hash = file.hash.as_deref().and_then(Hash::parse).filter(|hash| stored.contains(hash))?;
        let page = Url::parse(&file.url).ok()?;
        let read = |_| async {
            if !self.is_intact(&hash).await {
                return Err(FetchError::FileOffline { url: file.url.clone() });
            }
            let read = match self.read_jar(&file.url, &hash).await {
                // Another release of the project may have a plugin, so this is no error of the project.
                Err(FetchError::NotAPlugin { url: _, source }) if source.is_refusal() => {
                    Read { size: file.size.unwrap_or_default(), content: JarContent::Refused(source.to_string()) }
                }
                read => read?,
            };
            Ok(Fetched::New { body: read, etag: None })
        };
        let found = self.read.get(&hash.to_string(), &page, now, |_| true, read).await.ok()?;
        Some(found.stored.body.content.clone())
    }

    /// Hashes of the files in the store. Those named by a sha1 are left out: other bytes can have the same sha1.
    async fn stored_hashes(&self) -> BTreeSet<Hash> {
        let store = self.store.clone();
        let listed = tokio::task::spawn_blocking(move || {
            let hashes = store.list().unwrap_or_default().into_iter().filter_map(|file| file.hash);
            hashes.filter(|hash| hash.algorithm() != Algorithm::Sha1).collect()
        });
        listed.await.unwrap_or_default()
    }

    /// Whether the file is stored with the right content. Otherwise it is downloaded again.
    async fn is_intact(&self, hash: &Hash) -> bool {
        let (store, hash) = (self.store.clone(), hash.clone());
        let found = tokio::task::spawn_blocking(move || store.verify(&hash)).await;
        matches!(found, Ok(Ok(StoredContent::Intact)))
    }

    async fn fetch(&self, url: &str, hash: &Hash) -> Result<Read, FetchError> {
        if !self.is_intact(hash).await {
            let size = self.downloads(url)?.get(url, None, hash).await?;
            tracing::info!(url = hide_url_secrets(url), %hash, size, "downloaded a plugin to read it");
        }
        self.read_jar(url, hash).await
    }

    /// Downloads a build for which only an md5 is published, and returns its sha256 and size.
    pub(super) async fn fetch_unverified(&self, url: &str, md5: &str) -> Result<(Hash, u64), FetchError> {
        let (hash, size) = self.downloads(url)?.fetch_unverified(url, md5).await?;
        tracing::info!(url = hide_url_secrets(url), %hash, size, "downloaded a build to compute its hash: its bytes are trusted from now on");
        Ok((hash, size))
    }

    /// The download client for the file at `url`.
    fn downloads(&self, url: &str) -> Result<&Downloads, FetchError> {
        let Some((policy, made)) = &self.downloads else {
            return Err(FetchError::FileOffline { url: url.to_owned() });
        };
        if let Some(downloads) = made.get() {
            return Ok(downloads);
        }
        let downloads = Downloads::new(self.store.clone(), policy.clone()).map_err(|error| {
            DownloadError::Unreachable { url: url.to_owned(), source: Arc::new(error.into_source()) }
        })?;
        Ok(made.get_or_init(|| downloads))
    }

    async fn read_jar(&self, url: &str, hash: &Hash) -> Result<Read, FetchError> {
        let path = self.store.path(hash);
        let read = tokio::task::spawn_blocking(move || {
            let size = path.metadata().map_err(FactsError::Open)?.len();
            let content = match facts(&path) {
                Err(FactsError::Refused { rule }) => JarContent::Refused(rule.to_string()),
                read => JarContent::Plugin(read?),
            };
            Ok(Read { size, content })
        });
        let read = read.await.unwrap_or_else(|error| Err(FactsError::Open(io::Error::other(error))));
        read.map_err(|source| FetchError::NotAPlugin { url: url.to_owned(), source })
    }
}

/// The `api-version` that a JAR states.
fn stated_api_version(facts: &PluginFacts) -> Option<ApiVersion> {
    facts.api_version.as_deref().map(|stated| ApiVersion::new(stated, facts.paper_plugin))
}

/// Names that a JAR declares.
fn declared_names(facts: &PluginFacts) -> Declared {
    let PluginFacts { name, main, provides, depend, .. } = facts;
    Declared { name: name.clone(), main: Some(main.clone()), provides: provides.clone(), depend: depend.clone() }
}

/// A file as a project with one release. A plugin that Paper refuses is an error: there is no other release of it.
fn project(
    key: &ProjectKey,
    url: &str,
    hash: &Hash,
    read: &Read,
    read_at: Timestamp,
) -> Result<Project, Arc<FetchError>> {
    let Read { size, content } = read;
    let facts = match content {
        JarContent::Plugin(facts) => facts,
        JarContent::Refused(rule) => {
            return Err(Arc::new(FetchError::RefusedPlugin { url: url.to_owned(), rule: rule.clone() }));
        }
    };
    let version = Some(facts.version.clone()).filter(|version| !version.trim().is_empty());
    let version = version.unwrap_or_else(|| FALLBACK_VERSION.to_owned());
    Ok(Project {
        key: key.clone(),
        id: key.project.clone(),
        name: facts.name.clone(),
        read_at,
        releases: vec![Release {
            // Not the URL: the same bytes from a mirror are not a change for a server.
            id: hash.to_string(),
            // A file has no reliable date: those inside a zip depend on the clock of the build machine, and a URL has
            // none.
            published: None,
            channel: Channel::Release,
            // A JAR has no list of Minecraft versions. It declares a minimum version, and that is binding.
            minecraft: Vec::new(),
            api_version: stated_api_version(facts),
            refused: None,
            loaders: vec!["paper".to_owned()],
            folia: Some(facts.folia),
            java: facts.java.map(u32::from),
            declared: Some(declared_names(facts)),
            dependencies: Vec::new(),
            file: Some(Artifact {
                // Named by its content: a URL may end in anything, for example `download?id=7`.
                name: format!("{}-{version}.jar", facts.name),
                url: url.to_owned(),
                size: Some(*size),
                hash: Some(hash.to_string()),
            }),
            further: Vec::new(),
            version,
        }],
    })
}
