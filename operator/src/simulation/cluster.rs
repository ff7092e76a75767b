//! Edge (writes). Holds the state of a run: one server in a small cluster, with its node, its volume and its players.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use agent_api::FileSet;
use fixtures::rng::Rng;
use jiff::{SignedDuration, Timestamp};
use scheduler::observation::Revision;
use serde_json::{Value, json};
use tempfile::TempDir;
use validate::CheckedServer;

use super::backups::BackupInvariants;
use super::by_script::ScriptedChanges;
use super::cluster_handle::RequestFault;
use super::fake_kubelet::Pod;
use super::fake_minecraft::PlayerBuilds;
use super::fake_node::Node;
use super::forced_deletion::ForcedDeletion;
use super::invariants::InvariantState;
use super::objects::{Key, Objects};
use super::process_exits::ExitInvariants;
use super::request_counts::RequestCounts;
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
pub(super) enum ObjectChange {
    Changed,
    Deleted,
}

/// A long delay of the operator before one request of an update.
#[derive(Debug)]
pub(super) struct RequestDelay {
    /// How many requests precede the delayed one. More than 0 at the end if there were too few.
    pub(super) requests_before: u32,
    /// Whether requests count: the template of the update is written, and the partition still blocks it.
    pub(super) is_counting: bool,
    pub(super) has_slept: bool,
}

impl RequestDelay {
    pub(super) fn before_request(request: u32) -> Self {
        Self { requests_before: request, is_counting: false, has_slept: false }
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
        for name in ["data", "copies", "mounts"] {
            std::fs::create_dir(disks.dir.path().join(name)).expect("a directory for a volume");
        }
        disks
    }

    pub(super) fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    pub(super) fn backups(&self) -> PathBuf {
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
    pub(super) rng: Rng,
    /// The pod that the kubelet handles.
    pub(super) pod: Option<Pod>,
    /// The server of the previous pod that still runs.
    pub(super) forced: Option<ForcedDeletion>,
    pub(super) node: Node,
    pub(super) builds: PlayerBuilds,
    pub(super) backups: BackupInvariants,
    pub(super) invariants: InvariantState,
    pub(super) stops: ExitInvariants,
    pub(super) scripted: ScriptedChanges,
    /// The files of all pods so far, by their digests in the templates.
    pub(super) started_sets: BTreeMap<String, FileSet>,
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
    pub(super) has_changes: bool,
    /// The server that this one follows has not been updated, or not for long enough.
    pub(super) waits_for_leader: bool,
    /// The number of writes by operators.
    pub(super) writes: u32,
    /// The requests of operators.
    pub(super) requests: RequestCounts,
    pub(super) sleeps: Option<RequestDelay>,
    /// How many requests may still get a fault.
    faults_left: usize,
    /// How many have got one.
    pub(super) faults_injected: u32,
    pub(super) trace: Vec<String>,
    pub(super) violations: BTreeSet<String>,
}

impl SimCluster {
    pub(super) fn new(scenario: Scenario, mut rng: Rng) -> Self {
        let (faults_left, server_index) = (rng.number_below(7), scenario.server_index);
        let mut cluster = Self {
            scenario,
            objects: Objects::with_number(server_index.number),
            disks: Disks::new(),
            rng,
            pod: None,
            forced: None,
            node: Node::with_number(server_index.node),
            builds: PlayerBuilds::default(),
            backups: BackupInvariants::default(),
            invariants: InvariantState::default(),
            stops: ExitInvariants::default(),
            scripted: ScriptedChanges::default(),
            started_sets: BTreeMap::new(),
            revisions: BTreeMap::new(),
            players: 0,
            empty_since: Some(now()),
            played_since: None,
            next_players: now(),
            controller_at: None,
            has_changes: true,
            waits_for_leader: false,
            writes: 0,
            requests: RequestCounts::default(),
            sleeps: None,
            faults_left,
            faults_injected: 0,
            trace: Vec::new(),
            violations: BTreeSet::new(),
        };
        let server = cluster.scenario.server();
        cluster.objects.create("papermcservers", server, now()).expect("the first object");
        cluster
    }

    /// Adds one line to the trace.
    pub(super) fn trace(&mut self, line: impl AsRef<str>) {
        self.trace.push(format!("{} {}", now(), line.as_ref()));
    }

    /// Checks an invariant.
    pub(super) fn check(&mut self, is_true: bool, rule: &str) {
        if !is_true && self.scenario.checks_invariants {
            self.trace(format!("BROKEN: {rule}"));
            self.violations.insert(rule.to_owned());
        }
    }

    pub(super) fn stateful_set_key(&self) -> Key {
        Key::new("statefulsets", self.scenario.server_index.name)
    }

    pub(super) fn pod_key(&self) -> Key {
        Key::new("pods", &format!("{}-0", self.scenario.server_index.name))
    }

    pub(super) fn budget_key(&self) -> Key {
        Key::new("poddisruptionbudgets", self.scenario.server_index.name)
    }

    pub(super) fn server_key(&self) -> Key {
        Key::new("papermcservers", self.scenario.server_index.name)
    }

    /// The server as the operator checks it.
    pub(super) fn scenario_server(&self) -> CheckedServer {
        let server = self.objects.get(&self.server_key()).expect("the server exists").clone();
        validate::check(&serde_json::from_value(server).expect("a server")).expect("a valid spec")
    }

    /// An operator starts, and holds the Lease until another one takes it.
    pub(super) fn take_lease(&mut self, fence: u64) {
        self.trace(format!("operator: process {fence} starts and leads"));
        let key = Key::new("leases", LEASE);
        self.objects.remove(&key);
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": LEASE},
            "spec": {
                "holderIdentity": identity(fence), "leaseTransitions": fence, "leaseDurationSeconds": 1_000_000,
                "renewTime": format!("{:.6}", now()),
            },
        });
        self.objects.create("leases", lease, now()).expect("the earlier Lease was removed");
    }

    /// Whether a scenario file defines the events.
    pub(super) fn is_scripted(&self) -> bool {
        self.scenario.script.is_some()
    }

    /// Adds one line that only the transcript of a scenario file has.
    pub(super) fn trace_if_scripted(&mut self, line: impl AsRef<str>) {
        if self.is_scripted() {
            self.trace(line);
        }
    }

    /// A duration between `from` and `to` seconds.
    pub(super) fn seconds(&mut self, from: usize, to: usize) -> SignedDuration {
        let seconds =
            if self.is_scripted() { usize::midpoint(from, to) } else { from + self.rng.number_below(to - from + 1) };
        SignedDuration::from_secs(i64::try_from(seconds).expect("a small number"))
    }

    /// When the next operator leads. A restart by Kubernetes takes seconds.
    pub(super) fn draw_operator_restart(&mut self) -> Timestamp {
        now() + self.seconds(3, 60)
    }

    /// A pod or a `StatefulSet` has changed, and controller and operators will notice it.
    pub(super) fn mark_changed(&mut self) {
        self.has_changes = true;
        let soon = now() + self.seconds(0, 2);
        self.controller_at = Some(self.controller_at.map_or(soon, |at| at.min(soon)));
    }

    /// Takes in a change of an object by the operator.
    pub(super) fn observe_write(&mut self, key: &Key, written: ObjectChange, before: Option<&Value>) {
        self.writes += 1;
        if key.plural == "statefulsets" || key.plural == "pods" {
            self.mark_changed();
        }
        if *key == self.stateful_set_key() && written == ObjectChange::Changed {
            self.observe_set(before);
        }
        if *key == self.pod_key() && written == ObjectChange::Deleted {
            self.trace("operator: deletes the pod");
            self.check_restart();
        }
        if *key == self.server_key() {
            self.observe_status(before);
            self.trace_conditions(before);
        }
        if *key == self.budget_key() && written == ObjectChange::Changed {
            self.trace_budget(before);
        }
    }

    /// Draws the fault of a request, and until when the operator sleeps before it.
    pub(super) fn draw_request_fault(&mut self, writes: bool) -> (Option<RequestFault>, Option<Timestamp>) {
        if let Some(until) = self.delay_until(writes) {
            return (None, Some(until));
        }
        if self.faults_left == 0 || !self.rng.one_in(self.scenario.requests_per_fault) {
            return (None, None);
        }
        self.faults_left -= 1;
        self.faults_injected += 1;
        self.record_disturbance();
        self.stops.record_fault(now());
        match self.rng.number_below(7) {
            0 => self.trace_request_fault(RequestFault::RequestLost),
            1 => self.trace_request_fault(RequestFault::AnswerLost),
            2 => self.trace_request_fault(RequestFault::CrashBefore),
            3 => self.trace_request_fault(RequestFault::CrashAfter),
            4 => self.trace_request_fault(RequestFault::Duplicated),
            long => {
                // Only a request separates the operator's last check from its write, and a request does not take
                // minutes.
                let delay = if writes || long == 5 { self.seconds(1, 9) } else { self.seconds(10, 3_000) };
                self.trace(format!("the operator sleeps for {} s", delay.as_secs()));
                self.stops.record_fault(now() + delay);
                (None, Some(now() + delay))
            }
        }
    }

    /// Until when the operator sleeps before this request, if the run tests that.
    fn delay_until(&mut self, writes: bool) -> Option<Timestamp> {
        let sleeps = self.sleeps.as_mut().filter(|sleeps| sleeps.is_counting)?;
        let is_later = sleeps.requests_before > 0;
        sleeps.requests_before = sleeps.requests_before.saturating_sub(1);
        sleeps.is_counting = is_later;
        // Only a request separates a check from a write.
        if is_later || writes {
            return None;
        }
        sleeps.has_slept = true;
        self.trace("the operator sleeps for half an hour");
        let until = now() + SignedDuration::from_mins(30);
        self.stops.record_fault(now());
        self.stops.record_fault(until);
        Some(until)
    }

    fn trace_request_fault(&mut self, fault: RequestFault) -> (Option<RequestFault>, Option<Timestamp>) {
        self.trace(format!("of a request: {fault:?}"));
        (Some(fault), None)
    }

    /// The clocks are moved by `offset`. Waits keep their length.
    pub(super) fn shift(&mut self, offset: SignedDuration) {
        if offset.is_negative() {
            self.clear_served();
        }
        let pod_timers = self.pod.as_mut().map(Pod::timers_mut).into_iter().flatten();
        let forced = self.forced.as_mut().map(|forced| &mut forced.ends_at);
        let all = [&mut self.controller_at, &mut self.node.next_eviction_at]
            .into_iter()
            .flatten()
            .chain(pod_timers)
            .chain(forced);
        all.chain([&mut self.next_players]).for_each(|at| *at += offset);
    }

    /// The time of the next event.
    pub(super) fn next_event_at(&self) -> Timestamp {
        let pod_event_at = self.pod.as_ref().and_then(Pod::next_event_at);
        let forced_end_at = self.forced.as_ref().map(|forced| forced.ends_at);
        let all = self
            .next_scripted_event_at()
            .into_iter()
            .chain(self.controller_at)
            .chain(pod_event_at)
            .chain(forced_end_at)
            .chain(self.node.next_eviction_at);
        all.fold(self.next_players, Timestamp::min)
    }

    /// The facts on the `StatefulSet`.
    pub(super) fn facts(&self) -> Value {
        self.objects.get(&self.stateful_set_key()).map_or_else(|_| json!({}), facts_of)
    }
}

/// The facts on this `StatefulSet`.
pub(super) fn facts_of(stateful_set: &Value) -> Value {
    let text = stateful_set["metadata"]["annotations"][crate::k8s::labels::FACTS].as_str();
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_else(|| json!({}))
}
