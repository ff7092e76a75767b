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
use crate::simulation::fake_agent::Told;
use crate::simulation::fake_kubelet::Phase;
use crate::simulation::invariants::{SETTLES, START, is_asleep, is_open, revision};
use crate::simulation::scenario::Scenario;

/// How long after two processes led, one of them may miss an update that the other one has begun.
const TWO_HAVE_LED: SignedDuration = SignedDuration::from_mins(1);
/// A decision from a moment ago may still carry out a user's request.
const JUST_ASKED: SignedDuration = SignedDuration::from_secs(10);
/// A verification uses the clock of a node, which may be ahead.
const CLOCKS_DIFFER: SignedDuration = SignedDuration::from_secs(30);

impl SimCluster {
    /// Status and reason of a condition of the server.
    pub(super) fn said(&self, condition: &str) -> Option<(String, String)> {
        let server = self.objects.get(&self.key_of_server()).expect("nobody deletes it");
        let mut conditions = server["status"]["conditions"].as_array().into_iter().flatten();
        let said = conditions.find(|said| said["type"] == condition)?;
        Some((said["status"].as_str()?.to_owned(), said["reason"].as_str()?.to_owned()))
    }

    /// The working version set that has run long enough to be verified, and the earliest time since when it has.
    pub(super) fn proven_set(&self) -> Option<(&str, Timestamp)> {
        let pod = self.pod.as_ref().filter(|pod| pod.phase == Phase::Up && pod.fate.is_good())?;
        let since = pod.up_since + SETTLES - CLOCKS_DIFFER;
        (since <= now()).then_some((pod.files.lock.as_str(), since))
    }

    /// A user has requested the update now, so it waits for no other server.
    fn is_asked_for(&self) -> bool {
        self.ledger.asked_until.is_some_and(|until| now() < until + JUST_ASKED)
    }

    /// Whether an update has begun here: announced since the window opened, or its template is written. A first start
    /// does not count.
    fn has_begun(&self) -> bool {
        self.settled().is_some()
            && (self.told_at().is_some() || self.objects.get(&self.key_of_set()).is_ok_and(|set| self.comes(set)))
    }

    /// Whether the written template differs from the stable one and is an update.
    fn comes(&self, set: &Value) -> bool {
        let stands = revision(&set["spec"]["template"]);
        self.settled().is_some_and(|settled| settled != stands) && self.is_update(stands)
    }

    /// When the first announcement of an update since the window opened was made.
    fn told_at(&self) -> Option<Timestamp> {
        let told = self.pod.iter().flat_map(|pod| &pod.agent.told);
        told.filter(|told| is_of_this_opening(told)).map(|told| told.at).min()
    }

    /// Whether an update is in progress here without a fault or an intervention, so that this server holds an update
    /// slot. After a fault the operator may have left it to a user.
    fn is_being_updated(&self, meddled_at: Option<Timestamp>) -> bool {
        let (Some(pod), Ok(set)) = (&self.pod, self.objects.get(&self.key_of_set())) else { return false };
        if self.settled().is_none() || is_asleep(set) || pod.starts > 1 {
            return false;
        }
        let counts = |told: &Told| {
            is_of_this_opening(told) && now() < told.ends && meddled_at.is_none_or(|meddled| meddled < told.at)
        };
        // A process that dies before it records the announcement leaves only the announcement itself.
        let is_recorded = !self.facts()["announced"].is_null();
        if is_recorded && pod.obeys() && pod.agent.answers() && pod.agent.told.iter().any(counts) {
            return true;
        }
        let goes_well = match pod.phase {
            Phase::Preparing | Phase::Stopping => true,
            Phase::Booting => now() < pod.started_at + START / 2,
            Phase::Up => pod.fate.is_good() && !pod.hangs(),
            Phase::Pending | Phase::Lost | Phase::Refused(_) | Phase::Ended => false,
        };
        goes_well && is_open(set) && self.comes(set)
    }

    /// The node of its pod.
    fn placed_on(&self) -> Option<String> {
        let pod = self.objects.get(&self.key_of_pod()).ok()?;
        pod["spec"]["nodeName"].as_str().map(str::to_owned)
    }

    /// The version set that an update installs instead of the running one.
    fn brought(&self) -> Option<String> {
        let (pod, set) = (self.pod.as_ref()?, self.objects.get(&self.key_of_set()).ok()?);
        let brought = set["spec"]["template"]["metadata"]["annotations"][LOCK_DIGEST].as_str()?;
        (brought != pod.files.lock && self.comes(set)).then(|| brought.to_owned())
    }
}

fn is_of_this_opening(told: &Told) -> bool {
    told.act.starts_with("update/") && Scenario::opened_at(now()) <= told.at
}

impl Fleet {
    /// After a pass over this server has ended, slept or died: checks whether it was allowed to begin an update.
    pub(super) fn judge_pass(&mut self, at: usize) {
        let (has_begun, brought, is_asked_for) = {
            let mut world = self.servers[at].shared.world();
            world.note_proven();
            (world.has_begun(), world.brought(), world.is_asked_for())
        };
        let server = &mut self.servers[at];
        let begins = has_begun && !server.has_begun;
        let brings = brought.clone().filter(|_| brought != server.brought);
        (server.has_begun, server.brought) = (has_begun, brought);
        if is_asked_for {
            return;
        }
        // An update that another leader has begun at the same time is found only by a pass.
        if begins && self.two_led_at.is_none_or(|led| led + TWO_HAVE_LED < now()) {
            self.judge_turn(at);
        }
        if let Some(set) = brings {
            self.judge_following(at, &set);
        }
    }

    /// Checks that an update slot was free. The operator knows updates from before its start by their status or by a
    /// pass.
    fn judge_turn(&self, at: usize) {
        let here = self.servers[at].shared.world().placed_on();
        let (mut together, mut on_this_node) = (0, 0);
        for (_, other) in self.servers.iter().enumerate().filter(|(of, _)| *of != at) {
            let world = other.shared.world();
            if other.is_known() && world.is_being_updated(other.meddled_at) {
                together += 1;
                on_this_node += u16::from(other.is_looked_at && here.is_some() && world.placed_on() == here);
            }
        }
        let fits = |others: u16, bound: u16| bound == 0 || others < bound;
        let (fits_together, fits_here) =
            (fits(together, self.bounds.together), fits(on_this_node, self.bounds.on_a_node));
        let mut world = self.servers[at].shared.world();
        if !world.is_scripted() {
            world.tell(format!(
                "an update begins here; so many are under way elsewhere: {together}, on this node: {on_this_node}"
            ));
        }
        world.must(fits_together, "no more servers are updated at the same time than may");
        world.must(fits_here, "no more servers are updated at the same time on one node than may");
    }

    /// Checks that the followed server had run this version set long enough when the update began here.
    fn judge_following(&self, at: usize, set: &str) {
        let Some((followed, soak)) = self.followed(at) else { return };
        let since = self.servers[followed].ran.get(set).copied();
        let mut world = self.servers[at].shared.world();
        let began_at = world.told_at().unwrap_or_else(now);
        let has_soaked = since.is_some_and(|since| since + soak <= began_at);
        world.must(has_soaked, "a set comes before the server that goes first has run it for long enough");
    }

    /// The server that this one follows, and for how long that one has to run an update first.
    fn followed(&self, at: usize) -> Option<(usize, SignedDuration)> {
        let (name, soak) = self.servers[at].shared.world().scenario.seat.follows?;
        let followed = self.servers.iter().position(|other| other.name == name)?;
        Some((followed, soak))
    }

    /// The earliest time at which a server may stop waiting for the one that it follows. `None` if it still has to
    /// wait, as far as can be known, or if it follows none.
    fn is_let_go_at(&self, at: usize) -> Option<Timestamp> {
        let (followed, soak) = self.followed(at)?;
        let (set, since) = self.servers[followed].runs.as_ref()?;
        let is_newer = self.servers[at].shared.world().scenario.first.get() != Some(set);
        is_newer.then(|| *since + soak)
    }

    /// Whether the last window was too short. Then a server waited for an update slot in it, or could not begin because
    /// of the server that it follows.
    pub(super) fn is_anybody_waiting(&self) -> bool {
        let opened_at = Scenario::opened_at(now());
        let waits = |(at, server): (usize, &Server)| {
            server.waited_at.is_some_and(|waited| opened_at <= waited)
                || self.is_let_go_at(at).is_some_and(|let_go| opened_at <= let_go)
        };
        self.servers.iter().enumerate().any(waits) || self.turns_taken() > 0
    }

    /// The final state of each server: up to date or waiting for a user's decision. No server holds an update slot.
    pub(super) fn judge_end(&self) -> Vec<String> {
        let opened_at = Scenario::opened_at(now());
        let mut ends = Vec::new();
        for at in 0..self.servers.len() {
            let waits = self.followed(at).is_some_and(|(followed, _)| {
                // A disturbed server may have been kept without a verification, which starts no waiting time.
                let is_disturbed = self.servers[followed].shared.world().ledger.disturbed;
                is_disturbed || self.is_let_go_at(at).is_none_or(|let_go| opened_at <= let_go)
            });
            let mut world = self.servers[at].shared.world();
            world.waits_for_another = waits;
            ends.push(world.judge_end());
        }
        let taken = self.turns_taken();
        self.servers[0].shared.world().must(taken == 0, "nobody holds a turn in the end");
        ends
    }

    fn turns_taken(&self) -> i64 {
        self.processes.iter().map(|process| process.operators[0].turns().0).sum()
    }
}
