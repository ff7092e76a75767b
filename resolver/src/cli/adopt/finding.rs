//! Pure. Findings of `resolver adopt` and their texts.

use std::fmt;

use super::server_dir::one_line;
use crate::jar::FactsError;
use crate::upstream::in_words;

/// A fact that is unknown, or a difference between the manifests and the directory.
#[derive(Debug)]
pub(super) enum AdoptFinding {
    /// Paper's files disagree about its version.
    PaperDisagrees {
        /// The file that is believed, and the version in it.
        believed: (String, String),
        /// The file that disagrees, and the version in it.
        other: (String, String),
    },
    /// No file contains the build number.
    NoBuild {
        /// The Minecraft version.
        minecraft: String,
    },
    /// Fill does not publish this JAR.
    NotFills {
        /// The JAR.
        file: String,
        /// `Paper 1.21.10-130`
        paper: String,
    },
    /// Paper does not load the file now.
    NotLoaded {
        /// The file in `plugins`.
        file: String,
        /// The reason.
        why: FactsError,
    },
    /// The file is a link. Its target is not on the volume.
    Link {
        /// The file in `plugins`.
        file: String,
    },
    /// The update folder contains files that the next start installs.
    UpdateWaits {
        /// The folder in `plugins`.
        folder: String,
    },
    /// The project was identified only by name and version.
    Guess {
        /// The file in `plugins`.
        file: String,
        /// `LuckPerms 5.5.17`
        plugin: String,
        /// The project with a release of that name and version: `modrinth/luckperms`.
        project: String,
    },
    /// No source publishes these bytes in a release that can be pinned.
    Unmanaged {
        /// The file in `plugins`.
        file: String,
        /// `ShopGUIPlus 1.80.0`
        plugin: String,
        /// The reason.
        because: Because,
    },
    /// A site could not be reached.
    NotAsked {
        /// The error text.
        why: String,
    },
    /// The manifests would install another file than the present one.
    OtherFile {
        /// The plugin.
        plugin: String,
        /// The release that would be installed.
        version: String,
    },
    /// The manifests would install a plugin that is not present.
    Further {
        /// The plugin.
        plugin: String,
        /// The plugins that need it.
        needed_by: Vec<String>,
        /// The file in `plugins` that has its name.
        file: Option<String>,
    },
    /// The manifests have no solution, or it could not be determined.
    NoAnswer {
        /// The explanation.
        why: String,
    },
    /// The game listens on another port.
    GamePort {
        /// The port.
        port: u16,
    },
    /// `eula.txt` does not accept the EULA.
    NoEula,
}

/// Why a file is unmanaged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Because {
    /// No site knows its hash.
    Unknown,
    /// A site has the file, but in no release that Paper loads.
    NotForPaper {
        /// The project.
        project: String,
    },
    /// The file belongs to another release than the file that its Plugin installs.
    OtherRelease {
        /// The project.
        project: String,
    },
    /// A project of this name exists, but no release of this version.
    NoSuchVersion {
        /// The project.
        project: String,
    },
    /// A site could not be reached.
    NotAsked,
    /// The command is offline.
    Offline,
}

impl AdoptFinding {
    /// Whether the manifests may run something else than the server runs now.
    pub(super) fn is_grave(&self) -> bool {
        match self {
            Self::NoBuild { .. }
            | Self::Guess { .. }
            | Self::NotAsked { .. }
            | Self::NotFills { .. }
            | Self::OtherFile { .. }
            | Self::Further { .. }
            | Self::NoAnswer { .. } => true,
            Self::PaperDisagrees { .. }
            | Self::NotLoaded { .. }
            | Self::Link { .. }
            | Self::UpdateWaits { .. }
            | Self::Unmanaged { .. }
            | Self::GamePort { .. }
            | Self::NoEula => false,
        }
    }
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("neither Modrinth nor Hangar knows the file"),
            Self::NotForPaper { project } => write!(f, "{project} has it, and in no release for Paper"),
            Self::OtherRelease { project } => {
                write!(
                    f,
                    "{project} has it in another release than the file that its Plugin brings, which brings files of one"
                )
            }
            Self::NoSuchVersion { project } => write!(f, "{project} has its name, and no release of this version"),
            Self::NotAsked => f.write_str("not every site could be asked"),
            Self::Offline => f.write_str("it is in no project that is stored"),
        }
    }
}

impl fmt::Display for AdoptFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PaperDisagrees { believed: (file, says), other: (other, otherwise) } => {
                write!(f, "{other} says {otherwise}, and {file} says {says}, which is written: it is what started last")
            }
            Self::NoBuild { minecraft } => write!(
                f,
                "no file says which build of Paper {minecraft} it is, so the newest is meant: start the server once and adopt it then, or write \
                 `updateStrategy: build-pin` and the build that `/version` tells"
            ),
            Self::NotFills { file, paper } => {
                write!(f, "{file} is no file that PaperMC publishes; theirs of {paper} would run")
            }
            Self::NotLoaded { file, why } => {
                let why = one_line(&in_words(why));
                write!(f, "plugins/{file}: {why}; Paper does not load it either, so it is left out")
            }
            Self::Link { file } => {
                write!(f, "plugins/{file} is a link; put the file itself there before the volume moves")
            }
            Self::UpdateWaits { folder } => write!(
                f,
                "plugins/{folder} has files that the next start would put in place; start the server once and adopt it then"
            ),
            Self::Guess { file, plugin, project } => write!(
                f,
                "plugins/{file}: a guess: {project} has a release of the name and version of {plugin}, but its file has other bytes"
            ),
            Self::Unmanaged { file, plugin, because } => {
                write!(f, "plugins/{file}: {plugin} is not managed: {because}; it stays as it is")
            }
            Self::NotAsked { why } => write!(f, "{why}; files that it knows may be missing here"),
            Self::OtherFile { plugin, version } => {
                write!(f, "{plugin}: the release {version} that would be installed is not the file that is there")
            }
            Self::Further { plugin, needed_by, file } => {
                write!(f, "{plugin} would be installed as well: {} needs it", needed_by.join(", "))?;
                match file {
                    Some(file) => write!(f, ", and plugins/{file}, which has its name, is not managed"),
                    None => f.write_str(", and it is not there now"),
                }
            }
            Self::NoAnswer { why } => write!(f, "what is written could not be shown to give what runs:\n{why}"),
            Self::GamePort { port } => write!(
                f,
                "server.properties has server-port={port}; in the pod the game has to listen on 25565, so change it before the start"
            ),
            Self::NoEula => f.write_str(
                "eula.txt does not say `eula=true`, so `eula: Accepted` is not written and nothing will start",
            ),
        }
    }
}
