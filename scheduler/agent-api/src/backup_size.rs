//! Pure. Defines the measured size of a future backup.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::Contents;

/// The size of a future backup, as the sum of its file sizes when they were measured. An archive of the files may be smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sizes {
    /// When the measurement began.
    pub at: Timestamp,
    /// All worlds, in bytes.
    pub worlds: u64,
    /// Settings, plugins and their data, in bytes.
    pub server_files: u64,
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
}
