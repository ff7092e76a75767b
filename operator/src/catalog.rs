//! Edge (reads). Keeps one catalog for all servers, refreshes it on its own schedule, and signals only changes of its
//! content. Users and schedules may request that the pages of one server are read at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt, stream};
use jiff::{SignedDuration, Timestamp};
use resolver::model::catalog::{Catalog, ProjectKey, Source};
use resolver::model::request::Request;
use resolver::model::unmanaged_jar::UnmanagedJar;
use tokio::sync::{Notify, watch};
use tracing::{info, warn};
use upstream::{CatalogBuild, CatalogQuery, Fetcher, ReadError};

use crate::caches::{Key, SharedMap};
use crate::clock::now;
use crate::solve_groups::Requests;
use crate::template_revision::digest;

/// Digest of a catalog without the dates of reading, so it does not depend on when the catalog was read.
pub(crate) type Content = [u8; 32];

/// One reading of all upstreams.
pub(crate) struct Snapshot {
    pub(crate) catalog: Catalog,
    pub(crate) content: Content,
    /// Sources that could not be read, by subject (`modrinth/viaversion`).
    pub(crate) source_errors: BTreeMap<String, CatalogSourceError>,
    pub(crate) read_at: Timestamp,
}

#[cfg(test)]
impl Snapshot {
    /// A snapshot for tests, made without a request to an upstream.
    pub(crate) fn new(catalog: Catalog, source_errors: BTreeMap<String, CatalogSourceError>) -> Self {
        let (content, read_at) = (content_of(&catalog), catalog.paper_read_at);
        Self { catalog, content, source_errors, read_at }
    }
}

/// Why a source could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CatalogSourceError {
    /// A word of a closed set: [`upstream::FetchError::category`].
    pub(crate) category: &'static str,
    pub(crate) message: String,
}

/// A page that was read within this time is not read again, whoever requests it.
const REFRESH_PAUSE: SignedDuration = SignedDuration::from_mins(1);

/// Why the pages of a server are read at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum RefreshCause {
    /// The annotation `nightshift.dev/reconcile`.
    Requested,
    /// `spec.updateSchedule.checkCron`.
    Scheduled,
}

/// Identifies a requested reading. A new request replaces the one before with the same key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct RefreshKey {
    /// The server whose pages are read.
    pub(crate) server: Key,
    pub(crate) cause: RefreshCause,
}

/// A requested reading of the pages that one server uses.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Refresh {
    /// Identifies the request among those with the same key.
    id: String,
    /// `None` until the pages have been read.
    result: Option<RefreshResult>,
}

/// The result of a requested reading.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct RefreshResult {
    /// Why a page is not as new as requested, in the words of the upstream crate.
    pub(crate) unread: Vec<String>,
}

/// Shares the newest snapshot, and collects from the servers which projects it must hold.
#[derive(Clone)]
pub(crate) struct CatalogKeeper {
    newest: watch::Sender<Option<Arc<Snapshot>>>,
    /// The requests of all servers.
    pub(crate) requests: Requests,
    refresh_now: Arc<Notify>,
    refreshes: Arc<SharedMap<RefreshKey, Refresh>>,
}

impl Default for CatalogKeeper {
    fn default() -> Self {
        Self {
            newest: watch::Sender::new(None),
            requests: Requests::default(),
            refresh_now: Arc::new(Notify::new()),
            refreshes: Arc::default(),
        }
    }
}

impl CatalogKeeper {
    /// The newest reading. `None` until the first one is complete.
    pub(crate) fn newest(&self) -> Option<Arc<Snapshot>> {
        self.newest.borrow().clone()
    }

    /// Replaces the newest reading.
    #[cfg(test)]
    pub(crate) fn set(&self, snapshot: Arc<Snapshot>) {
        self.newest.send_replace(Some(snapshot));
    }

    /// Records a server's request and returns whether it changed. A project or an unmanaged JAR that no reading has
    /// covered yet is read soon, not at the next refresh.
    pub(crate) fn record_request(&self, namespace: &str, server: &str, request: &Request) -> bool {
        let unread = self.requests.has_new_names(request);
        let is_changed = self.requests.record(namespace, server, Some(request));
        if unread || self.newest.borrow().is_none() {
            self.refresh_now.notify_one();
        }
        is_changed
    }

    /// Triggers a reading soon, because information from outside the pages is available.
    pub(crate) fn read_soon(&self) {
        self.refresh_now.notify_one();
    }

    /// Requests that the pages of a server are read anew, once for each `id`. Returns the result of this request once it is known, and wakes the
    /// server then.
    pub(crate) fn request_refresh(&self, key: &RefreshKey, id: &str) -> Option<RefreshResult> {
        if let Some(known) = self.refreshes.get(key).filter(|known| known.id == id) {
            return known.result;
        }
        self.refreshes.put(key.clone(), Refresh { id: id.to_owned(), result: None });
        self.refresh_now.notify_one();
        None
    }

    /// Forgets the requests of a deleted server.
    pub(crate) fn evict_refreshes(&self, server: &Key) {
        self.refreshes.retain(|key| key.server != *server);
    }

    /// The requests that are not served yet.
    fn open_refreshes(&self) -> Vec<(RefreshKey, String)> {
        let open = self.refreshes.keys_where(|refresh| refresh.result.is_none());
        open.into_iter().filter_map(|key| self.refreshes.get(&key).map(|refresh| (key, refresh.id))).collect()
    }

    /// Records the result for these requests. Returns their servers.
    fn finish_refreshes(&self, open: Vec<(RefreshKey, String)>, problems: &[ReadError]) -> Vec<Key> {
        let finish = |(key, id): (RefreshKey, String)| {
            let unread = problems.iter().filter(|problem| self.is_used_by(&key.server, &problem.subject));
            let result = RefreshResult { unread: unread.map(ToString::to_string).collect() };
            let server = key.server.clone();
            // A request that was made meanwhile is served by the next reading.
            if self.refreshes.get(&key).is_some_and(|refresh| refresh.id == id) {
                self.refreshes.put(key, Refresh { id, result: Some(result) });
            }
            server
        };
        open.into_iter().map(finish).collect()
    }

    /// Whether this server uses a page: those of its plugins, and all that are no page of a plugin.
    fn is_used_by(&self, (namespace, server): &Key, subject: &str) -> bool {
        let is_of_plugin = [Source::Hangar, Source::Modrinth, Source::Url]
            .iter()
            .any(|source| subject.strip_prefix(&source.to_string()).is_some_and(|project| project.starts_with('/')));
        let request = self.requests.of(namespace, server);
        !is_of_plugin
            || request.is_some_and(|request| request.plugins.iter().any(|plugin| plugin.key.to_string() == subject))
    }

    /// Serves the open requests, as [`Self::run`] does. Returns whether there were any.
    #[cfg(test)]
    pub(crate) fn serve_refreshes(&self) -> bool {
        !self.finish_refreshes(self.open_refreshes(), &[]).is_empty()
    }

    /// Whether a server has requested a reading.
    #[cfg(test)]
    pub(crate) fn has_open_refresh(&self) -> bool {
        !self.open_refreshes().is_empty()
    }

    /// One item per reading whose content differs from the one before.
    pub(crate) fn changes(&self) -> impl Stream<Item = ()> + Send + 'static {
        let receiver = self.newest.subscribe();
        stream::unfold(receiver, |mut receiver| async move {
            receiver.changed().await.ok()?;
            Some(((), receiver))
        })
        .boxed()
    }

    /// Reads forever: every `pause`, when a server's request names something new, and when a server requests it. `wake` requeues such a server.
    pub(crate) async fn run(
        self,
        fetcher: Fetcher,
        image_repository: Option<String>,
        pause: Duration,
        wake: impl Fn(Key) + Send,
    ) {
        loop {
            let images = image_repository.as_deref();
            let refreshes = self.open_refreshes();
            let request_of = |(key, _): &(RefreshKey, String)| self.requests.of(&key.server.0, &key.server.1);
            let requesting: Vec<Request> = refreshes.iter().filter_map(request_of).collect();
            let problems = if requesting.is_empty() {
                Vec::new()
            } else {
                // The reading for all servers finds these pages in the cache.
                read_catalog(&fetcher, images, &requesting, Some(REFRESH_PAUSE), now()).await.problems
            };
            let requests = self.requests.all();
            if !requests.is_empty() {
                self.read(&fetcher, images, &requests).await;
            }
            self.finish_refreshes(refreshes, &problems).into_iter().for_each(&wake);
            let refresh = tokio::time::timeout(pause, self.refresh_now.notified());
            // A timeout and a wake-up both lead to the next reading.
            drop(refresh.await);
        }
    }

    async fn read(&self, fetcher: &Fetcher, images: Option<&str>, requests: &[Request]) {
        let at = now();
        let reading = read_catalog(fetcher, images, requests, None, at).await;
        for problem in &reading.problems {
            warn!(subject = problem.subject, "{problem}");
        }
        let content = content_of(&reading.catalog);
        let source_errors: BTreeMap<String, CatalogSourceError> = reading
            .problems
            .iter()
            .map(|problem| {
                let source_error =
                    CatalogSourceError { category: problem.error.category(), message: problem.to_string() };
                (problem.subject.clone(), source_error)
            })
            .collect();
        let old = self.newest();
        let is_unchanged = old.as_ref().is_some_and(|old| old.content == content && old.source_errors == source_errors);
        // A catalog is as old as the last reading without problems.
        let read_at = old.as_ref().filter(|_| !source_errors.is_empty()).map_or(at, |old| old.read_at);
        let snapshot = Arc::new(Snapshot { catalog: reading.catalog, content, source_errors, read_at });
        if is_unchanged {
            // Newer dates of reading are stored, but they wake no server.
            self.newest.send_if_modified(|slot| {
                *slot = Some(snapshot);
                false
            });
        } else {
            info!(projects = snapshot.catalog.projects.len(), "the catalog has changed");
            self.newest.send_replace(Some(snapshot));
        }
    }
}

/// Reads all data for these requests. Pages older than `max_age` are read anew.
async fn read_catalog(
    fetcher: &Fetcher,
    images: Option<&str>,
    requests: &[Request],
    max_age: Option<SignedDuration>,
    at: Timestamp,
) -> CatalogBuild {
    let named = requests.iter().flat_map(|request| request.plugins.iter().map(|plugin| plugin.key.clone()));
    let projects: Vec<ProjectKey> = named.collect::<BTreeSet<_>>().into_iter().collect();
    let missing = |catalog: &Catalog| {
        let missing: BTreeSet<ProjectKey> =
            requests.iter().flat_map(|request| resolver::missing_projects(catalog, request)).collect();
        missing.into_iter().collect()
    };
    let unmanaged: Vec<UnmanagedJar> = requests.iter().flat_map(|request| request.unmanaged.iter().cloned()).collect();
    let wanted =
        CatalogQuery { projects: &projects, images, unmanaged: &unmanaged, max_age, ..CatalogQuery::default() };
    fetcher.catalog(wanted, missing, at).await
}

fn content_of(catalog: &Catalog) -> Content {
    let mut undated = catalog.clone();
    undated.paper_read_at = Timestamp::UNIX_EPOCH;
    for project in &mut undated.projects {
        project.read_at = Timestamp::UNIX_EPOCH;
    }
    digest(&serde_json::to_value(&undated).expect("a catalog has string keys only"))
}
