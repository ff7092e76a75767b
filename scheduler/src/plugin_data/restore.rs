//! Edge (writes). Puts back what was kept, by a journal: from the first rename on no server starts before the last.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Error, PieceState, is_right_below, last, look, relative};
use crate::protocol::plugin_data::{CANNOT_BE_MOVED, DataPiece, PluginData, PluginDataRestored};
use crate::staging::fs_ops::{Disk, FsHook, is_there};
use crate::staging::{Volume, read_record};

/// `plugin-data-back.json`: an exchange is under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PluginDataJournal {
    /// The record as it will be.
    done: PluginData,
    /// Where those go that are there, relative to the server's directory.
    to: String,
    /// Those that make room: they were there when the journal was written.
    aside: Vec<DataPiece>,
}

/// Puts back what was kept before the set `failed`, if `failed` is what was started last and `to` is what had run before it. What lies there goes to
/// `.nightshift/failed/<digest>`. None: nothing was kept in that step, or it was dealt with already.
///
/// `played` is asked whether somebody may have played since then: what they did would be lost with what lies there, so it stays.
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
    // The failed set has never been put in place as a whole: no server of it has run.
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

/// Ends an exchange that has begun, if one has.
pub fn finish<S: FsHook>(volume: &Volume, disk: &mut Disk<S>) -> Result<Option<PluginData>, Error> {
    match read_record(&volume.plugin_data_journal_path())? {
        Some(journal) => carry_out(volume, &journal, disk).map(Some),
        None => Ok(None),
    }
}

/// What was kept is not what belongs there, or a rename would fail. Looked for before the first of them: an exchange that has begun has to be ended.
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

/// A set that failed twice has two of them.
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
    // All go before the first comes: what lies aside already was moved before a crash, and what lies in its place now has come.
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

/// Where those lie that were kept, if the journal names places of ours only.
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
