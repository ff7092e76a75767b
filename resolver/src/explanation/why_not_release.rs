//! Pure. Defines the answer to "why not this release?".

use serde::{Deserialize, Serialize};

use super::{Explanation, WhyOlder};
use crate::model::software::{PaperName, Software};

/// The result of "why not this release?".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WhyNotRelease {
    /// The server as the request names it.
    pub server: String,
    /// The server software. Absent for Paper. All fields named after Paper refer to this software.
    #[serde(default, skip_serializing_if = "Software::is_paper")]
    pub software: Software,
    /// The display name.
    pub plugin: String,
    /// The Plugin object that requests it.
    pub object: String,
    /// The requested version, as its authors write it if it exists.
    pub version: String,
    /// Its publication time, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<jiff::Timestamp>,
    /// Whether it is in the version set, and the reason if not.
    pub state: ReleaseState,
    /// The Paper version of the result. Absent if the request is unsolvable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paper: Option<PaperName>,
    /// The release of this plugin in that result. Absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead: Option<String>,
    /// The result with this release pinned, from an actual solver run. Absent if it is chosen or does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<Pinned>,
}

/// Whether a release is in the chosen version set, and the reason if not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(tag = "is", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ReleaseState {
    /// It is in the version set.
    Chosen,
    /// There is no reason of its own against it, and a newer release is compatible with the rest.
    Older,
    /// This reason excludes it.
    Excluded {
        /// The reason.
        because: WhyOlder,
    },
    /// There is no solution, and no reason of its own against it.
    NoReleaseMatches,
    /// The plugin has no release with this version.
    NoSuchRelease {
        /// Existing versions close to it.
        nearest: Vec<String>,
    },
}

/// The result with a release pinned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(tag = "then", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Pinned {
    /// A version set.
    Set {
        /// Its Paper version.
        paper: PaperName,
        /// The other plugins that would change, by name.
        changes: Vec<OtherRelease>,
    },
    /// No version set that would be deployed, and the reason.
    NoSet {
        /// The complete result for the request with the pin.
        answer: Box<Explanation>,
    },
}

/// A plugin that would change its release, be added, or be removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OtherRelease {
    /// The display name.
    pub plugin: String,
    /// Its version with the pin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its version without the pin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<String>,
}
