//! Pure. Defines the measured size of a future backup.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::Contents;

/// The size of a future backup, as the sum of its file sizes when they were measured. The archive is smaller if they can be compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sizes {
    /// When the measurement began.
    pub at: Timestamp,
    /// All worlds, in bytes.
    pub worlds: u64,
    /// Settings, plugins and their data, in bytes.
    pub server_files: u64,
    /// The number of files and directories of the worlds.
    #[serde(default)]
    pub world_entries: u64,
    /// The number of files and directories of the settings, plugins and their data.
    #[serde(default)]
    pub server_file_entries: u64,
}

/// The maximum overhead of an archive per entry, in bytes: header, padding, a long name.
const MAX_ENTRY_OVERHEAD: u64 = 2560;

/// Content that cannot be compressed is stored in blocks with 5 bytes more for each 65,535, which is less than one in this many bytes.
const BYTES_PER_BLOCK_OVERHEAD: u64 = 8_192;

/// The maximum size of the ends of the archive and the record of the backup, in bytes.
const FIXED_OVERHEAD: u64 = 16 * 1024;

/// How many bytes a backup of so many files and directories needs in its repository, at most. The sizes of the files are summed up in `bytes`.
pub const fn space_for_backup(bytes: u64, entries: u64) -> u64 {
    let blocks = bytes / BYTES_PER_BLOCK_OVERHEAD;
    let entries = entries.saturating_mul(MAX_ENTRY_OVERHEAD);
    bytes.saturating_add(blocks).saturating_add(entries).saturating_add(FIXED_OVERHEAD)
}

impl Sizes {
    /// The size of a backup with these contents.
    pub fn total(&self, contents: Contents) -> u64 {
        match contents {
            Contents::Worlds => self.worlds,
            Contents::ServerFiles => self.server_files,
            Contents::Everything => self.worlds.saturating_add(self.server_files),
        }
    }

    /// How many bytes a backup with these contents needs in its repository, at most.
    pub fn space_needed(&self, contents: Contents) -> u64 {
        let entries = match contents {
            Contents::Worlds => self.world_entries,
            Contents::ServerFiles => self.server_file_entries,
            Contents::Everything => self.world_entries.saturating_add(self.server_file_entries),
        };
        space_for_backup(self.total(contents), entries)
    }
}
