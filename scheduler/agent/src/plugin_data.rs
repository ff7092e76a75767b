//! Edge (writes). Saves the data folders of plugins whose JAR changes, and the server's own settings when Paper changes, and restores them on
//! failure.
//!
//! A plugin migrates its configuration or its database at the first start of a new version, and the previous version cannot read that. Paper does
//! the same: it raises the number in `config/paper-global.yml`, and removes settings from `server.properties` that are now game rules. So they
//! are copied to `.nightshift/kept` before a swap, while no server runs. On a rollback they are restored by a rename, and the data of the failed
//! version set is moved to `.nightshift/failed`. Only old copies are ever deleted.
//!
//! For unchanged plugins, and for folders that are too large, only the settings are saved, to `.nightshift/kept-settings`. Only a user restores
//! those.

mod config_files;
mod copy;
mod restore;
mod snapshot;

use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub use restore::{finish, restore_data};
pub use snapshot::{prune_saved, remove_outdated_record, save_data};

use crate::plain_fs;
use crate::staging::fs_ops;
use crate::staging::{AppliedManifest, RecordError, Volume, read_record};
use agent_api::FileSet;
use agent_api::plugin_data::{DataPiece, PluginData};

/// Data and settings were not saved or restored, or only in part. The server does not start, and the agent retries.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A step on the disk failed.
    #[error(transparent)]
    Disk(#[from] fs_ops::Error),
    /// A record on the volume cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A path could not be read.
    #[error("could not read `{path}`")]
    Read {
        /// The path.
        path: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A file was created at this path after the exchange began.
    #[error("`{path}` is at the path of restored data: move it away")]
    Occupied {
        /// The path.
        path: String,
    },
    /// The journal of an earlier exchange contains a path that is not allowed.
    #[error("the journal `.nightshift/plugin-data-back.json` names `{name}`, which is not allowed: remove the file")]
    Journal {
        /// The name as written in the journal.
        name: String,
    },
}

/// The record of the last change of the version set. An unreadable record counts as none, and is written anew with the next change.
pub fn last(volume: &Volume) -> Option<PluginData> {
    read_record(&volume.plugin_data_path()).unwrap_or(None)
}

/// The folder in `plugins` in which a server keeps the data of the plugin with this name. `None` for a name that servers reject.
///
/// Letters, digits, `_`, `.`, `-` and blanks, which become `_`: `PluginDescriptionFile` of the Bukkit API, read from Paper's source.
fn folder_of(plugin: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | ' ');
    let folder = plugin.replace(' ', "_");
    (!folder.is_empty() && folder.chars().all(plain) && folder != "." && folder != "..").then_some(folder)
}

/// The files that Paper reads or writes at its start, in the server's directory (<https://docs.papermc.io/paper/reference/configuration/>).
/// `paper.yml` exists until Minecraft 1.18. Files that user commands write, such as `ops.json` and `whitelist.json`, are not included.
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
/// The only folder among them.
const SETTINGS_FOLDER: &str = "config";

/// The folder for the server's own settings, beside the folders of plugins. No plugin's folder has such a name.
const SERVER_FOLDER: &str = "@server";

/// Where a piece is on a volume.
trait PieceFiles {
    /// Its path on the volume.
    fn path_on(&self, volume: &Volume) -> PathBuf;

    /// Its path below the directory in which it is saved or displaced to.
    fn path_in(&self, directory: &Path) -> PathBuf;

    /// Whether Nightshift could have saved a piece with this name.
    fn is_valid(&self) -> bool;

    fn is_folder(&self) -> bool;
}

impl PieceFiles for DataPiece {
    fn path_on(&self, volume: &Volume) -> PathBuf {
        match self {
            Self::OfPlugin(folder) => volume.plugins().join(folder),
            Self::OfServer(name) => volume.root().join(name),
        }
    }

    fn path_in(&self, directory: &Path) -> PathBuf {
        match self {
            Self::OfPlugin(folder) => directory.join(folder),
            Self::OfServer(name) => directory.join(SERVER_FOLDER).join(name),
        }
    }

    fn is_valid(&self) -> bool {
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

/// The pieces that an update may change. They include the folders of plugins whose JARs differ between both version sets by any byte (removed,
/// added or changed). They also include the server's own settings, if Paper differs.
fn changed_pieces(ran: &AppliedManifest, next: &FileSet) -> BTreeSet<DataPiece> {
    let old = ran.files.values().filter_map(|managed| Some((managed.plugin.as_deref()?, &managed.hash)));
    let new = next.plugins.iter().filter_map(|file| Some((file.plugin.as_deref()?, &file.hash)));
    let (old, new): (BTreeSet<_>, BTreeSet<_>) = (old.collect(), new.collect());
    let folders = old.symmetric_difference(&new).filter_map(|(plugin, _)| folder_of(plugin)).map(DataPiece::OfPlugin);
    let is_other_paper = (&ran.minecraft, ran.build) != (&next.minecraft, next.build);
    let settings =
        SERVER_SETTINGS.iter().filter(|_| is_other_paper).map(|name| DataPiece::OfServer((*name).to_owned()));
    folders.chain(settings).collect()
}

/// The other folders of the previous version set: their plugins stay unchanged while these pieces change.
fn unchanged_folders(ran: &AppliedManifest, change: &BTreeSet<DataPiece>) -> BTreeSet<String> {
    let plugins = ran.files.values().filter_map(|managed| managed.plugin.as_deref());
    let changes = |folder: &String| change.contains(&DataPiece::OfPlugin(folder.clone()));
    plugins.filter_map(folder_of).filter(|folder| !changes(folder)).collect()
}

/// The content at the path of a piece.
enum PieceState {
    Missing,
    /// It can be exchanged by renames.
    Movable,
    /// A link, a file in place of a folder or the reverse, or on another file system.
    NotMovable,
    /// The reason as text.
    Unreadable(String),
}

/// Checks without following a link. An accepted piece can be moved, because no step may fail once an exchange has begun.
fn inspect(volume: &Volume, piece: &DataPiece) -> PieceState {
    let device = |path: &Path| plain_fs::metadata(path).map(|metadata| metadata.dev());
    let path = piece.path_on(volume);
    let found = match plain_fs::metadata(&path) {
        Ok(found) => found,
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => return PieceState::Missing,
        Err(error) => return PieceState::Unreadable(error.to_string()),
    };
    let is_same_device = device(volume.root()).is_ok_and(|root_device| root_device == found.dev());
    let is_of_its_kind = if piece.is_folder() { found.is_dir() } else { found.is_file() };
    if !is_of_its_kind || !is_same_device {
        return PieceState::NotMovable;
    }
    // Moving a file needs write access to its parent folder, whatever its own mode. Moving a folder needs write access to both.
    let moves = [path.parent().unwrap_or(volume.root()), if found.is_dir() { &path } else { volume.root() }];
    match moves.into_iter().find_map(|path| plain_fs::check_writable(path).err()) {
        None => PieceState::Movable,
        Some(errno) => PieceState::Unreadable(format!("it cannot be moved: {errno}")),
    }
}

/// The names of the directories directly below a directory, in order. Empty if it does not exist.
fn directories(directory: &Path) -> Result<Vec<String>, Error> {
    let error = |source| Error::Read { path: directory.display().to_string(), source };
    let mut names = Vec::new();
    for entry in plain_fs::entries(directory).map_err(error)? {
        let is_directory = entry.kind().map_err(error)?.is_dir();
        names.extend(entry.name().to_str().filter(|_| is_directory).map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

/// The path as written in records.
fn relative(volume: &Volume, path: &Path) -> PathBuf {
    path.strip_prefix(volume.root()).unwrap_or(path).to_owned()
}

#[cfg(test)]
mod tests;
