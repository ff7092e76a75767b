//! Edge (writes). Saves the data that an update may change, and the settings of all other plugins, before another version set is put in place.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use walkdir::WalkDir;

use super::config_files::{self, ConfigCopied, CopyLimits};
use super::copy::copy;
use super::{Error, PieceState, directories, folders_that_stay, last, look, pieces_that_change, relative};
use crate::backup::{LEFT_OUT_NAMED, id_of};
use crate::protocol::FileSet;
use crate::protocol::plugin_data::{DataPiece, NotKept, PluginData, Settings, WhyNotKept};
use crate::staging::Volume;
use crate::staging::content_store::SPARE;
use crate::staging::fs_ops::{self, Disk, FsHook, is_there};

/// The prefixes of unfinished copies and of copies that are being removed. Neither counts.
const PARTIAL: &str = ".partial-";
const REMOVING: &str = ".removing-";

/// How many changes of the version set are kept: the one that may be rolled back, and the one before it.
const STAYS: usize = 2;

/// Saves the data that the update to `set` may change: the folders of plugins whose JAR changes, and the server's own settings if Paper changes.
/// Each piece is saved if it has at most `limit` bytes. `None`: no piece changes, no Nightshift lock has run here yet, or the limit is 0. A
/// second attempt at the same update finds the copies of the first one.
///
/// A piece that cannot be saved is recorded and does not stop the update. If a plugin's folder is only too large, its settings are saved. The
/// settings of all unchanged plugins are saved too, up to the limits. The caller ensures that no server runs.
pub fn keep<S: FsHook>(
    volume: &Volume,
    set: &FileSet,
    limit: u64,
    disk: &mut Disk<S>,
    now: Timestamp,
) -> Result<Option<PluginData>, Error> {
    let Some(ran) = volume.manifest()?.filter(|ran| ran.lock != set.lock) else { return Ok(None) };
    if let Some(known) = last(volume).filter(|known| is_of_this_step(volume, known, &ran.lock, &set.lock)) {
        return Ok(Some(known));
    }
    let pieces = pieces_that_change(&ran, set);
    if limit == 0 || pieces.is_empty() {
        return Ok(None);
    }
    let stay = folders_that_stay(&ran, &pieces);
    let id = id_of(now, Some(&ran.lock));
    let [pieces_at, settings_at] =
        [volume.kept_dir(), volume.kept_settings_dir()].map(|beside| Copy::new(&beside, &id));
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
        match keep_one(volume, &piece, &pieces_at.partial, limit, disk)? {
            One::Kept { left_out } => {
                let (room, path) = (LEFT_OUT_NAMED - record.left_out.len(), piece.path());
                record.left_out.extend(left_out.into_iter().take(room).map(|name| format!("{path}/{name}")));
                record.kept.push(piece);
            }
            One::Absent => record.absent.push(piece),
            One::Not(why) => record.not_kept.push(NotKept { piece, why, settings: None }),
        }
    }
    pieces_at.end(!record.kept.is_empty(), disk)?;
    if !record.kept.is_empty() {
        record.place = Some(relative(volume, &pieces_at.place).display().to_string());
    }
    if keep_settings(volume, &stay, &mut record, &settings_at, disk).is_err() {
        // A failing disk fails again below. Any other failure is no reason to block the update.
        record.not_kept.iter_mut().for_each(|not_kept| not_kept.settings = None);
        record.settings = None;
    }
    disk.write_record(&volume.plugin_data_path(), &record)?;
    Ok(Some(record))
}

/// Saves the settings of folders that are only too large, each by itself, and of folders whose plugins `stay` unchanged, together.
fn keep_settings<S: FsHook>(
    volume: &Volume,
    stay: &BTreeSet<String>,
    record: &mut PluginData,
    copy: &Copy,
    disk: &mut Disk<S>,
) -> Result<(), Error> {
    let large: Vec<_> = record.not_kept.iter_mut().filter_map(folder_that_is_too_large).collect();
    if large.is_empty() && stay.is_empty() {
        return Ok(());
    }
    copy.begin(disk)?;
    let told = |ConfigCopied { files, of }: ConfigCopied, place: &Path| {
        (files > 0).then(|| Settings { files, of, place: relative(volume, place).display().to_string() })
    };
    let mut has_any = false;
    for (folder, settings) in large {
        let copied = config_files::keep(volume, folder, &copy.partial, &mut CopyLimits::of_one(), disk)?;
        *settings = told(copied, &copy.place.join(folder));
        has_any |= settings.is_some();
    }
    let (mut left, mut all) = (CopyLimits::of_all_that_stay(), ConfigCopied::default());
    for folder in stay.iter().filter(|folder| can_be_read(volume, folder)) {
        let ConfigCopied { files, of } = config_files::keep(volume, folder, &copy.partial, &mut left, disk)?;
        all.files += files;
        all.of += of;
    }
    record.settings = told(all, &copy.place);
    copy.end(has_any || record.settings.is_some(), disk)
}

/// Whether it is a folder on this volume and not a link. Whether it could be moved does not matter, because it stays.
fn can_be_read(volume: &Volume, folder: &str) -> bool {
    match look(volume, &DataPiece::OfPlugin(folder.to_owned())) {
        PieceState::Piece | PieceState::Unreadable(_) => true,
        PieceState::Nothing | PieceState::NoPiece => false,
    }
}

/// A plugin's folder that was not saved because of its size, and the field for its settings.
fn folder_that_is_too_large(not_kept: &mut NotKept) -> Option<(&str, &mut Option<Settings>)> {
    let NotKept { piece, why, settings } = not_kept;
    match (piece, why) {
        (DataPiece::OfPlugin(folder), WhyNotKept::TooLarge { .. } | WhyNotKept::NoRoom { .. }) => {
            Some((folder, settings))
        }
        (DataPiece::OfPlugin(_) | DataPiece::OfServer(_), _) => None,
    }
}

/// Whether the record is from the first attempt at this update. No server has run since, and all of it exists.
fn is_of_this_step(volume: &Volume, known: &PluginData, from: &str, to: &str) -> bool {
    let lies_there =
        |piece: &DataPiece| known.place.as_ref().is_some_and(|at| is_there(&piece.below(&volume.root().join(at))));
    let settings_lie_there =
        known.settings.as_ref().is_none_or(|settings| is_there(&volume.root().join(&settings.place)));
    let is_it = known.lock == from && known.before == to && known.back.is_none();
    is_it && settings_lie_there && known.kept.iter().all(lies_there)
}

/// A copy that is being made beside others.
struct Copy {
    partial: PathBuf,
    place: PathBuf,
}

impl Copy {
    fn new(beside: &Path, id: &str) -> Self {
        Self { partial: beside.join(format!("{PARTIAL}{id}")), place: beside.join(id) }
    }

    fn begin<S: FsHook>(&self, disk: &mut Disk<S>) -> Result<(), Error> {
        let beside = self.beside();
        disk.make_directory(beside)?;
        tidy(beside, disk)?;
        Ok(disk.make_directory(&self.partial)?)
    }

    /// Moves it into place, if it has any content.
    fn end<S: FsHook>(&self, has_any: bool, disk: &mut Disk<S>) -> Result<(), Error> {
        let Self { partial, place } = self;
        if !has_any {
            return Ok(disk.remove_all(partial)?);
        }
        // One call for all of them: syncing thousands of small files one by one would be downtime.
        disk.step("bring all to the disk", partial, |partial| Ok(rustix::fs::syncfs(File::open(partial)?)?))?;
        disk.rename(partial, place)?;
        Ok(disk.sync_directory(self.beside())?)
    }

    fn beside(&self) -> &Path {
        self.place.parent().unwrap_or(&self.place)
    }
}

/// The result of one piece.
enum One {
    Kept { left_out: Vec<String> },
    Absent,
    Not(WhyNotKept),
}

fn keep_one<S: FsHook>(
    volume: &Volume,
    piece: &DataPiece,
    partial: &Path,
    limit: u64,
    disk: &mut Disk<S>,
) -> Result<One, Error> {
    match look(volume, piece) {
        PieceState::Nothing => return Ok(One::Absent),
        PieceState::NoPiece => return Ok(One::Not(WhyNotKept::NotMovable)),
        PieceState::Unreadable(problem) => return Ok(One::Not(WhyNotKept::Unreadable { problem })),
        PieceState::Piece => {}
    }
    let (from, to) = (piece.here(volume), piece.below(partial));
    let unreadable = |error: &dyn std::error::Error| {
        let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
        One::Not(WhyNotKept::Unreadable { problem: format!("{error}{cause}") })
    };
    let (bytes, is_whole) = match measure(&from) {
        Ok(measured) => measured,
        Err(error) => return Ok(unreadable(&error)),
    };
    if !is_whole {
        return Ok(One::Not(WhyNotKept::NotMovable));
    }
    if bytes > limit {
        return Ok(One::Not(WhyNotKept::TooLarge { bytes, limit }));
    }
    let free = match fs_ops::free_bytes(volume.root()) {
        Ok(free) => free.saturating_sub(SPARE),
        Err(error) => return Ok(unreadable(&error)),
    };
    if free < bytes {
        return Ok(One::Not(WhyNotKept::NoRoom { bytes, free }));
    }
    disk.make_directory(to.parent().unwrap_or(partial))?;
    match copy(&from, &to, disk) {
        Ok(left_out) => Ok(One::Kept { left_out }),
        Err(error) => {
            discard(&to, disk)?;
            Ok(unreadable(&error))
        }
    }
}

/// The total size of its files, and whether all of it is on one file system.
fn measure(piece: &Path) -> io::Result<(u64, bool)> {
    let (mut bytes, mut device) = (0_u64, None);
    for entry in WalkDir::new(piece) {
        let metadata = entry?.metadata()?;
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
pub fn step_is_over<S: FsHook>(volume: &Volume, set: &FileSet, disk: &mut Disk<S>) -> Result<(), Error> {
    match last(volume) {
        Some(record) if record.before != set.lock && record.back.is_none() => {
            Ok(disk.remove(&volume.plugin_data_path())?)
        }
        Some(_) | None => Ok(()),
    }
}

/// Removes data that is older than the last two changes of the version set. Returns the removed paths, relative to the server's directory.
pub fn forget_old<S: FsHook>(volume: &Volume, disk: &mut Disk<S>) -> Result<Vec<PathBuf>, Error> {
    // Regardless of its timestamp, the data of the last change is the newest.
    let record = last(volume);
    let newest = record.as_ref().and_then(|record| record.place.as_ref().map(PathBuf::from));
    let newest_settings = record.and_then(place_of_settings);
    let mut gone = Vec::new();
    for (of, newest) in [(volume.kept_dir(), newest), (volume.kept_settings_dir(), newest_settings)] {
        tidy(&of, disk)?;
        let mut names = directories(&of)?;
        names.sort_by_key(|name| newest.as_ref().is_some_and(|place| place.ends_with(name)));
        names.truncate(names.len().saturating_sub(STAYS));
        for name in &names {
            let going = of.join(format!("{REMOVING}{name}"));
            disk.rename(&of.join(name), &going)?;
            disk.sync_directory(&of)?;
            discard(&going, disk)?;
            gone.push(relative(volume, &of.join(name)));
        }
    }
    Ok(gone)
}

/// The directory of the settings that the last change saved. All are in one directory, in which each large folder has a folder of its own.
fn place_of_settings(record: PluginData) -> Option<PathBuf> {
    let of_those_that_stay = record.settings.map(|settings| PathBuf::from(settings.place));
    let of_large = record.not_kept.into_iter().find_map(|not_kept| not_kept.settings);
    of_those_that_stay.or_else(|| Some(Path::new(&of_large?.place).parent()?.to_owned()))
}

/// Removes unfinished and half removed copies.
fn tidy<S: FsHook>(of: &Path, disk: &mut Disk<S>) -> Result<(), Error> {
    for name in directories(of)? {
        if name.starts_with(PARTIAL) || name.starts_with(REMOVING) {
            discard(&of.join(name), disk)?;
        }
    }
    Ok(())
}

/// Removes a copy of a file or of folders, including read-only ones.
pub(super) fn discard<S: FsHook>(copy: &Path, disk: &mut Disk<S>) -> Result<(), Error> {
    if copy.is_file() {
        return Ok(disk.remove(copy)?);
    }
    for entry in WalkDir::new(copy).into_iter().filter_map(Result::ok).filter(|entry| entry.file_type().is_dir()) {
        disk.step("make room for the removal of", entry.path(), |folder| {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
        })?;
    }
    Ok(disk.remove_all(copy)?)
}
