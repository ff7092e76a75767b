//! Pure. Why a file could not be brought, or not be read.

use std::io;
use std::sync::Arc;

/// Why the store could not be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error("could not use the directory `{path}` for the artifact store")]
    Directory {
        path: String,
        #[source]
        source: io::Error,
    },
    #[error("could not make the client for downloads")]
    Client(#[source] resolver::upstream::StartError),
}

/// Why a file could not be brought. Cheap to clone: all who waited for a download get its error.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum FetchError {
    #[error("`{hash}` is no hash that can be checked; a source has to state sha256, sha512 or sha1")]
    NoHash { hash: String },
    #[error("`{url}` is not downloaded from: only https is, or an address of the configured upstreams")]
    NotHttps { url: String },
    #[error("`{url}` is not downloaded from: {host} is inside a private network")]
    Private { url: String, host: String },
    #[error("`{url}` redirects more than {limit} times")]
    Redirects { url: String, limit: usize },
    #[error("`{url}` could not be reached")]
    Unreachable {
        url: String,
        #[source]
        source: Arc<reqwest::Error>,
    },
    #[error("`{url}` answered {status}")]
    Status { url: String, status: u16 },
    #[error("`{url}` is larger than {limit} bytes")]
    TooLarge { url: String, limit: u64 },
    /// Final: the upstream's page and its file disagree, and asking again brings the same.
    #[error("`{url}` has the hash {found}, and {expected} was announced; its source has to correct one of the two")]
    WrongHash { url: String, expected: String, found: String },
    #[error("could not write a downloaded file to the artifact store")]
    Disk(#[source] Arc<io::Error>),
}

impl FetchError {
    /// A word for metrics: a closed set.
    pub(crate) fn category(&self) -> &'static str {
        match self {
            Self::NoHash { .. } => "no-hash",
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
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Status { .. } | Self::Disk(_) => true,
            Self::NoHash { .. }
            | Self::NotHttps { .. }
            | Self::Private { .. }
            | Self::Redirects { .. }
            | Self::TooLarge { .. }
            | Self::WrongHash { .. } => false,
        }
    }
}

/// Why a JAR could not be read. All of it is the JAR's fault: its hash was right.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FactsError {
    #[error("it could not be opened")]
    Open(#[source] io::Error),
    #[error("it is no JAR")]
    NotAJar(#[source] zip::result::ZipError),
    #[error("it has {count} entries, and more than {limit} are not read")]
    TooManyEntries { count: usize, limit: usize },
    #[error("its `{entry}` is larger than {limit} bytes")]
    EntryTooLarge { entry: String, limit: u64 },
    #[error("its `{entry}` could not be unpacked")]
    Unpack {
        entry: String,
        #[source]
        source: io::Error,
    },
    #[error("it is no plugin for Paper: it has neither paper-plugin.yml nor plugin.yml")]
    NoDescription,
    #[error("its `{entry}` could not be understood: {what}")]
    Nonsense { entry: &'static str, what: String },
}
