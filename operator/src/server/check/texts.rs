//! Pure. What players read.

use crds::paper_mc_server::PlayersPolicy;

/// What players read when the user says nothing.
pub(super) const ANNOUNCEMENT: &str =
    "The server restarts in {in} for an update and is back after about a minute. Everything is saved.";

/// The same, when it restarts as it is.
pub(super) const RESTART_ANNOUNCEMENT: &str =
    "The server restarts in {in} and is back after about a minute. Everything is saved.";

/// Both, where a line has less room than in the chat: about 80 letters above the hotbar, 40 below a title.
pub(super) const SHORT_ANNOUNCEMENT: &str = "Restart in {in}";

/// The same before a node is emptied. Who empties it may take their time, or think better of it: it is from then on that the server can go.
pub(super) const DRAIN_ANNOUNCEMENT: &str = "The machine of this server is being emptied: in {in}, or later, the server may move to another one. It is back \
                                  about a minute after that. Everything is saved.";
pub(super) const SHORT_DRAIN_ANNOUNCEMENT: &str = "May move in {in}";

/// What players read before their server stops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Announcement {
    pub(crate) text: String,
    /// The same where a line has less room.
    pub(crate) short: String,
}

impl Announcement {
    /// What the user wrote, whose first line is the short text; or `ours`.
    pub(super) fn of(written: Option<&String>, ours: &str, ours_in_short: &str) -> Self {
        let first = written.and_then(|text| text.lines().map(str::trim).find(|line| !line.is_empty()));
        Self { text: written.map_or(ours, String::as_str).to_owned(), short: first.unwrap_or(ours_in_short).to_owned() }
    }
}

/// What players read beside announcements, where the user says it; else the agent's own words.
#[derive(Debug, Clone)]
pub(crate) struct Texts {
    /// When they are disconnected for a stop.
    pub(crate) kick: Option<String>,
    /// Before a stop that nobody announced.
    pub(crate) stop: Option<String>,
    /// When what they were told of does not come.
    pub(crate) called_off: Option<String>,
}

impl Texts {
    pub(super) fn of(players: &PlayersPolicy) -> Self {
        Self {
            kick: players.kick_text.clone(),
            stop: players.stop_text.clone(),
            called_off: players.called_off_text.clone(),
        }
    }
}
