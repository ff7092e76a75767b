//! Pure. Findings of `resolver adopt` and their texts.

use std::fmt;

use super::server_dir::one_line;
use artifacts::FactsError;
use resolver::model::unusable::Unusable;
use resolver::model::version::Minecraft;
use resolver::render::phrases;
use upstream::{Upstream, format_chain};

/// A fact that is unknown, or a difference between the manifests and the directory.
#[derive(Debug)]
pub(super) enum AdoptFinding {
    /// Paper's files disagree about its version.
    ConflictingVersions {
        /// The file that is believed, and the version in it.
        trusted: (String, String),
        /// The file that disagrees, and the version in it.
        other: (String, String),
    },
    /// No file contains the build number.
    NoBuild {
        /// The Minecraft version.
        minecraft: String,
    },
    /// Fill does not publish this JAR.
    UnpublishedJar {
        /// The JAR.
        file: String,
        /// `Paper 1.21.10-130`
        paper: String,
    },
    /// Paper does not load the file now, or it is not readable here.
    NotLoaded {
        /// The file in `plugins`.
        file: String,
        /// The reason.
        error: FactsError,
    },
    /// The directory's Paper contains the plugin and does not load the file.
    Bundled {
        /// The file in `plugins`.
        file: String,
        /// The plugin.
        name: &'static str,
        /// The first Minecraft version whose builds contain it.
        since: String,
    },
    /// The directory's Paper refuses the `api-version` of the file.
    Refused {
        /// The file in `plugins`.
        file: String,
        /// The Minecraft version of that Paper.
        minecraft: Minecraft,
        /// The rule.
        because: Unusable,
    },
    /// Paper loads the file in legacy mode because of its `api-version`.
    Legacy {
        /// The file in `plugins`.
        file: String,
        /// The stated text.
        states: String,
    },
    /// The file is a link. Its target is not on the volume.
    Symlink {
        /// The file in `plugins`.
        file: String,
    },
    /// The update folder contains files that the next start installs.
    PendingUpdate {
        /// The folder in `plugins`.
        folder: String,
    },
    /// The project was identified only by name and version, so its Plugin is a comment.
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
        reason: Because,
    },
    /// A site could not be asked.
    SiteNotRead {
        /// The site.
        site: Upstream,
        /// The first error text.
        error: String,
    },
    /// The command is offline, and nothing was stored before.
    NoStoredData,
    /// The manifests would install another file than the present one.
    DifferentFile {
        /// The plugin.
        plugin: String,
        /// The release that would be installed.
        version: String,
    },
    /// The manifests would install a plugin that is not present.
    AdditionalPlugin {
        /// The plugin.
        plugin: String,
        /// The plugins that need it.
        needed_by: Vec<String>,
        /// The file in `plugins` that has its name.
        file: Option<String>,
    },
    /// The manifests have no solution, or it could not be determined.
    NotSolved {
        /// The explanation.
        explanation: String,
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
    DifferentRelease {
        /// The project.
        project: String,
    },
    /// A project of this name exists, but no release of this version.
    NoSuchVersion {
        /// The project.
        project: String,
    },
    /// A site could not be asked.
    SiteNotRead,
    /// The command is offline.
    Offline,
}

impl AdoptFinding {
    /// Whether the manifests may run something else than the server runs now.
    pub(super) fn is_severe(&self) -> bool {
        match self {
            Self::NoBuild { .. }
            | Self::SiteNotRead { .. }
            | Self::NoStoredData
            | Self::UnpublishedJar { .. }
            | Self::DifferentFile { .. }
            | Self::AdditionalPlugin { .. }
            | Self::NotSolved { .. } => true,
            Self::ConflictingVersions { .. }
            | Self::NotLoaded { .. }
            | Self::Bundled { .. }
            | Self::Refused { .. }
            | Self::Legacy { .. }
            | Self::Symlink { .. }
            | Self::PendingUpdate { .. }
            | Self::Guess { .. }
            | Self::Unmanaged { .. }
            | Self::GamePort { .. }
            | Self::NoEula => false,
        }
    }

    /// What the manifests lack because data could not be read. It is written into them.
    pub(super) fn unread_data(&self) -> Option<String> {
        if let Self::SiteNotRead { site, error: _ } = self {
            let effect = match site {
                Upstream::Modrinth | Upstream::Hangar => {
                    format!("plugins that only {site} publishes are listed as unmanaged")
                }
                Upstream::Fill | Upstream::Purpur | Upstream::DockerHub => {
                    "the server's JAR and build were not compared with the published ones".to_owned()
                }
            };
            return Some(format!(
                "{site} could not be asked, so {effect}. Run `resolver adopt` again when {site} answers"
            ));
        }
        matches!(self, Self::NoStoredData).then(|| {
            "There is no stored data of Modrinth, Hangar and PaperMC, so every plugin is listed as unmanaged. \
             Run `resolver adopt` with network access, or `resolver catalog fetch` first"
                .to_owned()
        })
    }
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("Modrinth and Hangar do not know the file"),
            Self::NotForPaper { project } => write!(f, "{project} has it, but in no release for Paper"),
            Self::DifferentRelease { project } => {
                write!(
                    f,
                    "{project} has it in another release than the main file, and a Plugin installs files of one release"
                )
            }
            Self::NoSuchVersion { project } => write!(f, "{project} has its name, but no release of this version"),
            Self::SiteNotRead => f.write_str("not every site could be asked"),
            Self::Offline => f.write_str("no stored project has it"),
        }
    }
}

/// The consequence of an unread file. Only a rule of Paper tells what Paper does with it.
fn left_out(error: &FactsError) -> &'static str {
    match error {
        FactsError::Refused { .. } | FactsError::Open(_) | FactsError::NotAJar(_) | FactsError::Unpack { .. } => {
            "It is left out"
        }
        FactsError::NoDescriptor | FactsError::OtherSoftware { .. } => {
            "Paper does not load it either, so it is left out"
        }
        FactsError::TooManyEntries { .. }
        | FactsError::EntryTooLarge { .. }
        | FactsError::UnreadableDescriptor { .. } => "It is left out, and it is unknown whether Paper loads it",
    }
}

impl fmt::Display for AdoptFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ConflictingVersions { trusted: (file, version), other: (other, other_version) } => {
                write!(
                    f,
                    "{other} says {other_version}, but {file} says {version}, which is used because it started last"
                )
            }
            Self::NoBuild { minecraft } => write!(
                f,
                "no file says which build of Paper {minecraft} it is, so the newest is used. Start the server once and adopt it then, or write \
                 `updateStrategy: build-pin` and the build that `/version` shows"
            ),
            Self::UnpublishedJar { file, paper } => {
                write!(f, "{file} is not published by PaperMC: its published file of {paper} would run")
            }
            Self::NotLoaded { file, error } => {
                write!(f, "plugins/{file}: {}. {}", one_line(&format_chain(error)), left_out(error))
            }
            Self::Bundled { file, name, since } => write!(
                f,
                "plugins/{file}: Paper {since} and later contain {name}, and do not load this file. You can delete it and its Plugin"
            ),
            Self::Refused { file, minecraft, because } => {
                let because = phrases::unusable(because);
                write!(f, "plugins/{file}: Paper {minecraft} does not load it: it {because}. It is left out")
            }
            Self::Legacy { file, states } => {
                let states = phrases::stated_api_version(states);
                write!(f, "plugins/{file}: it states {states}, older than 1.13, so Paper loads it in legacy mode")
            }
            Self::Symlink { file } => {
                write!(f, "plugins/{file} is a link: put the file itself there before the volume moves")
            }
            Self::PendingUpdate { folder } => write!(
                f,
                "plugins/{folder} has files that the next start would install: start the server once and adopt it then"
            ),
            Self::Guess { file, plugin, project } => write!(
                f,
                "plugins/{file}: {plugin} stays unmanaged: {project} has a release of that name and version, but with other bytes, \
                 so it is only a guess. Its Plugin is written as a comment"
            ),
            Self::Unmanaged { file, plugin, reason } => {
                write!(f, "plugins/{file}: {plugin} stays unmanaged: {reason}")
            }
            Self::SiteNotRead { site: _, error } => {
                write!(f, "{}: {error}", self.unread_data().unwrap_or_default())
            }
            Self::NoStoredData => f.write_str(&self.unread_data().unwrap_or_default()),
            Self::DifferentFile { plugin, version } => {
                write!(f, "{plugin}: the release {version} that would be installed has another file than the directory")
            }
            Self::AdditionalPlugin { plugin, needed_by, file } => {
                write!(f, "{plugin} would be installed as well: {} needs it", needed_by.join(", "))?;
                match file {
                    Some(file) => write!(f, ", and plugins/{file}, which has its name, is unmanaged"),
                    None => f.write_str(", and it is not installed now"),
                }
            }
            Self::NotSolved { explanation } => {
                write!(f, "the manifests were not verified to reproduce the running versions:\n{explanation}")
            }
            Self::GamePort { port } => write!(
                f,
                "server.properties has server-port={port}, but in the pod the game must listen on 25565, so change it before the start"
            ),
            Self::NoEula => f.write_str(
                "eula.txt does not say `eula=true`, so `eula: Accepted` is not written and the server will not start",
            ),
        }
    }
}
