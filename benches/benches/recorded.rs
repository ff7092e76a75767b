//! Edge (reads). The recorded catalog: what the replaying upstream gives on 20 January 2026, and requests for it.

use jiff::{SignedDuration, Timestamp};
use resolver::catalog::{BuildChannel, Catalog, Channel, ProjectKey, Source};
use resolver::request::{Dependencies, ImagePolicy, PaperWish, PluginWish, Request, VersionWish};
use resolver::unmanaged::UnmanagedPlugins;
use resolver::upstream::{Fetcher, Settings, Upstreams, Wanted};

/// The instant of every question.
pub(crate) fn at() -> Timestamp {
    benches::worlds::at()
}

fn key(project: &str) -> ProjectKey {
    ProjectKey { source: Source::Modrinth, project: project.to_owned() }
}

/// One server that wants these projects of Modrinth.
pub(crate) fn request(plugins: &[&str], paper: PaperWish) -> Request {
    let wish = |project: &&str| PluginWish {
        object: (*project).to_owned(),
        key: key(project),
        version: VersionWish::Latest,
        delay: SignedDuration::ZERO,
        channel: Channel::Release,
        compatibility: None,
        requires: Vec::new(),
        delay_together: Vec::new(),
        selector: None,
    };
    Request {
        server: "games/lobby".to_owned(),
        paper,
        delay: SignedDuration::ZERO,
        channel: BuildChannel::Stable,
        floor: None,
        running: None,
        plugins: plugins.iter().map(wish).collect(),
        dependencies: Dependencies::Install,
        image: None,
        image_is_given: false,
        image_policy: ImagePolicy::Follow,
        unmanaged: Vec::new(),
        unmanaged_plugins: UnmanagedPlugins::Hold,
        hotfix_siblings: resolver::request::HotfixSiblings::default(),
        unlisted: resolver::request::Unlisted::default(),
        facts: resolver::facts::Facts::default(),
    }
}

/// Where the four upstreams of a replaying upstream at this address are.
pub(crate) fn upstreams(base: &str) -> Upstreams {
    let url = |path: &str| format!("{base}/{path}").parse().expect("a URL");
    Upstreams {
        fill: url("fill/v3"),
        hangar: url("hangar/api/v1"),
        modrinth: url("modrinth/v2"),
        docker_hub: url("docker-hub/v2"),
    }
}

/// The catalog for these projects, read over a real socket from the replaying upstream at this address.
pub(crate) async fn catalog(plugins: &[&str], base: &str) -> Catalog {
    let store = tempfile::tempdir().expect("a directory");
    let settings = Settings { upstreams: upstreams(base), ..Settings::new(store.path()) };
    let fetcher = Fetcher::new(settings).expect("a fetcher");
    let projects: Vec<ProjectKey> = plugins.iter().copied().map(key).collect();
    let wish = request(plugins, PaperWish::Auto);
    let wanted = Wanted { projects: &projects, images: None, oldest: None };
    let reading = fetcher.catalog(wanted, |catalog| resolver::needed_projects(catalog, &wish), at()).await;
    assert!(reading.problems.is_empty(), "{:?}", reading.problems);
    reading.catalog
}
