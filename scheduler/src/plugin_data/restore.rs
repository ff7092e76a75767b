//! Edge (writes). Restores saved plugin data with a journal: after the first rename no server starts before the last one.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Error, PieceState, is_right_below, last, look, relative};
use crate::protocol::plugin_data::{CANNOT_BE_MOVED, DataPiece, PluginData, PluginDataRestored};
use crate::staging::fs_ops::{Disk, FsHook, is_there};
use crate::staging::{Volume, read_record};

/// `plugin-data-back.json`: an exchange is in progress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PluginDataJournal {
    /// The record after the exchange.
    done: PluginData,
    /// The directory to which existing items are displaced, relative to the server's directory.
    to: String,
    /// The displaced items: they existed when the journal was written.
    aside: Vec<DataPiece>,
}

/// Restores the data that was saved before the version set `failed`, if `failed` was started last and `to` had run before it. The existing items
/// are moved to `.nightshift/failed/<digest>`. `None`: no data was saved in that update, or it was already handled.
///
/// `played` returns whether players may have been online since then. Their progress would be lost with the existing data, so that data stays.
pub fn put_back<S: FsHook>(
    volume: &Volume,
    to: &str,
    failed: &str,
    played: impl FnOnce(Timestamp) -> bool,
    disk: &mut Disk<S>,
    now: Timestamp,
) -> Result<Option<PluginData>, Error> {
    let is_of_this_step = |record: &PluginData| record.before == failed && record.back.is_none();
    let Some(record) = last(volume).filter(is_of_this_step) else { return Ok(None) };
    // The failed version set was never put in place completely, so no server has run with it.
    if volume.manifest()?.is_none_or(|ran| ran.lock != failed) {
        return Ok(None);
    }
    let back = if played(record.at) {
        PluginDataRestored::SomebodyPlayed { at: now }
    } else if let Some(problem) = obstacle(volume, &record, to) {
        PluginDataRestored::Impossible { at: now, problem }
    } else {
        let lies_there = |piece: &&DataPiece| is_there(&piece.here(volume));
        let aside: Vec<DataPiece> = record.kept.iter().chain(&record.absent).filter(lies_there).cloned().collect();
        let place = relative(volume, &free_place(&volume.failed_dir(), failed)).display().to_string();
        let set_aside = (!aside.is_empty()).then(|| place.clone());
        let done = PluginData { back: Some(PluginDataRestored::Done { at: now, set_aside }), ..record };
        let journal = PluginDataJournal { done, to: place, aside };
        disk.write_record(&volume.plugin_data_journal_path(), &journal)?;
        return carry_out(volume, &journal, disk).map(Some);
    };
    let record = PluginData { back: Some(back), ..record };
    disk.write_record(&volume.plugin_data_path(), &record)?;
    Ok(Some(record))
}

/// Finishes an exchange that has begun, if any.
pub fn finish<S: FsHook>(volume: &Volume, disk: &mut Disk<S>) -> Result<Option<PluginData>, Error> {
    match read_record(&volume.plugin_data_journal_path())? {
        Some(journal) => carry_out(volume, &journal, disk).map(Some),
        None => Ok(None),
    }
}

/// Why the saved data cannot be restored: it belongs to another version set, or a rename would fail. It is checked before the first rename,
/// because an exchange that has begun must be finished.
fn obstacle(volume: &Volume, record: &PluginData, to: &str) -> Option<String> {
    if record.lock != to {
        let digits = record.lock.get(..16).unwrap_or(&record.lock);
        return Some(format!("they are of the set {digits}, which ran in between"));
    }
    let place = record.place.as_ref().map(|place| volume.root().join(place));
    for piece in &record.kept {
        if !place.as_ref().is_some_and(|place| is_there(&piece.below(place))) {
            return Some(format!("what was kept of {} is gone", piece.path()));
        }
    }
    record.kept.iter().chain(&record.absent).find_map(|piece| match look(volume, piece) {
        PieceState::Nothing | PieceState::Piece => None,
        PieceState::NoPiece => Some(format!("{} {CANNOT_BE_MOVED}", piece.path())),
        PieceState::Unreadable(problem) => Some(format!("{}: {problem}", piece.path())),
    })
}

/// A version set that failed twice has two of them.
fn free_place(directory: &Path, failed: &str) -> PathBuf {
    let (mut place, mut number) = (directory.join(failed), 1);
    while place.exists() {
        number += 1;
        place = directory.join(format!("{failed}.{number}"));
    }
    place
}

fn carry_out<S: FsHook>(volume: &Volume, journal: &PluginDataJournal, disk: &mut Disk<S>) -> Result<PluginData, Error> {
    let PluginDataJournal { done, to, aside } = journal;
    let kept = checked(volume, journal)?;
    let beside = volume.root().join(to);
    if !aside.is_empty() {
        disk.make_directory(&beside)?;
        disk.sync_directory(&volume.failed_dir())?;
        disk.sync_directory(volume.failed_dir().parent().unwrap_or(volume.root()))?;
    }
    // All are displaced before the first is moved in. An item that is already displaced was moved before a crash, and its replacement may be in
    // place.
    for piece in aside {
        let (from, to) = (piece.here(volume), piece.below(&beside));
        if is_there(&from) && !is_there(&to) {
            disk.carry(&from, &to)?;
        }
    }
    for piece in &done.kept {
        let (from, to) = (piece.below(&kept), piece.here(volume));
        if is_there(&from) {
            if is_there(&to) {
                return Err(Error::InTheWay { path: piece.path() });
            }
            disk.carry(&from, &to)?;
        }
    }
    disk.write_record(&volume.plugin_data_path(), done)?;
    if done.place.is_some() {
        disk.remove_all(&kept)?;
    }
    disk.remove(&volume.plugin_data_journal_path())?;
    disk.sync_directory(volume.plugin_data_path().parent().unwrap_or(volume.root()))?;
    Ok(done.clone())
}

/// The directory of the saved items, if the journal contains only paths of Nightshift.
fn checked(volume: &Volume, journal: &PluginDataJournal) -> Result<PathBuf, Error> {
    let PluginDataJournal { done, to, aside } = journal;
    let refuse = |name: &str| Err(Error::Journal { name: name.to_owned() });
    if let Some(odd) = aside.iter().chain(&done.kept).find(|piece| !piece.is_ours()) {
        return refuse(&odd.to_string());
    }
    if !is_right_below(to, &relative(volume, &volume.failed_dir())) {
        return refuse(to);
    }
    match &done.place {
        Some(place) if !is_right_below(place, &relative(volume, &volume.kept_dir())) => refuse(place),
        Some(place) => Ok(volume.root().join(place)),
        None => Ok(volume.kept_dir()),
    }
}
