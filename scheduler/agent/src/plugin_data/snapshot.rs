//! Edge (writes). Saves the data that an update may change, and the settings of all other plugins, before another version set is put in place.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::config_files::{self, ConfigCopied, CopyLimits};
use super::copy::copy;
use super::{
    Error, PieceFiles as _, PieceState, changed_pieces, directories, inspect, last, relative, unchanged_folders,
};
use crate::backup::{MAX_NAMED_FILES, new_id};
use crate::plain_fs::{self, Walk};
use crate::staging::Volume;
use crate::staging::fs_ops::{self, Disk, FsHook, exists};
use agent_api::FileSet;
use agent_api::plugin_data::{DataPiece, NotSaved, NotSavedReason, PluginData, Settings};
use agent_api::restore::RESERVED_BYTES;

/// The prefixes of unfinished copies and of copies that are being removed. Neither counts.
const PARTIAL: &str = ".partial-";
const REMOVING: &str = ".removing-";

/// How many changes of the version set are kept: the one that may be rolled back, and the one before it.
const RETAINED_CHANGES: usize = 2;

/// Saves the data that the update to `set` may change: the folders of plugins whose JAR changes, and the server's own settings if Paper changes.
/// Each piece is saved if it has at most `limit` bytes. `None`: no piece changes, no Nightshift lock has run here yet, or the limit is 0. A
/// second attempt at the same update finds the copies of the first one.
///
/// A piece that cannot be saved is recorded and does not stop the update. If a plugin's folder is only too large, its settings are saved. The
/// settings of all unchanged plugins are saved too, up to the limits. The caller ensures that no server runs.
pub fn save_data<S: FsHook>(
    volume: &Volume,
    set: &FileSet,
    limit: u64,
    disk: &mut Disk<S>,
    now: Timestamp,
) -> Result<Option<PluginData>, Error> {
    let Some(ran) = volume.manifest()?.filter(|ran| ran.lock != set.lock) else { return Ok(None) };
    if let Some(record) = last(volume).filter(|record| is_for_update(volume, record, &ran.lock, &set.lock)) {
        return Ok(Some(record));
    }
    let pieces = changed_pieces(&ran, set);
    if limit == 0 || pieces.is_empty() {
        return Ok(None);
    }
    let stay = unchanged_folders(&ran, &pieces);
    let id = new_id(now, Some(&ran.lock));
    let [pieces_at, settings_at] =
        [volume.saved_data_dir(), volume.saved_settings_dir()].map(|parent| Copy::new(&parent, &id));
    pieces_at.begin(disk)?;
    let mut record = PluginData {
        at: now,
        lock: ran.lock,
        before: set.lock.clone(),
        place: None,
        kept: vec![],
        absent: vec![],
        not_kept: vec![],
        left_out: vec![],
        settings: None,
        back: None,
    };
    for piece in pieces {
        match save_piece(volume, &piece, &pieces_at.partial, limit, disk)? {
            SavedPiece::Saved { left_out } => {
                let (room, path) = (MAX_NAMED_FILES - record.left_out.len(), piece.path());
                record.left_out.extend(left_out.into_iter().take(room).map(|name| format!("{path}/{name}")));
                record.kept.push(piece);
            }
            SavedPiece::Absent => record.absent.push(piece),
            SavedPiece::NotSaved(why) => record.not_kept.push(NotSaved { piece, why, settings: None }),
        }
    }
    pieces_at.finish(!record.kept.is_empty(), disk)?;
    if !record.kept.is_empty() {
        record.place = Some(relative(volume, &pieces_at.target).display().to_string());
    }
    if save_settings(volume, &stay, &mut record, &settings_at, disk).is_err() {
        // A failing disk fails again below. Any other failure is no reason to block the update.
        record.not_kept.iter_mut().for_each(|not_kept| not_kept.settings = None);
        record.settings = None;
    }
    disk.write_record(&volume.plugin_data_path(), &record)?;
    Ok(Some(record))
}

/// Saves the settings of folders that are only too large, each by itself, and of folders whose plugins `stay` unchanged, together.
fn save_settings<S: FsHook>(
    volume: &Volume,
    stay: &BTreeSet<String>,
    record: &mut PluginData,
    copy: &Copy,
    disk: &mut Disk<S>,
) -> Result<(), Error> {
    let large: Vec<_> = record.not_kept.iter_mut().filter_map(too_large_folder).collect();
    if large.is_empty() && stay.is_empty() {
        return Ok(());
    }
    copy.begin(disk)?;
    let to_settings = |ConfigCopied { files, total }: ConfigCopied, directory: &Path| {
        (files > 0).then(|| Settings { files, of: total, place: relative(volume, directory).display().to_string() })
    };
    let mut has_any = false;
    for (folder, settings) in large {
        let result =
            config_files::copy_config_files(volume, folder, &copy.partial, &mut CopyLimits::one_folder(), disk)?;
        *settings = to_settings(result, &copy.target.join(folder));
        has_any |= settings.is_some();
    }
    let (mut left, mut all) = (CopyLimits::unchanged_plugins(), ConfigCopied::default());
    for folder in stay.iter().filter(|folder| is_readable_folder(volume, folder)) {
        let ConfigCopied { files, total } =
            config_files::copy_config_files(volume, folder, &copy.partial, &mut left, disk)?;
        all.files += files;
        all.total += total;
    }
    record.settings = to_settings(all, &copy.target);
    copy.finish(has_any || record.settings.is_some(), disk)
}

/// Whether it is a folder on this volume and not a link. Whether it could be moved does not matter, because it stays.
fn is_readable_folder(volume: &Volume, folder: &str) -> bool {
    match inspect(volume, &DataPiece::OfPlugin(folder.to_owned())) {
        PieceState::Movable | PieceState::Unreadable(_) => true,
        PieceState::Missing | PieceState::NotMovable => false,
    }
}

/// A plugin's folder that was not saved because of its size, and the field for its settings.
fn too_large_folder(not_kept: &mut NotSaved) -> Option<(&str, &mut Option<Settings>)> {
    let NotSaved { piece, why, settings } = not_kept;
    match (piece, why) {
        (DataPiece::OfPlugin(folder), NotSavedReason::TooLarge { .. } | NotSavedReason::NoRoom { .. }) => {
            Some((folder, settings))
        }
        (DataPiece::OfPlugin(_) | DataPiece::OfServer(_), _) => None,
    }
}

/// Whether the record is from the first attempt at this update. No server has run since, and all of it exists.
fn is_for_update(volume: &Volume, record: &PluginData, from: &str, to: &str) -> bool {
    let is_present =
        |piece: &DataPiece| record.place.as_ref().is_some_and(|at| exists(&piece.path_in(&volume.root().join(at))));
    let has_settings = record.settings.as_ref().is_none_or(|settings| exists(&volume.root().join(&settings.place)));
    let is_same_update = record.lock == from && record.before == to && record.back.is_none();
    is_same_update && has_settings && record.kept.iter().all(is_present)
}

/// A copy that is being made beside others.
struct Copy {
    partial: PathBuf,
    target: PathBuf,
}

impl Copy {
    fn new(parent: &Path, id: &str) -> Self {
        Self { partial: parent.join(format!("{PARTIAL}{id}")), target: parent.join(id) }
    }

    fn begin<S: FsHook>(&self, disk: &mut Disk<S>) -> Result<(), Error> {
        let parent = self.parent();
        disk.make_directory(parent)?;
        remove_unfinished(parent, disk)?;
        Ok(disk.make_directory(&self.partial)?)
    }

    /// Moves it into place, if it has any content.
    fn finish<S: FsHook>(&self, has_any: bool, disk: &mut Disk<S>) -> Result<(), Error> {
        let Self { partial, target } = self;
        if !has_any {
            return Ok(disk.remove_all(partial)?);
        }
        // One call for all of them: syncing thousands of small files one by one would be downtime.
        disk.step("flush all of", partial, plain_fs::sync_file_system)?;
        disk.rename(partial, target)?;
        Ok(disk.sync_directory(self.parent())?)
    }

    fn parent(&self) -> &Path {
        self.target.parent().unwrap_or(&self.target)
    }
}

/// The result of one piece.
enum SavedPiece {
    Saved { left_out: Vec<String> },
    Absent,
    NotSaved(NotSavedReason),
}

fn save_piece<S: FsHook>(
    volume: &Volume,
    piece: &DataPiece,
    partial: &Path,
    limit: u64,
    disk: &mut Disk<S>,
) -> Result<SavedPiece, Error> {
    match inspect(volume, piece) {
        PieceState::Missing => return Ok(SavedPiece::Absent),
        PieceState::NotMovable => return Ok(SavedPiece::NotSaved(NotSavedReason::NotMovable)),
        PieceState::Unreadable(problem) => return Ok(SavedPiece::NotSaved(NotSavedReason::Unreadable { problem })),
        PieceState::Movable => {}
    }
    let (from, to) = (piece.path_on(volume), piece.path_in(partial));
    let unreadable = |error: &dyn std::error::Error| {
        let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
        SavedPiece::NotSaved(NotSavedReason::Unreadable { problem: format!("{error}{cause}") })
    };
    let (bytes, is_whole) = match measure(&from) {
        Ok(measured) => measured,
        Err(error) => return Ok(unreadable(&error)),
    };
    if !is_whole {
        return Ok(SavedPiece::NotSaved(NotSavedReason::NotMovable));
    }
    if bytes > limit {
        return Ok(SavedPiece::NotSaved(NotSavedReason::TooLarge { bytes, limit }));
    }
    let free = match fs_ops::free_bytes(volume.root()) {
        Ok(free) => free.saturating_sub(RESERVED_BYTES),
        Err(error) => return Ok(unreadable(&error)),
    };
    if free < bytes {
        return Ok(SavedPiece::NotSaved(NotSavedReason::NoRoom { bytes, free }));
    }
    disk.make_directory(to.parent().unwrap_or(partial))?;
    match copy(&from, &to, disk) {
        Ok(left_out) => Ok(SavedPiece::Saved { left_out }),
        Err(error) => {
            disk.remove_all(&to)?;
            Ok(unreadable(&error))
        }
    }
}

/// The total size of its files, and whether all of it is on one file system.
fn measure(piece: &Path) -> io::Result<(u64, bool)> {
    let (mut bytes, mut device) = (0_u64, None);
    for walked in Walk::new(piece) {
        let metadata = walked.map_err(|error| error.source)?.metadata;
        // Files of an overlay have the device of the layer that contains them.
        if metadata.is_dir() && *device.get_or_insert(metadata.dev()) != metadata.dev() {
            return Ok((bytes, false));
        }
        if metadata.is_file() {
            bytes = bytes.saturating_add(metadata.len());
        }
    }
    Ok((bytes, true))
}

/// Called when `set` starts. Data that was saved for another version set, in an update that never happened or long ago, must not be mistaken for
/// data of a later update.
pub fn remove_outdated_record<S: FsHook>(volume: &Volume, set: &FileSet, disk: &mut Disk<S>) -> Result<(), Error> {
    match last(volume) {
        Some(record) if record.before != set.lock && record.back.is_none() => {
            Ok(disk.remove(&volume.plugin_data_path())?)
        }
        Some(_) | None => Ok(()),
    }
}

/// Removes data that is older than the last two changes of the version set. Returns the removed paths, relative to the server's directory.
pub fn prune_saved<S: FsHook>(volume: &Volume, disk: &mut Disk<S>) -> Result<Vec<PathBuf>, Error> {
    // Regardless of its timestamp, the data of the last change is the newest.
    let record = last(volume);
    let newest = record.as_ref().and_then(|record| record.place.as_ref().map(PathBuf::from));
    let newest_settings = record.and_then(settings_dir);
    let mut removed = Vec::new();
    for (directory, newest) in [(volume.saved_data_dir(), newest), (volume.saved_settings_dir(), newest_settings)] {
        remove_unfinished(&directory, disk)?;
        let mut names = directories(&directory)?;
        names.sort_by_key(|name| newest.as_ref().is_some_and(|path| path.ends_with(name)));
        names.truncate(names.len().saturating_sub(RETAINED_CHANGES));
        for name in &names {
            let removing = directory.join(format!("{REMOVING}{name}"));
            disk.rename(&directory.join(name), &removing)?;
            disk.sync_directory(&directory)?;
            disk.remove_all(&removing)?;
            removed.push(relative(volume, &directory.join(name)));
        }
    }
    Ok(removed)
}

/// The directory of the settings that the last change saved. All are in one directory, in which each large folder has a folder of its own.
fn settings_dir(record: PluginData) -> Option<PathBuf> {
    let of_unchanged = record.settings.map(|settings| PathBuf::from(settings.place));
    let of_large = record.not_kept.into_iter().find_map(|not_kept| not_kept.settings);
    of_unchanged.or_else(|| Some(Path::new(&of_large?.place).parent()?.to_owned()))
}

/// Removes unfinished and half removed copies.
fn remove_unfinished<S: FsHook>(directory: &Path, disk: &mut Disk<S>) -> Result<(), Error> {
    for name in directories(directory)? {
        if name.starts_with(PARTIAL) || name.starts_with(REMOVING) {
            disk.remove_all(&directory.join(name))?;
        }
    }
    Ok(())
}
