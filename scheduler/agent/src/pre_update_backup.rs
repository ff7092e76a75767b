//! Edge (writes). Takes the backup of `agent init` between the stop of one version set and the start of another.

use serde::{Deserialize, Serialize};
use tracing::{info, warn};

use super::damage_scan::is_damaged_or_unknown;
use super::prune::RetentionInput;
use super::{ErrorChain, clock, config, seed_volume};
use crate::backup::LiveReads;
use crate::backup::create::{self, BackupSpec, create_backup, log_backup};
use crate::backup::due::due;
use crate::backup::repository::BackupRepository;
use crate::staging::fs_ops::{self, Disk, RealFs};
use crate::staging::{RecordError, Volume, read_record};
use crate::world::Worlds;
use crate::world::damage::DamageLog;
use agent_api::Trigger;
use agent_api::{BackupFailed, FileSet};

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

/// `backup-taken.json`: the backup for this update exists. It is removed after the update, so that a later update between the same two locks gets
/// a new backup.
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
        after_damage: is_damaged_or_unknown(&mut DamageLog::new(volume.clone())),
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

fn is_good(repository: &BackupRepository, id: &str) -> bool {
    repository.list().is_ok_and(|listed| listed.iter().any(|stored| stored.id == id && stored.state.is_ok()))
}

#[cfg(test)]
pub(crate) mod tests;
