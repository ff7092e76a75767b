//! Edge (writes). Prunes backups by `backup_retention` when one is taken: before it needs space, and again after its verification.

use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use tracing::{info, warn};

use super::signed_requests::SignedRequests;
use super::{ErrorChain, clock, config, requested_restore};
use crate::backup::repository::{self, BackupRepository, RepositoryVolume, StoredBackup, rollback_backup};
use crate::staging::fs_ops::{Disk, FsHook};
use crate::staging::{RecordError, Volume};
use agent_api::ProtectBackup;
use scheduler::backup_retention::Retention;

/// It is unknown which backups are needed.
#[derive(Debug, thiserror::Error)]
enum NeededBackupsUnknown {
    /// A record on the volume cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The backups cannot be listed.
    #[error(transparent)]
    Repository(#[from] repository::Error),
}

/// The inputs that decide which backups of one server are kept.
#[derive(Debug, Clone)]
pub(super) struct RetentionInput {
    /// `None`: no limit is configured, so all backups are kept.
    retention: Option<Retention>,
    /// The mounted requests. `None` for a sidecar, which has no mount and learns of a request from the operator.
    restore_requests: Option<SignedRequests>,
    /// The backup that the operator asked to keep.
    retained_backup: Option<ProtectBackup>,
    /// The volume with the results of the requests.
    volume: Volume,
}

impl RetentionInput {
    /// From the settings of the init container.
    pub(super) fn from_init_config(config: &config::BackupConfig, volume: &Volume) -> Self {
        let retention = config
            .backups
            .as_ref()
            .map(|backups| retention(config.backup_max_count, config.backup_max_age, volume_of(backups, volume)));
        Self {
            retention,
            restore_requests: SignedRequests::from_config(config),
            retained_backup: None,
            volume: volume.clone(),
        }
    }

    /// From the settings of the sidecar.
    pub(super) fn from_sidecar_config(
        sidecar: &config::SidecarConfig,
        retained_backup: Option<ProtectBackup>,
        volume: &Volume,
    ) -> Self {
        let repository = sidecar.backup_max_count.zip(sidecar.backups.as_ref());
        let retention = repository
            .map(|(max_count, backups)| retention(max_count, sidecar.backup_max_age, volume_of(backups, volume)));
        Self { retention, restore_requests: None, retained_backup, volume: volume.clone() }
    }

    /// Removes backups that are not kept. `taken` is the backup that was just verified. `None`: a backup is about to be taken. It does not count
    /// yet, because it may fail, so only backups that exceed the limits without it are removed.
    pub(super) fn prune<S: FsHook>(&self, repository: &BackupRepository, taken: Option<&str>, disk: &mut Disk<S>) {
        let Some(retention) = self.retention else { return };
        let now = clock::now();
        let needed = match self.needed(repository, now) {
            Ok(needed) => needed,
            // A restore is requested, and any backup may be the requested one.
            Err(error) => {
                warn!("could not prune old backups: {}", ErrorChain(&error));
                return;
            }
        };
        let needed: Vec<&str> = taken.into_iter().chain(needed.iter().map(String::as_str)).collect();
        match repository.prune(retention, &needed, now, disk) {
            Ok(removed) => removed.iter().for_each(|id| info!("removed the backup {id}: `spec.backup.retention`")),
            // An excess backup does no harm. If it leaves too little space for the next one, that is reported then.
            Err(error) => warn!("could not prune old backups: {}", ErrorChain(&error)),
        }
    }

    /// The size of the backups that are removed before the next one is taken, in bytes. 0 if it is unknown which ones are needed.
    pub(super) fn removable_bytes(&self, repository: &BackupRepository) -> u64 {
        let Some(retention) = self.retention else { return 0 };
        let now = clock::now();
        let Ok(needed) = self.needed(repository, now) else { return 0 };
        let needed: Vec<&str> = needed.iter().map(String::as_str).collect();
        repository.removable_bytes(retention, &needed, now).unwrap_or(0)
    }

    /// The backup that a restore request names, and the rollback backup of the current lock. Its update may not be finished. A backup dated in
    /// the future, by a clock that was fixed since, would pass for a newer rollback backup.
    fn needed(&self, repository: &BackupRepository, now: Timestamp) -> Result<Vec<String>, NeededBackupsUnknown> {
        let lock = self.volume.manifest()?.map(|manifest| manifest.lock);
        let listed = repository.list()?;
        let good = listed.iter().filter_map(|stored| stored.state.as_ref().ok());
        let rollback_backup = lock.and_then(|lock| {
            // A backup that the disk could not read may be the only one.
            rollback_backup(&lock, good)
                .or_else(|| rollback_backup(&lock, listed.iter().filter_map(StoredBackup::record)))
        });
        Ok(self.pending_backup(now)?.into_iter().chain(rollback_backup.map(|backup| backup.id.clone())).collect())
    }

    fn pending_backup(&self, now: Timestamp) -> Result<Option<String>, RecordError> {
        let retained_backup = || {
            self.retained_backup
                .as_ref()
                .filter(|retained_backup| now < retained_backup.until)
                .map(|retained_backup| retained_backup.backup.clone())
        };
        let Some(restore_requests) = &self.restore_requests else { return Ok(retained_backup()) };
        requested_restore::pending_backup(restore_requests, &self.volume, now)
    }
}

/// A count, and an age in seconds.
fn retention(max_count: u32, max_age: Option<u32>, volume: RepositoryVolume) -> Retention {
    Retention {
        max_count,
        max_age: max_age.map(|seconds| SignedDuration::from_secs(i64::from(seconds))),
        keeps_older: volume.keeps_older(),
    }
}

fn volume_of(backups: &Path, volume: &Volume) -> RepositoryVolume {
    BackupRepository::new(backups).volume(volume.root())
}

#[cfg(test)]
mod tests;
