//! Pure. Defines the reasons why an existing release or build may not be chosen.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::api_version::{ApiVersionRefusal, ApiVersionRule};
use super::catalog::{BuildChannel, Channel, ProjectKey};
use super::compatibility_facts::{FactSource, UsedFact};
use super::ignore_unknown_fields::passing_over;
use super::request::{Hold, ImagePolicy};
use super::software::Software;
use super::version::Minecraft;

/// The reason why an existing release may not be used. It takes part in the solve with this reason, so that the
/// explanation can name it.
///
/// Only `render::phrases` renders it as text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(tag = "why", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Unusable {
    /// It is less stable than the Plugin allows.
    Channel {
        /// Its channel.
        is: Channel,
        /// The least stable channel that the Plugin allows.
        allowed: Channel,
    },
    /// It is younger than `updateDelay`.
    Delayed {
        /// The instant from which it may be used.
        eligible_at: Timestamp,
        /// The delay.
        delay: SignedDuration,
    },
    /// It is old enough itself, but a companion release of the same night is not.
    DelayedWithCompanion {
        /// The instant from which both may be used.
        eligible_at: Timestamp,
        /// The delay of the companion.
        delay: SignedDuration,
        /// The companion plugin.
        with: String,
        /// Its release of that night.
        version: String,
        /// The Plugin object of the companion.
        object: String,
    },
    /// The server runs a newer one. Plugins rarely read data that a newer release of them wrote.
    Older {
        /// The running version.
        than: String,
    },
    /// Its project is not the running one: the slug led to another project when the running release was chosen.
    OtherProject {
        /// The slug.
        project: ProjectKey,
        /// The id of the running project.
        runs: String,
        /// The id of its project.
        is: String,
    },
    /// A hold keeps the plugin at the running release.
    Held {
        /// The running version.
        at: String,
        /// The Plugin object.
        object: String,
        /// Where the hold is set.
        by: Hold,
    },
    /// A patch for it was published within its delay: the date of the patch counts.
    Superseded {
        /// The patch version.
        by: String,
    },
    /// The source links to another site, so there is no file to verify.
    NoFile,
    /// Its page has a file, but no JAR.
    NoJar {
        /// The name of the file, without its version.
        file: String,
    },
    /// It has no file that matches a pattern of `spec.source.jars`.
    NoSuchJar {
        /// The pattern.
        jar: String,
        /// The names of its files, without versions, at most 8.
        has: Vec<String>,
    },
    /// A pattern of `spec.source.jars` matches several of its files.
    SeveralJars {
        /// The pattern.
        jar: String,
        /// The names of those, without versions, at most 8.
        several: Vec<String>,
    },
    /// The source gives no hash to verify the file with.
    NoChecksum,
    /// It is made for other software only: its page says so, or its JAR does not declare support for the server's
    /// software.
    WrongSoftware {
        /// The software it is published for.
        loaders: Vec<String>,
        /// The server software.
        #[serde(default, skip_serializing_if = "Software::is_paper")]
        software: Software,
    },
    /// Its source has no field for the server's software, and its JAR was not read.
    SoftwareUnsaid {
        /// The server software.
        software: Software,
    },
    /// Its JAR requires a newer Minecraft version (`api-version`) than the Paper version in question. This is no reason
    /// on other Paper versions.
    ApiVersion {
        /// The minimum Minecraft version that loads it.
        needs: Minecraft,
    },
    /// Its JAR states an `api-version` that the Paper version in question does not accept, without being too old for
    /// it.
    ApiVersionRefused {
        /// The stated text, as the server reads it.
        states: String,
        /// The rule of that Paper version.
        rule: ApiVersionRule,
    },
    /// Every Paper version refuses the descriptor of its JAR.
    DescriptorRefused {
        /// The rule, as a clause.
        rule: String,
        /// The names of its other JARs, without versions, at most 8, if its Plugin names none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        others: Vec<String>,
    },
    /// It needs a project that could not be read.
    NeedsUnread {
        /// The project, as the release names it.
        project: String,
        /// The reason why it could not be read.
        because: String,
    },
    /// Its JAR needs a plugin by a name that no plugin of the server has.
    NeedsMissing {
        /// The name, as its JAR writes it.
        plugin: String,
    },
    /// According to a fact that no page states, it needs a plugin whose name matches no project.
    NeedsUnknown {
        /// The name, as the fact writes it.
        plugin: String,
        /// The reason why no project of that name could be read.
        because: String,
        /// Similar names of plugins of the server, at most 3.
        nearest: Vec<String>,
        /// The source of the fact.
        says: FactSource,
    },
    /// It needs projects that no Plugin object requests, and `dependencies: Propose` is set: Plugins for them are
    /// proposed.
    NeedsProposed {
        /// The names of the projects, and their keys.
        projects: Vec<(String, ProjectKey)>,
    },
    /// Its page lists no Minecraft version at all, and `unlisted: Refuse` is set.
    Unlisted,
    /// It needs a project that no Plugin object requests, and `dependencies: Forbid` is set.
    NeedsForbidden {
        /// The name of the project.
        project: String,
    },
    /// No build of the Paper version is stable enough.
    BuildChannel {
        /// The most stable channel with a build.
        best: BuildChannel,
        /// The least stable channel that the server allows.
        allowed: BuildChannel,
    },
    /// The Paper version has no build (legal upstream), or not the pinned one.
    NoBuild {
        /// The pinned build, if any.
        asked: Option<u32>,
        /// Existing builds close to it, newest first, at most 3.
        nearest: Vec<u32>,
    },
    /// It is a snapshot, pre-release or release candidate: used only if pinned, or with `channel: Alpha`.
    Preview,
    /// It is older than the version that opened the world, and a world cannot return to an older version.
    BelowFloor {
        /// The newest Minecraft version that opened the world.
        floor: Minecraft,
    },
    /// Unmanaged JARs are on the server that are not known to run on it.
    Unmanaged {
        /// Their names in `plugins/`, sorted.
        files: Vec<String>,
    },
    /// An unmanaged JAR is on the server that would not load with it.
    UnmanagedRefused {
        /// Its name in `plugins/`.
        file: String,
        /// The reason why it would not load.
        because: Box<Unusable>,
    },
    /// An unmanaged JAR is on the server that is incompatible with it.
    BesideFile {
        /// Its name in `plugins/`.
        file: String,
        /// The project that it was identified as, by its bytes.
        project: String,
        /// Its version.
        version: String,
        /// The source of the incompatibility.
        apart: Box<FileConflict>,
    },
    /// The image is fixed and bundles one build of Paper, which is another one.
    ImageCarries {
        /// The bundled Minecraft version.
        minecraft: Minecraft,
        /// The bundled build.
        build: u32,
        /// The image, as written.
        image: String,
    },
    /// The image is fixed and has an older Java version than this Paper version, or the class files of this plugin,
    /// need.
    JavaTooOld {
        /// The required Java version.
        needs: u32,
        /// The Java version of the image, according to its tag.
        has: u32,
        /// The image, as written.
        image: String,
    },
    /// The running image has an older Java version than this Paper version, or the class files of this plugin, need,
    /// and `spec.imagePolicy` holds it.
    JavaHeld {
        /// The required Java version.
        needs: u32,
        /// The Java version of the running image.
        has: u32,
        /// The policy.
        policy: ImagePolicy,
    },
    /// No published image has the Java version that this Paper version, or the class files of this plugin, need.
    NoImage {
        /// The required Java version.
        java: u32,
    },
}

/// The source of an incompatibility between a release and an unmanaged JAR whose release is known.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(tag = "says", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum FileConflict {
    /// The page of the file excludes the release.
    FileExcludes,
    /// The release's page excludes the file.
    Excludes,
    /// The page of the file names another release of the plugin.
    FileNames,
    /// The release's page names another release of the file's project.
    Names,
    /// By a fact that no page states, the file needs another version of the plugin.
    FileNeeds {
        /// The fact.
        #[serde(deserialize_with = "passing_over")]
        fact: UsedFact,
    },
    /// By a fact that no page states, the release needs another version of the file's project.
    Needs {
        /// The fact.
        #[serde(deserialize_with = "passing_over")]
        fact: UsedFact,
    },
    /// A guess from publication dates: the file needs a newer version of the plugin.
    FileGuessed {
        /// The plugin, by display name.
        needs: String,
        /// The guessed minimum.
        at_least: String,
    },
    /// A guess from publication dates: the release needs a newer version of the file's project.
    Guessed {
        /// The guessed minimum.
        at_least: String,
    },
}

impl Unusable {
    /// Whether the reason lies in the release itself, on every server and permanently. If such a release runs, the
    /// plugin may be downgraded. All other reasons (a Paper version, a Java version, a dependency, a date) depend on
    /// the server or end.
    pub fn is_inherent(&self) -> bool {
        match self {
            Self::NoFile
            | Self::NoJar { .. }
            | Self::NoChecksum
            | Self::WrongSoftware { .. }
            | Self::DescriptorRefused { .. } => true,
            // The request may name files that do not exist.
            Self::NoSuchJar { .. }
            | Self::SeveralJars { .. }
            | Self::Channel { .. }
            | Self::Delayed { .. }
            | Self::DelayedWithCompanion { .. }
            | Self::Older { .. }
            | Self::OtherProject { .. }
            | Self::Held { .. }
            | Self::Superseded { .. }
            | Self::ApiVersion { .. }
            | Self::ApiVersionRefused { .. }
            | Self::NeedsUnread { .. }
            | Self::NeedsMissing { .. }
            | Self::NeedsUnknown { .. }
            | Self::NeedsProposed { .. }
            | Self::NeedsForbidden { .. }
            | Self::Unlisted
            | Self::SoftwareUnsaid { .. }
            | Self::BuildChannel { .. }
            | Self::NoBuild { .. }
            | Self::Preview
            | Self::BelowFloor { .. }
            | Self::Unmanaged { .. }
            | Self::UnmanagedRefused { .. }
            | Self::BesideFile { .. }
            | Self::ImageCarries { .. }
            | Self::JavaTooOld { .. }
            | Self::JavaHeld { .. }
            | Self::NoImage { .. } => false,
        }
    }

    /// Whether the release only waits for a date.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self, Self::Delayed { .. } | Self::DelayedWithCompanion { .. })
    }

    /// The unmanaged JARs that it is about, by their names in `plugins/`.
    pub(crate) fn unmanaged_files(&self) -> &[String] {
        if let Self::Unmanaged { files } = self {
            files
        } else if let Self::UnmanagedRefused { file, because: _ } = self {
            std::slice::from_ref(file)
        } else {
            &[]
        }
    }

    /// Whether the server itself refuses to load it. Unlike a list or a policy, no override changes that.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::WrongSoftware { .. }
            | Self::ApiVersion { .. }
            | Self::ApiVersionRefused { .. }
            | Self::DescriptorRefused { .. }
            | Self::JavaTooOld { .. }
            | Self::JavaHeld { .. }
            | Self::UnmanagedRefused { .. }
            | Self::NoImage { .. } => true,
            Self::Channel { .. }
            | Self::Delayed { .. }
            | Self::Older { .. }
            | Self::OtherProject { .. }
            | Self::Held { .. }
            | Self::Superseded { .. }
            | Self::NoSuchJar { .. }
            | Self::SeveralJars { .. }
            | Self::NoFile
            | Self::NoJar { .. }
            | Self::NoChecksum
            | Self::NeedsUnread { .. }
            | Self::NeedsMissing { .. }
            | Self::DelayedWithCompanion { .. }
            | Self::NeedsForbidden { .. }
            | Self::NeedsUnknown { .. }
            | Self::NeedsProposed { .. }
            | Self::Unlisted
            | Self::SoftwareUnsaid { .. }
            | Self::BuildChannel { .. }
            | Self::NoBuild { .. }
            | Self::ImageCarries { .. }
            | Self::Unmanaged { .. }
            | Self::BesideFile { .. }
            | Self::Preview
            | Self::BelowFloor { .. } => false,
        }
    }
}

impl From<ApiVersionRefusal> for Unusable {
    fn from(refusal: ApiVersionRefusal) -> Self {
        match refusal {
            ApiVersionRefusal::Newer { needs } => Self::ApiVersion { needs },
            ApiVersionRefusal::Rule { states, rule } => Self::ApiVersionRefused { states, rule },
        }
    }
}

/// Whether only time and upstream actions block a Paper version itself. Otherwise waiting alone does not help.
pub(crate) fn passes_by_itself(unusable: Option<&Unusable>) -> bool {
    unusable.is_none_or(|unusable| {
        matches!(unusable, Unusable::Delayed { .. } | Unusable::BuildChannel { .. } | Unusable::NoImage { .. })
    })
}
