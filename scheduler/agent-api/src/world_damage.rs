//! Pure. Defines the report on world damage in a server's log.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The log lines that report damaged chunks or region files. It is reset when the worlds are replaced, or some time after the last line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DamageReport {
    /// When the first line was read. If the log had not been written to for longer, the time of its last write.
    pub since: Timestamp,
    /// The same for the last line.
    pub last: Timestamp,
    /// The number of lines.
    pub lines: u64,
    /// The first line, as far as it can be displayed.
    pub first: String,
}
