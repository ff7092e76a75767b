//! Edge (writes). The settings in a plugin's folder that is too large to be kept whole: small files that people write by hand.
//!
//! They lie apart from the folders that are kept. A roll-back puts folders back and removes what it kept of them; nothing puts these back but
//! a person, who compares them with what the newer version has made of them.

use std::fs::{File, Metadata};
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

use super::copy::copy_file;
use super::keep::discard;
use super::{Error, relative};
use crate::protocol::plugin_data::Settings;
use crate::staging::Volume;
use crate::staging::disk::{self, Disk, Steps};
use crate::staging::store::SPARE;

/// What settings of plugins are written in.
const ENDINGS: [&str; 8] = ["yml", "yaml", "json", "conf", "toml", "properties", "cfg", "txt"];
/// The largest file that somebody writes by hand, in bytes; how many files, and with how many bytes together. Web maps have thousands of small
/// files of JSON that nobody wrote.
const LARGEST: u64 = 1024 * 1024;
const MOST: usize = 500;
const TOGETHER: u64 = 16 * 1024 * 1024;
/// How many folders below the plugin's own are looked into.
const DEEPEST: usize = 4;

/// Copies the settings below `plugins/<folder>` to `partial/<folder>`, which the caller will call `place`: those that lie least deep first, as
/// many as are allowed. None: there are none, there is no room for them, or they could not be copied.
pub(super) fn keep<S: Steps>(
    volume: &Volume,
    folder: &str,
    partial: &Path,
    place: &Path,
    disk: &mut Disk<S>,
) -> Result<Option<Settings>, Error> {
    let from = volume.plugins().join(folder);
    let found = settings_below(&from);
    if found.is_empty() || !has_room(volume) {
        return Ok(None);
    }
    let to = partial.join(folder);
    let Ok(files) = copy_some(&found, &from, &to, disk) else {
        discard(&to, disk)?;
        return Ok(None);
    };
    let place = relative(volume, &place.join(folder)).display().to_string();
    Ok(Some(Settings { files, of: found.len(), place }))
}

/// Whether the volume has room for all that may be kept of one folder.
fn has_room(volume: &Volume) -> bool {
    disk::free_bytes(volume.root()).is_ok_and(|free| free.saturating_sub(SPARE) >= TOGETHER)
}

/// All of them, those that lie least deep first, and in the order of their names there. What cannot be looked at is none.
fn settings_below(folder: &Path) -> Vec<(PathBuf, Metadata)> {
    let entries = WalkDir::new(folder).max_depth(DEEPEST + 1).sort_by_file_name().into_iter().filter_map(Result::ok);
    let mut found: Vec<(usize, PathBuf, Metadata)> = entries
        .filter(|entry| entry.file_type().is_file())
        .filter(|entry| entry.path().extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known)))
        .filter_map(|entry| Some((entry.depth(), entry.path().to_owned(), entry.metadata().ok()?)))
        .filter(|(_, _, metadata)| metadata.len() <= LARGEST)
        .collect();
    found.sort_by_key(|(depth, _, _)| *depth);
    found.into_iter().map(|(_, path, metadata)| (path, metadata)).collect()
}

/// Answers how many. One that cannot be opened is left out.
fn copy_some<S: Steps>(
    found: &[(PathBuf, Metadata)],
    from: &Path,
    to: &Path,
    disk: &mut Disk<S>,
) -> Result<usize, Error> {
    let (mut files, mut together) = (0, 0);
    for (path, metadata) in found.iter().take(MOST) {
        together += metadata.len();
        if together > TOGETHER {
            break;
        }
        if File::open(path).is_err() {
            continue;
        }
        let target = to.join(path.strip_prefix(from).unwrap_or(path));
        disk.make_directory(target.parent().unwrap_or(to))?;
        copy_file(path, &target, metadata, disk)?;
        files += 1;
    }
    Ok(files)
}
