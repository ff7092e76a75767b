//! Edge (writes). Takes online backups on the operator's request, one at a time.
//!
//! Autosave is off only while files are read, and never longer than the request allows, because Paper unloads no chunk meanwhile. It is switched
//! on before the backup is verified. The answer to that also proves that the server was not stopping while files were read. A stopping server
//! answers no command, and writes its worlds regardless of `save-off`.

mod autosave;
mod cancel;
mod job;
mod record;
pub(super) mod running;

use std::sync::Arc;

use tracing::{info, warn};

use super::clock;
use super::state::{MutableState, SidecarState};
use crate::backup::repository::BackupRepository;
use agent_api::Trigger;
use agent_api::{OnlineBackupOutcome, OnlineBackupReport, OnlineBackupRequest};
use autosave::AutosaveResult;
use job::Job;
pub(super) use record::load_last;
use running::{BackupStage, RunningBackup};

/// The longest name of a request, in bytes. The name is used in records and messages.
const MAX_NAME_BYTES: usize = 64;

/// A request that is refused.
#[derive(Debug)]
pub(super) enum OnlineBackupRejection {
    /// It will never be served, with the reason as text.
    Malformed(String),
    /// Not possible at the moment.
    NotNow(String),
    /// It could not be recorded.
    NotRecorded(String),
}

/// Begins a backup. A repeated request refers to the same backup, whatever its result.
pub(super) async fn begin(
    shared: &Arc<SidecarState>,
    request: OnlineBackupRequest,
) -> Result<(), OnlineBackupRejection> {
    let Some(backups) = shared.settings.backups.clone() else {
        return Err(OnlineBackupRejection::Malformed("this server takes no backups: enable `spec.backup`".to_owned()));
    };
    check(&request).map_err(OnlineBackupRejection::Malformed)?;
    let begun = OnlineBackupReport {
        request: request.request.clone(),
        at: clock::now(),
        outcome: OnlineBackupOutcome::Running,
    };
    let (job, previous) = {
        // The preparation of a stop holds this lock.
        let stop_lock = shared.stop_lock.try_lock();
        let mut state = shared.state();
        if state.last_online_backup.as_ref().is_some_and(|last| last.request == request.request) {
            return Ok(());
        }
        if stop_lock.is_err() || !state.monitor.is_up() || state.monitor.is_stopping() || state.stop.is_some() {
            return Err(OnlineBackupRejection::NotNow(
                "the server does not run, or is stopping: retry when it is up".to_owned(),
            ));
        }
        if state.online_backup.is_some() {
            return Err(OnlineBackupRejection::NotNow(
                "another online backup is in progress, or saving is not enabled again after one: retry later"
                    .to_owned(),
            ));
        }
        let in_progress = RunningBackup::default();
        let cancellation = in_progress.cancellation.clone();
        state.online_backup = Some(in_progress);
        let previous = state.last_online_backup.replace(begun.clone());
        let repository = BackupRepository::new(backups);
        (
            Job {
                shared: Arc::clone(shared),
                process_generation: state.process_generation,
                request,
                repository,
                cancellation,
            },
            previous,
        )
    };
    // A separate task: the caller may disconnect, and the backup must not stay marked as in progress.
    let recorded = tokio::spawn(async move {
        if let Err(why) = record::write(&job.shared, &begun).await {
            let mut state = job.shared.state();
            (state.last_online_backup, state.online_backup) = (previous, None);
            return Err(OnlineBackupRejection::NotRecorded(why));
        }
        info!("taking an online backup: {}", job.request.request);
        tokio::spawn(job.run());
        Ok(())
    });
    recorded.await.unwrap_or_else(|error| Err(OnlineBackupRejection::NotRecorded(error.to_string())))
}

fn check(request: &OnlineBackupRequest) -> Result<(), String> {
    let plain = |letter: u8| letter.is_ascii_alphanumeric() || b"-:.".contains(&letter);
    let name = &request.request;
    if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.bytes().all(plain) {
        return Err(format!(
            "`request` must have 1 to {MAX_NAME_BYTES} letters, digits, `-`, `:` and `.`, and has {} bytes",
            name.len()
        ));
    }
    if request.timeout_seconds == 0 {
        return Err("`timeoutSeconds` must be 1 or more".to_owned());
    }
    match request.trigger {
        Trigger::Scheduled | Trigger::OnDemand => Ok(()),
        Trigger::BeforeUpdate => {
            Err("a backup before an update is taken of a stopped server: `trigger` must be another one".to_owned())
        }
    }
}

/// The server is about to stop. Files that are not read yet would be read from worlds that are being written.
pub(super) fn on_server_stopping(shared: &SidecarState) {
    cancel_reading(shared, "the server was stopped while its files were read");
}

/// A server process has ended. The next one begins with autosave on.
pub(super) async fn on_server_exit(shared: &SidecarState) {
    cancel_reading(shared, "the server exited while its files were read");
    autosave::remove_marker(shared).await;
}

/// A server process answers. If an earlier agent recorded that autosave may be off, it is switched on first.
pub(super) async fn on_server_start(shared: &Arc<SidecarState>) {
    if !autosave::has_marker(shared).await {
        return;
    }
    let process_generation = {
        let mut state = shared.state();
        if state.online_backup.is_some() {
            // The task that wrote the record is still running, and handles it.
            return;
        }
        state.online_backup = Some(RunningBackup::default());
        state.process_generation
    };
    warn!("a backup was interrupted while saving was disabled, so saving is enabled again");
    if let AutosaveResult::Unclear(answer) = autosave::switch_on(shared, process_generation).await {
        warn!("{}", autosave::still_off_message(&answer));
    }
    shared.state().online_backup = None;
}

/// The agent ends. No task may delay it, so a backup that is not in the repository yet is abandoned.
pub(super) fn on_agent_exit(shared: &SidecarState) {
    if let Some(in_progress) = &shared.state().online_backup {
        in_progress.cancellation.cancel("the agent exited before the backup was read back");
    }
}

/// The agent is about to have the worlds saved for another reason: `save-all` writes them regardless of `save-off`.
pub(super) fn on_world_save(shared: &SidecarState) {
    cancel_reading(
        shared,
        "the worlds were saved for a stop or a drain before all files were read, which writes to them although \
        autosave is disabled: request another backup after that",
    );
}

/// A countdown is about to begin, and `state` stays locked until it has. The error is the reason why it cannot begin yet.
pub(super) fn prepare_countdown(state: &MutableState) -> Result<(), &'static str> {
    state.online_backup.as_ref().map_or(Ok(()), RunningBackup::prepare_countdown)
}

fn cancel_reading(shared: &SidecarState, why: &str) {
    if let Some(in_progress) =
        shared.state().online_backup.as_ref().filter(|in_progress| in_progress.stage != BackupStage::AllRead)
    {
        in_progress.cancellation.cancel(why);
    }
}
