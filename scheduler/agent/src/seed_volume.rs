//! Edge (writes). Restores a backup to a volume without a world before a server starts on it, once, and never over an existing world.
//!
//! If that fails, the server does not start. It would create a new world in place of the missing one. After a day of play, switching to the other
//! world would lose progress.

use std::path::PathBuf;

use jiff::Timestamp;
use tracing::{info, warn};

use super::signed_requests::SignedRequests;
use super::{ErrorChain, clock, config};
use crate::backup::Backup;
use crate::backup::repository::{self, BackupRepository, IgnoredBackup, StoredBackup};
use crate::backup::restore::{self, RestorePart, RestoreTarget, restore};
use crate::staging::fs_ops::{self, Disk, RealFs};
use crate::staging::{RecordError, Volume, read_record};
use crate::world::Worlds;
use agent_api::restore::{LATEST, NEW_VOLUME_REQUEST, SeedRequest, SeedResult};
use agent_api::signed::Document;
use agent_api::{FileSet, Restored};

/// How many names are listed for a user who named one that does not exist.
const MAX_NAMED: usize = 5;

/// The volume has no world, and none was restored.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// No file was changed.
    #[error(transparent)]
    NotRestored(#[from] NotRestored),
    /// The restore has begun, and continues at the next attempt.
    #[error("the backup is not restored completely yet")]
    Unfinished(#[source] restore::Error),
}

/// Why a backup was not restored to a volume without a world. Each message ends with the way to fix it.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotRestored {
    #[error(
        "the claim `{claim}` with the backups of `{server}` is mounted at the first start of a server only, and this \
        server has run before: delete the PaperMCServer and create it again"
    )]
    NotMounted { server: String, claim: String },
    #[error("there are no backups of a server `{server}` on the claim `{claim}`")]
    NoBackups { server: String, claim: String },
    #[error(
        "there is no backup `{backup}` of `{server}` on the claim `{claim}`. The newest backups with worlds: {newest}"
    )]
    NoSuchBackup { server: String, claim: String, backup: String, newest: String },
    #[error("the backup `{id}` cannot be used: {why}. The newest good backups with worlds: {newest}")]
    Unusable { id: String, why: String, newest: String },
    #[error("the backup `{id}` has no worlds. The newest backups with worlds: {newest}")]
    NoWorlds { id: String, newest: String },
    #[error(
        "Minecraft {server_version} would start, but the worlds of the backup `{id}` are of Minecraft {backup_version}: a world \
        cannot be downgraded. Choose {backup_version} or newer (`spec.updateStrategy: pin`, `spec.version`), or an older backup"
    )]
    Newer { id: String, backup_version: String, server_version: String },
    #[error(transparent)]
    Repository(#[from] repository::Error),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("could not restore the backup to the volume")]
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
    let Some(requests) = SignedRequests::from_config(settings) else { return Ok(None) };
    // A new world would replace the missing one, so an unsigned request is not ignored on a volume without a world.
    let request = requests.read_strictly::<SeedRequest>(Document::NewVolume);
    if !worlds.folders.is_empty() {
        // A faulty request does not prevent the start of a server that has its world.
        match request {
            Ok(Some(request)) => record_result(volume, request),
            Ok(None) => {}
            Err(error) => warn!("ignored the restore request for a new volume: {}", ErrorChain(&error)),
        }
        return Ok(None);
    }
    let Some(request) = request.map_err(NotRestored::from)? else { return Ok(None) };
    let previous = read_record::<SeedResult>(&volume.new_volume_path()).map_err(NotRestored::from)?;
    if previous.is_some_and(|previous| previous.order == request) {
        // The world was removed on purpose after the request, so the user wants a new one.
        return Ok(None);
    }
    let mut disk = Disk::new(RealFs);
    let done = match fill(&request, settings, volume, worlds, set, &mut disk) {
        Ok(done) => done,
        Err(NotRestored::Restore(error)) if fs_ops::exists(&volume.restore_journal_path()) => {
            return Err(Error::Unfinished(error));
        }
        Err(error) => {
            // The partial files take space that the next attempt needs.
            if let Err(error) = disk.remove_all(&volume.restoring_dir()) {
                warn!("{}", ErrorChain(&error));
            }
            return Err(error.into());
        }
    };
    record_result(volume, request);
    Ok(Some(done))
}

/// Whether the content of the volume came from a backup when it had no world.
pub(super) fn is_filled(volume: &Volume) -> Result<bool, RecordError> {
    Ok(seed_restore(volume)?.is_some())
}

fn seed_restore(volume: &Volume) -> Result<Option<Restored>, RecordError> {
    let restored = read_record::<Restored>(&volume.restored_path())?;
    Ok(restored.filter(|restored| restored.request.as_deref() == Some(NEW_VOLUME_REQUEST)))
}

fn fill(
    request: &SeedRequest,
    settings: &config::BackupConfig,
    volume: &Volume,
    worlds: &Worlds,
    set: &FileSet,
    disk: &mut Disk<RealFs>,
) -> Result<Restored, NotRestored> {
    let repository = BackupRepository::new(repository_of(request, settings)?);
    let listed = repository.list()?;
    if listed.is_empty() {
        let (server, claim) = (request.server.clone(), request.claim.clone());
        return Err(NotRestored::NoBackups { server, claim });
    }
    let backup = select(request, &listed, set)?;
    let part = if backup.contents.has_server_files() { RestorePart::Everything } else { RestorePart::Worlds };
    info!("the volume has no world: restoring {part:?} of the backup {} of {}", backup.id, request.server);
    Ok(restore(
        &repository,
        &backup,
        volume,
        worlds,
        RestoreTarget { part, request: Some(NEW_VOLUME_REQUEST) },
        disk,
        clock::now(),
    )?)
}

/// The repository that the request means: the server's own, or another one that is mounted only for the first start.
fn repository_of(request: &SeedRequest, settings: &config::BackupConfig) -> Result<PathBuf, NotRestored> {
    let own = settings.backups.as_ref().filter(|own| !request.apart && own.ends_with(&request.server));
    let other = || Some(settings.restore_repositories.as_ref()?.join(&request.server));
    own.cloned()
        .or_else(other)
        .ok_or_else(|| NotRestored::NotMounted { server: request.server.clone(), claim: request.claim.clone() })
}

/// The requested backup, if `set` can open its worlds.
fn select(request: &SeedRequest, listed: &[StoredBackup], set: &FileSet) -> Result<Backup, NotRestored> {
    let has_worlds = |backup: &Backup| backup.contents.has_worlds() && !backup.folders.is_empty();
    let newest = || {
        let good = listed.iter().rev().filter_map(|stored| stored.state.as_ref().ok());
        join_names(good.filter(|backup| has_worlds(backup)).map(|backup| backup.id.as_str()))
    };
    let found = match request.backup.as_str() {
        // An unusable backup is not skipped silently, because the next older one may be weeks older.
        LATEST => listed.iter().rev().find(|stored| stored.record().is_none_or(has_worlds)),
        id => listed.iter().find(|stored| stored.id == id),
    };
    let Some(found) = found else {
        let SeedRequest { server, backup, claim, apart: _ } = request.clone();
        return Err(NotRestored::NoSuchBackup { server, claim, backup, newest: newest() });
    };
    let id = || found.id.clone();
    let backup = match &found.state {
        Ok(backup) => backup,
        // An unreadable backup is tried again, whether it was named or is the latest. It may still be good, and no running server waits.
        Err(IgnoredBackup { why: _, unread: Some(backup) }) => backup,
        Err(IgnoredBackup { why, unread: None }) => {
            return Err(NotRestored::Unusable { id: id(), why: why.clone(), newest: newest() });
        }
    };
    if !has_worlds(backup) {
        return Err(NotRestored::NoWorlds { id: id(), newest: newest() });
    }
    if !set.can_open(backup.data_version, backup.lock.as_deref()) {
        let backup_version = backup.minecraft.clone().unwrap_or_else(|| "an unknown version".to_owned());
        return Err(NotRestored::Newer { id: id(), backup_version, server_version: set.minecraft.clone() });
    }
    Ok(backup.clone())
}

fn join_names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names = names.take(MAX_NAMED).collect::<Vec<_>>().join(", ");
    if names.is_empty() { "none".to_owned() } else { names }
}

/// Records the result of a request. If the write fails, it is repeated at the next start.
fn record_result(volume: &Volume, request: SeedRequest) {
    let previous = read_record(&volume.new_volume_path());
    let result =
        previous.and_then(|previous| Ok(new_result(request, previous.as_ref(), seed_restore(volume)?, clock::now())));
    match result {
        Ok(Some(result)) => {
            if result.backup.is_none() {
                info!("no backup is restored to this volume, because it has a world");
            }
            if let Err(error) = Disk::new(RealFs).write_record(&volume.new_volume_path(), &result) {
                warn!("{}", ErrorChain(&error));
            }
        }
        Ok(None) => {}
        Err(error) => warn!("{}", ErrorChain(&error)),
    }
}

/// The result of a request on a volume that has a world, if it is new. `filled` is the restore from the time when the volume had none.
fn new_result(
    request: SeedRequest,
    previous: Option<&SeedResult>,
    filled: Option<Restored>,
    now: Timestamp,
) -> Option<SeedResult> {
    if previous.is_some_and(|previous| previous.order == request) {
        return None;
    }
    // The worlds are restored before this record is written, perhaps by an earlier init container.
    let result = filled.filter(|filled| previous.is_none_or(|previous| previous.at < filled.at));
    Some(match result {
        Some(Restored { at, id, .. }) => SeedResult { order: request, at, backup: Some(id) },
        None => SeedResult { order: request, at: now, backup: None },
    })
}

#[cfg(test)]
mod tests;
