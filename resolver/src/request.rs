//! Pure. The request: what one server wants, parsed once; every name in it is checked.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::catalog::{BuildChannel, Channel, Project, ProjectKey, Release, Source};
use crate::compatibility_facts::{CompatibilityFacts, Requirement};
use crate::explain::PaperName;
use crate::index::java::java_of_image;
use crate::lock::Lock;
use crate::software::Software;
use crate::unmanaged_jar::{UnmanagedJar, UnmanagedPlugins};
use crate::version::Minecraft;
use crate::version::range::Range;

mod delisted;

pub(crate) use delisted::has_any;
pub use delisted::{DelistedRelease, RunsOn};

/// What one server wants, with the policy of its owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Request {
    /// `namespace/name`, or a bare name from a file without one.
    pub server: String,
    /// What it runs as.
    #[serde(default, skip_serializing_if = "Software::is_paper")]
    pub software: Software,
    /// How Paper, or other software in its place, is chosen.
    pub paper: PaperRequest,
    /// Age a Paper build must have, by its own publication date.
    pub delay: SignedDuration,
    /// The least stable build allowed.
    pub channel: BuildChannel,
    /// The newest Minecraft that opened the world: never below. None for a server without a world.
    #[serde(default)]
    pub floor: Option<Minecraft>,
    /// What runs now. It stays a candidate whatever its channel or age. The order leaves no choice: of two uploads of one
    /// version at one instant the later id counts, whichever runs.
    #[serde(default)]
    pub running: Option<Running>,
    /// The plugins asked for, by the name of their Plugin object.
    pub plugins: Vec<PluginRequest>,
    /// What happens to a required dependency nobody asked for.
    #[serde(default)]
    pub dependencies: Dependencies,
    /// The image that is not to be chosen; None: chosen with the Java that the set needs.
    #[serde(default)]
    pub image: Option<String>,
    /// Whether [`Self::image`] comes from the operator (`gameImage`), and not from the server's own spec.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub image_is_given: bool,
    /// Whether an image that was chosen may change by itself.
    #[serde(default)]
    pub image_policy: ImagePolicy,
    /// JARs on the server that nobody manages here, by file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmanaged: Vec<UnmanagedJar>,
    /// What they do to a new Minecraft version.
    #[serde(default, skip_serializing_if = "UnmanagedPlugins::is_hold")]
    pub unmanaged_plugins: UnmanagedPlugins,
    /// Whether a list that names only a hotfix sibling of a Paper counts for it.
    #[serde(default)]
    pub hotfix_siblings: HotfixSiblings,
    /// What a release may be used for whose page lists no Minecraft version at all.
    #[serde(default)]
    pub unlisted: Unlisted,
    /// What the cluster knows about versions, beside what is built in.
    #[serde(default)]
    pub facts: CompatibilityFacts,
}

/// Whether the image that runs may change by itself (`spec.imagePolicy`). Says nothing about an image that is pinned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub enum ImagePolicy {
    /// To the newest one with the least Java that will do.
    #[default]
    Follow,
    /// To the newest one with the Java that runs now.
    SameJava,
    /// Never.
    Keep,
}

/// How the server's Paper is chosen (`spec.updateStrategy`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "strategy", rename_all = "kebab-case")]
pub enum PaperRequest {
    /// Newest Paper; plugins follow as far as they can and the rest is reported.
    Latest,
    /// Newest Paper for which every plugin has a release that works.
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
    /// The name of the Plugin object: hints point at it.
    pub object: String,
    /// Where it comes from.
    pub key: ProjectKey,
    /// Which release.
    pub version: VersionRequest,
    /// Patterns for those of its JARs that come (`spec.source.jars`, [`crate::jar_pattern`]); none: the main one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jars: Vec<String>,
    /// Age a release must have; the Plugin's own, else the server's.
    pub delay: SignedDuration,
    /// The least stable release allowed.
    pub channel: Channel,
    /// Whether a release older than the one that runs may be used, of this plugin and of what only others need for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_downgrade: bool,
    /// Whose word it is that it stays at the release that runs, if somebody's. Where none runs it counts for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
    /// What the user says about Minecraft versions, against or beside the list.
    #[serde(default)]
    pub compatibility: Option<CompatibilityOverride>,
    /// What the user says about its versions and those of others (`spec.requires`), whatever pages and facts say.
    #[serde(default)]
    pub requires: Vec<Requirement>,
    /// Plugins that belong to it (`spec.delayTogether`), by name: their releases of one night are old enough together.
    #[serde(default)]
    pub delay_together: Vec<String>,
    /// Its `instanceSelector` as one line of JSON: a Plugin that is proposed beside it gets the same servers.
    #[serde(default)]
    pub selector: Option<String>,
}

/// Which release of a plugin (`spec.updateStrategy` and `spec.version` of a Plugin).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "strategy", rename_all = "kebab-case")]
pub enum VersionRequest {
    /// One release on all matched servers: the newest that works on all of them. Alone ([`crate::resolve`]) it is as `Auto`;
    /// [`crate::resolve_fleet`] sees them together.
    Latest,
    /// Newest that works on this server.
    Auto,
    /// Exactly this version string.
    Pin {
        /// `spec.version`
        version: String,
    },
}

/// Who holds a plugin at the release that runs (`spec.hold`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub enum Hold {
    /// Its Plugin, on all servers.
    Plugin,
    /// The server, for itself alone.
    Server,
}

/// `compatibilityOverride` of a Plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CompatibilityOverride {
    /// What is done with the list.
    pub mode: OverrideMode,
    /// Minecraft versions or globs such as `1.21.x`. Empty with `Replace`: compatible with everything.
    pub minecraft: Vec<String>,
    /// Releases it is about, by version or as a line such as `5.x`; empty: all.
    #[serde(default)]
    pub releases: Vec<String>,
}

impl CompatibilityOverride {
    /// Whether it says something about the release of this version.
    pub(crate) fn is_about(&self, version: &str) -> bool {
        let of_line =
            |named: &String| named.ends_with(['x', '*']) && named.parse().is_ok_and(|line: Range| line.has(version));
        self.releases.is_empty() || self.releases.iter().any(|named| named == version || of_line(named))
    }
}

/// What an override does with a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub enum OverrideMode {
    /// Adds to it. What our hints write.
    Add,
    /// Stands instead of it. What the field means by default.
    Replace,
    /// Takes away from it.
    Remove,
}

/// What happens to a required dependency nobody asked for (`spec.dependencies`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Dependencies {
    /// Installed from the same source, and shown as such.
    #[default]
    Install,
    /// Not installed; the Plugin to write is proposed.
    Propose,
    /// Refused with the Plugin that would have to be written.
    Forbid,
}

/// Whether a list that names a hotfix sibling counts (`spec.hotfixSiblings`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum HotfixSiblings {
    /// It does, and the answer says so.
    #[default]
    Trust,
    /// It does not; the answer says which sibling is listed, and what to set.
    Ask,
}

/// What a page without any Minecraft version means (`spec.unlisted`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Unlisted {
    /// That it works, with a warning.
    #[default]
    Assume,
    /// That nobody has said so: it is not used.
    Refuse,
}

/// What runs on the server now, by the last proven lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Running {
    /// What it runs as.
    #[serde(default, skip_serializing_if = "Software::is_paper")]
    pub software: Software,
    /// Paper's Minecraft version.
    pub minecraft: Minecraft,
    /// Paper's build.
    pub build: u32,
    /// Release ids of the plugins that run.
    pub releases: Vec<String>,
    /// The projects of those that nobody asked for: they run because something needs them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unasked: Vec<ProjectKey>,
    /// What the releases of sites are called: a page that has lost one says it no more. Decides nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<RunningVersion>,
    /// Those of the releases that their pages have lost, as far as they are known: they may be kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<DelistedRelease>,
    /// The image that runs, if it was chosen.
    #[serde(default)]
    pub image: Option<String>,
    /// The Java of the image that runs, as far as it is known.
    #[serde(default)]
    pub java: Option<u32>,
    /// Since when, if known.
    #[serde(default)]
    pub since: Option<Timestamp>,
}

/// A plugin that runs, as people call it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunningVersion {
    /// Where it comes from.
    pub project: ProjectKey,
    /// The version as its authors write it.
    pub version: String,
}

impl Running {
    /// The version of a project that runs although its page has it no more.
    pub(crate) fn lost(&self, project: &Project) -> Option<&str> {
        let runs = self.versions.iter().find(|runs| runs.project == project.key)?;
        let has = project.releases.iter().any(|release| self.has(release));
        (!has).then_some(runs.version.as_str())
    }

    /// The Paper that runs, or what stands in its place.
    pub(crate) fn paper_name(&self) -> PaperName {
        PaperName { software: self.software, minecraft: self.minecraft.clone(), build: self.build }
    }

    /// Whether this build of the software runs.
    pub(crate) fn is(&self, software: Software, minecraft: &Minecraft, build: u32) -> bool {
        self.has_version(software, minecraft) && self.build == build
    }

    /// Whether this version of the software runs, in any build.
    pub(crate) fn has_version(&self, software: Software, minecraft: &Minecraft) -> bool {
        self.software == software && self.minecraft == *minecraft
    }

    /// Whether a release is among those that run.
    pub(crate) fn has(&self, release: &Release) -> bool {
        self.releases.contains(&release.id)
    }

    /// What a lock makes run. The image's Java may be newer than the one that was needed. What pages have lost of it only
    /// [`Self::with_lost`] says.
    pub fn of(lock: &Lock) -> Self {
        let image_has = lock.image.as_deref().and_then(java_of_image);
        Self {
            software: lock.software,
            minecraft: lock.minecraft.clone(),
            build: lock.build,
            releases: lock.plugins.iter().map(|plugin| plugin.release_id.clone()).collect(),
            unasked: lock.unasked().cloned().collect(),
            // A file by its URL is on no page.
            versions: lock
                .plugins
                .iter()
                .filter(|plugin| plugin.key.source != Source::Url)
                .map(|plugin| RunningVersion { project: plugin.key.clone(), version: plugin.version.clone() })
                .collect(),
            lost: Vec::new(),
            image: lock.image.clone(),
            java: Some(image_has.unwrap_or(lock.java)),
            since: None,
        }
    }
}
