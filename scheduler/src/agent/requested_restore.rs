//! Edge (writes). Executes a user's request to restore a backup, once, before the server starts.
//!
//! A request that cannot be executed does not prevent the start. The reason is recorded for the operator, and the server starts on its own
//! worlds. If it cannot open those either, the termination message lists the backups that would work.

use std::path::Path;

use jiff::Timestamp;
use tracing::{info, warn};

use super::pre_update_backup::{RestoreError, opens};
use super::{Chain, clock, config};
use crate::backup::Backup;
use crate::backup::repository::{self, BackupRepository, IgnoredBackup};
use crate::backup::restore::{self, RestorePart, RestoreTarget, restore};
use crate::protocol::last_words::{NAMED, WorldRefused};
use crate::protocol::restore::{ASKED_ORDER, AskedRestore, LISTED, ListedCopy, RestoreRefused};
use crate::protocol::{FileSet, Restored};
use crate::staging::fs_ops::{self, Disk, RealFs};
use crate::staging::{RecordError, Volume, read_record};
use crate::world::{WorldRefusal, Worlds};

/// Why a request is not executed.
#[derive(Debug, thiserror::Error)]
enum NotObeyed {
    #[error("the request is too old by now: write it again")]
    TooLate,
    #[error("there is no copy `{0}`")]
    NoSuchCopy(String),
    #[error("the copy `{id}` cannot be used: {why}")]
    NotGood { id: String, why: String },
    #[error("the copy `{0}` holds no worlds")]
    NoWorlds(String),
    #[error(
        "the copy `{id}` holds no settings and plugins: take `;contents=Everything` away, and its worlds are put in place"
    )]
    NoServerFiles { id: String },
    #[error("the worlds of the copy `{0}` are of a newer Minecraft, and a world cannot go back")]
    Newer(String),
    #[error("there are worlds, and the request does not end with `;overwrite`")]
    WouldOverwrite,
    #[error(transparent)]
    Shelf(#[from] repository::Error),
    #[error("the copy was not put in place")]
    Restore(#[from] restore::Error),
}

/// Restores a backup if a user has requested that with `set` and the request was not executed or refused before. The caller holds the locks on
/// `worlds`.
///
/// # Errors
///
/// The exchange has begun and is not finished. The server must not start before it is.
pub(super) fn restore_if_asked(
    settings: &config::BackupConfig,
    volume: &Volume,
    worlds: &Worlds,
    set: &FileSet,
) -> Result<Option<Restored>, RestoreError> {
    let (Some(backups), Some(orders)) = (&settings.backups, &settings.restore_order) else { return Ok(None) };
    let order = match to_obey(&orders.with_file_name(ASKED_ORDER), volume, set) {
        Ok(Some(order)) => order,
        Ok(None) => return Ok(None),
        // It is then unknown whether the request was already executed.
        Err(error) => {
            warn!("the request to restore is left alone: {}", Chain(&error));
            return Ok(None);
        }
    };
    let mut disk = Disk::new(RealFs);
    match obey(&order, &BackupRepository::new(backups), volume, worlds, set, &mut disk) {
        Ok(done) => Ok(Some(done)),
        Err(NotObeyed::Restore(error)) if fs_ops::is_there(&volume.restore_journal_path()) => Err(error.into()),
        Err(error) => {
            let why = Chain(&error).to_string();
            warn!("all stays as it is: {why}");
            let refused = RestoreRefused { request: order.request, at: clock::now(), why };
            let cleared = disk.remove_all(&volume.restoring_dir());
            let noted = disk.write_record(&volume.restore_refused_path(), &refused);
            for error in [cleared, noted].into_iter().filter_map(Result::err) {
                warn!("{}", Chain(&error));
            }
            Ok(None)
        }
    }
}

/// The mounted request, unless it is for another version set or already has a result.
fn to_obey(order: &Path, volume: &Volume, set: &FileSet) -> Result<Option<AskedRestore>, RecordError> {
    Ok(standing(order, volume)?.filter(|order| order.to == set.lock))
}

/// The mounted request for any version set, unless it already has a result.
fn standing(order: &Path, volume: &Volume) -> Result<Option<AskedRestore>, RecordError> {
    let Some(order) = read_record::<AskedRestore>(order)? else { return Ok(None) };
    let restored = read_record::<Restored>(&volume.restored_path())?.and_then(|restored| restored.request);
    let refused = read_record::<RestoreRefused>(&volume.restore_refused_path())?.map(|refused| refused.request);
    let is_over = [restored, refused].into_iter().flatten().any(|request| request == order.request);
    Ok((!is_over).then_some(order))
}

/// The backup that a pending request names. `orders` is the mount of the rollback request, and a user's request is mounted beside it.
pub(super) fn awaited(orders: &Path, volume: &Volume, now: Timestamp) -> Result<Option<String>, RecordError> {
    let order = standing(&orders.with_file_name(ASKED_ORDER), volume)?;
    Ok(order.filter(|order| now < order.not_after).map(|order| order.copy))
}

fn obey(
    order: &AskedRestore,
    shelf: &BackupRepository,
    volume: &Volume,
    worlds: &Worlds,
    set: &FileSet,
    disk: &mut Disk<RealFs>,
) -> Result<Restored, NotObeyed> {
    let now = clock::now();
    if order.not_after <= now {
        return Err(NotObeyed::TooLate);
    }
    if !order.overwrite && !worlds.folders.is_empty() {
        return Err(NotObeyed::WouldOverwrite);
    }
    let id = &order.copy;
    let copy = shelf.list()?.into_iter().find(|copy| copy.id == *id).ok_or(NotObeyed::NoSuchCopy(id.clone()))?;
    // A backup that could not be read last time is tried, because the user named it.
    let backup = copy.state.or_else(|IgnoredBackup { why, unread }| match unread {
        Some(backup) => Ok(*backup),
        None => Err(NotObeyed::NotGood { id: id.clone(), why }),
    })?;
    if !backup.contents.has_worlds() || backup.folders.is_empty() {
        return Err(NotObeyed::NoWorlds(id.clone()));
    }
    if order.everything && !backup.contents.has_server_files() {
        return Err(NotObeyed::NoServerFiles { id: id.clone() });
    }
    if !opens(&backup, set) {
        return Err(NotObeyed::Newer(id.clone()));
    }
    let part = if order.everything { RestorePart::Everything } else { RestorePart::Worlds };
    info!("putting {part:?} of the copy {id} in place, as a person asked; what is here is set aside");
    Ok(restore(shelf, &backup, volume, worlds, RestoreTarget { part, request: Some(&order.request) }, disk, now)?)
}

/// The termination message when `set` must not open the worlds. It also lists the backups that a user can request, and the result of the last
/// request.
pub(super) fn last_words(
    settings: &config::BackupConfig,
    volume: &Volume,
    worlds: &Worlds,
    set: &FileSet,
    refusal: &WorldRefusal,
) -> WorldRefused {
    let stands = |orders: &Path| read_record::<AskedRestore>(&orders.with_file_name(ASKED_ORDER)).ok().flatten();
    let order = settings.restore_order.as_deref().and_then(stands).filter(|order| order.to == set.lock);
    let record = read_record::<RestoreRefused>(&volume.restore_refused_path()).ok().flatten();
    let not_obeyed = record.filter(|refused| order.is_some_and(|order| order.request == refused.request));
    let copies =
        settings.backups.as_ref().and_then(|backups| BackupRepository::new(backups).list().ok()).map(|listed| {
            let good = listed.into_iter().rev().filter_map(|copy| copy.state.ok());
            let would_do =
                |backup: &Backup| backup.contents.has_worlds() && !backup.folders.is_empty() && opens(backup, set);
            good.filter(would_do).take(NAMED).map(|backup| backup.id).collect()
        });
    let not_obeyed = not_obeyed.map(|refused| (refused.request, refused.why));
    let floor = worlds.floor().map(|floor| floor.data_version);
    WorldRefused { why: refusal.to_string(), floor, copies, not_obeyed }
}

/// The newest backups, newest first, from which a user can choose.
pub(super) fn listed(copies: &[repository::StoredBackup]) -> Vec<ListedCopy> {
    let seen = |copy: &repository::StoredBackup| {
        let record = copy.record();
        ListedCopy {
            id: copy.id.clone(),
            contents: record.map(|backup| backup.contents),
            data_version: record.and_then(|backup| backup.data_version),
            lock: record.and_then(|backup| backup.lock.clone()),
            problem: copy.state.as_ref().err().map(|not_counted| not_counted.why.chars().take(200).collect()),
            after_damage: record.is_some_and(|backup| backup.after_damage),
        }
    };
    copies.iter().rev().take(LISTED).map(seen).collect()
}
