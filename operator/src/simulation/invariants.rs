//! Edge (writes). Checks the invariants of every run, at the moment when each could be broken.
//!
//! The checks use the knowledge of players, the disk and the run itself. The operator's own records count only where
//! they claim that the server is up to date.

use std::collections::{BTreeMap, BTreeSet};

use agent_api::Announce;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use scheduler::observation::Revision;
use scheduler::rollout::DECISION_VALID_FOR;
use serde_json::Value;

use super::cluster::{SimCluster, facts_of};
use super::fake_kubelet::Phase;
use super::scenario::{DEADLINE, EMPTY_FOR, Extra, Scenario, SetBehaviour, WINDOW_INTERVAL};
use super::user_actions::REQUEST_VALID_FOR;
use crate::clock::now;
use crate::k8s::labels::LOCK_DIGEST;
use crate::template_revision::revision_of;

/// The longest time between a decision and its write without a fence: one request.
pub(super) const MAX_WRITE_DELAY: SignedDuration = SignedDuration::from_secs(10);
/// How long after the end of a countdown the server may still be stopped for it, and how old its save may be.
const ANNOUNCEMENT_VALID_FOR: SignedDuration = SignedDuration::from_mins(11);
/// The notice to players in the spec.
pub(super) const NOTICE: SignedDuration = SignedDuration::from_mins(5);
/// `--start-seconds`.
pub(super) const START_TIMEOUT: SignedDuration = SignedDuration::from_mins(10);
/// `--first-start-seconds`: that of a newer Minecraft.
const FIRST_START_TIMEOUT: SignedDuration = SignedDuration::from_mins(30);
/// `gracefulShutdown.timeout`: an agent that is unreachable for this long delays no update.
const AGENT_TIMEOUT: SignedDuration = SignedDuration::from_mins(1);
/// How long after its scheduled time a scheduled restart may begin.
const RESTART_BEGINS_WITHIN: SignedDuration = SignedDuration::from_mins(30);
/// A player who joined more recently may not be known to the agent yet.
const JOIN_DETECTION_DELAY: SignedDuration = SignedDuration::from_secs(75);
/// `--settle-seconds`.
pub(super) const SETTLE_TIME: SignedDuration = SignedDuration::from_mins(1);

/// The events of the run so far.
#[derive(Debug, Default)]
pub(super) struct InvariantState {
    /// Revisions of working version sets that were up long enough. A rollback to one of them needs no window.
    verified: BTreeSet<Revision>,
    /// Revisions of failing version sets that were tried and rolled back.
    rolled_back: BTreeSet<Revision>,
    /// How often the server was stopped for a revision that was not verified.
    stopped_for: BTreeMap<Revision, u32>,
    /// Revisions that the partition blocked again before the controller had replaced the pod.
    repeatable: BTreeSet<Revision>,
    /// A working process crashed repeatedly.
    pub(super) crash_looped: bool,
    /// Times of scheduled restarts, and how often the server was stopped for each.
    restarts: BTreeMap<Timestamp, u32>,
    /// Until then a user's request for an immediate update is valid.
    pub(super) requested_until: Option<Timestamp>,
    /// Since when a user has suspended the server.
    pub(super) suspended_since: Option<Timestamp>,
    /// Revisions that the server may have been stopped for: the partition let them through without an obstacle.
    opened_for: BTreeSet<Revision>,
    /// Version sets that a user has approved.
    pub(super) approved: BTreeSet<String>,
    /// When a user fixed the cause of the failures of newer version sets.
    pub(super) fixed_at: Option<Timestamp>,
    /// How often another version set than the earlier one replaced a failing one.
    pub(super) rolled_forward: u32,
    /// The first start came after the release.
    pub(super) started_with_newest: bool,
    /// A fault occurred during a rollout: the operator may have rolled back a good version set, and may not have
    /// verified a bad one.
    pub(super) disturbed: bool,
}

pub(super) fn revision(template: &Value) -> Revision {
    let template: PodTemplateSpec = serde_json::from_value(template.clone()).expect("a template");
    revision_of(&template)
}

pub(super) fn is_scaled_to_zero(object: &Value) -> bool {
    object["spec"]["replicas"] == 0
}

pub(super) fn is_partition_open(stateful_set: &Value) -> bool {
    stateful_set["spec"]["updateStrategy"]["rollingUpdate"]["partition"] == 0
}

impl SimCluster {
    /// The operator has written the `StatefulSet`.
    pub(super) fn observe_set(&mut self, before: Option<&Value>) {
        let stateful_set = self.objects.get(&self.stateful_set_key()).expect("the StatefulSet exists").clone();
        let template_revision = revision(&stateful_set["spec"]["template"]);
        let previous_revision = before.map(|before| revision(&before["spec"]["template"]));
        let was_open = before.is_some_and(is_partition_open);
        let action = match (was_open, is_partition_open(&stateful_set)) {
            _ if before.is_none() => "creates the StatefulSet",
            _ if Some(template_revision) != previous_revision && is_partition_open(&stateful_set) => {
                "writes the pod template, with partition 0"
            }
            _ if Some(template_revision) != previous_revision => "writes the pod template, with partition 1",
            (false, true) => "sets partition 0: the pod may be replaced",
            (true, false) => "sets partition 1: the pod is kept",
            (true, true) | (false, false) => "notes a fact on the StatefulSet",
        };
        if is_scaled_to_zero(&stateful_set) && !before.is_some_and(is_scaled_to_zero) {
            self.check_scale_to_zero();
        }
        let is_fact_only = action.starts_with("notes");
        if !is_fact_only || !self.is_scripted() {
            self.trace(format!("operator: {action} (revision {template_revision})"));
        }
        let is_update = self.is_update(template_revision);
        let can_begin = self.can_begin_update();
        let running = self.pod.as_ref().and_then(|pod| self.revision_of_entry(&pod.revision));
        if let Some(sleeps) = &mut self.sleeps {
            let is_written = is_update && Some(template_revision) != previous_revision;
            sleeps.is_counting =
                !is_partition_open(&stateful_set) && (sleeps.is_counting || is_written) && !sleeps.has_slept;
        }
        if is_update && Some(template_revision) != previous_revision {
            self.check(can_begin, "an update template is written only when updates may begin");
        }
        if is_partition_open(&stateful_set) && (!was_open || Some(template_revision) != previous_revision) {
            self.check(!is_update || can_begin, "an update begins only when updates may begin");
            let was_rolled_back = self.invariants.rolled_back.contains(&template_revision);
            self.check(!was_rolled_back, "a revision that was rolled back is not applied again");
            self.check_approved(&stateful_set);
            self.invariants.opened_for.insert(template_revision);
            if running.is_some_and(|running| running != template_revision) {
                // A rollback to a verified revision happens automatically, or at a user's request.
                let acts: &[&str] = if is_update { &["update/"] } else { &["roll-back/", "update/"] };
                self.check_stop(acts);
            }
        }
        let stable_revision_of =
            |stateful_set: &Value| facts_of(stateful_set)["settled"]["revision"].as_str().map(str::to_owned);
        if let (Some(old_stable), Some(new_stable)) =
            (before.and_then(stable_revision_of), stable_revision_of(&stateful_set))
            && old_stable != new_stable
        {
            self.stops.record_stable();
        }
        if was_open && !is_partition_open(&stateful_set) && running != previous_revision {
            self.invariants.repeatable.extend(previous_revision);
        }
    }

    /// If approval is required, only an approved version set may replace the running one or the first one.
    fn check_approved(&mut self, stateful_set: &Value) {
        let Some(running) = self.pod.as_ref().map(|pod| pod.files.lock.clone()) else { return };
        let target_lock =
            stateful_set["spec"]["template"]["metadata"]["annotations"][LOCK_DIGEST].as_str().unwrap_or_default();
        let is_running_or_first =
            target_lock == running || self.scenario.first_lock.get().is_some_and(|first| target_lock == first);
        let is_approved = self.invariants.approved.contains(target_lock);
        self.check(
            !self.scenario.has_extra(Extra::Approval) || is_running_or_first || is_approved,
            "only an approved version set is applied",
        );
    }

    /// The operator scales the server to zero: at a user's request, or for crashes of a process that does not run.
    fn check_scale_to_zero(&mut self) {
        let is_wanted = self.objects.get(&self.server_key()).is_ok_and(|server| !is_scaled_to_zero(server));
        if is_wanted {
            let is_up = self.pod.as_ref().is_some_and(|pod| pod.phase == Phase::Up);
            self.trace("operator: scales the StatefulSet to 0");
            self.check(
                !is_up && self.scenario.has_extra(Extra::StopOnCrashLoop),
                "only a crash loop scales a wanted server to zero",
            );
        }
    }

    /// Whether a user has suspended the server, for longer than an earlier decision takes to be carried out.
    fn is_suspended(&self) -> bool {
        self.invariants.suspended_since.is_some_and(|since| since + DECISION_VALID_FOR + MAX_WRITE_DELAY < now())
    }

    /// Whether an update may begin, or could a moment ago.
    fn can_begin_update(&self) -> bool {
        let before = now() - MAX_WRITE_DELAY;
        let is_requested = self.invariants.requested_until.is_some_and(|until| before < until);
        let is_open = Scenario::is_window_open(before) || Scenario::is_window_open(now());
        is_requested || !self.is_suspended() && (is_open || self.can_begin_outside_windows(before))
    }

    /// Whether an update may begin outside of windows: the server was empty long enough, is scaled to zero, or restarts
    /// anyway.
    fn can_begin_outside_windows(&self, before: Timestamp) -> bool {
        let is_empty = self.empty_since.is_some_and(|since| since + EMPTY_FOR <= now());
        let restarts = self.scenario.restart_due(now()).is_some_and(|due| before < due + START_TIMEOUT);
        let is_stopped = self.pod.is_none() && self.objects.get(&self.server_key()).is_ok_and(is_scaled_to_zero);
        // An update after the newer Minecraft is not one-way, and neither are other settings of the pod with the first
        // version set.
        let first = self.scenario.first_lock.get();
        let is_updated = self.pod.as_ref().is_some_and(|pod| first != Some(&pod.files.lock));
        let stateful_set = self.objects.get(&self.stateful_set_key());
        let lock = stateful_set
            .ok()
            .and_then(|stateful_set| stateful_set["spec"]["template"]["metadata"]["annotations"][LOCK_DIGEST].as_str());
        let is_one_way = self.scenario.one_way && !is_updated && lock != first.map(String::as_str);
        self.scenario.has_extra(Extra::Opportunistic) && !is_one_way && (is_empty || restarts || is_stopped)
    }

    /// The operator deletes the pod. A scheduled restart of a running server happens once, after the server has run
    /// long enough.
    pub(super) fn check_restart(&mut self) {
        self.check_stop(&["restart/"]);
        let Some(pod) = self.pod.as_ref().filter(|pod| pod.phase == Phase::Up && !pod.is_hanging()) else { return };
        if self.waits_for_restore() {
            return;
        }
        let started_at = pod.started_at;
        let Some(due) = self.scenario.restart_due(now()) else {
            return self.check(false, "a server without a restart schedule is not restarted");
        };
        self.check(started_at + WINDOW_INTERVAL / 2 <= due, "no scheduled restart follows a recent start");
        self.check(!self.is_suspended(), "a suspended server has no scheduled restarts");
        let is_late = due + RESTART_BEGINS_WITHIN + NOTICE + DEADLINE + MAX_WRITE_DELAY < now();
        self.check(!is_late, "a scheduled restart is not hours late");
        let stops = self.invariants.restarts.entry(due).or_default();
        *stops += 1;
        let is_once = *stops == 1;
        self.check(is_once, "one scheduled time causes one restart");
    }

    /// Whether this revision is an update. Before any revision is verified, everything belongs to the first start.
    pub(super) fn is_update(&self, revision: Revision) -> bool {
        // A version set without a complete verification may have been kept, and is then the target of rollbacks.
        let is_stable = self.invariants.disturbed && self.stable_revision() == Some(revision);
        !self.invariants.verified.is_empty() && !self.invariants.verified.contains(&revision) && !is_stable
    }

    /// Records a working version set that has been up long enough.
    pub(super) fn record_verified(&mut self) {
        let Some(pod) = &self.pod else { return };
        if pod.phase == Phase::Up && pod.behaviour.is_good() && pod.up_since + SETTLE_TIME <= now() {
            let revision = self.revision_of_entry(&pod.revision);
            self.invariants.verified.extend(revision);
        }
    }

    /// Newer releases are available from now on.
    pub(super) fn record_release(&mut self) {
        self.trace("upstream: lists newer releases");
        self.invariants.started_with_newest = self.scenario.first_lock.get().is_none();
    }

    /// Records a fault, if a rollout is in progress.
    pub(super) fn record_disturbance(&mut self) {
        let Ok(stateful_set) = self.objects.get(&self.stateful_set_key()) else { return };
        let template_revision = revision(&stateful_set["spec"]["template"]);
        self.invariants.disturbed |=
            !self.invariants.verified.is_empty() && !self.invariants.verified.contains(&template_revision);
    }

    /// Updates that were applied or in progress may be applied once more, because history was lost or a user wants a
    /// rollback.
    pub(super) fn allow_repeated_updates(&mut self) {
        self.invariants.repeatable.extend(self.invariants.stopped_for.keys());
    }

    pub(super) fn stable_revision(&self) -> Option<Revision> {
        self.facts()["settled"]["revision"].as_str()?.parse().ok()
    }

    fn revision_of_entry(&self, entry: &str) -> Option<Revision> {
        self.revisions.get(entry).copied()
    }

    /// A pod is created where none existed. Its revision must be verified, or one that the server may have been stopped
    /// for.
    pub(super) fn check_created(&mut self, entry: &str) {
        let Some(revision) = self.revision_of_entry(entry) else { return };
        let may_run = !self.is_update(revision) || self.invariants.opened_for.contains(&revision);
        self.check(may_run, "a new pod has a verified or admitted revision");
    }

    /// Checks an announcement: with `WaitForEmpty` it must not be made while the operator waits for the players to
    /// leave.
    pub(super) fn check_announcement(&mut self, announce: &Announce) {
        let waits = self.scenario.policy == "WaitForEmpty" && !announce.act.starts_with("roll-back/");
        let is_played = self.played_since.is_some_and(|since| since + JOIN_DETECTION_DELAY < now());
        let requested_at = self.invariants.requested_until.map(|until| until - REQUEST_VALID_FOR);
        let began = [
            Some(Scenario::opened_at(now())),
            self.scenario.restart_due(now()),
            requested_at,
            self.restore_requested_at(),
            self.node.drained_at,
        ];
        let is_over = began.into_iter().flatten().any(|began| began + DEADLINE <= now() + MAX_WRITE_DELAY);
        self.check(!waits || !is_played || is_over, "players are not warned while the stop waits for them");
    }

    /// The controller replaces the pod, because the partition lets the new template through.
    pub(super) fn check_replaced(&mut self, entry: &str) {
        let Some(to) = self.revision_of_entry(entry) else { return };
        if let Some(pod) = self.pod.as_ref().filter(|pod| !pod.behaviour.is_good()) {
            let failed = self.revision_of_entry(&pod.revision);
            let stable = self.stable_revision();
            if stable == Some(to) && failed != stable {
                self.stops.record_rollback();
            }
            self.invariants.rolled_back.extend(failed.filter(|_| failed != stable));
            self.invariants.rolled_forward += u32::from(self.is_update(to));
        }
        if self.is_update(to) {
            let stops = self.invariants.stopped_for.entry(to).or_default();
            *stops += 1;
            let is_once = *stops == 1 || self.invariants.repeatable.contains(&to);
            self.check(is_once, "one revision causes one stop");
        }
    }

    /// Checks that the server may be stopped: its players were told and had the time to leave, and their builds are on
    /// the disk.
    pub(super) fn check_stop(&mut self, acts: &[&str]) {
        let Some(pod) = &self.pod else { return };
        let is_newer = self.scenario.one_way && self.scenario.first_lock.get() != Some(&pod.files.lock);
        let start_timeout = if is_newer { FIRST_START_TIMEOUT } else { START_TIMEOUT };
        // The node reports the start by its own clock.
        let gives_up_at = pod.started_at + start_timeout - self.scenario.node_clock_offset.abs();
        let is_starting = matches!(pod.phase, Phase::Preparing | Phase::Booting);
        let may_be_given_up = match pod.behaviour {
            SetBehaviour::NeverReady => gives_up_at <= now() + MAX_WRITE_DELAY,
            // A single exit may be accidental.
            SetBehaviour::CrashesAtStart | SetBehaviour::CrashesLater => {
                pod.starts > 1 || gives_up_at <= now() + MAX_WRITE_DELAY
            }
            SetBehaviour::Good
            | SetBehaviour::PluginDisabled
            | SetBehaviour::MigratesFor(_)
            | SetBehaviour::LosesWorld => false,
        };
        let (is_up, is_hanging) = (pod.phase == Phase::Up, pod.is_hanging() || pod.agent.refuses_requests());
        let announcement = pod
            .agent
            .announcements
            .iter()
            .rev()
            .find(|announcement| acts.iter().any(|act| announcement.act.starts_with(act)))
            .cloned();
        let saved_at = pod.agent.saved_at;
        let has_answered = |from| pod.agent.answered_at.is_some_and(|at| from <= at);
        let is_silent =
            pod.agent.reachable_from.is_none_or(|from| now() < from + MAX_WRITE_DELAY && !has_answered(from));
        let was_waited_for = pod.agent.answered_at.is_none_or(|at| at + AGENT_TIMEOUT <= now() + MAX_WRITE_DELAY);
        self.check(!is_starting || may_be_given_up, "a starting server is not stopped before its deadline");
        if !is_up || is_hanging || self.scenario.policy == "Ignore" {
            return;
        }
        if is_silent {
            return self.check(was_waited_for, "an unreachable agent delays a stop until the timeout");
        }
        let in_time = announcement.as_ref().is_some_and(|announcement| {
            announcement.ends <= now() + SignedDuration::from_secs(1)
                && now() < announcement.ends + ANNOUNCEMENT_VALID_FOR
        });
        let had_notice = announcement.as_ref().is_some_and(|announcement| {
            announcement.players == 0 || announcement.at + NOTICE - MAX_WRITE_DELAY <= announcement.ends
        });
        let saved = saved_at.zip(announcement.as_ref()).is_some_and(|(at, announcement)| {
            announcement.ends - MAX_WRITE_DELAY <= at && now() < at + ANNOUNCEMENT_VALID_FOR
        });
        self.check(self.players == 0 || in_time, "players are warned of the right time before a stop");
        self.check(self.players == 0 || had_notice, "players get the full notice before a stop");
        self.check(saved, "the world is saved right before a stop");
    }

    /// The final state of a run: no event is pending, and the state is an accepted end.
    pub(super) fn check_final_state(&mut self) -> String {
        let Ok(stateful_set) = self.objects.get(&self.stateful_set_key()).cloned() else {
            self.check(false, "the StatefulSet exists at the end");
            return "nothing".to_owned();
        };
        let template_revision = revision(&stateful_set["spec"]["template"]);
        let is_up = self.pod.as_ref().is_some_and(|pod| pod.phase == Phase::Up);
        let runs_first = self.pod.as_ref().is_some_and(|pod| self.scenario.first_lock.get() == Some(&pod.files.lock));
        let server = self.objects.get(&self.server_key()).expect("the server object exists").clone();
        let conditions = server["status"]["conditions"].as_array().cloned().unwrap_or_default();
        for condition in &conditions {
            self.trace(format!("{} {}: {}", condition["type"], condition["reason"], condition["message"]));
        }
        self.check_restore();
        self.check_events();
        let disturbed = self.invariants.disturbed;
        let is_good = self.scenario.behaviour == SetBehaviour::Good || self.invariants.fixed_at.is_some();
        // A set approved before the release is the running one, created again.
        let is_newer = |lock: &String| self.scenario.first_lock.get() != Some(lock);
        let is_held = server["spec"]["hold"].as_array().is_some_and(|hold| hold.iter().any(|name| name == "*"));
        let can_update = self.invariants.suspended_since.is_none()
            && !is_held
            && !self.waits_for_leader
            && (!self.scenario.has_extra(Extra::Approval) || self.invariants.approved.iter().any(is_newer));
        let is_wanted = is_good && can_update;
        if !is_partition_open(&stateful_set) && self.stable_revision() == Some(template_revision) && is_up {
            let is_newest = self.invariants.started_with_newest;
            self.check(!is_wanted || !runs_first || is_newest || disturbed, "a good update is applied in the end");
            self.check(is_good || runs_first || disturbed, "a bad update does not stay");
            self.check_last_stop();
            return if runs_first { "rests on what ran".to_owned() } else { "rests on the update".to_owned() };
        }
        let updating = conditions.iter().find(|condition| condition["type"] == "Updating");
        let reason = updating.and_then(|condition| condition["reason"].as_str()).unwrap_or("nothing").to_owned();
        // Only a newer Minecraft cannot be rolled back without a user.
        let is_an_end = match reason.as_str() {
            "NoBackup" => (!self.scenario.backs_up_one_way_steps() && !is_wanted) || disturbed,
            "RollbackWouldLoseProgress" => self.scenario.max_players > 0 && !is_wanted || disturbed,
            "WorldRefused" => !self.scenario.backs_up_one_way_steps() || self.scenario.max_players > 0 || disturbed,
            "StoppedByCrashes" => return self.check_stopped_by_crashes(),
            // A server that cannot be rolled back, and restarts again.
            "ServerDown" => self.pod.as_ref().is_some_and(|pod| pod.behaviour != SetBehaviour::Good && pod.starts > 3),
            _ => false,
        };
        let can_need_user = self.scenario.one_way
            && (self.scenario.behaviour != SetBehaviour::Good || self.builds.migrations_interrupted > 0);
        let is_an_end = is_an_end && can_need_user || (disturbed && reason == "ServerDown");
        self.check(is_an_end, "a run ends stable or where a user has to decide");
        reason
    }

    /// The server was up and crashed repeatedly, and its spec asks for a stop in that case.
    fn check_stopped_by_crashes(&mut self) -> String {
        // A crashing version set may have become stable because its verification was incomplete.
        let crashed = self.invariants.crash_looped
            || self.invariants.disturbed && self.scenario.behaviour == SetBehaviour::CrashesLater;
        let is_right = self.scenario.has_extra(Extra::StopOnCrashLoop) && self.pod.is_none() && crashed;
        self.check(is_right, "only a real crash loop stops a server, if its spec says so");
        "stopped in a loop of crashes".to_owned()
    }
}
