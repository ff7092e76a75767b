//! Pure. Defines the default texts that players read.

use crds::paper_mc_server::PlayersPolicy;

/// Default announcement of an update.
pub(super) const ANNOUNCEMENT: &str =
    "The server restarts in {in} for an update and is back after about a minute. Everything is saved.";

/// Default announcement of a restart without an update.
pub(super) const RESTART_ANNOUNCEMENT: &str =
    "The server restarts in {in} and is back after about a minute. Everything is saved.";

/// Default for both where a line has less room than in the chat: about 80 letters above the hotbar, 40 below a title.
pub(super) const SHORT_ANNOUNCEMENT: &str = "Restart in {in}";

/// Default announcement before a node is drained. The drain may begin later or not at all: the countdown only ends with the permission to
/// evict.
pub(super) const DRAIN_ANNOUNCEMENT: &str = "The machine of this server is being emptied: in {in}, or later, the server may move to another one. It is back \
                                  about a minute after that. Everything is saved.";
pub(super) const SHORT_DRAIN_ANNOUNCEMENT: &str = "May move in {in}";

/// Default announcement before a server is scaled to zero.
pub(super) const SCALE_DOWN_ANNOUNCEMENT: &str = "The server stops in {in}. Everything is saved.";
pub(super) const SHORT_SCALE_DOWN_ANNOUNCEMENT: &str = "Stop in {in}";

/// Default announcement of a restart that restores a backup.
pub(super) const RESTORE_ANNOUNCEMENT: &str = "The server restarts in {in}, and its worlds return to an earlier backup. All that is built until then is set aside.";

/// The announcement that players read before their server stops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    /// The text in the chat.
    pub text: String,
    /// The same where a line has less room.
    pub short: String,
}

impl Announcement {
    /// The user's text, whose first line is the short text, or the default texts.
    pub(super) fn new(written: Option<&String>, default_text: &str, default_short: &str) -> Self {
        let first = written.and_then(|text| text.lines().map(str::trim).find(|line| !line.is_empty()));
        Self {
            text: written.map_or(default_text, String::as_str).to_owned(),
            short: first.unwrap_or(default_short).to_owned(),
        }
    }
}

/// Texts for players other than announcements. `None` leaves the agent's default text.
#[derive(Debug, Clone)]
pub struct Texts {
    /// Shown to players who are disconnected for a stop.
    pub kick: Option<String>,
    /// Shown before a stop that was not announced.
    pub stop: Option<String>,
    /// Shown when an announced stop is cancelled.
    pub cancelled: Option<String>,
}

impl Texts {
    pub(super) fn from_policy(players: &PlayersPolicy) -> Self {
        Self {
            kick: players.kick_text.clone(),
            stop: players.stop_text.clone(),
            cancelled: players.called_off_text.clone(),
        }
    }
}
