//! Pure, without features. Copies of a server that are kept apart from it: what a copy is, which ones are kept, and (feature `edge`) the
//! tar archive that it is made as.
//!
//! What a copy holds, why it was taken and how long it stays does not depend on how it is kept: [`Contents`], [`Trigger`] and [`retention`] know
//! nothing of archives, so that another way of keeping one (a snapshot of the volume) can stand beside [`archive`] and [`shelf`]. It would have
//! a record without a [`Checksum`].

#[cfg(feature = "edge")]
pub mod archive;
#[cfg(feature = "edge")]
pub mod contents;
#[cfg(feature = "edge")]
pub mod create;
#[cfg(feature = "edge")]
pub mod due;
#[cfg(feature = "edge")]
pub mod repository;
#[cfg(feature = "edge")]
pub mod restore;
pub mod retention;
#[cfg(feature = "edge")]
pub mod size;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The form of what is written here. A record with another number was written by another version, and is not touched.
pub const FORMAT: u32 = 1;

/// Which part of a server's directory a copy holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Contents {
    /// All world folders, found by what is in them, and nothing else.
    Worlds,
    /// All but the world folders: settings, plugins and their data.
    ServerFiles,
    /// Both.
    Everything,
}

impl Contents {
    /// It holds the worlds.
    pub const fn has_worlds(self) -> bool {
        matches!(self, Self::Worlds | Self::Everything)
    }

    /// It holds what is not a world.
    pub const fn has_server_files(self) -> bool {
        matches!(self, Self::ServerFiles | Self::Everything)
    }
}

/// Why a copy was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Trigger {
    /// Between the stop and the start of an update: the server does not run.
    BeforeUpdate,
    /// By the clock, while the server runs.
    Scheduled,
    /// Because somebody asked for one, while the server runs.
    OnDemand,
}

/// One copy that is whole and was read back. The record that lies beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Backup {
    /// [`FORMAT`].
    pub format: u32,
    /// Its name: the instant, and the first digits of the lock that had run; a number for the second of one second. Sorts by time.
    pub id: String,
    /// When it was begun: nothing later is in it.
    pub started_at: Timestamp,
    /// When it had been read back.
    pub completed_at: Timestamp,
    /// Why.
    pub trigger: Trigger,
    /// What of.
    pub contents: Contents,
    /// The digest of the lock that ran before, or that runs; None on a volume where none of ours ever ran.
    pub lock: Option<String>,
    /// The digest of the lock that it was taken for; None: for none, the server ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The request that it was taken for, of a server that ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// The newest Minecraft that had opened any of the worlds; None if nothing says.
    pub minecraft: Option<String>,
    /// Minecraft's own number for it.
    pub data_version: Option<u32>,
    /// The world folders in it, relative to the server's directory, in order.
    pub folders: Vec<String>,
    /// What lies there and is not in it, because it can not be: links to nothing, sockets; of a server that ran, what was gone before it
    /// was read. The first [`LEFT_OUT_NAMED`] of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Files of a server that ran which somebody wrote to while they were read: what is in the copy may be of two minds. The first
    /// [`LEFT_OUT_NAMED`] of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// The server's log had told of damage to its worlds before it was taken. Not written when false: agents from before it was known take a
    /// record with the field for none of theirs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub after_damage: bool,
    /// How it is sealed.
    pub seal: Checksum,
}

impl Backup {
    /// An update could be gone back from with it: it holds the worlds, and was taken while nothing ran.
    pub fn is_way_back(&self) -> bool {
        self.contents.has_worlds() && self.trigger == Trigger::BeforeUpdate
    }
}

/// How many names [`Backup::left_out`] and [`Backup::changed`] have at most: enough to see what kind of thing it is.
pub const LEFT_OUT_NAMED: usize = 20;

/// Whether somebody may write to the files while they are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveReads {
    /// Nobody may: a file that changes or is gone is an error.
    Still,
    /// A server that runs, with saving switched off: its plugins go on writing.
    Live,
}

/// What must come out when a copy is read back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Checksum {
    /// Files in it.
    pub files: u64,
    /// Their sizes together, in bytes.
    pub bytes: u64,
    /// Size of the archive in bytes.
    pub archive_bytes: u64,
    /// SHA-256 of the archive: 64 hex digits, as `sha256sum` prints them.
    pub archive_sha256: String,
    /// SHA-256 of the list of files.
    pub list_sha256: String,
}

/// The name of a copy that is begun at `at`, of a server that ran `lock`.
pub fn id_of(at: Timestamp, lock: Option<&str>) -> String {
    let digits = lock.and_then(|lock| lock.get(..8)).unwrap_or("none");
    format!("{}-{digits}", at.strftime("%Y%m%dT%H%M%SZ"))
}
