//! Pure. Defines the actions that only the authors of a plugin can take.

use serde::{Deserialize, Serialize};

use crate::model::version::Minecraft;

/// An action of the plugin's authors. It changes none of the user's settings, so it was not verified.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(tag = "await", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum UpstreamAction {
    /// List the Minecraft version for an existing release, or publish a release for it.
    Listed {
        /// The plugin name.
        plugin: String,
        /// Its newest release that may be used.
        release: String,
        /// The Minecraft version.
        minecraft: Minecraft,
    },
    /// Publish a release for the Minecraft version: no existing release would be sufficient, even with a list entry.
    Released {
        /// The plugin name.
        plugin: String,
        /// The Minecraft version.
        minecraft: Minecraft,
    },
}

impl UpstreamAction {
    /// The name of the plugin whose author can act.
    pub fn plugin(&self) -> &str {
        match self {
            Self::Listed { plugin, .. } | Self::Released { plugin, .. } => plugin,
        }
    }
}
