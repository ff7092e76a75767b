//! Pure. How much a copy of a server would hold.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::backup::Contents;

/// How much a copy would hold, by the sizes of the files when they were looked at. Sizes of files, not what an archive of them takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sizes {
    /// When that was begun.
    pub at: Timestamp,
    /// All worlds, in bytes.
    pub worlds: u64,
    /// Settings, plugins and their data, in bytes.
    pub server_files: u64,
}

impl Sizes {
    /// Of a copy of this.
    pub fn of(&self, contents: Contents) -> u64 {
        match contents {
            Contents::Worlds => self.worlds,
            Contents::ServerFiles => self.server_files,
            Contents::Everything => self.worlds.saturating_add(self.server_files),
        }
    }
}
