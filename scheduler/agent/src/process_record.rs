//! Edge (writes). Records the last server process, so that its end is also reported when no agent observed it.
//!
//! That happens when a pod was deleted by force, its node was lost, or its agent was down.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use tracing::{info, warn};

use super::ErrorChain;
use super::server_log::{self, LoggedSaves};
use super::server_state::{PingResult, Sample, ServerMonitor};
use crate::staging::fs_ops::{Disk, RealFs};
use crate::staging::{RecordError, Volume, read_record};
use crate::world::Worlds;
use agent_api::{LastStop, UNOBSERVED_STOP};

/// How often the record is updated while the process runs. An unobserved end is known only to this precision.
const RECORD_INTERVAL: SignedDuration = SignedDuration::from_mins(1);

/// Why the init container finds a process without a recorded end.
const POD_GONE: &str = "its pod was force-deleted, or its node failed or was restarted";
/// Why an agent that returns to its pod finds one.
const AGENT_AWAY: &str = "it exited while its agent was down, or was killed with it";

/// `running.json`: the last server process. If `last-stop.json` is about it, it has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Running {
    /// When it was first observed. It is unique to the process.
    pub since: Timestamp,
    /// When it was last observed, to a minute.
    pub seen_at: Timestamp,
    /// The mark of its log, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
}

impl Running {
    /// Whether its record must be written again.
    fn update(&mut self, sample: &Sample) -> bool {
        let knows_log = self.log.is_some() || sample.log.is_none();
        if knows_log && sample.at.duration_since(self.seen_at).abs() < RECORD_INTERVAL {
            return false;
        }
        self.seen_at = sample.at;
        if self.log.is_none() {
            self.log.clone_from(&sample.log);
        }
        true
    }
}

/// The agent's knowledge of the current process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProcessRecord {
    running: Option<Running>,
    /// Whether an earlier agent observed it. It is then not yet known whether it is the current process.
    is_inherited: bool,
}

/// The consequences of a sample.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FollowUp {
    /// A process that has ended unobserved.
    pub ended: Option<Running>,
    /// Whether the record differs from the one on the volume.
    pub needs_write: bool,
}

/// The state of a process that an earlier agent observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AdoptedProcess {
    Ended,
    Current,
    Unknown,
}

impl ProcessRecord {
    /// The record of an agent that starts and finds this on the volume.
    pub fn inherit(running: Option<Running>) -> Self {
        Self { is_inherited: running.is_some(), running }
    }

    /// The current process, or the one at the last sample.
    pub fn running(&self) -> Option<&Running> {
        self.running.as_ref()
    }

    /// Processes one sample, after the monitor has processed it.
    pub fn observe(&mut self, sample: &Sample, monitor: &ServerMonitor) -> FollowUp {
        let mut ended = None;
        if self.is_inherited {
            match self.running.as_ref().map(|running| classify_inherited(running, sample, monitor)) {
                Some(AdoptedProcess::Unknown) => return FollowUp::default(),
                Some(AdoptedProcess::Ended) => ended = self.running.take(),
                Some(AdoptedProcess::Current) | None => {}
            }
            self.is_inherited = false;
        }
        if monitor.is_absent() {
            return FollowUp { ended, needs_write: false };
        }
        let is_new = self.running.is_none();
        let begun = || Running { since: sample.at, seen_at: sample.at, log: sample.log.clone() };
        let has_changed = self.running.get_or_insert_with(begun).update(sample);
        FollowUp { ended, needs_write: is_new || has_changed }
    }

    /// Records an observed end. Returns when the process was first observed.
    pub fn end(&mut self) -> Option<Timestamp> {
        self.is_inherited = false;
        self.running.take().map(|running| running.since)
    }
}

fn classify_inherited(running: &Running, sample: &Sample, monitor: &ServerMonitor) -> AdoptedProcess {
    if monitor.is_absent() {
        // A process that has a world open holds its lock. Without a world no lock exists, and it is unknown.
        let is_free = sample.pinged == PingResult::Refused && sample.locked == Some(false);
        return if is_free { AdoptedProcess::Ended } else { AdoptedProcess::Unknown };
    }
    match (&running.log, &sample.log) {
        (Some(before), Some(now)) if before != now => AdoptedProcess::Ended,
        // The process may begin its log in a moment. If it is already up, its log was rotated at midnight.
        (Some(_), None) if !monitor.is_up() => AdoptedProcess::Unknown,
        (Some(_) | None, _) => AdoptedProcess::Current,
    }
}

/// The process on the volume's record without a recorded end. Blocks on the disk.
pub fn unended(volume: &Volume) -> Option<Running> {
    let running: Option<Running> = read_or_warn(read_record(&volume.running_path()));
    let last: Option<LastStop> = read_or_warn(read_record(&volume.last_stop_path()));
    running.filter(|running| !last.is_some_and(|last| is_end_of(&last, running)))
}

fn read_or_warn<T>(read: Result<Option<T>, RecordError>) -> Option<T> {
    read.unwrap_or_else(|error| {
        warn!("{}", ErrorChain(&error));
        None
    })
}

fn is_end_of(last: &LastStop, running: &Running) -> bool {
    match last.started_at {
        Some(started_at) => started_at == running.since,
        // Written by an older agent without this field, which has returned with an older version set.
        None => running.seen_at <= last.at,
    }
}

/// Records the current process. Blocks on the disk.
fn write_running(volume: &Volume, running: &Running) {
    if let Err(error) = Disk::new(RealFs).write_record(&volume.running_path(), running) {
        warn!("{}", ErrorChain(&error));
    }
}

/// Writes the record of the current process, unless the next pod has recorded a newer one. The agent of a pod that was deleted by force may mistake
/// the next pod's locks for those of its own server. Blocks on the disk.
pub fn write_running_unless_newer(volume: &Volume, running: &Running) {
    let recorded: Option<Running> = read_or_warn(read_record(&volume.running_path()));
    if recorded.is_none_or(|recorded| recorded.since <= running.since) {
        write_running(volume, running);
    }
}

/// Records how a process ended, unless its end is already recorded. The agent of a pod that was deleted by force may observe the end after the
/// next pod has recorded it. Returns the record on the volume. Blocks on the disk.
pub fn write_end(volume: &Volume, end: LastStop) -> LastStop {
    let last: Option<LastStop> = read_or_warn(read_record(&volume.last_stop_path()));
    if let Some(last) = last.filter(|last| end.started_at.is_some() && last.started_at == end.started_at) {
        info!("the exit is already recorded");
        return last;
    }
    // For a process that was not observed before its end. Any process before it has ended, too.
    let before = || read_or_warn::<Running>(read_record(&volume.running_path())).map(|running| running.since);
    let end = LastStop { started_at: end.started_at.or_else(before), ..end };
    if let Err(error) = Disk::new(RealFs).write_record(&volume.last_stop_path(), &end) {
        warn!("{}", ErrorChain(&error));
    }
    end
}

/// For the init container, which holds the locks of these worlds: any earlier process has ended. Blocks on the disk.
pub(super) fn record_previous_end(volume: &Volume, worlds: &Worlds) {
    let Some(running) = unended(volume) else { return };
    if worlds.session_locks().is_empty() {
        // Without a world, the process had no data to save.
        return remove_running(volume);
    }
    let end = unobserved_end(&running, POD_GONE, logged_saves(volume, &running));
    warn!("the server was last observed at {}, saved: {}: {}", end.at, end.saved, end.why);
    write_end(volume, end);
}

/// For the init container, right before a server may start. An agent of a pod that was deleted by force may still be running, and may have
/// mistaken these locks for those of a server. Blocks on the disk.
pub(super) fn remove_running(volume: &Volume) {
    if let Err(error) = Disk::new(RealFs).remove(&volume.running_path()) {
        warn!("{}", ErrorChain(&error));
    }
}

/// For the agent: this process has ended while the agent was down. `is_absent` states that no other process has begun, so the log is still that
/// of this one. Blocks on the disk.
pub fn record_missed_end(volume: &Volume, running: &Running, is_absent: bool) -> LastStop {
    let saves = if is_absent { logged_saves(volume, running) } else { LoggedSaves::default() };
    let end = unobserved_end(running, AGENT_AWAY, saves);
    warn!("the server was last observed at {}, saved: {}: {}", end.at, end.saved, end.why);
    write_end(volume, end)
}

/// The record of an end that is known only from the volume.
fn unobserved_end(running: &Running, because: &str, saves: LoggedSaves) -> LastStop {
    let Running { since, seen_at, log: _ } = running;
    let by_its_log = if saves.in_stop { ". Its log says that all was saved as it stopped" } else { "" };
    LastStop {
        // A server that has saved was still running.
        at: saves.last.map_or(*seen_at, |saved_at| saved_at.max(*seen_at)),
        saved: saves.in_stop,
        why: format!("{UNOBSERVED_STOP}: {because}{by_its_log}"),
        players: None,
        saved_at: saves.last,
        started_at: Some(*since),
    }
}

/// The saves in its log. A log that has not changed since belongs to an earlier process.
fn logged_saves(volume: &Volume, running: &Running) -> LoggedSaves {
    if server_log::changed_at(volume.root()).is_none_or(|changed_at| changed_at < running.since) {
        return LoggedSaves::default();
    }
    server_log::logged_saves(volume.root()).unwrap_or_else(|error| {
        warn!("it is unknown whether the server has saved: {error}");
        LoggedSaves::default()
    })
}

#[cfg(test)]
mod tests;
