//! Edge (writes). Downloads files: checks the allowed URLs, the maximum size, and the announced hash.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use md5::{Digest, Md5};
use reqwest::dns::Resolve;
use reqwest::header::LOCATION;
use reqwest::redirect;
use reqwest::{Client, Response, Url};

use crate::content_store::{CompleteFile, ContentStore, IncomingContent, StoreWriteError};
use crate::http_client::{ClientError, client};
use crate::{Algorithm, Hash};

mod error;
mod public_address;

pub use error::{DownloadError, ReceiveError};
pub use public_address::{NotPublic, PublicOnly, is_private_host};

/// Limit of redirects, each checked like the first URL. CDNs of the known sources use one or two.
const MAX_REDIRECTS: usize = 5;

/// A download without a byte for this long is aborted.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// For a complete download: 512 MiB at half a megabyte per second.
const TOTAL_TIMEOUT: Duration = Duration::from_mins(17);

/// The rules for downloads.
#[derive(Debug, Clone)]
pub struct DownloadPolicy {
    /// The configured upstreams. URLs with the origin (scheme, host, port) of one of them are allowed, including plain
    /// http and private addresses, because an admin configured them.
    pub upstreams: Vec<Url>,
    /// The maximum file size, in bytes.
    pub max_size: u64,
    /// An email address or page of the operator's admin, for the `User-Agent`.
    pub contact: Option<String>,
}

impl DownloadPolicy {
    /// The default policy: 512 MiB per file. The largest known plugins have 100 MB, Paper and Mojang's JAR 50.
    pub fn new(upstreams: Vec<Url>) -> Self {
        Self { upstreams, max_size: 512 << 20, contact: None }
    }
}

/// Downloads files to a store.
pub struct Downloads {
    store: ContentStore,
    policy: DownloadPolicy,
    /// For the public Internet.
    public: Client,
    /// For URLs that an admin configured.
    trusted: Client,
    /// Announced hashes and URLs whose content does not match. Another download would give the same content.
    mismatched: Mutex<BTreeMap<(String, String), DownloadError>>,
}

impl fmt::Debug for Downloads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Downloads").field("store", &self.store).finish_non_exhaustive()
    }
}

impl Downloads {
    /// Downloads to `store`.
    pub fn new(store: ContentStore, policy: DownloadPolicy) -> Result<Self, ClientError> {
        Self::with_resolver(store, policy, &PublicOnly)
    }

    /// Public addresses are those that `resolver` returns.
    fn with_resolver(
        store: ContentStore,
        policy: DownloadPolicy,
        resolver: &(impl Resolve + Clone + 'static),
    ) -> Result<Self, ClientError> {
        let client = |public: bool| {
            client(policy.contact.as_deref(), |builder| {
                // Redirects are followed manually, so that each URL is checked.
                let builder =
                    builder.redirect(redirect::Policy::none()).read_timeout(IDLE_TIMEOUT).timeout(TOTAL_TIMEOUT);
                // A proxy would resolve names itself, and the resulting addresses would not be checked.
                if public { builder.dns_resolver(resolver.clone()).https_only(true).no_proxy() } else { builder }
            })
        };
        let (public, trusted) = (client(true)?, client(false)?);
        Ok(Self { store, policy, public, trusted, mismatched: Mutex::default() })
    }

    /// Downloads `url`. The file gets its name (its hash) when it is complete, matches `hash` and is on the disk.
    /// Returns its size in bytes. An existing file is replaced. A wrong hash is remembered until the process ends.
    pub async fn get(&self, url: &str, size: Option<u64>, hash: &Hash) -> Result<u64, DownloadError> {
        self.skip_known_mismatch(url, &hash.to_string(), self.fetch(url, size, hash)).await
    }

    /// Downloads a file that is announced only by an md5 (32 hex digits). Returns its sha256, which names the file, and
    /// its size in bytes.
    ///
    /// The md5 detects a truncated or misdirected download. An attacker who controls the upstream file can produce
    /// other bytes with the same md5. So only the connection guarantees that these bytes are the right ones. From then
    /// on their sha256 does.
    pub async fn fetch_unverified(&self, url: &str, md5: &str) -> Result<(Hash, u64), DownloadError> {
        let announced = format!("md5:{}", md5.to_ascii_lowercase());
        self.skip_known_mismatch(url, &announced, self.fetch_by_md5(url, &announced)).await
    }

    /// Runs the download unless the same URL had wrong content before. Remembers the URL if its content is wrong now.
    async fn skip_known_mismatch<T>(
        &self,
        url: &str,
        hash: &str,
        download: impl Future<Output = Result<T, DownloadError>>,
    ) -> Result<T, DownloadError> {
        let name = (hash.to_owned(), url.to_owned());
        if let Some(error) = self.mismatched().get(&name) {
            return Err(error.clone());
        }
        let result = download.await;
        if let Err(error @ DownloadError::WrongHash { .. }) = &result {
            self.mismatched().insert(name, error.clone());
        }
        result
    }

    fn mismatched(&self) -> MutexGuard<'_, BTreeMap<(String, String), DownloadError>> {
        // Each change under this lock is a single insert, so no state is half-written.
        self.mismatched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn fetch(&self, url: &str, size: Option<u64>, hash: &Hash) -> Result<u64, DownloadError> {
        if size.is_some_and(|size| size > self.policy.max_size) {
            return Err(self.too_large(url));
        }
        let file = self.receive(url, hash.algorithm(), |_| {}).await?;
        verify_hash(url, &hash.to_string(), &file.hash().to_string())?;
        keep(file).await
    }

    async fn fetch_by_md5(&self, url: &str, announced: &str) -> Result<(Hash, u64), DownloadError> {
        let mut md5 = Md5::new();
        let file = self.receive(url, Algorithm::Sha256, |bytes| md5.update(bytes)).await?;
        verify_hash(url, announced, &format!("md5:{}", hex::encode(md5.finalize())))?;
        let hash = file.hash().clone();
        Ok((hash, keep(file).await?))
    }

    fn too_large(&self, url: &str) -> DownloadError {
        DownloadError::TooLarge { url: url.to_owned(), limit: self.policy.max_size }
    }

    /// Downloads the content of `url` completely. `on_chunk` receives all bytes in order.
    async fn receive(
        &self,
        url: &str,
        algorithm: Algorithm,
        on_chunk: impl FnMut(&[u8]),
    ) -> Result<CompleteFile, DownloadError> {
        let response = self.follow(url).await?;
        let mut file = self.store.begin(algorithm, self.policy.max_size).map_err(disk_error)?;
        receive_body(response, &mut file, on_chunk).await.map_err(|error| match error {
            ReceiveError::Connection(error) => connection_error(url, error),
            ReceiveError::Write(error) => write_error(url, error),
        })?;
        file.finish().await.map_err(|error| write_error(url, error))
    }

    /// The response after all redirects.
    async fn follow(&self, first: &str) -> Result<Response, DownloadError> {
        let mut url = Url::parse(first).map_err(|_| DownloadError::NotHttps { url: first.to_owned() })?;
        for _ in 0..=MAX_REDIRECTS {
            let response = self
                .client(&url)?
                .get(url.clone())
                .send()
                .await
                .map_err(|error| connection_error(url.as_str(), error))?;
            let status = response.status();
            if status.is_success() {
                return Ok(response);
            }
            let to = response.headers().get(LOCATION).and_then(|to| to.to_str().ok()).and_then(|to| url.join(to).ok());
            match to {
                Some(to) if status.is_redirection() => url = to,
                _ => return Err(DownloadError::Status { url: url.to_string(), status: status.as_u16() }),
            }
        }
        Err(DownloadError::TooManyRedirects { url: first.to_owned(), limit: MAX_REDIRECTS })
    }

    /// The client that may request the URL.
    fn client(&self, url: &Url) -> Result<&Client, DownloadError> {
        if self.policy.upstreams.iter().any(|upstream| upstream.origin() == url.origin()) {
            return Ok(&self.trusted);
        }
        let host = url.host_str().unwrap_or_default();
        if url.scheme() != "https" {
            return Err(DownloadError::NotHttps { url: url.to_string() });
        }
        if is_private_host(host) {
            return Err(DownloadError::PrivateHost { url: url.to_string(), host: host.to_owned() });
        }
        Ok(&self.public)
    }
}

fn verify_hash(url: &str, expected: &str, found: &str) -> Result<(), DownloadError> {
    if found == expected {
        return Ok(());
    }
    Err(DownloadError::WrongHash { url: url.to_owned(), expected: expected.to_owned(), found: found.to_owned() })
}

/// Adds the body of a response to `file`. `on_chunk` receives all bytes in order.
pub async fn receive_body(
    mut response: Response,
    file: &mut IncomingContent,
    mut on_chunk: impl FnMut(&[u8]),
) -> Result<(), ReceiveError> {
    if let Some(length) = response.content_length() {
        file.check_size(length)?;
    }
    while let Some(chunk) = response.chunk().await.map_err(ReceiveError::Connection)? {
        file.write(&chunk).await?;
        on_chunk(&chunk);
    }
    Ok(())
}

/// Keeps a file in the store, and returns its size in bytes.
async fn keep(file: CompleteFile) -> Result<u64, DownloadError> {
    let size = file.size();
    let kept = tokio::task::spawn_blocking(move || file.keep()).await;
    kept.map_err(|error| disk_error(io::Error::other(error)))?.map_err(disk_error)?;
    Ok(size)
}

fn write_error(url: &str, error: StoreWriteError) -> DownloadError {
    match error {
        StoreWriteError::TooLarge { limit } => DownloadError::TooLarge { url: url.to_owned(), limit },
        StoreWriteError::Disk(error) => disk_error(error),
    }
}

fn disk_error(error: io::Error) -> DownloadError {
    DownloadError::Disk(Arc::new(error))
}

/// Converts a failed connection. If the address check refused it, returns that error.
fn connection_error(url: &str, error: reqwest::Error) -> DownloadError {
    let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
    while let Some(inner) = cause {
        if let Some(NotPublic(host)) = inner.downcast_ref() {
            return DownloadError::PrivateHost { url: url.to_owned(), host: host.clone() };
        }
        cause = inner.source();
    }
    DownloadError::Unreachable { url: url.to_owned(), source: Arc::new(error.without_url()) }
}

#[cfg(test)]
mod tests;
