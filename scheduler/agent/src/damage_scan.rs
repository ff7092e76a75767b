//! Edge (writes). Scans the server's log for world damage: periodically, at the server's end, before a backup, and on the operator's request.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tracing::warn;

use super::{ErrorChain, clock};
use crate::staging::Volume;
use crate::world::damage::DamageLog;
use agent_api::world_damage::DamageReport;

/// The server rotates its log at midnight. Lines written after the last scan are then lost.
const SCAN_INTERVAL: Duration = Duration::from_mins(1);

/// The scan of one server's log, shared by the tasks of its sidecar.
#[derive(Debug)]
pub(super) struct DamageScan(Mutex<DamageLog>);

impl DamageScan {
    pub(super) fn new(volume: Volume) -> Self {
        Self(Mutex::new(DamageLog::new(volume)))
    }

    /// Scans for ever.
    pub(super) async fn scan_periodically(self: Arc<Self>) {
        loop {
            self.scan(Self::damage).await;
            tokio::time::sleep(SCAN_INTERVAL).await;
        }
    }

    /// Scans the whole rest of the log.
    pub(super) async fn scan_to_end(self: &Arc<Self>) {
        self.scan(Self::may_be_damaged).await;
    }

    /// Scans only to update the record. Other callers report the result.
    async fn scan<T: Send + 'static>(self: &Arc<Self>, read: fn(&Self) -> T) {
        let task = Arc::clone(self);
        if let Err(error) = tokio::task::spawn_blocking(move || read(&task)).await {
            warn!("{error}");
        }
    }

    /// The same as [`is_damaged_or_unknown`] for the log of this server. Blocks on the disk.
    pub(super) fn may_be_damaged(&self) -> bool {
        is_damaged_or_unknown(&mut self.log())
    }

    /// The damage that the log reports, after reading its new lines. Blocks on the disk.
    pub(super) fn damage(&self) -> Option<DamageReport> {
        let mut log = self.log();
        log.scan(clock::now()).unwrap_or_else(|error| {
            warn!("{}", ErrorChain(&error));
            log.reported()
        })
    }

    fn log(&self) -> MutexGuard<'_, DamageLog> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a backup that is taken now contains worlds for which the log reports damage. An unknown result counts as yes: such a backup replaces
/// no other.
pub(super) fn is_damaged_or_unknown(log: &mut DamageLog) -> bool {
    match log.scan_to_end(clock::now()) {
        Ok(damage) => damage.is_some(),
        Err(error) => {
            warn!("{}", ErrorChain(&error));
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn backup_is_marked_if_damage_is_logged_or_unknown() {
        let directory = tempfile::tempdir().unwrap();
        let volume = Volume::new(directory.path());
        let is_marked = || is_damaged_or_unknown(&mut DamageLog::new(volume.clone()));
        assert!(!is_marked(), "a new volume has no damage");
        fs::create_dir_all(directory.path().join("logs")).unwrap();
        let line = "[12:00:07] [IO-Worker-1/ERROR]: Chunk [1, 2] header is truncated: expected 4096 but read 0\n";
        fs::write(directory.path().join("logs/latest.log"), line).unwrap();
        assert!(is_marked());
        fs::remove_file(directory.path().join("logs/latest.log")).unwrap();
        assert!(is_marked(), "the record on the volume keeps the damage");
        fs::write(volume.damage_path(), b"cut").unwrap();
        assert!(is_marked(), "an invalid record stands for damage");
        fs::remove_file(volume.damage_path()).unwrap();
        fs::create_dir(volume.damage_path()).unwrap();
        assert!(is_marked(), "an unreadable record counts as damage");
    }
}
