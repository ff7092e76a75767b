//! Edge (reads, and writes two records). Which process of the server was there last, so that its end is told where nobody saw it, too: of a pod
//! that was deleted by force, on a node that was lost, beside an agent that was away.

use std::sync::{Arc, PoisonError};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use tracing::{info, warn};

use super::Chain;
use super::server_log::{self, SavesTold};
use super::server_state::{PingResult, Sample, ServerMonitor};
use super::state::SidecarState;
use crate::protocol::{LastStop, NOBODY_SAW};
use crate::staging::fs_ops::{Disk, RealFs};
use crate::staging::{RecordError, Volume, read_record};
use crate::world::Worlds;

/// How often it is written down that the process is still there: when it ended unseen is known no better than this.
const NOTED_EVERY: SignedDuration = SignedDuration::from_mins(1);

/// Why the init container finds a process whose end is not written down.
const POD_GONE: &str = "its pod was deleted by force, or its node was lost or started anew";
/// And why an agent does that comes back to its pod.
const AGENT_AWAY: &str = "it ended while its agent was away, or was killed with it";

/// `running.json`: the process of the server that was there last. It has ended where `last-stop.json` is about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Running {
    /// When it was seen first. No other has the same.
    pub since: Timestamp,
    /// When it was seen last, to a minute.
    pub seen_at: Timestamp,
    /// The mark of its log, as far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
}

impl Running {
    /// Whether there is anything about it to be written down anew.
    fn go_on(&mut self, look: &Sample) -> bool {
        let knows_log = self.log.is_some() || look.log.is_none();
        if knows_log && look.at.duration_since(self.seen_at).abs() < NOTED_EVERY {
            return false;
        }
        self.seen_at = look.at;
        if self.log.is_none() {
            self.log.clone_from(&look.log);
        }
        true
    }
}

/// What an agent knows of the process that is there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProcessRecord {
    running: Option<Running>,
    /// An agent before this one has seen it. Whether it is the process of now is still to be found out.
    is_inherited: bool,
}

/// What follows from a look.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FollowUp {
    /// This process has ended, and nobody saw it.
    pub ended: Option<Running>,
    /// The record is not what lies on the volume any more.
    pub is_to_write: bool,
}

/// What becomes of a process that an agent before this one has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AdoptedProcess {
    Gone,
    ThisOne,
    NotKnownYet,
}

impl ProcessRecord {
    /// That of an agent that begins and finds this on the volume.
    pub fn inherit(running: Option<Running>) -> Self {
        Self { is_inherited: running.is_some(), running }
    }

    /// The process that is there, or was when somebody looked.
    pub fn running(&self) -> Option<&Running> {
        self.running.as_ref()
    }

    /// Takes one look into account, after the witness has.
    pub fn look(&mut self, look: &Sample, witness: &ServerMonitor) -> FollowUp {
        let mut ended = None;
        if self.is_inherited {
            match self.running.as_ref().map(|running| inherited(running, look, witness)) {
                Some(AdoptedProcess::NotKnownYet) => return FollowUp::default(),
                Some(AdoptedProcess::Gone) => ended = self.running.take(),
                Some(AdoptedProcess::ThisOne) | None => {}
            }
            self.is_inherited = false;
        }
        if witness.is_absent() {
            return FollowUp { ended, is_to_write: false };
        }
        let is_new = self.running.is_none();
        let begun = || Running { since: look.at, seen_at: look.at, log: look.log.clone() };
        let goes_on = self.running.get_or_insert_with(begun).go_on(look);
        FollowUp { ended, is_to_write: is_new || goes_on }
    }

    /// Its end was seen. When it was seen first.
    pub fn end(&mut self) -> Option<Timestamp> {
        self.is_inherited = false;
        self.running.take().map(|running| running.since)
    }
}

fn inherited(running: &Running, look: &Sample, witness: &ServerMonitor) -> AdoptedProcess {
    if witness.is_absent() {
        // Whoever has a world open holds its lock. Without a world there is none, and nobody knows.
        let is_free = look.pinged == PingResult::Refused && look.locked == Some(false);
        return if is_free { AdoptedProcess::Gone } else { AdoptedProcess::NotKnownYet };
    }
    match (&running.log, &look.log) {
        (Some(before), Some(now)) if before != now => AdoptedProcess::Gone,
        // It may begin its log in a moment. Once it is up, that was put away at midnight.
        (Some(_), None) if !witness.is_up() => AdoptedProcess::NotKnownYet,
        (Some(_) | None, _) => AdoptedProcess::ThisOne,
    }
}

/// The process whose end nobody has written down, by what lies on the volume. Waits for the disk.
pub fn unended(volume: &Volume) -> Option<Running> {
    let running: Option<Running> = read_or_warn(read_record(&volume.running_path()));
    let last: Option<LastStop> = read_or_warn(read_record(&volume.last_stop_path()));
    running.filter(|running| !last.is_some_and(|last| is_end_of(&last, running)))
}

fn read_or_warn<T>(read: Result<Option<T>, RecordError>) -> Option<T> {
    read.unwrap_or_else(|error| {
        warn!("{}", Chain(&error));
        None
    })
}

fn is_end_of(last: &LastStop, running: &Running) -> bool {
    match last.started_at {
        Some(started_at) => started_at == running.since,
        // Of an agent from before this was written down, which has come back with an older set.
        None => running.seen_at <= last.at,
    }
}

/// Writes down which process is there. Waits for the disk.
pub fn note(volume: &Volume, running: &Running) {
    if let Err(error) = Disk::new(RealFs).write_record(&volume.running_path(), running) {
        warn!("{}", Chain(&error));
    }
}

/// Writes down how a process ended, if nobody has for this one: the agent of a pod that was deleted by force may see the end after the next pod
/// has found it. What stands there then. Waits for the disk.
pub fn write_end(volume: &Volume, end: LastStop) -> LastStop {
    let last: Option<LastStop> = read_or_warn(read_record(&volume.last_stop_path()));
    if let Some(last) = last.filter(|last| end.started_at.is_some() && last.started_at == end.started_at) {
        info!("somebody else has told of this end");
        return last;
    }
    // Of one that nobody had seen before its end. Whichever was there before it is gone, too.
    let before = || read_or_warn::<Running>(read_record(&volume.running_path())).map(|running| running.since);
    let end = LastStop { started_at: end.started_at.or_else(before), ..end };
    if let Err(error) = Disk::new(RealFs).write_record(&volume.last_stop_path(), &end) {
        warn!("{}", Chain(&error));
    }
    end
}

/// For the init container, which holds the locks of these worlds: whatever process was there is gone. Waits for the disk.
pub(super) fn tell_of_before(volume: &Volume, worlds: &Worlds) {
    let Some(running) = unended(volume) else { return };
    if worlds.session_locks().is_empty() {
        // There is nothing that it could have saved.
        return forget(volume);
    }
    let end = unseen(&running, POD_GONE, saves_of(volume, &running));
    warn!("the server was seen last at {}, saved: {}: {}", end.at, end.saved, end.why);
    write_end(volume, end);
}

/// For the init container, right before a server may start: an agent of a pod that was deleted by force, which is still there, may have taken
/// these locks for those of a server. Waits for the disk.
pub(super) fn forget(volume: &Volume) {
    if let Err(error) = Disk::new(RealFs).remove(&volume.running_path()) {
        warn!("{}", Chain(&error));
    }
}

/// For the agent: this process has ended while it was away. `is_absent`: no other has begun, and the log is still that of this one. Waits for the
/// disk.
pub fn tell_of_missed(volume: &Volume, running: &Running, is_absent: bool) -> LastStop {
    let told = if is_absent { saves_of(volume, running) } else { SavesTold::default() };
    let end = unseen(running, AGENT_AWAY, told);
    warn!("the server was seen last at {}, saved: {}: {}", end.at, end.saved, end.why);
    write_end(volume, end)
}

/// An end of which nobody knows more than what lies on the volume.
fn unseen(running: &Running, because: &str, told: SavesTold) -> LastStop {
    let Running { since, seen_at, log: _ } = running;
    let by_its_log = if told.in_stop { "; its log says that all was saved as it stopped" } else { "" };
    LastStop {
        // A server that has saved was there still.
        at: told.last.map_or(*seen_at, |saved_at| saved_at.max(*seen_at)),
        saved: told.in_stop,
        why: format!("{NOBODY_SAW}: {because}{by_its_log}"),
        players: None,
        saved_at: told.last,
        started_at: Some(*since),
    }
}

/// What its log tells of saves. One that was not written since is that of a process before it.
fn saves_of(volume: &Volume, running: &Running) -> SavesTold {
    if server_log::changed_at(volume.root()).is_none_or(|changed_at| changed_at < running.since) {
        return SavesTold::default();
    }
    server_log::saves_told(volume.root()).unwrap_or_else(|error| {
        warn!("whether the server has saved is not known: {error}");
        SavesTold::default()
    })
}

/// Keeps the record of the process that a look has found, and tells of one whose end this agent has missed.
pub(super) async fn keep(shared: &Arc<SidecarState>, look: &Sample) {
    let (FollowUp { ended, is_to_write }, is_absent) = {
        let mut guard = shared.state();
        let state = &mut *guard;
        (state.record.look(look, &state.witness), state.witness.is_absent())
    };
    if let Some(running) = ended {
        let volume = shared.volume.clone();
        match tokio::task::spawn_blocking(move || tell_of_missed(&volume, &running, is_absent)).await {
            // Reported when it is on the disk, not before.
            Ok(end) => shared.state().last_stop = Some(end),
            Err(error) => warn!("{error}"),
        }
    }
    if is_to_write {
        // Beside the looks: a slow disk must make none of them late.
        let task = Arc::clone(shared);
        tokio::task::spawn_blocking(move || write_down(&task));
    }
}

/// Brings the record to the disk as it is now: of two at once the later one does not write what is older.
fn write_down(shared: &SidecarState) {
    let _turn = shared.record_turn.lock().unwrap_or_else(PoisonError::into_inner);
    let running = shared.state().record.running().cloned();
    // The agent of a pod that was deleted by force may take the locks of the next one for those of the server that it knows.
    let there = || read_or_warn::<Running>(read_record(&shared.volume.running_path()));
    if let Some(running) = running.filter(|running| there().is_none_or(|there| there.since <= running.since)) {
        note(&shared.volume, &running);
    }
}

#[cfg(test)]
mod tests;
