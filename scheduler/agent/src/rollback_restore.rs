//! Edge (writes). Restores the worlds before a rollback, when the operator requests it, and finishes an interrupted restore.

use tracing::{info, warn};

use super::play_record::may_have_played_since;
use super::signed_requests::SignedRequests;
use super::{ErrorChain, clock, config};
use crate::backup::Backup;
use crate::backup::repository::{self, BackupRepository, StoredBackup};
use crate::backup::restore::{self, RestorePart, RestoreTarget, finish, restore};
use crate::staging::fs_ops::{Disk, RealFs};
use crate::staging::{RecordError, Volume};
use crate::world::Worlds;
use agent_api::signed::Document;
use agent_api::{FileSet, RestoreRequest, Restored};

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

/// Restores the worlds if that is requested for `set`, from the newest backup that was taken before the failed lock and that `set` can open. That
/// backup may belong to another lock, which was started in between. If the disk cannot read it, the next older backup is tried: a bad sector does
/// not recover, and the server is down meanwhile. `None`: no restore is requested, or no such backup exists.
pub(super) fn restore_if_requested(
    settings: &config::BackupConfig,
    volume: &Volume,
    worlds: &Worlds,
    set: &FileSet,
) -> Result<Option<Restored>, RestoreError> {
    let (Some(backups), Some(requests)) = (&settings.backups, SignedRequests::from_config(settings)) else {
        return Ok(None);
    };
    let Some(restore_request) = requests
        .read::<RestoreRequest>(Document::Rollback)?
        .filter(|restore_request| restore_request.worlds && restore_request.to == set.lock)
    else {
        return Ok(None);
    };
    let repository = BackupRepository::new(backups);
    let is_meant = |backup: &Backup| {
        backup.contents.has_worlds()
            && backup.before.as_ref() == Some(&restore_request.failed)
            && set.can_open(backup.data_version, backup.lock.as_deref())
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

/// Finishes a restore that an earlier init container began.
pub(super) fn finish_restore(volume: &Volume) -> Result<Option<Restored>, RestoreError> {
    Ok(finish(volume, &mut Disk::new(RealFs))?)
}
