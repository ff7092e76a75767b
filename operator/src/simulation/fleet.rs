//! Edge (writes). Drives a run of several servers in one cluster.
//!
//! Each server has a volume, players and faults of its own. All share one API server, one operator, the same clocks and
//! windows, and the update slots.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Arc;

use crds::Plugin;
use fixtures::rng::Rng;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::mpsc;

use super::cluster::SimCluster;
use super::cluster_handle::{ClusterHandle, InterruptedPass};
use super::fake_agent;
use super::fake_kubelet::run_due_steps;
use super::faults::{Fault, InjectedCrash};
use super::operator_process::{Bounds, Operator, Pass, RELEASES_READ_AFTER, Requeued, default_plugins};
use super::run::start_time;
use super::scenario::{Scenario, WINDOW_INTERVAL};
use crate::catalog::Snapshot;
use crate::clock::now;
use crate::clock::simulated;
use crate::requeue::Outcome;
use scenario::FleetScenario;
use server::Server;

mod invariants;
mod scenario;
mod scenario_file;
mod server;
mod tests;

/// Upper limit of the passes of a run, so that a run that does not end is stopped.
const MAX_PASSES: u32 = 20_000;
/// The number of windows in a run. There is one more for each server while servers had to wait in the last one.
const WINDOWS: usize = 3;
/// How long after its opening a window has ended, with all updates in progress.
const WINDOW_DONE_AFTER: SignedDuration = SignedDuration::from_mins(50);

/// The result of a run.
#[derive(Debug)]
struct FleetRunResult {
    trace: Vec<String>,
    violations: BTreeSet<String>,
    passes: u32,
    faults: u32,
    /// How many servers waited for an update slot. The next field counts those that waited for the server that they
    /// follow.
    waited_for_slot: usize,
    waited_for_followed: usize,
    /// The final state of each server.
    final_states: Vec<String>,
}

impl FleetRunResult {
    /// The result of a run that panicked.
    fn panicked() -> Self {
        Self {
            trace: Vec::new(),
            violations: BTreeSet::from(["it panicked, as told above".to_owned()]),
            passes: 0,
            faults: 0,
            waited_for_slot: 0,
            waited_for_followed: 0,
            final_states: Vec::new(),
        }
    }
}

/// An operator process: one pass over each server at a time.
struct Process {
    operators: Vec<Operator>,
    requeued: Requeued,
}

/// The state of a run.
struct Fleet {
    servers: Vec<Server>,
    interruptions: mpsc::UnboundedReceiver<InterruptedPass>,
    bounds: Bounds,
    plugins: Vec<Plugin>,
    /// The flags of the operator.
    flags: Vec<String>,
    rng: Rng,
    /// The processes that take themselves for the leader, usually one.
    processes: Vec<Process>,
    /// When the next process starts, if none runs.
    restarts_at: Option<Timestamp>,
    /// When the newest process has read the upstreams.
    releases_read_at: Option<Timestamp>,
    /// When there were last two.
    two_leaders_at: Option<Timestamp>,
    fence: u64,
    faults: Vec<(Timestamp, usize, Fault)>,
    released_at: Timestamp,
    released: bool,
    /// The release was withdrawn.
    withdrawn: bool,
    passes: u32,
    faults_injected: u32,
    trace: Vec<String>,
}

/// Runs one seed.
async fn run_seed(number: u64, addresses: [Ipv4Addr; 4]) -> FleetRunResult {
    let begins = start_time();
    let _clocks = simulated::start(begins);
    let mut rng = Rng::new(number);
    let fleet_scenario = FleetScenario::draw(&mut rng, addresses, begins);
    let mut fleet = Fleet::begin(fleet_scenario, rng).await;
    let most = WINDOWS + fleet.servers.len();
    for window in 1..=most {
        let opened_at = Scenario::opened_at(now());
        // The first one opens two hours after the run began.
        let ends = if now() < opened_at + WINDOW_DONE_AFTER {
            opened_at + WINDOW_DONE_AFTER
        } else {
            opened_at + WINDOW_INTERVAL + WINDOW_DONE_AFTER
        };
        fleet.run_until(ends).await;
        if WINDOWS <= window && !fleet.has_waiting_servers() {
            break;
        }
    }
    let waits = fleet.has_waiting_servers();
    fleet.check(!waits, "no server waits forever for an update slot, or holds one");
    fleet.finish()
}

impl Fleet {
    async fn begin(fleet_scenario: FleetScenario, mut rng: Rng) -> Self {
        let FleetScenario { scenarios, bounds, faults, released_at } = fleet_scenario;
        let mut servers: Vec<Server> = Vec::new();
        let mut interruptions = None;
        for scenario in scenarios {
            let name = scenario.server_index.name;
            let server_rng = Rng::new(u64::try_from(rng.number_below(1 << 30)).expect("a small number"));
            let cluster = SimCluster::new(scenario, server_rng);
            let handle = if let Some(first) = servers.first() {
                first.handle.for_other_server(cluster)
            } else {
                let (handle, receiver) = ClusterHandle::new(cluster);
                interruptions = Some(receiver);
                handle
            };
            let handle = Arc::new(handle);
            fake_agent::listen(&handle).await;
            servers.push(Server::new(name, handle));
        }
        Self {
            servers,
            interruptions: interruptions.expect("at least one server"),
            bounds,
            plugins: default_plugins(),
            flags: Vec::new(),
            rng,
            processes: Vec::new(),
            restarts_at: Some(now()),
            releases_read_at: None,
            two_leaders_at: None,
            fence: 0,
            faults,
            released_at,
            released: false,
            withdrawn: false,
            passes: 0,
            faults_injected: 0,
            trace: vec![format!("{bounds:?}")],
        }
    }

    async fn run_until(&mut self, ends: Timestamp) {
        while self.passes < MAX_PASSES {
            let next = self.next_event_at();
            if next > ends {
                return simulated::advance_to(ends);
            }
            simulated::advance_to(next);
            self.run_next_event().await;
            self.notify_watches();
            self.record_state();
        }
        self.check(false, "a run ends within its limit of passes");
    }

    fn next_event_at(&self) -> Timestamp {
        let operators = self.processes.iter().flat_map(|process| &process.operators).map(|operator| operator.due);
        let cluster_events = self.servers.iter().map(|server| server.handle.cluster().next_event_at());
        let faults = self.faults.first().map(|(at, ..)| *at);
        let release = (!self.released).then_some(self.released_at);
        let own = release.into_iter().chain(self.restarts_at).chain(self.releases_read_at);
        let all = operators.chain(cluster_events).chain(faults).chain(own);
        all.min().expect("every server has a next event")
    }

    /// Carries out one event that is due.
    async fn run_next_event(&mut self) {
        if let Some(index) = self.servers.iter().position(|server| server.handle.cluster().next_event_at() <= now()) {
            run_due_steps(&self.servers[index].handle).await;
        } else if !self.released && self.released_at <= now() {
            self.released = true;
            for server in &mut self.servers {
                server.disturbed_at = Some(now());
                server.handle.cluster().record_release();
            }
            self.publish();
        } else if self.faults.first().is_some_and(|(at, ..)| *at <= now()) {
            let (_, index, fault) = self.faults.remove(0);
            self.faults_injected += 1;
            self.inject(index, fault);
        } else if self.restarts_at.is_some_and(|at| at <= now()) {
            self.restarts_at = None;
            self.start_operator();
        } else if self.releases_read_at.take_if(|at| *at <= now()).is_some() {
            self.publish();
        } else if let Some((process, index)) = self.due_pass() {
            self.run_pass(process, index).await;
            self.check_pass(index);
        }
        if self.processes.len() > 1 {
            self.two_leaders_at = Some(now());
        }
    }

    /// The pass that has been due for the longest time, by the process and the server.
    fn due_pass(&self) -> Option<(usize, usize)> {
        let mut first: Option<(Timestamp, usize, usize)> = None;
        for (process, running) in self.processes.iter().enumerate() {
            for (index, operator) in running.operators.iter().enumerate() {
                let this = (operator.due, process, index);
                first = Some(first.map_or(this, |first| first.min(this)));
            }
        }
        first.filter(|(due, ..)| *due <= now()).map(|(_, process, index)| (process, index))
    }

    /// Notifies the watches of all changes, and requeues the servers that a pass over another one has woken.
    fn notify_watches(&mut self) {
        let is_scripted = self.servers[0].handle.cluster().is_scripted();
        for (index, server) in self.servers.iter().enumerate() {
            let mut cluster = server.handle.cluster();
            if !std::mem::take(&mut cluster.has_changes) {
                continue;
            }
            let node = cluster.node.to_object();
            for process in &mut self.processes {
                process.operators[index].observe_node(node.clone());
                process.operators[index].requeue_at(now() + cluster.seconds(0, 2));
            }
        }
        for process in &mut self.processes {
            while let Ok(requeued) = process.requeued.try_recv() {
                let is_soon = is_scripted || self.rng.one_in(2);
                let soon = now() + SignedDuration::from_secs(i64::from(is_soon));
                if let Some(index) = self.servers.iter().position(|server| server.name == requeued.name) {
                    process.operators[index].requeue_at(soon);
                }
            }
        }
    }

    /// Records the state of the servers, and collects their traces.
    fn record_state(&mut self) {
        for server in &mut self.servers {
            server.record_state();
            let mut cluster = server.handle.cluster();
            self.trace.extend(cluster.trace.drain(..).map(|line| format!("{}: {line}", server.name)));
        }
    }

    /// Checks an invariant of all servers.
    fn check(&self, is_true: bool, rule: &str) {
        self.servers[0].handle.cluster().check(is_true, rule);
    }

    /// Operators read the current upstream releases.
    fn publish(&mut self) {
        let snapshot = self.snapshot();
        for operator in self.processes.iter_mut().flat_map(|process| &mut process.operators) {
            operator.read_releases(&snapshot);
            operator.due = operator.due.min(now());
        }
    }

    fn snapshot(&self) -> Arc<Snapshot> {
        let cluster = self.servers[0].handle.cluster();
        if self.released && !self.withdrawn {
            cluster.scenario.new_catalog.clone()
        } else {
            cluster.scenario.old_catalog.clone()
        }
    }

    fn start_operator(&mut self) {
        self.fence += 1;
        let handles: Vec<_> = self.servers.iter().map(|server| Arc::clone(&server.handle)).collect();
        for handle in &handles {
            handle.cluster().take_lease(self.fence);
        }
        let (mut operators, requeued) =
            Operator::start_for_all(&handles, self.fence, self.bounds, self.plugins.clone(), &self.flags);
        // The first process has read the upstreams when it begins, and a later one reads them while it leads.
        if self.fence > 1 {
            self.releases_read_at = Some(now() + RELEASES_READ_AFTER);
        } else {
            operators[0].read_releases(&self.snapshot());
        }
        operators[0].init_nodes(handles[0].cluster().node.to_object());
        for operator in &mut operators {
            operator.is_exact = handles[0].cluster().is_scripted();
        }
        for (operator, handle) in operators.iter().zip(&handles) {
            operator.observe_node(handle.cluster().node.to_object());
            // All existing objects are read before the first pass.
            let _ = operator.observe_server(handle);
        }
        for server in &mut self.servers {
            let condition = server.handle.cluster().condition("Updating");
            server.reports_updating = condition.is_some_and(|(status, _)| status == "True");
            server.is_observed = false;
        }
        self.processes.push(Process { operators, requeued });
    }

    /// A pass over this server begins, or continues.
    async fn run_pass(&mut self, process: usize, index: usize) {
        let operators = &mut self.processes[process].operators;
        let pass = if let Some((pass, wake)) = operators[index].delayed_pass.take() {
            // The receiver exists, because its pass sleeps.
            let _ = wake.send(());
            Some(pass)
        } else {
            self.passes += 1;
            for (operator, server) in operators.iter().zip(&self.servers) {
                let _ = operator.observe_server(&server.handle);
            }
            operators[index].begin(&self.servers[index].handle)
        };
        if let Some(pass) = pass {
            self.drive_pass(process, index, pass).await;
        }
    }

    /// Runs the pass until it ends or sleeps.
    async fn drive_pass(&mut self, process: usize, index: usize, mut pass: Pass) {
        tokio::select! {
            biased;
            outcome = &mut pass => {
                self.processes[process].operators[index].finish_pass(outcome);
                // Other outcomes may mean that the pass ended before it requested an update slot.
                self.servers[index].is_observed |= !matches!(outcome, Outcome::Acted | Outcome::Failed { .. });
            }
            Some(interruption) = self.interruptions.recv() => match interruption {
                InterruptedPass::Delayed(delay) => {
                    let operator = &mut self.processes[process].operators[index];
                    (operator.due, operator.delayed_pass) = (delay.until, Some((pass, delay.wake)));
                }
                // The process dies with all its other passes. The newest process holds the Lease, so without it no
                // process leads.
                InterruptedPass::Crashed => {
                    drop(self.processes.remove(process));
                    if process == self.processes.len() {
                        self.schedule_restart();
                    }
                }
            }
        }
    }

    /// Kubernetes starts an operator if none leads.
    fn schedule_restart(&mut self) {
        if self.restarts_at.is_none() {
            self.restarts_at = Some(self.servers[0].handle.cluster().draw_operator_restart());
        }
    }

    fn inject(&mut self, index: usize, fault: Fault) {
        let is_scripted = self.servers[index].handle.cluster().is_scripted();
        if !is_scripted {
            self.servers[index].handle.cluster().trace(format!("{fault:?}"));
        }
        match fault {
            Fault::OperatorCrashes => {
                self.processes.clear();
                self.schedule_restart();
            }
            // The earlier process has lost its Lease and does not know it yet.
            Fault::SecondLeader => {
                self.restarts_at = None;
                self.start_operator();
            }
            Fault::SingleLeader => {
                // If another process is about to start, the existing ones have been replaced.
                let last = self.processes.pop().filter(|_| self.restarts_at.is_none());
                self.processes = last.into_iter().collect();
            }
            Fault::ReleaseWithdrawn | Fault::ReleaseRestored => {
                self.withdrawn = fault == Fault::ReleaseWithdrawn;
                self.record_disturbance();
                self.publish();
            }
            Fault::ClocksJump => {
                self.record_disturbance();
                self.jump_clocks();
            }
            Fault::User(action) => {
                let server = &mut self.servers[index];
                server.disturbed_at = Some(now());
                let mut cluster = server.handle.cluster();
                cluster.record_disturbance();
                cluster.apply_user_action(action);
            }
            Fault::Injected(crash) => self.inject_crash(index, crash),
        }
    }

    /// A fault of a node affects all servers on it. Its end affects all servers, because any of them may wait for it.
    fn inject_crash(&self, index: usize, crash: InjectedCrash) {
        let node = self.servers[index].handle.cluster().node.name();
        for (other, server) in self.servers.iter().enumerate() {
            let mut cluster = server.handle.cluster();
            let is_hit = match crash {
                InjectedCrash::NodeDrained | InjectedCrash::NodeLost => cluster.node.name() == node,
                // By then a user may have moved the server of this fault to another node.
                InjectedCrash::NodeUncordoned | InjectedCrash::NodeReturns => true,
                InjectedCrash::AgentCrashes
                | InjectedCrash::AgentUnreachable
                | InjectedCrash::ServerCrashes
                | InjectedCrash::ServerHangs
                | InjectedCrash::CommandsRefused
                | InjectedCrash::ServerCrashLoops
                | InjectedCrash::PodDeleted
                | InjectedCrash::PodForceDeleted
                | InjectedCrash::StatefulSetDeleted => other == index,
            };
            if is_hit {
                cluster.record_disturbance();
                cluster.inject(crash);
            }
        }
    }

    /// Records a change for all servers, which may change the update in progress.
    fn record_disturbance(&mut self) {
        for server in &mut self.servers {
            server.disturbed_at = Some(now());
            server.handle.cluster().record_disturbance();
        }
    }

    /// Moves all wall clocks at the same time. Waits keep their length.
    fn jump_clocks(&mut self) {
        let seconds = self.servers[0].handle.cluster().seconds(5, 7_200);
        let offset = if self.rng.one_in(2) { seconds } else { -seconds };
        let before = now();
        simulated::shift_wall_clock(offset);
        let shift = |at: &mut Timestamp| *at += offset;
        for server in &mut self.servers {
            // Earlier announcements no longer count, whatever the clock shows now.
            server.disturbed_at = Some(before.max(now()));
            let mut cluster = server.handle.cluster();
            cluster.trace(format!("the clocks are put by {} s", offset.as_secs()));
            cluster.shift(offset);
        }
        let operators = self.processes.iter_mut().flat_map(|process| &mut process.operators);
        operators.for_each(|operator| shift(&mut operator.due));
        self.faults.iter_mut().for_each(|(at, ..)| shift(at));
        self.restarts_at.iter_mut().for_each(shift);
        shift(&mut self.released_at);
    }

    fn finish(mut self) -> FleetRunResult {
        let final_states = self.check_final_states();
        self.record_state();
        let mut violations = BTreeSet::new();
        let mut faults = self.faults_injected;
        for server in &self.servers {
            let cluster = server.handle.cluster();
            violations.extend(cluster.violations.iter().cloned());
            faults += cluster.faults_injected;
        }
        FleetRunResult {
            violations,
            passes: self.passes,
            faults,
            waited_for_slot: self.servers.iter().filter(|server| server.waited_for_slot_at.is_some()).count(),
            waited_for_followed: self.servers.iter().filter(|server| server.waited_for_followed_at.is_some()).count(),
            final_states,
            trace: self.trace,
        }
    }
}
