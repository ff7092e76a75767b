//! Edge (reads). The solve on the recorded catalog: 66 Paper versions, 886 `ViaVersion` releases, 517 `ViaBackwards` releases,
//! `DiscordSRV`, `GriefPrevention`, as the replaying upstream gives them on 20 January 2026.
//!
//! The reference of every ratio is `read the catalog`: parsing that catalog from JSON, which any tool must do first.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use jiff::{SignedDuration, Timestamp};
use resolver::catalog::{BuildChannel, Catalog, Channel, ProjectKey, Source};
use resolver::explain::human;
use resolver::request::{Dependencies, ImagePolicy, PaperWish, PluginWish, Request, VersionWish};
use resolver::unmanaged::UnmanagedPlugins;
use resolver::upstream::{Fetcher, Settings, Upstreams, Wanted};

const AT: &str = "2026-01-20T12:00:00Z";
const PLUGINS: [&str; 3] = ["viabackwards", "discordsrv", "griefprevention"];

fn at() -> Timestamp {
    AT.parse().expect("a literal")
}

fn key(project: &str) -> ProjectKey {
    ProjectKey { source: Source::Modrinth, project: project.to_owned() }
}

fn request(paper: PaperWish) -> Request {
    let wish = |project: &&str| PluginWish {
        object: (*project).to_owned(),
        key: key(project),
        version: VersionWish::Latest,
        delay: SignedDuration::ZERO,
        channel: Channel::Release,
        compatibility: None,
    };
    Request {
        server: "games/lobby".to_owned(),
        paper,
        delay: SignedDuration::ZERO,
        channel: BuildChannel::Stable,
        floor: None,
        running: None,
        plugins: PLUGINS.iter().map(wish).collect(),
        dependencies: Dependencies::Install,
        image: None,
        image_is_given: false,
        image_policy: ImagePolicy::Follow,
        unmanaged: Vec::new(),
        unmanaged_plugins: UnmanagedPlugins::Hold,
    }
}

/// The catalog, read once over a real socket from the replaying upstream.
fn catalog() -> Catalog {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let (state, _serving) = fixtures::upstream::spawn(at()).await.expect("a free port on loopback");
        let url = |path: &str| format!("{}/{path}", state.public_url()).parse().expect("a URL");
        let upstreams = Upstreams {
            fill: url("fill/v3"),
            hangar: url("hangar/api/v1"),
            modrinth: url("modrinth/v2"),
            docker_hub: url("docker-hub/v2"),
        };
        let store = tempfile::tempdir().expect("a directory");
        let fetcher = Fetcher::new(Settings { upstreams, ..Settings::new(store.path()) }).expect("a fetcher");
        let projects: Vec<ProjectKey> = PLUGINS.into_iter().map(key).collect();
        let wish = request(PaperWish::Auto);
        let wanted = Wanted { projects: &projects, images: None, oldest: None };
        let reading = fetcher.catalog(wanted, |catalog| resolver::needed_projects(catalog, &wish), at()).await;
        assert!(reading.problems.is_empty(), "{:?}", reading.problems);
        reading.catalog
    })
}

fn solve(criterion: &mut Criterion) {
    let catalog = catalog();
    let json = serde_json::to_vec(&catalog).expect("a catalog has string keys only");
    let yes = request(PaperWish::Auto);
    let no = request(PaperWish::Pin { version: "1.21.11".parse().expect("a literal") });
    assert!(resolver::resolve(&catalog, &yes, at()).is_ok(), "the yes must be a yes");
    assert!(resolver::resolve(&catalog, &no, at()).is_err(), "the no must be a no");

    let mut group = criterion.benchmark_group("three plugins");
    group.sample_size(20);
    group.bench_function("reference: read the catalog", |bencher| {
        bencher.iter(|| serde_json::from_slice::<Catalog>(black_box(&json)).expect("as written"));
    });
    group.bench_function("yes, with explanation and text", |bencher| {
        bencher.iter(|| {
            let resolution = resolver::resolve(black_box(&catalog), &yes, at()).expect("a yes");
            human::render(&resolution.explanation, at())
        });
    });
    group.bench_function("no, with explanation and text", |bencher| {
        bencher.iter(|| {
            let no = resolver::resolve(black_box(&catalog), &no, at()).expect_err("a no");
            human::render(&no.explanation(), at())
        });
    });
    group.bench_function("what is still to be fetched", |bencher| {
        bencher.iter(|| resolver::needed_projects(black_box(&catalog), &yes));
    });
    group.finish();
}

criterion_group!(benches, solve);
criterion_main!(benches);
