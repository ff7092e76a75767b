//! Pure. Defines the actions that only the authors of a plugin can take.

use serde::{Deserialize, Serialize};

use crate::model::version::Minecraft;

/// An action of the plugin's authors. It was verified by solving the request as if it were taken.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(tag = "await", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum UpstreamAction {
    /// List the Minecraft version for an existing release, or publish a release for it.
    Listed {
        /// The plugin name.
        plugin: String,
        /// Its newest release that may be used, or the one that a page names.
        release: String,
        /// The Minecraft version.
        minecraft: Minecraft,
        /// Whether a new release would not help: a page names this one, or the plugin is pinned or held.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        only: bool,
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
    /// The Minecraft version that it is about.
    pub(crate) fn minecraft(&self) -> &Minecraft {
        match self {
            Self::Listed { minecraft, .. } | Self::Released { minecraft, .. } => minecraft,
        }
    }

    /// The name of the plugin whose author can act.
    pub fn plugin(&self) -> &str {
        match self {
            Self::Listed { plugin, .. } | Self::Released { plugin, .. } => plugin,
        }
    }
}
