//! Edge (writes). Tells players how much time is left before a stop, with true times.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use tracing::{info, warn};

use super::console_session::ConsoleLease;
use super::state::SidecarState;
use super::{Chain, config, online_backup};
use crate::announcement::placeholder::{alone, fill};
use crate::announcement::{self, AnnouncementLine};
use crate::protocol::{Announce, CancelAnnouncement, Place};
use crate::rcon::{Error, Online};

/// The timeout of one command. A tick stall must not delay the following lines.
const LINE: Duration = Duration::from_secs(5);

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
    if state.announced.as_ref().is_some_and(|known| known.act == announce.act && known.ends == announce.ends) {
        return Ok(());
    }
    online_backup::countdown_begins(&state)?;
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
pub(super) async fn end(shared: &Arc<SidecarState>, call_off: &CancelAnnouncement) {
    {
        let mut state = shared.state();
        if state.announced.take_if(|known| known.act == call_off.act).is_none() {
            return;
        }
        if let Some(task) = state.announcing.take() {
            task.abort();
        }
    }
    info!("{} is called off", call_off.act);
    let act = shared.desk.act();
    if let Err(error) = act.console().await.tellraw_all(&call_off.text, LINE).await {
        warn!("nobody was told that it is called off: {}", Chain(&error));
    }
}

async fn count_down(shared: &Arc<SidecarState>, announce: &Announce) {
    let act = shared.desk.act();
    let mut last_said = said_before(shared, announce).await;
    while let Some(line) = announcement::next_line(announce.ends, last_said, shared.operators_now()) {
        let wait = line.at.duration_since(shared.operators_now());
        tokio::time::sleep(wait.try_into().unwrap_or(Duration::ZERO)).await;
        if announce.only_empty && somebody_is_on(shared, &act).await {
            return call_off(shared, &act, announce, last_said.is_some()).await;
        }
        for place in &announce.show {
            // A line that fails does not block the other places or the next line.
            if let Err(error) = say(shared, &act, announce, line, *place).await {
                warn!("a line was not shown as {place:?}: {}", Chain(&error));
            }
        }
        last_said = Some(line.left);
        note(shared, announce, line).await;
    }
}

fn note_path(shared: &SidecarState) -> PathBuf {
    shared.settings.shared.join(config::LAST_SAID)
}

/// The remaining time that an earlier agent of this pod stated in this countdown. An unreadable record counts as none. One line is then sent
/// again, with the time that is really left.
async fn said_before(shared: &SidecarState, announce: &Announce) -> Option<SignedDuration> {
    let bytes = tokio::fs::read(note_path(shared)).await.ok()?;
    let note: LastAnnounced = serde_json::from_slice(&bytes).ok()?;
    (note.act == announce.act && note.ends == announce.ends).then_some(note.left)
}

async fn note(shared: &SidecarState, announce: &Announce, line: AnnouncementLine) {
    let said = LastAnnounced { act: announce.act.clone(), ends: announce.ends, left: line.left };
    let bytes = serde_json::to_vec(&said).expect("strings and numbers");
    if let Err(error) = tokio::fs::write(note_path(shared), bytes).await {
        warn!("an agent after this one will not know what was said: {error}");
    }
}

/// Whether players are online by the server's own list. A ping is seconds old, and may not show all players. If the list cannot be read, the
/// operator decides, and it stops no server that it could not ask.
async fn somebody_is_on(shared: &SidecarState, act: &ConsoleLease) -> bool {
    match act.console().await.list(LINE).await {
        Ok(Online::Known { count, max: _ }) => {
            shared.state().witness.listed(count);
            count > 0
        }
        Ok(Online::Unknown) | Err(_) => false,
    }
}

/// Cancels a countdown that is only for an empty server. A player who joined may have read a line of it.
async fn call_off(shared: &SidecarState, act: &ConsoleLease, announce: &Announce, was_begun: bool) {
    info!("somebody joined: {} is called off", announce.act);
    // A second cancellation then sends no further line.
    shared.state().announced.take_if(|known| known.act == announce.act);
    let text = &shared.settings.called_off_text;
    if was_begun && let Err(error) = act.console().await.tellraw_all(text, LINE).await {
        warn!("nobody was told that it is called off: {}", Chain(&error));
    }
}

/// Sends a line to one place, with the time that is left now.
async fn say(
    shared: &SidecarState,
    act: &ConsoleLease,
    announce: &Announce,
    line: AnnouncementLine,
    place: Place,
) -> Result<(), Error> {
    let mut console = act.console().await;
    let Some(left) = line.left_at(announce.ends, shared.operators_now()) else { return Ok(()) };
    let short = announce.short.as_ref().unwrap_or(&announce.text);
    match place {
        Place::Chat => console.tellraw_all(&fill(&announce.text, left), LINE).await,
        Place::ActionBar => console.action_bar_all(&fill(short, left), LINE).await,
        Place::Title if line.is_big => console.title_all(&alone(short, left), &fill(short, left), LINE).await,
        Place::Title => Ok(()),
    }
}
