//! Edge (reads). Tests responses that no recording contains: too large, odd hashes, withheld pages, redirects.

use axum::body::Body;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};

use super::*;

/// A server with the given responses by path and query, and 404 for all others.
async fn canned(
    answer: impl Fn(&Uri) -> Option<Response> + Clone + Send + Sync + 'static,
) -> (Server, TempDir, Fetcher) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let router = Router::new().fallback(move |uri: Uri| {
        let response = answer(&uri).unwrap_or_else(|| StatusCode::NOT_FOUND.into_response());
        async move { response }
    });
    let server = Server::start(listener, router);
    let dir = tempfile::tempdir().unwrap();
    let fetcher = Fetcher::new(settings(dir.path(), &server.base)).unwrap();
    (server, dir, fetcher)
}

fn text(body: impl Into<String>) -> Response {
    body.into().into_response()
}

/// Category of the error with this subject.
fn category(reading: &CatalogBuild, subject: &str) -> &'static str {
    reading.problems.iter().find(|problem| problem.subject == subject).unwrap().error.category()
}

const PROJECT: &str = r#"{"id":"AAAAAAAA","slug":"odd","title":"Odd","new_field":[1]}"#;

#[tokio::test]
async fn endless_body_is_cut_off() {
    let (_server, _dir, fetcher) = canned(|uri| match uri.path() {
        "/modrinth/v2/project/odd" => {
            let endless = futures::stream::repeat_with(|| Ok::<_, std::io::Error>(vec![b' '; 1 << 20]));
            Some(Body::from_stream(endless).into_response())
        }
        _ => None,
    })
    .await;
    let reading = projects(&fetcher, &["modrinth/odd"], now()).await;
    assert_eq!(category(&reading, "modrinth/odd"), "too-large");
}

#[tokio::test]
async fn body_with_oversized_length_header_is_not_read() {
    let (_server, _dir, fetcher) = canned(|uri| match uri.path() {
        "/modrinth/v2/project/odd" => Some(
            (
                [("content-length", "99999999999")],
                Body::from_stream(futures::stream::pending::<Result<Vec<u8>, std::io::Error>>()),
            )
                .into_response(),
        ),
        _ => None,
    })
    .await;
    let reading = projects(&fetcher, &["modrinth/odd"], now()).await;
    assert_eq!(category(&reading, "modrinth/odd"), "too-large");
}

#[tokio::test]
async fn modrinth_unknown_words_and_odd_files_are_tolerated() {
    let sha512 = "cd".repeat(64);
    let list = format!(
        r#"[{{"id":"R1","version_number":"1","version_type":"nightly","date_published":"2026-01-01T00:00:00Z",
             "game_versions":["1.21.10","26.1-snapshot-1","1.8","not a version\u0007"],"loaders":["Paper","brand-new"],
             "files":[{{"url":"https://x/sources.jar","filename":"sources.jar","hashes":{{}}}},
                      {{"url":"https://x/r1.jar","filename":"r1.jar","primary":true,"size":3,"hashes":{{"sha1":"00","sha512":"{sha512}"}}}}],
             "dependencies":[{{"project_id":"P","version_id":null,"file_name":null,"dependency_type":"haunted"}},
                             {{"project_id":null,"version_id":null,"file_name":"other.jar","dependency_type":"required"}}]}},
            {{"id":"R2","version_number":"2","version_type":"release","date_published":"2026-01-02T00:00:00Z",
             "files":[{{"url":"https://x/a.jar","filename":"a.jar","hashes":{{"sha512":"short"}}}},
                      {{"url":"https://x/b.jar","filename":"b.jar","hashes":{{}}}}]}},
            {{"id":"R3","version_number":"3","version_type":"beta","date_published":"2026-01-02T00:00:00Z","files":[]}}]"#
    );
    let (_server, _dir, fetcher) = canned(move |uri| match uri.path() {
        "/modrinth/v2/project/odd" => Some(text(PROJECT)),
        "/modrinth/v2/project/AAAAAAAA/version" => Some(text(list.clone())),
        _ => None,
    })
    .await;
    let reading = projects(&fetcher, &["modrinth/odd"], now()).await;
    let odd = project(&reading, "modrinth/odd");
    let ids: Vec<_> = odd.releases.iter().map(|release| release.id.as_str()).collect();
    assert_eq!(ids, ["R3", "R2", "R1"], "sorted by date, then by version");
    let first = &odd.releases[2];
    assert_eq!(first.channel, resolver::model::catalog::Channel::Alpha);
    let listed: Vec<_> = first.minecraft.iter().map(resolver::model::version::Minecraft::as_str).collect();
    assert_eq!(listed, ["1.8", "1.21.10", "26.1-snapshot-1"]);
    assert_eq!(first.loaders, ["brand-new", "paper"]);
    let file = first.file.as_ref().unwrap();
    assert_eq!(
        (file.name.as_str(), file.hash.clone()),
        ("r1.jar", Some(format!("sha512:{sha512}"))),
        "the primary file is the main file"
    );
    assert_eq!(first.further, [], "a JAR with sources is left out");
    let [need] = &first.dependencies[..] else { panic!("{:?}", first.dependencies) };
    assert_eq!((need.project_id.as_deref(), need.name.as_deref()), (None, Some("other.jar")));
    let second = odd.releases[1].file.as_ref().unwrap();
    assert_eq!((second.name.as_str(), &second.hash), ("a.jar", &None), "the first file, without its invalid hash");
    assert_eq!(odd.releases[0].file, None);
}

#[tokio::test]
async fn missing_list_of_existing_project_is_retried_as_upstream_fault() {
    let (server, _dir, fetcher) = canned(|uri| match uri.path() {
        "/modrinth/v2/project/odd" => Some(text(PROJECT)),
        _ => None,
    })
    .await;
    let reading = projects(&fetcher, &["modrinth/odd"], now()).await;
    let problem = reading.problems.iter().find(|problem| problem.subject == "modrinth/odd").unwrap();
    assert_eq!((problem.error.category(), problem.error.blame()), ("status", crate::Blame::Upstream), "{problem}");
    assert!(reading.catalog.unread_reason(&key("modrinth/odd")).unwrap().contains("404"));
    let lists = server.take_requests().into_iter().filter(|(path, ..)| path.contains("/version?"));
    assert_eq!(lists.count(), 2, "all tries are used");
}

#[tokio::test]
async fn unreadable_entry_costs_one_release_and_is_named() {
    for (field, value) in [
        ("dependencies", "null"),
        ("game_versions", "null"),
        ("files", r#"[{"url":"https://x/a.jar","filename":null}]"#),
        ("date_published", r#""yesterday""#),
        ("version_type", "null"),
    ] {
        let row = |version: &str, odd: bool| {
            let mut row = serde_json::json!({"id": version, "version_number": version, "version_type": "release",
                "date_published": "2026-01-01T00:00:00Z", "files": []});
            if odd {
                row[field] = serde_json::from_str(value).unwrap();
            }
            row
        };
        let list = serde_json::json!([row("1.6", false), row("0.9", true), row("1.5", false)]).to_string();
        let (_server, _dir, fetcher) = canned(move |uri| match uri.path() {
            "/modrinth/v2/project/odd" => Some(text(PROJECT)),
            "/modrinth/v2/project/AAAAAAAA/version" => Some(text(list.clone())),
            _ => None,
        })
        .await;
        let reading = projects(&fetcher, &["modrinth/odd"], now()).await;
        let versions: Vec<_> =
            project(&reading, "modrinth/odd").releases.iter().map(|release| release.version.as_str()).collect();
        assert_eq!(versions, ["1.6", "1.5"], "{field}");
        let because = &reading.catalog.unread["modrinth/odd/0.9"];
        assert!(because.contains(field), "{because}");
        // The stored page has the note, too.
        let again = projects(&fetcher, &["modrinth/odd"], now() + minutes(1)).await;
        assert_eq!(again.catalog.unread.get("modrinth/odd/0.9"), Some(because));
    }
}

#[tokio::test]
async fn hangar_unreadable_entry_costs_one_release_and_is_named() {
    for (field, value) in [
        ("pluginDependencies", "null"),
        ("channel", "null"),
        ("createdAt", "null"),
        ("id", r#""seven""#),
        ("downloads", r#"{"PAPER":{"fileInfo":{"name":"a.jar","sizeBytes":"7"},"downloadUrl":"https://x/a.jar"}}"#),
    ] {
        let row = |id: u32, version: &str, odd: bool| {
            let mut row = serde_json::json!({"id": id, "name": version, "createdAt": "2026-01-01T00:00:00Z",
                "downloads": {"PAPER": {}}});
            if odd {
                row[field] = serde_json::from_str(value).unwrap();
            }
            row
        };
        let list = serde_json::json!({"pagination": {"limit": 25, "count": 3},
            "result": [row(3, "1.6", false), row(2, "0.9", true), row(1, "1.5", false)]})
        .to_string();
        let (_server, _dir, fetcher) = canned(move |uri| match uri.path() {
            "/hangar/api/v1/projects/odd" => {
                Some(text(r#"{"id":7,"name":"Odd","namespace":{"owner":"o","slug":"odd"}}"#))
            }
            "/hangar/api/v1/projects/7/versions" => Some(text(list.clone())),
            _ => None,
        })
        .await;
        // The second time, the first page is merged into the stored list.
        for at in [0, 11] {
            let reading = projects(&fetcher, &["hangar/odd"], now() + minutes(at)).await;
            let versions: Vec<_> =
                project(&reading, "hangar/odd").releases.iter().map(|release| release.version.as_str()).collect();
            assert_eq!(versions, ["1.6", "1.5"], "{field}");
            let because = &reading.catalog.unread["hangar/odd/0.9"];
            assert!(because.contains(field), "{because}");
        }
    }
}

#[tokio::test]
async fn list_without_readable_entry_is_no_empty_project() {
    let (_server, _dir, fetcher) = canned(|uri| match uri.path() {
        "/modrinth/v2/project/odd" => Some(text(PROJECT)),
        "/modrinth/v2/project/AAAAAAAA/version" => Some(text(r#"[{"id":1}]"#)),
        "/hangar/api/v1/projects/odd" => Some(text(r#"{"id":7,"name":"Odd","namespace":{"owner":"o","slug":"odd"}}"#)),
        "/hangar/api/v1/projects/7/versions" => {
            Some(text(r#"{"pagination":{"limit":25,"count":1},"result":[{"id":1}]}"#))
        }
        _ => None,
    })
    .await;
    let reading = projects(&fetcher, &["modrinth/odd", "hangar/odd"], now()).await;
    assert_eq!((category(&reading, "modrinth/odd"), category(&reading, "hangar/odd")), ("hollow", "hollow"));
}

#[tokio::test]
async fn renamed_project_is_found_by_old_name() {
    let (_server, _dir, fetcher) = canned(|uri| match uri.path() {
        "/modrinth/v2/project/old-name" => Some(text(PROJECT)),
        "/modrinth/v2/project/AAAAAAAA/version" => Some(text("[]")),
        _ => None,
    })
    .await;
    let reading = projects(&fetcher, &["modrinth/old-name"], now()).await;
    assert_eq!(project(&reading, "modrinth/old-name").id, "AAAAAAAA");
}

#[tokio::test]
async fn empty_paper_version_list_does_not_replace_real_one() {
    let (_server, _dir, fetcher) = canned(|uri| match uri.path() {
        "/fill/v3/projects/paper/versions" => Some(text(r#"{"versions":[]}"#)),
        _ => None,
    })
    .await;
    let reading = projects(&fetcher, &[], now()).await;
    assert_eq!(reading.problems[0].error.category(), "hollow");
}

#[tokio::test]
async fn version_with_unreadable_builds_spares_others() {
    let (_server, _dir, fetcher) = canned(|uri| match uri.path() {
        "/fill/v3/projects/paper/versions" => Some(text(
            r#"{"versions":[{"version":{"id":"1.21.10"},"builds":[1]},{"version":{"id":"1.21.9"},"builds":[1]}]}"#,
        )),
        "/fill/v3/projects/paper/versions/1.21.9/builds" => Some(text("[]")),
        "/fill/v3/projects/paper/versions/1.21.10/builds" => Some(StatusCode::INTERNAL_SERVER_ERROR.into_response()),
        _ => None,
    })
    .await;
    let reading = fetcher.catalog(CatalogQuery::default(), none, now()).await;
    assert_eq!(reading.catalog.paper.len(), 2);
    let unread: Vec<_> = reading.catalog.unread.keys().collect();
    assert_eq!(unread, ["fill/paper/1.21.10"]);
}

#[tokio::test]
async fn docker_hub_page_limit_is_no_error() {
    let digest = format!("sha256:{}", "ab".repeat(32));
    let (_server, _dir, fetcher) = canned(move |uri| {
        let page = |tag: &str| {
            text(format!(
                r#"{{"count":900,"next":"x","results":[{{"name":"{tag}","digest":"{digest}","tag_last_pushed":"2026-01-01T00:00:00Z"}},
                    {{"name":"2020.1.0-java8","last_updated":"2020-01-01T00:00:00Z"}}]}}"#
            ))
        };
        match uri.query()? {
            query if query.contains("&page=1&") => Some(page("2026.1.0-java21")),
            _ => Some((StatusCode::FORBIDDEN, r#"{"message":"pagination offset too large"}"#).into_response()),
        }
    })
    .await;
    let wanted = CatalogQuery { images: Some("itzg/minecraft-server"), ..CatalogQuery::default() };
    let reading = fetcher.catalog(wanted, none, now()).await;
    let tags: Vec<_> = reading.catalog.images.iter().map(|tag| tag.tag.as_str()).collect();
    assert_eq!(tags, ["2026.1.0-java21"], "a tag without a digest cannot be pinned");
    assert!(!reading.catalog.unread.contains_key("docker.io/itzg/minecraft-server"));
}

#[tokio::test]
async fn circular_redirect_ends_with_error() {
    let (server, _dir, fetcher) = canned(|uri| match uri.path() {
        "/modrinth/v2/project/odd" => {
            Some((StatusCode::FOUND, [("location", "/modrinth/v2/project/odd")]).into_response())
        }
        _ => None,
    })
    .await;
    let reading = projects(&fetcher, &["modrinth/odd"], now()).await;
    assert_eq!(category(&reading, "modrinth/odd"), "status");
    assert!(server.take_requests().len() < 10);
}
