//! Pure. What can go wrong while reading an upstream: which one, at which address, and what came instead.

use std::error::Error;
use std::fmt::Write as _;

use jiff::Timestamp;

use super::Upstream;
use crate::download::DownloadError;
use crate::jar::FactsError;
use crate::untrusted_text::shortened;

/// Why one page of one upstream could not be read.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The upstream answered, and there is no such project.
    #[error("{upstream} has no project `{project}` (asked at {url})")]
    NotFound {
        /// Who was asked.
        upstream: Upstream,
        /// The address.
        url: String,
        /// The slug or id as the user wrote it.
        project: String,
    },
    /// The text can be no slug and no id, so nobody was asked.
    #[error("`{project}` can be no project of {upstream}: write its slug, the last part of the project page's address")]
    NotAName {
        /// Who would have been asked.
        upstream: Upstream,
        /// The text as the user wrote it.
        project: String,
    },
    /// No connection, or it broke, or it took too long.
    #[error("{upstream} could not be reached at {url}")]
    Unreachable {
        /// Who was asked.
        upstream: Upstream,
        /// The address.
        url: String,
        /// What the connection said.
        #[source]
        source: reqwest::Error,
    },
    /// An answer that is no success, after all tries.
    #[error("{upstream} answered {status} at {url}: {said}")]
    Status {
        /// Who was asked.
        upstream: Upstream,
        /// The address.
        url: String,
        /// The HTTP status.
        status: u16,
        /// How its body starts.
        said: String,
    },
    /// It has asked for a pause (429, `Retry-After`) that is longer than we wait in one pass.
    #[error("{upstream} has asked us to stay away until {until}")]
    Resting {
        /// Who asked for it.
        upstream: Upstream,
        /// When it may be asked again.
        until: Timestamp,
    },
    /// More bytes than any honest answer has.
    #[error("{upstream} sent more than {limit} bytes at {url}")]
    TooLarge {
        /// Who was asked.
        upstream: Upstream,
        /// The address.
        url: String,
        /// The limit, in bytes.
        limit: u64,
    },
    /// The body is not what the API describes, as with an HTML page of a proxy in front.
    #[error("{upstream} sent something that is not its API's answer at {url}: {said}")]
    Unreadable {
        /// Who was asked.
        upstream: Upstream,
        /// The address.
        url: String,
        /// How the body starts.
        said: String,
        /// What the parser said.
        #[source]
        source: serde_json::Error,
    },
    /// JSON of the right shape in which nothing is usable.
    #[error("{upstream} sent {rows} entries at {url}, and none has all that is needed")]
    Hollow {
        /// Who was asked.
        upstream: Upstream,
        /// The address.
        url: String,
        /// How many entries there were.
        rows: usize,
    },
    /// Nothing may be asked, and nothing is stored.
    #[error("nothing is stored of {upstream} at {url}; fetch the catalog once with a network")]
    Offline {
        /// Who would have been asked.
        upstream: Upstream,
        /// The address.
        url: String,
    },
    /// The key of a file without an address or a hash.
    #[error("`{project}` names no file: it has to be an https address with `#sha256=` and 64 hex digits")]
    NotAFile {
        /// The text.
        project: String,
    },
    /// A file that was named by its address could not be brought.
    #[error(transparent)]
    Download(#[from] DownloadError),
    /// The bytes that were named are no plugin that can be read; asking again brings the same.
    #[error("`{url}` is no plugin that can be read")]
    NotAPlugin {
        /// The address.
        url: String,
        /// What is wrong with the JAR.
        #[source]
        source: FactsError,
    },
    /// Nothing may be downloaded, and the file is not stored.
    #[error("nothing is stored of `{url}`; fetch the catalog once with a network")]
    FileOffline {
        /// The address.
        url: String,
    },
    /// The image's registry has no list of tags that we can read.
    #[error(
        "the tags of `{repository}` cannot be listed: only repositories on Docker Hub can; pin `spec.image` by digest instead"
    )]
    NotOnDockerHub {
        /// As configured.
        repository: String,
    },
}

impl FetchError {
    /// A word for metrics: a closed set.
    pub fn category(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "not-found",
            Self::NotAName { .. } => "not-a-name",
            Self::Unreachable { .. } => "unreachable",
            Self::Status { .. } => "status",
            Self::Resting { .. } => "resting",
            Self::TooLarge { .. } => "too-large",
            Self::Unreadable { .. } => "unreadable",
            Self::Hollow { .. } => "hollow",
            Self::Offline { .. } | Self::FileOffline { .. } => "offline",
            Self::NotAFile { .. } => "not-a-file",
            Self::Download(error) => error.category(),
            Self::NotAPlugin { .. } => "not-a-plugin",
            Self::NotOnDockerHub { .. } => "not-on-docker-hub",
        }
    }

    /// Whether it is about a file that was named by its address; the text names it.
    pub(super) fn is_about_a_file(&self) -> bool {
        matches!(self, Self::NotAFile { .. } | Self::Download(_) | Self::NotAPlugin { .. } | Self::FileOffline { .. })
    }

    /// Who can do something about it.
    pub fn blame(&self) -> Blame {
        match self {
            Self::NotFound { .. }
            | Self::NotAName { .. }
            | Self::Offline { .. }
            | Self::NotAFile { .. }
            | Self::NotAPlugin { .. }
            | Self::FileOffline { .. }
            | Self::NotOnDockerHub { .. } => Blame::User,
            Self::Download(DownloadError::Disk(_)) => Blame::Cluster,
            Self::Download(error) => {
                if error.may_pass() {
                    Blame::Upstream
                } else {
                    Blame::User
                }
            }
            Self::Unreachable { .. }
            | Self::Status { .. }
            | Self::Resting { .. }
            | Self::TooLarge { .. }
            | Self::Unreadable { .. }
            | Self::Hollow { .. } => Blame::Upstream,
        }
    }
}

/// Who can do something about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Blame {
    /// The user, by another spec or command.
    User,
    /// Whoever runs the cluster or the machine.
    Cluster,
    /// Nobody here: it has to come back by itself.
    Upstream,
}

/// Why a fetcher could not be made. Whoever runs the machine is to blame.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No HTTP client.
    #[error("could not make an HTTP client")]
    Client(#[source] reqwest::Error),
    /// No directory for what is read.
    #[error("could not make the catalog's directory `{path}`")]
    Directory {
        /// The directory.
        path: String,
        /// What the file system said.
        #[source]
        source: std::io::Error,
    },
}

impl StartError {
    /// Always the machine.
    pub fn blame(&self) -> Blame {
        Blame::Cluster
    }
}

/// The most of one cause, in characters: some repeat what they could not read, be it a megabyte, and all are kept in a status.
const LONGEST: usize = 500;

/// An error and its causes in one line, for the places that keep text.
pub fn in_words(error: &dyn Error) -> String {
    let mut words = shortened(&error.to_string(), LONGEST).into_owned();
    let mut cause = error.source();
    while let Some(inner) = cause {
        // Some causes repeat what the layer above has said already.
        let text = inner.to_string();
        let text = shortened(&text, LONGEST);
        if !words.contains(&*text) {
            let _ = write!(words, ": {text}");
        }
        cause = inner.source();
    }
    words
}
