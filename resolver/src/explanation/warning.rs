//! Pure. Defines the warnings of a result.

use serde::{Deserialize, Serialize};

use super::DowngradePermission;
use crate::model::catalog::{BuildChannel, Channel, ProjectKey};
use crate::model::unusable::Unusable;
use crate::model::version::Minecraft;

/// An assumption, or another fact that the user should know.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(tag = "warning", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Warning {
    /// The project has no release on the allowed channel, so its most stable channel was used.
    ChannelFallback {
        /// The plugin name.
        plugin: String,
        /// The channel in use.
        used: Channel,
        /// The requested channel.
        allowed: Channel,
    },
    /// The page of the chosen release lists no Minecraft version.
    NoList {
        /// The plugin name.
        plugin: String,
        /// The chosen version.
        version: String,
    },
    /// The JAR states no version.
    FallbackVersion {
        /// The plugin name.
        plugin: String,
        /// The version used instead.
        version: String,
    },
    /// The JAR states no `api-version`, or one below 1.13: the server runs it in legacy mode.
    Legacy {
        /// The plugin name.
        plugin: String,
        /// The chosen version.
        version: String,
        /// The stated `api-version`, as the server reads it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        api_version: Option<String>,
    },
    /// Like `Legacy`, for an unmanaged JAR.
    LegacyFile {
        /// Its name in `plugins/`.
        file: String,
        /// The stated `api-version`, as the server reads it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        api_version: Option<String>,
    },
    /// The minimum version of another plugin was guessed from publication dates.
    GuessedBound {
        /// The plugin name.
        plugin: String,
        /// The chosen version.
        version: String,
        /// The plugin it needs.
        needs: String,
        /// The guessed minimum.
        at_least: String,
    },
    /// The server contains the plugin and does not load the installed one.
    Bundled {
        /// The plugin name.
        plugin: String,
        /// The chosen version.
        version: String,
        /// The first Minecraft version whose builds contain it.
        since: String,
    },
    /// The chosen release has several JARs, and its Plugin does not say which to install.
    SeveralJars {
        /// The plugin name.
        plugin: String,
        /// The chosen version.
        version: String,
        /// The name of the installed JAR, without its version.
        jar: String,
        /// The names of the others, without versions, at most 8.
        others: Vec<String>,
    },
    /// A required dependency that its source does not have. It is assumed to be installed.
    OutsideDependency {
        /// The plugin name.
        plugin: String,
        /// The dependency, as its page names it.
        needs: String,
    },
    /// Several Plugin objects request one project.
    SeveralObjects {
        /// The objects, by name.
        objects: Vec<String>,
        /// The object whose fields apply.
        decides: String,
    },
    /// An override with `Add` whose entries the page now lists.
    OverrideNotNeeded {
        /// The Plugin object.
        object: String,
        /// The chosen version.
        version: String,
    },
    /// Unmanaged JARs are kept on a Minecraft version on which they are not known to run (`spec.unmanagedPlugins:
    /// Warn`).
    Unmanaged {
        /// Their names in `plugins/`.
        files: Vec<String>,
        /// The chosen Minecraft version.
        minecraft: Minecraft,
    },
    /// An unmanaged JAR does not load on the running Minecraft version, or with its Java version. It blocks no update,
    /// because it does not load now.
    UnmanagedRefused {
        /// Its name in `plugins/`.
        file: String,
        /// The reason why it does not load.
        because: Unusable,
    },
    /// A plugin and an unmanaged JAR are incompatible. This blocks no update, because the running release is
    /// incompatible with it, too.
    BesideFile {
        /// The plugin name.
        plugin: String,
        /// The chosen version.
        version: String,
        /// The reason why they are incompatible.
        because: Unusable,
    },
    /// The page of an unmanaged JAR requires a plugin that no plugin on the server is known to be. No plugin is
    /// installed for an unmanaged JAR.
    FileLacks {
        /// Its name in `plugins/`.
        file: String,
        /// The required plugin.
        plugin: String,
        /// The project of that plugin. A Plugin object for it would install it.
        project: ProjectKey,
    },
    /// Several files declare or provide one plugin name, of which the server loads one.
    SharedName {
        /// The name.
        name: String,
        /// The files in `plugins/`.
        files: Vec<String>,
        /// Whether one of them is managed and was read, and anything would change. Then the version set is not
        /// deployed, and the running versions stay.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        stops: bool,
    },
    /// Projects of one name are installed, and not all of their JARs were read yet. They may be one plugin on two sites.
    SameProjectName {
        /// The name.
        name: String,
        /// The projects, sorted.
        projects: Vec<ProjectKey>,
    },
    /// `spec.delayTogether` names a plugin that the server does not have.
    NoSuchCompanion {
        /// The Plugin object.
        object: String,
        /// The name, as written there.
        plugin: String,
    },
    /// A plugin is downgraded below the running release. It may not be able to read the data that the newer release
    /// wrote.
    Downgrade {
        /// The plugin name.
        plugin: String,
        /// The running version.
        from: String,
        /// The chosen version.
        to: String,
        /// The reason why the downgrade is allowed.
        reason: DowngradePermission,
    },
    /// The running release of a plugin is delisted, and it stays.
    RunningReleaseKept {
        /// The plugin name.
        plugin: String,
        /// The running version.
        version: String,
        /// The reason why it is not replaced.
        because: DelistedReason,
    },
    /// The slug of a running plugin leads to another project now. The other project is not followed, and the running
    /// release stays.
    OtherProject {
        /// The plugin name, from the page of the other project.
        plugin: String,
        /// The running version.
        version: String,
        /// The slug.
        project: ProjectKey,
        /// The id of the running project.
        runs: String,
        /// The id of the other project.
        is: String,
    },
    /// The running release of a plugin is delisted, and its replacement is no newer. The replacement may not be able to
    /// read the data that the running release wrote.
    RunningReleaseGone {
        /// The plugin name.
        plugin: String,
        /// The running version.
        from: String,
        /// The chosen version.
        to: String,
    },
    /// The Paper version gets no more fixes.
    PaperUnsupported {
        /// The chosen Minecraft version.
        minecraft: Minecraft,
    },
    /// The pinned build is less stable than `channel`.
    PinnedBuildChannel {
        /// The build's channel.
        is: BuildChannel,
        /// The channel that the server allows.
        allowed: BuildChannel,
    },
}

/// The reason why a delisted release keeps running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum DelistedReason {
    /// The plugin is held (`spec.hold`).
    Held,
    /// Its version is pinned.
    Pinned,
    /// No release on its page is sufficient.
    NothingElse,
}
