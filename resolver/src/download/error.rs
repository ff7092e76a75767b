//! Pure. Why a file could not be brought.

use std::io;
use std::sync::Arc;

/// Why a file could not be brought. Cheap to clone: all who waited for a download get its error.
#[derive(Debug, Clone, thiserror::Error)]
pub enum DownloadError {
    /// Neither https nor an address that an admin wrote.
    #[error("`{url}` is not downloaded from: only https is, or an address of the configured upstreams")]
    NotHttps {
        /// The address, of a redirect perhaps.
        url: String,
    },
    /// The host lies in a private network.
    #[error("`{url}` is not downloaded from: {host} is inside a private network")]
    Private {
        /// The address, of a redirect perhaps.
        url: String,
        /// Its host.
        host: String,
    },
    /// One redirect after the other.
    #[error("`{url}` redirects more than {limit} times")]
    Redirects {
        /// The first address.
        url: String,
        /// How many are followed.
        limit: usize,
    },
    /// No connection, or it broke, or it took too long.
    #[error("`{url}` could not be reached")]
    Unreachable {
        /// The address.
        url: String,
        /// What the connection said.
        #[source]
        source: Arc<reqwest::Error>,
    },
    /// An answer that is no success.
    #[error("`{url}` answered {status}")]
    Status {
        /// The address, at the end of all redirects.
        url: String,
        /// The HTTP status.
        status: u16,
    },
    /// More bytes than a file may have.
    #[error("`{url}` is larger than {limit} bytes")]
    TooLarge {
        /// The address.
        url: String,
        /// The limit, in bytes.
        limit: u64,
    },
    /// Final: what was announced and what came disagree, and asking again brings the same.
    #[error("`{url}` has the hash {found}, and {expected} was announced; its source has to correct one of the two")]
    WrongHash {
        /// The address.
        url: String,
        /// What was announced.
        expected: String,
        /// What came.
        found: String,
    },
    /// The file could not be kept.
    #[error("could not write a downloaded file to the disk")]
    Disk(#[source] Arc<io::Error>),
}

impl DownloadError {
    /// A word for metrics: a closed set.
    pub fn category(&self) -> &'static str {
        match self {
            Self::NotHttps { .. } => "not-https",
            Self::Private { .. } => "private-address",
            Self::Redirects { .. } => "redirects",
            Self::Unreachable { .. } => "unreachable",
            Self::Status { .. } => "status",
            Self::TooLarge { .. } => "too-large",
            Self::WrongHash { .. } => "wrong-hash",
            Self::Disk(_) => "disk",
        }
    }

    /// Whether another try can end differently without somebody changing something.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Status { .. } | Self::Disk(_) => true,
            Self::NotHttps { .. }
            | Self::Private { .. }
            | Self::Redirects { .. }
            | Self::TooLarge { .. }
            | Self::WrongHash { .. } => false,
        }
    }
}
