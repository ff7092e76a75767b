//! Edge (writes). The world that a walk drives: one server in a small Kubernetes, its node, its volume and its players.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use fixtures::dice::Rng;
use jiff::{SignedDuration, Timestamp};
use scheduler::observation::Revision;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::backups::Copies;
use super::by_script::ByScript;
use super::cluster_handle::RequestFault;
use super::fake_kubelet::Pod;
use super::fake_minecraft::PlayerBuilds;
use super::fake_node::Node;
use super::forced_deletion::Forced;
use super::invariants::InvariantState;
use super::objects::{Key, Objects};
use super::process_exits::Ends;
use super::scenario::Scenario;
use crate::clock::now;
use crate::leader_election::LEASE;

/// The server, where there is but one.
pub(super) const SERVER: &str = "lobby";

/// The name of the operator with this fence.
pub(super) fn identity(fence: u64) -> String {
    format!("operator-{fence}")
}

/// What the operator has done to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    Changed,
    Deleted,
}

/// An operator sleeps for long before one request of an update.
#[derive(Debug)]
pub(super) struct Sleeps {
    /// So many requests come first. More than none in the end: there were not so many.
    pub(super) before: u32,
    /// The template of the update is written, and the door is not open yet: they count.
    pub(super) counts: bool,
    pub(super) has_slept: bool,
}

impl Sleeps {
    pub(super) fn before(request: u32) -> Self {
        Self { before: request, counts: false, has_slept: false }
    }
}

/// Where the volumes of the server lie.
#[derive(Debug)]
pub(super) struct Disks {
    dir: TempDir,
}

impl Disks {
    pub(super) fn new() -> Self {
        // In memory, where there is one: nothing here is about the disk itself.
        let memory = PathBuf::from("/dev/shm");
        let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let disks = Self { dir: dir.expect("a directory for volumes") };
        for place in ["data", "copies", "mounts"] {
            std::fs::create_dir(disks.dir.path().join(place)).expect("a directory for a volume");
        }
        disks
    }

    pub(super) fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    pub(super) fn copies(&self) -> PathBuf {
        self.dir.path().join("copies")
    }

    /// What does not outlive a pod.
    pub(super) fn mounts(&self) -> PathBuf {
        self.dir.path().join("mounts")
    }
}

/// All there is.
pub(super) struct SimCluster {
    pub(super) scenario: Scenario,
    pub(super) objects: Objects,
    pub(super) disks: Disks,
    pub(super) dice: Rng,
    /// The pod that the kubelet is at.
    pub(super) pod: Option<Pod>,
    /// The server of the pod before it that still runs.
    pub(super) forced: Option<Forced>,
    pub(super) node: Node,
    pub(super) marks: PlayerBuilds,
    pub(super) copies: Copies,
    pub(super) ledger: InvariantState,
    pub(super) ends: Ends,
    pub(super) by_script: ByScript,
    /// Of the templates that the controller has seen, by the names of their entries: a name stands for one template, also when history is lost.
    pub(super) revisions: BTreeMap<String, Revision>,
    /// So many are on.
    pub(super) players: u32,
    /// Since when nobody is on. None: somebody is.
    pub(super) empty_since: Option<Timestamp>,
    /// Since when somebody is on.
    pub(super) played_since: Option<Timestamp>,
    pub(super) next_players: Timestamp,
    pub(super) controller_at: Option<Timestamp>,
    /// An object that operators watch has changed.
    pub(super) news: bool,
    /// The server that this one follows has not gone first, or not for long enough.
    pub(super) waits_for_another: bool,
    /// Changes that operators have made.
    pub(super) writes: u32,
    pub(super) sleeps: Option<Sleeps>,
    /// Requests that may still meet a mishap.
    mishaps: usize,
    /// Those that have.
    pub(super) met: u32,
    pub(super) story: Vec<String>,
    pub(super) broken: BTreeSet<String>,
}

impl SimCluster {
    pub(super) fn new(scenario: Scenario, mut dice: Rng) -> Self {
        let (mishaps, seat) = (dice.below(7), scenario.seat);
        let mut world = Self {
            scenario,
            objects: Objects::of(seat.number),
            disks: Disks::new(),
            dice,
            pod: None,
            forced: None,
            node: Node::numbered(seat.node),
            marks: PlayerBuilds::default(),
            copies: Copies::default(),
            ledger: InvariantState::default(),
            ends: Ends::default(),
            by_script: ByScript::default(),
            revisions: BTreeMap::new(),
            players: 0,
            empty_since: Some(now()),
            played_since: None,
            next_players: now(),
            controller_at: None,
            news: true,
            waits_for_another: false,
            writes: 0,
            sleeps: None,
            mishaps,
            met: 0,
            story: Vec::new(),
            broken: BTreeSet::new(),
        };
        let server = world.scenario.server();
        world.objects.create("papermcservers", server, now()).expect("the first object");
        world
    }

    /// One line of the story.
    pub(super) fn tell(&mut self, line: impl AsRef<str>) {
        self.story.push(format!("{} {}", now(), line.as_ref()));
    }

    /// What must be true.
    pub(super) fn must(&mut self, is_true: bool, rule: &str) {
        if !is_true && self.scenario.has_rules {
            self.tell(format!("BROKEN: {rule}"));
            self.broken.insert(rule.to_owned());
        }
    }

    pub(super) fn key_of_set(&self) -> Key {
        Key::new("statefulsets", self.scenario.seat.name)
    }

    pub(super) fn key_of_pod(&self) -> Key {
        Key::new("pods", &format!("{}-0", self.scenario.seat.name))
    }

    pub(super) fn key_of_budget(&self) -> Key {
        Key::new("poddisruptionbudgets", self.scenario.seat.name)
    }

    pub(super) fn key_of_server(&self) -> Key {
        Key::new("papermcservers", self.scenario.seat.name)
    }

    /// An operator starts, and holds the Lease for as long as no other one does.
    pub(super) fn take_lease(&mut self, fence: u64) {
        self.tell(format!("operator: process {fence} starts and leads"));
        let key = Key::new("leases", LEASE);
        self.objects.remove(&key);
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": LEASE},
            "spec": {
                "holderIdentity": identity(fence), "leaseTransitions": fence, "leaseDurationSeconds": 1_000_000,
                "renewTime": format!("{:.6}", now()),
            },
        });
        self.objects.create("leases", lease, now()).expect("the one before was removed");
    }

    /// Whether a scenario file says what happens.
    pub(super) fn is_scripted(&self) -> bool {
        self.scenario.script.is_some()
    }

    /// One line that only the transcript of a scenario file has.
    pub(super) fn relate(&mut self, line: impl AsRef<str>) {
        if self.is_scripted() {
            self.tell(line);
        }
    }

    /// Between so many seconds and so many.
    pub(super) fn seconds(&mut self, from: usize, to: usize) -> SignedDuration {
        let seconds =
            if self.is_scripted() { usize::midpoint(from, to) } else { from + self.dice.below(to - from + 1) };
        SignedDuration::from_secs(i64::try_from(seconds).expect("a few seconds"))
    }

    /// When there is an operator again that leads: a restart of it by Kubernetes takes seconds.
    pub(super) fn operator_restarts_at(&mut self) -> Timestamp {
        now() + self.seconds(3, 60)
    }

    /// A pod or a `StatefulSet` is not as it was: controller and operators will see it.
    pub(super) fn changed(&mut self) {
        self.news = true;
        let soon = now() + self.seconds(0, 2);
        self.controller_at = Some(self.controller_at.map_or(soon, |at| at.min(soon)));
    }

    /// What the operator has just done to an object.
    pub(super) fn notice(&mut self, key: &Key, written: Written, before: Option<&Value>) {
        self.writes += 1;
        if key.plural == "statefulsets" || key.plural == "pods" {
            self.changed();
        }
        if *key == self.key_of_set() && written == Written::Changed {
            self.notice_set(before);
        }
        if *key == self.key_of_pod() && written == Written::Deleted {
            self.tell("operator: deletes the pod");
            self.check_restart();
        }
        if *key == self.key_of_server() {
            self.notice_status(before);
            self.relate_conditions(before);
        }
        if *key == self.key_of_budget() && written == Written::Changed {
            self.relate_budget(before);
        }
    }

    /// What becomes of a request: a mishap, and until when whoever has sent it sleeps first.
    pub(super) fn draw_mishap(&mut self, writes: bool) -> (Option<RequestFault>, Option<Timestamp>) {
        if let Some(until) = self.sleeps_until(writes) {
            return (None, Some(until));
        }
        if self.mishaps == 0 || !self.dice.once_in(self.scenario.requests_for_a_mishap) {
            return (None, None);
        }
        self.mishaps -= 1;
        self.met += 1;
        self.note_disturbance();
        self.ends.note_strike(now());
        match self.dice.below(7) {
            0 => self.meets(RequestFault::RequestLost),
            1 => self.meets(RequestFault::AnswerLost),
            2 => self.meets(RequestFault::DeathBefore),
            3 => self.meets(RequestFault::DeathAfter),
            4 => self.meets(RequestFault::Twice),
            long => {
                // Between a look and the write that it leads to nothing but a request lies, and that is not under way for minutes.
                let nap = if writes || long == 5 { self.seconds(1, 9) } else { self.seconds(10, 3_000) };
                self.tell(format!("the operator sleeps for {} s", nap.as_secs()));
                self.ends.note_strike(now() + nap);
                (None, Some(now() + nap))
            }
        }
    }

    /// Until when whoever sends this request sleeps, where that is what the walk is about.
    fn sleeps_until(&mut self, writes: bool) -> Option<Timestamp> {
        let sleeps = self.sleeps.as_mut().filter(|sleeps| sleeps.counts)?;
        let comes_later = sleeps.before > 0;
        sleeps.before = sleeps.before.saturating_sub(1);
        sleeps.counts = comes_later;
        // Nothing but a request lies between a look and a write.
        if comes_later || writes {
            return None;
        }
        sleeps.has_slept = true;
        self.tell("the operator sleeps for half an hour");
        let until = now() + SignedDuration::from_mins(30);
        self.ends.note_strike(now());
        self.ends.note_strike(until);
        Some(until)
    }

    fn meets(&mut self, mishap: RequestFault) -> (Option<RequestFault>, Option<Timestamp>) {
        self.tell(format!("of a request: {mishap:?}"));
        (Some(mishap), None)
    }

    /// The clocks are put by this: what comes after a while still comes after that while.
    pub(super) fn shift(&mut self, by: SignedDuration) {
        if by.is_negative() {
            self.forget_served();
        }
        let of_pod = self.pod.as_mut().map(Pod::waits_for).into_iter().flatten();
        let forced = self.forced.as_mut().map(|forced| &mut forced.ends_at);
        let all = [&mut self.controller_at, &mut self.node.evicts_at].into_iter().flatten().chain(of_pod).chain(forced);
        all.chain([&mut self.next_players]).for_each(|at| *at += by);
    }

    /// When something happens next by itself.
    pub(super) fn next(&self) -> Timestamp {
        let of_pod = self.pod.as_ref().and_then(Pod::next);
        let of_forced = self.forced.as_ref().map(|forced| forced.ends_at);
        let all = self
            .next_by_script()
            .into_iter()
            .chain(self.controller_at)
            .chain(of_pod)
            .chain(of_forced)
            .chain(self.node.evicts_at);
        all.fold(self.next_players, Timestamp::min)
    }

    /// The facts on the `StatefulSet`.
    pub(super) fn facts(&self) -> Value {
        self.objects.get(&self.key_of_set()).map_or_else(|_| json!({}), facts_of)
    }
}

/// The facts on this `StatefulSet`.
pub(super) fn facts_of(set: &Value) -> Value {
    let text = set["metadata"]["annotations"][crate::k8s::labels::FACTS].as_str();
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_else(|| json!({}))
}
