//! Pure. Defines the parts of the catalog that could not be read, and without which a better answer may exist.

use serde::{Deserialize, Serialize};

/// A part that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UnreadPart {
    /// The kind of part.
    pub kind: UnreadKind,
    /// `Paper 1.21.11`, `LuckPerms 5.5.17`, `modrinth/luckperms`, or the repository of the image.
    pub what: String,
    /// The reason.
    pub because: String,
}

/// The kind of a part that could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum UnreadKind {
    /// The builds of a newer version of the software.
    Builds,
    /// One release of a plugin, which is left out.
    Release,
    /// The page of a running plugin, which stays at its version.
    RunningPlugin,
    /// The page of a plugin that does not run. It is left out until its page is read.
    NewPlugin,
    /// The tags of the image, so that none is chosen.
    Image,
}
