//! Pure. Why a release or a build exists and may still not be chosen.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::catalog::{BuildChannel, Channel, ProjectKey};
use crate::compatibility_facts::{FactSource, UsedFact};
use crate::ignore_unknown_fields::passing_over;
use crate::request::{Hold, ImagePolicy};
use crate::software::Software;
use crate::version::Minecraft;

/// Why a release exists but may not be used. It takes part in the solve with this reason, so that the answer can name it.
///
/// The text is made in `explain::words` only.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(tag = "why", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Unusable {
    /// Less stable than the Plugin allows.
    Channel {
        /// What its authors call it.
        is: Channel,
        /// The least stable that the Plugin allows.
        allowed: Channel,
    },
    /// Younger than `updateDelay`.
    HeldBack {
        /// The instant from which it may be used.
        ripe_at: Timestamp,
        /// The delay that holds it.
        delay: SignedDuration,
    },
    /// Old enough itself; what belongs to it and came out in the same night is not.
    HeldBackTogether {
        /// The instant from which both may be used.
        ripe_at: Timestamp,
        /// The delay of the other one.
        delay: SignedDuration,
        /// The other plugin.
        with: String,
        /// Its release of that night.
        version: String,
        /// The Plugin object of the other one.
        object: String,
    },
    /// The server runs a newer one, and plugins rarely read what a newer release of them wrote.
    Older {
        /// The version that runs.
        than: String,
    },
    /// Somebody holds the plugin at the release that runs.
    Held {
        /// The version that runs.
        at: String,
        /// The Plugin object.
        object: String,
        /// Whose word it is.
        by: Hold,
    },
    /// A patch of it came out within its delay: the patch's own date counts.
    Superseded {
        /// The version that came after it.
        by: String,
    },
    /// The source links to somewhere else: there is no file to verify.
    NoFile,
    /// It has no file of a name that `spec.source.jars` asks for.
    NoSuchJar {
        /// The pattern.
        jar: String,
        /// What its files are called, without version, at most 8.
        has: Vec<String>,
    },
    /// A pattern of `spec.source.jars` means several of its files.
    SeveralJars {
        /// The pattern.
        jar: String,
        /// What those are called, without version, at most 8.
        several: Vec<String>,
    },
    /// The source gives no hash we could verify the file by.
    NoChecksum,
    /// Made for other software only: its page says so, or its JAR does not say what the server's software asks for.
    WrongSoftware {
        /// What it is published for.
        loaders: Vec<String>,
        /// What the server runs as.
        #[serde(default, skip_serializing_if = "Software::is_paper")]
        software: Software,
    },
    /// Its source has no word for the server's software, and nobody has read its JAR.
    SoftwareUnsaid {
        /// What the server runs as.
        software: Software,
    },
    /// Its JAR is written for a newer Minecraft (`api-version`) than the Paper in question: no reason on any other Paper.
    ApiVersion {
        /// The least Minecraft that loads it.
        needs: Minecraft,
    },
    /// It needs a project that could not be read.
    NeedsUnread {
        /// The project, as the release names it.
        project: String,
        /// Why it could not be read.
        because: String,
    },
    /// Its JAR needs a plugin by a name that no plugin of the server has.
    NeedsMissing {
        /// The name, as its JAR writes it.
        plugin: String,
    },
    /// A fact that no page states has it need a plugin by a name that leads nowhere.
    NeedsUnknown {
        /// The name, as the fact writes it.
        plugin: String,
        /// Why no project of that name could be read.
        because: String,
        /// Names of plugins of the server next to it, at most 3.
        nearest: Vec<String>,
        /// Whose fact it is.
        says: FactSource,
    },
    /// It needs projects nobody asked for, and `dependencies: Propose` is set: Plugins for them are proposed.
    NeedsProposed {
        /// The projects' names, and where they are.
        projects: Vec<(String, ProjectKey)>,
    },
    /// Its page lists no Minecraft version at all, and `unlisted: Refuse` is set.
    Unlisted,
    /// It needs a project nobody asked for, and `dependencies: Forbid` is set.
    NeedsForbidden {
        /// The project's name.
        project: String,
    },
    /// A Paper version none of whose builds is stable enough.
    BuildChannel {
        /// The most stable channel it has a build on.
        best: BuildChannel,
        /// The least stable that the server allows.
        allowed: BuildChannel,
    },
    /// A Paper version without any build (legal upstream) or without the pinned one.
    NoBuild {
        /// The build that was asked for, if one was.
        asked: Option<u32>,
        /// Real builds next to it, newest first, at most 3.
        nearest: Vec<u32>,
    },
    /// A snapshot, pre-release or release candidate: used only when pinned, or with `channel: Alpha`.
    Preview,
    /// Older than what opened the world: a world cannot go back.
    BelowFloor {
        /// The newest Minecraft that opened the world.
        floor: Minecraft,
    },
    /// JARs of people's own are on the server, and nobody knows whether they run on it.
    Unmanaged {
        /// Their names in `plugins/`, in order.
        files: Vec<String>,
    },
    /// A JAR of people's own is on the server that would not load with it.
    UnmanagedRefused {
        /// Its name in `plugins/`.
        file: String,
        /// Why it would not.
        because: Box<Unusable>,
    },
    /// A JAR of people's own is on the server that it does not go with.
    BesideFile {
        /// Its name in `plugins/`.
        file: String,
        /// Which plugin that is, by the bytes of the file.
        project: String,
        /// Its version.
        version: String,
        /// Who says that they do not go together.
        apart: Box<GroupSplit>,
    },
    /// The image, which is not to be chosen, carries one build of Paper, and it is another one.
    ImageCarries {
        /// The Minecraft version that it carries.
        minecraft: Minecraft,
        /// The build that it carries.
        build: u32,
        /// The image, as it was written.
        image: String,
    },
    /// The image, which is not to be chosen, has an older Java than this Paper, or the class files of this plugin, need.
    JavaTooOld {
        /// What is needed.
        needs: u32,
        /// What the image has, by its tag.
        has: u32,
        /// The image, as it was written.
        image: String,
    },
    /// The image that runs has an older Java than this Paper, or the class files of this plugin, need, and
    /// `spec.imagePolicy` holds it.
    JavaHeld {
        /// What is needed.
        needs: u32,
        /// What the image that runs has.
        has: u32,
        /// What holds it.
        policy: ImagePolicy,
    },
    /// No published image has a Java that this Paper, or the class files of this plugin, need.
    NoImage {
        /// What is needed.
        java: u32,
    },
}

/// Why a release does not go with a JAR of people's own whose release is known.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(tag = "says", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum GroupSplit {
    /// The page of the file has it as incompatible.
    FileExcludes,
    /// Its page has the file as incompatible.
    Excludes,
    /// The page of the file names another release of it.
    FileNames,
    /// Its page names another release of what the file is.
    Names,
    /// A fact that no page states: the file needs another version of it.
    FileNeeds {
        /// The fact.
        #[serde(deserialize_with = "passing_over")]
        fact: UsedFact,
    },
    /// A fact that no page states: it needs another version of what the file is.
    Needs {
        /// The fact.
        #[serde(deserialize_with = "passing_over")]
        fact: UsedFact,
    },
    /// Nobody states it: by their dates the file is taken to need a newer version of it.
    FileGuessed {
        /// Its plugin, by the name people know.
        needs: String,
        /// The guessed minimum.
        at_least: String,
    },
    /// Nobody states it: by their dates it is taken to need a newer version of what the file is.
    Guessed {
        /// The guessed minimum.
        at_least: String,
    },
}

impl Unusable {
    /// Whether it is the release's own, on every server and for all time. With such a one running, a plugin may go down:
    /// what else a release waits for (a Paper, a Java, a dependency, a date) is a matter of the server, or ends.
    pub fn is_its_own(&self) -> bool {
        match self {
            Self::NoFile | Self::NoChecksum | Self::WrongSoftware { .. } => true,
            // What is asked for may be too much.
            Self::NoSuchJar { .. }
            | Self::SeveralJars { .. }
            | Self::Channel { .. }
            | Self::HeldBack { .. }
            | Self::HeldBackTogether { .. }
            | Self::Older { .. }
            | Self::Held { .. }
            | Self::Superseded { .. }
            | Self::ApiVersion { .. }
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

    /// Whether a date is all that the release waits for.
    pub(crate) fn only_waits(&self) -> bool {
        matches!(self, Self::HeldBack { .. } | Self::HeldBackTogether { .. })
    }

    /// The JARs of people's own that it is about, by their names in `plugins/`.
    pub(crate) fn own_files(&self) -> &[String] {
        if let Self::Unmanaged { files } = self {
            files
        } else if let Self::UnmanagedRefused { file, because: _ } = self {
            std::slice::from_ref(file)
        } else {
            &[]
        }
    }

    /// Whether the server itself refuses to load it. That is no list and no policy: nobody's word changes it.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::WrongSoftware { .. }
            | Self::ApiVersion { .. }
            | Self::JavaTooOld { .. }
            | Self::JavaHeld { .. }
            | Self::UnmanagedRefused { .. }
            | Self::NoImage { .. } => true,
            Self::Channel { .. }
            | Self::HeldBack { .. }
            | Self::Older { .. }
            | Self::Held { .. }
            | Self::Superseded { .. }
            | Self::NoSuchJar { .. }
            | Self::SeveralJars { .. }
            | Self::NoFile
            | Self::NoChecksum
            | Self::NeedsUnread { .. }
            | Self::NeedsMissing { .. }
            | Self::HeldBackTogether { .. }
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
