//! Edge (writes). Keeps the artifact store: each file of each lock once, on this replica's own disk, named by its hash.
//!
//! It is a pull-through cache in a [`ContentStore`], and the running servers have files of their own. A file is added
//! only after its hash was verified ([`artifacts::download`]). No file in the store is ever executed.
//! [`paper_descriptor`] and [`artifacts`] read only data from a JAR, with limits. The catalog's fetcher downloads the
//! files of `type: url` into the same directory.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_api::File;
use artifacts::content_store::{ContentStore, StoredContent};
use artifacts::download::{self, Downloads};
use artifacts::{Hash, url_for_display};
use tokio::sync::OnceCell;
use tracing::{info, warn};

use crate::error_chain::ErrorChain;

mod artifact_server;
mod error;
mod eviction;
pub(crate) mod paper_descriptor;
#[cfg(test)]
mod tests;

pub(crate) use artifact_server::LIMITS;
pub(crate) use error::{FetchError, OpenError};

/// The download rules of the store, and its size limit.
#[derive(Debug, Clone)]
pub(crate) struct StorePolicy {
    pub(crate) downloads: download::DownloadPolicy,
    /// Limit of all files together in bytes, without the one used last. The volume needs space for one more file.
    pub(crate) max_bytes: u64,
}

impl StorePolicy {
    /// 4 GiB in all: forty versions of Paper.
    pub(crate) fn new(downloads: download::DownloadPolicy) -> Self {
        Self { downloads, max_bytes: 4 << 30 }
    }
}

/// One download that several callers wait for.
type InFlight = Arc<OnceCell<Result<PathBuf, FetchError>>>;

/// The store. One for the process. All methods take `&self`.
pub(crate) struct Store {
    content: ContentStore,
    max_bytes: u64,
    downloads: Downloads,
    state: Mutex<StoreState>,
    downloaded: AtomicU64,
    hits: AtomicU64,
}

/// State that lasts until the process ends.
#[derive(Default)]
struct StoreState {
    /// The sources of files that a lock names. Only these are downloaded for agents.
    sources: BTreeMap<Hash, ArtifactSource>,
    /// Downloads in progress.
    in_flight: BTreeMap<Hash, InFlight>,
    /// Files whose content was verified since this process started. The disk may have changed a file before that.
    verified: BTreeSet<Hash>,
    /// When each file was last used, as a count of uses.
    used: BTreeMap<Hash, u64>,
    use_count: u64,
}

impl StoreState {
    fn mark_used(&mut self, hash: &Hash) {
        self.use_count += 1;
        self.used.insert(hash.clone(), self.use_count);
    }
}

#[derive(Debug, Clone)]
struct ArtifactSource {
    url: String,
    size: Option<u64>,
}

/// How often the store had to download a file, and how often it had it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Files downloaded and verified.
    pub(crate) downloads: u64,
    /// Files that were already in the store when they were requested.
    pub(crate) hits: u64,
}

impl Store {
    /// Opens the directory, and creates it if it is missing. Removes unfinished downloads of an earlier process.
    pub(crate) fn new(dir: &Path, policy: StorePolicy) -> Result<Self, OpenError> {
        let content = ContentStore::new(dir);
        let prepared = content.remove_unfinished().and_then(|()| content.create());
        prepared.map_err(|source| OpenError::Directory { path: dir.display().to_string(), source })?;
        Ok(Self {
            downloads: Downloads::new(content.clone(), policy.downloads).map_err(OpenError::Client)?,
            content,
            max_bytes: policy.max_bytes,
            state: Mutex::default(),
            downloaded: AtomicU64::new(0),
            hits: AtomicU64::new(0),
        })
    }

    /// Allows these files to be served to agents, also if they are not in the store yet. A file without a usable hash
    /// is left out, because it could not be verified.
    pub(crate) fn register<'a>(&self, files: impl IntoIterator<Item = &'a File>) {
        let mut state = self.state();
        for file in files {
            if let Some(hash) = Hash::parse(&file.hash.0) {
                state.sources.insert(hash, ArtifactSource { url: file.url.clone(), size: file.size });
            }
        }
    }

    /// Downloads a file if it is not in the store, and returns its path. Concurrent callers for the same file share one
    /// download.
    pub(crate) async fn fetch(&self, file: &File) -> Result<PathBuf, FetchError> {
        let hash = Hash::parse(&file.hash.0).ok_or_else(|| FetchError::NoHash { hash: file.hash.0.clone() })?;
        self.fetch_from(&hash, &ArtifactSource { url: file.url.clone(), size: file.size }).await
    }

    /// How often the store had to download a file, and how often it had it, since the process started.
    pub(crate) fn counts(&self) -> Counts {
        Counts { downloads: self.downloaded.load(Ordering::Relaxed), hits: self.hits.load(Ordering::Relaxed) }
    }

    /// A file by its hash alone: in the store, or known from a lock. `None` if neither.
    async fn fetch_by_hash(&self, hash: &Hash) -> Option<Result<PathBuf, FetchError>> {
        let source = self.state().sources.get(hash).cloned();
        if let Some(source) = source {
            return Some(self.fetch_from(hash, &source).await);
        }
        let path = self.verified_path(hash).await?;
        self.state().mark_used(hash);
        self.hits.fetch_add(1, Ordering::Relaxed);
        Some(Ok(path))
    }

    async fn fetch_from(&self, hash: &Hash, source: &ArtifactSource) -> Result<PathBuf, FetchError> {
        self.state().mark_used(hash);
        if let Some(path) = self.verified_path(hash).await {
            self.hits.fetch_add(1, Ordering::Relaxed);
            return Ok(path);
        }
        let flight = Arc::clone(self.state().in_flight.entry(hash.clone()).or_default());
        let outcome = flight.get_or_init(|| self.download(hash, source)).await.clone();
        let mut state = self.state();
        // A later caller checks the disk, or starts another download.
        if state.in_flight.get(hash).is_some_and(|current| Arc::ptr_eq(current, &flight)) {
            state.in_flight.remove(hash);
        }
        outcome
    }

    async fn download(&self, hash: &Hash, source: &ArtifactSource) -> Result<PathBuf, FetchError> {
        // Another download may have finished since the caller checked the disk.
        if let Some(path) = self.verified_path(hash).await {
            return Ok(path);
        }
        match self.downloads.get(&source.url, source.size, hash).await {
            Ok(size) => {
                self.downloaded.fetch_add(1, Ordering::Relaxed);
                let Counts { downloads, hits } = self.counts();
                info!(%hash, url = url_for_display(&source.url), size, downloads, hits, "downloaded");
                self.state().verified.insert(hash.clone());
                self.evict().await;
                Ok(self.content.path(hash))
            }
            Err(error) => {
                warn!(%hash, category = error.category(), error = %ErrorChain(&error), "could not fetch a file");
                Err(error.into())
            }
        }
    }

    /// The path of the file, if it is in the store and its content still has this hash. The content is verified once
    /// per process.
    async fn verified_path(&self, hash: &Hash) -> Option<PathBuf> {
        let path = self.content.path(hash);
        if self.state().verified.contains(hash) {
            if tokio::fs::try_exists(&path).await.unwrap_or(false) {
                return Some(path);
            }
            self.state().verified.remove(hash);
            return None;
        }
        let (content, wanted) = (self.content.clone(), hash.clone());
        let verified = tokio::task::spawn_blocking(move || {
            let found = content.verify(&wanted)?;
            if found == StoredContent::Damaged {
                content.remove(&wanted)?;
            }
            Ok::<_, io::Error>(found)
        });
        match verified.await.ok()? {
            Ok(StoredContent::Intact) => {
                self.state().verified.insert(hash.clone());
                Some(path)
            }
            Ok(StoredContent::Damaged) => {
                warn!(%hash, "removed a file of the store that has changed on the disk");
                None
            }
            Ok(StoredContent::Missing) => None,
            Err(error) => {
                warn!(%hash, %error, "could not check a file of the store");
                None
            }
        }
    }

    async fn evict(&self) {
        let (content, max_bytes, used) = (self.content.clone(), self.max_bytes, self.state().used.clone());
        let evicted = tokio::task::spawn_blocking(move || eviction::evict_files(&content, max_bytes, &used)).await;
        match evicted.map_err(io::Error::other).flatten() {
            Ok(removed) if removed.is_empty() => {}
            Ok(removed) => info!(files = removed.len(), max_bytes, "freed space in the store"),
            // The downloaded file is in the store. The next download tries again.
            Err(error) => warn!(%error, "could not free space in the store"),
        }
    }

    fn state(&self) -> MutexGuard<'_, StoreState> {
        // Each change under this lock is one insert or remove, so the state is consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
