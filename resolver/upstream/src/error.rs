//! Pure. Errors of reading an upstream: which upstream, which URL and the response that came instead.

use std::error::Error;
use std::fmt::Write as _;

use jiff::{RoundMode, Timestamp, TimestampRound, Unit};

use super::Upstream;
use artifacts::FactsError;
use artifacts::download::DownloadError;
use resolver::model::untrusted_text::{hide_url_secrets, hide_url_user, shortened};

/// Why a page of an upstream could not be read.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The upstream responded that the project does not exist.
    #[error("{upstream} has no project `{project}` (asked at {})", hide_url_user(url))]
    NotFound {
        /// The upstream that was read.
        upstream: Upstream,
        /// The URL.
        url: String,
        /// The slug or id as the user wrote it.
        project: String,
    },
    /// The text cannot be a slug or an id, so no request was sent.
    #[error(
        "`{project}` is not a valid project of {upstream}: write its slug, the last part of the project page's address"
    )]
    InvalidName {
        /// The upstream that would have been read.
        upstream: Upstream,
        /// The text as the user wrote it.
        project: String,
    },
    /// The connection failed, broke or timed out.
    #[error("{upstream} could not be reached at {}", hide_url_user(url))]
    Unreachable {
        /// The upstream that was read.
        upstream: Upstream,
        /// The URL.
        url: String,
        /// Error of the connection.
        #[source]
        source: reqwest::Error,
    },
    /// A status that is not success, after all retries.
    #[error("{upstream} answered {status} at {}: {excerpt}", hide_url_user(url))]
    Status {
        /// The upstream that was read.
        upstream: Upstream,
        /// The URL.
        url: String,
        /// The HTTP status.
        status: u16,
        /// The beginning of the body.
        excerpt: String,
    },
    /// The upstream demanded a pause (429, `Retry-After`) that is longer than one pass waits.
    #[error("{upstream} allows no requests until {}", to_second(*.until))]
    Paused {
        /// The upstream that demanded it.
        upstream: Upstream,
        /// When requests are allowed again.
        until: Timestamp,
    },
    /// The response has more bytes than any valid response.
    #[error("{upstream} sent more than {limit} bytes at {}", hide_url_user(url))]
    TooLarge {
        /// The upstream that was read.
        upstream: Upstream,
        /// The URL.
        url: String,
        /// The limit, in bytes.
        limit: u64,
    },
    /// The body is not what the API documents, for example an HTML page of a proxy.
    #[error("{upstream} sent an unreadable API response at {}: {excerpt}", hide_url_user(url))]
    Unreadable {
        /// The upstream that was read.
        upstream: Upstream,
        /// The URL.
        url: String,
        /// The beginning of the body.
        excerpt: String,
        /// Error of the parser.
        #[source]
        source: serde_json::Error,
    },
    /// JSON of the right shape without a usable entry.
    #[error("{upstream} sent {rows} entries at {}, and none is complete", hide_url_user(url))]
    NoUsableEntry {
        /// The upstream that was read.
        upstream: Upstream,
        /// The URL.
        url: String,
        /// Number of entries in the response.
        rows: usize,
    },
    /// The command is offline and the page is not cached.
    #[error(
        "there is no stored data of {upstream} at {}: fetch the catalog once with network access",
        hide_url_user(url)
    )]
    Offline {
        /// The upstream that would have been read.
        upstream: Upstream,
        /// The URL.
        url: String,
    },
    /// The key of a file lacks a URL or a hash.
    #[error(
        "`{}` names no file: it must be an https address with `#sha256=` and 64 hex digits",
        hide_url_secrets(project)
    )]
    InvalidFileKey {
        /// The text.
        project: String,
    },
    /// A file that is named by its URL could not be downloaded.
    #[error(transparent)]
    Download(#[from] DownloadError),
    /// The downloaded file is not a readable plugin. A retry downloads the same bytes.
    #[error("`{}` is not a readable plugin", hide_url_secrets(url))]
    NotAPlugin {
        /// The URL.
        url: String,
        /// The defect of the JAR.
        #[source]
        source: FactsError,
    },
    /// Paper refuses the plugin in the downloaded file.
    #[error("Paper refuses the plugin in `{}`: {rule}", hide_url_secrets(url))]
    RefusedPlugin {
        /// The URL.
        url: String,
        /// The rule of Paper.
        rule: String,
    },
    /// Downloads are not allowed and the file is not stored.
    #[error("there is no stored data of `{}`: fetch the catalog once with network access", hide_url_secrets(url))]
    FileOffline {
        /// The URL.
        url: String,
    },
    /// The image's registry has no list of tags in a format that is supported.
    #[error(
        "the tags of `{repository}` cannot be listed, because it is not on Docker Hub: pin `spec.image` by digest instead"
    )]
    NotOnDockerHub {
        /// The repository as configured.
        repository: String,
    },
}

impl FetchError {
    /// Label for metrics, from a closed set.
    pub fn category(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "not-found",
            Self::InvalidName { .. } => "not-a-name",
            Self::Unreachable { .. } => "unreachable",
            Self::Status { .. } => "status",
            Self::Paused { .. } => "resting",
            Self::TooLarge { .. } => "too-large",
            Self::Unreadable { .. } => "unreadable",
            Self::NoUsableEntry { .. } => "hollow",
            Self::Offline { .. } | Self::FileOffline { .. } => "offline",
            Self::InvalidFileKey { .. } => "not-a-file",
            Self::Download(error) => error.category(),
            Self::NotAPlugin { .. } | Self::RefusedPlugin { .. } => "not-a-plugin",
            Self::NotOnDockerHub { .. } => "not-on-docker-hub",
        }
    }

    /// The upstream that was read. `None` for a file that is named by its URL, and for an image elsewhere.
    pub fn upstream(&self) -> Option<Upstream> {
        match self {
            Self::NotFound { upstream, .. }
            | Self::InvalidName { upstream, .. }
            | Self::Unreachable { upstream, .. }
            | Self::Status { upstream, .. }
            | Self::Paused { upstream, .. }
            | Self::TooLarge { upstream, .. }
            | Self::Unreadable { upstream, .. }
            | Self::NoUsableEntry { upstream, .. }
            | Self::Offline { upstream, .. } => Some(*upstream),
            Self::InvalidFileKey { .. }
            | Self::Download(_)
            | Self::NotAPlugin { .. }
            | Self::RefusedPlugin { .. }
            | Self::FileOffline { .. }
            | Self::NotOnDockerHub { .. } => None,
        }
    }

    /// Whether the error concerns a file that is named by its URL. The error text then contains that URL.
    pub(super) fn concerns_file(&self) -> bool {
        matches!(
            self,
            Self::InvalidFileKey { .. }
                | Self::Download(_)
                | Self::NotAPlugin { .. }
                | Self::RefusedPlugin { .. }
                | Self::FileOffline { .. }
        )
    }

    /// The party that can resolve the error.
    pub fn blame(&self) -> Blame {
        match self {
            Self::NotFound { .. }
            | Self::InvalidName { .. }
            | Self::Offline { .. }
            | Self::InvalidFileKey { .. }
            | Self::NotAPlugin { .. }
            | Self::RefusedPlugin { .. }
            | Self::FileOffline { .. }
            | Self::NotOnDockerHub { .. } => Blame::User,
            Self::Download(DownloadError::Disk(_)) => Blame::Cluster,
            Self::Download(error) => {
                if error.is_transient() {
                    Blame::Upstream
                } else {
                    Blame::User
                }
            }
            Self::Unreachable { .. }
            | Self::Status { .. }
            | Self::Paused { .. }
            | Self::TooLarge { .. }
            | Self::Unreadable { .. }
            | Self::NoUsableEntry { .. } => Blame::Upstream,
        }
    }
}

/// The next whole second, which is precise enough for users.
fn to_second(instant: Timestamp) -> Timestamp {
    instant.round(TimestampRound::new().smallest(Unit::Second).mode(RoundMode::Ceil)).unwrap_or(instant)
}

/// The party that can resolve an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Blame {
    /// The user, with another spec or command.
    User,
    /// The admin of the cluster or the machine.
    Cluster,
    /// The upstream. It has to recover by itself.
    Upstream,
}

/// The directory of the catalog cache could not be created. The cause is always on the machine.
#[derive(Debug, thiserror::Error)]
#[error("could not make the catalog's directory `{path}`")]
pub struct StartError {
    /// The directory.
    pub path: String,
    /// Error of the file system.
    #[source]
    pub source: std::io::Error,
}

impl StartError {
    /// Always [`Blame::Cluster`].
    pub fn blame(&self) -> Blame {
        Blame::Cluster
    }
}

/// Maximum length of one cause, in characters. Some causes repeat an input of a megabyte, and all are stored in a
/// status.
const MAX_CAUSE_LENGTH: usize = 500;

/// Formats an error and its causes in one line.
pub fn format_chain(error: &dyn Error) -> String {
    let mut text_chain = shortened(&error.to_string(), MAX_CAUSE_LENGTH).into_owned();
    let mut cause = error.source();
    while let Some(inner) = cause {
        // Some causes repeat the text of the layer above.
        let text = inner.to_string();
        let text = shortened(&text, MAX_CAUSE_LENGTH);
        if !text_chain.contains(&*text) {
            let _ = write!(text_chain, ": {text}");
        }
        cause = inner.source();
    }
    text_chain
}
