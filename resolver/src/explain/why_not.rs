//! Pure. The data of "why not this Paper?".

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::conflict::is_zero;
use super::{Blocker, Hint, HintsLeftOut, OneVersion, PaperName, SharedName, UpstreamAction};
use crate::software::Software;
use crate::unusable::Unusable;
use crate::version::Minecraft;

/// The answer to "why not this Paper?".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WhyNot {
    /// The server as the request names it.
    pub server: String,
    /// What it runs as; absent for Paper. Whatever is called Paper here is of this.
    #[serde(default, skip_serializing_if = "Software::is_paper")]
    pub software: Software,
    /// The Minecraft version asked about.
    pub target: Minecraft,
    /// Whether nothing speaks against it.
    pub possible: bool,
    /// Whether Paper has a build of it at all.
    pub exists: bool,
    /// Real ones next to it, when it does not exist or has no build that could ever be used. What can be done leads to the first
    /// of these then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nearest: Vec<Minecraft>,
    /// Why the Paper itself may not be used, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unusable: Option<Unusable>,
    /// A pin that stands against it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<PaperPin>,
    /// Set when there is no build of it yet, and it was taken as if there were one (`--target`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub to_come: bool,
    /// Plugins that have a release for it.
    pub ready: Vec<String>,
    /// Plugins that do not.
    pub holders: Vec<Blocker>,
    /// Each plugin that is asked for, where that was the question (`--target`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plugins: Vec<PluginState>,
    /// The plugins that are one version on several servers and hold it so; also where something else stands against it besides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub one_version: Vec<OneVersion>,
    /// A plugin name that several files of the set for it have, where nothing else stands against it and it does not run: the operator does
    /// not bring that set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_name: Option<SharedName>,
    /// The newest that can be had, if anything can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nearest_possible: Option<PaperName>,
    /// What can be done; each was proven by solving with it applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<Hint>,
    /// How many further ways were left out to stay short; they change or risk more.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_hints: usize,
    /// Set when not every way was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hints_left_out: Option<HintsLeftOut>,
    /// Who would have to release or list what. Not proven: it changes nothing of yours.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<UpstreamAction>,
}

/// Whether one plugin is ready for the Minecraft version asked about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PluginState {
    /// The name people know.
    pub name: String,
    /// Its newest release that is ready; absent when none is, or when something that it needs is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// When that was published, if anybody says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Timestamp>,
    /// When its authors last published anything, where all that is missing is that they list something, or
    /// have anything that may be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent_since: Option<Timestamp>,
}

impl WhyNot {
    /// The same about a version that has no build yet: how it will be judged is not known, nor what would then run.
    #[cfg(feature = "cli")]
    pub(crate) fn before_it_is_out(self) -> Self {
        let nearest_possible = self.nearest_possible.filter(|nearest| nearest.minecraft != self.target);
        Self {
            to_come: true,
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

/// A pin of Paper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PaperPin {
    /// `spec.version`
    pub version: Minecraft,
    /// `spec.build`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<u32>,
}
