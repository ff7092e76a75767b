//! Edge (reads). Provides the recorded catalog, as the replaying upstream serves it on 20 January 2026, and requests for it.

use benches::generators::{self, ON_HANGAR};
use jiff::Timestamp;
use resolver::model::catalog::{Catalog, ProjectKey, Source};
use resolver::model::request::{PaperRequest, Request, VersionRequest};
use upstream::{CatalogQuery, Fetcher, Settings, Upstreams};

/// The time of every question.
pub(crate) fn now() -> Timestamp {
    generators::now()
}

/// One server that requests these projects.
pub(crate) fn request(plugins: &[&str], paper: PaperRequest) -> Request {
    let plugin_requests = plugins.iter().map(|project| {
        let mut plugin_request = generators::plugin_request(project, VersionRequest::Latest);
        if *project == ON_HANGAR {
            plugin_request.key.source = Source::Hangar;
        }
        plugin_request
    });
    generators::request("games/lobby".to_owned(), paper, plugin_requests.collect())
}

/// The catalog for these projects, from a replaying upstream of its own.
pub(crate) fn read(plugins: &[&str]) -> Catalog {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be created");
    let (state, _serving) = runtime.block_on(fixtures::upstream::spawn(now())).expect("a free port on loopback");
    runtime.block_on(catalog(plugins, state.public_url()))
}

/// The upstream URLs of a replaying upstream at this address.
pub(crate) fn upstreams(base: &str) -> Upstreams {
    let url = |path: &str| format!("{base}/{path}").parse().expect("a valid URL");
    Upstreams {
        fill: url("fill/v3"),
        purpur: url("purpur/v2"),
        hangar: url("hangar/api/v1"),
        modrinth: url("modrinth/v2"),
        docker_hub: url("docker-hub/v2"),
    }
}

/// The catalog for these projects, read over a real socket from the replaying upstream at this address.
async fn catalog(plugins: &[&str], base: &str) -> Catalog {
    let store = tempfile::tempdir().expect("a temporary directory");
    let settings = Settings { upstreams: upstreams(base), ..Settings::new(store.path()) };
    let fetcher = Fetcher::new(settings).expect("a fetcher can be created");
    let request = request(plugins, PaperRequest::Auto);
    let projects: Vec<ProjectKey> = request.plugins.iter().map(|plugin| plugin.key.clone()).collect();
    let wanted = CatalogQuery { projects: &projects, ..CatalogQuery::default() };
    let reading = fetcher.catalog(wanted, |catalog| resolver::missing_projects(catalog, &request), now()).await;
    assert!(reading.problems.is_empty(), "{:?}", reading.problems);
    reading.catalog
}
