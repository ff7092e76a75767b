//! Pure. Defines the data of shared plugins, which are one version on several servers.

use serde::{Deserialize, Serialize};

use super::Span;
use super::conflict::is_zero;
use crate::model::compatibility_facts::UsedFact;
use crate::model::ignore_unknown_fields::passing_over;

/// Plugins that are one version on all servers of their Plugin objects (`updateStrategy: latest`), and the versions
/// that the servers could have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SharedVersion {
    /// The plugins. If there are several, they conflict only in combination.
    pub plugins: Vec<SharedPlugin>,
    /// This server, unless it could have the release in question, followed by the conflicting servers.
    pub servers: Vec<ServerChoice>,
    /// The number of further servers that were left out for brevity.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: usize,
}

impl SharedVersion {
    /// The display names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.plugins.iter().map(|plugin| plugin.plugin.as_str())
    }
}

/// A plugin that is one version on several servers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SharedPlugin {
    /// The Plugin object.
    pub object: String,
    /// The display name.
    pub plugin: String,
}

/// The versions of a plugin that one server could have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ServerChoice {
    /// The server, as its request names it.
    pub server: String,
    /// The Paper versions that it can choose from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub papers: Option<Span>,
    /// The oldest version that works on one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest: Option<String>,
    /// The newest version that works on one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<String>,
    /// The versions between these two that do not work, newest first, except those that are less stable than both.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// Installed plugins, with their chosen versions, that are incompatible with the release in question. Set only if
    /// the server has no other reason against it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<String>,
    /// Plugins that the release in question needs and that are not available there with the rest. Set in the same case
    /// as `with`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// The facts behind it that no page states.
    #[serde(default, deserialize_with = "passing_over", skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<UsedFact>,
}

impl ServerChoice {
    /// A server without any options.
    pub(crate) fn empty(server: &str) -> Self {
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
