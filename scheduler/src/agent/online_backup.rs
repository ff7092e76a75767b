//! Edge (writes). Takes online backups on the operator's request, one at a time.
//!
//! Autosave is off only while files are read, and never longer than the request allows, because Paper unloads no chunk meanwhile. It is switched
//! on before the backup is verified. The answer to that also proves that the server was not stopping while files were read. A stopping server
//! answers no command, and writes its worlds regardless of `save-off`.

mod autosave;
mod cancel;
mod job;
mod record;

use std::sync::Arc;

use tracing::{info, warn};

use super::clock;
use super::state::{MutableState, SidecarState};
use crate::backup::Trigger;
use crate::backup::repository::BackupRepository;
use crate::protocol::{HotCopy, HotCopyOutcome, HotCopySeen};
use autosave::AutosaveResult;
use cancel::CancellationToken;
use job::Job;
pub(super) use record::remembered;

/// The longest name of a request, in bytes. The name is used in records and messages.
const LONGEST_NAME: usize = 64;

/// A request that is refused.
#[derive(Debug)]
pub(super) enum OnlineBackupRefused {
    /// It will never be served, with the reason as text.
    Malformed(String),
    /// Not possible at the moment.
    NotNow(String),
    /// It could not be recorded.
    NotNoted(String),
}

/// The online backup in progress. It stays until autosave is on again and its unfinished files are removed.
#[derive(Debug, Default)]
pub(super) struct Copying {
    halt: CancellationToken,
    stage: BackupStage,
}

/// The progress of a backup.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum BackupStage {
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

impl Copying {
    /// Called before a countdown begins. A server that flushes its worlds sends no line before it has finished, and then sends lines that are
    /// minutes old. Such a countdown must wait. A flush that was not sent yet is not sent.
    ///
    /// # Errors
    ///
    /// The reason why the countdown must wait.
    fn countdown_begins(&self) -> Result<(), &'static str> {
        match self.stage {
            BackupStage::Preparing => {
                self.halt.tell(
                    "players were to be told of a stop before its files were read, and nothing can be told to them while the worlds are \
                     brought to the disk: ask for another copy when that is over",
                );
                Ok(())
            }
            BackupStage::Flushing => Err(
                "the worlds are being brought to the disk for a copy of the running server, and players can be told nothing \
                 meanwhile: ask again in a moment",
            ),
            // The console is free. If the server stops before all files are read, the stop ends the backup.
            BackupStage::Reading | BackupStage::AllRead => Ok(()),
        }
    }
}

/// Begins a backup. A repeated request refers to the same backup, whatever its result.
pub(super) async fn begin(shared: &Arc<SidecarState>, asked: HotCopy) -> Result<(), OnlineBackupRefused> {
    let Some(backups) = shared.settings.backups.clone() else {
        return Err(OnlineBackupRefused::Malformed("this server takes no copies: switch on `spec.backup`".to_owned()));
    };
    check(&asked).map_err(OnlineBackupRefused::Malformed)?;
    let begun = HotCopySeen { request: asked.request.clone(), at: clock::now(), outcome: HotCopyOutcome::Running };
    let (job, before) = {
        // A stop in progress holds this lock until `stop` was sent.
        let turn = shared.stop_turn.try_lock();
        let mut state = shared.state();
        if state.hot.as_ref().is_some_and(|last| last.request == asked.request) {
            return Ok(());
        }
        if turn.is_err() || !state.witness.is_up() || state.witness.is_stopping() || state.stop.is_some() {
            return Err(OnlineBackupRefused::NotNow(
                "the server does not run, or is stopping: ask again when it is up".to_owned(),
            ));
        }
        if state.copying.is_some() {
            return Err(OnlineBackupRefused::NotNow(
                "another copy of the running server is not over, or saving is not on again after one: ask again later"
                    .to_owned(),
            ));
        }
        let copying = Copying::default();
        let halt = copying.halt.clone();
        state.copying = Some(copying);
        let before = state.hot.replace(begun.clone());
        let shelf = BackupRepository::new(backups);
        (Job { shared: Arc::clone(shared), life: state.life, asked, shelf, halt }, before)
    };
    // A separate task: the caller may disconnect, and the backup must not stay marked as in progress.
    let noted = tokio::spawn(async move {
        if let Err(why) = record::write(&job.shared, &begun).await {
            let mut state = job.shared.state();
            (state.hot, state.copying) = (before, None);
            return Err(OnlineBackupRefused::NotNoted(why));
        }
        info!("taking a copy of the running server: {}", job.asked.request);
        tokio::spawn(job.run());
        Ok(())
    });
    noted.await.unwrap_or_else(|error| Err(OnlineBackupRefused::NotNoted(error.to_string())))
}

fn check(asked: &HotCopy) -> Result<(), String> {
    let plain = |letter: u8| letter.is_ascii_alphanumeric() || b"-:.".contains(&letter);
    let name = &asked.request;
    if name.is_empty() || name.len() > LONGEST_NAME || !name.bytes().all(plain) {
        return Err(format!(
            "`request` must have 1 to {LONGEST_NAME} letters, digits, `-`, `:` and `.`, and has {} bytes",
            name.len()
        ));
    }
    if asked.timeout_seconds == 0 {
        return Err("`timeoutSeconds` must be 1 or more: no file can be read in no time".to_owned());
    }
    match asked.trigger {
        Trigger::Scheduled | Trigger::OnDemand => Ok(()),
        Trigger::BeforeUpdate => {
            Err("a copy before an update is taken of a server that does not run: `trigger` must be another".to_owned())
        }
    }
}

/// The server is about to stop. Files that are not read yet would be read from worlds that are being written.
pub(super) fn server_stops(shared: &SidecarState) {
    halt_reading(shared, "the server was stopped while its files were read");
}

/// A server process has ended. The next one begins with autosave on.
pub(super) async fn server_ended(shared: &SidecarState) {
    halt_reading(shared, "the server ended while its files were read");
    autosave::forget(shared).await;
}

/// A server process answers. If an earlier agent recorded that autosave may be off, it is switched on first.
pub(super) async fn server_began(shared: &Arc<SidecarState>) {
    if !autosave::is_noted(shared).await {
        return;
    }
    let life = {
        let mut state = shared.state();
        if state.copying.is_some() {
            // The task that wrote the record is still running, and handles it.
            return;
        }
        state.copying = Some(Copying::default());
        state.life
    };
    warn!("a copy broke off with saving switched off, so it is switched on again");
    if let AutosaveResult::Unclear(answer) = autosave::on(shared, life).await {
        warn!("{}", autosave::still_off(&answer));
    }
    shared.state().copying = None;
}

/// The agent ends. No task may delay it, so a backup that is not in the repository yet is abandoned.
pub(super) fn agent_ends(shared: &SidecarState) {
    if let Some(copying) = &shared.state().copying {
        copying.halt.tell("the agent ended before it was read back");
    }
}

/// The agent is about to have the worlds saved for another reason: `save-all` writes them regardless of `save-off`.
pub(super) fn worlds_are_saved(shared: &SidecarState) {
    halt_reading(
        shared,
        "the worlds were saved for a stop or a drain before all files were read, which writes to them although saving is off: \
         ask for another copy when that is over",
    );
}

/// A countdown is about to begin, and `state` stays locked until it has. The error is the reason why it cannot begin yet.
pub(super) fn countdown_begins(state: &MutableState) -> Result<(), &'static str> {
    state.copying.as_ref().map_or(Ok(()), Copying::countdown_begins)
}

fn halt_reading(shared: &SidecarState, why: &str) {
    if let Some(copying) = shared.state().copying.as_ref().filter(|copying| copying.stage != BackupStage::AllRead) {
        copying.halt.tell(why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn countdown_cancels_online_backup_only_before_its_flush() {
        for (stage, begins, goes_on) in [
            (BackupStage::Preparing, true, false),
            (BackupStage::Flushing, false, true),
            (BackupStage::Reading, true, true),
            (BackupStage::AllRead, true, true),
        ] {
            let copying = Copying { stage, ..Copying::default() };
            assert_eq!(copying.countdown_begins().is_ok(), begins, "{stage:?}");
            assert_eq!(copying.halt.why().is_none(), goes_on, "{stage:?}");
        }
    }
}
