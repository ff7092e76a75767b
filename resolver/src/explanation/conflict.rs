//! Pure. Defines the data of an unsolvable request, and of the hints.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::UnreadPart;
use super::{IneligibleCandidate, ListedRelease, SharedVersion, UpstreamAction};
use crate::model::catalog::{BuildChannel, Channel, ProjectKey};
use crate::model::compatibility_facts::UsedFact;
use crate::model::ignore_unknown_fields::passing_over;
use crate::model::request::{Hold, OverrideMode};
use crate::model::software::{PaperName, Software};
use crate::model::unusable::Unusable;
use crate::model::version::Minecraft;

/// An action of the user. Each was verified: the request was solved again with it applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Hint {
    /// The steps, which have to be taken together.
    pub steps: Vec<HintStep>,
    /// The Paper version that the server would run then.
    pub gives: PaperName,
    /// The Minecraft version to which the world could not return afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub irreversible_from: Option<Minecraft>,
}

/// One field to set, or an instant to wait for. The order is that of the hints, lowest risk first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(tag = "do", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum HintStep {
    /// No action: the request is solved by itself at that time.
    WaitUntil {
        /// The instant.
        at: Timestamp,
    },
    /// Remove a hold.
    Release {
        /// The Plugin object.
        object: String,
        /// Where the hold is set: on the Plugin, or on the server for the Plugin.
        by: Hold,
    },
    /// `compatibilityOverride` with `mode: Add` on a Plugin.
    AllowMinecraft {
        /// The Plugin object.
        object: String,
        /// The complete value of `minecraftVersions`: the existing entries, then the version to add.
        minecraft_versions: Vec<String>,
        /// The complete value of `releases`: the existing entries, then the release in question.
        releases: Vec<String>,
    },
    /// `compatibilityOverride` of a Plugin that already has one in another mode: the mode stays, and its value changes.
    ChangeOverride {
        /// The Plugin object.
        object: String,
        /// The existing mode.
        mode: OverrideMode,
        /// The complete value of `minecraftVersions`.
        minecraft_versions: Vec<String>,
        /// The complete value of `releases`.
        releases: Vec<String>,
    },
    /// Remove `compatibilityOverride` from a Plugin.
    DropOverride {
        /// The Plugin object.
        object: String,
    },
    /// `spec.updateDelay: 0s` on a Plugin.
    NoPluginDelay {
        /// The Plugin object.
        object: String,
    },
    /// `spec.updateDelay: 0s` on the server.
    NoServerDelay,
    /// `spec.channel` on a Plugin.
    PluginChannel {
        /// The Plugin object.
        object: String,
        /// The channel to allow.
        channel: Channel,
    },
    /// `spec.channel` on the server.
    ServerChannel {
        /// The channel to allow.
        channel: BuildChannel,
    },
    /// `spec.updateStrategy: auto` on a Plugin instead of its pin.
    UnpinPlugin {
        /// The Plugin object.
        object: String,
    },
    /// `spec.updateStrategy: auto` on a Plugin instead of `latest`: each server gets its own newest release.
    PluginPerServer {
        /// The Plugin object.
        object: String,
    },
    /// `spec.updateStrategy: auto` on the server instead of its pin.
    UnpinServer,
    /// Remove the image pin, so that the image is chosen automatically.
    UnpinImage,
    /// `spec.imagePolicy: Follow` on the server.
    ImageFollows,
    /// `spec.image` on the server: another image from the same repository.
    PinImage {
        /// The image with its tag and digest.
        image: String,
    },
    /// `spec.dependencies: Install` on the server.
    InstallDependencies,
    /// Declare that unmanaged JARs were checked: `kubectl nightshift trust`.
    TrustFiles {
        /// The server, as the request names it.
        server: String,
        /// Their names in `plugins/`.
        files: Vec<String>,
        /// The Minecraft version on which they were checked.
        minecraft: Minecraft,
    },
    /// `spec.unmanagedPlugins: Warn` on the server.
    WarnUnmanaged,
    /// Create Plugin objects for needed plugins that no Plugin object requests.
    AddPlugins {
        /// All of them.
        plugins: Vec<ProposedManifest>,
    },
    /// `spec.hotfixSiblings: Trust` on the server.
    TrustSiblings,
    /// `spec.unmanagedPlugins: Ignore` on the server: JARs that do not load are the user's responsibility.
    IgnoreUnmanaged,
    /// `spec.unlisted: Assume` on the server.
    AssumeUnlisted,
    /// Remove an entry from `spec.requires` of a Plugin.
    DropRequirement {
        /// The Plugin object.
        object: String,
        /// The plugin that the entry is about, as written there.
        plugin: String,
    },
    /// `spec.allowDowngrade: true` on a Plugin.
    AllowDowngrade {
        /// The Plugin object.
        object: String,
    },
    /// `spec.version` of a pin that does not exist, or that rules out the requested version.
    PinServer {
        /// An existing version.
        version: Minecraft,
        /// An existing build, for a `build-pin`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        build: Option<u32>,
    },
    /// `spec.version` of a Plugin's pin that does not exist.
    PinPlugin {
        /// The Plugin object.
        object: String,
        /// An existing version.
        version: String,
    },
}

/// The reason why a plugin may be downgraded below the running release.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(tag = "down", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum DowngradePermission {
    /// `spec.allowDowngrade`, on its Plugin or on one that needs it.
    Allowed,
    /// Its pin.
    Pinned,
    /// The running release may not be used anywhere any more.
    Unusable {
        /// The reason.
        unusable: Unusable,
    },
    /// The running release is delisted, and the `compatibilityOverride` of its Plugin excludes it from its Paper
    /// version, too.
    Overridden,
    /// The running release is delisted, and it is incompatible with these plugins, too.
    Others {
        /// Display names with the chosen versions.
        with: Vec<String>,
        /// The facts behind it that no page states.
        #[serde(default, deserialize_with = "passing_over", skip_serializing_if = "Vec::is_empty")]
        facts: Vec<UsedFact>,
    },
}

/// A proposed Plugin object: the manifest to apply.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProposedManifest {
    /// `metadata.name`
    pub object: String,
    /// `metadata.namespace`, if the server has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// `spec.source`
    pub key: ProjectKey,
    /// `spec.channel`: that of the plugin that needs it.
    pub channel: Channel,
    /// `spec.instanceSelector` as one line of JSON: that of the plugin that needs it.
    pub selector: String,
    /// `spec.compatibilityOverride` with `mode: Add`, if its page lists too little.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allows: Option<ListOverride>,
}

/// The entries that a proposed Plugin adds to a list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ListOverride {
    /// `minecraftVersions`
    pub minecraft_versions: Vec<String>,
    /// `releases`
    pub releases: Vec<String>,
}

/// The reason why not every possible hint was tried: there may be more than the listed ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(tag = "because", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum HintsLeftOut {
    /// Each hint requires solving the whole group, which is too large: no hint was tried.
    GroupTooLarge {
        /// The number of servers that are solved together.
        servers: usize,
    },
    /// The budget of the request was used up.
    BudgetUsedUp,
    /// There are many blockers at once, and users would not apply hints with so many steps. Those were not tried.
    TooManyAtOnce {
        /// The smallest number of steps of such a hint.
        steps: usize,
    },
}

/// The explanation of an unsolvable request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Conflict {
    /// The server as the request names it.
    pub server: String,
    /// The server software. Absent for Paper. All fields named after Paper refer to this software.
    #[serde(default, skip_serializing_if = "Software::is_paper")]
    pub software: Software,
    /// The running versions, which keep running. Absent if the server does not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<RunningNow>,
    /// The facts that together rule out every solution, in reading order.
    pub reasons: Vec<Reason>,
    /// The number of further facts that were left out for brevity.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: usize,
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
    /// Set if lists were read after the instant of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lists_read_later: Option<Timestamp>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde requires this signature")]
pub(crate) fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// The running versions, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RunningNow {
    /// The Paper version.
    pub paper: PaperName,
    /// Plugin name and version, sorted by name.
    pub plugins: Vec<(String, String)>,
}

/// One fact of an unsolvable request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(tag = "reason", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    /// The user pinned the Paper version.
    PaperPinned {
        /// `spec.version`
        version: Minecraft,
        /// `spec.build`
        build: Option<u32>,
    },
    /// The pinned Paper version does not exist.
    NoSuchPaper {
        /// `spec.version`
        version: Minecraft,
        /// Existing versions close to it, closest first.
        nearest: Vec<Minecraft>,
    },
    /// There is no Paper version to choose from.
    NoPaper,
    /// These Paper versions may not be used.
    PaperUnusable {
        /// The Paper versions.
        papers: Vec<Span>,
        /// The reason.
        unusable: Unusable,
    },
    /// A running plugin without a Plugin object is needed by unmanaged JARs, according to their descriptors or their
    /// pages.
    NeededByFiles {
        /// The plugin name.
        plugin: String,
        /// The JARs, by their names in `plugins/`.
        files: Vec<String>,
    },
    /// The pinned release does not exist.
    NoSuchRelease {
        /// The Plugin object.
        object: String,
        /// The plugin name.
        plugin: String,
        /// `spec.version`
        version: String,
        /// Existing versions close to it.
        nearest: Vec<String>,
    },
    /// The user pinned a plugin.
    PluginPinned {
        /// The Plugin object.
        object: String,
        /// The plugin name.
        plugin: String,
        /// `spec.version`
        version: String,
        /// The existing Paper versions that its list names.
        papers: Vec<Span>,
    },
    /// The newest usable release of a plugin is listed for none of these Paper versions, or no release is usable. An
    /// older one may be listed: other facts state why that one is not sufficient.
    NotListed {
        /// The plugin name.
        plugin: String,
        /// The Plugin object, if one requests it.
        object: Option<String>,
        /// The Paper versions.
        papers: Vec<Span>,
        /// Its newest release that may be used.
        newest: Option<ListedRelease>,
        /// The newest release that is blocked by both this reason and its list. Set if no list alone could make a
        /// release sufficient.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        both: Option<Box<IneligibleCandidate>>,
        /// The time when its list was read.
        read_at: Timestamp,
    },
    /// These releases would be sufficient but may not be used.
    ReleasesUnusable {
        /// The plugin name.
        plugin: String,
        /// The Plugin object, if one requests it.
        object: Option<String>,
        /// The newest of them.
        version: String,
        /// Its publication time, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        published: Option<Timestamp>,
        /// The number of older releases with the same reason.
        older: usize,
        /// The newest version on the list of the newest release.
        up_to: Option<Minecraft>,
        /// Set if the newest of them runs and is delisted.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        delisted: bool,
        /// The reason.
        unusable: Unusable,
    },
    /// A release of one plugin needs certain releases of another.
    Needs {
        /// The plugin name.
        plugin: String,
        /// The newest version with this requirement.
        version: String,
        /// The number of older versions with the same requirement.
        older: usize,
        /// The plugin that it needs.
        needs: String,
        /// The oldest sufficient version. `None` if no existing version is sufficient.
        at_least: Option<String>,
        /// The newest sufficient version. `None` if no newer one is ruled out and no page names the version.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at_most: Option<String>,
        /// Whether the requirement was guessed from publication dates.
        guessed: bool,
        /// Whether the other plugin is optional: the requirement applies only if it is installed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        optional: bool,
        /// The fact behind it, if no page states it: the sufficient versions and the source.
        #[serde(default, deserialize_with = "passing_over", skip_serializing_if = "Option::is_none")]
        fact: Option<UsedFact>,
    },
    /// Two plugins must not be installed together.
    Excludes {
        /// The plugin name.
        plugin: String,
        /// Its version.
        version: String,
        /// The excluded plugin.
        other: String,
        /// The excluded versions, newest first. Empty for all versions.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        releases: Vec<String>,
    },
    /// Only some releases are listed for these Paper versions, and other facts rule those out.
    OnlyThese {
        /// The plugin name.
        plugin: String,
        /// The Paper versions.
        papers: Vec<Span>,
        /// The oldest sufficient version.
        oldest: String,
        /// The newest sufficient version.
        newest: String,
    },
    /// A project has no release that this software could run.
    NoRelease {
        /// The plugin name.
        plugin: String,
        /// The Plugin object, if one requests it.
        object: Option<String>,
        /// The Paper versions.
        #[serde(default)]
        papers: Vec<Span>,
    },
    /// Several servers share one version of a plugin, and no version works for this server and the others. This server
    /// alone has a solution.
    SharedVersion {
        /// The plugin, and the versions that each server could have.
        shared_version: SharedVersion,
    },
}

/// A range of Paper versions without a gap, in the order of the existing versions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Span {
    /// The oldest.
    pub from: Minecraft,
    /// The newest. May equal the oldest.
    pub to: Minecraft,
}
