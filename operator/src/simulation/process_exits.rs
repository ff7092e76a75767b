//! Edge (writes). Tracks how processes of the server end, and checks the agent's records and the operator's Events
//! about them.
//!
//! It covers stops without a save, and version sets that were applied or rolled back.

use std::collections::BTreeSet;

use agent::process_record;
use agent::process_record::{FollowUp, ProcessRecord};
use agent::server_state::Sample;
use agent::staging::Volume;
use agent_api::{LastStop, UNOBSERVED_STOP, UNREQUESTED_STOP};
use jiff::{SignedDuration, Timestamp, Unit};
use serde_json::Value;

use super::cluster::SimCluster;
use super::fake_kubelet::Phase;
use crate::clock::now;

/// The Event of a stop without a confirmed save.
const UNSAVED: &str = "StoppedUnsaved";
/// The Events of a version set that was applied and stays.
const STABLE_EVENTS: &[&str] = &["UpdateApplied", "UpdateUnverified"];
/// The Event of a version set that was rolled back.
const ROLLBACK_EVENTS: &[&str] = &["UpdateRolledBack"];

/// The operator has read a record by then, if it can reach the agent.
const READ_WITHIN: SignedDuration = SignedDuration::from_mins(10);
/// Records on the volume of more than a day ago cause no Event. The value allows for a difference of the clocks.
const EVENT_MAX_AGE: SignedDuration = SignedDuration::from_mins(24 * 60 - 5);
/// The longest time between an action of a pass and its Event, without a fault between them.
const EVENT_WITHIN: SignedDuration = SignedDuration::from_mins(2);
/// This number of stops within an hour is a loop, which is reported instead of each stop.
const LOOP_STOPS: usize = 3;

/// The known stops, and the Events that must be published.
#[derive(Debug, Default)]
pub(super) struct ExitInvariants {
    /// All records of the agent or the init container. The last one is on the volume.
    recorded: Vec<LastStop>,
    /// When a process was first seen whose end is not recorded.
    running_since: Option<Timestamp>,
    /// Reasons of Events that did not arrive and are not sent again.
    lost_events: BTreeSet<String>,
    /// Times of faults between an action of a pass and its Event.
    faults: Vec<Timestamp>,
    /// Two processes of the operator wrote the status, each from its own memory.
    pub(super) had_two_writers: bool,
    /// When another version set became stable.
    marked_stable: Vec<Timestamp>,
    /// When a version set in rollout was rolled back.
    rolled_back: Vec<Timestamp>,
}

/// A stop that the agent was asked for.
#[derive(Debug)]
pub(super) struct RequestedStop {
    saved: bool,
    why: &'static str,
    players: u32,
}

impl ExitInvariants {
    pub(super) fn record_lost_event(&mut self, reason: &str) {
        self.lost_events.insert(reason.to_owned());
    }

    pub(super) fn record_fault(&mut self, at: Timestamp) {
        self.faults.push(at);
    }

    pub(super) fn record_stable(&mut self) {
        self.marked_stable.push(now());
    }

    pub(super) fn record_rollback(&mut self) {
        self.rolled_back.push(now());
    }

    /// Whether a fault at that time may have prevented the Event.
    fn had_fault_at(&self, at: Timestamp) -> bool {
        self.faults.iter().any(|fault| fault.duration_since(at).abs() <= EVENT_WITHIN)
    }
}

impl SimCluster {
    /// The record on the volume about the last stop.
    pub(super) fn last_stop(&self) -> Option<LastStop> {
        self.stops.recorded.last().cloned()
    }

    /// The preStop hook of a pod asks the agent to stop the server, if both run.
    pub(super) fn request_agent_stop(&mut self) {
        let players = self.players;
        let Some(pod) = self.pod.as_mut().filter(|pod| pod.agent.is_reachable()) else { return };
        let (saved, why) = match pod.phase {
            Phase::Booting => (false, "stopped by SIGTERM, before it had answered"),
            Phase::Up if !pod.has_rcon() && !pod.is_hanging() => {
                (true, "stopped by SIGTERM, because RCON is disabled. Its log says that all was saved as it stopped")
            }
            Phase::Up if pod.accepts_commands() => (true, "stopped on request, after `save-all flush` was confirmed"),
            Phase::Up if pod.is_hanging() => {
                (false, "stopped on request, but `save-all flush` was not confirmed: no answer")
            }
            Phase::Up => (true, "stopped on request. Its log says that all was saved as it stopped"),
            Phase::Pending
            | Phase::NodeLost
            | Phase::Preparing
            | Phase::Refused(_)
            | Phase::Exited
            | Phase::Stopping => {
                return;
            }
        };
        pod.agent.pending_stop = Some(RequestedStop { saved, why, players });
    }

    /// The process that the agent had to stop has ended.
    pub(super) fn record_requested_stop(&mut self) {
        if self.pod.as_ref().is_some_and(|pod| pod.agent.pending_stop.is_some()) {
            self.record_stop();
        }
    }

    /// The agent has seen the end of the server's process, and records it.
    pub(super) fn record_stop(&mut self) {
        self.load_process_record();
        let Some(pod) = self.pod.as_mut().filter(|pod| pod.agent.is_reachable()) else { return };
        let at = pod.agent.clock();
        let started_at = pod.agent.record.as_mut().and_then(ProcessRecord::end);
        let saved_at = pod.agent.saved_at.filter(|saved_at| pod.started_at <= *saved_at);
        let end = if let Some(RequestedStop { saved, why, players }) = pod.agent.pending_stop.take() {
            LastStop { at, saved, why: why.to_owned(), players: Some(players), saved_at, started_at }
        } else {
            let why = format!("{UNREQUESTED_STOP}: a crash, a kill, or /stop");
            LastStop { at, saved: false, why, players: None, saved_at, started_at }
        };
        self.trace(format!("agent: records that the server has stopped, saved: {}", end.saved));
        let end = process_record::write_end(&Volume::new(self.disks.data()), end);
        self.stops.running_since = None;
        self.stops.recorded.push(end);
    }

    /// An agent that answers has read the record on the volume.
    fn load_process_record(&mut self) {
        let volume = Volume::new(self.disks.data());
        if let Some(pod) = self.pod.as_mut().filter(|pod| pod.agent.is_reachable()) {
            pod.agent.record.get_or_insert_with(|| ProcessRecord::inherit(process_record::unended(&volume)));
        }
    }

    /// Keeps the real agent's record of the running process, and its report of one whose end it has missed.
    pub(super) fn update_process_record(&mut self, sample: &Sample) {
        self.load_process_record();
        let volume = Volume::new(self.disks.data());
        let Some(pod) = self.pod.as_mut().filter(|pod| pod.agent.is_reachable()) else { return };
        let is_absent = pod.agent.monitor.is_absent();
        let record = pod.agent.record.as_mut().expect("the record was loaded");
        let FollowUp { ended, needs_write } = record.observe(sample, &pod.agent.monitor);
        let running = record.running().cloned().filter(|_| needs_write);
        if let Some(ended) = ended {
            let end = process_record::record_missed_end(&volume, &ended, is_absent);
            self.trace("agent: records a stop of the server that it did not observe");
            self.stops.running_since = None;
            self.stops.recorded.push(end);
        }
        if let Some(running) = running {
            process_record::write_running_unless_newer(&volume, &running);
            self.stops.running_since = Some(running.since);
        }
    }

    /// The init container has ended: it must have recorded a process that ended together with its agent, by a forced
    /// deletion or a lost node. It must record nothing else.
    pub(super) fn check_unseen_stop(&mut self) {
        let last = std::fs::read(Volume::new(self.disks.data()).last_stop_path()).ok();
        let last: Option<LastStop> = last.map(|bytes| serde_json::from_slice(&bytes).expect("a record of a stop"));
        let Some(since) = self.stops.running_since.take() else {
            let is_recorded = last == self.last_stop();
            return self.check(is_recorded, "the init container records only stops that happened");
        };
        let is_unseen_stop =
            |end: &LastStop| end.started_at == Some(since) && end.why.starts_with(UNOBSERVED_STOP) && !end.saved;
        let end = last.filter(is_unseen_stop);
        self.check(end.is_some(), "a stop together with the agent is recorded");
        if let Some(end) = end {
            self.trace(format!("init container: records the stop of a server that was last seen at {}", end.at));
            self.stops.recorded.push(end);
        }
    }

    /// The operator has written the status. If it first names a stop without a confirmed save, an Event must report it.
    pub(super) fn observe_status(&mut self, before: Option<&Value>) {
        let Ok(server) = self.objects.get(&self.server_key()) else { return };
        let (old, new) = (before.map(|before| before["status"].clone()).unwrap_or_default(), server["status"].clone());
        let reported = &new["lastStop"];
        if reported.is_null() || reported["at"] == old["lastStop"]["at"] {
            return;
        }
        let at: Option<Timestamp> = time(&reported["at"]);
        let Some(end) = self.stops.recorded.iter().find(|end| Some(end.at) == at).cloned() else {
            return self.check(false, "the status reports only stops that happened");
        };
        self.check(reported["saved"] == end.saved, "the status agrees with the record of the stop");
        let is_loop = is_in_a_loop(&old) || is_in_a_loop(&new);
        let is_too_old = end.at + EVENT_MAX_AGE <= now() && !end.why.starts_with(UNOBSERVED_STOP);
        let has_event = self.events(&[UNSAVED]).iter().any(|(_, note)| note.contains(&stop_time_text(end.at)));
        let is_event_lost = self.stops.lost_events.contains(UNSAVED);
        let is_right =
            end.saved || self.was_stopped_in_game(end.at) || is_loop || is_too_old || has_event || is_event_lost;
        self.check(is_right, "an Event reports each stop without a confirmed save");
    }

    /// Checks that Events are true, and that each applied or rolled back version set has one.
    pub(super) fn check_events(&mut self) {
        for (_, note) in self.events(&[UNSAVED]) {
            let is_true = self.stops.recorded.iter().any(|end| !end.saved && note.contains(&stop_time_text(end.at)));
            self.check(is_true, "Events report only unsaved stops that happened");
        }
        let (marked_stable, rolled_back) = (self.stops.marked_stable.clone(), self.stops.rolled_back.clone());
        let all = [
            (marked_stable, STABLE_EVENTS, "an Event reports each stable version set"),
            (rolled_back, ROLLBACK_EVENTS, "an Event reports each rollback"),
        ];
        for (done, reasons, rule) in all {
            let published: Vec<Timestamp> = self.events(reasons).into_iter().filter_map(|(at, _)| at).collect();
            // The same text is not published twice.
            let has_event = |at: Timestamp| published.iter().any(|published| *published <= at + EVENT_WITHIN);
            let lacks_event = |at: &&Timestamp| !self.stops.had_fault_at(**at) && !has_event(**at);
            let missing = done.iter().find(lacks_event).copied();
            self.check(missing.is_none(), rule);
        }
    }

    /// At the end the status must name the last stop, if the agent was reachable for long enough.
    pub(super) fn check_last_stop(&mut self) {
        let has_answered = |from: Timestamp| from + READ_WITHIN < now();
        let could_read = self.pod.as_ref().and_then(|pod| pod.agent.reachable_from).is_some_and(has_answered);
        let Some(end) = self.last_stop().filter(|end| could_read && end.at + READ_WITHIN < now()) else { return };
        let server = self.objects.get(&self.server_key()).expect("the server object exists");
        let reported = &server["status"]["lastStop"];
        let is_reported = time(&reported["at"]) == Some(end.at) && reported["saved"] == end.saved;
        let is_right = is_reported || self.stops.had_two_writers;
        self.check(is_right, "the status reports the last stop at the end");
    }

    /// All Events with one of these reasons: their times and texts.
    fn events(&self, reasons: &[&str]) -> Vec<(Option<Timestamp>, String)> {
        let all = self.objects.list("events", &[]).into_iter();
        let selected = all.filter(|event| event["reason"].as_str().is_some_and(|reason| reasons.contains(&reason)));
        let time_and_note =
            |event: &Value| (time(&event["eventTime"]), event["note"].as_str().unwrap_or_default().to_owned());
        selected.map(time_and_note).collect()
    }
}

/// Whether a status reports a process that ends repeatedly.
fn is_in_a_loop(status: &Value) -> bool {
    let ends = status["crashes"]["at"].as_array().map_or(0, Vec::len);
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    ends >= LOOP_STOPS || conditions.any(|condition| condition["type"] == "CrashLoop")
}

fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

/// The time in the operator's format for Events.
fn stop_time_text(at: Timestamp) -> String {
    format!("stopped at {}", at.round(Unit::Second).unwrap_or(at))
}
