//! Pure. Defines the online backup in progress, its stage, and how a countdown affects it.

use super::cancel::CancellationToken;

/// The online backup in progress. It stays until autosave is on again and its unfinished files are removed.
#[derive(Debug, Default)]
pub(crate) struct RunningBackup {
    pub(super) cancellation: CancellationToken,
    pub(super) stage: BackupStage,
}

/// The progress of a backup.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum BackupStage {
    /// No command was sent to the server.
    #[default]
    Preparing,
    /// The server flushes its worlds to disk, and does nothing else meanwhile.
    Flushing,
    /// Its files are being read, or the backup is being abandoned.
    Reading,
    /// All files are read. Later writes of the server are not in the backup.
    AllRead,
}

impl RunningBackup {
    /// Called before a countdown begins. A server that flushes its worlds sends no line before it has finished, and then sends lines that are
    /// minutes old. Such a countdown must wait. A flush that was not sent yet is not sent.
    ///
    /// # Errors
    ///
    /// The reason why the countdown must wait.
    pub(super) fn prepare_countdown(&self) -> Result<(), &'static str> {
        match self.stage {
            BackupStage::Preparing => {
                self.cancellation.cancel(
                    "players had to be warned of a stop before the files were read, and no text reaches them while \
                    the worlds are flushed to the disk: request another backup after that stop",
                );
                Ok(())
            }
            BackupStage::Flushing => {
                Err("the worlds are being flushed to the disk for an online backup, and no text reaches players \
                meanwhile: retry in a moment")
            }
            // The console is free. If the server stops before all files are read, the stop ends the backup.
            BackupStage::Reading | BackupStage::AllRead => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn countdown_cancels_online_backup_only_before_its_flush() {
        for (stage, begins, continues) in [
            (BackupStage::Preparing, true, false),
            (BackupStage::Flushing, false, true),
            (BackupStage::Reading, true, true),
            (BackupStage::AllRead, true, true),
        ] {
            let in_progress = RunningBackup { stage, ..RunningBackup::default() };
            assert_eq!(in_progress.prepare_countdown().is_ok(), begins, "{stage:?}");
            assert_eq!(in_progress.cancellation.reason().is_none(), continues, "{stage:?}");
        }
    }
}
