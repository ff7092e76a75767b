//! Pure. Defines the request: the wanted versions of one server, parsed once, with validated names.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::catalog::{BuildChannel, Channel, Project, ProjectKey, Release, Source};
use super::compatibility_facts::{CompatibilityFacts, Requirement};
pub use super::delisted::{DelistedRelease, RunningEvidence};
use super::image_tag::java_of_image;
use super::lock::Lock;
use super::software::{PaperName, Software};
use super::unmanaged_jar::{UnmanagedJar, UnmanagedPlugins};
use super::version::Minecraft;
use super::version::range::Range;

/// The wanted versions of one server, with the policy of its owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Request {
    /// `namespace/name`, or a bare name from a file without one.
    pub server: String,
    /// The server software.
    #[serde(default, skip_serializing_if = "Software::is_paper")]
    pub software: Software,
    /// How the version of Paper, or of other software, is chosen.
    pub paper: PaperRequest,
    /// Minimum age of a Paper build, by its own publication date.
    pub delay: SignedDuration,
    /// The least stable channel of builds that is allowed.
    pub channel: BuildChannel,
    /// The newest Minecraft version that opened the world. No older version is chosen. `None` for a server without a
    /// world.
    #[serde(default)]
    pub floor: Option<Minecraft>,
    /// The running versions. They stay candidates regardless of channel and age. The order is unambiguous: of two
    /// uploads of one version at one instant, the later id counts, whichever runs.
    #[serde(default)]
    pub running: Option<Running>,
    /// The requested plugins, by the name of their Plugin object.
    pub plugins: Vec<PluginRequest>,
    /// The treatment of required dependencies that no Plugin object requests.
    #[serde(default)]
    pub dependencies: Dependencies,
    /// A fixed image. `None` if it is chosen by the Java version that the version set needs.
    #[serde(default)]
    pub image: Option<String>,
    /// Whether [`Self::image`] comes from the operator (`gameImage`) instead of the server's own spec.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub image_is_given: bool,
    /// Whether a chosen image may change automatically.
    #[serde(default)]
    pub image_policy: ImagePolicy,
    /// Unmanaged JARs on the server, by file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmanaged: Vec<UnmanagedJar>,
    /// Their effect on the update to a new Minecraft version.
    #[serde(default, skip_serializing_if = "UnmanagedPlugins::is_hold")]
    pub unmanaged_plugins: UnmanagedPlugins,
    /// Whether a list that names only a hotfix sibling of a Paper version counts for it.
    #[serde(default)]
    pub hotfix_siblings: HotfixSiblings,
    /// Whether a release may be used if its page lists no Minecraft version.
    #[serde(default)]
    pub unlisted: Unlisted,
    /// The facts of the cluster about versions, in addition to the built-in ones.
    #[serde(default)]
    pub facts: CompatibilityFacts,
    /// When releases were last looked for: what was published later is not known yet, except what runs. `None` if they
    /// are looked for continuously.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked_at: Option<Timestamp>,
}

/// Whether the running image may change automatically (`spec.imagePolicy`). Does not apply to a pinned image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub enum ImagePolicy {
    /// To the newest one with the lowest sufficient Java version.
    #[default]
    Follow,
    /// To the newest one with the running Java version.
    SameJava,
    /// Never.
    Keep,
}

/// How the server's Paper version is chosen (`spec.updateStrategy`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "strategy", rename_all = "kebab-case")]
pub enum PaperRequest {
    /// The newest Paper version. Plugins follow as far as possible, and the rest is reported.
    Latest,
    /// The newest Paper version for which every plugin has a working release.
    Auto,
    /// This Minecraft version, newest build.
    Pin {
        /// `spec.version`
        version: Minecraft,
    },
    /// Exactly this build.
    BuildPin {
        /// `spec.version`
        version: Minecraft,
        /// `spec.build`
        build: u32,
    },
}

/// One Plugin object that matches the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PluginRequest {
    /// The name of the Plugin object, which hints refer to.
    pub object: String,
    /// The project.
    pub key: ProjectKey,
    /// The requested release.
    pub version: VersionRequest,
    /// Patterns for the JARs to install (`spec.source.jars`, [`crate::model::jar_pattern`]). Without any: the main one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jars: Vec<String>,
    /// Minimum age of a release: the Plugin's own delay, otherwise the server's.
    pub delay: SignedDuration,
    /// The least stable channel of releases that is allowed.
    pub channel: Channel,
    /// Whether a release older than the running one may be used. Applies to this plugin and to dependencies that only
    /// it needs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_downgrade: bool,
    /// Where the hold at the running release is set, if there is one. It has no effect if no release runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
    /// The user's override of Minecraft versions, in place of the list or in addition to it.
    #[serde(default)]
    pub compatibility: Option<CompatibilityOverride>,
    /// The user's constraints on its versions and those of other plugins (`spec.requires`). They outrank pages and
    /// facts.
    #[serde(default)]
    pub requires: Vec<Requirement>,
    /// Plugins that belong to it (`spec.delayTogether`), by name: their releases of one night become usable at the same
    /// time.
    #[serde(default)]
    pub delay_together: Vec<String>,
    /// Its `instanceSelector` as one line of JSON. Of several Plugins for one project, the one with the most specific
    /// selector applies. A Plugin that is proposed for its dependencies gets the same servers.
    #[serde(default)]
    pub selector: Option<String>,
}

impl PluginRequest {
    /// The version that it pins.
    pub(crate) fn pinned_version(&self) -> Option<&str> {
        match &self.version {
            VersionRequest::Pin { version } => Some(version),
            VersionRequest::Latest | VersionRequest::Auto => None,
        }
    }
}

/// The requested release of a plugin (`spec.updateStrategy` and `spec.version` of a Plugin).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "strategy", rename_all = "kebab-case")]
pub enum VersionRequest {
    /// One release on all matched servers: the newest that works on all of them. For a single server
    /// ([`crate::resolve`]) it is the same as `Auto`. [`crate::resolve_fleet`] solves the servers together.
    Latest,
    /// The newest release that works on this server.
    Auto,
    /// Exactly this version string.
    Pin {
        /// `spec.version`
        version: String,
    },
}

/// Where a hold at the running release is set (`spec.hold`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub enum Hold {
    /// On its Plugin, for all servers.
    Plugin,
    /// On the server, for itself alone.
    Server,
}

/// `compatibilityOverride` of a Plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CompatibilityOverride {
    /// How the list is changed.
    pub mode: OverrideMode,
    /// Minecraft versions or globs such as `1.21.x`. Empty with `Replace`: compatible with everything.
    pub minecraft: Vec<String>,
    /// The releases it applies to, by version or as a line such as `5.x`. Empty for all.
    #[serde(default)]
    pub releases: Vec<String>,
}

impl CompatibilityOverride {
    /// Whether it applies to the release of this version.
    pub(crate) fn is_about(&self, version: &str) -> bool {
        let matches_line = |named: &String| {
            named.ends_with(['x', '*']) && named.parse().is_ok_and(|line: Range| line.contains(version))
        };
        self.releases.is_empty() || self.releases.iter().any(|named| named == version || matches_line(named))
    }
}

/// How an override changes a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub enum OverrideMode {
    /// Adds to it. Hints use this mode.
    Add,
    /// Replaces it. The default of the field.
    Replace,
    /// Removes from it.
    Remove,
}

/// The treatment of required dependencies that no Plugin object requests (`spec.dependencies`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Dependencies {
    /// Installed from the same source, and reported.
    #[default]
    Install,
    /// Not installed. The Plugin to create is proposed.
    Propose,
    /// Refused, with the Plugin that would have to be created.
    Forbid,
}

/// Whether a list that names a hotfix sibling counts (`spec.hotfixSiblings`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum HotfixSiblings {
    /// It counts, and the explanation states it.
    #[default]
    Trust,
    /// It does not count. The explanation names the listed sibling and the field to set.
    Ask,
}

/// The meaning of a page without any Minecraft version (`spec.unlisted`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Unlisted {
    /// The release works, with a warning.
    #[default]
    Assume,
    /// There is no evidence, so the release is not used.
    Refuse,
}

/// The running versions of the server, according to the last verified lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Running {
    /// The server software.
    #[serde(default, skip_serializing_if = "Software::is_paper")]
    pub software: Software,
    /// The Minecraft version of Paper.
    pub minecraft: Minecraft,
    /// The build of Paper.
    pub build: u32,
    /// Release ids of the running plugins.
    pub releases: Vec<String>,
    /// The projects of running plugins that no Plugin object requests: they run because another plugin needs them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unrequested: Vec<ProjectKey>,
    /// The versions of releases from sites, because the page of a delisted release no longer states it. Not used for
    /// decisions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<RunningVersion>,
    /// The delisted releases among them, as far as they are known. They may be kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delisted: Vec<DelistedRelease>,
    /// The running image, if it was chosen.
    #[serde(default)]
    pub image: Option<String>,
    /// The Java version of the running image, if known.
    #[serde(default)]
    pub java: Option<u32>,
    /// Since when they run, if known.
    #[serde(default)]
    pub since: Option<Timestamp>,
}

/// A running plugin, by the version that users know.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunningVersion {
    /// The project.
    pub project: ProjectKey,
    /// The version as its authors write it.
    pub version: String,
}

impl Running {
    /// The running version of a project whose page no longer lists it.
    pub(crate) fn delisted_version(&self, project: &Project) -> Option<&str> {
        let runs = self.versions.iter().find(|runs| runs.project == project.key)?;
        let has = project.releases.iter().any(|release| self.runs_release(release));
        (!has).then_some(runs.version.as_str())
    }

    /// The running version of Paper, or of other software.
    pub(crate) fn paper_name(&self) -> PaperName {
        PaperName { software: self.software, minecraft: self.minecraft.clone(), build: self.build }
    }

    /// Whether this build of the software runs.
    pub(crate) fn is_build(&self, software: Software, minecraft: &Minecraft, build: u32) -> bool {
        self.has_version(software, minecraft) && self.build == build
    }

    /// Whether this version of the software runs, in any build.
    pub(crate) fn has_version(&self, software: Software, minecraft: &Minecraft) -> bool {
        self.software == software && self.minecraft == *minecraft
    }

    /// Whether a release runs.
    pub(crate) fn runs_release(&self, release: &Release) -> bool {
        self.releases.contains(&release.id)
    }

    /// The running versions of a lock. The image's Java version may be newer than the required one. Only
    /// [`Self::with_delisted`] adds delisted releases.
    pub fn from_lock(lock: &Lock) -> Self {
        let image_has = lock.image.as_deref().and_then(java_of_image);
        Self {
            software: lock.software,
            minecraft: lock.minecraft.clone(),
            build: lock.build,
            releases: lock.plugins.iter().map(|plugin| plugin.release_id.clone()).collect(),
            unrequested: lock.unrequested().cloned().collect(),
            // A file that is given by URL has no page.
            versions: lock
                .plugins
                .iter()
                .filter(|plugin| plugin.key.source != Source::Url)
                .map(|plugin| RunningVersion { project: plugin.key.clone(), version: plugin.version.clone() })
                .collect(),
            delisted: Vec::new(),
            image: lock.image.clone(),
            java: Some(image_has.unwrap_or(lock.java)),
            since: None,
        }
    }
}
