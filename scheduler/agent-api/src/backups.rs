//! Pure. Defines the kinds of backups, and the agent's report on the backups of its server.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::backup_size::Sizes;
use super::online_backup::OnlineBackupReport;
use super::restore::{ListedBackup, RestoreRejection, Restored};

/// The part of a server's directory that a backup contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Contents {
    /// All world folders, detected by their content, and no other files.
    Worlds,
    /// All except the world folders: settings, plugins and their data.
    ServerFiles,
    /// Both.
    Everything,
}

impl Contents {
    /// Whether it contains the worlds.
    pub const fn has_worlds(self) -> bool {
        matches!(self, Self::Worlds | Self::Everything)
    }

    /// Whether it contains files outside of worlds.
    pub const fn has_server_files(self) -> bool {
        matches!(self, Self::ServerFiles | Self::Everything)
    }
}

/// Why a backup was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Trigger {
    /// For an update, between stop and start. The server is not running.
    BeforeUpdate,
    /// On schedule, while the server runs.
    Scheduled,
    /// On a user's request, while the server runs.
    OnDemand,
}

/// The backups of a server, as they exist in its repository.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BackupsReport {
    /// The newest good backup.
    pub last: Option<BackupReport>,
    /// The rollback backup: the newest good one with worlds from before the current version set, or else from before any. Online backups do not
    /// qualify.
    pub last_of_worlds: Option<BackupReport>,
    /// The newest good backup that contains the worlds and was not taken after the log had reported damage to them.
    pub last_before_damage: Option<BackupReport>,
    /// The number of good backups.
    pub good: u32,
    /// The number of backups that do not count: damaged, without a record, or unreadable last time.
    pub damaged: u32,
    /// The last attempt before an update, if it failed.
    pub failed: Option<BackupFailed>,
    /// Whether players may have been online since `last_of_worlds` began.
    pub played_since: bool,
    /// Whether nobody can have played since `last` began. False from an agent that does not report it.
    #[serde(default)]
    pub unplayed_since_last: bool,
    /// The last request for an online backup, and its result.
    pub online: Option<OnlineBackupReport>,
    /// The last restore.
    pub restored: Option<Restored>,
    /// The last restore request of a user that was refused.
    pub restore_refused: Option<RestoreRejection>,
    /// The newest backups, good or not, newest first, at most [`super::restore::MAX_LISTED`]. `None`: the agent does not support restore requests of
    /// users.
    pub listed: Option<Vec<ListedBackup>>,
    /// Whether the agent can restore everything in a backup, not only the worlds.
    pub puts_back_everything: bool,
    /// The expected size of the next backup. `None`: not measured yet, or the agent does not measure it.
    pub sizes: Option<Sizes>,
    /// The bytes that the next backup may use in the repository: those that are free, without the ones that must stay free, and those of backups
    /// that are removed before it. `None`: unknown, or the agent does not report it.
    pub room: Option<u64>,
    /// The bytes that are free on the server's own volume to unpack `last_of_worlds`, at this report. `None`: no such backup exists, the space is
    /// unknown, or the agent does not report it.
    pub free: Option<u64>,
    /// Why the backups could not be read.
    pub problem: Option<String>,
}

/// One good backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupReport {
    /// Its name.
    pub id: String,
    /// When it began.
    pub started_at: Timestamp,
    /// When it was verified.
    pub completed_at: Timestamp,
    /// Why it was taken.
    pub trigger: Trigger,
    /// Its contents.
    pub contents: Contents,
    /// The digest of the lock that had run. `None` if no Nightshift lock had.
    #[serde(default)]
    pub lock: Option<String>,
    /// The digest of the lock that it was taken for. `None`: for no lock, because the server ran.
    #[serde(default)]
    pub before: Option<String>,
    /// The world format of the worlds in it, or of those that existed beside it.
    #[serde(default)]
    pub data_version: Option<u32>,
    /// The size of the original files, in bytes.
    pub bytes: u64,
    /// The size of the archive, in bytes.
    pub archive_bytes: u64,
    /// Whether the server's log had reported damage to its worlds before it was taken.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub after_damage: bool,
}

/// A backup that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupFailed {
    /// When it failed.
    pub at: Timestamp,
    /// The digest of the lock that it was meant for.
    pub before: String,
    /// The reason as text for users.
    pub why: String,
}
