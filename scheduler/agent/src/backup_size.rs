//! Edge (reads). Measures how much data a backup would contain, after each start of the server and once a day, and the room for it.
//!
//! The plan uses the size to estimate the downtime, and waits while there is too little room.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use tracing::{info, warn};

use super::prune::RetentionInput;
use super::state::SidecarState;
use super::{ErrorChain, clock};
use crate::backup::repository::BackupRepository;
use crate::backup::size::measure;
use crate::staging::fs_ops::{Disk, RealFs};

/// Worlds grow noticeably within a day of exploration, not within an hour.
const MEASURE_INTERVAL: Duration = Duration::from_hours(24);
/// Reading the metadata of a hundred thousand files takes a second or two. If it takes longer than this, the disk is busy with other work.
const MEASURE_TIMEOUT: SignedDuration = SignedDuration::from_secs(60);

/// Measures for as long as this server process is running. A server without backups needs no measurement.
pub(super) async fn measure_periodically(shared: &Arc<SidecarState>) {
    let process_generation = shared.state().process_generation;
    while shared.settings.backups.is_some() && shared.state().process_generation == process_generation {
        let data = shared.settings.data.clone();
        match tokio::task::spawn_blocking(move || measure(&data, MEASURE_TIMEOUT, clock::now)).await {
            Ok(Ok(sizes)) => {
                info!(
                    "a backup would have {} bytes of worlds and {} bytes of other files",
                    sizes.worlds, sizes.server_files
                );
                shared.state().sizes = Some(sizes);
            }
            // The previous sizes stay, because a plan shows only an estimate.
            Ok(Err(error)) => warn!("the size of a backup is unknown: {}", ErrorChain(&error)),
            Err(error) => warn!("{error}"),
        }
        tokio::time::sleep(MEASURE_INTERVAL).await;
    }
}

/// How many bytes the next backup may use in the repository. Backups that are removed before it count as free. `None` without backups, and if the
/// free space cannot be read.
pub(super) fn room(shared: &SidecarState) -> Option<u64> {
    let repository = BackupRepository::new(shared.settings.backups.as_ref()?);
    let retained_backup = shared.state().retained_backup.clone();
    let retention = RetentionInput::from_sidecar_config(&shared.settings, retained_backup, &shared.volume);
    let free = repository.free_bytes(shared.volume.root(), &Disk::new(RealFs)).ok()?;
    Some(free.saturating_add(retention.removable_bytes(&repository)))
}
