//! Pure. Detects a server whose process runs and does not answer its agent.

use agent_api::{AgentReport, Server};
use jiff::{SignedDuration, Timestamp};

/// How long a silence is tolerated before it is reported. A restarted agent answers within seconds, and so does a server after a long garbage
/// collection.
pub(crate) const TOLERATED: SignedDuration = SignedDuration::from_mins(1);

/// How long a server may hang before it is restarted (`spec.onHang: Restart`). Paper's own watchdog ends a server after one minute, unless
/// `spigot.yml` turns it off.
pub(crate) const RESTART_AFTER: SignedDuration = SignedDuration::from_mins(2);

/// The part of a server that does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HungPart {
    /// The server does not answer pings.
    Server,
    /// The server answers pings, but no command.
    MainThread,
}

/// The time since the last answer, however short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hang {
    pub(crate) part: HungPart,
    /// By the clock of the node.
    pub(crate) since: Timestamp,
    pub(crate) lasts: SignedDuration,
}

impl Hang {
    /// `None` for a process that has not answered since its start, or is stopping.
    pub(crate) fn from_report(report: &AgentReport) -> Option<Self> {
        let (part, since) = match report.server {
            Server::Up { answered_at, hangs_since: Some(since), .. } if since <= answered_at => {
                (HungPart::MainThread, since)
            }
            Server::Up { answered_at, .. } => (HungPart::Server, answered_at),
            Server::Absent | Server::Starting { .. } | Server::Stopping { .. } => return None,
        };
        Some(Self { part, since, lasts: report.at.duration_since(since) })
    }
}

/// A hang after which the server is restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RestartedHang {
    /// When the server last answered, by the clock of its node.
    pub(crate) since: Timestamp,
    /// When the hang will have lasted long enough. `None`: it has.
    pub(crate) overdue_at: Option<Timestamp>,
    /// The restart that is due for it: the instant by which it is recorded. `None` until then, and while a crash loop prevents it.
    pub(crate) due: Option<Timestamp>,
}
