//! Edge (reads the network, writes the store). Downloads one file of a lock to the volume, from the operator's store or else from its source.

use std::fmt;
use std::time::Duration;

use futures::StreamExt;

use super::ErrorChain;
use crate::staging::content_store::{self, ContentStore};
use agent_api::File;
use artifacts::Hash;

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
    Store(#[from] content_store::Error),
}

fn format_attempts(attempts: &[(String, SourceError)]) -> String {
    if attempts.is_empty() {
        return "the lock has no address for it, and there is no store".to_owned();
    }
    attempts.iter().map(|(address, why)| format!("{address}: {}", ErrorChain(why))).collect::<Vec<_>>().join("; ")
}

/// Downloads files.
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
    pub fn new(store_url: &str) -> Result<Self, reqwest::Error> {
        // This fails only if a provider is already installed, which is just as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = || {
            let agent = concat!("nightshift-agent/", env!("CARGO_PKG_VERSION"));
            reqwest::Client::builder().user_agent(agent).connect_timeout(IO_TIMEOUT).no_proxy()
        };
        // An image without certificates can still use the store, which uses plain http.
        let client = builder().build().or_else(|_| builder().tls_certs_only([]).build())?;
        let store_url = store_url.trim_end_matches('/');
        Ok(Self { client, store_url: (!store_url.is_empty()).then(|| store_url.to_owned()) })
    }

    /// Downloads `file` into `store` and verifies it.
    pub async fn fetch(&self, store: &ContentStore, file: &File) -> Result<(), Error> {
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

    async fn fetch_from(&self, address: &str, store: &ContentStore, file: &File) -> Result<(), SourceError> {
        let answer = with_timeout(self.client.get(address).send()).await?.map_err(SourceError::Http)?;
        if !answer.status().is_success() {
            return Err(SourceError::Status(answer.status()));
        }
        let mut incoming = store.receive(file)?;
        let mut pieces = answer.bytes_stream();
        while let Some(piece) = with_timeout(pieces.next()).await? {
            incoming.write(&piece.map_err(SourceError::Http)?)?;
        }
        // This waits for the disk, so it does not run on the thread that answers probes.
        let stored = tokio::task::spawn_blocking(|| incoming.commit()).await;
        Ok(stored.expect("adding a file to the store does not panic")?)
    }
}

async fn with_timeout<T>(future: impl Future<Output = T>) -> Result<T, SourceError> {
    tokio::time::timeout(IO_TIMEOUT, future).await.map_err(|_| SourceError::TimedOut)
}
