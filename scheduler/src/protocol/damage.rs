//! Pure. What a server's log has told of damage to its worlds.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The lines that tell of chunks or region files that are not what was written there. It is forgotten when other worlds are put in their
/// place, or some time after the last line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DamageTold {
    /// When the first one was read; where nobody has written to the log for longer than that, when somebody last did.
    pub since: Timestamp,
    /// The same of the last one.
    pub last: Timestamp,
    /// How many there were.
    pub lines: u64,
    /// What the first one says, as far as it can be shown.
    pub first: String,
}
