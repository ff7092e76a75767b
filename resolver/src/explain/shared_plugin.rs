//! Pure. The data of plugins that are one version on several servers.

use serde::{Deserialize, Serialize};

use super::Span;
use super::conflict::is_zero;
use crate::compatibility_facts::UsedFact;
use crate::ignore_unknown_fields::passing_over;

/// Plugins that are one version on all servers of their Plugin objects (`updateStrategy: latest`), and what servers could
/// have of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OneVersion {
    /// The plugins; of several, only all of them together show it.
    pub plugins: Vec<SharedPlugin>,
    /// The server that was asked about, unless it could have the release in question; then those that stand against it.
    pub servers: Vec<ServerChoice>,
    /// How many further servers were left out to stay short.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: usize,
}

impl OneVersion {
    /// The names people know.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.plugins.iter().map(|plugin| plugin.plugin.as_str())
    }
}

/// A plugin that is one version on several servers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SharedPlugin {
    /// The Plugin object.
    pub object: String,
    /// The name people know.
    pub plugin: String,
}

/// What one server could have of a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ServerChoice {
    /// The server, as its request names it.
    pub server: String,
    /// The Papers that are open to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub papers: Option<Span>,
    /// The oldest version that works for it on one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest: Option<String>,
    /// The newest version that works for it on one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<String>,
    /// The versions between these two that do not, the newest first; not those that are less stable than both.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// Plugins that it has, with their versions, and that do not go together with the release in question. Said where nothing else
    /// stands against it there, and by what was chosen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<String>,
    /// Plugins that the release in question needs and that cannot be had there with the rest; said as the above is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// What says so that no page states.
    #[serde(default, deserialize_with = "passing_over", skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<UsedFact>,
}

impl ServerChoice {
    /// The server, and nothing that it could have.
    pub(super) fn nothing_said(server: &str) -> Self {
        Self {
            server: server.to_owned(),
            papers: None,
            oldest: None,
            newest: None,
            without: Vec::new(),
            with: Vec::new(),
            needs: Vec::new(),
            facts: Vec::new(),
        }
    }
}
