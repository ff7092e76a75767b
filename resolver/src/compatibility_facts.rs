//! Pure. Facts about versions that no page states: which release of one plugin goes with which releases of another.

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use crate::version::range::Range;

#[cfg(feature = "manifest")]
mod file;

#[cfg(feature = "manifest")]
pub use file::FactsFault;

/// What somebody recorded for all servers: the cluster's facts. A later one about the same two plugins and the same
/// release stands instead of an earlier one; what a Plugin says itself (`spec.requires`) stands instead of both.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CompatibilityFacts(Vec<VersionFact>);

/// One fact: certain releases of a plugin need certain releases of another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VersionFact {
    /// Whose releases: name, slug or id of the project.
    pub plugin: String,
    /// Which of them; all when absent.
    #[serde(default)]
    pub releases: Range,
    /// What they need.
    pub requires: Requirement,
    /// Where it was found: an address, a file, a person.
    pub source: String,
    /// When it was found.
    pub date: Date,
}

/// A plugin that has to be there, in certain versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Requirement {
    /// Name, slug or id of its project, or the name of the Plugin object that asks for it.
    pub plugin: String,
    /// Which versions will do.
    pub version: Range,
}

/// Who says that two releases go together, or do not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(tag = "who", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum FactSource {
    /// The table in the resolver.
    BuiltIn {
        /// Where it was read.
        source: String,
        /// When.
        date: Date,
    },
    /// The cluster's facts.
    Cluster {
        /// Where it was found.
        source: String,
        /// When.
        date: Date,
    },
    /// `spec.requires` of a Plugin.
    Plugin {
        /// The object.
        object: String,
    },
}

/// A fact that binds two plugins of a server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UsedFact {
    /// The plugin that needs, by the name people know.
    pub plugin: String,
    /// Its version.
    pub version: String,
    /// The plugin it needs, by the name people know.
    pub needs: String,
    /// The versions that will do, as they were written.
    pub range: Range,
    /// Who says so.
    pub says: FactSource,
}

impl CompatibilityFacts {
    /// No fact.
    pub(crate) const NONE: Self = Self(Vec::new());

    /// Every fact, in the order of the file.
    pub fn all(&self) -> &[VersionFact] {
        &self.0
    }
}

impl From<Vec<VersionFact>> for CompatibilityFacts {
    fn from(facts: Vec<VersionFact>) -> Self {
        Self(facts)
    }
}
