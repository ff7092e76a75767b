//! Edge (reads the network). Reads the upstream releases of a day from the replay, once for all runs of this process.

use std::collections::BTreeMap;
use std::future::IntoFuture as _;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use clap::Parser as _;
use fixtures::upstream::State;
use jiff::Timestamp;
use resolver::model::catalog::{ProjectKey, Source};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use upstream::{CatalogQuery, Fetcher};

use super::fake_api_server::NAMESPACE;
use crate::Config;
use crate::catalog::Snapshot;
use crate::clock::now;
use crate::store::Store;

/// The upstream releases of a day, read at the first request.
pub(super) struct Releases {
    pub(super) config: Config,
    /// The command line of an operator that reads the replay.
    flags: Vec<String>,
    pub(super) store: Arc<Store>,
    /// The catalogs that were read, by day and projects.
    snapshots: Mutex<BTreeMap<CatalogKey, Arc<Snapshot>>>,
    reader: UnboundedSender<ReleaseRequest>,
    /// The directory of the store and the pages.
    _dir: TempDir,
}

/// A day, and projects of Modrinth.
type CatalogKey = (String, Vec<String>);

/// A request for the upstream releases of a day.
struct ReleaseRequest {
    day: Timestamp,
    /// Projects of Modrinth.
    projects: Vec<String>,
    /// By the clock of the caller.
    read_at: Timestamp,
    reply: Sender<Arc<Snapshot>>,
}

/// The days. The tests in a cluster use the first four too. On the last two, Paper was at 1.21.11, and at 26.1.2 with
/// plugins that are listed for it.
const DAYS: [&str; 6] = [
    "2026-01-10T12:00:00Z",
    "2026-01-19T12:00:00Z",
    "2025-12-11T12:00:00Z",
    "2025-12-12T18:00:00Z",
    "2026-03-10T12:00:00Z",
    "2026-06-10T12:00:00Z",
];

impl Releases {
    /// The same for all runs of the process.
    pub(super) fn get() -> &'static Self {
        static RELEASES: OnceLock<Releases> = OnceLock::new();
        RELEASES.get_or_init(|| {
            let (sender, receiver) = std::sync::mpsc::channel();
            // A thread with its own runtime, because the replay has to outlive the test that starts it.
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Runtime::new().expect("a runtime");
                runtime.block_on(async {
                    let (replay, _) = fixtures::upstream::spawn(day(DAYS[0])).await.expect("a free port");
                    let (reader, readings) = unbounded_channel();
                    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
                    let store_url = format!("http://{}", listener.local_addr().expect("the address of the store"));
                    let releases = Self::new(&replay, &store_url, reader);
                    tokio::spawn(axum::serve(listener, releases.store.serve()).into_future());
                    let config = releases.config.clone();
                    sender.send(releases).expect("the receiver waits");
                    serve_readings(&replay, &config, readings).await;
                });
            });
            receiver.recv().expect("the releases are read")
        })
    }

    /// The settings of an operator with these additional flags.
    pub(super) fn config_with(&self, flags: &[String]) -> Config {
        Config::parse_from(self.flags.iter().chain(flags))
    }

    /// Before and after plugin releases.
    pub(super) fn plugins(&self) -> [Arc<Snapshot>; 2] {
        self.pair(DAYS[0], DAYS[1])
    }

    /// Before and after a release of a newer Minecraft.
    pub(super) fn newer_minecraft(&self) -> [Arc<Snapshot>; 2] {
        self.pair(DAYS[2], DAYS[3])
    }

    /// Before and after a release that migrates the worlds.
    pub(super) fn world_migration(&self) -> [Arc<Snapshot>; 2] {
        self.pair(DAYS[4], DAYS[5])
    }

    fn pair(&self, before: &str, after: &str) -> [Arc<Snapshot>; 2] {
        let projects = ["viabackwards", "viaversion"].map(str::to_owned);
        [before, after].map(|day| self.snapshot_of_day(day, &projects, now()))
    }

    /// The upstream releases on this day (`2026-01-10`, at noon): Paper and these projects of Modrinth. `read_at` is
    /// the caller's time.
    pub(super) fn snapshot_of_day(&self, day: &str, projects: &[String], read_at: Timestamp) -> Arc<Snapshot> {
        let mut snapshots = self.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (day.to_owned(), projects.to_vec());
        let read = || {
            let (reply, received) = std::sync::mpsc::channel();
            let at = if day.contains('T') { day.to_owned() } else { format!("{day}T12:00:00Z") };
            let day = at.parse().expect("a date like 2026-01-10");
            let reading = ReleaseRequest { day, projects: projects.to_vec(), read_at, reply };
            self.reader.send(reading).unwrap_or_else(|_| panic!("the replay thread has ended"));
            received.recv().expect("the releases are read")
        };
        snapshots.entry(key).or_insert_with(read).clone()
    }

    fn new(replay: &State, store_url: &str, reader: UnboundedSender<ReleaseRequest>) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let url = |flag: &str, path: &str| format!("--{flag}={}/{path}", replay.public_url());
        let flags = [
            "operator".to_owned(),
            format!("--namespace={NAMESPACE}"),
            url("fill-url", "fill/v3"),
            url("hangar-url", "hangar/api/v1"),
            url("modrinth-url", "modrinth/v2"),
            url("docker-hub-url", "docker-hub/v2"),
            format!("--cache-dir={}", dir.path().join("store").display()),
            "--game-image=nightshift.dev/fake-paper:dev".to_owned(),
            format!("--store-url={store_url}"),
        ];
        let flags: Vec<String> = flags.into();
        let config = Config::parse_from(&flags);
        let store = Store::new(&config.files_dir(), config.store_policy().expect("URLs")).expect("a directory");
        Self { config, flags, store: Arc::new(store), snapshots: Mutex::default(), reader, _dir: dir }
    }
}

fn day(text: &str) -> Timestamp {
    text.parse().expect("a day")
}

/// Reads one day after the other for as long as the process runs.
async fn serve_readings(replay: &State, config: &Config, mut readings: UnboundedReceiver<ReleaseRequest>) {
    while let Some(ReleaseRequest { day, projects, read_at, reply }) = readings.recv().await {
        replay.set_now(day);
        let pages = tempfile::tempdir().expect("a directory");
        let settings = Config { cache_dir: pages.path().into(), ..config.clone() }.fetch_settings().expect("URLs");
        let fetcher = Fetcher::new(settings).expect("a cache directory");
        let projects: Vec<_> = projects.iter().map(|name| project(name)).collect();
        let wanted = CatalogQuery { projects: &projects, ..CatalogQuery::default() };
        let read = fetcher.catalog(wanted, |_| Vec::new(), read_at).await;
        assert!(read.problems.is_empty(), "{:?}", read.problems);
        drop(reply.send(Arc::new(Snapshot::new(read.catalog, BTreeMap::new()))));
    }
}

fn project(name: &str) -> ProjectKey {
    ProjectKey { source: Source::Modrinth, project: name.to_owned() }
}
