//! Edge (writes). Files that were named by their address and hash, as projects with one release: brought once, read once. And builds
//! that are announced by an md5 only: brought once, to see what they are.
//!
//! They lie in a directory as [`crate::download`] lays it out; the operator's store works in the same one. What a JAR says
//! is kept for ever: its name is its hash.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use reqwest::Url;
use serde::{Deserialize, Serialize};

use super::disk_cache::{DiskStore, StoredPage};
use super::page_cache::{CachedPage, Fetched, Pages, Reads};
use super::project_page::ProjectListing;
use super::{FetchError, StartError, Upstreams};
use crate::catalog::{
    Artifact, Catalog, Channel, Declared, FALLBACK_VERSION, FurtherJar, Project, ProjectKey, Release, Source,
};
use crate::download::{DownloadError, DownloadPolicy, Downloads, path_of};
use crate::jar::plugin_descriptor::{PluginFacts, facts};
use crate::jar::{Algorithm, FactsError, Hash};

/// What is kept of a JAR.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Read {
    size: u64,
    facts: PluginFacts,
}

/// The files.
pub(super) struct Files {
    dir: PathBuf,
    /// Who brings them, made for the first one; its policy. None: offline, nothing is ever brought.
    downloads: Option<(DownloadPolicy, OnceLock<Downloads>)>,
    read: Pages<Read>,
}

impl Files {
    /// Ones that are brought; whatever has the origin of an upstream is trusted as that one is.
    pub(super) fn new(dir: &Path, upstreams: &Upstreams, contact: Option<&str>, store: &DiskStore) -> Self {
        let policy = DownloadPolicy { contact: contact.map(str::to_owned), ..DownloadPolicy::new(upstreams.all()) };
        Self { downloads: Some((policy, OnceLock::new())), ..Self::offline(dir, store) }
    }

    /// Ones that are here already.
    pub(super) fn offline(dir: &Path, store: &DiskStore) -> Self {
        Self { dir: dir.to_owned(), downloads: None, read: Pages::new("jars", 1_000, store, Reads::Aside, false) }
    }

    /// The project that a file is.
    pub(super) async fn project(
        &self,
        key: &ProjectKey,
        now: Timestamp,
    ) -> Result<CachedPage<ProjectListing>, Arc<FetchError>> {
        let not_a_file = || FetchError::NotAFile { project: key.project.clone() };
        let (url, sha256) = key.file().ok_or_else(not_a_file)?;
        let hash = Hash::of_parts("sha256", sha256).ok_or_else(not_a_file)?;
        let page = Url::parse(url).map_err(|_| not_a_file())?;
        let fetch = |_| async { self.bring(url, &hash).await.map(|body| Fetched::New { body, etag: None }) };
        // The address is part of the name: another one may have the right bytes where this one failed.
        let found = self.read.get(&key.project, &page, now, |_| true, fetch).await?;
        let StoredPage { stamp, body } = found.held;
        let project = project(key, url, &hash, &body, stamp.checked_at);
        let held = StoredPage { stamp, body: Arc::new(ProjectListing { project, walk: None }) };
        Ok(CachedPage { held, stale: None })
    }

    /// Adds what the JARs say that lie here already, because somebody staged or downloaded them: no page says it.
    ///
    /// Every JAR is read once. One that cannot be read teaches nothing; it is told where the file is used.
    pub(super) async fn teach(&self, catalog: &mut Catalog, now: Timestamp) {
        let here = self.here().await;
        if here.is_empty() {
            return;
        }
        let releases = catalog.projects.iter_mut().filter(|project| project.key.source != Source::Url);
        for release in releases.flat_map(|project| &mut project.releases) {
            let Release { file: main, api_version, java, folia, declared, further, .. } = release;
            let main = main.as_ref().map(|file| (file, api_version, java, folia, declared));
            let further = further.iter_mut().map(|FurtherJar { file, api_version, java, folia, declared }| {
                (&*file, api_version, java, folia, declared)
            });
            for (file, api_version, java, folia, declared) in main.into_iter().chain(further) {
                if let Some(facts) = self.known(file, &here, now).await {
                    *java = facts.java.map(u32::from);
                    *folia = Some(facts.folia);
                    *api_version = facts.api_version.as_deref().and_then(|version| version.parse().ok());
                    *declared = Some(names(&facts));
                }
            }
        }
    }

    /// What a JAR says that lies `here`; None for another one.
    async fn known(&self, file: &Artifact, here: &BTreeSet<Hash>, now: Timestamp) -> Option<PluginFacts> {
        let hash = file.hash.as_deref().and_then(Hash::parse).filter(|hash| here.contains(hash))?;
        let page = Url::parse(&file.url).ok()?;
        let path = path_of(&self.dir, &hash);
        let read = |_| async {
            if !is_there(&path, &hash).await {
                return Err(FetchError::FileOffline { url: file.url.clone() });
            }
            Self::read_jar(&file.url, path.clone()).await.map(|body| Fetched::New { body, etag: None })
        };
        let found = self.read.get(&hash.to_string(), &page, now, |_| true, read).await.ok()?;
        Some(found.held.body.facts.clone())
    }

    /// The files that lie here, by what their names say.
    async fn here(&self) -> BTreeSet<Hash> {
        let dir = self.dir.clone();
        let listed = tokio::task::spawn_blocking(move || {
            let folders = [Algorithm::Sha256, Algorithm::Sha512].map(Algorithm::as_str);
            let files = folders.into_iter().flat_map(|folder| {
                let entries = std::fs::read_dir(dir.join(folder)).into_iter().flatten().flatten();
                entries.filter_map(move |entry| Hash::of_parts(folder, entry.file_name().to_str()?))
            });
            files.collect()
        });
        listed.await.unwrap_or_default()
    }

    async fn bring(&self, url: &str, hash: &Hash) -> Result<Read, FetchError> {
        let path = path_of(&self.dir, hash);
        if !is_there(&path, hash).await {
            let size = self.downloads(url)?.get(url, None, hash).await?;
            tracing::info!(url, %hash, size, "downloaded a plugin to read it");
        }
        Self::read_jar(url, path).await
    }

    /// Brings what is announced by an md5 only, and says what it is: its sha256 and its size.
    pub(super) async fn see(&self, url: &str, md5: &str) -> Result<(Hash, u64), FetchError> {
        let (hash, size) = self.downloads(url)?.see(url, md5).await?;
        tracing::info!(url, %hash, size, "downloaded a build to see its bytes: they are trusted from now on");
        Ok((hash, size))
    }

    /// Who brings the file at `url`.
    fn downloads(&self, url: &str) -> Result<&Downloads, FetchError> {
        let Some((policy, made)) = &self.downloads else {
            return Err(FetchError::FileOffline { url: url.to_owned() });
        };
        if let Some(downloads) = made.get() {
            return Ok(downloads);
        }
        let downloads = Downloads::new(&self.dir, policy.clone()).map_err(|error| match error {
            StartError::Client(source) => DownloadError::Unreachable { url: url.to_owned(), source: Arc::new(source) },
            StartError::Directory { path: _, source } => DownloadError::Disk(Arc::new(source)),
        })?;
        Ok(made.get_or_init(|| downloads))
    }

    async fn read_jar(url: &str, path: PathBuf) -> Result<Read, FetchError> {
        let read = tokio::task::spawn_blocking(move || {
            let size = path.metadata().map_err(FactsError::Open)?.len();
            Ok(Read { size, facts: facts(&path)? })
        });
        let read = read.await.unwrap_or_else(|error| Err(FactsError::Open(io::Error::other(error))));
        read.map_err(|source| FetchError::NotAPlugin { url: url.to_owned(), source })
    }
}

/// Whether the file is here with the right content; anything else is brought again.
async fn is_there(path: &Path, hash: &Hash) -> bool {
    let (path, hash) = (path.to_owned(), hash.clone());
    let same = tokio::task::spawn_blocking(move || hash.of_file(&path)).await;
    same.is_ok_and(|same| same.is_ok_and(|same| same))
}

/// The names in a JAR.
fn names(facts: &PluginFacts) -> Declared {
    let PluginFacts { name, provides, depend, .. } = facts;
    Declared { name: name.clone(), provides: provides.clone(), depend: depend.clone() }
}

/// A file as a project with one release.
fn project(key: &ProjectKey, url: &str, hash: &Hash, read: &Read, read_at: Timestamp) -> Project {
    let Read { size, facts } = read;
    let version = facts.version.clone().filter(|version| !version.trim().is_empty());
    let version = version.unwrap_or_else(|| FALLBACK_VERSION.to_owned());
    Project {
        key: key.clone(),
        id: key.project.clone(),
        name: facts.name.clone(),
        read_at,
        releases: vec![Release {
            // Not the address: the same bytes from a mirror are no news for a server.
            id: hash.to_string(),
            // No date is true for it: those inside a zip are whatever its maker's clock said, and an address has none.
            published: None,
            channel: Channel::Release,
            // A JAR has no list. What it says is the least version, and that binds.
            minecraft: Vec::new(),
            api_version: facts.api_version.as_deref().and_then(|version| version.parse().ok()),
            loaders: vec!["paper".to_owned()],
            folia: Some(facts.folia),
            java: facts.java.map(u32::from),
            declared: Some(names(facts)),
            dependencies: Vec::new(),
            file: Some(Artifact {
                // By what it is: the end of an address may be anything, `download?id=7` for one.
                name: format!("{}-{version}.jar", facts.name),
                url: url.to_owned(),
                size: Some(*size),
                hash: Some(hash.to_string()),
            }),
            further: Vec::new(),
            version,
        }],
    }
}
