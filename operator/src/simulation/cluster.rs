//! Edge (writes). Holds the state of a run: one server in a small cluster, with its node, its volume and its players.

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

/// The name of the server, if there is only one.
pub(super) const SERVER: &str = "lobby";

/// The name of the operator with this fence.
pub(super) fn identity(fence: u64) -> String {
    format!("operator-{fence}")
}

/// A change of an object by the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    Changed,
    Deleted,
}

/// A long delay of the operator before one request of an update.
#[derive(Debug)]
pub(super) struct Sleeps {
    /// How many requests precede the delayed one. More than 0 at the end if there were too few.
    pub(super) before: u32,
    /// Whether requests count: the template of the update is written, and the partition still blocks it.
    pub(super) counts: bool,
    pub(super) has_slept: bool,
}

impl Sleeps {
    pub(super) fn before(request: u32) -> Self {
        Self { before: request, counts: false, has_slept: false }
    }
}

/// The directories of the server's volumes.
#[derive(Debug)]
pub(super) struct Disks {
    dir: TempDir,
}

impl Disks {
    pub(super) fn new() -> Self {
        // In memory if possible, because the disk itself is not tested here.
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

    /// Files that do not outlive a pod.
    pub(super) fn mounts(&self) -> PathBuf {
        self.dir.path().join("mounts")
    }
}

/// The whole simulated cluster.
pub(super) struct SimCluster {
    pub(super) scenario: Scenario,
    pub(super) objects: Objects,
    pub(super) disks: Disks,
    pub(super) dice: Rng,
    /// The pod that the kubelet handles.
    pub(super) pod: Option<Pod>,
    /// The server of the previous pod that still runs.
    pub(super) forced: Option<Forced>,
    pub(super) node: Node,
    pub(super) marks: PlayerBuilds,
    pub(super) copies: Copies,
    pub(super) ledger: InvariantState,
    pub(super) ends: Ends,
    pub(super) by_script: ByScript,
    /// Revisions of the templates that the controller has seen, by the names of their entries. A name refers to one
    /// template, even if the history is lost.
    pub(super) revisions: BTreeMap<String, Revision>,
    /// The number of players.
    pub(super) players: u32,
    /// Since when the server is empty. `None` if it is not.
    pub(super) empty_since: Option<Timestamp>,
    /// Since when players are on the server.
    pub(super) played_since: Option<Timestamp>,
    pub(super) next_players: Timestamp,
    pub(super) controller_at: Option<Timestamp>,
    /// An object that operators watch has changed.
    pub(super) news: bool,
    /// The server that this one follows has not been updated, or not for long enough.
    pub(super) waits_for_another: bool,
    /// The number of writes by operators.
    pub(super) writes: u32,
    pub(super) sleeps: Option<Sleeps>,
    /// How many requests may still get a fault.
    mishaps: usize,
    /// How many have got one.
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

    /// Adds one line to the trace.
    pub(super) fn tell(&mut self, line: impl AsRef<str>) {
        self.story.push(format!("{} {}", now(), line.as_ref()));
    }

    /// Checks an invariant.
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

    /// An operator starts, and holds the Lease until another one takes it.
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

    /// Whether a scenario file defines the events.
    pub(super) fn is_scripted(&self) -> bool {
        self.scenario.script.is_some()
    }

    /// Adds one line that only the transcript of a scenario file has.
    pub(super) fn relate(&mut self, line: impl AsRef<str>) {
        if self.is_scripted() {
            self.tell(line);
        }
    }

    /// A duration between `from` and `to` seconds.
    pub(super) fn seconds(&mut self, from: usize, to: usize) -> SignedDuration {
        let seconds =
            if self.is_scripted() { usize::midpoint(from, to) } else { from + self.dice.below(to - from + 1) };
        SignedDuration::from_secs(i64::try_from(seconds).expect("a few seconds"))
    }

    /// When the next operator leads. A restart by Kubernetes takes seconds.
    pub(super) fn operator_restarts_at(&mut self) -> Timestamp {
        now() + self.seconds(3, 60)
    }

    /// A pod or a `StatefulSet` has changed, and controller and operators will notice it.
    pub(super) fn changed(&mut self) {
        self.news = true;
        let soon = now() + self.seconds(0, 2);
        self.controller_at = Some(self.controller_at.map_or(soon, |at| at.min(soon)));
    }

    /// Takes in a change of an object by the operator.
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

    /// Draws the fault of a request, and until when the operator sleeps before it.
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
                // Only a request separates the operator's last check from its write, and a request does not take
                // minutes.
                let nap = if writes || long == 5 { self.seconds(1, 9) } else { self.seconds(10, 3_000) };
                self.tell(format!("the operator sleeps for {} s", nap.as_secs()));
                self.ends.note_strike(now() + nap);
                (None, Some(now() + nap))
            }
        }
    }

    /// Until when the operator sleeps before this request, if the run tests that.
    fn sleeps_until(&mut self, writes: bool) -> Option<Timestamp> {
        let sleeps = self.sleeps.as_mut().filter(|sleeps| sleeps.counts)?;
        let comes_later = sleeps.before > 0;
        sleeps.before = sleeps.before.saturating_sub(1);
        sleeps.counts = comes_later;
        // Only a request separates a check from a write.
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

    /// The clocks are moved by `by`. Waits keep their length.
    pub(super) fn shift(&mut self, by: SignedDuration) {
        if by.is_negative() {
            self.forget_served();
        }
        let of_pod = self.pod.as_mut().map(Pod::waits_for).into_iter().flatten();
        let forced = self.forced.as_mut().map(|forced| &mut forced.ends_at);
        let all = [&mut self.controller_at, &mut self.node.evicts_at].into_iter().flatten().chain(of_pod).chain(forced);
        all.chain([&mut self.next_players]).for_each(|at| *at += by);
    }

    /// The time of the next event.
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
