//! Edge (reads). Tests the lookup of an unmanaged JAR: one request per file, and the project's page is read too.

use serde_json::Value;
use sha2::{Digest as _, Sha256, Sha512};

use super::*;
use resolver::model::software::Software;
use resolver::model::unmanaged_jar::UnmanagedJar;

fn jar(file: &str, bytes: &[u8]) -> UnmanagedJar {
    UnmanagedJar {
        file: file.to_owned(),
        sha256: Some(hex::encode(Sha256::digest(bytes))),
        sha512: Some(hex::encode(Sha512::digest(bytes))),
        name: None,
        provides: Vec::new(),
        api_version: None,
        depend: Vec::new(),
        java: None,
        trusted: Vec::new(),
    }
}

/// The bytes of the file that `pointer` names in the response at `path`.
async fn file(replay: &Replay, path: &str, pointer: &str) -> Vec<u8> {
    let client = artifacts::http_client::client(None, |builder| builder).unwrap();
    let get =
        async |url: String| client.get(url).send().await.unwrap().error_for_status().unwrap().bytes().await.unwrap();
    let answer: Value = serde_json::from_slice(&get(format!("{}{path}", replay.server.base)).await).unwrap();
    get(answer.pointer(pointer).unwrap().as_str().unwrap().to_owned()).await.into()
}

#[tokio::test]
async fn unmanaged_jar_is_looked_up_once_by_hash() {
    let replay = Replay::start().await;
    let fetcher = replay.fetcher();
    let of_modrinth = file(&replay, "/modrinth/v2/project/griefprevention/version/16.18.5", "/files/0/url").await;
    let of_hangar =
        file(&replay, "/hangar/api/v1/projects/Multiverse-Core/versions/4.3.12", "/downloads/PAPER/downloadUrl").await;
    let jars = [jar("gp.jar", &of_modrinth), jar("mv.jar", &of_hangar), jar("shop.jar", b"nobody's")];
    let sha256 = |at: usize| jars[at].sha256.as_deref().unwrap();
    let oldest = "99.0".parse().unwrap();
    let wanted = CatalogQuery { unmanaged: &jars, oldest: Some(&oldest), ..CatalogQuery::default() };
    replay.server.take_requests();
    let reading = fetcher.catalog(wanted, none, now()).await;
    assert!(reading.problems.is_empty(), "{:?}", reading.problems);
    let release =
        |at| reading.catalog.release_of_file(Software::Paper, sha256(at)).map(|(_, release)| release.version.as_str());
    assert_eq!((release(0), release(1), release(2)), (Some("16.18.5"), Some("4.3.12"), None));
    let count_requests =
        |requests: &[Seen], part: &str| requests.iter().filter(|(path, ..)| path.contains(part)).count();
    let requests = replay.server.take_requests();
    assert_eq!(
        (count_requests(&requests, "/version_files"), count_requests(&requests, "/versions/hash/")),
        (3, 2),
        "{requests:?}"
    );

    // Known owners do not change. An unknown file may have been published since yesterday.
    let later = now() + SignedDuration::from_hours(23);
    let again = replay.fetcher().catalog(wanted, none, later).await;
    assert_eq!(again.catalog.owners, reading.catalog.owners);
    let requests = replay.server.take_requests();
    assert_eq!(
        (count_requests(&requests, "/version_files"), count_requests(&requests, "/versions/hash/")),
        (0, 0),
        "{requests:?}"
    );
    let tomorrow = fetcher.catalog(wanted, none, now() + SignedDuration::from_hours(25)).await;
    assert_eq!(tomorrow.catalog.owners, reading.catalog.owners);
    let requests = replay.server.take_requests();
    assert_eq!(
        (count_requests(&requests, "/version_files"), count_requests(&requests, "/versions/hash/")),
        (1, 1),
        "{requests:?}"
    );
    let offline = Fetcher::offline(replay.dir.path()).catalog(wanted, none, later).await;
    assert_eq!(offline.catalog.owners, reading.catalog.owners);
}

#[tokio::test]
async fn unmanaged_jar_owner_is_unknown_during_outage_and_retried() {
    let replay = Replay::start().await;
    let fetcher = replay.fetcher();
    let bytes = file(&replay, "/modrinth/v2/project/griefprevention/version/16.18.5", "/files/0/url").await;
    let jars = [jar("gp.jar", &bytes)];
    let oldest = "99.0".parse().unwrap();
    let wanted = CatalogQuery { unmanaged: &jars, oldest: Some(&oldest), ..CatalogQuery::default() };
    replay.fail(Played::Modrinth, Failure::Status(503));
    assert!(fetcher.catalog(wanted, none, now()).await.catalog.owners.is_empty());
    replay.state.fail(Played::Modrinth, None);
    assert_eq!(fetcher.catalog(wanted, none, now() + minutes(1)).await.catalog.owners.len(), 1);
}
