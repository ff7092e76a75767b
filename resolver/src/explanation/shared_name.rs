//! Pure. Defines a plugin name that several files share.

use serde::{Deserialize, Serialize};

/// A plugin name that several files declare or provide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SharedName {
    /// The name.
    pub name: String,
    /// The files in `plugins/`.
    pub files: Vec<String>,
}
