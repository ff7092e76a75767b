//! Pure. Defines the record of a backup. The modules take, list and restore backups.
//!
//! [`Contents`], [`Trigger`] and [`scheduler::backup_retention`] do not depend on archives, so that another form of storage (a volume snapshot)
//! can be added beside [`archive`] and [`repository`]. Its record would have no [`Checksum`].

pub mod archive;
pub mod contents;
pub mod create;
pub mod due;
mod gzip;
pub mod repository;
pub mod restore;
pub mod size;

use agent_api::{Contents, Trigger};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The format version of the records. A record with another number was written by another version, and is not changed.
pub const FORMAT: u32 = 1;

/// A complete and verified backup. This is the record stored beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Backup {
    /// [`FORMAT`].
    pub format: u32,
    /// Its name: the instant and the first digits of the lock that had run. A second backup in the same second gets a number. Names sort by time.
    pub id: String,
    /// When it began. It contains no later data.
    pub started_at: Timestamp,
    /// When it was verified.
    pub completed_at: Timestamp,
    /// Why it was taken.
    pub trigger: Trigger,
    /// The part that it contains.
    pub contents: Contents,
    /// The digest of the lock that ran before, or that runs. `None` on a volume where no Nightshift lock ever ran.
    pub lock: Option<String>,
    /// The digest of the lock that it was taken for. `None`: for no lock, because the server ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The request that it was taken for, on a running server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// The newest Minecraft that had opened any of the worlds. `None` if it is unknown.
    pub minecraft: Option<String>,
    /// Minecraft's own number for that version.
    pub data_version: Option<u32>,
    /// The world folders in it, relative to the server's directory, in order.
    pub folders: Vec<String>,
    /// Items that could not be included: links to nothing, sockets, and on a running server files that disappeared before they were read. The
    /// first [`MAX_NAMED_FILES`] of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Files of a running server that were written to while they were read, so their content in the backup may be inconsistent. The first
    /// [`MAX_NAMED_FILES`] of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// Whether the server's log had reported damage to its worlds before the backup. Not written when false, because older agents reject a record
    /// with an unknown field.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub after_damage: bool,
    /// Its checksums.
    pub seal: Checksum,
}

impl Backup {
    /// Whether an update can be rolled back with it: it contains the worlds, and was taken while no server ran.
    pub fn is_rollback_backup(&self) -> bool {
        self.contents.has_worlds() && self.trigger == Trigger::BeforeUpdate
    }
}

/// The maximum number of names in [`Backup::left_out`] and [`Backup::changed`]. It is enough to recognize the kind of file.
pub const MAX_NAMED_FILES: usize = 20;

/// Whether files may be written to while they are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveReads {
    /// No process writes: a file that changes or disappears is an error.
    Offline,
    /// The server runs with autosave off, and its plugins may write.
    Online,
}

/// The expected checksums of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Checksum {
    /// The number of files in it.
    pub files: u64,
    /// The sum of their sizes, in bytes.
    pub bytes: u64,
    /// The size of the archive in bytes.
    pub archive_bytes: u64,
    /// The SHA-256 of the archive: 64 hex digits, as `sha256sum` prints them.
    pub archive_sha256: String,
    /// The SHA-256 of the list of files.
    pub list_sha256: String,
}

/// The name of a backup that begins at `at`, of a server that ran `lock`.
pub fn new_id(at: Timestamp, lock: Option<&str>) -> String {
    let digits = lock.and_then(|lock| lock.get(..8)).unwrap_or("none");
    format!("{}-{digits}", at.strftime("%Y%m%dT%H%M%SZ"))
}
