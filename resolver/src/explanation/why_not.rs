//! Pure. Defines the data of "why not this Paper version?".

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::conflict::is_zero;
use super::{Blocker, Hint, HintsLeftOut, SharedName, SharedVersion, UpstreamAction};
use crate::model::software::{PaperName, Software};
use crate::model::unusable::Unusable;
use crate::model::version::Minecraft;

/// The result of "why not this Paper version?".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WhyNot {
    /// The server as the request names it.
    pub server: String,
    /// The server software. Absent for Paper. All fields named after Paper refer to this software.
    #[serde(default, skip_serializing_if = "Software::is_paper")]
    pub software: Software,
    /// The requested Minecraft version.
    pub target: Minecraft,
    /// Whether the server can run it.
    pub possible: bool,
    /// Whether Paper has any build of it.
    pub exists: bool,
    /// Existing versions close to it, if it does not exist or has no build that could ever be used. The hints lead to
    /// the first of these then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nearest: Vec<Minecraft>,
    /// The reason why the Paper version itself may not be used, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unusable: Option<Unusable>,
    /// A pin that rules it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<PaperPin>,
    /// Set if it has no build yet, and it was treated as if it had one (`--target`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unreleased: bool,
    /// Plugins that have a release for it.
    pub ready: Vec<String>,
    /// Plugins that have none.
    pub blockers: Vec<Blocker>,
    /// The state of each requested plugin, if that was requested (`--target`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plugins: Vec<PluginState>,
    /// The shared plugins that block it because several servers use one version of them. Also set if it is blocked for
    /// another reason, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared_versions: Vec<SharedVersion>,
    /// A plugin name that several files of the version set for it share: the operator does not deploy that version set.
    /// Set only if there is no other reason and the version does not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_name: Option<SharedName>,
    /// The newest version that is possible, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nearest_possible: Option<PaperName>,
    /// Possible actions. Each was verified by solving the request with it applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<Hint>,
    /// The number of further hints that were left out for brevity. They change or risk more.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_hints: usize,
    /// Set if not every possible hint was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hints_left_out: Option<HintsLeftOut>,
    /// Actions of plugin authors that would help, all of them together. Verified by solving as if they were taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<UpstreamAction>,
}

/// Whether one plugin supports the requested Minecraft version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PluginState {
    /// The display name.
    pub name: String,
    /// Its newest release that supports it. Absent if there is none, or if a dependency has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its publication time, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Timestamp>,
    /// The time of the authors' last release. Set if the only missing parts are a list entry or a usable release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_release_at: Option<Timestamp>,
}

impl WhyNot {
    /// The result for a version without a build yet. The eligibility of future builds and the resulting version set are
    /// unknown.
    #[must_use]
    pub fn into_unreleased(self) -> Self {
        let nearest_possible = self.nearest_possible.filter(|nearest| nearest.minecraft != self.target);
        Self {
            unreleased: true,
            possible: false,
            unusable: None,
            hints: Vec::new(),
            more_hints: 0,
            hints_left_out: None,
            nearest_possible,
            ..self
        }
    }
}

/// A pin of the Paper version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PaperPin {
    /// `spec.version`
    pub version: Minecraft,
    /// `spec.build`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<u32>,
}
