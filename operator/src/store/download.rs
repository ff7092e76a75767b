//! Edge (writes). One download: where it may go, how large it may get, and that it is what was announced.

use std::error::Error;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::LOCATION;
use reqwest::redirect;
use reqwest::{Client, Response, Url};
use tempfile::NamedTempFile;
use tokio::io::AsyncWriteExt;

use super::address::{NotPublic, PublicOnly, is_inside};
use super::error::FetchError;
use super::hash::{Hash, Hasher};

/// Redirects followed, each checked as the first address is. CDNs of the known sources use one or two.
const REDIRECTS: usize = 5;

/// Without a byte for so long, a download has died.
const SILENCE: Duration = Duration::from_secs(30);

/// For a whole download: 512 MiB at half a megabyte a second.
const WHOLE: Duration = Duration::from_mins(17);

/// What may be downloaded.
#[derive(Debug, Clone)]
pub(crate) struct Policy {
    /// The configured upstreams. Whatever has the origin (scheme, host, port) of one of them may be downloaded, plain http
    /// and private addresses too, because an admin wrote it.
    pub(crate) upstreams: Vec<Url>,
    /// The largest file, in bytes.
    pub(crate) largest: u64,
    /// How many bytes all files may have together, beside the one used last. The volume needs room for one more file.
    pub(crate) room: u64,
    /// A mail address or page of whoever runs this, for the `User-Agent`.
    pub(crate) contact: Option<String>,
}

impl Policy {
    /// 512 MiB a file: the largest known plugins have 100 MB, Paper and Mojang's JAR 50. 4 GiB in all: forty versions of Paper.
    pub(crate) fn new(upstreams: Vec<Url>) -> Self {
        Self { upstreams, largest: 512 << 20, room: 4 << 30, contact: None }
    }
}

/// The two clients: one for the public Internet, one for what an admin wrote.
pub(super) struct Downloads {
    policy: Policy,
    public: Client,
    trusted: Client,
}

impl Downloads {
    pub(super) fn new(policy: Policy) -> Result<Self, resolver::upstream::StartError> {
        let client = |public: bool| {
            resolver::upstream::client(policy.contact.as_deref(), |builder| {
                // Redirects are followed by hand: each address is checked.
                let builder = builder.redirect(redirect::Policy::none()).read_timeout(SILENCE).timeout(WHOLE);
                // A proxy would look names up by itself, and nobody would check what comes of it.
                if public { builder.dns_resolver(PublicOnly).https_only(true).no_proxy() } else { builder }
            })
        };
        Ok(Self { public: client(true)?, trusted: client(false)?, policy })
    }

    /// Downloads `url`, and names it `path` once it is whole, has the `hash` and is on the disk. Its size in bytes.
    pub(super) async fn get(
        &self,
        url: &str,
        size: Option<u64>,
        hash: &Hash,
        unfinished: &Path,
        path: &Path,
    ) -> Result<u64, FetchError> {
        let too_large = || FetchError::TooLarge { url: url.to_owned(), limit: self.policy.largest };
        if size.is_some_and(|size| size > self.policy.largest) {
            return Err(too_large());
        }
        let mut response = self.follow(url).await?;
        if response.content_length().is_some_and(|length| length > self.policy.largest) {
            return Err(too_large());
        }
        let temporary = NamedTempFile::new_in(unfinished).map_err(disk)?;
        let mut file = tokio::fs::File::from_std(temporary.reopen().map_err(disk)?);
        let mut hasher = Hasher::new(hash.algorithm());
        let mut written = 0;
        while let Some(chunk) = response.chunk().await.map_err(|error| unreachable(url, error))? {
            written += chunk.len() as u64;
            if written > self.policy.largest {
                return Err(too_large());
            }
            hasher.update(&chunk);
            file.write_all(&chunk).await.map_err(disk)?;
        }
        let found = hasher.finish();
        if found != *hash {
            return Err(FetchError::WrongHash {
                url: url.to_owned(),
                expected: hash.to_string(),
                found: found.to_string(),
            });
        }
        file.sync_all().await.map_err(disk)?;
        let path = path.to_owned();
        let named = tokio::task::spawn_blocking(move || name(temporary, &path)).await;
        named.map_err(|error| disk(io::Error::other(error)))?.map_err(disk)?;
        Ok(written)
    }

    /// The answer at the end of all redirects.
    async fn follow(&self, first: &str) -> Result<Response, FetchError> {
        let mut url = Url::parse(first).map_err(|_| FetchError::NotHttps { url: first.to_owned() })?;
        for _ in 0..=REDIRECTS {
            let response =
                self.client(&url)?.get(url.clone()).send().await.map_err(|error| unreachable(url.as_str(), error))?;
            let status = response.status();
            if status.is_success() {
                return Ok(response);
            }
            let to = response.headers().get(LOCATION).and_then(|to| to.to_str().ok()).and_then(|to| url.join(to).ok());
            match to {
                Some(to) if status.is_redirection() => url = to,
                _ => return Err(FetchError::Status { url: url.to_string(), status: status.as_u16() }),
            }
        }
        Err(FetchError::Redirects { url: first.to_owned(), limit: REDIRECTS })
    }

    /// Who may ask there.
    fn client(&self, url: &Url) -> Result<&Client, FetchError> {
        if self.policy.upstreams.iter().any(|upstream| upstream.origin() == url.origin()) {
            return Ok(&self.trusted);
        }
        let host = url.host_str().unwrap_or_default();
        if url.scheme() != "https" {
            return Err(FetchError::NotHttps { url: url.to_string() });
        }
        if is_inside(host) {
            return Err(FetchError::Private { url: url.to_string(), host: host.to_owned() });
        }
        Ok(&self.public)
    }
}

/// Gives a complete file its name, so that it is there after a crash or is not there at all. Blocks.
fn name(temporary: NamedTempFile, path: &Path) -> io::Result<()> {
    let folder = path.parent().expect("an algorithm and digits were joined");
    std::fs::create_dir_all(folder)?;
    temporary.persist(path)?;
    std::fs::File::open(folder)?.sync_all()
}

fn disk(error: io::Error) -> FetchError {
    FetchError::Disk(Arc::new(error))
}

/// A connection that failed; if the reason was ours, it says so.
fn unreachable(url: &str, error: reqwest::Error) -> FetchError {
    let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
    while let Some(inner) = cause {
        if let Some(NotPublic(host)) = inner.downcast_ref() {
            return FetchError::Private { url: url.to_owned(), host: host.clone() };
        }
        cause = inner.source();
    }
    FetchError::Unreachable { url: url.to_owned(), source: Arc::new(error.without_url()) }
}
