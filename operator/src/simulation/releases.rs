//! Edge (reads the network). What upstreams have released on six days, read once from the replay and shared by all walks.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use clap::Parser as _;
use fixtures::upstream;
use jiff::Timestamp;
use resolver::catalog::{ProjectKey, Source};
use resolver::upstream::{Fetcher, Wanted};
use tempfile::TempDir;

use super::api::NAMESPACE;
use crate::Config;
use crate::catalog_keeper::Snapshot;
use crate::clock::now;
use crate::store::Store;

/// Before and after plugins were released, before and after a newer Minecraft was, and before and after one that moves the worlds.
pub(super) struct Releases {
    pub(super) plugins: [Arc<Snapshot>; 2],
    pub(super) newer_minecraft: [Arc<Snapshot>; 2],
    pub(super) moves_worlds: [Arc<Snapshot>; 2],
    pub(super) config: Config,
    pub(super) store: Arc<Store>,
    /// Where the store and the pages lie.
    _dir: TempDir,
}

/// The days, as the tests in a cluster know the first four. On the last two Paper was at 1.21.11, and at 26.1.2 with plugins that are listed for it.
const DAYS: [&str; 6] = [
    "2026-01-10T12:00:00Z",
    "2026-01-19T12:00:00Z",
    "2025-12-11T12:00:00Z",
    "2025-12-12T18:00:00Z",
    "2026-03-10T12:00:00Z",
    "2026-06-10T12:00:00Z",
];

impl Releases {
    /// The same for all walks of the process.
    pub(super) fn get() -> &'static Self {
        static RELEASES: OnceLock<Releases> = OnceLock::new();
        RELEASES.get_or_init(|| {
            let (tell, told) = std::sync::mpsc::channel();
            // With a runtime of its own: the replay has to outlive the test that comes first.
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Runtime::new().expect("a runtime");
                runtime.block_on(async {
                    tell.send(Self::read().await).expect("whoever waits is there");
                    std::future::pending::<()>().await;
                });
            });
            told.recv().expect("the releases are read")
        })
    }

    async fn read() -> Self {
        let day = |text: &str| text.parse::<Timestamp>().expect("a day");
        let (replay, _) = upstream::spawn(day(DAYS[0])).await.expect("a free port");
        let kept = tempfile::tempdir().expect("a directory");
        let dir = kept.path();
        let config = |cache: &Path| {
            let url = |flag: &str, path: &str| format!("--{flag}={}/{path}", replay.public_url());
            let flags = [
                "operator".to_owned(),
                format!("--namespace={NAMESPACE}"),
                url("fill-url", "fill/v3"),
                url("hangar-url", "hangar/api/v1"),
                url("modrinth-url", "modrinth/v2"),
                url("docker-hub-url", "docker-hub/v2"),
                format!("--cache-dir={}", cache.display()),
                "--game-image=nightshift.dev/paper-stand-in:dev".to_owned(),
                "--store-url=".to_owned(),
            ];
            Config::parse_from(flags)
        };
        let project = |name: &str| ProjectKey { source: Source::Modrinth, project: name.to_owned() };
        let projects = ["viaversion", "viabackwards"].map(project);
        let mut read = Vec::new();
        for (at, text) in DAYS.into_iter().enumerate() {
            replay.set_now(day(text));
            let settings = config(&dir.join(at.to_string())).fetch_settings().expect("addresses");
            let fetcher = Fetcher::new(settings).expect("a cache");
            let wanted = Wanted { projects: &projects, ..Wanted::default() };
            let reading = fetcher.catalog(wanted, |_| Vec::new(), now()).await;
            assert!(reading.problems.is_empty(), "{:?}", reading.problems);
            read.push(Arc::new(Snapshot::of(reading.catalog, std::collections::BTreeMap::new())));
        }
        let config = config(&dir.join("store"));
        let store = Store::new(&config.files_dir(), config.store_policy().expect("addresses")).expect("a directory");
        let pairs: Vec<_> = read.chunks_exact(2).map(|days| [days[0].clone(), days[1].clone()]).collect();
        let [plugins, newer_minecraft, moves_worlds] =
            <[_; 3]>::try_from(pairs).unwrap_or_else(|_| unreachable!("two for each kind of update"));
        Self { plugins, newer_minecraft, moves_worlds, config, store: Arc::new(store), _dir: kept }
    }
}
