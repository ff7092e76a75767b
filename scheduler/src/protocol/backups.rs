//! Pure. What an agent says of the copies of its server.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::hot_copy::HotCopySeen;
use super::restore::{ListedCopy, RestoreRefused, Restored};
use super::sizes::Sizes;
use crate::backup::{Contents, Trigger};

/// The copies of a server, as they lie where copies are kept.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BackupsSeen {
    /// The newest good one.
    pub last: Option<BackupSeen>,
    /// The way back: the newest good one with worlds from before the set that lies there, else from before any. One of a running server is none.
    pub last_of_worlds: Option<BackupSeen>,
    /// The newest good one that holds the worlds and was not taken after the log had told of damage to them.
    pub last_before_damage: Option<BackupSeen>,
    /// Good ones.
    pub good: u32,
    /// Those that do not count: damaged, without a record, or not given by the disk when they were read last.
    pub damaged: u32,
    /// The last attempt before an update, if it brought no copy.
    pub failed: Option<BackupFailed>,
    /// Whether somebody may have played since `last_of_worlds` was begun.
    pub played_since: bool,
    /// Nobody can have played since `last` was begun. False from an agent that does not say.
    #[serde(default)]
    pub unplayed_since_last: bool,
    /// The last request for a copy of the running server, and what came of it.
    pub hot: Option<HotCopySeen>,
    /// The last time that a copy was put back.
    pub restored: Option<Restored>,
    /// The last order of a person to put one back that was not obeyed.
    pub restore_refused: Option<RestoreRefused>,
    /// The newest ones, good or not, newest first, at most [`super::restore::LISTED`]; None: the agent does not know of orders by a person.
    pub listed: Option<Vec<ListedCopy>>,
    /// It can put back all that a copy holds, not the worlds alone.
    pub puts_back_everything: bool,
    /// What the next one would hold; None: nobody has measured it yet, or the agent does not.
    pub sizes: Option<Sizes>,
    /// Bytes that are free on the server's own volume for `last_of_worlds` to be unpacked there, at this look; None: there is none, nobody could
    /// say, or the agent does not.
    pub free: Option<u64>,
    /// Why they could not be looked at.
    pub problem: Option<String>,
}

/// One good copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupSeen {
    /// Its name.
    pub id: String,
    /// When it was begun.
    pub started_at: Timestamp,
    /// When it had been read back.
    pub completed_at: Timestamp,
    /// Why it was taken.
    pub trigger: Trigger,
    /// What it holds.
    pub contents: Contents,
    /// The digest of the lock that had run; None if none of ours had.
    #[serde(default)]
    pub lock: Option<String>,
    /// The digest of the lock that it was taken for; None: for none, the server ran.
    #[serde(default)]
    pub before: Option<String>,
    /// World format of the worlds in it, or of those beside it.
    #[serde(default)]
    pub data_version: Option<u32>,
    /// Size of what was copied, in bytes.
    pub bytes: u64,
    /// Size of the archive, in bytes.
    pub archive_bytes: u64,
    /// The server's log had told of damage to its worlds before it was taken.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub after_damage: bool,
}

/// A copy that could not be taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupFailed {
    /// When.
    pub at: Timestamp,
    /// The digest of the lock that it should have been taken for.
    pub before: String,
    /// In words for people.
    pub why: String,
}
