//! Edge (writes). Checks the invariants of several servers together, when an update begins.
//!
//! No more servers are updated at the same time than allowed, and no server begins before the one that it follows.
//! Announcements, the files of the pods and the faults show which servers hold an update slot.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::Fleet;
use super::server::Server;
use crate::clock::now;
use crate::k8s::labels::LOCK_DIGEST;
use crate::simulation::cluster::SimCluster;
use crate::simulation::fake_agent::FakeAnnouncement;
use crate::simulation::fake_kubelet::Phase;
use crate::simulation::invariants::{SETTLE_TIME, START_TIMEOUT, is_partition_open, is_scaled_to_zero, revision};
use crate::simulation::scenario::Scenario;

/// How long after two processes led, one of them may miss an update that the other one has begun.
const TWO_LEADERS_GRACE: SignedDuration = SignedDuration::from_mins(1);
/// A decision from a moment ago may still carry out a user's request.
const REQUEST_GRACE: SignedDuration = SignedDuration::from_secs(10);
/// A verification uses the clock of a node, which may be ahead.
const MAX_CLOCK_OFFSET: SignedDuration = SignedDuration::from_secs(30);

impl SimCluster {
    /// Status and reason of a condition of the server.
    pub(super) fn condition(&self, condition: &str) -> Option<(String, String)> {
        let server = self.objects.get(&self.server_key()).expect("the server object exists");
        let mut conditions = server["status"]["conditions"].as_array().into_iter().flatten();
        let found = conditions.find(|found| found["type"] == condition)?;
        Some((found["status"].as_str()?.to_owned(), found["reason"].as_str()?.to_owned()))
    }

    /// The working version set that has run long enough to be verified, and the earliest time since when it has.
    pub(super) fn verified_lock(&self) -> Option<(&str, Timestamp)> {
        let pod = self.pod.as_ref().filter(|pod| pod.phase == Phase::Up && pod.behaviour.is_good())?;
        let since = pod.up_since + SETTLE_TIME - MAX_CLOCK_OFFSET;
        (since <= now()).then_some((pod.files.lock.as_str(), since))
    }

    /// A user has requested the update now, so it waits for no other server.
    fn is_update_requested(&self) -> bool {
        self.invariants.requested_until.is_some_and(|until| now() < until + REQUEST_GRACE)
    }

    /// Whether an update has begun here: announced since the window opened, or its template is written. A first start
    /// does not count.
    fn has_update_begun(&self) -> bool {
        self.stable_revision().is_some()
            && (self.announced_at().is_some()
                || self
                    .objects
                    .get(&self.stateful_set_key())
                    .is_ok_and(|stateful_set| self.is_update_written(stateful_set)))
    }

    /// Whether the written template differs from the stable one and is an update.
    fn is_update_written(&self, stateful_set: &Value) -> bool {
        let template_revision = revision(&stateful_set["spec"]["template"]);
        self.stable_revision().is_some_and(|stable| stable != template_revision) && self.is_update(template_revision)
    }

    /// When the first announcement of an update since the window opened was made.
    fn announced_at(&self) -> Option<Timestamp> {
        let announcements = self.pod.iter().flat_map(|pod| &pod.agent.announcements);
        announcements
            .filter(|announcement| is_of_current_window(announcement))
            .map(|announcement| announcement.at)
            .min()
    }

    /// Whether an update is in progress here without a fault or an intervention, so that this server holds an update
    /// slot. After a fault the operator may have left it to a user.
    fn is_updating(&self, disturbed_at: Option<Timestamp>) -> bool {
        let (Some(pod), Ok(stateful_set)) = (&self.pod, self.objects.get(&self.stateful_set_key())) else {
            return false;
        };
        if self.stable_revision().is_none() || is_scaled_to_zero(stateful_set) || pod.starts > 1 {
            return false;
        }
        let counts = |announcement: &FakeAnnouncement| {
            is_of_current_window(announcement)
                && now() < announcement.ends
                && disturbed_at.is_none_or(|disturbed| disturbed < announcement.at)
        };
        // A process that dies before it records the announcement leaves only the announcement itself.
        let is_recorded = !self.facts()["announced"].is_null();
        if is_recorded
            && pod.accepts_commands()
            && pod.agent.is_reachable()
            && pod.agent.announcements.iter().any(counts)
        {
            return true;
        }
        let is_progressing = match pod.phase {
            Phase::Preparing | Phase::Stopping => true,
            Phase::Booting => now() < pod.started_at + START_TIMEOUT / 2,
            Phase::Up => pod.behaviour.is_good() && !pod.is_hanging(),
            Phase::Pending | Phase::NodeLost | Phase::Refused(_) | Phase::Exited => false,
        };
        is_progressing && is_partition_open(stateful_set) && self.is_update_written(stateful_set)
    }

    /// The node of its pod.
    fn node_name(&self) -> Option<String> {
        let pod = self.objects.get(&self.pod_key()).ok()?;
        pod["spec"]["nodeName"].as_str().map(str::to_owned)
    }

    /// The version set that an update installs instead of the running one.
    fn target_lock(&self) -> Option<String> {
        let (pod, stateful_set) = (self.pod.as_ref()?, self.objects.get(&self.stateful_set_key()).ok()?);
        let target_lock = stateful_set["spec"]["template"]["metadata"]["annotations"][LOCK_DIGEST].as_str()?;
        (target_lock != pod.files.lock && self.is_update_written(stateful_set)).then(|| target_lock.to_owned())
    }
}

fn is_of_current_window(announcement: &FakeAnnouncement) -> bool {
    announcement.act.starts_with("update/") && Scenario::opened_at(now()) <= announcement.at
}

impl Fleet {
    /// After a pass over this server has ended, slept or died: checks whether it was allowed to begin an update.
    pub(super) fn check_pass(&mut self, index: usize) {
        let (has_begun, target_lock, is_requested) = {
            let mut cluster = self.servers[index].handle.cluster();
            cluster.record_verified();
            (cluster.has_update_begun(), cluster.target_lock(), cluster.is_update_requested())
        };
        let server = &mut self.servers[index];
        let begins = has_begun && !server.has_update_begun;
        let new_target = target_lock.clone().filter(|_| target_lock != server.target_lock);
        (server.has_update_begun, server.target_lock) = (has_begun, target_lock);
        if is_requested {
            return;
        }
        // An update that another leader has begun at the same time is found only by a pass.
        if begins && self.two_leaders_at.is_none_or(|led| led + TWO_LEADERS_GRACE < now()) {
            self.check_update_slot(index);
        }
        if let Some(lock) = new_target {
            self.check_followed(index, &lock);
        }
    }

    /// Checks that an update slot was free. The operator knows updates from before its start by their status or by a
    /// pass.
    fn check_update_slot(&self, index: usize) {
        let node = self.servers[index].handle.cluster().node_name();
        let (mut total, mut on_this_node) = (0, 0);
        for (_, other) in self.servers.iter().enumerate().filter(|(other_index, _)| *other_index != index) {
            let cluster = other.handle.cluster();
            if other.is_state_known() && cluster.is_updating(other.disturbed_at) {
                total += 1;
                on_this_node += u16::from(other.is_observed && node.is_some() && cluster.node_name() == node);
            }
        }
        let fits = |others: u16, bound: u16| bound == 0 || others < bound;
        let (fits_in_total, fits_on_node) = (fits(total, self.bounds.total), fits(on_this_node, self.bounds.per_node));
        let mut cluster = self.servers[index].handle.cluster();
        if !cluster.is_scripted() {
            cluster.trace(format!(
                "an update begins here; so many are under way elsewhere: {total}, on this node: {on_this_node}"
            ));
        }
        cluster.check(fits_in_total, "the limit of concurrent updates is kept");
        cluster.check(fits_on_node, "the limit of concurrent updates on one node is kept");
    }

    /// Checks that the followed server had run this version set long enough when the update began here.
    fn check_followed(&self, index: usize, lock: &str) {
        let Some((followed, soak)) = self.followed_server(index) else { return };
        let since = self.servers[followed].verified_since.get(lock).copied();
        let mut cluster = self.servers[index].handle.cluster();
        let began_at = cluster.announced_at().unwrap_or_else(now);
        let has_soaked = since.is_some_and(|since| since + soak <= began_at);
        cluster.check(has_soaked, "the followed server has run a version set long enough first");
    }

    /// The server that this one follows, and for how long that one has to run an update first.
    fn followed_server(&self, index: usize) -> Option<(usize, SignedDuration)> {
        let (name, soak) = self.servers[index].handle.cluster().scenario.server_index.follows?;
        let followed = self.servers.iter().position(|other| other.name == name)?;
        Some((followed, soak))
    }

    /// The earliest time at which a server may stop waiting for the one that it follows. `None` if it still has to
    /// wait, as far as can be known, or if it follows none.
    fn follow_wait_ends_at(&self, index: usize) -> Option<Timestamp> {
        let (followed, soak) = self.followed_server(index)?;
        let (lock, since) = self.servers[followed].running_since.as_ref()?;
        let is_newer = self.servers[index].handle.cluster().scenario.first_lock.get() != Some(lock);
        is_newer.then(|| *since + soak)
    }

    /// Whether the last window was too short. Then a server waited for an update slot in it, or could not begin because
    /// of the server that it follows.
    pub(super) fn has_waiting_servers(&self) -> bool {
        let opened_at = Scenario::opened_at(now());
        let waits = |(index, server): (usize, &Server)| {
            server.waited_for_slot_at.is_some_and(|waited| opened_at <= waited)
                || self.follow_wait_ends_at(index).is_some_and(|wait_ends_at| opened_at <= wait_ends_at)
        };
        self.servers.iter().enumerate().any(waits) || self.slots_in_use() > 0
    }

    /// The final state of each server: up to date or waiting for a user's decision. No server holds an update slot.
    pub(super) fn check_final_states(&self) -> Vec<String> {
        let opened_at = Scenario::opened_at(now());
        let mut final_states = Vec::new();
        for index in 0..self.servers.len() {
            let waits = self.followed_server(index).is_some_and(|(followed, _)| {
                // A disturbed server may have been kept without a verification, which starts no waiting time.
                let is_disturbed = self.servers[followed].handle.cluster().invariants.disturbed;
                is_disturbed || self.follow_wait_ends_at(index).is_none_or(|wait_ends_at| opened_at <= wait_ends_at)
            });
            let mut cluster = self.servers[index].handle.cluster();
            cluster.waits_for_leader = waits;
            final_states.push(cluster.check_final_state());
        }
        let in_use = self.slots_in_use();
        self.servers[0].handle.cluster().check(in_use == 0, "no server holds an update slot at the end");
        final_states
    }

    fn slots_in_use(&self) -> i64 {
        self.processes.iter().map(|process| process.operators[0].update_slots().0).sum()
    }
}
