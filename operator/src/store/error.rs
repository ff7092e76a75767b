//! Pure. Defines the errors of opening the store and of fetching a file.

use std::io;

use artifacts::download::DownloadError;

/// Why the store could not be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error("could not use the directory `{path}` for the artifact store")]
    Directory {
        path: String,
        #[source]
        source: io::Error,
    },
    #[error("could not create the client for downloads")]
    Client(#[source] artifacts::http_client::ClientError),
}

/// Why a file could not be fetched. Cheap to clone, because all callers that waited for a download get its error.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum FetchError {
    #[error("`{hash}` cannot be checked: a source has to state sha256, sha512 or sha1")]
    NoHash { hash: String },
    #[error(transparent)]
    Download(#[from] DownloadError),
}

impl FetchError {
    /// A word for metrics, from a closed set.
    pub(crate) fn category(&self) -> &'static str {
        match self {
            Self::NoHash { .. } => "no-hash",
            Self::Download(error) => error.category(),
        }
    }

    /// Whether another try can succeed without a change by a user.
    pub(crate) fn is_retryable(&self) -> bool {
        match self {
            Self::NoHash { .. } => false,
            Self::Download(error) => error.is_transient(),
        }
    }
}
