//! Edge (reads). Tests builds of software other than Paper: read from their own projects and stored separately.

use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};

use super::*;
use resolver::model::software::Software;

/// A fake Fill, where Paper and Velocity have a version of the same name.
fn fill(uri: &Uri) -> Response {
    let build = |project: &str, number: u32| {
        let sha256 = format!("{number:064}");
        format!(
            r#"[{{"id":{number},"time":"2026-01-02T00:00:00Z","channel":"STABLE","downloads":{{"server:default":
                {{"name":"{project}-{number}.jar","url":"https://x/{project}.jar","size":7,"checksums":{{"sha256":"{sha256}"}}}}}}}}]"#
        )
    };
    let versions = |build: u32| format!(r#"{{"versions":[{{"version":{{"id":"3.4.0"}},"builds":[{build}]}}]}}"#);
    match uri.path() {
        "/fill/v3/projects/paper/versions" => versions(1).into_response(),
        "/fill/v3/projects/velocity/versions" => versions(566).into_response(),
        "/fill/v3/projects/paper/versions/3.4.0/builds" => build("paper", 1).into_response(),
        "/fill/v3/projects/velocity/versions/3.4.0/builds" => build("velocity", 566).into_response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

#[tokio::test]
async fn software_builds_stay_separate_for_equal_version_names() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = Server::start(listener, Router::new().fallback(|uri: Uri| async move { fill(&uri) }));
    let dir = tempfile::tempdir().unwrap();
    let online = Fetcher::new(settings(dir.path(), &server.base)).unwrap();
    let newest = "99.0".parse().unwrap();
    let wanted = CatalogQuery { software: &[Software::Paper, Software::Velocity], ..CatalogQuery::default() };
    let names = |reading: &CatalogBuild, software: Software| -> Vec<String> {
        let versions = reading.catalog.versions(software).iter();
        versions.flat_map(|version| &version.builds).map(|build| build.file.name.clone()).collect()
    };
    let read = online.catalog(wanted, none, now()).await;
    assert_eq!(names(&read, Software::Paper), ["paper-1.jar"]);
    assert_eq!(names(&read, Software::Velocity), ["velocity-566.jar"]);
    assert_eq!(names(&read, Software::Folia), [""; 0]);
    // Stored pages of one software are not used for the other. The oldest Minecraft does not limit a proxy.
    let bounded = CatalogQuery { oldest: Some(&newest), ..wanted };
    let stored = Fetcher::offline(dir.path()).catalog(bounded, none, now()).await;
    assert_eq!(
        (names(&stored, Software::Paper), names(&stored, Software::Velocity)),
        (vec![], vec!["velocity-566.jar".to_owned()])
    );
    let folia = CatalogQuery { software: &[Software::Folia], ..CatalogQuery::default() };
    let reading = online.catalog(folia, none, now()).await;
    assert_eq!(reading.problems.iter().map(|problem| problem.subject.as_str()).collect::<Vec<_>>(), ["fill/folia"]);
}
