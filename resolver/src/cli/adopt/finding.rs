//! Pure. What `resolver adopt` is unsure of, and its words.

use std::fmt;

use super::server_dir::one_line;
use crate::jar::FactsError;
use crate::upstream::in_words;

/// Something that is not known, or will not be as it was.
#[derive(Debug)]
pub(super) enum AdoptFinding {
    /// What Paper's files say does not agree.
    PaperDisagrees {
        /// Whom we believed, and what it says.
        believed: (String, String),
        /// Who says otherwise, and what.
        other: (String, String),
    },
    /// No file says which build.
    NoBuild {
        /// The Minecraft.
        minecraft: String,
    },
    /// The JAR is no file that Fill publishes.
    NotFills {
        /// The JAR.
        file: String,
        /// `Paper 1.21.10-130`
        paper: String,
    },
    /// Paper does not load it now either.
    NotLoaded {
        /// The file in `plugins`.
        file: String,
        /// Why not.
        why: FactsError,
    },
    /// A link: what it points to is not on the volume.
    Link {
        /// The file in `plugins`.
        file: String,
    },
    /// Files wait for the next start.
    UpdateWaits {
        /// The folder in `plugins`.
        folder: String,
    },
    /// Found by name and version alone.
    Guess {
        /// The file in `plugins`.
        file: String,
        /// `LuckPerms 5.5.17`
        plugin: String,
        /// Where a release of that name and version is: `modrinth/luckperms`.
        project: String,
    },
    /// Nobody publishes these bytes, or none that can be pinned.
    Unmanaged {
        /// The file in `plugins`.
        file: String,
        /// `ShopGUIPlus 1.80.0`
        plugin: String,
        /// Why.
        because: Because,
    },
    /// A site could not be asked.
    NotAsked {
        /// What went wrong, in words.
        why: String,
    },
    /// The manifests mean another file than the one that is there.
    OtherFile {
        /// The plugin.
        plugin: String,
        /// The release that would be installed.
        version: String,
    },
    /// The manifests bring a plugin that is not there.
    Further {
        /// The plugin.
        plugin: String,
        /// Who needs it.
        needed_by: Vec<String>,
        /// The file in `plugins` that has its name.
        file: Option<String>,
    },
    /// The manifests have no answer, or it could not be told.
    NoAnswer {
        /// The explanation of it.
        why: String,
    },
    /// The game listens elsewhere.
    GamePort {
        /// Where.
        port: u16,
    },
    /// `eula.txt` does not say yes.
    NoEula,
}

/// Why a file is nobody's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Because {
    /// Its hash is nowhere.
    Unknown,
    /// A site has it, and in no release that Paper loads.
    NotForPaper {
        /// The project.
        project: String,
    },
    /// It is of another release than the file that its Plugin brings.
    OtherRelease {
        /// The project.
        project: String,
    },
    /// A project of its name is there, and no release of its version.
    NoSuchVersion {
        /// The project.
        project: String,
    },
    /// A site could not be asked.
    NotAsked,
    /// No site was to be asked.
    Offline,
}

impl AdoptFinding {
    /// Whether what is written may run something else than what runs now.
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
