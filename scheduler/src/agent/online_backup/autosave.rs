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
use super::super::{Chain, clock};
use crate::protocol::HotCopy;
use crate::rcon;
use crate::rcon::responses::{self, Saving};
use crate::staging::fs_ops::{Disk, RealFs, is_there};

/// The timeout of one short command. It is longer than a tick stall.
const COMMAND: Duration = Duration::from_secs(20);

/// The timeout of `save-all flush`. The server runs no command meanwhile, on any connection. A countdown begins after it, and so waits this long
/// at most.
const FLUSH: Duration = Duration::from_mins(5);

/// How many unknown answers to `save-on` are accepted before the agent gives up. They take 15 s together.
const UNCLEAR: u32 = 5;

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
    Now,
    /// It was already on: somebody else had switched it.
    Before,
    /// The process ended, or another one answers.
    Gone,
    /// The server gave an unknown answer. The record on the volume stays for the next agent.
    Unclear(String),
}

/// Switches autosave off and flushes the worlds to disk. Returns until when it may be off.
///
/// # Errors
///
/// The reason why the worlds cannot be read. Autosave may be off even then.
pub(super) async fn off(shared: &SidecarState, asked: &HotCopy) -> Result<Instant, String> {
    let noted = AutosaveOffMarker { request: asked.request.clone(), since: clock::now() };
    let path = shared.volume.saving_off_path();
    let written = tokio::task::spawn_blocking(move || Disk::new(RealFs).write_record(&path, &noted)).await;
    written.map_err(|error| error.to_string())?.map_err(|error| Chain(&error).to_string())?;

    let act = shared.desk.act();
    let mut console = act.console().await;
    let until = Instant::now() + Duration::from_secs(asked.timeout_seconds.into());
    let left = || until.saturating_duration_since(Instant::now());
    let answer = console.save_off(left().min(COMMAND)).await;
    let answer = answer.map_err(|error| format!("saving could not be switched off: {}", Chain(&error)))?;
    match responses::saving(&answer) {
        Some(Saving::Off) => {}
        Some(Saving::OffBefore) => warn!("saving was off already: whoever did that finds it on after this copy"),
        Some(Saving::On | Saving::OnBefore) | None => {
            return Err(format!(
                "saving could not be switched off: the server answered `save-off` with `{}`",
                answer.trim()
            ));
        }
    }
    match console.save_flush(left().min(FLUSH)).await {
        Ok(answer) if responses::says_saved(&answer) => {
            shared.note_saved();
            Ok(until)
        }
        Ok(answer) => Err(format!(
            "the worlds were not brought to the disk: the server answered `save-all flush` with `{}`",
            answer.trim()
        )),
        Err(error) => Err(format!("the worlds were not brought to the disk: {}", Chain(&error))),
    }
}

/// Switches autosave on in the process `life`. Retries until the server confirms it, or that process has ended.
pub(super) async fn on(shared: &SidecarState, life: u64) -> AutosaveResult {
    let mut waits = Backoff::default();
    let (mut unclear, mut unanswered) = (0, false);
    loop {
        let (same, up, stopping) = {
            let state = shared.state();
            (state.life == life, state.witness.is_up(), state.witness.is_stopping())
        };
        if !same && !up {
            forget(shared).await;
            return AutosaveResult::Gone;
        }
        let answer = {
            let act = shared.desk.act();
            let mut console = act.console().await;
            console.save_on(COMMAND).await
        };
        match answer.as_deref().map(responses::saving) {
            Ok(Some(saving @ (Saving::On | Saving::OnBefore))) => {
                forget(shared).await;
                info!("saving is on");
                return match saving {
                    _ if shared.state().life != life => AutosaveResult::Gone,
                    // A command that was not answered may have run.
                    Saving::OnBefore if !unanswered => AutosaveResult::Before,
                    Saving::On | Saving::Off | Saving::OffBefore | Saving::OnBefore => AutosaveResult::Now,
                };
            }
            // A stopping server answers no command until it has ended.
            Ok(_) if stopping => {}
            Ok(Some(Saving::Off | Saving::OffBefore) | None) => {
                unclear += 1;
                if unclear == UNCLEAR {
                    return AutosaveResult::Unclear(answer.unwrap_or_default());
                }
            }
            Err(error) => {
                unanswered |= matches!(error, rcon::Error::Timeout { .. } | rcon::Error::Lost { .. });
                warn!("saving is not on again yet: {}", Chain(error));
            }
        }
        tokio::time::sleep(waits.next()).await;
    }
}

/// The message for users when the answer was [`AutosaveResult::Unclear`].
pub(super) fn still_off(answer: &str) -> String {
    format!(
        "saving may still be off, because the server answered `save-on` with `{}`: look at its console",
        answer.trim()
    )
}

/// Whether a record exists that autosave may be off.
pub(super) async fn is_noted(shared: &SidecarState) -> bool {
    let path = shared.volume.saving_off_path();
    tokio::task::spawn_blocking(move || is_there(&path)).await.unwrap_or(false)
}

/// Removes the record: autosave is on, or the process in which it was off has ended.
pub(super) async fn forget(shared: &SidecarState) {
    let path = shared.volume.saving_off_path();
    match tokio::task::spawn_blocking(move || Disk::new(RealFs).remove(&path)).await {
        Ok(Ok(())) => {}
        // It is then switched on once more than needed.
        Ok(Err(error)) => warn!("{}", Chain(&error)),
        Err(error) => warn!("{error}"),
    }
}
