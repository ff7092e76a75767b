//! Edge (writes). Restores a backup to a volume without a world before a server starts on it, once, and never over an existing world.
//!
//! If that fails, the server does not start. It would create a new world in place of the missing one. After a day of play, switching to the other
//! world would lose progress.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use tracing::{info, warn};

use super::pre_update_backup::opens;
use super::{Chain, clock, config};
use crate::backup::Backup;
use crate::backup::repository::{self, BackupRepository, IgnoredBackup, StoredBackup};
use crate::backup::restore::{self, RestorePart, RestoreTarget, restore};
use crate::protocol::restore::{LATEST, NEW_VOLUME, NEW_VOLUME_ORDER, NewVolume, NewVolumeOrder};
use crate::protocol::{FileSet, Restored};
use crate::staging::fs_ops::{self, Disk, RealFs};
use crate::staging::{RecordError, Volume, read_record};
use crate::world::Worlds;

/// How many names are listed for a user who named one that does not exist.
const NAMED: usize = 5;

/// The volume has no world, and none was restored.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// No file was changed.
    #[error(transparent)]
    NotRestored(#[from] NotRestored),
    /// The restore has begun, and continues at the next attempt.
    #[error("the copy is not all in its place yet")]
    Unfinished(#[source] restore::Error),
}

/// Why a backup was not restored to a volume without a world. Each message ends with the way to fix it.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotRestored {
    #[error(
        "the claim `{claim}` with the copies of `{server}` is mounted at the first start of a server alone, and this one has run before: \
         delete the PaperMCServer and make it anew"
    )]
    NotMounted { server: String, claim: String },
    #[error("there are no copies of a server `{server}` on the claim `{claim}`; there are those of: {others}")]
    NoCopies { server: String, claim: String, others: String },
    #[error(
        "there is no copy `{copy}` of `{server}` on the claim `{claim}`; the newest ones with worlds are: {newest}"
    )]
    NoSuchCopy { server: String, claim: String, copy: String, newest: String },
    #[error("the copy `{id}` cannot be used: {why}. The newest good ones with worlds are: {newest}")]
    NotGood { id: String, why: String, newest: String },
    #[error("the copy `{id}` holds no worlds; the newest ones that do are: {newest}")]
    NoWorlds { id: String, newest: String },
    #[error(
        "Minecraft {ours} is to start, and the worlds of the copy `{id}` are of Minecraft {theirs}: a world cannot go back. \
         Choose {theirs} or newer (`spec.updateStrategy: pin`, `spec.version`), or an older copy"
    )]
    Newer { id: String, theirs: String, ours: String },
    #[error(transparent)]
    Shelf(#[from] repository::Error),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("the copy was not put on the volume")]
    Restore(#[from] restore::Error),
}

/// Restores a backup if the volume has no world, a request exists, and this volume has not executed the same request before. The caller holds the
/// locks on `worlds`.
pub(super) fn fill_if_new(
    settings: &config::BackupConfig,
    volume: &Volume,
    worlds: &Worlds,
    set: &FileSet,
) -> Result<Option<Restored>, Error> {
    let Some(orders) = &settings.restore_order else { return Ok(None) };
    let order = read_record::<NewVolumeOrder>(&orders.with_file_name(NEW_VOLUME_ORDER));
    if !worlds.folders.is_empty() {
        // A faulty request does not prevent the start of a server that has its world.
        match order {
            Ok(Some(order)) => note(volume, order),
            Ok(None) => {}
            Err(error) => warn!("the order for a new volume is left alone: {}", Chain(&error)),
        }
        return Ok(None);
    }
    let Some(order) = order.map_err(NotRestored::from)? else { return Ok(None) };
    let known = read_record::<NewVolume>(&volume.new_volume_path()).map_err(NotRestored::from)?;
    if known.is_some_and(|known| known.order == order) {
        // The world was removed on purpose after the request, so the user wants a new one.
        return Ok(None);
    }
    let mut disk = Disk::new(RealFs);
    let done = match fill(&order, settings, volume, worlds, set, &mut disk) {
        Ok(done) => done,
        Err(NotRestored::Restore(error)) if fs_ops::is_there(&volume.restore_journal_path()) => {
            return Err(Error::Unfinished(error));
        }
        Err(error) => {
            // The partial files take space that the next attempt needs.
            if let Err(error) = disk.remove_all(&volume.restoring_dir()) {
                warn!("{}", Chain(&error));
            }
            return Err(error.into());
        }
    };
    note(volume, order);
    Ok(Some(done))
}

/// Whether the content of the volume came from a backup when it had no world.
pub(super) fn is_filled(volume: &Volume) -> Result<bool, RecordError> {
    Ok(filled(volume)?.is_some())
}

fn filled(volume: &Volume) -> Result<Option<Restored>, RecordError> {
    let restored = read_record::<Restored>(&volume.restored_path())?;
    Ok(restored.filter(|restored| restored.request.as_deref() == Some(NEW_VOLUME)))
}

fn fill(
    order: &NewVolumeOrder,
    settings: &config::BackupConfig,
    volume: &Volume,
    worlds: &Worlds,
    set: &FileSet,
    disk: &mut Disk<RealFs>,
) -> Result<Restored, NotRestored> {
    let shelves = shelves(order, settings)?;
    let shelf = BackupRepository::new(shelves.join(&order.server));
    let listed = shelf.list()?;
    if listed.is_empty() {
        let (server, claim) = (order.server.clone(), order.claim.clone());
        return Err(NotRestored::NoCopies { server, claim, others: others(&shelves)? });
    }
    let backup = choose(order, &listed, set)?;
    let part = if backup.contents.has_server_files() { RestorePart::Everything } else { RestorePart::Worlds };
    info!("the volume has no world: putting {part:?} of the copy {} of {} on it", backup.id, order.server);
    Ok(restore(&shelf, &backup, volume, worlds, RestoreTarget { part, request: Some(NEW_VOLUME) }, disk, clock::now())?)
}

/// The directory with the repositories that the request means.
fn shelves(order: &NewVolumeOrder, settings: &config::BackupConfig) -> Result<PathBuf, NotRestored> {
    let mounted = if order.apart {
        settings.restore_shelves.clone()
    } else {
        settings.backups.as_deref().and_then(Path::parent).map(Path::to_owned)
    };
    mounted.ok_or_else(|| NotRestored::NotMounted { server: order.server.clone(), claim: order.claim.clone() })
}

/// The servers that have backups there.
fn others(shelves: &Path) -> Result<String, NotRestored> {
    let listed = BackupRepository::new(shelves).list()?;
    Ok(names(listed.iter().map(|directory| directory.id.as_str())))
}

/// The requested backup, if `set` can open its worlds.
fn choose(order: &NewVolumeOrder, listed: &[StoredBackup], set: &FileSet) -> Result<Backup, NotRestored> {
    let has_worlds = |backup: &Backup| backup.contents.has_worlds() && !backup.folders.is_empty();
    let newest = || {
        let good = listed.iter().rev().filter_map(|copy| copy.state.as_ref().ok());
        names(good.filter(|backup| has_worlds(backup)).map(|backup| backup.id.as_str()))
    };
    let found = match order.copy.as_str() {
        // An unusable backup is not skipped silently, because the next older one may be weeks older.
        LATEST => listed.iter().rev().find(|copy| copy.record().is_none_or(has_worlds)),
        id => listed.iter().find(|copy| copy.id == id),
    };
    let Some(found) = found else {
        let NewVolumeOrder { server, copy, claim, apart: _ } = order.clone();
        return Err(NotRestored::NoSuchCopy { server, claim, copy, newest: newest() });
    };
    let id = || found.id.clone();
    let backup = match &found.state {
        Ok(backup) => backup,
        // It is tried again, whether it was named or is the latest. It may not be lost, and no running server waits for it.
        Err(IgnoredBackup { why: _, unread: Some(backup) }) => backup,
        Err(IgnoredBackup { why, unread: None }) => {
            return Err(NotRestored::NotGood { id: id(), why: why.clone(), newest: newest() });
        }
    };
    if !has_worlds(backup) {
        return Err(NotRestored::NoWorlds { id: id(), newest: newest() });
    }
    if !opens(backup, set) {
        let theirs = backup.minecraft.clone().unwrap_or_else(|| "a version that nobody knows".to_owned());
        return Err(NotRestored::Newer { id: id(), theirs, ours: set.minecraft.clone() });
    }
    Ok(backup.clone())
}

fn names<'a>(of: impl Iterator<Item = &'a str>) -> String {
    let names = of.take(NAMED).collect::<Vec<_>>().join(", ");
    if names.is_empty() { "none".to_owned() } else { names }
}

/// Records the result of a request. If the write fails, it is repeated at the next start.
fn note(volume: &Volume, order: NewVolumeOrder) {
    let known = read_record(&volume.new_volume_path());
    let news = known.and_then(|known| Ok(came_of(order, known.as_ref(), filled(volume)?, clock::now())));
    match news {
        Ok(Some(news)) => {
            if news.copy.is_none() {
                info!("nothing is put on this volume from a copy, because it has a world");
            }
            if let Err(error) = Disk::new(RealFs).write_record(&volume.new_volume_path(), &news) {
                warn!("{}", Chain(&error));
            }
        }
        Ok(None) => {}
        Err(error) => warn!("{}", Chain(&error)),
    }
}

/// The result of a request on a volume that has a world, if it is new. `filled` is what was restored when the volume had none.
fn came_of(
    order: NewVolumeOrder,
    known: Option<&NewVolume>,
    filled: Option<Restored>,
    now: Timestamp,
) -> Option<NewVolume> {
    if known.is_some_and(|known| known.order == order) {
        return None;
    }
    // The worlds are restored before this record is written, perhaps by an earlier init container.
    let news = filled.filter(|filled| known.is_none_or(|known| known.at < filled.at));
    Some(match news {
        Some(Restored { at, id, .. }) => NewVolume { order, at, copy: Some(id) },
        None => NewVolume { order, at: now, copy: None },
    })
}

#[cfg(test)]
mod tests;
