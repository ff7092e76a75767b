//! Pure. What is said beside an answer.

use serde::{Deserialize, Serialize};

use super::DowngradePermission;
use crate::catalog::{BuildChannel, Channel, ProjectKey};
use crate::unusable::Unusable;
use crate::version::Minecraft;

/// Something that was assumed, or that the user should know.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(tag = "warning", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Warning {
    /// The project has nothing on the allowed channel: its most stable one was used.
    ChannelFallback {
        /// Plugin name.
        plugin: String,
        /// The channel used.
        used: Channel,
        /// The channel asked for.
        allowed: Channel,
    },
    /// Nobody said on which Minecraft versions the chosen release runs.
    NoList {
        /// Plugin name.
        plugin: String,
        /// Chosen version.
        version: String,
    },
    /// Its JAR states no version.
    FallbackVersion {
        /// Plugin name.
        plugin: String,
        /// What stands for it.
        version: String,
    },
    /// Its JAR states no `api-version`, or one below 1.13: the server runs it in legacy mode.
    Legacy {
        /// Plugin name.
        plugin: String,
        /// Chosen version.
        version: String,
        /// What it states.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        api_version: Option<Minecraft>,
    },
    /// The same of a JAR of one's own.
    LegacyFile {
        /// Its name in `plugins/`.
        file: String,
        /// What it states.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        api_version: Option<Minecraft>,
    },
    /// The minimum of another plugin was guessed from dates.
    GuessedBound {
        /// Plugin name.
        plugin: String,
        /// Chosen version.
        version: String,
        /// The plugin it needs.
        needs: String,
        /// The guessed minimum.
        at_least: String,
    },
    /// A required dependency that its source does not have: believed to be there.
    OutsideDependency {
        /// Plugin name.
        plugin: String,
        /// What it needs, as its page names it.
        needs: String,
    },
    /// Several Plugin objects ask for one project.
    SeveralObjects {
        /// The objects, by name.
        objects: Vec<String>,
        /// The one that decides.
        decides: String,
    },
    /// An `Add` that the page has caught up with.
    OverrideNotNeeded {
        /// Plugin object.
        object: String,
        /// Chosen version.
        version: String,
    },
    /// JARs of one's own go along to a Minecraft that nobody knows them to run on (`spec.unmanagedPlugins: Warn`).
    Unmanaged {
        /// Their names in `plugins/`.
        files: Vec<String>,
        /// Chosen Minecraft version.
        minecraft: Minecraft,
    },
    /// A JAR of one's own does not load on the Minecraft that runs, or with its Java. Nothing waits for it: it does not load now.
    UnmanagedRefused {
        /// Its name in `plugins/`.
        file: String,
        /// Why it does not.
        because: Unusable,
    },
    /// A plugin and a JAR of one's own do not go together. Nothing waits for that: what runs now does not go with it either.
    BesideFile {
        /// Plugin name.
        plugin: String,
        /// Chosen version.
        version: String,
        /// Why they do not go together.
        because: Unusable,
    },
    /// The page of a JAR of one's own requires a plugin that nothing on the server is known to be. Nothing is brought for a file.
    FileLacks {
        /// Its name in `plugins/`.
        file: String,
        /// What it requires.
        plugin: String,
        /// Where that is: a Plugin that asks for it brings it.
        project: ProjectKey,
    },
    /// Several files declare or provide one plugin name, of which the server loads one.
    SharedName {
        /// The name.
        name: String,
        /// The files in `plugins/`.
        files: Vec<String>,
        /// Whether one of them is managed and was read, and anything would change: the set is not brought then, and whatever runs stays.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        stops: bool,
    },
    /// `spec.delayTogether` names a plugin that the server does not have.
    NoSuchCompanion {
        /// Plugin object.
        object: String,
        /// The name, as it is written there.
        plugin: String,
    },
    /// A plugin goes below what runs: it may not read what the newer release has written.
    GoesDown {
        /// Plugin name.
        plugin: String,
        /// The version that runs.
        from: String,
        /// Chosen version.
        to: String,
        /// What lets it.
        reason: DowngradePermission,
    },
    /// The page of a plugin has lost the release that runs, and it stays.
    RunningReleaseKept {
        /// Plugin name.
        plugin: String,
        /// The version that runs.
        version: String,
        /// Why nothing else comes.
        because: DelistedReason,
    },
    /// The page of a plugin has lost the release that runs, and what comes in its place is no newer: it may not read what that one
    /// has written.
    RunningReleaseGone {
        /// Plugin name.
        plugin: String,
        /// The version that runs.
        from: String,
        /// Chosen version.
        to: String,
    },
    /// The Paper version gets no more fixes.
    PaperUnsupported {
        /// Chosen Minecraft version.
        minecraft: Minecraft,
    },
    /// The pinned build is less stable than `channel`.
    PinnedBuildChannel {
        /// The build's channel.
        is: BuildChannel,
        /// What the server allows.
        allowed: BuildChannel,
    },
}

/// Why a release stays that runs and that its page has lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum DelistedReason {
    /// Somebody holds the plugin (`spec.hold`).
    Held,
    /// Its version is pinned.
    Pinned,
    /// Nothing that its page has would do.
    NothingElse,
}
