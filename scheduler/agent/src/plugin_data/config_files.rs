//! Edge (writes). Saves the settings in a plugin's folder that is not saved whole, because it is too large or its plugin is unchanged.
//!
//! Settings are small files that users edit. They are stored apart from the folders that are saved whole. A rollback restores the folders and
//! removes their saved copies. Only a user restores the settings, after comparing them with the current ones.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::Error;
use super::copy::copy_file;
use crate::plain_fs::{self, Entry};
use crate::staging::Volume;
use crate::staging::fs_ops::{Disk, FsHook};
use agent_api::restore::RESERVED_BYTES;

/// The file extensions of plugin settings.
const EXTENSIONS: [&str; 8] = ["yml", "yaml", "json", "conf", "toml", "properties", "cfg", "txt"];
/// The largest file that is assumed to be edited by a user, in bytes.
const MAX_FILE_BYTES: u64 = MIB;
const MIB: u64 = 1024 * 1024;
/// How many levels below the plugin's own folder are searched.
const MAX_DEPTH: usize = 4;

/// The limits for names that are examined, and for the number and total bytes of files that are copied. The server is down meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CopyLimits {
    pub(super) names: usize,
    pub(super) files: usize,
    pub(super) bytes: u64,
}

impl CopyLimits {
    /// The limits of one folder. Web maps have thousands of small generated JSON files, and a hundred times as many tiles.
    pub(super) fn one_folder() -> Self {
        Self { names: 50_000, files: 500, bytes: 16 * MIB }
    }

    /// The limits of all folders together whose plugins are unchanged. A server may have a hundred of them, and most updates change few.
    pub(super) fn unchanged_plugins() -> Self {
        Self { names: 200_000, files: 5_000, bytes: 64 * MIB }
    }

    /// The share that one folder may use.
    fn folder_share(self) -> Self {
        let one = Self::one_folder();
        Self { names: self.names.min(one.names), files: self.files.min(one.files), bytes: self.bytes.min(one.bytes) }
    }
}

/// How many files were copied, of how many that were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ConfigCopied {
    pub(super) files: usize,
    pub(super) total: usize,
}

/// Copies the settings below `plugins/<folder>` to `partial/<folder>`, files at the top first, as many as one folder may use of `left`. Subtracts
/// the used amount from `left`. It copies no file if none exists, the space is too small, or they could not be copied.
pub(super) fn copy_config_files<S: FsHook>(
    volume: &Volume,
    folder: &str,
    partial: &Path,
    left: &mut CopyLimits,
    disk: &mut Disk<S>,
) -> Result<ConfigCopied, Error> {
    let (from, most) = (volume.plugins().join(folder), left.folder_share());
    let (found, examined) = settings_below(&from, most.names);
    left.names -= examined;
    let total = found.len();
    let none = ConfigCopied { files: 0, total };
    if found.is_empty() || !has_space(volume, most.bytes, disk) {
        return Ok(none);
    }
    let to = partial.join(folder);
    let Ok((files, bytes)) = copy_up_to(&found, &from, &to, most, disk) else {
        disk.remove_all(&to)?;
        return Ok(none);
    };
    left.files -= files;
    left.bytes -= bytes;
    Ok(ConfigCopied { files, total })
}

/// Whether the volume has space for all that may be saved of one folder.
fn has_space<S: FsHook>(volume: &Volume, bytes: u64, disk: &Disk<S>) -> bool {
    disk.free_bytes(volume.root()).is_ok_and(|free| free.saturating_sub(RESERVED_BYTES) >= bytes)
}

/// All settings among the first so many `names`, files at the top first and sorted by name, and how many names were examined. Unreadable items
/// and items on another file system are skipped. The search goes level by level, so that with too many names the top of the folder is still
/// found. No link is followed.
fn settings_below(folder: &Path, names: usize) -> (Vec<(PathBuf, Metadata)>, usize) {
    let device = |path: &Path| plain_fs::metadata(path).ok().map(|metadata| metadata.dev());
    let root_device = device(folder);
    let (mut found, mut examined, mut level) = (Vec::new(), 0, vec![folder.to_owned()]);
    for _ in 0..=MAX_DEPTH {
        let mut below = Vec::new();
        for folder in &level {
            let entries = first_entries(folder, names - examined);
            examined += entries.len();
            for entry in entries {
                let Ok(kind) = entry.kind() else { continue };
                let path = entry.path().to_owned();
                if kind.is_dir() && device(&path) == root_device {
                    below.push(path);
                } else if kind.is_file() && is_settings_file(&path) {
                    let metadata = entry.metadata().ok().filter(|metadata| metadata.len() <= MAX_FILE_BYTES);
                    found.extend(metadata.map(|metadata| (path, metadata)));
                }
            }
        }
        level = below;
    }
    (found, examined)
}

/// The direct entries of a folder, sorted by name. If it has more than `most`, the first ones that the file system returns.
fn first_entries(folder: &Path, most: usize) -> Vec<Entry> {
    if most == 0 {
        return Vec::new();
    }
    let mut entries = plain_fs::first_entries(folder, most).unwrap_or_default();
    entries.sort_by(|a, b| a.name().cmp(b.name()));
    entries
}

fn is_settings_file(path: &Path) -> bool {
    path.extension().is_some_and(|ending| EXTENSIONS.iter().any(|extension| ending == *extension))
}

/// Returns the number of copied files and their bytes. A file that cannot be opened is left out.
fn copy_up_to<S: FsHook>(
    found: &[(PathBuf, Metadata)],
    from: &Path,
    to: &Path,
    most: CopyLimits,
    disk: &mut Disk<S>,
) -> Result<(usize, u64), Error> {
    let (mut files, mut bytes) = (0, 0);
    for (path, metadata) in found.iter().take(most.files) {
        if bytes + metadata.len() > most.bytes {
            break;
        }
        if plain_fs::open(path).is_err() {
            continue;
        }
        let target = to.join(path.strip_prefix(from).unwrap_or(path));
        disk.make_directory(target.parent().unwrap_or(to))?;
        copy_file(path, &target, metadata, disk)?;
        files += 1;
        bytes += metadata.len();
    }
    Ok((files, bytes))
}
