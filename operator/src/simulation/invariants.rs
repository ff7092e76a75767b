//! Edge (writes). Checks the invariants of every run, at the moment when each could be broken.
//!
//! The checks use the knowledge of players, the disk and the run itself. The operator's own records count only where
//! they claim that the server is up to date.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use scheduler::observation::Revision;
use scheduler::protocol::Announce;
use scheduler::rollout::DECISION_COUNTS;
use serde_json::Value;

use super::cluster::{SimCluster, facts_of};
use super::fake_kubelet::Phase;
use super::scenario::{DEADLINE, EMPTY_FOR, EVERY, Extra, Scenario, SetBehaviour};
use super::user_actions::ASKED_FOR;
use crate::clock::now;
use crate::k8s::labels::LOCK_DIGEST;
use crate::template_revision::revision_of;

/// The longest time between a decision and its write without a fence: one request.
pub(super) const ON_ITS_WAY: SignedDuration = SignedDuration::from_secs(10);
/// How long after the end of a countdown the server may still be stopped for it, and how old its save may be.
const COUNTS: SignedDuration = SignedDuration::from_mins(11);
/// The notice to players in the spec.
pub(super) const NOTICE: SignedDuration = SignedDuration::from_mins(5);
/// `--start-seconds`.
pub(super) const START: SignedDuration = SignedDuration::from_mins(10);
/// `--first-start-seconds`: that of a newer Minecraft.
const FIRST_START: SignedDuration = SignedDuration::from_mins(30);
/// `gracefulShutdown.timeout`: an agent that is unreachable for this long delays no update.
const PATIENCE: SignedDuration = SignedDuration::from_mins(1);
/// How long after its scheduled time a scheduled restart may begin.
const BEGUN_WITHIN: SignedDuration = SignedDuration::from_mins(30);
/// A player who joined more recently may not be known to the agent yet.
const JUST_JOINED: SignedDuration = SignedDuration::from_secs(75);
/// `--settle-seconds`.
pub(super) const SETTLES: SignedDuration = SignedDuration::from_mins(1);

/// The events of the run so far.
#[derive(Debug, Default)]
pub(super) struct InvariantState {
    /// Revisions of working version sets that were up long enough. A rollback to one of them needs no window.
    proven: BTreeSet<Revision>,
    /// Revisions of failing version sets that were tried and rolled back.
    left: BTreeSet<Revision>,
    /// How often the server was stopped for a revision that was not verified.
    stopped_for: BTreeMap<Revision, u32>,
    /// Revisions that the partition blocked again before the controller had replaced the pod.
    taken_back: BTreeSet<Revision>,
    /// A working process crashed repeatedly.
    pub(super) crashed_on: bool,
    /// Times of scheduled restarts, and how often the server was stopped for each.
    restarts: BTreeMap<Timestamp, u32>,
    /// Until then a user's request for an immediate update is valid.
    pub(super) asked_until: Option<Timestamp>,
    /// Since when a user has suspended the server.
    pub(super) suspended_since: Option<Timestamp>,
    /// Revisions that the server may have been stopped for: the partition let them through without an obstacle.
    opened_for: BTreeSet<Revision>,
    /// Version sets that a user has approved.
    pub(super) approved: BTreeSet<String>,
    /// When a user fixed the cause of the failures of newer version sets.
    pub(super) mended_at: Option<Timestamp>,
    /// How often another version set than the earlier one replaced a failing one.
    pub(super) gone_forward: u32,
    /// The first start came after the release.
    pub(super) began_with_the_newest: bool,
    /// A fault occurred during a rollout: the operator may have rolled back a good version set, and may not have
    /// verified a bad one.
    pub(super) disturbed: bool,
}

pub(super) fn revision(template: &Value) -> Revision {
    let template: PodTemplateSpec = serde_json::from_value(template.clone()).expect("a template");
    revision_of(&template)
}

pub(super) fn is_asleep(object: &Value) -> bool {
    object["spec"]["replicas"] == 0
}

pub(super) fn is_open(set: &Value) -> bool {
    set["spec"]["updateStrategy"]["rollingUpdate"]["partition"] == 0
}

impl SimCluster {
    /// The operator has written the `StatefulSet`.
    pub(super) fn notice_set(&mut self, before: Option<&Value>) {
        let set = self.objects.get(&self.key_of_set()).expect("it was just written").clone();
        let stands = revision(&set["spec"]["template"]);
        let stood = before.map(|before| revision(&before["spec"]["template"]));
        let was_open = before.is_some_and(is_open);
        let says = match (was_open, is_open(&set)) {
            _ if before.is_none() => "creates the StatefulSet",
            _ if Some(stands) != stood && is_open(&set) => "writes the pod template, with partition 0",
            _ if Some(stands) != stood => "writes the pod template, with partition 1",
            (false, true) => "sets partition 0: the pod may be replaced",
            (true, false) => "sets partition 1: the pod is kept",
            (true, true) | (false, false) => "notes a fact on the StatefulSet",
        };
        if is_asleep(&set) && !before.is_some_and(is_asleep) {
            self.check_put_to_sleep();
        }
        let is_fact_only = says.starts_with("notes");
        if !is_fact_only || !self.is_scripted() {
            self.tell(format!("operator: {says} (revision {stands})"));
        }
        let is_update = self.is_update(stands);
        let may_begin = self.may_begin();
        let runs = self.pod.as_ref().and_then(|pod| self.revision_of_entry(&pod.revision));
        if let Some(sleeps) = &mut self.sleeps {
            let is_written = is_update && Some(stands) != stood;
            sleeps.counts = !is_open(&set) && (sleeps.counts || is_written) && !sleeps.has_slept;
        }
        if is_update && Some(stands) != stood {
            self.must(may_begin, "a template is written when nothing may begin");
        }
        if is_open(&set) && (!was_open || Some(stands) != stood) {
            self.must(!is_update || may_begin, "an update begins when none may");
            let was_left = self.ledger.left.contains(&stands);
            self.must(!was_left, "what was gone back from is brought in again");
            self.check_approved(&set);
            self.ledger.opened_for.insert(stands);
            if runs.is_some_and(|runs| runs != stands) {
                // A rollback to a verified revision happens automatically, or at a user's request.
                let acts: &[&str] = if is_update { &["update/"] } else { &["roll-back/", "update/"] };
                self.check_stop(acts);
            }
        }
        let settled_in = |set: &Value| facts_of(set)["settled"]["revision"].as_str().map(str::to_owned);
        if let (Some(settled), Some(settles)) = (before.and_then(settled_in), settled_in(&set))
            && settled != settles
        {
            self.ends.note_came();
        }
        if was_open && !is_open(&set) && runs != stood {
            self.ledger.taken_back.extend(stood);
        }
    }

    /// If approval is required, only an approved version set may replace the running one or the first one.
    fn check_approved(&mut self, set: &Value) {
        let Some(runs) = self.pod.as_ref().map(|pod| pod.files.lock.clone()) else { return };
        let comes = set["spec"]["template"]["metadata"]["annotations"][LOCK_DIGEST].as_str().unwrap_or_default();
        let is_known = comes == runs || self.scenario.first.get().is_some_and(|first| comes == first);
        let is_approved = self.ledger.approved.contains(comes);
        self.must(
            !self.scenario.has(Extra::Approval) || is_known || is_approved,
            "a set comes that nobody has approved",
        );
    }

    /// The operator scales the server to zero: at a user's request, or for crashes of a process that does not run.
    fn check_put_to_sleep(&mut self) {
        let is_wanted = self.objects.get(&self.key_of_server()).is_ok_and(|server| !is_asleep(server));
        if is_wanted {
            let is_up = self.pod.as_ref().is_some_and(|pod| pod.phase == Phase::Up);
            self.tell("operator: scales the StatefulSet to 0");
            self.must(!is_up && self.scenario.has(Extra::StopInALoop), "a server that is up is put to sleep");
        }
    }

    /// Whether a user has suspended the server, for longer than an earlier decision takes to be carried out.
    fn is_suspended(&self) -> bool {
        self.ledger.suspended_since.is_some_and(|since| since + DECISION_COUNTS + ON_ITS_WAY < now())
    }

    /// Whether an update may begin, or could a moment ago.
    fn may_begin(&self) -> bool {
        let before = now() - ON_ITS_WAY;
        let is_asked_for = self.ledger.asked_until.is_some_and(|until| before < until);
        let is_open = Scenario::is_open(before) || Scenario::is_open(now());
        is_asked_for || !self.is_suspended() && (is_open || self.minds_nobody(before))
    }

    /// Whether an update may begin outside of windows: the server was empty long enough, is scaled to zero, or restarts
    /// anyway.
    fn minds_nobody(&self, before: Timestamp) -> bool {
        let is_empty = self.empty_since.is_some_and(|since| since + EMPTY_FOR <= now());
        let restarts = self.scenario.restart_due(now()).is_some_and(|due| before < due + START);
        let sleeps = self.pod.is_none() && self.objects.get(&self.key_of_server()).is_ok_and(is_asleep);
        // An update after the newer Minecraft is not one-way, and neither are other settings of the pod with the first
        // version set.
        let first = self.scenario.first.get();
        let has_come = self.pod.as_ref().is_some_and(|pod| first != Some(&pod.files.lock));
        let set = self.objects.get(&self.key_of_set());
        let lock = set.ok().and_then(|set| set["spec"]["template"]["metadata"]["annotations"][LOCK_DIGEST].as_str());
        let is_leap = self.scenario.one_way && !has_come && lock != first.map(String::as_str);
        self.scenario.has(Extra::Opportunistic) && !is_leap && (is_empty || restarts || sleeps)
    }

    /// The operator deletes the pod. A scheduled restart of a running server happens once, after the server has run
    /// long enough.
    pub(super) fn check_restart(&mut self) {
        self.check_stop(&["restart/"]);
        let Some(pod) = self.pod.as_ref().filter(|pod| pod.phase == Phase::Up && !pod.hangs()) else { return };
        if self.waits_for_copy() {
            return;
        }
        let started_at = pod.started_at;
        let Some(due) = self.scenario.restart_due(now()) else {
            return self.must(false, "a server is restarted that has no restarts by the clock");
        };
        self.must(started_at + EVERY / 2 <= due, "a server is restarted by the clock that has just started");
        self.must(!self.is_suspended(), "a server is restarted by the clock that is suspended");
        let is_late = due + BEGUN_WITHIN + NOTICE + DEADLINE + ON_ITS_WAY < now();
        self.must(!is_late, "a server is restarted by the clock hours after its instant");
        let stops = self.ledger.restarts.entry(due).or_default();
        *stops += 1;
        let is_once = *stops == 1;
        self.must(is_once, "a second restart for one instant of the clock");
    }

    /// Whether this revision is an update. Before any revision is verified, everything belongs to the first start.
    pub(super) fn is_update(&self, revision: Revision) -> bool {
        // A version set without a complete verification may have been kept, and is then the target of rollbacks.
        let is_kept = self.ledger.disturbed && self.settled() == Some(revision);
        !self.ledger.proven.is_empty() && !self.ledger.proven.contains(&revision) && !is_kept
    }

    /// Records a working version set that has been up long enough.
    pub(super) fn note_proven(&mut self) {
        let Some(pod) = &self.pod else { return };
        if pod.phase == Phase::Up && pod.fate.is_good() && pod.up_since + SETTLES <= now() {
            let revision = self.revision_of_entry(&pod.revision);
            self.ledger.proven.extend(revision);
        }
    }

    /// Newer releases are available from now on.
    pub(super) fn note_release(&mut self) {
        self.tell("upstream: lists newer releases");
        self.ledger.began_with_the_newest = self.scenario.first.get().is_none();
    }

    /// Records a fault, if a rollout is in progress.
    pub(super) fn note_disturbance(&mut self) {
        let Ok(set) = self.objects.get(&self.key_of_set()) else { return };
        let stands = revision(&set["spec"]["template"]);
        self.ledger.disturbed |= !self.ledger.proven.is_empty() && !self.ledger.proven.contains(&stands);
    }

    /// Updates that were applied or in progress may be applied once more, because history was lost or a user wants a
    /// rollback.
    pub(super) fn note_taken_back(&mut self) {
        self.ledger.taken_back.extend(self.ledger.stopped_for.keys());
    }

    pub(super) fn settled(&self) -> Option<Revision> {
        self.facts()["settled"]["revision"].as_str()?.parse().ok()
    }

    fn revision_of_entry(&self, entry: &str) -> Option<Revision> {
        self.revisions.get(entry).copied()
    }

    /// A pod is created where none existed. Its revision must be verified, or one that the server may have been stopped
    /// for.
    pub(super) fn check_created(&mut self, entry: &str) {
        let Some(of) = self.revision_of_entry(entry) else { return };
        let may_run = !self.is_update(of) || self.ledger.opened_for.contains(&of);
        self.must(may_run, "a pod comes back as something that nobody let in");
    }

    /// Checks an announcement: with `WaitForEmpty` it must not be made while the operator waits for the players to
    /// leave.
    pub(super) fn check_announcement(&mut self, announce: &Announce) {
        let waits = self.scenario.policy == "WaitForEmpty" && !announce.act.starts_with("roll-back/");
        let is_played = self.played_since.is_some_and(|since| since + JUST_JOINED < now());
        let asked_at = self.ledger.asked_until.map(|until| until - ASKED_FOR);
        let began = [
            Some(Scenario::opened_at(now())),
            self.scenario.restart_due(now()),
            asked_at,
            self.copy_asked_at(),
            self.node.drained_at,
        ];
        let is_over = began.into_iter().flatten().any(|began| began + DEADLINE <= now() + ON_ITS_WAY);
        self.must(!waits || !is_played || is_over, "players are told of a stop that was to wait for them");
    }

    /// The controller replaces the pod, because the partition lets the new template through.
    pub(super) fn check_replaced(&mut self, entry: &str) {
        let Some(to) = self.revision_of_entry(entry) else { return };
        if let Some(pod) = self.pod.as_ref().filter(|pod| !pod.fate.is_good()) {
            let left = self.revision_of_entry(&pod.revision);
            let settled = self.settled();
            if settled == Some(to) && left != settled {
                self.ends.note_went();
            }
            self.ledger.left.extend(left.filter(|_| left != settled));
            self.ledger.gone_forward += u32::from(self.is_update(to));
        }
        if self.is_update(to) {
            let stops = self.ledger.stopped_for.entry(to).or_default();
            *stops += 1;
            let is_once = *stops == 1 || self.ledger.taken_back.contains(&to);
            self.must(is_once, "a second stop to bring in one revision");
        }
    }

    /// Checks that the server may be stopped: its players were told and had the time to leave, and their builds are on
    /// the disk.
    pub(super) fn check_stop(&mut self, acts: &[&str]) {
        let Some(pod) = &self.pod else { return };
        let is_newer = self.scenario.one_way && self.scenario.first.get() != Some(&pod.files.lock);
        let has = if is_newer { FIRST_START } else { START };
        // The node reports the start by its own clock.
        let gives_up_at = pod.started_at + has - self.scenario.node_ahead.abs();
        let is_starting = matches!(pod.phase, Phase::Preparing | Phase::Booting);
        let may_be_given_up = match pod.fate {
            SetBehaviour::NeverUp => gives_up_at <= now() + ON_ITS_WAY,
            // A single exit may be accidental.
            SetBehaviour::Crashes | SetBehaviour::DiesLater => pod.starts > 1 || gives_up_at <= now() + ON_ITS_WAY,
            SetBehaviour::Good | SetBehaviour::Red | SetBehaviour::MovesFor(_) | SetBehaviour::LosesWorld => false,
        };
        let (is_up, hangs) = (pod.phase == Phase::Up, pod.hangs() || pod.agent.refuses_all());
        let told = pod.agent.told.iter().rev().find(|told| acts.iter().any(|act| told.act.starts_with(act))).cloned();
        let saved_at = pod.agent.saved_at;
        let has_spoken = |from| pod.agent.answered_at.is_some_and(|at| from <= at);
        let is_silent = pod.agent.answers_from.is_none_or(|from| now() < from + ON_ITS_WAY && !has_spoken(from));
        let was_waited_for = pod.agent.answered_at.is_none_or(|at| at + PATIENCE <= now() + ON_ITS_WAY);
        self.must(!is_starting || may_be_given_up, "a server that is starting is stopped before its deadline");
        if !is_up || hangs || self.scenario.policy == "Ignore" {
            return;
        }
        if is_silent {
            return self.must(was_waited_for, "a server is stopped whose agent was silent for a moment");
        }
        let in_time = told
            .as_ref()
            .is_some_and(|told| told.ends <= now() + SignedDuration::from_secs(1) && now() < told.ends + COUNTS);
        let had_notice =
            told.as_ref().is_some_and(|told| told.players == 0 || told.at + NOTICE - ON_ITS_WAY <= told.ends);
        let saved =
            saved_at.zip(told.as_ref()).is_some_and(|(at, told)| told.ends - ON_ITS_WAY <= at && now() < at + COUNTS);
        self.must(self.players == 0 || in_time, "players are stopped who were not told, or told of another time");
        self.must(self.players == 0 || had_notice, "players are stopped who had less time than was promised");
        self.must(saved, "a server is stopped whose world was not saved for it");
    }

    /// The final state of a run: no event is pending, and the state is an accepted end.
    pub(super) fn judge_end(&mut self) -> String {
        let Ok(set) = self.objects.get(&self.key_of_set()).cloned() else {
            self.must(false, "there is a StatefulSet in the end");
            return "nothing".to_owned();
        };
        let stands = revision(&set["spec"]["template"]);
        let is_up = self.pod.as_ref().is_some_and(|pod| pod.phase == Phase::Up);
        let runs_first = self.pod.as_ref().is_some_and(|pod| self.scenario.first.get() == Some(&pod.files.lock));
        let server = self.objects.get(&self.key_of_server()).expect("nobody deletes it").clone();
        let conditions = server["status"]["conditions"].as_array().cloned().unwrap_or_default();
        for condition in &conditions {
            self.tell(format!("{} {}: {}", condition["type"], condition["reason"], condition["message"]));
        }
        self.judge_restore();
        self.judge_events();
        let disturbed = self.ledger.disturbed;
        let is_good = self.scenario.fate == SetBehaviour::Good || self.ledger.mended_at.is_some();
        // A set approved before the release is the running one, created again.
        let is_newer = |set: &String| self.scenario.first.get() != Some(set);
        let is_held = server["spec"]["hold"].as_array().is_some_and(|hold| hold.iter().any(|name| name == "*"));
        let may_come = self.ledger.suspended_since.is_none()
            && !is_held
            && !self.waits_for_another
            && (!self.scenario.has(Extra::Approval) || self.ledger.approved.iter().any(is_newer));
        let is_wanted = is_good && may_come;
        if !is_open(&set) && self.settled() == Some(stands) && is_up {
            let is_newest = self.ledger.began_with_the_newest;
            self.must(!is_wanted || !runs_first || is_newest || disturbed, "a good update is applied in the end");
            self.must(is_good || runs_first || disturbed, "a bad update does not stay");
            self.judge_last_end();
            return if runs_first { "rests on what ran".to_owned() } else { "rests on the update".to_owned() };
        }
        let updating = conditions.iter().find(|condition| condition["type"] == "Updating");
        let why = updating.and_then(|condition| condition["reason"].as_str()).unwrap_or("nothing").to_owned();
        // Only a newer Minecraft cannot be rolled back without a user.
        let is_an_end = match why.as_str() {
            "NoBackup" => (self.scenario.copies.is_none() && !is_wanted) || disturbed,
            "RollbackWouldLoseProgress" => self.scenario.most_players > 0 && !is_wanted || disturbed,
            "WorldRefused" => self.scenario.copies.is_none() || self.scenario.most_players > 0 || disturbed,
            "StoppedByCrashes" => return self.judge_stopped(),
            // A server that cannot be rolled back, and restarts again.
            "ServerDown" => self.pod.as_ref().is_some_and(|pod| pod.fate != SetBehaviour::Good && pod.starts > 3),
            _ => false,
        };
        let may_be_stuck =
            self.scenario.one_way && (self.scenario.fate != SetBehaviour::Good || self.marks.moves_broken_off > 0);
        let is_an_end = is_an_end && may_be_stuck || (disturbed && why == "ServerDown");
        self.must(is_an_end, "a walk ends neither at rest nor where a person has to decide");
        why
    }

    /// The server was up and crashed repeatedly, and its spec asks for a stop in that case.
    fn judge_stopped(&mut self) -> String {
        // A crashing version set may have become stable because its verification was incomplete.
        let crashed = self.ledger.crashed_on || self.ledger.disturbed && self.scenario.fate == SetBehaviour::DiesLater;
        let is_right = self.scenario.has(Extra::StopInALoop) && self.pod.is_none() && crashed;
        self.must(is_right, "a server is stopped for crashes that there were not, or not wanted to be stopped");
        "stopped in a loop of crashes".to_owned()
    }
}
