//! Edge (writes). Takes the backup of `agent init` between the stop of one version set and the start of another, and reports the existing
//! backups.

use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tracing::{info, warn};
use walkdir::WalkDir;

use super::prune::RetentionInput;
use super::{ErrorChain, clock, config, damage_scan, requested_restore, seed_volume};
use crate::backup::create::{self, BackupSpec, create_backup};
use crate::backup::due::due;
use crate::backup::repository::{self, BackupRepository, StoredBackup, rollback_backup};
use crate::backup::restore::{self, RestorePart, RestoreTarget, finish, restore};
use crate::backup::{Backup, LiveReads, Trigger};
use crate::protocol::{BackupFailed, BackupReport, BackupsReport, FileSet, RestoreRequest, Restored};
use crate::staging::fs_ops::{self, Disk, RealFs};
use crate::staging::{RecordError, Volume, read_record};
use crate::world::Worlds;
use crate::world::damage::DamageLog;

/// No backup was taken, although the update needs one.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// Taking the backup failed.
    #[error("could not take the backup that is due before this update")]
    Create(#[from] create::Error),
    /// A world whose move did not finish is not worth a backup.
    #[error(
        "a world exists in the old and in the new layout, because a move of the worlds is incomplete: a backup of it \
        could not be restored. Restore the world first, or set `spec.backup.beforeUpdate: Never`"
    )]
    HalfMoved,
    /// A record on the volume cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A record on the volume cannot be written.
    #[error(transparent)]
    Disk(#[from] fs_ops::Error),
}

impl Error {
    /// Whether retrying does not help.
    pub(super) fn is_final(&self) -> bool {
        match self {
            Self::Create(create::Error::Full { .. }) | Self::HalfMoved => true,
            Self::Create(
                create::Error::Empty
                | create::Error::Space(_)
                | create::Error::Contents(_)
                | create::Error::Repository(_)
                | create::Error::Disk(_)
                | create::Error::Write(_)
                | create::Error::Unverified(_),
            )
            | Self::Record(_)
            | Self::Disk(_) => false,
        }
    }
}

/// The worlds were not restored, or only in part. The server does not start.
#[derive(Debug, thiserror::Error)]
pub(super) enum RestoreError {
    /// The request or the journal cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The backups cannot be listed.
    #[error(transparent)]
    Repository(#[from] repository::Error),
    /// The backup or the disk failed.
    #[error("could not restore the worlds")]
    Restore(#[from] restore::Error),
}

/// `played.json`: a player was seen on the server. The instant is the first since its pod started.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlayedMarker {
    at: Timestamp,
}

/// `copied.json`: the backup for this update exists. It is removed after the update, so that a later update between the same two locks gets a new
/// backup.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BackupMarker {
    from: Option<String>,
    to: String,
    id: String,
}

/// Takes the backup that is due before `set` starts, unless this update already has one. The caller holds the locks on the worlds.
pub(super) fn back_up_if_due(
    settings: &config::BackupConfig,
    volume: &Volume,
    worlds: &Worlds,
    set: &FileSet,
) -> Result<(), Error> {
    let Some(backups) = &settings.backups else { return Ok(()) };
    let manifest = volume.manifest()?;
    if manifest.is_none() && seed_volume::is_filled(volume)? {
        info!("no server has run on this volume since it was filled from a backup: that backup is used");
        return Ok(());
    }
    let Some(contents) = due(settings.backup_before, manifest.as_ref(), set, worlds) else { return Ok(()) };
    let from = manifest.map(|manifest| manifest.lock);
    let repository = BackupRepository::new(backups);
    if let Some(marker) = read_record::<BackupMarker>(&volume.backup_taken_path())?
        && (&marker.from, &marker.to) == (&from, &set.lock)
        && is_good(&repository, &marker.id)
    {
        info!("the backup {} was already taken for this step", marker.id);
        return Ok(());
    }
    if contents.has_worlds() && !worlds.is_whole() {
        return Err(Error::HalfMoved);
    }
    let retention = RetentionInput::from_init_config(settings, volume);
    let mut disk = Disk::new(RealFs);
    // Otherwise a volume that is full of expired backups would never have space for another one.
    retention.prune(&repository, None, &mut disk);
    info!("taking a backup of the {contents:?} before this update; it is read back before any change");
    let spec = BackupSpec {
        data: volume.root(),
        worlds,
        reading: LiveReads::Offline,
        contents,
        trigger: Trigger::BeforeUpdate,
        lock: from.as_deref(),
        before: Some(&set.lock),
        request: None,
        after_damage: damage_scan::may_be_damaged(&mut DamageLog::new(volume.clone())),
    };
    let backup = create_backup(&spec, &repository, &mut disk, clock::now)?;
    disk.write_record(
        &volume.backup_taken_path(),
        &BackupMarker { from, to: set.lock.clone(), id: backup.id.clone() },
    )?;
    disk.remove(&volume.backup_failed_path())?;
    log_backup(&backup);
    for name in &backup.left_out {
        warn!("the backup lacks {name}: neither a file nor a directory");
    }
    retention.prune(&repository, Some(&backup.id), &mut disk);
    Ok(())
}

/// Restores the worlds if that is requested for `set`, from the newest backup that was taken before the failed lock and that `set` can open. That
/// backup may belong to another lock, which was started in between. If the disk cannot read it, the next older backup is tried: a bad sector does
/// not recover, and the server is down meanwhile. `None`: no restore is requested, or no such backup exists.
pub(super) fn restore_if_requested(
    settings: &config::BackupConfig,
    volume: &Volume,
    worlds: &Worlds,
    set: &FileSet,
) -> Result<Option<Restored>, RestoreError> {
    let (Some(backups), Some(restore_request)) = (&settings.backups, &settings.restore_order) else { return Ok(None) };
    let Some(restore_request) = read_record::<RestoreRequest>(restore_request)?
        .filter(|restore_request| restore_request.worlds && restore_request.to == set.lock)
    else {
        return Ok(None);
    };
    let repository = BackupRepository::new(backups);
    let is_meant = |backup: &Backup| {
        backup.contents.has_worlds() && backup.before.as_ref() == Some(&restore_request.failed) && can_open(backup, set)
    };
    let mut listed = repository.list()?;
    listed.reverse();
    // A damaged backup may be the intended one: it may have been the newest when the request was written.
    let newest = listed.iter().find(|stored| stored.record().is_none_or(is_meant)).map(|stored| stored.id.clone());
    let mut meant: Vec<StoredBackup> =
        listed.into_iter().filter(|stored| stored.record().is_some_and(is_meant)).collect();
    if meant.is_empty() {
        warn!("the worlds have to be restored, but there is no good backup from before the failed version set");
    }
    // Backups that the disk could not read last time are tried last.
    meant.sort_by_key(|stored| stored.state.is_err());
    let mut first_error = None;
    for backup in meant.iter().filter_map(StoredBackup::record) {
        let is_newest = newest.as_ref() == Some(&backup.id);
        // The operator checked for play since the newest backup only, not since older ones.
        if (restore_request.unless_played || !is_newest) && may_have_played_since(volume, worlds, backup.started_at) {
            warn!("players may have joined since the backup {}, so the worlds are not restored from it", backup.id);
            continue;
        }
        info!("restoring the worlds from the backup {}; the current ones are moved away", backup.id);
        let target = RestoreTarget { part: RestorePart::Worlds, request: None };
        match restore(&repository, backup, volume, worlds, target, &mut Disk::new(RealFs), clock::now()) {
            Ok(done) => return Ok(Some(done)),
            Err(error) if can_try_next(&error, is_newest) => {
                warn!("{}", ErrorChain(&error));
                first_error.get_or_insert(error);
            }
            Err(error) => return Err(error.into()),
        }
    }
    first_error.map_or(Ok(None), |error| Err(error.into()))
}

/// Whether the next backup is tried after one that could not be restored. After a lack of space, no older backup than the intended one is tried.
/// A backup that is tried after an older one is the newest itself, which the disk could not read last time.
fn can_try_next(error: &restore::Error, is_newest: bool) -> bool {
    match error {
        restore::Error::Unread { .. } => true,
        restore::Error::Full { .. } => !is_newest,
        restore::Error::Disk(_)
        | restore::Error::Damaged { .. }
        | restore::Error::Space(_)
        | restore::Error::Record(_)
        | restore::Error::Occupied { .. }
        | restore::Error::Journal { .. } => false,
    }
}

/// Whether `set` can open the worlds of a backup.
pub(super) fn can_open(backup: &Backup, set: &FileSet) -> bool {
    set.can_open(backup.data_version, backup.lock.as_deref())
}

/// Finishes a restore that an earlier init container began.
pub(super) fn finish_restore(volume: &Volume) -> Result<Option<Restored>, RestoreError> {
    Ok(finish(volume, &mut Disk::new(RealFs))?)
}

/// Records that the server has players, so that neither worlds nor plugins' data are restored over their progress.
pub(super) fn record_players(volume: &Volume) -> Result<(), fs_ops::Error> {
    Disk::new(RealFs).write_record(&volume.played_path(), &PlayedMarker { at: clock::now() })
}

/// Whether players may have been online since a backup that began at `since`. Evidence is the agent's record and the files that Minecraft writes
/// for each player. Unreadable evidence counts as yes. A backup dated in the future also counts as yes: its clock was ahead, so all later play
/// seems to be older.
pub(super) fn may_have_played_since(volume: &Volume, worlds: &Worlds, since: Timestamp) -> bool {
    if since > clock::now() {
        return true;
    }
    match read_record::<PlayedMarker>(&volume.played_path()) {
        Ok(Some(played)) if played.at > since => return true,
        Err(_) => return true,
        Ok(_) => {}
    }
    let directories =
        worlds.folders.iter().flat_map(|folder| ["playerdata", "players"].map(|directory| folder.path.join(directory)));
    let files = directories.filter(|directory| directory.exists()).flat_map(WalkDir::new);
    let changed_later = |entry: Result<walkdir::DirEntry, walkdir::Error>| {
        let Ok(entry) = entry else { return true };
        if !entry.file_type().is_file() {
            return false;
        }
        let modified = entry.metadata().ok().and_then(|metadata| metadata.modified().ok());
        modified.and_then(|modified| Timestamp::try_from(modified).ok()).is_none_or(|at| at > since)
    };
    files.into_iter().any(changed_later)
}

/// Called when the server starts, because the next update then needs its own backup.
pub(super) fn remove_marker(volume: &Volume) -> Result<(), fs_ops::Error> {
    Disk::new(RealFs).remove(&volume.backup_taken_path())
}

/// Records a failed backup. The operator reads the record when the previous version set runs again.
pub(super) fn record_failure(volume: &Volume, set: &FileSet, why: String) {
    let record = BackupFailed { at: clock::now(), before: set.lock.clone(), why };
    if let Err(error) = Disk::new(RealFs).write_record(&volume.backup_failed_path(), &record) {
        warn!("{}", ErrorChain(&error));
    }
}

/// The report on the existing backups. `backups` is the server's own directory. `lock` and `worlds` describe its volume.
pub(super) fn report(backups: &Path, volume: &Volume, lock: Option<&str>, worlds: &Worlds) -> BackupsReport {
    let failed = read_record(&volume.backup_failed_path()).unwrap_or(None);
    let restored = read_record(&volume.restored_path()).unwrap_or(None);
    let restore_refused = read_record(&volume.restore_refused_path()).unwrap_or(None);
    let listed = match BackupRepository::new(backups).list() {
        Ok(listed) => listed,
        Err(error) => {
            let problem = Some(ErrorChain(&error).to_string());
            // Without a list of backups, it is unknown whether players were online since.
            let played_since = true;
            // The result of a restore request is stored on the server's own volume.
            return BackupsReport {
                failed,
                played_since,
                restored,
                restore_refused,
                problem,
                ..BackupsReport::default()
            };
        }
    };
    let count = |good: bool| listed.iter().filter(|stored| stored.state.is_ok() == good).count();
    let good = || listed.iter().filter_map(|stored| stored.state.as_ref().ok());
    let newest = |wanted: fn(&Backup) -> bool| good().rev().find(|backup| wanted(backup)).map(summarize);
    let is_from_before_damage = |backup: &Backup| backup.contents.has_worlds() && !backup.after_damage;
    // If a clock was ahead once, the newest backup by name may belong to another update.
    let for_current_lock = lock.and_then(|lock| rollback_backup(lock, good())).map(summarize);
    let (last, last_of_worlds) = (newest(|_| true), for_current_lock.or_else(|| newest(Backup::is_rollback_backup)));
    // The free space matters only if a backup can be unpacked.
    let free = last_of_worlds.as_ref().and_then(|_| restore::available_space(volume).ok());
    let was_played = |backup: &BackupReport| may_have_played_since(volume, worlds, backup.started_at);
    let since_last = last.as_ref().map(was_played);
    // Play since the newest backup is also play since older ones, so all player files are read only once if possible. A backup dated in the
    // future gives no information about others.
    let is_dated = last.as_ref().is_some_and(|last| last.started_at <= clock::now());
    let since = |backup: &BackupReport| match &last {
        Some(last) if last.id == backup.id => since_last == Some(true),
        _ => is_dated && since_last == Some(true) || was_played(backup),
    };
    BackupsReport {
        unplayed_since_last: since_last == Some(false),
        played_since: last_of_worlds.as_ref().is_some_and(since),
        last,
        last_of_worlds,
        last_before_damage: newest(is_from_before_damage),
        // These come from the agent, not from the repository.
        hot: None,
        sizes: None,
        free,
        restored,
        restore_refused,
        listed: Some(requested_restore::list_newest(&listed)),
        puts_back_everything: true,
        good: u32::try_from(count(true)).unwrap_or(u32::MAX),
        damaged: u32::try_from(count(false)).unwrap_or(u32::MAX),
        failed,
        problem: None,
    }
}

fn summarize(backup: &Backup) -> BackupReport {
    BackupReport {
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

fn is_good(repository: &BackupRepository, id: &str) -> bool {
    repository.list().is_ok_and(|listed| listed.iter().any(|stored| stored.id == id && stored.state.is_ok()))
}

/// Logs a finished backup.
pub(super) fn log_backup(backup: &Backup) {
    let took = backup.completed_at.duration_since(backup.started_at);
    info!(
        "the backup {} has {} files ({} bytes, {} in the archive) and was read back; it took {} s",
        backup.id,
        backup.seal.files,
        backup.seal.bytes,
        backup.seal.archive_bytes,
        took.as_secs()
    );
}

#[cfg(test)]
pub(in crate::agent) mod tests;
