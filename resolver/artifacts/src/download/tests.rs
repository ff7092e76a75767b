//! Edge (writes). Tests downloads from a source whose name server is hostile.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use reqwest::dns::{Name, Resolving};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::public_address::keep_public;
use super::*;

/// An address that counts as public, and that no network routes (the former 6bone).
const PUBLIC: &str = "[3ffe::1]:0";
const PRIVATE: &str = "127.0.0.1:0";

/// A name server that gives these answers in turn.
#[derive(Clone)]
struct HostileNameServer {
    answers: Arc<Vec<Vec<SocketAddr>>>,
    lookups: Arc<AtomicUsize>,
}

impl HostileNameServer {
    fn new(answers: &[&[&str]]) -> Self {
        let answers = answers.iter().map(|answer| answer.iter().map(|address| address.parse().unwrap()).collect());
        Self { answers: Arc::new(answers.collect()), lookups: Arc::default() }
    }
}

impl Resolve for HostileNameServer {
    fn resolve(&self, name: Name) -> Resolving {
        let number = self.lookups.fetch_add(1, Ordering::Relaxed);
        let found = keep_public(name.as_str(), self.answers[number].clone().into_iter());
        Box::pin(async { Ok(found?) })
    }
}

/// A service in the private network that counts its connections.
async fn private_service() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind(PRIVATE).await.unwrap();
    let (port, connections) = (listener.local_addr().unwrap().port(), Arc::new(AtomicUsize::new(0)));
    let counter = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counter.fetch_add(1, Ordering::Relaxed);
            drop(stream);
        }
    });
    (port, connections)
}

/// An upstream that redirects each request to `target`.
async fn redirecting_upstream(target: String) -> Url {
    let listener = TcpListener::bind(PRIVATE).await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let answer =
                format!("HTTP/1.1 302 Found\r\nlocation: {target}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    url
}

#[tokio::test]
async fn rebinding_name_never_leads_to_private_address() {
    let (port, connections) = private_service().await;
    let target = format!("https://rebinding.example:{port}/plugin.jar");
    let upstream = redirecting_upstream(target.clone()).await;
    let folder = tempfile::tempdir().unwrap();
    let store = ContentStore::new(folder.path());
    store.create().unwrap();
    // Public for the check and private for the connection, both at once, and private after a redirect.
    let names = HostileNameServer::new(&[&[PUBLIC], &[PRIVATE], &[PRIVATE, PUBLIC], &[PRIVATE]]);
    let policy = DownloadPolicy::new(vec![upstream.clone()]);
    let downloads = Downloads::with_resolver(store, policy, &names).unwrap();
    let hash = Hash::parse(&format!("sha256:{}", "0f".repeat(32))).unwrap();
    let mut found = Vec::new();
    for url in [target.as_str(), target.as_str(), target.as_str(), upstream.as_str()] {
        found.push(downloads.get(url, None, &hash).await.unwrap_err().category());
    }
    assert_eq!(found, ["unreachable", "private-address", "unreachable", "private-address"]);
    assert_eq!(names.lookups.load(Ordering::Relaxed), 4, "the checked addresses are used, without another lookup");
    assert_eq!(connections.load(Ordering::Relaxed), 0);
}
