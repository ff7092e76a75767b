//! Edge (reads). Keeps one catalog for all servers, refreshes it on its own schedule, and signals only changes of its
//! content.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt, stream};
use jiff::Timestamp;
use resolver::model::catalog::{Catalog, ProjectKey};
use resolver::model::request::Request;
use resolver::model::unmanaged_jar::UnmanagedJar;
use tokio::sync::{Notify, watch};
use tracing::{info, warn};
use upstream::{CatalogQuery, Fetcher};

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

/// Shares the newest snapshot, and collects from the servers which projects it must hold.
#[derive(Clone)]
pub(crate) struct CatalogKeeper {
    newest: watch::Sender<Option<Arc<Snapshot>>>,
    /// The requests of all servers.
    pub(crate) requests: Requests,
    refresh_now: Arc<Notify>,
}

impl Default for CatalogKeeper {
    fn default() -> Self {
        Self { newest: watch::Sender::new(None), requests: Requests::default(), refresh_now: Arc::new(Notify::new()) }
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

    /// One item per reading whose content differs from the one before.
    pub(crate) fn changes(&self) -> impl Stream<Item = ()> + Send + 'static {
        let receiver = self.newest.subscribe();
        stream::unfold(receiver, |mut receiver| async move {
            receiver.changed().await.ok()?;
            Some(((), receiver))
        })
        .boxed()
    }

    /// Reads forever: every `pause`, and when a server's request names something new.
    pub(crate) async fn run(self, fetcher: Fetcher, image_repository: Option<String>, pause: Duration) {
        loop {
            let requests = self.requests.all();
            if !requests.is_empty() {
                self.read(&fetcher, image_repository.as_deref(), &requests).await;
            }
            let refresh = tokio::time::timeout(pause, self.refresh_now.notified());
            // A timeout and a wake-up both lead to the next reading.
            drop(refresh.await);
        }
    }

    async fn read(&self, fetcher: &Fetcher, images: Option<&str>, requests: &[Request]) {
        let at = now();
        let named = requests.iter().flat_map(|request| request.plugins.iter().map(|plugin| plugin.key.clone()));
        let projects: Vec<ProjectKey> = named.collect::<BTreeSet<_>>().into_iter().collect();
        let missing = |catalog: &Catalog| {
            let missing: BTreeSet<ProjectKey> =
                requests.iter().flat_map(|request| resolver::missing_projects(catalog, request)).collect();
            missing.into_iter().collect()
        };
        let unmanaged: Vec<UnmanagedJar> =
            requests.iter().flat_map(|request| request.unmanaged.iter().cloned()).collect();
        let wanted = CatalogQuery { projects: &projects, images, unmanaged: &unmanaged, ..CatalogQuery::default() };
        let reading = fetcher.catalog(wanted, missing, at).await;
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
            info!(projects = projects.len(), "the catalog has changed");
            self.newest.send_replace(Some(snapshot));
        }
    }
}

fn content_of(catalog: &Catalog) -> Content {
    let mut undated = catalog.clone();
    undated.paper_read_at = Timestamp::UNIX_EPOCH;
    for project in &mut undated.projects {
        project.read_at = Timestamp::UNIX_EPOCH;
    }
    digest(&serde_json::to_value(&undated).expect("a catalog has string keys only"))
}
