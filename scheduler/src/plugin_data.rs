//! Edge (writes). The data folders of plugins whose JAR changes: kept with the set that ran, and put back when the next one fails.
//!
//! A plugin migrates its configuration or its database at the first start of a new version, and the version before cannot read that. So
//! `plugins/<Name>` is copied before a swap, to `.nightshift/kept`, while no server runs. When the set goes back, the folder comes
//! back by a rename, and what the failed set wrote goes to `.nightshift/failed`. Nothing but old copies is ever deleted.

mod copy;
mod keep;
mod put_back;
mod settings;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

pub use keep::{forget_old, keep, step_is_over};
pub use put_back::{finish, put_back};

use crate::protocol::FileSet;
use crate::protocol::plugin_data::PluginData;
use crate::staging::disk;
use crate::staging::{Manifest, RecordError, Volume, read_record};

/// Folders were neither kept nor put back, or not all of them: nothing starts, and it is tried again.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A step on the disk failed.
    #[error(transparent)]
    Disk(#[from] disk::Error),
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
    #[error("`plugins/{folder}` lies where a plugin's data belong that are put back: move it away")]
    InTheWay {
        /// Its name.
        folder: String,
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

/// The folders whose plugins are not the same in both sets, by any byte of their JARs: those that go, come or change.
fn folders_that_change(ran: &Manifest, comes: &FileSet) -> BTreeSet<String> {
    let old = ran.files.values().filter_map(|managed| Some((managed.plugin.as_deref()?, &managed.hash)));
    let new = comes.plugins.iter().filter_map(|file| Some((file.plugin.as_deref()?, &file.hash)));
    let (old, new): (BTreeSet<_>, BTreeSet<_>) = (old.collect(), new.collect());
    old.symmetric_difference(&new).filter_map(|(plugin, _)| folder_of(plugin)).collect()
}

/// What lies at a folder's place.
enum Found {
    Nothing,
    /// It can be exchanged for another by renames.
    Folder,
    /// A link, a file, or on another file system.
    NoFolder,
    /// In words.
    Unreadable(String),
}

/// Looks without following a link. What is said to be a folder can be moved: nothing must fail once an exchange has begun.
fn look(volume: &Volume, folder: &str) -> Found {
    let device = |path: &Path| fs::symlink_metadata(path).map(|metadata| metadata.dev());
    let path = volume.plugins().join(folder);
    let found = match fs::symlink_metadata(&path) {
        Ok(found) => found,
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => return Found::Nothing,
        Err(error) => return Found::Unreadable(error.to_string()),
    };
    let is_here = device(volume.root()).is_ok_and(|here| here == found.dev());
    if volume.plugins().is_symlink() || !found.is_dir() || !is_here {
        return Found::NoFolder;
    }
    match rustix::fs::access(&path, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK) {
        Ok(()) => Found::Folder,
        Err(errno) => Found::Unreadable(format!("it cannot be moved: {errno}")),
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
    for entry in disk::entries(of).map_err(error)? {
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
