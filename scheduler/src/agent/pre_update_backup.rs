//! Edge (writes). The copy that `agent init` takes between the stop of one set and the start of another, and what is known of those that lie
//! there.

use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tracing::{info, warn};
use walkdir::WalkDir;

use super::prune::RetentionInput;
use super::{Chain, clock, config, damage_scan, requested_restore, seed_volume};
use crate::backup::create::{self, BackupSpec, take};
use crate::backup::due::due;
use crate::backup::repository::{self, BackupRepository, StoredBackup, way_back_from};
use crate::backup::restore::{self, RestorePart, RestoreTarget, finish, restore};
use crate::backup::{Backup, LiveReads, Trigger};
use crate::protocol::{BackupFailed, BackupSeen, BackupsSeen, FileSet, RestoreOrder, Restored};
use crate::staging::fs_ops::{self, Disk, RealFs};
use crate::staging::{RecordError, Volume, read_record};
use crate::world::Worlds;
use crate::world::damage::DamageLog;

/// There is no copy, and the step needs one.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// It was not taken.
    #[error("could not take the copy that is due before this update")]
    Take(#[from] create::Error),
    /// A world whose move did not end is no world to come back to.
    #[error(
        "a world lies here in the old and in the new layout, because a move of the worlds did not end: \
         a copy of it would be no copy to go back to. Restore the world first, or set `spec.backup.beforeUpdate: Never`"
    )]
    HalfMoved,
    /// A record of ours cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A record of ours cannot be written.
    #[error(transparent)]
    Disk(#[from] fs_ops::Error),
}

impl Error {
    /// Time does not mend it.
    pub(super) fn is_final(&self) -> bool {
        match self {
            Self::Take(create::Error::Full { .. }) | Self::HalfMoved => true,
            Self::Take(
                create::Error::Nothing
                | create::Error::Space(_)
                | create::Error::Contents(_)
                | create::Error::Shelf(_)
                | create::Error::Disk(_)
                | create::Error::Write(_)
                | create::Error::Unverified(_),
            )
            | Self::Record(_)
            | Self::Disk(_) => false,
        }
    }
}

/// The worlds were not put back, or not all of them: nothing starts.
#[derive(Debug, thiserror::Error)]
pub(super) enum RestoreError {
    /// Order or journal cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The copies cannot be looked through.
    #[error(transparent)]
    Shelf(#[from] repository::Error),
    /// The copy, or the disk.
    #[error("could not put the worlds back")]
    Restore(#[from] restore::Error),
}

/// `played.json`: somebody was seen on the server, first at this instant since its pod started.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlayedMarker {
    at: Timestamp,
}

/// `copied.json`: the copy for this step lies there. Ends with the step, so that a later one of the same two locks is copied again.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BackupMarker {
    from: Option<String>,
    to: String,
    id: String,
}

/// Takes the copy that is due before `set` starts, unless the same step has it already. The caller holds the locks on the worlds.
pub(super) fn copy_if_due(
    settings: &config::BackupConfig,
    volume: &Volume,
    worlds: &Worlds,
    set: &FileSet,
) -> Result<(), Error> {
    let Some(backups) = &settings.backups else { return Ok(()) };
    let manifest = volume.manifest()?;
    if manifest.is_none() && seed_volume::is_filled(volume)? {
        info!("nothing has run on this volume since it was filled from a copy: that copy is the one");
        return Ok(());
    }
    let Some(contents) = due(settings.backup_before, manifest.as_ref(), set, worlds) else { return Ok(()) };
    let from = manifest.map(|manifest| manifest.lock);
    let shelf = BackupRepository::new(backups);
    if let Some(copied) = read_record::<BackupMarker>(&volume.copied_path())?
        && (&copied.from, &copied.to) == (&from, &set.lock)
        && is_good(&shelf, &copied.id)
    {
        info!("the copy {} was taken for this step already", copied.id);
        return Ok(());
    }
    if contents.has_worlds() && !worlds.whole() {
        return Err(Error::HalfMoved);
    }
    let keeping = RetentionInput::of_init(settings, volume);
    let mut disk = Disk::new(RealFs);
    // A volume that is full of copies which nobody wants any more would have no room for another one, ever.
    keeping.prune(&shelf, None, &mut disk);
    info!("taking a copy of the {contents:?} before this update; it is read back before anything is changed");
    let order = BackupSpec {
        data: volume.root(),
        worlds,
        reading: LiveReads::Still,
        contents,
        trigger: Trigger::BeforeUpdate,
        lock: from.as_deref(),
        before: Some(&set.lock),
        request: None,
        after_damage: damage_scan::is_told(&mut DamageLog::new(volume.clone())),
    };
    let backup = take(&order, &shelf, &mut disk, clock::now)?;
    disk.write_record(&volume.copied_path(), &BackupMarker { from, to: set.lock.clone(), id: backup.id.clone() })?;
    disk.remove(&volume.copy_failed_path())?;
    say(&backup);
    for name in &backup.left_out {
        warn!("{name} is not in it: neither a file nor a directory");
    }
    keeping.prune(&shelf, Some(&backup.id), &mut disk);
    Ok(())
}

/// Puts the worlds back if that is ordered for `set`: the newest copy that was taken before the lock that failed and that `set` can open. It
/// may be of another lock, which somebody started in between. Where the disk does not give that copy, the one before it does: a bad sector stays
/// where it is, and nothing runs meanwhile. None: nothing is ordered, or there is no such copy.
pub(super) fn restore_if_ordered(
    settings: &config::BackupConfig,
    volume: &Volume,
    worlds: &Worlds,
    set: &FileSet,
) -> Result<Option<Restored>, RestoreError> {
    let (Some(backups), Some(order)) = (&settings.backups, &settings.restore_order) else { return Ok(None) };
    let Some(order) = read_record::<RestoreOrder>(order)?.filter(|order| order.worlds && order.to == set.lock) else {
        return Ok(None);
    };
    let shelf = BackupRepository::new(backups);
    let is_meant = |backup: &Backup| {
        backup.contents.has_worlds() && backup.before.as_ref() == Some(&order.failed) && opens(backup, set)
    };
    let mut listed = shelf.list()?;
    listed.reverse();
    // A damaged one may be meant: when the order was given it may have been the newest.
    let newest = listed.iter().find(|copy| copy.record().is_none_or(is_meant)).map(|copy| copy.id.clone());
    let mut meant: Vec<StoredBackup> = listed.into_iter().filter(|copy| copy.record().is_some_and(is_meant)).collect();
    if meant.is_empty() {
        warn!("the worlds are to be put back, and there is no good copy from before the set that failed");
    }
    // What the disk did not give the last time comes last, and is tried all the same.
    meant.sort_by_key(|copy| copy.state.is_err());
    let mut first_error = None;
    for backup in meant.iter().filter_map(StoredBackup::record) {
        let is_newest = newest.as_ref() == Some(&backup.id);
        // That nobody has played was said of the newest copy, and not of those before it.
        if (order.unless_played || !is_newest) && played_since(volume, worlds, backup.started_at) {
            warn!("somebody may have played since the copy {}, so the worlds are not put back from it", backup.id);
            continue;
        }
        info!("putting the worlds back as they are in the copy {}; those that are here are set aside", backup.id);
        let wish = RestoreTarget { part: RestorePart::Worlds, request: None };
        match restore(&shelf, backup, volume, worlds, wish, &mut Disk::new(RealFs), clock::now()) {
            Ok(done) => return Ok(Some(done)),
            Err(error) if leads_to_the_next(&error, is_newest) => {
                warn!("{}", Chain(&error));
                first_error.get_or_insert(error);
            }
            Err(error) => return Err(error.into()),
        }
    }
    first_error.map_or(Ok(None), |error| Err(error.into()))
}

/// Whether the next copy is tried after one that was not put back. For want of room none is that is older than what is meant; what is tried
/// after an older one is the newest itself, which the disk did not give the last time.
fn leads_to_the_next(error: &restore::Error, is_newest: bool) -> bool {
    match error {
        restore::Error::Unread { .. } => true,
        restore::Error::Full { .. } => !is_newest,
        restore::Error::Disk(_)
        | restore::Error::Damaged { .. }
        | restore::Error::Space(_)
        | restore::Error::Record(_)
        | restore::Error::InTheWay { .. }
        | restore::Error::Journal { .. } => false,
    }
}

/// Whether `set` can open the worlds of a copy.
pub(super) fn opens(backup: &Backup, set: &FileSet) -> bool {
    set.opens(backup.data_version, backup.lock.as_deref())
}

/// Ends a restore that was begun by an init container before this one.
pub(super) fn finish_restore(volume: &Volume) -> Result<Option<Restored>, RestoreError> {
    Ok(finish(volume, &mut Disk::new(RealFs))?)
}

/// Remembers that somebody plays: neither worlds nor plugins' data are put back over that.
pub(super) fn note_players(volume: &Volume) -> Result<(), fs_ops::Error> {
    Disk::new(RealFs).write_record(&volume.played_path(), &PlayedMarker { at: clock::now() })
}

/// Whether somebody may have played since `copied_at`, when a copy was begun: by what an agent noted, and by the files that Minecraft writes about each player.
/// What cannot be read counts as yes, and so does whatever has been since a copy that is dated later than now: that clock was ahead, and all that
/// was played since seems to be older.
pub(super) fn played_since(volume: &Volume, worlds: &Worlds, copied_at: Timestamp) -> bool {
    if copied_at > clock::now() {
        return true;
    }
    match read_record::<PlayedMarker>(&volume.played_path()) {
        Ok(Some(played)) if played.at > copied_at => return true,
        Err(_) => return true,
        Ok(_) => {}
    }
    let places =
        worlds.folders.iter().flat_map(|folder| ["playerdata", "players"].map(|place| folder.path.join(place)));
    let files = places.filter(|place| place.exists()).flat_map(WalkDir::new);
    let changed_later = |entry: Result<walkdir::DirEntry, walkdir::Error>| {
        let Ok(entry) = entry else { return true };
        if !entry.file_type().is_file() {
            return false;
        }
        let modified = entry.metadata().ok().and_then(|metadata| metadata.modified().ok());
        modified.and_then(|modified| Timestamp::try_from(modified).ok()).is_none_or(|at| at > copied_at)
    };
    files.into_iter().any(changed_later)
}

/// The step is over: the server starts, and the next step is another one.
pub(super) fn step_is_over(volume: &Volume) -> Result<(), fs_ops::Error> {
    Disk::new(RealFs).remove(&volume.copied_path())
}

/// Leaves word of a copy that was not taken, for the operator to read when the set before runs again.
pub(super) fn note_failure(volume: &Volume, set: &FileSet, why: String) {
    let record = BackupFailed { at: clock::now(), before: set.lock.clone(), why };
    if let Err(error) = Disk::new(RealFs).write_record(&volume.copy_failed_path(), &record) {
        warn!("{}", Chain(&error));
    }
}

/// What lies there. `backups` is the server's own directory; `lock` and `worlds` are what lies on its volume.
pub(super) fn look(backups: &Path, volume: &Volume, lock: Option<&str>, worlds: &Worlds) -> BackupsSeen {
    let failed = read_record(&volume.copy_failed_path()).unwrap_or(None);
    let restored = read_record(&volume.restored_path()).unwrap_or(None);
    let restore_refused = read_record(&volume.restore_refused_path()).unwrap_or(None);
    let listed = match BackupRepository::new(backups).list() {
        Ok(listed) => listed,
        Err(error) => {
            let problem = Some(Chain(&error).to_string());
            // Since when somebody would have played nobody knows.
            let played_since = true;
            // What came of an order stands on the server's own volume.
            return BackupsSeen { failed, played_since, restored, restore_refused, problem, ..BackupsSeen::default() };
        }
    };
    let count = |good: bool| listed.iter().filter(|copy| copy.state.is_ok() == good).count();
    let good = || listed.iter().filter_map(|copy| copy.state.as_ref().ok());
    let newest = |wanted: fn(&Backup) -> bool| good().rev().find(|backup| wanted(backup)).map(seen);
    let is_from_before_damage = |backup: &Backup| backup.contents.has_worlds() && !backup.after_damage;
    // Where a clock was ahead once, the newest by name may be of another step.
    let from_what_lies_here = lock.and_then(|lock| way_back_from(lock, good())).map(seen);
    let (last, last_of_worlds) = (newest(|_| true), from_what_lies_here.or_else(|| newest(Backup::is_way_back)));
    // Only where there is something to unpack.
    let free = last_of_worlds.as_ref().and_then(|_| restore::free_for(volume).ok());
    let was_played = |copy: &BackupSeen| played_since(volume, worlds, copy.started_at);
    let since_last = last.as_ref().map(was_played);
    // Who has played since the newest has played since those before it: the files of all players are looked through once, if that will do. A date
    // that is still to come tells nothing of others.
    let is_dated = last.as_ref().is_some_and(|last| last.started_at <= clock::now());
    let since = |copy: &BackupSeen| match &last {
        Some(last) if last.id == copy.id => since_last == Some(true),
        _ => is_dated && since_last == Some(true) || was_played(copy),
    };
    BackupsSeen {
        unplayed_since_last: since_last == Some(false),
        played_since: last_of_worlds.as_ref().is_some_and(since),
        last,
        last_of_worlds,
        last_before_damage: newest(is_from_before_damage),
        // Of the agent that is asked, not of the shelf.
        hot: None,
        sizes: None,
        free,
        restored,
        restore_refused,
        listed: Some(requested_restore::listed(&listed)),
        puts_back_everything: true,
        good: u32::try_from(count(true)).unwrap_or(u32::MAX),
        damaged: u32::try_from(count(false)).unwrap_or(u32::MAX),
        failed,
        problem: None,
    }
}

fn seen(backup: &Backup) -> BackupSeen {
    BackupSeen {
        id: backup.id.clone(),
        started_at: backup.started_at,
        completed_at: backup.completed_at,
        trigger: backup.trigger,
        contents: backup.contents,
        lock: backup.lock.clone(),
        before: backup.before.clone(),
        data_version: backup.data_version,
        bytes: backup.seal.bytes,
        archive_bytes: backup.seal.archive_bytes,
        after_damage: backup.after_damage,
    }
}

fn is_good(shelf: &BackupRepository, id: &str) -> bool {
    shelf.list().is_ok_and(|listed| listed.iter().any(|copy| copy.id == id && copy.state.is_ok()))
}

/// A copy was taken.
pub(super) fn say(backup: &Backup) {
    let took = backup.completed_at.duration_since(backup.started_at);
    info!(
        "the copy {} holds {} files ({} bytes, {} in the archive) and was read back; it took {} s",
        backup.id,
        backup.seal.files,
        backup.seal.bytes,
        backup.seal.archive_bytes,
        took.as_secs()
    );
}

#[cfg(test)]
pub(in crate::agent) mod tests;
