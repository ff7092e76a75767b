//! Pure. Defines the blockers of a newer Paper version.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::catalog::ProjectKey;
use crate::model::compatibility_facts::UsedFact;
use crate::model::ignore_unknown_fields::passing_over;
use crate::model::unusable::Unusable;
use crate::model::version::Minecraft;

/// A plugin that blocks a Paper version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Blocker {
    /// The display name.
    pub name: String,
    /// The Plugin object, if one requests it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// The project.
    pub key: ProjectKey,
    /// Its newest release that may be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<ListedRelease>,
    /// A release that would be sufficient, except for this reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nearly: Option<IneligibleCandidate>,
    /// The newest release that is blocked by both this reason and its list. Set if no list alone could make a release
    /// sufficient.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub both: Option<IneligibleCandidate>,
    /// Plugins that it is incompatible with. Set if each of them would be sufficient alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub together_with: Vec<String>,
    /// The releases of those plugins that it would accept. Set if they have no such release for the version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<UnmetNeed>,
    /// The facts behind it that no page states.
    #[serde(default, deserialize_with = "passing_over", skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<UsedFact>,
    /// Names of the plugins that are blocked with it, because they need it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needed_by: Vec<String>,
    /// The version that the user pinned, if the pin is the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<String>,
    /// Existing versions close to the pinned one, if that does not exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nearest: Vec<String>,
    /// The time of the authors' last release. Set if the only missing parts are a list entry or a usable release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_release_at: Option<Timestamp>,
    /// The time when its list was read.
    pub read_at: Timestamp,
}

/// A requirement on another plugin that cannot be met on a Paper version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UnmetNeed {
    /// The display name of the other plugin.
    pub name: String,
    /// Its Plugin object, if one requests it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// The newest accepted release: of those listed for the Paper version, otherwise of the usable ones, otherwise of
    /// all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<ListedRelease>,
    /// The reason why it may not be used. Absent if only a list entry is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unusable: Option<Unusable>,
}

/// A release and the newest version on its list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ListedRelease {
    /// Its version.
    pub version: String,
    /// Its publication time, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Timestamp>,
    /// Set if it runs and is delisted. It stays if no other release is sufficient.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub delisted: bool,
    /// Set if it runs and the page of its project could not be read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unread: bool,
    /// The newest Minecraft version on its list. `None` if it has no list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_to: Option<Minecraft>,
    /// The reason why the Paper version refuses to load it, regardless of overrides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refuses: Option<Unusable>,
    /// A hotfix sibling of the Paper version that its page lists, if `hotfixSiblings: Ask` prevents it from counting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sibling: Option<Minecraft>,
    /// Set if its page lists the Paper version and the user's `compatibilityOverride` removes it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overridden: bool,
}

/// A release that would be sufficient but may not be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct IneligibleCandidate {
    /// Its version.
    pub version: String,
    /// Its publication time, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Timestamp>,
    /// The reason why it may not be used.
    pub unusable: Unusable,
}

impl Blocker {
    /// Whether only a list entry is missing.
    pub(crate) fn waits_for_listing(&self) -> bool {
        let overridden = self.newest.as_ref().is_some_and(|newest| newest.overridden || newest.refuses.is_some());
        self.pinned.is_none() && self.nearly.is_none() && self.together_with.is_empty() && !overridden
    }

    /// Whether the plugin of this name is blocked by this one. A plugin that only blocks in combination is a blocker,
    /// too. A plugin that is merely installed in a version that this one does not accept is ready.
    pub(crate) fn blocks(&self, name: &str) -> bool {
        self.name == name || self.needed_by.iter().any(|other| other == name)
    }
}
