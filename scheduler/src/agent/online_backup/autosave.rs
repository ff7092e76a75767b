//! Edge (writes). Automatic saving of the running server: off with a word left on the volume, and on again whatever happens.
//!
//! A new process always begins with saving switched on, so the word on the volume is of one process only.

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

/// For one short command. Longer than a tick stall.
const COMMAND: Duration = Duration::from_secs(20);

/// For `save-all flush`. The server obeys nobody meanwhile, whatever connection is used: a countdown begins after it, and so has this long to
/// wait at most.
const FLUSH: Duration = Duration::from_mins(5);

/// How many answers to `save-on` may be none that we know before we leave it at that. They are 15 s together.
const UNCLEAR: u32 = 5;

/// `saving-off.json`: saving may be off in the server that runs.
#[derive(Debug, Serialize)]
struct AutosaveOffMarker {
    request: String,
    since: Timestamp,
}

/// What came of switching saving on.
#[derive(Debug)]
pub(super) enum AutosaveResult {
    /// It was off until now.
    Now,
    /// It was on already: somebody else had switched it.
    Before,
    /// The process ended, or another one answers.
    Gone,
    /// The server answers something else. The word on the volume stays, for the next agent.
    Unclear(String),
}

/// Switches saving off and brings the worlds to the disk. Answers until when it may be off; or why the worlds cannot be read, and then
/// saving may be off all the same.
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

/// Switches saving on in the process `life`. Tries until the server says that it is, or that process is gone.
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
            // A server that is stopping answers nothing until it is gone.
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

/// For people, when the answer was [`AutosaveResult::Unclear`].
pub(super) fn still_off(answer: &str) -> String {
    format!(
        "saving may still be off, because the server answered `save-on` with `{}`: look at its console",
        answer.trim()
    )
}

/// Whether word was left that saving may be off.
pub(super) async fn is_noted(shared: &SidecarState) -> bool {
    let path = shared.volume.saving_off_path();
    tokio::task::spawn_blocking(move || is_there(&path)).await.unwrap_or(false)
}

/// Saving is on, or the process is gone in which it was off.
pub(super) async fn forget(shared: &SidecarState) {
    let path = shared.volume.saving_off_path();
    match tokio::task::spawn_blocking(move || Disk::new(RealFs).remove(&path)).await {
        Ok(Ok(())) => {}
        // It is switched on once more than needed.
        Ok(Err(error)) => warn!("{}", Chain(&error)),
        Err(error) => warn!("{error}"),
    }
}
