//! Pure. Defines the errors of a download.

use std::io;
use std::sync::Arc;

use crate::content_store::StoreWriteError;
use crate::url_for_display;

/// The reason why the body of a response could not be received.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// The connection broke, or no data arrived in time.
    #[error("the download failed")]
    Connection(#[source] reqwest::Error),
    /// The file exceeds its limit, or the disk returned an error.
    #[error(transparent)]
    Write(#[from] StoreWriteError),
}

/// The reason why a file could not be downloaded. Cheap to clone: all callers that waited for a download get its error.
#[derive(Debug, Clone, thiserror::Error)]
pub enum DownloadError {
    /// The URL is not https, and no admin configured it.
    #[error("`{}` is not allowed: only https and the addresses of the configured upstreams are", url_for_display(url))]
    NotHttps {
        /// The URL, perhaps of a redirect.
        url: String,
    },
    /// The host is in a private network.
    #[error("`{}` is not allowed: {host} is inside a private network", url_for_display(url))]
    PrivateHost {
        /// The URL, perhaps of a redirect.
        url: String,
        /// Its host.
        host: String,
    },
    /// Too many redirects.
    #[error("`{}` redirects more than {limit} times", url_for_display(url))]
    TooManyRedirects {
        /// The first URL.
        url: String,
        /// The limit.
        limit: usize,
    },
    /// The connection failed, broke, or took too long.
    #[error("`{}` could not be reached", url_for_display(url))]
    Unreachable {
        /// The URL.
        url: String,
        /// The error of the connection.
        #[source]
        source: Arc<reqwest::Error>,
    },
    /// The response status is no success.
    #[error("`{}` answered {status}", url_for_display(url))]
    Status {
        /// The URL after all redirects.
        url: String,
        /// The HTTP status.
        status: u16,
    },
    /// The file exceeds the size limit.
    #[error("`{}` is larger than {limit} bytes", url_for_display(url))]
    TooLarge {
        /// The URL.
        url: String,
        /// The limit, in bytes.
        limit: u64,
    },
    /// Permanent: the announced hash and the content differ, and another download would give the same content.
    #[error(
        "`{}` has the hash {found}, but {expected} was announced: its source must correct one of the two",
        url_for_display(url)
    )]
    WrongHash {
        /// The URL.
        url: String,
        /// The announced hash.
        expected: String,
        /// The hash of the content.
        found: String,
    },
    /// The file could not be stored.
    #[error("could not write a downloaded file to the disk")]
    Disk(#[source] Arc<io::Error>),
}

impl DownloadError {
    /// A label for metrics, from a fixed set.
    pub fn category(&self) -> &'static str {
        match self {
            Self::NotHttps { .. } => "not-https",
            Self::PrivateHost { .. } => "private-address",
            Self::TooManyRedirects { .. } => "redirects",
            Self::Unreachable { .. } => "unreachable",
            Self::Status { .. } => "status",
            Self::TooLarge { .. } => "too-large",
            Self::WrongHash { .. } => "wrong-hash",
            Self::Disk(_) => "disk",
        }
    }

    /// Whether a retry can succeed without a change by an admin or upstream.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Status { .. } | Self::Disk(_) => true,
            Self::NotHttps { .. }
            | Self::PrivateHost { .. }
            | Self::TooManyRedirects { .. }
            | Self::TooLarge { .. }
            | Self::WrongHash { .. } => false,
        }
    }
}
