//! Pure. Defines restore requests of users and for new volumes, their results, and the list of available backups.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::Contents;

/// The key of a user's request in the `ConfigMap` with requests, beside that of [`RestoreRequest`](super::RestoreRequest). Older agents do not read
/// it.
pub const USER_RESTORE_KEY: &str = "restore-from.json";

/// The key of [`SeedRequest`] in the same `ConfigMap`.
pub const NEW_VOLUME_KEY: &str = "new-volume.json";

/// The request name of a restore by [`SeedRequest`], in place of the name of a user's request.
pub const NEW_VOLUME_REQUEST: &str = "new-volume";

/// In place of a backup's name: the newest backup with worlds.
pub const LATEST: &str = "latest";

/// In place of the version set that executes a [`RequestedRestore`]: none does yet. Until then the backup is only kept.
pub const NO_SET: &str = "";

/// How many backups are listed: the maximum of `spec.backup.retention`.
pub const MAX_LISTED: usize = 100;

/// The space that must stay free on the volume, in bytes. A server that cannot save its world is worse than one that is not updated.
pub const RESERVED_BYTES: u64 = 64 * 1024 * 1024;

/// The space on the server's own volume that files leave to its growing worlds if the server can run without them, in bytes.
pub const FREE_FOR_WORLDS: u64 = 1024 * 1024 * 1024;

/// How many bytes must be free on the server's volume to restore a backup of this size. It is unpacked beside the existing files, and none is
/// deleted.
pub const fn space_needed(backup_bytes: u64) -> u64 {
    backup_bytes.saturating_add(RESERVED_BYTES)
}

/// A request to replace all existing worlds with those of one backup. The version set that it names executes it before its start, and only once,
/// whatever the result. If it cannot be executed, the server starts on the existing worlds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RequestedRestore {
    /// The name of the request. At most 64 bytes: `asked-1763782800`.
    pub request: String,
    /// The digest of the lock that will start: 64 hex digits. Or [`NO_SET`].
    pub to: String,
    /// The backup's name.
    pub backup: String,
    /// The user's explicit permission to displace existing worlds.
    pub overwrite: bool,
    /// Also restore settings, plugins and their data. Not written when false, because older agents do not know the field.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub everything: bool,
    /// When the request expires. A request found weeks later would be a disaster.
    pub not_after: Timestamp,
}

/// A restore that was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Restored {
    /// When it was done.
    pub at: Timestamp,
    /// The backup's name.
    pub id: String,
    /// The directory of the displaced files, relative to the server's directory. Empty: no file was displaced.
    pub set_aside: String,
    /// The request that it was done for, a user's or [`NEW_VOLUME_REQUEST`]. `None`: after an update that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// Whether settings, plugins and their data were restored too. False: only the worlds.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub everything: bool,
    /// Whether the backup was taken after the log reported damage to the worlds. The restored worlds may be damaged then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub after_damage: bool,
}

/// A request that was refused. No file was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RestoreRejection {
    /// The name of the request.
    pub request: String,
    /// When it was refused.
    pub at: Timestamp,
    /// The reason as text for users.
    pub why: String,
}

/// A request to restore everything in a backup to a volume without a world, before a server starts on it. It stays for as long as the server's
/// owner wants, and a volume executes it once. If it cannot be executed, the server does not start, because a new world would replace the missing
/// one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SeedRequest {
    /// The server whose backups are used: the name of their directory.
    pub server: String,
    /// The backup's name, or [`LATEST`].
    pub backup: String,
    /// The claim that contains them, for messages.
    pub claim: String,
    /// Whether it is another claim than that of the server's own backups. It is then mounted separately, only for the first start.
    pub apart: bool,
}

/// The result of a request for a volume without a world. It is recorded on the volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeedResult {
    /// The request.
    pub order: SeedRequest,
    /// When the result was recorded.
    pub at: Timestamp,
    /// The restored backup. `None`: no backup was restored, because the volume had a world.
    #[serde(default)]
    pub backup: Option<String>,
}

/// One backup in the repository, good or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedBackup {
    /// Its name.
    pub id: String,
    /// Its contents. `None`: unknown, see `problem`. If both are set, the backup only could not be read, and may be tried by its name.
    #[serde(default)]
    pub contents: Option<Contents>,
    /// The world format of the worlds in it.
    #[serde(default)]
    pub data_version: Option<u32>,
    /// The digest of the lock that had run.
    #[serde(default)]
    pub lock: Option<String>,
    /// Why it does not count.
    #[serde(default)]
    pub problem: Option<String>,
    /// Whether the server's log had reported damage to its worlds before it was taken.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub after_damage: bool,
}
