//! Edge (writes). Tests builds of Purpur: listed with an md5, and with a sha256 after one is downloaded.

use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use md5::{Digest as _, Md5};
use sha2::Sha256;

use super::*;
use resolver::model::request::Request;
use resolver::model::software::{PaperName, Software};
use resolver::render::text;
use resolver::{Unsolvable, resolve};

const BOTH: [Software; 2] = [Software::Paper, Software::Purpur];

/// The bytes of a build. They are not a JAR, because no code reads them.
fn bytes_of(build: u32) -> Vec<u8> {
    format!("purpur {build}").into_bytes()
}

fn sha256_of(build: u32) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes_of(build))))
}

/// A fake PurpurMC with three builds, of which the last one failed, and a fake Fill with a Paper that names its Java.
fn upstreams(uri: &Uri, detailed: &str) -> Response {
    let path = uri.path_and_query().map_or("", |path| path.as_str());
    if let Some(build) = path.strip_prefix("/purpur/v2/purpur/26.2/").and_then(|rest| rest.strip_suffix("/download")) {
        return bytes_of(build.parse().unwrap()).into_response();
    }
    let fill = "/fill/v3/projects/paper/versions";
    let text = match path {
        "/purpur/v2/purpur" => r#"{"project":"purpur","metadata":{"current":"26.2"},"versions":["26.2"]}"#.to_owned(),
        "/purpur/v2/purpur/26.2?detailed=true" => detailed.to_owned(),
        _ if path == fill => {
            r#"{"versions":[{"version":{"id":"26.2","java":{"version":{"minimum":25}}},"builds":[]}]}"#.to_owned()
        }
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    text.into_response()
}

/// PurpurMC's response about the builds. `md5_of` is the published md5 of a build.
fn detailed(md5_of: impl Fn(u32) -> String) -> String {
    let row = |build: u32, result: &str, md5: &str| {
        format!(
            r#"{{"project":"purpur","version":"26.2","build":"{build}","result":"{result}","timestamp":1767312000000,
                "duration":1,"commits":[],"metadata":{{}},"md5":{md5}}}"#
        )
    };
    let (older, newest) = (format!("\"{}\"", md5_of(2620)), format!("\"{}\"", md5_of(2621)));
    let rows = [row(2620, "SUCCESS", &older), row(2621, "SUCCESS", &newest), row(2622, "FAILURE", "null")].join(",");
    format!(
        r#"{{"project":"purpur","version":"26.2","builds":{{"latest":{},"all":[{rows}]}}}}"#,
        row(2621, "SUCCESS", &newest)
    )
}

fn correct_md5(build: u32) -> String {
    hex::encode(Md5::digest(bytes_of(build)))
}

async fn serve(detailed: String) -> Server {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let answer = move |uri: Uri| std::future::ready(upstreams(&uri, &detailed));
    Server::start(listener, Router::new().fallback(answer))
}

fn name(build: u32) -> PaperName {
    PaperName { software: Software::Purpur, minecraft: "26.2".parse().unwrap(), build }
}

async fn read(fetcher: &Fetcher, see: &[PaperName], at: Timestamp) -> CatalogBuild {
    fetcher.catalog(CatalogQuery { software: &BOTH, builds_to_verify: see, ..CatalogQuery::default() }, none, at).await
}

fn hashes(reading: &CatalogBuild) -> Vec<(u32, String)> {
    let versions = reading.catalog.versions(Software::Purpur).iter();
    let builds = versions.flat_map(|version| &version.builds);
    builds.map(|build| (build.number, build.file.hash.clone().unwrap())).collect()
}

fn request() -> Request {
    serde_json::from_value(serde_json::json!({
        "server": "games/lobby", "software": "Purpur", "paper": {"strategy": "auto"}, "delay": "PT0S", "channel": "STABLE", "plugins": [],
    }))
    .unwrap()
}

fn downloads(server: &Server) -> Vec<String> {
    let paths = server.take_requests().into_iter().map(|(path, _, _)| path);
    paths.filter_map(|path| Some(path.strip_suffix("/download")?.rsplit('/').next()?.to_owned())).collect()
}

#[tokio::test]
async fn purpur_successful_builds_have_md5_and_java_of_paper() {
    let server = serve(detailed(correct_md5)).await;
    let dir = tempfile::tempdir().unwrap();
    let fetcher = Fetcher::new(settings(dir.path(), &server.base)).unwrap();
    let reading = read(&fetcher, &[], now()).await;
    assert_eq!(reading.problems.len(), 0, "{:?}", reading.problems);
    let announced = |build| (build, format!("md5:{}", correct_md5(build)));
    assert_eq!(hashes(&reading), [announced(2620), announced(2621)]);
    assert_eq!(reading.catalog.versions(Software::Purpur)[0].java, Some(25));
    assert_eq!(downloads(&server), [""; 0], "no build was requested");
    // Before and after five minutes, the TTL of Fill's pages too.
    let _ = read(&fetcher, &[], now() + minutes(4)).await;
    assert_eq!(server.take_requests(), []);
    let _ = read(&fetcher, &[], now() + minutes(6)).await;
    let requested: Vec<String> = server.take_requests().into_iter().map(|(path, _, _)| path).collect();
    assert!(requested.contains(&"/purpur/v2/purpur/26.2?detailed=true".to_owned()), "{requested:?}");
}

#[tokio::test]
async fn purpur_chosen_build_is_downloaded_once_and_cached_forever() {
    let server = serve(detailed(correct_md5)).await;
    let dir = tempfile::tempdir().unwrap();
    let fetcher = || Fetcher::new(settings(dir.path(), &server.base)).unwrap();
    let unverified = read(&fetcher(), &[], now()).await;
    let lacks = resolve(&unverified.catalog, &request(), now()).unwrap_err();
    assert_eq!(lacks.builds_to_verify(), [name(2621)], "the newest successful build");
    let message = text::render(&lacks.explanation(), now());
    let expected = "  Purpur 26.2 (build 2621)  its source gives only an md5, and its bytes were not downloaded yet: fetch the catalog once with network access";
    assert!(message.lines().any(|message| message == expected), "{message}");

    let verified = read(&fetcher(), lacks.builds_to_verify(), now()).await;
    assert_eq!(verified.problems.len(), 0, "{:?}", verified.problems);
    assert_eq!(downloads(&server), ["2621"]);
    assert_eq!(hashes(&verified)[1], (2621, sha256_of(2621)));
    assert!(hashes(&verified)[0].1.starts_with("md5:"), "the other build is not verified");
    let lock = resolve(&verified.catalog, &request(), now()).unwrap().lock;
    let size = u64::try_from(bytes_of(2621).len()).unwrap();
    assert_eq!((lock.paper.hash.as_str(), lock.paper.size), (sha256_of(2621).as_str(), Some(size)));
    assert_eq!((lock.java, lock.paper.name.as_str()), (25, "purpur-26.2-2621.jar"));
    let stored = dir.path().join("files/sha256").join(&sha256_of(2621)["sha256:".len()..]);
    assert_eq!(std::fs::read(stored).unwrap(), bytes_of(2621));

    let later = now() + minutes(60 * 24 * 30);
    let again = read(&fetcher(), &[name(2621)], later).await;
    let offline = read(&Fetcher::offline(dir.path()), &[], later).await;
    assert_eq!((hashes(&again), hashes(&offline)), (hashes(&verified), hashes(&verified)));
    assert_eq!(downloads(&server), [""; 0]);
}

#[tokio::test]
async fn purpur_wrong_md5_is_refused_with_both_hashes() {
    let server = serve(detailed(|_| "ab".repeat(16))).await;
    let dir = tempfile::tempdir().unwrap();
    let fetcher = Fetcher::new(settings(dir.path(), &server.base)).unwrap();
    for _ in 0..2 {
        let reading = read(&fetcher, &[name(2621)], now()).await;
        let [problem] = reading.problems.as_slice() else { panic!("{:?}", reading.problems) };
        assert_eq!((problem.subject.as_str(), problem.error.category()), ("purpur/purpur/26.2/2621", "wrong-hash"));
        let answer = resolve(&reading.catalog, &request(), now()).unwrap_err();
        assert!(matches!(answer, Unsolvable::Unanswerable(_)), "expected `Unanswerable`: {answer:?}");
        assert_eq!(answer.builds_to_verify(), [], "a refused build is not downloaded again");
        let message = text::render(&answer.explanation(), now());
        let (announced, received) = (format!("md5:{}", "ab".repeat(16)), format!("md5:{}", correct_md5(2621)));
        for part in ["Purpur 26.2 (build 2621)  could not be read: ", announced.as_str(), received.as_str()] {
            assert!(message.contains(part), "{message}");
        }
    }
    assert_eq!(downloads(&server), ["2621"], "the build is downloaded once");
    assert!(!dir.path().join("files/sha256").exists());
}

#[tokio::test]
async fn purpur_build_with_changed_md5_is_another_build() {
    let dir = tempfile::tempdir().unwrap();
    let server = serve(detailed(correct_md5)).await;
    let first = read(&Fetcher::new(settings(dir.path(), &server.base)).unwrap(), &[name(2621)], now()).await;
    assert_eq!(hashes(&first)[1], (2621, sha256_of(2621)));
    let page = dir.path().join("builds/purpur%2f26.2.msgpack");
    let mut bytes = std::fs::read(&page).unwrap();
    let at = bytes.windows(32).position(|bytes| bytes == correct_md5(2621).as_bytes()).unwrap();
    bytes[at..at + 32].copy_from_slice("cd".repeat(16).as_bytes());
    std::fs::write(&page, bytes).unwrap();
    let offline = read(&Fetcher::offline(dir.path()), &[name(2621)], now()).await;
    assert_eq!(hashes(&offline)[1], (2621, format!("md5:{}", "cd".repeat(16))));
    let [problem] = offline.problems.as_slice() else { panic!("{:?}", offline.problems) };
    let url = format!("{}/purpur/v2/purpur/26.2/2621/download", server.base);
    assert_eq!(
        problem.to_string(),
        format!("there is no stored data of `{url}`: fetch the catalog once with network access")
    );
}

#[tokio::test]
async fn purpur_invalid_page_is_reported_with_url() {
    let server = serve("<html>down for maintenance</html>".to_owned()).await;
    let dir = tempfile::tempdir().unwrap();
    let fetcher = Fetcher::new(settings(dir.path(), &server.base)).unwrap();
    let reading = read(&fetcher, &[], now()).await;
    let [problem] = reading.problems.as_slice() else { panic!("{:?}", reading.problems) };
    let message = problem.to_string();
    let url = format!("{}/purpur/v2/purpur/26.2?detailed=true", server.base);
    let start = format!("purpur/purpur/26.2: PurpurMC sent an unreadable API response at {url}: an HTML page");
    assert!(message.starts_with(&start), "{message}");
}
