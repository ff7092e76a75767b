//! Pure. The data of a no and of "why not", and what can be done about them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{IneligibleCandidate, ListedRelease, OneVersion, PaperName, UpstreamAction};
use crate::catalog::{BuildChannel, Channel, ProjectKey};
use crate::compatibility_facts::UsedFact;
use crate::ignore_unknown_fields::passing_over;
use crate::request::{Hold, OverrideMode};
use crate::software::Software;
use crate::unusable::Unusable;
use crate::version::Minecraft;

/// Something the user can do. Each was proven: the problem was solved again with it applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Hint {
    /// All of these, together.
    pub steps: Vec<HintStep>,
    /// What the server would run then.
    pub gives: PaperName,
    /// The Minecraft version that the world could not return to afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_way_back_to: Option<Minecraft>,
}

/// One field to set, or an instant to wait for. The order is that of the hints: what risks least comes first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(tag = "do", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum HintStep {
    /// Nothing to do: it solves itself then.
    WaitUntil {
        /// The instant.
        at: Timestamp,
    },
    /// Take a hold away.
    Release {
        /// Plugin object.
        object: String,
        /// Where the hold is written: on the Plugin, or on the server for it.
        by: Hold,
    },
    /// `compatibilityOverride` with `mode: Add` on a Plugin.
    AllowMinecraft {
        /// Plugin object.
        object: String,
        /// The whole value of `minecraftVersions`: the version to add after those that are there.
        minecraft_versions: Vec<String>,
        /// The whole value of `releases`: the one release it is about after those that are there.
        releases: Vec<String>,
    },
    /// `compatibilityOverride` of a Plugin that has one in another mode, which stays: another value of it.
    ChangeOverride {
        /// Plugin object.
        object: String,
        /// The mode that it has.
        mode: OverrideMode,
        /// The whole value of `minecraftVersions`.
        minecraft_versions: Vec<String>,
        /// The whole value of `releases`.
        releases: Vec<String>,
    },
    /// Take `compatibilityOverride` away from a Plugin.
    DropOverride {
        /// Plugin object.
        object: String,
    },
    /// `spec.updateDelay: 0s` on a Plugin.
    NoPluginDelay {
        /// Plugin object.
        object: String,
    },
    /// `spec.updateDelay: 0s` on the server.
    NoServerDelay,
    /// `spec.channel` on a Plugin.
    PluginChannel {
        /// Plugin object.
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
        /// Plugin object.
        object: String,
    },
    /// `spec.updateStrategy: auto` on a Plugin instead of `latest`: each server gets its own newest release.
    PluginPerServer {
        /// Plugin object.
        object: String,
    },
    /// `spec.updateStrategy: auto` on the server instead of its pin.
    UnpinServer,
    /// Let the image be chosen.
    UnpinImage,
    /// `spec.imagePolicy: Follow` on the server.
    ImageFollows,
    /// `spec.image` on the server: another one of the same repository.
    PinImage {
        /// With its tag and digest.
        image: String,
    },
    /// `spec.dependencies: Install` on the server.
    InstallDependencies,
    /// Say of JARs of one's own that they were checked: `kubectl nightshift trust`.
    TrustFiles {
        /// The server, as the request names it.
        server: String,
        /// Their names in `plugins/`.
        files: Vec<String>,
        /// The Minecraft that they were checked on.
        minecraft: Minecraft,
    },
    /// `spec.unmanagedPlugins: Warn` on the server.
    WarnUnmanaged,
    /// Plugins to write for what is needed and nobody asks for.
    AddPlugins {
        /// All of them.
        plugins: Vec<ProposedManifest>,
    },
    /// `spec.hotfixSiblings: Trust` on the server.
    TrustSiblings,
    /// `spec.unmanagedPlugins: Ignore` on the server: what does not load is left to its owner.
    IgnoreUnmanaged,
    /// `spec.unlisted: Assume` on the server.
    AssumeUnlisted,
    /// Take a line away from `spec.requires` of a Plugin.
    DropRequirement {
        /// Plugin object.
        object: String,
        /// The plugin that the line is about, as it is written there.
        plugin: String,
    },
    /// `spec.allowDowngrade: true` on a Plugin.
    AllowDowngrade {
        /// Plugin object.
        object: String,
    },
    /// `spec.version` of a pin that does not exist, or that stands against the version that was asked about.
    PinServer {
        /// A version that exists.
        version: Minecraft,
        /// A build that exists, for a `build-pin`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        build: Option<u32>,
    },
    /// `spec.version` of a Plugin's pin that does not exist.
    PinPlugin {
        /// Plugin object.
        object: String,
        /// A version that exists.
        version: String,
    },
}

/// What lets a plugin go below what runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(tag = "down", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum DowngradePermission {
    /// `spec.allowDowngrade`, on its Plugin or on one that needs it.
    Allowed,
    /// Its pin.
    Pinned,
    /// What runs may be used nowhere any more.
    Unusable {
        /// Why.
        unusable: Unusable,
    },
    /// What runs is on its page no more, and `compatibilityOverride` of its Plugin has it not run there either.
    Overridden,
    /// What runs is on its page no more, and does not go together with these either.
    Others {
        /// Names people know, with the chosen versions.
        with: Vec<String>,
        /// What says so that no page states.
        #[serde(default, deserialize_with = "passing_over", skip_serializing_if = "Vec::is_empty")]
        facts: Vec<UsedFact>,
    },
}

/// A Plugin that is proposed: the manifest to apply.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProposedManifest {
    /// `metadata.name`
    pub object: String,
    /// `metadata.namespace`, when the server has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// `spec.source`
    pub key: ProjectKey,
    /// `spec.channel`: that of the plugin that needs it.
    pub channel: Channel,
    /// `spec.instanceSelector` as one line of JSON: that of the plugin that needs it.
    pub selector: String,
    /// `spec.compatibilityOverride` with `mode: Add`, where its page lists too little.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allows: Option<ListOverride>,
}

/// What a proposed Plugin adds to a list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ListOverride {
    /// `minecraftVersions`
    pub minecraft_versions: Vec<String>,
    /// `releases`
    pub releases: Vec<String>,
}

/// Why not every way out was tried: what is shown is not all that there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(tag = "because", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum HintsLeftOut {
    /// Each way takes a solve of the whole group, and that is too large: none was tried.
    GroupTooLarge {
        /// The servers that are decided about together.
        servers: usize,
    },
    /// What the question may cost was used up.
    BudgetUsedUp,
    /// So much stands in the way at once that nobody would follow: ways with so many steps were not tried.
    TooManyAtOnce {
        /// The fewest steps of such a way.
        steps: usize,
    },
}

/// The no: why nothing meets the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Conflict {
    /// The server as the request names it.
    pub server: String,
    /// What it runs as; absent for Paper. Whatever is called Paper here is of this.
    #[serde(default, skip_serializing_if = "Software::is_paper")]
    pub software: Software,
    /// What runs now and goes on running, if anything does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<RunningNow>,
    /// The facts that together rule everything out, in reading order.
    pub reasons: Vec<Reason>,
    /// How many further facts were left out to stay short.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: usize,
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
    /// Set when lists were read after the instant of the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lists_read_later: Option<Timestamp>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for this signature")]
pub(super) fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// What runs now, in names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RunningNow {
    /// Paper.
    pub paper: PaperName,
    /// Plugin name and version, by name.
    pub plugins: Vec<(String, String)>,
}

/// One fact of a no.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(tag = "reason", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    /// The user pinned Paper.
    PaperPinned {
        /// `spec.version`
        version: Minecraft,
        /// `spec.build`
        build: Option<u32>,
    },
    /// The pinned Paper does not exist.
    NoSuchPaper {
        /// `spec.version`
        version: Minecraft,
        /// Real ones next to it, closest first.
        nearest: Vec<Minecraft>,
    },
    /// There is no Paper at all to choose from.
    NoPaper,
    /// These Papers may not be used.
    PaperUnusable {
        /// Which.
        papers: Vec<Span>,
        /// Why.
        unusable: Unusable,
    },
    /// A plugin runs that nobody asks for, and JARs of people's own need it, by what is inside them or by their pages.
    NeededByFiles {
        /// Plugin name.
        plugin: String,
        /// The JARs, by their names in `plugins/`.
        files: Vec<String>,
    },
    /// The pinned release does not exist.
    NoSuchRelease {
        /// Plugin object.
        object: String,
        /// Plugin name.
        plugin: String,
        /// `spec.version`
        version: String,
        /// Real ones next to it.
        nearest: Vec<String>,
    },
    /// The user pinned a plugin.
    PluginPinned {
        /// Plugin object.
        object: String,
        /// Plugin name.
        plugin: String,
        /// `spec.version`
        version: String,
        /// What its list names, among the Papers there are.
        papers: Vec<Span>,
    },
    /// The newest release of a plugin that may be used is listed for none of these Papers, or none may be used. An older one
    /// may be listed: other facts say why that does not do.
    NotListed {
        /// Plugin name.
        plugin: String,
        /// Plugin object, when somebody asked for it.
        object: Option<String>,
        /// Which Papers.
        papers: Vec<Span>,
        /// Its newest release that may be used.
        newest: Option<ListedRelease>,
        /// Where nothing is left that a list alone could let run: its newest release that this reason and its list both keep.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        both: Option<Box<IneligibleCandidate>>,
        /// When its list was read.
        read_at: Timestamp,
    },
    /// These releases would do but may not be used.
    ReleasesUnusable {
        /// Plugin name.
        plugin: String,
        /// Plugin object, when somebody asked for it.
        object: Option<String>,
        /// The newest of them.
        version: String,
        /// When that was published, if anybody says so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        published: Option<Timestamp>,
        /// How many older ones share the reason.
        older: usize,
        /// What the newest of them is listed up to.
        up_to: Option<Minecraft>,
        /// Set when the newest of them runs and its page has lost it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        lost: bool,
        /// Why.
        unusable: Unusable,
    },
    /// A release of one plugin needs certain releases of another.
    Needs {
        /// Plugin name.
        plugin: String,
        /// The newest version concerned.
        version: String,
        /// How many older ones need the same.
        older: usize,
        /// What it needs.
        needs: String,
        /// The oldest version that would do; `None`: none that exists.
        at_least: Option<String>,
        /// The newest version that would do; `None`: no newer one is ruled out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at_most: Option<String>,
        /// Whether that was guessed from dates.
        guessed: bool,
        /// Whether it goes without the other plugin too: it is bound only while that is there.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        optional: bool,
        /// The fact behind it, if no page states it: the versions that will do, and who says so.
        #[serde(default, deserialize_with = "passing_over", skip_serializing_if = "Option::is_none")]
        fact: Option<UsedFact>,
    },
    /// Two plugins must not be installed together.
    Excludes {
        /// Plugin name.
        plugin: String,
        /// Its version.
        version: String,
        /// What it excludes.
        other: String,
        /// Which versions of that, newest first; empty: all.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        releases: Vec<String>,
    },
    /// On these Papers only some releases are listed, and others rule those out.
    OnlyThese {
        /// Plugin name.
        plugin: String,
        /// Which Papers.
        papers: Vec<Span>,
        /// The oldest version that would do.
        oldest: String,
        /// The newest version that would do.
        newest: String,
    },
    /// A project has no release that this software could run.
    NoRelease {
        /// Plugin name.
        plugin: String,
        /// Plugin object, when somebody asked for it.
        object: Option<String>,
        /// Which Papers.
        #[serde(default)]
        papers: Vec<Span>,
    },
    /// A plugin is one version on several servers, and none suits this one and the others. Alone it could run.
    OneVersion {
        /// Which, and what each could have.
        one_version: OneVersion,
    },
}

/// A run of Paper versions without a gap, in the order of the versions there are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Span {
    /// The oldest.
    pub from: Minecraft,
    /// The newest; may be the same.
    pub to: Minecraft,
}
