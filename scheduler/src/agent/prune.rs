//! Edge (writes). Decides which backups are kept when one is taken, before it needs space and again after its verification.

use std::path::PathBuf;

use jiff::{SignedDuration, Timestamp};
use tracing::{info, warn};

use super::{Chain, clock, config, requested_restore};
use crate::backup::repository::{self, BackupRepository, StoredBackup, way_back_from};
use crate::backup::retention::Retention;
use crate::protocol::KeepCopy;
use crate::staging::fs_ops::{Disk, FsHook};
use crate::staging::{RecordError, Volume};

/// It is unknown which backups are needed.
#[derive(Debug, thiserror::Error)]
enum UnknownBackup {
    /// A record on the volume cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The backups cannot be listed.
    #[error(transparent)]
    Shelf(#[from] repository::Error),
}

/// The inputs that decide which backups of one server are kept.
#[derive(Debug, Clone)]
pub(super) struct RetentionInput {
    /// `None`: no limit is configured, so all backups are kept.
    retention: Option<Retention>,
    /// The path at which restore requests are mounted. `None` for a sidecar, which has no mount and learns of a request from the operator.
    orders: Option<PathBuf>,
    /// The backup that the operator asked to keep.
    kept: Option<KeepCopy>,
    /// The volume with the results of the requests.
    volume: Volume,
}

impl RetentionInput {
    /// From the settings of the init container.
    pub(super) fn of_init(copies: &config::BackupConfig, volume: &Volume) -> Self {
        let retention = Some(retention(copies.backup_max_count, copies.backup_max_age));
        Self { retention, orders: copies.restore_order.clone(), kept: None, volume: volume.clone() }
    }

    /// From the settings of the sidecar.
    pub(super) fn of_sidecar(sidecar: &config::SidecarConfig, kept: Option<KeepCopy>, volume: &Volume) -> Self {
        let retention = sidecar.backup_max_count.map(|max_count| retention(max_count, sidecar.backup_max_age));
        Self { retention, orders: None, kept, volume: volume.clone() }
    }

    /// Removes backups that are not kept. `taken` is the backup that was just verified. `None`: a backup is about to be taken. It does not count
    /// yet, because it may fail, so only backups that exceed the limits without it are removed.
    pub(super) fn prune<S: FsHook>(&self, place: &BackupRepository, taken: Option<&str>, disk: &mut Disk<S>) {
        let Some(retention) = self.retention else { return };
        let now = clock::now();
        let needed = match self.needed(place, now) {
            Ok(needed) => needed,
            // A restore is requested, and any backup may be the requested one.
            Err(error) => {
                warn!("old copies stay: {}", Chain(&error));
                return;
            }
        };
        let needed: Vec<&str> = taken.into_iter().chain(needed.iter().map(String::as_str)).collect();
        match place.prune(retention, &needed, now, disk) {
            Ok(removed) => removed.iter().for_each(|id| info!("removed the copy {id}: `spec.backup.retention`")),
            // An excess backup does no harm. If it leaves too little space for the next one, that is reported then.
            Err(error) => warn!("old copies stay: {}", Chain(&error)),
        }
    }

    /// The backup that a restore request names, and the rollback backup of the current lock. Its update may not be finished. A backup dated in
    /// the future, by a clock that was fixed since, would pass for a newer rollback backup.
    fn needed(&self, place: &BackupRepository, now: Timestamp) -> Result<Vec<String>, UnknownBackup> {
        let lock = self.volume.manifest()?.map(|manifest| manifest.lock);
        let listed = place.list()?;
        let good = listed.iter().filter_map(|copy| copy.state.as_ref().ok());
        let way_back = lock.and_then(|lock| {
            // A backup that the disk could not read may be the only one.
            way_back_from(&lock, good).or_else(|| way_back_from(&lock, listed.iter().filter_map(StoredBackup::record)))
        });
        Ok(self.awaited(now)?.into_iter().chain(way_back.map(|backup| backup.id.clone())).collect())
    }

    fn awaited(&self, now: Timestamp) -> Result<Option<String>, RecordError> {
        let kept = || self.kept.as_ref().filter(|kept| now < kept.until).map(|kept| kept.copy.clone());
        let Some(orders) = &self.orders else { return Ok(kept()) };
        requested_restore::awaited(orders, &self.volume, now)
    }
}

/// A count, and an age in seconds.
fn retention(max_count: u32, max_age: Option<u32>) -> Retention {
    Retention { max_count, max_age: max_age.map(|seconds| SignedDuration::from_secs(i64::from(seconds))) }
}

#[cfg(test)]
mod tests;
