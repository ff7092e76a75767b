//! Edge (writes). Switches the server's autosave off, with a record on the volume, and reliably on again.
//!
//! A new process always begins with autosave on, so the record on the volume is about one process only.

use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use tokio::time::Instant;
use tracing::{info, warn};

use super::super::retry::Backoff;
use super::super::state::SidecarState;
use super::super::{ErrorChain, clock};
use crate::rcon;
use crate::rcon::responses::{self, Saving};
use crate::staging::fs_ops::{Disk, RealFs, exists};
use agent_api::OnlineBackupRequest;

/// The timeout of one short command. It is longer than a tick stall.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(20);

/// The timeout of `save-all flush`. The server runs no command meanwhile, on any connection. A countdown begins after it, and so waits this long
/// at most.
const FLUSH_TIMEOUT: Duration = Duration::from_mins(5);

/// How many unknown answers to `save-on` are accepted before the agent gives up. They take 15 s together.
const MAX_UNCLEAR_ANSWERS: u32 = 5;

/// `saving-off.json`: autosave may be off in the running server.
#[derive(Debug, Serialize)]
struct AutosaveOffMarker {
    request: String,
    since: Timestamp,
}

/// The result of switching autosave on.
#[derive(Debug)]
pub(super) enum AutosaveResult {
    /// It was off until now.
    SwitchedOn,
    /// It was already on: a user or another program had switched it.
    AlreadyOn,
    /// The process ended, or another one answers.
    ServerExited,
    /// The server gave an unknown answer. The record on the volume stays for the next agent.
    Unclear(String),
}

/// Switches autosave off and flushes the worlds to disk. Returns until when it may be off.
///
/// # Errors
///
/// The reason why the worlds cannot be read. Autosave may be off even then.
pub(super) async fn switch_off(shared: &SidecarState, request: &OnlineBackupRequest) -> Result<Instant, String> {
    let marker = AutosaveOffMarker { request: request.request.clone(), since: clock::now() };
    let path = shared.volume.autosave_off_path();
    let written = tokio::task::spawn_blocking(move || Disk::new(RealFs).write_record(&path, &marker)).await;
    written.map_err(|error| error.to_string())?.map_err(|error| ErrorChain(&error).to_string())?;

    let lease = shared.console.lease();
    let mut console = lease.console().await;
    let until = Instant::now() + Duration::from_secs(request.timeout_seconds.into());
    let left = || until.saturating_duration_since(Instant::now());
    let answer = console.save_off(left().min(COMMAND_TIMEOUT)).await;
    let answer = answer.map_err(|error| format!("saving could not be disabled: {}", ErrorChain(&error)))?;
    match responses::saving(&answer) {
        Some(Saving::Off) => {}
        Some(Saving::AlreadyOff) => warn!("saving was already disabled; it is enabled after this backup"),
        Some(Saving::On | Saving::AlreadyOn) | None => {
            return Err(format!(
                "saving could not be disabled: the server answered `save-off` with `{}`",
                answer.trim()
            ));
        }
    }
    match console.save_flush(left().min(FLUSH_TIMEOUT)).await {
        Ok(answer) if responses::confirms_save(&answer) => {
            shared.record_saved();
            Ok(until)
        }
        Ok(answer) => Err(format!(
            "the worlds were not flushed to the disk: the server answered `save-all flush` with `{}`",
            answer.trim()
        )),
        Err(error) => Err(format!("the worlds were not flushed to the disk: {}", ErrorChain(&error))),
    }
}

/// Switches autosave on in the process of `process_generation`. Retries until the server confirms it, or that process has ended.
pub(super) async fn switch_on(shared: &SidecarState, process_generation: u64) -> AutosaveResult {
    let mut backoff = Backoff::default();
    let (mut unclear, mut unanswered) = (0, false);
    loop {
        let (same, up, stopping) = {
            let state = shared.state();
            (state.process_generation == process_generation, state.monitor.is_up(), state.monitor.is_stopping())
        };
        if !same && !up {
            remove_marker(shared).await;
            return AutosaveResult::ServerExited;
        }
        let answer = {
            let lease = shared.console.lease();
            let mut console = lease.console().await;
            console.save_on(COMMAND_TIMEOUT).await
        };
        match answer.as_deref().map(responses::saving) {
            Ok(Some(saving @ (Saving::On | Saving::AlreadyOn))) => {
                remove_marker(shared).await;
                info!("saving is enabled");
                return match saving {
                    _ if shared.state().process_generation != process_generation => AutosaveResult::ServerExited,
                    // A command that was not answered may have run.
                    Saving::AlreadyOn if !unanswered => AutosaveResult::AlreadyOn,
                    Saving::On | Saving::Off | Saving::AlreadyOff | Saving::AlreadyOn => AutosaveResult::SwitchedOn,
                };
            }
            // A stopping server answers no command until it has ended.
            Ok(_) if stopping => {}
            Ok(Some(Saving::Off | Saving::AlreadyOff) | None) => {
                unclear += 1;
                if unclear == MAX_UNCLEAR_ANSWERS {
                    return AutosaveResult::Unclear(answer.unwrap_or_default());
                }
            }
            Err(error) => {
                unanswered |= matches!(error, rcon::Error::Timeout { .. } | rcon::Error::Disconnected { .. });
                warn!("saving is not enabled again yet: {}", ErrorChain(error));
            }
        }
        tokio::time::sleep(backoff.next()).await;
    }
}

/// The message for users when the answer was [`AutosaveResult::Unclear`].
pub(super) fn still_off_message(answer: &str) -> String {
    format!(
        "saving may still be disabled, because the server answered `save-on` with `{}`: check its console",
        answer.trim()
    )
}

/// Whether a record exists that autosave may be off.
pub(super) async fn has_marker(shared: &SidecarState) -> bool {
    let path = shared.volume.autosave_off_path();
    tokio::task::spawn_blocking(move || exists(&path)).await.unwrap_or(false)
}

/// Removes the record: autosave is on, or the process in which it was off has ended.
pub(super) async fn remove_marker(shared: &SidecarState) {
    let path = shared.volume.autosave_off_path();
    match tokio::task::spawn_blocking(move || Disk::new(RealFs).remove(&path)).await {
        Ok(Ok(())) => {}
        // It is then switched on once more than needed.
        Ok(Err(error)) => warn!("{}", ErrorChain(&error)),
        Err(error) => warn!("{error}"),
    }
}
