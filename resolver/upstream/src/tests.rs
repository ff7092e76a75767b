//! Edge (reads). Tests the fetcher against the replaying upstream, in process.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{self, Next};
use fixtures::upstream::{Failure, State, Upstream as Played};
use jiff::{SignedDuration, Timestamp};
use reqwest::Url;
use tempfile::TempDir;

use super::{CatalogBuild, CatalogQuery, Fetcher, RetryPolicy, Settings, Upstreams};
use resolver::model::catalog::{Catalog, Project, ProjectKey, Source};

mod catalog;
mod failures;
mod files;
mod fuzz;
mod hangar_pages;
mod hash_lookup;
mod jars;
mod malformed;
mod purpur;
mod software;

/// The day after the last recorded response.
const NOW: &str = "2026-01-22T00:00:00Z";

fn instant(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn now() -> Timestamp {
    instant(NOW)
}

fn key(text: &str) -> ProjectKey {
    let (source, project) = text.split_once('/').unwrap();
    let source = if source == "hangar" { Source::Hangar } else { Source::Modrinth };
    ProjectKey { source, project: project.to_owned() }
}

/// For tests in which no project is missing.
fn none(_: &Catalog) -> Vec<ProjectKey> {
    Vec::new()
}

/// One request and the status of its response.
type Seen = (String, bool, u16);

/// A server that records its requests: path with query, whether conditional, and the status of the response.
struct Server {
    base: String,
    requests: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    fn start(listener: tokio::net::TcpListener, router: Router) -> Self {
        let requests: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let writes = Arc::clone(&requests);
        let router = router.layer(middleware::from_fn(move |request: Request, next: Next| {
            let requests = Arc::clone(&writes);
            async move {
                let path = request.uri().path_and_query().unwrap().to_string();
                let conditional = request.headers().contains_key("if-none-match");
                let response = next.run(request).await;
                requests.lock().unwrap().push((path, conditional, response.status().as_u16()));
                response
            }
        }));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { base, requests }
    }

    /// All requests since the last call.
    fn take_requests(&self) -> Vec<Seen> {
        std::mem::take(&mut self.requests.lock().unwrap())
    }
}

/// The replaying upstream and a directory for the store.
struct Replay {
    server: Server,
    state: State,
    dir: TempDir,
}

impl Replay {
    async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let state = State::new(format!("http://{}", listener.local_addr().unwrap()), now());
        let server = Server::start(listener, fixtures::upstream::router(state.clone()));
        Self { server, state, dir: tempfile::tempdir().unwrap() }
    }

    fn fetcher(&self) -> Fetcher {
        Fetcher::new(settings(self.dir.path(), &self.server.base)).unwrap()
    }

    fn requests(&self) -> u64 {
        self.state.requests().values().sum()
    }

    fn fail(&self, upstream: Played, failure: Failure) {
        self.state.fail(upstream, Some(failure));
    }
}

/// The default settings, with short pauses.
fn settings(store: &Path, base: &str) -> Settings {
    let url = |path: &str| Url::parse(&format!("{base}/{path}")).unwrap();
    let mut settings = Settings::new(PathBuf::from(store));
    settings.upstreams = Upstreams {
        fill: url("fill/v3"),
        purpur: url("purpur/v2"),
        hangar: url("hangar/api/v1/"),
        modrinth: url("modrinth/v2"),
        docker_hub: url("docker-hub/v2"),
    };
    settings.retry_policy = RetryPolicy { tries: 2, first_pause: Duration::from_millis(1), ..RetryPolicy::default() };
    settings
}

/// Reads projects only: no images, and of Paper only the list of versions.
async fn projects(fetcher: &Fetcher, keys: &[&str], now: Timestamp) -> CatalogBuild {
    let keys: Vec<ProjectKey> = keys.iter().map(|text| key(text)).collect();
    let oldest = "99.0".parse().unwrap();
    fetcher.catalog(CatalogQuery { projects: &keys, oldest: Some(&oldest), ..CatalogQuery::default() }, none, now).await
}

fn project<'a>(reading: &'a CatalogBuild, name: &str) -> &'a Project {
    reading.catalog.project(&key(name)).unwrap_or_else(|| panic!("{name} is missing: {:?}", reading.problems))
}

fn minutes(count: i64) -> SignedDuration {
    SignedDuration::from_mins(count)
}
