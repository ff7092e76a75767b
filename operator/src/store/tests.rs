//! Edge (writes). Tests the store with a server in this process.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering as Atomic};

use agent_api::FileHash;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use reqwest::Url;
use sha2::{Digest, Sha256, Sha512};
use tempfile::TempDir;

use super::*;

mod facts;

/// A server with files that counts its requests.
struct Cdn {
    base: Url,
    requests: Arc<Mutex<BTreeMap<String, u32>>>,
}

impl Cdn {
    async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        let requests: Arc<Mutex<BTreeMap<String, u32>>> = Arc::default();
        let counts = Arc::clone(&requests);
        let router = Router::new().fallback(move |uri: Uri| {
            *counts.lock().unwrap().entry(uri.path().to_owned()).or_default() += 1;
            let answer = answer(&uri);
            async move { answer }
        });
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { base, requests }
    }

    fn url(&self, path: &str) -> String {
        self.base.join(path).unwrap().into()
    }

    fn requests(&self, path: &str) -> u32 {
        self.requests.lock().unwrap().get(path).copied().unwrap_or_default()
    }
}

const CONTENT: &[u8] = b"a plugin, let us say";

fn answer(uri: &Uri) -> Response {
    let to = |target: &str| (StatusCode::FOUND, [("location", target.to_owned())]).into_response();
    match uri.path() {
        "/file.jar" | "/other.jar" => CONTENT.into_response(),
        "/moved.jar" => to("/file.jar"),
        "/circle.jar" => to("/circle.jar"),
        "/metadata.jar" => to("https://169.254.169.254/latest/meta-data"),
        "/downgrade.jar" => to("http://example.org/file.jar"),
        "/neighbour.jar" => to("https://[::1]:6443/secrets"),
        "/localhost.jar" => to("https://localhost:1/secrets"),
        "/endless.jar" => {
            let chunks = futures::stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from_static(&[0; 4096])));
            Body::from_stream(chunks).into_response()
        }
        "/cut-off.jar" => ([("content-length", "4096")], Body::from_stream(cut_off())).into_response(),
        "/down.jar" => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

fn cut_off() -> impl futures::Stream<Item = Result<Bytes, std::io::Error>> {
    let parts = [Ok(Bytes::from_static(CONTENT)), Err(std::io::Error::other("gone"))];
    futures::stream::iter(parts)
}

fn sha256(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

fn file(url: impl Into<String>, hash: impl Into<String>) -> File {
    File {
        path: "plugins/x.jar".to_owned(),
        hash: FileHash(hash.into()),
        size: None,
        url: url.into(),
        plugin: None,
        provides: Vec::new(),
    }
}

struct Setup {
    cdn: Cdn,
    dir: TempDir,
    store: Arc<Store>,
}

impl Setup {
    async fn new() -> Self {
        let cdn = Cdn::start().await;
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path(), vec![cdn.base.join("some/api/v1").unwrap()]);
        Self { cdn, dir, store }
    }

    /// The error of fetching this path of the server.
    async fn fetch_error(&self, path: &str) -> FetchError {
        self.store.fetch(&file(self.cdn.url(path), sha256(CONTENT))).await.unwrap_err()
    }

    /// The number of files below the directory.
    fn on_disk(&self) -> usize {
        let folders = std::fs::read_dir(self.dir.path()).unwrap().map(|entry| entry.unwrap().path());
        folders.map(|folder| std::fs::read_dir(folder).unwrap().count()).sum()
    }
}

fn open(dir: &Path, upstreams: Vec<Url>) -> Arc<Store> {
    let policy =
        StorePolicy::new(download::DownloadPolicy { max_size: 1 << 20, ..download::DownloadPolicy::new(upstreams) });
    Arc::new(Store::new(dir, policy).unwrap())
}

#[tokio::test]
async fn concurrent_fetches_cause_one_download() {
    let setup = Setup::new().await;
    let wanted = file(setup.cdn.url("file.jar"), sha256(CONTENT));
    let paths = futures::future::join_all((0..50).map(|_| setup.store.fetch(&wanted))).await;
    for path in paths {
        assert_eq!(std::fs::read(path.unwrap()).unwrap(), CONTENT);
    }
    assert_eq!(setup.cdn.requests("/file.jar"), 1);
    let again = setup.store.fetch(&wanted).await.unwrap();
    assert!(again.starts_with(setup.dir.path().join("sha256")));
    assert_eq!(setup.cdn.requests("/file.jar"), 1);
    let Counts { downloads, hits } = setup.store.counts();
    assert_eq!(downloads, 1);
    assert!(hits >= 1);
    assert_eq!(setup.on_disk(), 1, "no unfinished file is left");
}

#[tokio::test]
async fn store_checks_all_three_hash_algorithms() {
    let setup = Setup::new().await;
    let sha512 = format!("sha512:{}", hex::encode(Sha512::digest(CONTENT)));
    let sha1 = format!("sha1:{}", hex::encode(sha1::Sha1::digest(CONTENT)));
    for (hash, folder) in [(sha256(CONTENT), "sha256"), (sha512, "sha512"), (sha1, "sha1")] {
        let path = setup.store.fetch(&file(setup.cdn.url("file.jar"), hash)).await.unwrap();
        assert!(path.starts_with(setup.dir.path().join(folder)));
    }
    for hash in ["md5:d41d8cd98f00b204e9800998ecf8427e", "", "sha256:../../../etc/passwd"] {
        let error = setup.store.fetch(&file(setup.cdn.url("file.jar"), hash)).await.unwrap_err();
        assert_eq!(error.category(), "no-hash");
    }
}

#[tokio::test]
async fn wrong_hash_is_final_and_leaves_no_file() {
    let setup = Setup::new().await;
    let announced = sha256(b"something else");
    let wanted = file(setup.cdn.url("file.jar"), announced.clone());
    for _ in 0..3 {
        let error = setup.store.fetch(&wanted).await.unwrap_err();
        assert_eq!((error.category(), error.is_retryable()), ("wrong-hash", false));
        let text = error.to_string();
        assert!(text.contains(&announced) && text.contains(&sha256(CONTENT)), "{text}");
    }
    assert_eq!(setup.cdn.requests("/file.jar"), 1, "a wrong file is not requested again");
    assert_eq!(setup.on_disk(), 0);
    setup.store.fetch(&file(setup.cdn.url("file.jar"), sha256(CONTENT))).await.unwrap();
    let elsewhere = setup.store.fetch(&file(setup.cdn.url("other.jar"), announced)).await.unwrap_err();
    assert_eq!(elsewhere.category(), "wrong-hash");
    assert_eq!(setup.cdn.requests("/other.jar"), 1, "another URL may have the right file");
}

#[tokio::test]
async fn transient_download_failure_is_retried_on_next_fetch() {
    let setup = Setup::new().await;
    for (path, category) in [("down.jar", "status"), ("missing.jar", "status"), ("cut-off.jar", "unreachable")] {
        for _ in 0..2 {
            let error = setup.fetch_error(path).await;
            assert_eq!((error.category(), error.is_retryable()), (category, true), "{error}");
        }
        assert_eq!(setup.cdn.requests(&format!("/{path}")), 2);
    }
    assert_eq!(setup.on_disk(), 0);
}

#[tokio::test]
async fn download_follows_redirects_and_checks_each_address() {
    let setup = Setup::new().await;
    setup.store.fetch(&file(setup.cdn.url("moved.jar"), sha256(CONTENT))).await.unwrap();
    let setup = Setup::new().await;
    let cases = [
        ("metadata.jar", "private-address"),
        ("neighbour.jar", "private-address"),
        ("localhost.jar", "private-address"),
        ("downgrade.jar", "not-https"),
        ("circle.jar", "redirects"),
    ];
    for (path, category) in cases {
        let error = setup.fetch_error(path).await;
        assert_eq!((error.category(), error.is_retryable()), (category, false), "{path}: {error}");
    }
    assert_eq!(setup.cdn.requests("/circle.jar"), 6);
}

#[tokio::test]
async fn plain_http_and_loopback_need_allowed_origin() {
    let setup = Setup::new().await;
    let unregistered = Cdn::start().await;
    let other_name = setup.cdn.url("file.jar").replace("127.0.0.1", "localhost");
    for url in [
        unregistered.url("file.jar"),
        other_name,
        "http://example.org/x.jar".to_owned(),
        "file:///etc/passwd".to_owned(),
        "x".to_owned(),
    ] {
        let error = setup.store.fetch(&file(url.clone(), sha256(CONTENT))).await.unwrap_err();
        assert_eq!(error.category(), "not-https", "{url}");
    }
    for url in [
        "https://127.0.0.1/x.jar",
        "https://10.1.2.3/x.jar",
        "https://[fd00::1]/x.jar",
        "https://0x7f.1/x.jar",
        "https://localhost/x.jar",
    ] {
        let error = setup.store.fetch(&file(url, sha256(CONTENT))).await.unwrap_err();
        assert_eq!(error.category(), "private-address", "{url}");
    }
    assert_eq!(unregistered.requests("/file.jar"), 0);
}

#[tokio::test]
async fn download_of_too_large_file_is_aborted() {
    let setup = Setup::new().await;
    let error = setup.fetch_error("endless.jar").await;
    assert_eq!(error.category(), "too-large", "{error}");
    let mut announced = file(setup.cdn.url("file.jar"), sha256(CONTENT));
    announced.size = Some(1 << 40);
    assert_eq!(setup.store.fetch(&announced).await.unwrap_err().category(), "too-large");
    assert_eq!(setup.cdn.requests("/file.jar"), 0);
    assert_eq!(setup.on_disk(), 0);
}

#[tokio::test]
async fn store_keeps_complete_files_across_restart() {
    let setup = Setup::new().await;
    let wanted = file(setup.cdn.url("file.jar"), sha256(CONTENT));
    let path = setup.store.fetch(&wanted).await.unwrap();
    std::fs::write(setup.dir.path().join("unfinished").join("half"), "ha").unwrap();
    let restarted = open(setup.dir.path(), Vec::new());
    assert_eq!(setup.on_disk(), 1);
    assert_eq!(restarted.fetch(&wanted).await.unwrap(), path);
    assert_eq!(restarted.counts(), Counts { downloads: 0, hits: 1 });
    assert_eq!(setup.cdn.requests("/file.jar"), 1);
}

#[tokio::test]
async fn corrupted_file_is_fetched_again() {
    let setup = Setup::new().await;
    let wanted = file(setup.cdn.url("file.jar"), sha256(CONTENT));
    let path = setup.store.fetch(&wanted).await.unwrap();
    std::fs::write(&path, "rot").unwrap();
    let restarted = open(setup.dir.path(), vec![setup.cdn.base.clone()]);
    assert_eq!(restarted.fetch(&wanted).await.unwrap(), path);
    assert_eq!(std::fs::read(&path).unwrap(), CONTENT);
    std::fs::remove_file(&path).unwrap();
    restarted.fetch(&wanted).await.unwrap();
    assert_eq!(setup.cdn.requests("/file.jar"), 3, "a removed file is downloaded again");
}

#[tokio::test]
async fn store_stays_within_size_limit() {
    let setup = Setup::new().await;
    let policy =
        StorePolicy { max_bytes: 0, ..StorePolicy::new(download::DownloadPolicy::new(vec![setup.cdn.base.clone()])) };
    let store = Store::new(setup.dir.path(), policy).unwrap();
    let sha1 = format!("sha1:{}", hex::encode(sha1::Sha1::digest(CONTENT)));
    let first = store.fetch(&file(setup.cdn.url("file.jar"), sha256(CONTENT))).await.unwrap();
    let second = store.fetch(&file(setup.cdn.url("file.jar"), sha1)).await.unwrap();
    assert_eq!((first.exists(), second.exists()), (false, true));
    store.fetch(&file(setup.cdn.url("file.jar"), sha256(CONTENT))).await.unwrap();
    assert_eq!((first.exists(), second.exists()), (true, false), "an evicted file is downloaded again");
}

/// Serves the store over HTTP.
async fn serve_http(store: &Arc<Store>) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/files", listener.local_addr().unwrap());
    tokio::spawn(artifacts::http_server::serve(listener, store.serve(), LIMITS));
    base
}

async fn get(url: String) -> (u16, Option<u64>, Vec<u8>) {
    let client = artifacts::http_client::client(None, |builder| builder).unwrap();
    let response = client.get(url).send().await.unwrap();
    (response.status().as_u16(), response.content_length(), response.bytes().await.unwrap().to_vec())
}

#[tokio::test]
async fn store_serves_only_files_named_by_locks() {
    let setup = Setup::new().await;
    let base = serve_http(&setup.store).await;
    let hash = sha256(CONTENT).replace(':', "/");
    let length = CONTENT.len() as u64;
    assert_eq!(get(format!("{base}/{hash}")).await.0, 404, "no lock names it");
    assert_eq!(setup.cdn.requests("/file.jar"), 0);
    setup.store.register([&file(setup.cdn.url("file.jar"), sha256(CONTENT))]);
    for _ in 0..2 {
        assert_eq!(get(format!("{base}/{hash}")).await, (200, Some(length), CONTENT.to_vec()));
    }
    assert_eq!(setup.cdn.requests("/file.jar"), 1);
    let upper = hash.to_uppercase().replace("SHA256", "sha256");
    assert_eq!(get(format!("{base}/{upper}")).await.0, 200);
    let restarted = serve_http(&open(setup.dir.path(), Vec::new())).await;
    assert_eq!(
        get(format!("{restarted}/{hash}")).await,
        (200, Some(length), CONTENT.to_vec()),
        "stored files need no lock"
    );
    for bad in ["sha256/..%2f..%2fetc%2fpasswd", "md5/00", "unfinished/x", &format!("sha1/{}", "0".repeat(40))] {
        assert_eq!(get(format!("{base}/{bad}")).await.0, 404, "{bad}");
    }
}

#[tokio::test]
async fn store_error_tells_agent_why_download_failed() {
    let setup = Setup::new().await;
    let base = serve_http(&setup.store).await;
    setup.store.register([&file(setup.cdn.url("down.jar"), sha256(CONTENT))]);
    let (status, _, body) = get(format!("{base}/{}", sha256(CONTENT).replace(':', "/"))).await;
    let refusal: agent_api::RequestRefusal = serde_json::from_slice(&body).unwrap();
    assert_eq!(status, 502);
    assert!(refusal.error.contains("down.jar") && refusal.error.contains("503"), "{}", refusal.error);
}

#[tokio::test]
async fn cancelled_fetch_does_not_block_others() {
    let setup = Setup::new().await;
    let wanted = file(setup.cdn.url("file.jar"), sha256(CONTENT));
    let polled = AtomicU32::new(0);
    {
        // Polled once, then dropped in the middle of the download.
        let mut first = Box::pin(setup.store.fetch(&wanted));
        let _ = futures::poll!(first.as_mut());
        polled.fetch_add(1, Atomic::Relaxed);
    }
    assert_eq!(polled.into_inner(), 1);
    setup.store.fetch(&wanted).await.unwrap();
    assert!(setup.store.state().in_flight.is_empty());
}
