//! Pure. Models facts about versions that no page states: which release of one plugin is compatible with which releases
//! of another.

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use super::version::range::Range;

/// Facts that an admin recorded for all servers of a cluster. A later fact about the same two plugins and the same
/// release replaces an earlier one. The constraints of a Plugin (`spec.requires`) replace both.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CompatibilityFacts(Vec<VersionFact>);

/// One fact: certain releases of a plugin need certain releases of another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VersionFact {
    /// The dependent: name, slug or id of its project.
    pub plugin: String,
    /// The releases of it that the fact is about. All if absent.
    #[serde(default)]
    pub releases: Range,
    /// The plugin and versions that they need.
    pub requires: Requirement,
    /// The origin of the fact: a URL, a file, a person.
    pub source: String,
    /// The date of the fact.
    pub date: Date,
}

/// A required plugin, in certain versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Requirement {
    /// Name, slug or id of its project, or the name of the Plugin object that requests it.
    pub plugin: String,
    /// The sufficient versions.
    pub version: Range,
}

/// The source of a statement about the compatibility of two releases.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(tag = "who", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum FactSource {
    /// The table in the resolver.
    BuiltIn {
        /// Where it was read.
        source: String,
        /// The date.
        date: Date,
    },
    /// The facts of the cluster.
    Cluster {
        /// Where it was found.
        source: String,
        /// The date.
        date: Date,
    },
    /// `spec.requires` of a Plugin.
    Plugin {
        /// The object.
        object: String,
    },
}

/// A fact that constrains two plugins of a server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UsedFact {
    /// The dependent plugin, by display name.
    pub plugin: String,
    /// Its version.
    pub version: String,
    /// The plugin it needs, by display name.
    pub needs: String,
    /// The sufficient versions, as written.
    pub range: Range,
    /// The source of the fact.
    pub says: FactSource,
}

impl CompatibilityFacts {
    /// No facts.
    pub(crate) const NONE: Self = Self(Vec::new());

    /// All facts, in the order of the file.
    pub fn all(&self) -> &[VersionFact] {
        &self.0
    }
}

impl From<Vec<VersionFact>> for CompatibilityFacts {
    fn from(facts: Vec<VersionFact>) -> Self {
        Self(facts)
    }
}
