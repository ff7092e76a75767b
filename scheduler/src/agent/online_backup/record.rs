//! Edge (writes). Records the last request, so that no agent serves it twice.

use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use tracing::warn;

use super::super::Chain;
use super::super::state::SidecarState;
use crate::backup::repository::BackupRepository;
use crate::protocol::{HotCopyOutcome, HotCopySeen};
use crate::staging::fs_ops::{Disk, RealFs};
use crate::staging::{Volume, read_record};

/// Writes the record to disk.
pub(super) async fn write(shared: &Arc<SidecarState>, seen: &HotCopySeen) -> Result<(), String> {
    let (path, seen) = (shared.volume.hot_copy_path(), seen.clone());
    let written = tokio::task::spawn_blocking(move || Disk::new(RealFs).write_record(&path, &seen)).await;
    match written {
        Ok(written) => written.map_err(|error| Chain(&error).to_string()),
        Err(error) => Err(error.to_string()),
    }
}

/// The last request, as a new agent finds it. If it was still running, it ended with the agent that served it. Its backup may or may not be in
/// the repository.
pub(in super::super) fn remembered(volume: &Volume, backups: &Path, now: Timestamp) -> Option<HotCopySeen> {
    let path = volume.hot_copy_path();
    let seen: HotCopySeen = match read_record(&path) {
        Ok(seen) => seen?,
        Err(error) => {
            warn!("{}", Chain(&error));
            return None;
        }
    };
    if seen.outcome != HotCopyOutcome::Running {
        return Some(seen);
    }
    let listed = BackupRepository::new(backups).list().unwrap_or_default();
    let mut good = listed.into_iter().filter_map(|copy| copy.state.ok());
    let outcome = match good.find(|backup| backup.request.as_ref() == Some(&seen.request)) {
        Some(backup) => HotCopyOutcome::Taken { id: backup.id },
        None => HotCopyOutcome::Failed { why: "the agent was restarted meanwhile: ask for another copy".to_owned() },
    };
    let seen = HotCopySeen { at: now, outcome, ..seen };
    if let Err(error) = Disk::new(RealFs).write_record(&path, &seen) {
        warn!("{}", Chain(&error));
    }
    Some(seen)
}
