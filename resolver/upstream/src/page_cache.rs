//! Edge (writes). Caches pages of one kind in memory and on disk, merges concurrent reads, and keeps old pages for
//! outages.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use moka::future::Cache;
use reqwest::Url;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::FetchError;
use super::disk_cache::{DiskStore, PageOrigin, StoredPage};

/// Tolerated difference between the clocks of callers. A page further in the future is read again.
const CLOCK_SLACK: SignedDuration = SignedDuration::from_mins(1);

/// How long a failure is cached, so that a thousand servers do not each wait for the same unavailable upstream.
const FAILURE_TTL: SignedDuration = SignedDuration::from_secs(30);

/// How long "no such project" is cached, also for a project that was read before.
const NOT_FOUND_TTL: SignedDuration = SignedDuration::from_mins(10);

/// Result of reading an upstream.
pub(super) enum Fetched<T> {
    /// 304, or an unchanged page.
    NotModified,
    /// A changed page.
    New { body: T, etag: Option<String> },
}

/// A page that can be used.
#[derive(Debug)]
pub(super) struct CachedPage<T> {
    pub(super) stored: StoredPage<T>,
    /// The error because of which the page is older than it should be.
    pub(super) stale: Option<Arc<FetchError>>,
}

/// Cached state of one page.
struct CacheEntry<T> {
    stored: Option<StoredPage<T>>,
    failure: Option<ReadFailed>,
}

#[derive(Clone)]
struct ReadFailed {
    error: Arc<FetchError>,
    failed_at: Timestamp,
    retry_at: Timestamp,
}

/// When pages are read, and how old a result may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadAt {
    pub(super) now: Timestamp,
    /// An older failure is not used. `None`: as long as a failure is cached.
    pub(super) max_age: Option<SignedDuration>,
}

impl From<Timestamp> for ReadAt {
    fn from(now: Timestamp) -> Self {
        Self { now, max_age: None }
    }
}

impl<T> Clone for CacheEntry<T> {
    fn clone(&self) -> Self {
        Self { stored: self.stored.clone(), failure: self.failure.clone() }
    }
}

impl<T> CacheEntry<T> {
    /// Whether the entry is used as it is. A failure is final for its time, even if an old page exists.
    fn is_usable(&self, fresh: &impl Fn(&StoredPage<T>) -> bool, at: ReadAt) -> bool {
        match (&self.failure, &self.stored) {
            (Some(failure), _) => failure.is_usable(at),
            (None, Some(stored)) => fresh(stored),
            (None, None) => false,
        }
    }
}

impl ReadFailed {
    fn is_usable(&self, ReadAt { now, max_age }: ReadAt) -> bool {
        now < self.retry_at
            && self.retry_at <= now + NOT_FOUND_TTL + CLOCK_SLACK
            && max_age.is_none_or(|max_age| now.duration_since(self.failed_at) < max_age)
    }
}

/// The thread on which stored pages are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reads {
    /// A blocking thread.
    BlockingThread,
    /// The caller's thread: for small pages, in a process without other work. Handing one over takes longer than
    /// reading it.
    CallerThread,
}

/// All pages of one kind.
pub(super) struct Pages<T> {
    /// The folder on disk.
    folder: &'static str,
    /// `None`: no page is requested twice, so the caller owns what was read.
    memory: Option<Cache<String, CacheEntry<T>>>,
    store: DiskStore,
    reads: Reads,
    /// Offline every URL is accepted, because the base URL that was used is unknown.
    offline: bool,
}

impl<T: Serialize + DeserializeOwned + Send + Sync + 'static> Pages<T> {
    /// `capacity` is the number of pages that stay in memory (0: none). The others are read from disk on each use.
    pub(super) fn new(folder: &'static str, capacity: u64, store: &DiskStore, reads: Reads, offline: bool) -> Self {
        let memory = (capacity > 0).then(|| Cache::new(capacity));
        Self { folder, memory, store: store.clone(), reads, offline }
    }

    /// Returns the page `name` at `url`: the cached page while it is `fresh`, else the result of `fetch`, which
    /// receives the cached page. If `fetch` fails, the cached page is returned as stale.
    ///
    /// Callers that request the same page at the same time wait for one `fetch`, if pages stay in memory.
    pub(super) async fn get<F>(
        &self,
        name: &str,
        url: &Url,
        at: impl Into<ReadAt>,
        fresh: impl Fn(&StoredPage<T>) -> bool + Send + Sync,
        fetch: impl FnOnce(Option<StoredPage<T>>) -> F + Send,
    ) -> Result<CachedPage<T>, Arc<FetchError>>
    where
        F: Future<Output = Result<Fetched<T>, FetchError>> + Send,
    {
        let at = at.into();
        let init = async {
            let remembered = match &self.memory {
                Some(memory) => memory.get(name).await,
                None => None,
            };
            let entry = match remembered {
                Some(entry) => entry,
                None => CacheEntry { stored: self.read_stored(name, url).await, failure: None },
            };
            if entry.is_usable(&fresh, at) {
                return entry;
            }
            self.refresh(name, url, at.now, entry.stored, fetch).await
        };
        let entry = match &self.memory {
            Some(memory) => {
                let entry =
                    memory.entry_by_ref(name).or_insert_with_if(init, |entry| !entry.is_usable(&fresh, at)).await;
                entry.into_value()
            }
            None => init.await,
        };
        match entry {
            CacheEntry { stored: Some(stored), failure } => {
                Ok(CachedPage { stored, stale: failure.map(|failure| failure.error) })
            }
            CacheEntry { stored: None, failure: Some(failure) } => Err(failure.error),
            CacheEntry { stored: None, failure: None } => unreachable!("a fetch ends with a page or a failure"),
        }
    }

    /// Names of the pages on disk, sorted. Blocks.
    pub(super) fn names(&self) -> Vec<String> {
        self.store.names(self.folder)
    }

    /// Adds a page that another request returned, if none is in memory under this name.
    pub(super) async fn add(&self, name: &str, stored: &StoredPage<T>) {
        if self.memory.as_ref().is_some_and(|memory| memory.contains_key(name)) {
            return;
        }
        self.write(name, stored).await;
        if let Some(memory) = &self.memory {
            memory.insert(name.to_owned(), CacheEntry { stored: Some(stored.clone()), failure: None }).await;
        }
    }

    async fn refresh<F>(
        &self,
        name: &str,
        url: &Url,
        now: Timestamp,
        stored: Option<StoredPage<T>>,
        fetch: impl FnOnce(Option<StoredPage<T>>) -> F,
    ) -> CacheEntry<T>
    where
        F: Future<Output = Result<Fetched<T>, FetchError>>,
    {
        match fetch(stored.clone()).await {
            Err(error) => {
                let missing = matches!(
                    error,
                    FetchError::NotFound { .. }
                        | FetchError::InvalidName { .. }
                        | FetchError::NotAPlugin { .. }
                        | FetchError::RefusedPlugin { .. }
                ) || (stored.is_some() && matches!(error, FetchError::Status { status: 404, .. }));
                let retry_at = now + if missing { NOT_FOUND_TTL } else { FAILURE_TTL };
                CacheEntry { stored, failure: Some(ReadFailed { error: Arc::new(error), failed_at: now, retry_at }) }
            }
            Ok(fetched) => {
                let (body, etag, fetched_at) = match (fetched, stored) {
                    (Fetched::New { body, etag }, _) => (Arc::new(body), etag, now),
                    (Fetched::NotModified, Some(stored)) => (stored.body, stored.stamp.etag, stored.stamp.fetched_at),
                    (Fetched::NotModified, None) => unreachable!("304 requires the etag of a cached page"),
                };
                let stamp = PageOrigin { url: url.to_string(), etag, fetched_at, checked_at: now };
                let stored = StoredPage { stamp, body };
                self.write(name, &stored).await;
                CacheEntry { stored: Some(stored), failure: None }
            }
        }
    }

    async fn read_stored(&self, name: &str, url: &Url) -> Option<StoredPage<T>> {
        let stored = match self.reads {
            Reads::CallerThread => self.store.read::<T>(self.folder, name),
            Reads::BlockingThread => {
                let (store, folder, name) = (self.store.clone(), self.folder, name.to_owned());
                tokio::task::spawn_blocking(move || store.read::<T>(folder, &name)).await.ok().flatten()
            }
        }?;
        (self.offline || stored.stamp.url == url.as_str()).then_some(stored)
    }

    async fn write(&self, name: &str, stored: &StoredPage<T>) {
        let (store, folder, name, stored) = (self.store.clone(), self.folder, name.to_owned(), stored.clone());
        // It fails only if the task panicked or the runtime ends. The page is then fetched again later.
        let _ = tokio::task::spawn_blocking(move || store.write(folder, &name, &stored)).await;
    }
}

/// Whether a page was confirmed less than `ttl` ago.
pub(super) fn is_younger(stamp: &PageOrigin, ttl: SignedDuration, now: Timestamp) -> bool {
    let age = now.duration_since(stamp.checked_at);
    age < ttl && age >= -CLOCK_SLACK
}
