//! Edge (reads the network, writes the store). Downloads one file of a lock to the volume, from the operator's store or else from its source.

use std::fmt;
use std::time::Duration;

use super::ErrorChain;
use crate::staging::volume_store::{self, VolumeStore};
use agent_api::File;
use artifacts::Hash;
use artifacts::content_store::StoreWriteError;
use artifacts::download::{ReceiveError, receive_body};
use artifacts::http_client::{ClientError, client};
use artifacts::url_for_display;
use reqwest::ClientBuilder;
use reqwest::redirect::Policy;

/// The timeout for a connection and for each pause between two chunks. The whole download may take as long as it makes progress.
const IO_TIMEOUT: Duration = Duration::from_secs(30);

/// Why a file could not be downloaded, with one reason per address.
#[derive(Debug, thiserror::Error)]
#[error("could not fetch `{path}`: {}", format_attempts(attempts))]
pub struct Error {
    path: String,
    attempts: Vec<(String, SourceError)>,
}

/// Why one address failed.
#[derive(Debug, thiserror::Error)]
enum SourceError {
    #[error("it is neither https nor the operator's store")]
    NotEncrypted,
    #[error("it answered {0}")]
    Status(reqwest::StatusCode),
    #[error("the download failed")]
    Http(#[source] reqwest::Error),
    #[error("no data arrived for {} s", IO_TIMEOUT.as_secs())]
    TimedOut,
    #[error(transparent)]
    Write(#[from] StoreWriteError),
    #[error(transparent)]
    Store(#[from] volume_store::Error),
}

impl From<reqwest::Error> for SourceError {
    fn from(error: reqwest::Error) -> Self {
        if error.is_timeout() { Self::TimedOut } else { Self::Http(error.without_url()) }
    }
}

impl From<ReceiveError> for SourceError {
    fn from(error: ReceiveError) -> Self {
        match error {
            ReceiveError::Connection(error) => error.into(),
            ReceiveError::Write(error) => error.into(),
        }
    }
}

fn format_attempts(attempts: &[(String, SourceError)]) -> String {
    if attempts.is_empty() {
        return "the lock has no address for it, and there is no store".to_owned();
    }
    attempts
        .iter()
        .map(|(address, why)| format!("{}: {}", url_for_display(address), ErrorChain(why)))
        .collect::<Vec<_>>()
        .join("; ")
}

/// Downloads files from the operator's store, whose address is in the pod template, or by https. Unlike
/// [`Downloads`](artifacts::download::Downloads) it checks no address: an admin's mirror can be private, and only the operator knows the mirrors.
#[derive(Clone)]
pub struct Fetcher {
    /// Follows redirects to https only.
    sources: reqwest::Client,
    /// Follows none.
    store: reqwest::Client,
    store_url: Option<String>,
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetcher").field("store_url", &self.store_url).finish_non_exhaustive()
    }
}

impl Fetcher {
    /// Tries `store_url` first, if it is not empty.
    pub fn new(store_url: &str) -> Result<Self, ClientError> {
        let timeouts = |builder: ClientBuilder| builder.connect_timeout(IO_TIMEOUT).read_timeout(IO_TIMEOUT).no_proxy();
        let sources = client(None, |builder| timeouts(builder).https_only(true))?;
        let store = client(None, |builder| timeouts(builder).redirect(Policy::none()))?;
        let store_url = store_url.trim_end_matches('/');
        Ok(Self { sources, store, store_url: (!store_url.is_empty()).then(|| store_url.to_owned()) })
    }

    /// Downloads `file` into `store` and verifies it.
    pub async fn fetch(&self, store: &VolumeStore, file: &File) -> Result<(), Error> {
        let mut attempts = Vec::new();
        if let Some((url, hash)) = self.store_url.as_ref().zip(Hash::parse(&file.hash.0)) {
            let address = format!("{url}/files/{}/{}", hash.algorithm().as_str(), hash.hex());
            match fetch_from(&self.store, &address, store, file).await {
                Ok(()) => return Ok(()),
                Err(why) => attempts.push((address, why)),
            }
        }
        if !file.url.is_empty() {
            match self.fetch_from_source(store, file).await {
                Ok(()) => return Ok(()),
                Err(why) => attempts.push((file.url.clone(), why)),
            }
        }
        Err(Error { path: file.path.clone(), attempts })
    }

    async fn fetch_from_source(&self, store: &VolumeStore, file: &File) -> Result<(), SourceError> {
        // The client refuses others too, also after a redirect, but with a text that names no reason.
        if !reqwest::Url::parse(&file.url).is_ok_and(|url| url.scheme() == "https") {
            return Err(SourceError::NotEncrypted);
        }
        fetch_from(&self.sources, &file.url, store, file).await
    }
}

async fn fetch_from(
    client: &reqwest::Client,
    address: &str,
    store: &VolumeStore,
    file: &File,
) -> Result<(), SourceError> {
    let response = client.get(address).send().await?;
    if !response.status().is_success() {
        return Err(SourceError::Status(response.status()));
    }
    let mut incoming = store.begin(file)?;
    receive_body(response, &mut incoming, |_| {}).await?;
    let (received, file) = (incoming.finish().await?, file.clone());
    // This waits for the disk, so it does not run on the thread that answers probes.
    let kept = tokio::task::spawn_blocking(move || volume_store::keep(&file, received)).await;
    Ok(kept.expect("adding a file to the store does not panic")?)
}

#[cfg(test)]
mod tests {
    use agent_api::FileHash;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::staging::Volume;

    fn file(url: String) -> File {
        let hash = FileHash(format!("sha256:{}", "0".repeat(64)));
        File { path: "a.jar".to_owned(), hash, size: Some(9), url, plugin: None, provides: Vec::new() }
    }

    /// The reason why a file of 9 bytes could not be fetched from a store that sends `answer` and then nothing more.
    async fn reason_after(answer: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let source = tokio::spawn(async move {
            let (mut connection, _) = listener.accept().await.unwrap();
            let mut request = [0; 1];
            connection.read_exact(&mut request).await.unwrap();
            connection.write_all(answer.as_bytes()).await.unwrap();
            std::future::pending::<()>().await;
        });
        let directory = tempfile::tempdir().unwrap();
        let store = VolumeStore::new(Volume::new(directory.path()));
        let error = Fetcher::new(&url).unwrap().fetch(&store, &file(String::new())).await.unwrap_err().to_string();
        source.abort();
        error.rsplit_once("000: ").unwrap().1.to_owned()
    }

    #[tokio::test]
    async fn failed_download_names_its_cause() {
        for (answer, reason) in [
            ("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nab", "the file is larger than 9 bytes"),
            ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nab", "the download of `a.jar` has the hash sha256:"),
            ("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", "it answered 404 Not Found"),
            ("HTTP/1.1 302 Found\r\nlocation: /b\r\ncontent-length: 0\r\n\r\n", "it answered 302 Found"),
        ] {
            let found = reason_after(answer).await;
            assert!(found.starts_with(reason), "{answer:?}: {found}");
        }
    }

    #[tokio::test]
    async fn source_without_https_gets_no_request() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let store = VolumeStore::new(Volume::new(directory.path()));
        for url in [format!("http://{address}/a.jar"), "file:///etc/passwd".to_owned(), "a.jar".to_owned()] {
            let error = Fetcher::new("").unwrap().fetch(&store, &file(url.clone())).await.unwrap_err().to_string();
            let shown = url_for_display(&url);
            assert_eq!(
                error,
                format!("could not fetch `a.jar`: {shown}: it is neither https nor the operator's store")
            );
        }
        assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    }
}
