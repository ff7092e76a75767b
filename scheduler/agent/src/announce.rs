//! Edge (writes). Tells players how much time is left before a stop, with true times.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use tracing::{info, warn};

use super::console_session::ConsoleLease;
use super::state::SidecarState;
use super::{ErrorChain, config, online_backup};
use crate::plain_fs;
use crate::rcon::{Error, Online};
use agent_api::{Announce, AnnouncementTarget, CancelAnnouncement};
use scheduler::announcement;
use scheduler::announcement::AnnouncementLine;
use scheduler::announcement::placeholder::{fill, remaining_time};

/// The timeout of one command. A tick stall must not delay the following lines.
const LINE_TIMEOUT: Duration = Duration::from_secs(5);

/// The largest record of it that is read, in bytes.
const MAX_RECORD_BYTES: u64 = 64 * 1024;

/// The last line that was sent, stored beside the socket. If the agent restarts, the next agent of this pod is given the same countdown and reads
/// here which lines were sent. The operator decides whether the countdown continues, because it may have cancelled it meanwhile.
#[derive(Debug, Serialize, Deserialize)]
struct LastAnnounced {
    act: String,
    ends: Timestamp,
    /// The remaining time that the line stated.
    left: SignedDuration,
}

/// Begins a countdown. The same disruption with the same end is not announced twice. The same disruption with another end is announced anew.
///
/// # Errors
///
/// The reason why it cannot begin yet. The operator then announces an end that leaves players the whole notice.
pub(super) fn begin(shared: &Arc<SidecarState>, announce: Announce) -> Result<(), &'static str> {
    let mut state = shared.state();
    if state.announced.as_ref().is_some_and(|current| current.act == announce.act && current.ends == announce.ends) {
        return Ok(());
    }
    online_backup::prepare_countdown(&state)?;
    if let Some(task) = state.announcing.take() {
        task.abort();
    }
    info!("announcing {}, which ends at {}", announce.act, announce.ends);
    state.announced = Some(announce.clone());
    let task = Arc::clone(shared);
    state.announcing = Some(tokio::spawn(async move { count_down(&task, &announce).await }));
    Ok(())
}

/// Ends the countdown of a disruption that does not happen, also one that has run out. Countdowns of other disruptions continue.
pub(super) async fn end(shared: &Arc<SidecarState>, cancellation: &CancelAnnouncement) {
    {
        let mut state = shared.state();
        if state.announced.take_if(|current| current.act == cancellation.act).is_none() {
            return;
        }
        if let Some(task) = state.announcing.take() {
            task.abort();
        }
    }
    info!("{} is cancelled", cancellation.act);
    let lease = shared.console.lease();
    if let Err(error) = lease.console().await.tellraw_all(&cancellation.text, LINE_TIMEOUT).await {
        warn!("could not tell players about the cancellation: {}", ErrorChain(&error));
    }
}

async fn count_down(shared: &Arc<SidecarState>, announce: &Announce) {
    let lease = shared.console.lease();
    let mut last_announced = read_last_announced(shared, announce).await;
    while let Some(line) = announcement::next_line(announce.ends, last_announced, shared.operator_now()) {
        let wait = line.at.duration_since(shared.operator_now());
        tokio::time::sleep(wait.try_into().unwrap_or(Duration::ZERO)).await;
        if announce.only_empty && has_players(shared, &lease).await {
            return cancel_countdown(shared, &lease, announce, last_announced.is_some()).await;
        }
        for place in &announce.show {
            // A line that fails does not block the other places or the next line.
            if let Err(error) = send_line(shared, &lease, announce, line, *place).await {
                warn!("a line was not shown as {place:?}: {}", ErrorChain(&error));
            }
        }
        last_announced = Some(line.left);
        record_line(shared, announce, line).await;
    }
}

fn last_announced_path(shared: &SidecarState) -> PathBuf {
    shared.settings.shared.join(config::LAST_ANNOUNCED)
}

/// The remaining time that an earlier agent of this pod stated in this countdown. An unreadable record counts as none. One line is then sent
/// again, with the time that is really left.
async fn read_last_announced(shared: &SidecarState, announce: &Announce) -> Option<SignedDuration> {
    let path = last_announced_path(shared);
    let read = tokio::task::spawn_blocking(move || plain_fs::read(&path, MAX_RECORD_BYTES)).await;
    let bytes = read.ok()?.ok()?;
    let record: LastAnnounced = serde_json::from_slice(&bytes).ok()?;
    (record.act == announce.act && record.ends == announce.ends).then_some(record.left)
}

async fn record_line(shared: &SidecarState, announce: &Announce, line: AnnouncementLine) {
    let last_announced = LastAnnounced { act: announce.act.clone(), ends: announce.ends, left: line.left };
    let bytes = serde_json::to_vec(&last_announced).expect("strings and numbers");
    let path = last_announced_path(shared);
    let written = tokio::task::spawn_blocking(move || plain_fs::write_anew(&path, &bytes)).await;
    if let Err(error) = written.map_err(io::Error::other).flatten() {
        warn!("the next agent will not know this announcement: {error}");
    }
}

/// Whether players are online by the server's own list. A ping is seconds old, and may not show all players. If the list cannot be read, the
/// operator decides, and it stops no server that it could not ask.
async fn has_players(shared: &SidecarState, lease: &ConsoleLease) -> bool {
    match lease.console().await.list(LINE_TIMEOUT).await {
        Ok(Online::Known { count, max: _ }) => {
            shared.state().monitor.observe_console_count(count);
            count > 0
        }
        Ok(Online::Unknown) | Err(_) => false,
    }
}

/// Cancels a countdown that is only for an empty server. A player who joined may have read a line of it.
async fn cancel_countdown(shared: &SidecarState, lease: &ConsoleLease, announce: &Announce, was_begun: bool) {
    info!("a player joined: {} is cancelled", announce.act);
    // A second cancellation then sends no further line.
    shared.state().announced.take_if(|current| current.act == announce.act);
    let text = &shared.settings.called_off_text;
    if was_begun && let Err(error) = lease.console().await.tellraw_all(text, LINE_TIMEOUT).await {
        warn!("could not tell players about the cancellation: {}", ErrorChain(&error));
    }
}

/// Sends a line to one place, with the time that is left now.
async fn send_line(
    shared: &SidecarState,
    lease: &ConsoleLease,
    announce: &Announce,
    line: AnnouncementLine,
    place: AnnouncementTarget,
) -> Result<(), Error> {
    let mut console = lease.console().await;
    let Some(left) = line.left_at(announce.ends, shared.operator_now()) else { return Ok(()) };
    let short = announce.short.as_ref().unwrap_or(&announce.text);
    match place {
        AnnouncementTarget::Chat => console.tellraw_all(&fill(&announce.text, left), LINE_TIMEOUT).await,
        AnnouncementTarget::ActionBar => console.action_bar_all(&fill(short, left), LINE_TIMEOUT).await,
        AnnouncementTarget::Title if line.is_big => {
            console.title_all(&remaining_time(short, left), &fill(short, left), LINE_TIMEOUT).await
        }
        AnnouncementTarget::Title => Ok(()),
    }
}
