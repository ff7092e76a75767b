//! Edge (writes). Tracks how processes of the server end, and checks the agent's records and the operator's Events
//! about them.
//!
//! It covers stops without a save, and version sets that were applied or rolled back.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp, Unit};
use scheduler::agent::process_record::{self, FollowUp, ProcessRecord};
use scheduler::agent::server_state::Sample;
use scheduler::protocol::{LastStop, NOBODY_ASKED, NOBODY_SAW};
use scheduler::staging::Volume;
use serde_json::Value;

use super::cluster::SimCluster;
use super::fake_kubelet::Phase;
use crate::clock::now;

/// The Event of a stop without a confirmed save.
const UNSAVED: &str = "StoppedUnsaved";
/// The Events of a version set that was applied and stays.
const CAME: &[&str] = &["UpdateApplied", "UpdateUnverified"];
/// The Event of a version set that was rolled back.
const WENT: &[&str] = &["UpdateRolledBack"];

/// The operator has read a record by then, if it can reach the agent.
const READ_WITHIN: SignedDuration = SignedDuration::from_mins(10);
/// Records on the volume of more than a day ago cause no Event. The value allows for a difference of the clocks.
const NO_NEWS: SignedDuration = SignedDuration::from_mins(24 * 60 - 5);
/// The longest time between an action of a pass and its Event, without a fault between them.
const TOLD_WITHIN: SignedDuration = SignedDuration::from_mins(2);
/// This number of stops within an hour is a loop, which is reported instead of each stop.
const MAKE_A_LOOP: usize = 3;

/// The known stops, and the Events that must be published.
#[derive(Debug, Default)]
pub(super) struct Ends {
    /// All records of the agent or the init container. The last one is on the volume.
    written: Vec<LastStop>,
    /// When a process was first seen whose end is not recorded.
    open: Option<Timestamp>,
    /// Reasons of Events that did not arrive and are not sent again.
    lost: BTreeSet<String>,
    /// Times of faults between an action of a pass and its Event.
    strikes: Vec<Timestamp>,
    /// Two processes of the operator wrote the status, each from its own memory.
    pub(super) had_two_writers: bool,
    /// When another version set became stable.
    came: Vec<Timestamp>,
    /// When a version set in rollout was rolled back.
    went: Vec<Timestamp>,
}

/// A stop that the agent was asked for.
#[derive(Debug)]
pub(super) struct Sent {
    saved: bool,
    why: &'static str,
    players: u32,
}

impl Ends {
    pub(super) fn note_lost(&mut self, reason: &str) {
        self.lost.insert(reason.to_owned());
    }

    pub(super) fn note_strike(&mut self, at: Timestamp) {
        self.strikes.push(at);
    }

    pub(super) fn note_came(&mut self) {
        self.came.push(now());
    }

    pub(super) fn note_went(&mut self) {
        self.went.push(now());
    }

    /// Whether a fault at that time may have prevented the Event.
    fn is_struck_at(&self, at: Timestamp) -> bool {
        self.strikes.iter().any(|strike| strike.duration_since(at).abs() <= TOLD_WITHIN)
    }
}

impl SimCluster {
    /// The record on the volume about the last stop.
    pub(super) fn last_end(&self) -> Option<LastStop> {
        self.ends.written.last().cloned()
    }

    /// The preStop hook of a pod asks the agent to stop the server, if both run.
    pub(super) fn ask_agent_to_stop(&mut self) {
        let players = self.players;
        let Some(pod) = self.pod.as_mut().filter(|pod| pod.agent.answers()) else { return };
        let (saved, why) = match pod.phase {
            Phase::Booting => (false, "stopped by SIGTERM, before it had answered"),
            Phase::Up if !pod.has_rcon() && !pod.hangs() => (
                true,
                "stopped by SIGTERM, because RCON is switched off; its log says that all was saved as it stopped",
            ),
            Phase::Up if pod.obeys() => (true, "stopped on request, after `save-all flush` was confirmed"),
            Phase::Up if pod.hangs() => (false, "stopped on request; `save-all flush` was not confirmed: no answer"),
            Phase::Up => (true, "stopped on request; its log says that all was saved as it stopped"),
            Phase::Pending | Phase::Lost | Phase::Preparing | Phase::Refused(_) | Phase::Ended | Phase::Stopping => {
                return;
            }
        };
        pod.agent.stop = Some(Sent { saved, why, players });
    }

    /// The process that the agent had to stop has ended.
    pub(super) fn note_end_of_stop(&mut self) {
        if self.pod.as_ref().is_some_and(|pod| pod.agent.stop.is_some()) {
            self.write_end();
        }
    }

    /// The agent has seen the end of the server's process, and records it.
    pub(super) fn write_end(&mut self) {
        self.agent_remembers();
        let Some(pod) = self.pod.as_mut().filter(|pod| pod.agent.answers()) else { return };
        let at = pod.agent.clock();
        let started_at = pod.agent.record.as_mut().and_then(ProcessRecord::end);
        let saved_at = pod.agent.saved_at.filter(|saved_at| pod.started_at <= *saved_at);
        let end = if let Some(Sent { saved, why, players }) = pod.agent.stop.take() {
            LastStop { at, saved, why: why.to_owned(), players: Some(players), saved_at, started_at }
        } else {
            let why = format!("{NOBODY_ASKED}: a crash, a kill, or /stop");
            LastStop { at, saved: false, why, players: None, saved_at, started_at }
        };
        self.tell(format!("agent: records that the server has stopped, saved: {}", end.saved));
        let end = process_record::write_end(&Volume::new(self.disks.data()), end);
        self.ends.open = None;
        self.ends.written.push(end);
    }

    /// An agent that answers has read the record on the volume.
    fn agent_remembers(&mut self) {
        let volume = Volume::new(self.disks.data());
        if let Some(pod) = self.pod.as_mut().filter(|pod| pod.agent.answers()) {
            pod.agent.record.get_or_insert_with(|| ProcessRecord::inherit(process_record::unended(&volume)));
        }
    }

    /// Keeps the real agent's record of the running process, and its report of one whose end it has missed.
    pub(super) fn keep_record(&mut self, look: &Sample) {
        self.agent_remembers();
        let volume = Volume::new(self.disks.data());
        let Some(pod) = self.pod.as_mut().filter(|pod| pod.agent.answers()) else { return };
        let is_absent = pod.agent.witness.is_absent();
        let record = pod.agent.record.as_mut().expect("it was read above");
        let FollowUp { ended, is_to_write } = record.look(look, &pod.agent.witness);
        let there = record.running().cloned().filter(|_| is_to_write);
        if let Some(ended) = ended {
            let end = process_record::tell_of_missed(&volume, &ended, is_absent);
            self.tell("agent: records a stop of the server that it did not see");
            self.ends.open = None;
            self.ends.written.push(end);
        }
        if let Some(there) = there {
            process_record::note(&volume, &there);
            self.ends.open = Some(there.since);
        }
    }

    /// The init container has ended: it must have recorded a process that ended together with its agent, by a forced
    /// deletion or a lost node. It must record nothing else.
    pub(super) fn find_unseen_end(&mut self) {
        let last = std::fs::read(Volume::new(self.disks.data()).last_stop_path()).ok();
        let last: Option<LastStop> = last.map(|bytes| serde_json::from_slice(&bytes).expect("an end of the server"));
        let Some(since) = self.ends.open.take() else {
            let is_known = last == self.last_end();
            return self.must(is_known, "the init container writes down an end of the server that there was not");
        };
        let is_of_it = |end: &LastStop| end.started_at == Some(since) && end.why.starts_with(NOBODY_SAW) && !end.saved;
        let end = last.filter(is_of_it);
        self.must(end.is_some(), "a server has ended together with its agent, and nobody tells of it");
        if let Some(end) = end {
            self.tell(format!("init container: records the stop of a server that was last seen at {}", end.at));
            self.ends.written.push(end);
        }
    }

    /// The operator has written the status. If it first names a stop without a confirmed save, an Event must report it.
    pub(super) fn notice_status(&mut self, before: Option<&Value>) {
        let Ok(server) = self.objects.get(&self.key_of_server()) else { return };
        let (old, new) = (before.map(|before| before["status"].clone()).unwrap_or_default(), server["status"].clone());
        let said = &new["lastStop"];
        if said.is_null() || said["at"] == old["lastStop"]["at"] {
            return;
        }
        let at: Option<Timestamp> = time(&said["at"]);
        let Some(end) = self.ends.written.iter().find(|end| Some(end.at) == at).cloned() else {
            return self.must(false, "the status tells of an end of the server that there was not");
        };
        self.must(said["saved"] == end.saved, "the status does not tell of an end what was written down");
        let is_loop = is_in_a_loop(&old) || is_in_a_loop(&new);
        let is_no_news = end.at + NO_NEWS <= now() && !end.why.starts_with(NOBODY_SAW);
        let is_told = self.events(&[UNSAVED]).iter().any(|(_, note)| note.contains(&in_seconds(end.at)));
        let is_lost = self.ends.lost.contains(UNSAVED);
        let is_right = end.saved || self.was_stopped_in_game(end.at) || is_loop || is_no_news || is_told || is_lost;
        self.must(is_right, "a server has stopped without a confirmed save, and no Event tells of it");
    }

    /// Checks that Events are true, and that each applied or rolled back version set has one.
    pub(super) fn judge_events(&mut self) {
        for (_, note) in self.events(&[UNSAVED]) {
            let is_true = self.ends.written.iter().any(|end| !end.saved && note.contains(&in_seconds(end.at)));
            self.must(is_true, "an Event tells of an end without a save that there was not");
        }
        let (came, went) = (self.ends.came.clone(), self.ends.went.clone());
        let all = [(came, CAME, "a set has settled without a word"), (went, WENT, "a set is left without a word")];
        for (done, reasons, rule) in all {
            let told: Vec<Timestamp> = self.events(reasons).into_iter().filter_map(|(at, _)| at).collect();
            // The same text is not published twice.
            let is_told = |at: Timestamp| told.iter().any(|told| *told <= at + TOLD_WITHIN);
            let is_untold = |at: &&Timestamp| !self.ends.is_struck_at(**at) && !is_told(**at);
            let untold = done.iter().find(is_untold).copied();
            self.must(untold.is_none(), rule);
        }
    }

    /// At the end the status must name the last stop, if the agent was reachable for long enough.
    pub(super) fn judge_last_end(&mut self) {
        let has_answered = |from: Timestamp| from + READ_WITHIN < now();
        let could_ask = self.pod.as_ref().and_then(|pod| pod.agent.answers_from).is_some_and(has_answered);
        let Some(end) = self.last_end().filter(|end| could_ask && end.at + READ_WITHIN < now()) else { return };
        let server = self.objects.get(&self.key_of_server()).expect("nobody deletes it");
        let said = &server["status"]["lastStop"];
        let is_said = time(&said["at"]) == Some(end.at) && said["saved"] == end.saved;
        let is_right = is_said || self.ends.had_two_writers;
        self.must(is_right, "the status does not say in the end how the server has stopped last");
    }

    /// All Events with one of these reasons: their times and texts.
    fn events(&self, reasons: &[&str]) -> Vec<(Option<Timestamp>, String)> {
        let all = self.objects.list("events", &[]).into_iter();
        let asked_for = all.filter(|event| event["reason"].as_str().is_some_and(|reason| reasons.contains(&reason)));
        let told = |event: &Value| (time(&event["eventTime"]), event["note"].as_str().unwrap_or_default().to_owned());
        asked_for.map(told).collect()
    }
}

/// Whether a status reports a process that ends repeatedly.
fn is_in_a_loop(status: &Value) -> bool {
    let ends = status["crashes"]["at"].as_array().map_or(0, Vec::len);
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    ends >= MAKE_A_LOOP || conditions.any(|condition| condition["type"] == "CrashLoop")
}

fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

/// The time in the operator's format for Events.
fn in_seconds(at: Timestamp) -> String {
    format!("stopped at {}", at.round(Unit::Second).unwrap_or(at))
}
