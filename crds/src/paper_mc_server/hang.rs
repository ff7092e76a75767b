//! Pure. Defines the reaction to a server that hangs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The reaction to a running server that has answered no ping or no command for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum OnHang {
    /// It is reported.
    #[default]
    Report,
    /// It is reported, and restarted after two minutes.
    Restart,
}
