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
const REMEMBER_FAILURE: SignedDuration = SignedDuration::from_secs(30);

/// How long "no such project" is cached.
const REMEMBER_NOT_FOUND: SignedDuration = SignedDuration::from_mins(10);

/// Result of reading an upstream.
pub(super) enum Fetched<T> {
    /// 304, or an unchanged page.
    Same,
    /// A changed page.
    New { body: T, etag: Option<String> },
}

/// A page that can be used.
#[derive(Debug)]
pub(super) struct CachedPage<T> {
    pub(super) held: StoredPage<T>,
    /// The error because of which the page is older than it should be.
    pub(super) stale: Option<Arc<FetchError>>,
}

/// Cached state of one page.
struct CacheEntry<T> {
    held: Option<StoredPage<T>>,
    failure: Option<ReadFailed>,
}

struct ReadFailed {
    error: Arc<FetchError>,
    again_at: Timestamp,
}

impl<T> Clone for CacheEntry<T> {
    fn clone(&self) -> Self {
        let failure = self.failure.as_ref().map(|f| ReadFailed { error: Arc::clone(&f.error), again_at: f.again_at });
        Self { held: self.held.clone(), failure }
    }
}

impl<T> CacheEntry<T> {
    /// Whether the entry is used as it is. A failure is final for its time, even if an old page exists.
    fn stands(&self, fresh: &impl Fn(&StoredPage<T>) -> bool, now: Timestamp) -> bool {
        match (&self.failure, &self.held) {
            (Some(failure), _) => now < failure.again_at && failure.again_at <= now + REMEMBER_NOT_FOUND + CLOCK_SLACK,
            (None, Some(held)) => fresh(held),
            (None, None) => false,
        }
    }
}

/// The thread on which stored pages are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reads {
    /// A blocking thread.
    Aside,
    /// The caller's thread: for small pages, in a process without other work. Handing one over takes longer than
    /// reading it.
    Here,
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
        now: Timestamp,
        fresh: impl Fn(&StoredPage<T>) -> bool + Send + Sync,
        fetch: impl FnOnce(Option<StoredPage<T>>) -> F + Send,
    ) -> Result<CachedPage<T>, Arc<FetchError>>
    where
        F: Future<Output = Result<Fetched<T>, FetchError>> + Send,
    {
        let init = async {
            let remembered = match &self.memory {
                Some(memory) => memory.get(name).await,
                None => None,
            };
            let known = match remembered {
                Some(known) => known,
                None => CacheEntry { held: self.stored(name, url).await, failure: None },
            };
            if known.stands(&fresh, now) {
                return known;
            }
            self.fetched(name, url, now, known.held, fetch).await
        };
        let known = match &self.memory {
            Some(memory) => {
                let entry = memory.entry_by_ref(name).or_insert_with_if(init, |known| !known.stands(&fresh, now)).await;
                entry.into_value()
            }
            None => init.await,
        };
        match known {
            CacheEntry { held: Some(held), failure } => {
                Ok(CachedPage { held, stale: failure.map(|failure| failure.error) })
            }
            CacheEntry { held: None, failure: Some(failure) } => Err(failure.error),
            CacheEntry { held: None, failure: None } => unreachable!("a fetch ends with a page or a failure"),
        }
    }

    /// Names of the pages on disk, sorted. Blocks.
    pub(super) fn names(&self) -> Vec<String> {
        self.store.names(self.folder)
    }

    /// Adds a page that another request returned, if none is in memory under this name.
    pub(super) async fn add(&self, name: &str, held: &StoredPage<T>) {
        if self.memory.as_ref().is_some_and(|memory| memory.contains_key(name)) {
            return;
        }
        self.write(name, held).await;
        if let Some(memory) = &self.memory {
            memory.insert(name.to_owned(), CacheEntry { held: Some(held.clone()), failure: None }).await;
        }
    }

    async fn fetched<F>(
        &self,
        name: &str,
        url: &Url,
        now: Timestamp,
        held: Option<StoredPage<T>>,
        fetch: impl FnOnce(Option<StoredPage<T>>) -> F,
    ) -> CacheEntry<T>
    where
        F: Future<Output = Result<Fetched<T>, FetchError>>,
    {
        match fetch(held.clone()).await {
            Err(error) => {
                let missing = matches!(
                    error,
                    FetchError::NotFound { .. } | FetchError::NotAName { .. } | FetchError::NotAPlugin { .. }
                );
                let again_at = now + if missing { REMEMBER_NOT_FOUND } else { REMEMBER_FAILURE };
                CacheEntry { held, failure: Some(ReadFailed { error: Arc::new(error), again_at }) }
            }
            Ok(fetched) => {
                let (body, etag, fetched_at) = match (fetched, held) {
                    (Fetched::New { body, etag }, _) => (Arc::new(body), etag, now),
                    (Fetched::Same, Some(held)) => (held.body, held.stamp.etag, held.stamp.fetched_at),
                    (Fetched::Same, None) => unreachable!("304 needs an etag, and that needs a page"),
                };
                let stamp = PageOrigin { url: url.to_string(), etag, fetched_at, checked_at: now };
                let held = StoredPage { stamp, body };
                self.write(name, &held).await;
                CacheEntry { held: Some(held), failure: None }
            }
        }
    }

    async fn stored(&self, name: &str, url: &Url) -> Option<StoredPage<T>> {
        let held = match self.reads {
            Reads::Here => self.store.read::<T>(self.folder, name),
            Reads::Aside => {
                let (store, folder, name) = (self.store.clone(), self.folder, name.to_owned());
                tokio::task::spawn_blocking(move || store.read::<T>(folder, &name)).await.ok().flatten()
            }
        }?;
        (self.offline || held.stamp.url == url.as_str()).then_some(held)
    }

    async fn write(&self, name: &str, held: &StoredPage<T>) {
        let (store, folder, name, held) = (self.store.clone(), self.folder, name.to_owned(), held.clone());
        // It fails only if the task panicked or the runtime ends. The page is then fetched again later.
        let _ = tokio::task::spawn_blocking(move || store.write(folder, &name, &held)).await;
    }
}

/// Whether a page was confirmed less than `ttl` ago.
pub(super) fn younger(stamp: &PageOrigin, ttl: SignedDuration, now: Timestamp) -> bool {
    let age = now.duration_since(stamp.checked_at);
    age < ttl && age >= -CLOCK_SLACK
}
