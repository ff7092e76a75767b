//! Edge (writes). Which copies stay where one is taken: asked before it wants its room, and again when it was read back.

use std::path::PathBuf;

use jiff::{SignedDuration, Timestamp};
use tracing::{info, warn};

use super::{Chain, clock, config, requested_restore};
use crate::backup::repository::{self, BackupRepository, StoredBackup, way_back_from};
use crate::backup::retention::Retention;
use crate::protocol::KeepCopy;
use crate::staging::fs_ops::{Disk, FsHook};
use crate::staging::{RecordError, Volume};

/// Nobody knows which copies are needed.
#[derive(Debug, thiserror::Error)]
enum UnknownBackup {
    /// A record of ours cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The copies cannot be looked through.
    #[error(transparent)]
    Shelf(#[from] repository::Error),
}

/// What decides which copies of one server stay.
#[derive(Debug, Clone)]
pub(super) struct RetentionInput {
    /// None: nobody said how many are wanted, so all stay.
    retention: Option<Retention>,
    /// Where orders are mounted. None where they are not: what a sidecar has to know of them the operator tells it.
    orders: Option<PathBuf>,
    /// What it was told.
    kept: Option<KeepCopy>,
    /// What has come of them.
    volume: Volume,
}

impl RetentionInput {
    /// As the init container is told it.
    pub(super) fn of_init(copies: &config::BackupConfig, volume: &Volume) -> Self {
        let retention = Some(retention(copies.backup_max_count, copies.backup_max_age));
        Self { retention, orders: copies.restore_order.clone(), kept: None, volume: volume.clone() }
    }

    /// As the sidecar is told it.
    pub(super) fn of_sidecar(sidecar: &config::SidecarConfig, kept: Option<KeepCopy>, volume: &Volume) -> Self {
        let retention = sidecar.backup_max_count.map(|max_count| retention(max_count, sidecar.backup_max_age));
        Self { retention, orders: None, kept, volume: volume.clone() }
    }

    /// Removes what does not stay. `taken` is the copy that was read back just now. None: one is about to be taken, and it takes no place
    /// yet, because it may fail; only what is too many or too old without it goes.
    pub(super) fn prune<S: FsHook>(&self, place: &BackupRepository, taken: Option<&str>, disk: &mut Disk<S>) {
        let Some(retention) = self.retention else { return };
        let now = clock::now();
        let needed = match self.needed(place, now) {
            Ok(needed) => needed,
            // Somebody waits for a copy, and it may be any of them.
            Err(error) => {
                warn!("old copies stay: {}", Chain(&error));
                return;
            }
        };
        let needed: Vec<&str> = taken.into_iter().chain(needed.iter().map(String::as_str)).collect();
        match place.prune(retention, &needed, now, disk) {
            Ok(removed) => removed.iter().for_each(|id| info!("removed the copy {id}: `spec.backup.retention`")),
            // A copy too many harms nobody. If it leaves no room for the next one, that is said then.
            Err(error) => warn!("old copies stay: {}", Chain(&error)),
        }
    }

    /// The copy that an order names, and the way back from what lies here: that update may not be over, and a copy that is dated ahead, by a clock
    /// that has been mended since, passes for a newer way back than it.
    fn needed(&self, place: &BackupRepository, now: Timestamp) -> Result<Vec<String>, UnknownBackup> {
        let lock = self.volume.manifest()?.map(|manifest| manifest.lock);
        let listed = place.list()?;
        let good = listed.iter().filter_map(|copy| copy.state.as_ref().ok());
        let way_back = lock.and_then(|lock| {
            // One that the disk did not give may be all that there is.
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

/// A number, and an age in seconds.
fn retention(max_count: u32, max_age: Option<u32>) -> Retention {
    Retention { max_count, max_age: max_age.map(|seconds| SignedDuration::from_secs(i64::from(seconds))) }
}

#[cfg(test)]
mod tests;
