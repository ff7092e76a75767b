//! Pure. Defines the explanation of a chosen version set.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::UnreadPart;
use super::blocker::Blocker;
use super::conflict::is_zero;
use super::conflict::{Hint, HintsLeftOut};
use super::image::ChosenImage;
use super::shared_plugin::SharedVersion;
use super::upstream_action::UpstreamAction;
use super::warning::Warning;
use super::why_not::PaperPin;
use crate::model::budget::BudgetExceeded;
use crate::model::compatibility_facts::UsedFact;
use crate::model::ignore_unknown_fields::passing_over;
use crate::model::software::{PaperName, Software};
use crate::model::unusable::Unusable;
use crate::model::version::Minecraft;

/// The explanation of a solution: the chosen versions, and why no newer ones were chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SolvedExplanation {
    /// The server as the request names it.
    pub server: String,
    /// The server software. Absent for Paper. All fields named after Paper refer to this software.
    #[serde(default, skip_serializing_if = "Software::is_paper")]
    pub software: Software,
    /// The chosen Paper version.
    pub paper: ChosenPaper,
    /// The chosen Java version and image.
    pub image: ChosenImage,
    /// The chosen plugins, in the order of the lock.
    pub plugins: Vec<ChosenPlugin>,
    /// Running plugins that are removed because no Plugin object requests them and no plugin needs them: name and
    /// version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<(String, String)>,
    /// Newer Paper versions that were not chosen: the next one, then the newest one if that is another. At most two.
    pub newer_paper: Vec<NewerPaper>,
    /// Plugins that strategy `latest` left behind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_behind: Vec<NotUpdatedWithLatest>,
    /// Facts about versions that constrain the chosen plugins and that no page states, each with its source.
    #[serde(default, deserialize_with = "passing_over", skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<UsedFact>,
    /// Assumptions and other warnings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
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
    /// Parts of the catalog that could not be read, and without which a better answer may exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<UnreadPart>,
    /// Set if lists were read after the instant of the request, because older versions of a list are not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lists_read_later: Option<Timestamp>,
}

impl SolvedExplanation {
    /// Whether the solution differs from the running versions.
    pub fn is_change(&self) -> bool {
        is_change(&self.paper, &self.plugins, &self.removed)
    }

    /// The reason why the version set is not deployed: a plugin name that several files share, with those files.
    pub fn deploy_blocker(&self) -> Option<(&str, &[String])> {
        self.warnings.iter().find_map(|warning| {
            let Warning::SharedName { name, files, stops: true } = warning else { return None };
            Some((name.as_str(), files.as_slice()))
        })
    }
}

/// Whether the solution differs from the running versions.
pub(crate) fn is_change(paper: &ChosenPaper, plugins: &[ChosenPlugin], removed: &[(String, String)]) -> bool {
    let changes = |plugin: &ChosenPlugin| !plugin.runs_now || plugin.instead_of.is_some();
    !paper.runs_now || !removed.is_empty() || plugins.iter().any(changes)
}

/// The chosen Paper version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ChosenPaper {
    /// The Minecraft version.
    pub minecraft: Minecraft,
    /// The build.
    pub build: u32,
    /// The publication time of the build.
    pub published: Timestamp,
    /// The running version, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<PaperName>,
    /// Whether exactly this build runs now.
    pub runs_now: bool,
    /// A newer build of the same Minecraft version that may not be used yet, with the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newer_build: Option<NewerBuild>,
}

/// A newer build and the reason why it was not chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NewerBuild {
    /// Its number.
    pub build: u32,
    /// The reason. `None` if the user pinned another build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unusable: Option<Unusable>,
}

/// One chosen plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ChosenPlugin {
    /// The display name.
    pub name: String,
    /// Plugin objects that request it. Empty if only other plugins need it.
    pub objects: Vec<String>,
    /// Names of the chosen plugins that need it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needed_by: Vec<String>,
    /// The chosen version.
    pub version: String,
    /// Its publication time, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Timestamp>,
    /// The evidence that it runs on the chosen Paper version.
    pub listing: Listing,
    /// The running version, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<String>,
    /// Whether any version of it runs now.
    pub runs_now: bool,
    /// The newest release on its channel, if that was not chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<NewerRelease>,
    /// The newest release that only waits for a date or for other plugins, if [`Self::newest`] has another reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<NewerRelease>,
    /// The last release that was published after the chosen one, although its version is lower.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub later: Option<LaterRelease>,
}

/// A release of an older line, published after the chosen release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LaterRelease {
    /// Its version.
    pub version: String,
    /// Its publication time.
    pub published: Timestamp,
}

impl ChosenPlugin {
    /// The newer releases of all plugins, each with its plugin. The newest release of a plugin comes first.
    pub fn newer(plugins: &[Self]) -> impl Iterator<Item = (&Self, &NewerRelease)> {
        plugins.iter().flat_map(|plugin| plugin.newest.iter().chain(&plugin.next).map(move |newer| (plugin, newer)))
    }
}

/// The evidence that a release runs on a Paper version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(tag = "known", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Listing {
    /// Its page lists the version.
    Listed,
    /// Its page lists a version with the same network protocol, or one that Paper never built.
    Sibling {
        /// The listed version.
        of: Minecraft,
    },
    /// An override of the user.
    Override,
    /// The page lists no version at all. This is allowed, with a warning.
    NoList,
    /// Not listed, but it runs now and stays (strategy `latest`).
    RunsNow,
    /// Delisted, but it runs now and stays.
    #[serde(rename = "lost")]
    Delisted,
    /// Its page could not be read. It runs now and stays.
    Unread,
}

/// A newer release that was not chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NewerRelease {
    /// Its version.
    pub version: String,
    /// Its publication time, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Timestamp>,
    /// The reason why it was not chosen.
    pub because: WhyOlder,
}

/// The reason why an older release of a chosen plugin was preferred to this one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(tag = "why", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum WhyOlder {
    /// It may not be used.
    Unusable {
        /// The reason.
        unusable: Unusable,
    },
    /// Its list does not name the chosen Paper version.
    NotListed {
        /// The newest version on its list.
        up_to: Option<Minecraft>,
    },
    /// The user pinned another release.
    Pinned,
    /// It is incompatible with these other plugins, in their chosen versions.
    Others {
        /// Display names with the chosen versions.
        with: Vec<String>,
        /// The facts behind it that no page states.
        #[serde(default, deserialize_with = "passing_over", skip_serializing_if = "Vec::is_empty")]
        facts: Vec<UsedFact>,
    },
    /// It needs these plugins, which are not available with the rest.
    Needs {
        /// Display names.
        needs: Vec<String>,
    },
    /// Several servers share one version of the plugin, and some of them cannot use this release.
    SharedVersion {
        /// The plugin and the servers.
        shared_version: SharedVersion,
    },
}

/// A newer Paper version that was not chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NewerPaper {
    /// The Minecraft version.
    pub minecraft: Minecraft,
    /// The publication time of its first build.
    pub since: Timestamp,
    /// The reason why it may not be used at all, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unusable: Option<Unusable>,
    /// Set if a pin of the user rules it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<PaperPin>,
    /// The plugins that block it, by name. Also set if it may not be used anyway.
    pub blocked_by: Vec<Blocker>,
    /// Set if the blockers could not be determined within the budget. Then no blocker is listed and no plugin counts as
    /// ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gave_up: Option<BudgetExceeded>,
    /// The shared plugins that block it because several servers use one version of them. Also set if it is blocked for
    /// another reason, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shared_versions: Vec<SharedVersion>,
    /// The number of chosen plugins that support it.
    pub ready: usize,
    /// Whether the update is irreversible: a world that this version opened cannot return to the chosen version.
    pub one_way: bool,
}

/// A plugin that strategy `latest` left behind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NotUpdatedWithLatest {
    /// The display name.
    pub name: String,
    /// The Plugin object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// The blocker: the plugin itself, or a plugin that it needs.
    pub blocker: Blocker,
    /// The running version that stays. `None` if the plugin is not installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stays: Option<String>,
}
