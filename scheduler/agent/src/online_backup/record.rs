//! Edge (writes). Records the last request, so that no agent serves it twice.

use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use tracing::warn;

use super::super::ErrorChain;
use super::super::state::SidecarState;
use crate::backup::repository::BackupRepository;
use crate::staging::fs_ops::{Disk, RealFs};
use crate::staging::{Volume, read_record};
use agent_api::{OnlineBackupOutcome, OnlineBackupReport};

/// Writes the record to disk.
pub(super) async fn write(shared: &Arc<SidecarState>, record: &OnlineBackupReport) -> Result<(), String> {
    let (path, record) = (shared.volume.online_backup_path(), record.clone());
    let written = tokio::task::spawn_blocking(move || Disk::new(RealFs).write_record(&path, &record)).await;
    match written {
        Ok(written) => written.map_err(|error| ErrorChain(&error).to_string()),
        Err(error) => Err(error.to_string()),
    }
}

/// The last request, as a new agent finds it. If it was still running, it ended with the agent that served it. Its backup may or may not be in
/// the repository.
pub(in super::super) fn load_last(volume: &Volume, backups: &Path, now: Timestamp) -> Option<OnlineBackupReport> {
    let path = volume.online_backup_path();
    let record: OnlineBackupReport = match read_record(&path) {
        Ok(record) => record?,
        Err(error) => {
            warn!("{}", ErrorChain(&error));
            return None;
        }
    };
    if record.outcome != OnlineBackupOutcome::Running {
        return Some(record);
    }
    let listed = BackupRepository::new(backups).list().unwrap_or_default();
    let mut good = listed.into_iter().filter_map(|stored| stored.state.ok());
    let outcome = match good.find(|backup| backup.request.as_ref() == Some(&record.request)) {
        Some(backup) => OnlineBackupOutcome::Taken { id: backup.id },
        None => {
            OnlineBackupOutcome::Failed { why: "the agent was restarted meanwhile: request another backup".to_owned() }
        }
    };
    let record = OnlineBackupReport { at: now, outcome, ..record };
    if let Err(error) = Disk::new(RealFs).write_record(&path, &record) {
        warn!("{}", ErrorChain(&error));
    }
    Some(record)
}
