//! Edge (writes). Restores saved plugin data with a journal: after the first rename no server starts before the last one.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Error, PieceFiles as _, PieceState, inspect, last, relative};
use crate::staging::fs_ops::{Disk, FsHook, exists};
use crate::staging::{Volume, is_direct_child, read_record};
use agent_api::plugin_data::{DataPiece, NOT_MOVABLE, PluginData, PluginDataRestored};

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
pub fn restore_data<S: FsHook>(
    volume: &Volume,
    to: &str,
    failed: &str,
    played: impl FnOnce(Timestamp) -> bool,
    disk: &mut Disk<S>,
    now: Timestamp,
) -> Result<Option<PluginData>, Error> {
    let is_for_rollback = |record: &PluginData| record.before == failed && record.back.is_none();
    let Some(record) = last(volume).filter(is_for_rollback) else { return Ok(None) };
    // The failed version set was never put in place completely, so no server has run with it.
    if volume.manifest()?.is_none_or(|ran| ran.lock != failed) {
        return Ok(None);
    }
    let result = if played(record.at) {
        PluginDataRestored::SomebodyPlayed { at: now }
    } else if let Some(problem) = restore_blocker(volume, &record, to) {
        PluginDataRestored::Impossible { at: now, problem }
    } else {
        let is_present = |piece: &&DataPiece| exists(&piece.path_on(volume));
        let displaced: Vec<DataPiece> = record.kept.iter().chain(&record.absent).filter(is_present).cloned().collect();
        let displaced_path = relative(volume, &unused_path(&volume.failed_data_dir(), failed)).display().to_string();
        let set_aside = (!displaced.is_empty()).then(|| displaced_path.clone());
        let done = PluginData { back: Some(PluginDataRestored::Done { at: now, set_aside }), ..record };
        let journal = PluginDataJournal { done, to: displaced_path, aside: displaced };
        disk.write_record(&volume.plugin_data_journal_path(), &journal)?;
        return apply_journal(volume, &journal, disk).map(Some);
    };
    let record = PluginData { back: Some(result), ..record };
    disk.write_record(&volume.plugin_data_path(), &record)?;
    Ok(Some(record))
}

/// Finishes an exchange that has begun, if any.
pub fn finish<S: FsHook>(volume: &Volume, disk: &mut Disk<S>) -> Result<Option<PluginData>, Error> {
    match read_record(&volume.plugin_data_journal_path())? {
        Some(journal) => apply_journal(volume, &journal, disk).map(Some),
        None => Ok(None),
    }
}

/// Why the saved data cannot be restored: it belongs to another version set, or a rename would fail. It is checked before the first rename,
/// because an exchange that has begun must be finished.
fn restore_blocker(volume: &Volume, record: &PluginData, to: &str) -> Option<String> {
    if record.lock != to {
        let digits = record.lock.get(..16).unwrap_or(&record.lock);
        return Some(format!("they belong to the version set {digits}, which ran in between"));
    }
    let saved = record.place.as_ref().map(|saved| volume.root().join(saved));
    for piece in &record.kept {
        if !saved.as_ref().is_some_and(|saved| exists(&piece.path_in(saved))) {
            return Some(format!("the saved data of {} no longer exists", piece.path()));
        }
    }
    record.kept.iter().chain(&record.absent).find_map(|piece| match inspect(volume, piece) {
        PieceState::Missing | PieceState::Movable => None,
        PieceState::NotMovable => Some(format!("{} {NOT_MOVABLE}", piece.path())),
        PieceState::Unreadable(problem) => Some(format!("{}: {problem}", piece.path())),
    })
}

/// A version set that failed twice has two of them.
fn unused_path(directory: &Path, failed: &str) -> PathBuf {
    let (mut path, mut number) = (directory.join(failed), 1);
    while exists(&path) {
        number += 1;
        path = directory.join(format!("{failed}.{number}"));
    }
    path
}

fn apply_journal<S: FsHook>(
    volume: &Volume,
    journal: &PluginDataJournal,
    disk: &mut Disk<S>,
) -> Result<PluginData, Error> {
    let PluginDataJournal { done, to, aside: displaced } = journal;
    let saved = saved_dir(volume, journal)?;
    let displaced_dir = volume.root().join(to);
    if !displaced.is_empty() {
        disk.make_directory(&displaced_dir)?;
        disk.sync_directory(&volume.failed_data_dir())?;
        disk.sync_directory(volume.failed_data_dir().parent().unwrap_or(volume.root()))?;
    }
    // All are displaced before the first is moved in. An item that is already displaced was moved before a crash, and its replacement may be in
    // place.
    for piece in displaced {
        let (from, to) = (piece.path_on(volume), piece.path_in(&displaced_dir));
        if exists(&from) && !exists(&to) {
            disk.move_and_sync(&from, &to)?;
        }
    }
    for piece in &done.kept {
        let (from, to) = (piece.path_in(&saved), piece.path_on(volume));
        if exists(&from) {
            if exists(&to) {
                return Err(Error::Occupied { path: piece.path() });
            }
            disk.move_and_sync(&from, &to)?;
        }
    }
    disk.write_record(&volume.plugin_data_path(), done)?;
    if done.place.is_some() {
        disk.remove_all(&saved)?;
    }
    disk.remove(&volume.plugin_data_journal_path())?;
    disk.sync_directory(volume.plugin_data_path().parent().unwrap_or(volume.root()))?;
    Ok(done.clone())
}

/// The directory of the saved items, if the journal contains only paths of Nightshift.
fn saved_dir(volume: &Volume, journal: &PluginDataJournal) -> Result<PathBuf, Error> {
    let PluginDataJournal { done, to, aside: displaced } = journal;
    let refuse = |name: &str| Err(Error::Journal { name: name.to_owned() });
    if let Some(odd) = displaced.iter().chain(&done.kept).find(|piece| !piece.is_valid()) {
        return refuse(&odd.to_string());
    }
    if !is_direct_child(to, &relative(volume, &volume.failed_data_dir())) {
        return refuse(to);
    }
    match &done.place {
        Some(place) if !is_direct_child(place, &relative(volume, &volume.saved_data_dir())) => refuse(place),
        Some(place) => Ok(volume.root().join(place)),
        None => Ok(volume.saved_data_dir()),
    }
}
