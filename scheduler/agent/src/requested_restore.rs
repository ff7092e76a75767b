//! Edge (writes). Executes a user's request to restore a backup, once, before the server starts.
//!
//! A request that cannot be executed does not prevent the start. The reason is recorded for the operator, and the server starts on its own
//! worlds. If it cannot open those either, the termination message lists the backups that would work.

use jiff::Timestamp;
use tracing::{info, warn};

use super::rollback_restore::RestoreError;
use super::signed_requests::SignedRequests;
use super::{ErrorChain, clock, config};
use crate::backup::Backup;
use crate::backup::repository::{self, BackupRepository, IgnoredBackup};
use crate::backup::restore::{self, RestorePart, RestoreTarget, restore};
use crate::staging::fs_ops::{self, Disk, RealFs};
use crate::staging::{RecordError, Volume, read_record};
use crate::world::{WorldRefusal, Worlds};
use agent_api::restore::{ListedBackup, MAX_LISTED, RequestedRestore, RestoreRejection};
use agent_api::signed::Document;
use agent_api::termination_message::{MAX_NAMED, WorldRefused};
use agent_api::{FileSet, Restored};

/// Why a request is not executed.
#[derive(Debug, thiserror::Error)]
enum RequestRefused {
    #[error("the request has expired: write it again")]
    TooLate,
    #[error("there is no backup `{0}`")]
    NoSuchBackup(String),
    #[error("the backup `{id}` cannot be used: {why}")]
    Unusable { id: String, why: String },
    #[error("the backup `{0}` has no worlds")]
    NoWorlds(String),
    #[error("the backup `{id}` has no settings and plugins: remove `;contents=Everything` to restore its worlds")]
    NoServerFiles { id: String },
    #[error("the worlds of the backup `{0}` are of a newer Minecraft, and a world cannot be downgraded")]
    Newer(String),
    #[error("the volume has worlds, and the request does not end with `;overwrite`")]
    WouldOverwrite,
    #[error(transparent)]
    Repository(#[from] repository::Error),
    #[error("could not restore the backup")]
    Restore(#[from] restore::Error),
}

/// Restores a backup if a user has requested that with `set` and the request was not executed or refused before. The caller holds the locks on
/// `worlds`.
///
/// # Errors
///
/// The exchange has begun and is not finished. The server must not start before it is.
pub(super) fn restore_if_requested(
    settings: &config::BackupConfig,
    volume: &Volume,
    worlds: &Worlds,
    set: &FileSet,
) -> Result<Option<Restored>, RestoreError> {
    let (Some(backups), Some(requests)) = (&settings.backups, SignedRequests::from_config(settings)) else {
        return Ok(None);
    };
    let restore_request = match request_for_set(&requests, volume, set) {
        Ok(Some(restore_request)) => restore_request,
        Ok(None) => return Ok(None),
        // It is then unknown whether the request was already executed.
        Err(error) => {
            warn!("ignored the restore request: {}", ErrorChain(&error));
            return Ok(None);
        }
    };
    let mut disk = Disk::new(RealFs);
    match execute(&restore_request, &BackupRepository::new(backups), volume, worlds, set, &mut disk) {
        Ok(done) => Ok(Some(done)),
        Err(RequestRefused::Restore(error)) if fs_ops::exists(&volume.restore_journal_path()) => Err(error.into()),
        Err(error) => {
            let why = ErrorChain(&error).to_string();
            warn!("no files are changed: {why}");
            let refused = RestoreRejection { request: restore_request.request, at: clock::now(), why };
            let cleared = disk.remove_all(&volume.restoring_dir());
            let noted = disk.write_record(&volume.restore_refused_path(), &refused);
            for error in [cleared, noted].into_iter().filter_map(Result::err) {
                warn!("{}", ErrorChain(&error));
            }
            Ok(None)
        }
    }
}

/// The mounted request, unless it is for another version set or already has a result.
fn request_for_set(
    requests: &SignedRequests,
    volume: &Volume,
    set: &FileSet,
) -> Result<Option<RequestedRestore>, RecordError> {
    Ok(pending_request(requests, volume)?.filter(|restore_request| restore_request.to == set.lock))
}

/// The mounted request for any version set, unless it already has a result.
fn pending_request(requests: &SignedRequests, volume: &Volume) -> Result<Option<RequestedRestore>, RecordError> {
    let Some(restore_request) = requests.read::<RequestedRestore>(Document::UserRestore)? else { return Ok(None) };
    let restored = read_record::<Restored>(&volume.restored_path())?.and_then(|restored| restored.request);
    let refused = read_record::<RestoreRejection>(&volume.restore_refused_path())?.map(|refused| refused.request);
    let is_over = [restored, refused].into_iter().flatten().any(|request| request == restore_request.request);
    Ok((!is_over).then_some(restore_request))
}

/// The backup that a pending request names.
pub(super) fn pending_backup(
    requests: &SignedRequests,
    volume: &Volume,
    now: Timestamp,
) -> Result<Option<String>, RecordError> {
    let restore_request = pending_request(requests, volume)?;
    Ok(restore_request
        .filter(|restore_request| now < restore_request.not_after)
        .map(|restore_request| restore_request.backup))
}

fn execute(
    restore_request: &RequestedRestore,
    repository: &BackupRepository,
    volume: &Volume,
    worlds: &Worlds,
    set: &FileSet,
    disk: &mut Disk<RealFs>,
) -> Result<Restored, RequestRefused> {
    let now = clock::now();
    if restore_request.not_after <= now {
        return Err(RequestRefused::TooLate);
    }
    if !restore_request.overwrite && !worlds.folders.is_empty() {
        return Err(RequestRefused::WouldOverwrite);
    }
    let id = &restore_request.backup;
    let stored = repository
        .list()?
        .into_iter()
        .find(|stored| stored.id == *id)
        .ok_or(RequestRefused::NoSuchBackup(id.clone()))?;
    // A backup that could not be read last time is tried, because the user named it.
    let backup = stored.state.or_else(|IgnoredBackup { why, unread }| match unread {
        Some(backup) => Ok(*backup),
        None => Err(RequestRefused::Unusable { id: id.clone(), why }),
    })?;
    if !backup.contents.has_worlds() || backup.folders.is_empty() {
        return Err(RequestRefused::NoWorlds(id.clone()));
    }
    if restore_request.everything && !backup.contents.has_server_files() {
        return Err(RequestRefused::NoServerFiles { id: id.clone() });
    }
    if !set.can_open(backup.data_version, backup.lock.as_deref()) {
        return Err(RequestRefused::Newer(id.clone()));
    }
    let part = if restore_request.everything { RestorePart::Everything } else { RestorePart::Worlds };
    info!("restoring {part:?} of the backup {id} as requested; the current files are moved away");
    Ok(restore(
        repository,
        &backup,
        volume,
        worlds,
        RestoreTarget { part, request: Some(&restore_request.request) },
        disk,
        now,
    )?)
}

/// The termination message when `set` must not open the worlds. It also lists the backups that a user can request, and the result of the last
/// request.
pub(super) fn termination_message(
    settings: &config::BackupConfig,
    volume: &Volume,
    worlds: &Worlds,
    set: &FileSet,
    refusal: &WorldRefusal,
) -> WorldRefused {
    let restore_request = SignedRequests::from_config(settings)
        .and_then(|requests| requests.read::<RequestedRestore>(Document::UserRestore).ok().flatten())
        .filter(|restore_request| restore_request.to == set.lock);
    let record = read_record::<RestoreRejection>(&volume.restore_refused_path()).ok().flatten();
    let refused_request = record
        .filter(|refused| restore_request.is_some_and(|restore_request| restore_request.request == refused.request));
    let backups =
        settings.backups.as_ref().and_then(|backups| BackupRepository::new(backups).list().ok()).map(|listed| {
            let good = listed.into_iter().rev().filter_map(|stored| stored.state.ok());
            let would_do = |backup: &Backup| {
                backup.contents.has_worlds()
                    && !backup.folders.is_empty()
                    && set.can_open(backup.data_version, backup.lock.as_deref())
            };
            good.filter(would_do).take(MAX_NAMED).map(|backup| backup.id).collect()
        });
    let refused_request = refused_request.map(|refused| (refused.request, refused.why));
    let floor = worlds.floor().map(|floor| floor.data_version);
    WorldRefused { why: refusal.to_string(), floor, backups, refused_request }
}

/// The newest backups, newest first, from which a user can choose.
pub(super) fn list_newest(stored_backups: &[repository::StoredBackup]) -> Vec<ListedBackup> {
    let to_listed = |stored: &repository::StoredBackup| {
        let record = stored.record();
        ListedBackup {
            id: stored.id.clone(),
            contents: record.map(|backup| backup.contents),
            data_version: record.and_then(|backup| backup.data_version),
            lock: record.and_then(|backup| backup.lock.clone()),
            problem: stored.state.as_ref().err().map(|not_counted| not_counted.why.chars().take(200).collect()),
            after_damage: record.is_some_and(|backup| backup.after_damage),
        }
    };
    stored_backups.iter().rev().take(MAX_LISTED).map(to_listed).collect()
}
