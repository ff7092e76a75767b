//! Edge (writes). The data folders of plugins whose JAR changes, and the server's own settings where Paper does: kept with the set that ran, and
//! put back when the next one fails.
//!
//! A plugin migrates its configuration or its database at the first start of a new version, and the version before cannot read that. So does
//! Paper: it raises the number in `config/paper-global.yml`, and drops what is a game rule now from `server.properties`. So
//! they are copied before a swap, to `.nightshift/kept`, while no server runs. When the set goes back, they come
//! back by a rename, and what the failed set wrote goes to `.nightshift/failed`. Nothing but old copies is ever deleted.
//!
//! Of the plugins that stay as they are, and of folders that are too large, the settings are kept with the set too, to `.nightshift/kept-settings`.
//! Nothing puts those back but a person.

mod config_files;
mod copy;
mod restore;
mod snapshot;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::Access;

pub use restore::{finish, put_back};
pub use snapshot::{forget_old, keep, step_is_over};

use crate::protocol::FileSet;
use crate::protocol::plugin_data::{DataPiece, PluginData};
use crate::staging::fs_ops;
use crate::staging::{RecordError, StagedManifest, Volume, read_record};

/// Data and settings were neither kept nor put back, or not all of them: nothing starts, and it is tried again.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A step on the disk failed.
    #[error(transparent)]
    Disk(#[from] fs_ops::Error),
    /// A record of ours cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The place could not be looked at.
    #[error("could not read `{path}`")]
    Read {
        /// Which.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Somebody has put something there since the exchange began.
    #[error("`{path}` lies where something belongs that is put back: move it away")]
    InTheWay {
        /// What.
        path: String,
    },
    /// The journal of an earlier exchange names a place that it must not.
    #[error(
        "the journal `.nightshift/plugin-data-back.json` names `{name}`, which is no place of ours: remove the file"
    )]
    Journal {
        /// As it stands there.
        name: String,
    },
}

/// The record of the last change of the set. One that cannot be read says nothing: it is written anew with the next change.
pub fn last(volume: &Volume) -> Option<PluginData> {
    read_record(&volume.plugin_data_path()).unwrap_or(None)
}

/// The folder in `plugins` where a server lets the plugin of this name keep its data; None for a name that no server takes.
///
/// Letters, digits, `_`, `.`, `-` and blanks, which become `_`: `PluginDescriptionFile` of the Bukkit API, read from Paper's source.
fn folder_of(plugin: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | ' ');
    let folder = plugin.replace(' ', "_");
    (!folder.is_empty() && folder.chars().all(plain) && folder != "." && folder != "..").then_some(folder)
}

/// What Paper reads or writes at its start, in the server's directory (<https://docs.papermc.io/paper/reference/configuration/>); `paper.yml`
/// until Minecraft 1.18. Not what people's commands write, such as `ops.json` and `whitelist.json`.
///
/// Sorted.
const SERVER_SETTINGS: [&str; 8] = [
    "bukkit.yml",
    "commands.yml",
    SETTINGS_FOLDER,
    "help.yml",
    "paper.yml",
    "permissions.yml",
    "server.properties",
    "spigot.yml",
];
/// The one of them that is a folder.
const SETTINGS_FOLDER: &str = "config";

/// Where the server's own lie beside the folders of plugins, below a place of ours. No plugin's folder has such a name.
const BESIDE_PLUGINS: &str = "@server";

impl DataPiece {
    /// Where it lies on the volume.
    fn here(&self, volume: &Volume) -> PathBuf {
        match self {
            Self::OfPlugin(folder) => volume.plugins().join(folder),
            Self::OfServer(name) => volume.root().join(name),
        }
    }

    /// Where it lies below the place that it is kept in or set aside to.
    fn below(&self, place: &Path) -> PathBuf {
        match self {
            Self::OfPlugin(folder) => place.join(folder),
            Self::OfServer(name) => place.join(BESIDE_PLUGINS).join(name),
        }
    }

    /// One that is named so could be kept by us.
    fn is_ours(&self) -> bool {
        match self {
            Self::OfPlugin(folder) => folder_of(folder).as_ref() == Some(folder),
            Self::OfServer(name) => SERVER_SETTINGS.contains(&name.as_str()),
        }
    }

    fn is_folder(&self) -> bool {
        match self {
            Self::OfPlugin(_) => true,
            Self::OfServer(name) => name == SETTINGS_FOLDER,
        }
    }
}

/// What a step may change: the folders whose plugins are not the same in both sets, by any byte of their JARs (those that go, come or change),
/// and the server's own settings, if Paper is not the same.
fn pieces_that_change(ran: &StagedManifest, comes: &FileSet) -> BTreeSet<DataPiece> {
    let old = ran.files.values().filter_map(|managed| Some((managed.plugin.as_deref()?, &managed.hash)));
    let new = comes.plugins.iter().filter_map(|file| Some((file.plugin.as_deref()?, &file.hash)));
    let (old, new): (BTreeSet<_>, BTreeSet<_>) = (old.collect(), new.collect());
    let folders = old.symmetric_difference(&new).filter_map(|(plugin, _)| folder_of(plugin)).map(DataPiece::OfPlugin);
    let is_other_paper = (&ran.minecraft, ran.build) != (&comes.minecraft, comes.build);
    let settings =
        SERVER_SETTINGS.iter().filter(|_| is_other_paper).map(|name| DataPiece::OfServer((*name).to_owned()));
    folders.chain(settings).collect()
}

/// The other folders of the set that ran: their plugins stay as they are while these pieces change.
fn folders_that_stay(ran: &StagedManifest, change: &BTreeSet<DataPiece>) -> BTreeSet<String> {
    let plugins = ran.files.values().filter_map(|managed| managed.plugin.as_deref());
    let changes = |folder: &String| change.contains(&DataPiece::OfPlugin(folder.clone()));
    plugins.filter_map(folder_of).filter(|folder| !changes(folder)).collect()
}

/// What lies at the place of a piece.
enum PieceState {
    Nothing,
    /// It can be exchanged for another by renames.
    Piece,
    /// A link, a file in a folder's place or the other way round, or on another file system.
    NoPiece,
    /// In words.
    Unreadable(String),
}

/// Looks without following a link. What is said to be a piece can be moved: nothing must fail once an exchange has begun.
fn look(volume: &Volume, piece: &DataPiece) -> PieceState {
    let device = |path: &Path| fs::symlink_metadata(path).map(|metadata| metadata.dev());
    let path = piece.here(volume);
    let found = match fs::symlink_metadata(&path) {
        Ok(found) => found,
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => return PieceState::Nothing,
        Err(error) => return PieceState::Unreadable(error.to_string()),
    };
    let is_here = device(volume.root()).is_ok_and(|here| here == found.dev());
    let is_of_its_kind = if piece.is_folder() { found.is_dir() } else { found.is_file() };
    let is_behind_a_link = matches!(piece, DataPiece::OfPlugin(_)) && volume.plugins().is_symlink();
    if is_behind_a_link || !is_of_its_kind || !is_here {
        return PieceState::NoPiece;
    }
    // A file is moved by who may write to its folder, whatever it says itself; a folder by who may write to both.
    let moves = [path.parent().unwrap_or(volume.root()), if found.is_dir() { &path } else { volume.root() }];
    let refusal = |place: &Path| rustix::fs::access(place, Access::WRITE_OK | Access::EXEC_OK).err();
    match moves.into_iter().find_map(refusal) {
        None => PieceState::Piece,
        Some(errno) => PieceState::Unreadable(format!("it cannot be moved: {errno}")),
    }
}

/// Whether the path, relative to the server's directory, lies right below one of ours.
fn is_right_below(path: &str, ours: &Path) -> bool {
    let Ok(rest) = Path::new(path).strip_prefix(ours) else { return false };
    let mut parts = rest.components();
    matches!(parts.next(), Some(Component::Normal(_))) && parts.next().is_none()
}

/// The names right below a directory that are directories, in order; none if it is not there.
fn directories(of: &Path) -> Result<Vec<String>, Error> {
    let error = |source| Error::Read { path: of.display().to_string(), source };
    let mut names = Vec::new();
    for entry in fs_ops::entries(of).map_err(error)? {
        let is_directory = entry.file_type().map_err(error)?.is_dir();
        names.extend(entry.file_name().into_string().ok().filter(|_| is_directory));
    }
    names.sort();
    Ok(names)
}

/// The path as a record has it.
fn relative(volume: &Volume, path: &Path) -> PathBuf {
    path.strip_prefix(volume.root()).unwrap_or(path).to_owned()
}

#[cfg(test)]
mod tests;
