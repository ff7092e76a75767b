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
        if error.is_timeout() { Self::TimedOut } else { Self::Http(error) }
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
    attempts.iter().map(|(address, why)| format!("{address}: {}", ErrorChain(why))).collect::<Vec<_>>().join("; ")
}

/// Downloads files. Unlike [`Downloads`](artifacts::download::Downloads) it checks no address: an admin's mirror can be private, and only the
/// operator knows the mirrors.
#[derive(Clone)]
pub struct Fetcher {
    client: reqwest::Client,
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
        let client = client(None, |builder| builder.connect_timeout(IO_TIMEOUT).read_timeout(IO_TIMEOUT).no_proxy())?;
        let store_url = store_url.trim_end_matches('/');
        Ok(Self { client, store_url: (!store_url.is_empty()).then(|| store_url.to_owned()) })
    }

    /// Downloads `file` into `store` and verifies it.
    pub async fn fetch(&self, store: &VolumeStore, file: &File) -> Result<(), Error> {
        let in_store = self.store_url.as_ref().zip(Hash::parse(&file.hash.0));
        let in_store = in_store.map(|(url, hash)| format!("{url}/files/{}/{}", hash.algorithm().as_str(), hash.hex()));
        let source = (!file.url.is_empty()).then(|| file.url.clone());
        let mut attempts = Vec::new();
        for address in in_store.into_iter().chain(source) {
            match self.fetch_from(&address, store, file).await {
                Ok(()) => return Ok(()),
                Err(why) => attempts.push((address, why)),
            }
        }
        Err(Error { path: file.path.clone(), attempts })
    }

    async fn fetch_from(&self, address: &str, store: &VolumeStore, file: &File) -> Result<(), SourceError> {
        let response = self.client.get(address).send().await?;
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
}

#[cfg(test)]
mod tests {
    use agent_api::FileHash;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::staging::Volume;

    /// The reason why a file of 9 bytes could not be fetched from a source that sends `answer` and then nothing more.
    async fn reason_after(answer: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/a.jar", listener.local_addr().unwrap());
        let source = tokio::spawn(async move {
            let (mut connection, _) = listener.accept().await.unwrap();
            let mut request = [0; 1];
            connection.read_exact(&mut request).await.unwrap();
            connection.write_all(answer.as_bytes()).await.unwrap();
            std::future::pending::<()>().await;
        });
        let directory = tempfile::tempdir().unwrap();
        let store = VolumeStore::new(Volume::new(directory.path()));
        let hash = FileHash(format!("sha256:{}", "0".repeat(64)));
        let file = File { path: "a.jar".to_owned(), hash, size: Some(9), url, plugin: None, provides: Vec::new() };
        let error = Fetcher::new("").unwrap().fetch(&store, &file).await.unwrap_err().to_string();
        source.abort();
        error.rsplit_once("/a.jar: ").unwrap().1.to_owned()
    }

    #[tokio::test]
    async fn failed_download_names_its_cause() {
        for (answer, reason) in [
            ("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nab", "the file is larger than 9 bytes"),
            ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nab", "the download of `a.jar` has the hash sha256:"),
            ("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", "it answered 404 Not Found"),
        ] {
            let found = reason_after(answer).await;
            assert!(found.starts_with(reason), "{answer:?}: {found}");
        }
    }
}
