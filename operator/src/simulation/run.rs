//! Edge (writes). Drives a run: lets time pass until the next event, begins passes, delays them, and injects faults.

use std::net::Ipv4Addr;
use std::sync::Arc;

use fixtures::rng::Rng;
use jiff::Timestamp;
use tokio::sync::mpsc;

use super::catalog::Releases;
use super::cluster::SimCluster;
use super::cluster_handle::{ClusterHandle, InterruptedPass};
use super::fake_agent;
use super::fake_kubelet::run_due_steps;
use super::faults::{Fault, plan_faults};
use super::operator_process::{Operator, Pass, RELEASES_READ_AFTER};
use super::scenario::{Scenario, WINDOW_INTERVAL};
use crate::clock::now;
use crate::clock::simulated;

pub(super) mod scripted;

/// The number of windows in a run. Faults occur in the first of them. In the later ones everything must end.
pub(super) const WINDOWS: i32 = 4;
const WINDOWS_WITH_FAULTS: usize = 2;
/// Upper limit of the passes of a run, so that a run that does not end is stopped.
const MAX_PASSES: u32 = 5_000;

/// The result of a run.
#[derive(Debug)]
pub(super) struct RunResult {
    pub(super) trace: Vec<String>,
    pub(super) violations: Vec<String>,
    pub(super) passes: u32,
    pub(super) faults: u32,
    /// Whether no fault occurred during a rollout, so that its outcome was checked.
    pub(super) is_checked: bool,
    /// Whether a requested restore replaced other worlds.
    pub(super) is_restored: bool,
    pub(super) has_rolled_forward: bool,
    /// World migrations that ended, and that did not.
    pub(super) migrations: (u32, u32),
    /// The final state, from a small set of texts.
    pub(super) final_state: String,
}

impl RunResult {
    /// The result of a run that panicked.
    pub(super) fn panicked() -> Self {
        let (trace, violations) = (Vec::new(), vec!["it panicked, as told above".to_owned()]);
        Self {
            trace,
            violations,
            passes: 0,
            faults: 0,
            is_checked: false,
            is_restored: false,
            has_rolled_forward: false,
            migrations: (0, 0),
            final_state: "panic".to_owned(),
        }
    }
}

struct Run {
    handle: Arc<ClusterHandle>,
    interruptions: mpsc::UnboundedReceiver<InterruptedPass>,
    /// The processes that take themselves for the leader, usually one.
    operators: Vec<Operator>,
    /// When the next process starts, if none runs.
    restarts_at: Option<Timestamp>,
    /// When the newest process has read the upstreams.
    releases_read_at: Option<Timestamp>,
    fence: u64,
    faults: Vec<(Timestamp, Fault)>,
    released_at: Timestamp,
    released: bool,
    /// The release was withdrawn.
    withdrawn: bool,
    ends_at: Timestamp,
    passes: u32,
    faults_injected: u32,
}

/// The start of runs: fifty minutes after an opening, when the window is closed again, so that the first start is not
/// an update.
pub(super) fn start_time() -> Timestamp {
    #[expect(clippy::disallowed_methods, reason = "files on the volume have real times, which must be in the past")]
    let real = Timestamp::now();
    let begins = real.as_second() / WINDOW_INTERVAL.as_secs() * WINDOW_INTERVAL.as_secs()
        + 2 * WINDOW_INTERVAL.as_secs()
        + 50 * 60;
    Timestamp::from_second(begins).expect("a valid time")
}

/// Runs one seed.
pub(super) async fn run_seed(number: u64, address: Ipv4Addr) -> RunResult {
    let begins = start_time();
    let _clocks = simulated::start(begins);
    let mut rng = Rng::new(number);
    let scenario = Scenario::draw(&mut rng, Releases::get(), address);
    let (faults, released_at) = plan_faults(&mut rng, &scenario, begins, WINDOWS_WITH_FAULTS);
    let mut run = Run::begin(scenario, rng, faults, released_at).await;
    run.run_until(begins + WINDOW_INTERVAL * WINDOWS).await;
    run.finish()
}

impl Run {
    async fn begin(scenario: Scenario, rng: Rng, faults: Vec<(Timestamp, Fault)>, released_at: Timestamp) -> Self {
        let (handle, interruptions) = ClusterHandle::new(SimCluster::new(scenario, rng));
        let handle = Arc::new(handle);
        fake_agent::listen(&handle).await;
        Self {
            operators: Vec::new(),
            handle,
            interruptions,
            restarts_at: Some(now()),
            releases_read_at: None,
            fence: 0,
            faults,
            released_at,
            released: false,
            withdrawn: false,
            ends_at: now(),
            passes: 0,
            faults_injected: 0,
        }
    }

    async fn run_until(&mut self, ends: Timestamp) {
        self.ends_at = ends;
        while self.passes < MAX_PASSES {
            let next = self.next_event_at();
            if next > self.ends_at {
                return;
            }
            simulated::advance_to(next);
            self.run_next_event().await;
        }
        self.handle.cluster().check(false, "a run ends within its limit of passes");
    }

    fn next_event_at(&self) -> Timestamp {
        let operators = self.operators.iter().map(|operator| operator.due);
        let faults = self.faults.first().map(|(at, _)| *at);
        let release = (!self.released).then_some(self.released_at);
        let all = operators.chain(faults).chain(release).chain(self.restarts_at).chain(self.releases_read_at);
        all.fold(self.handle.cluster().next_event_at(), Timestamp::min)
    }

    /// One event that is due.
    async fn run_next_event(&mut self) {
        if self.handle.cluster().next_event_at() <= now() {
            run_due_steps(&self.handle).await;
        } else if !self.released && self.released_at <= now() {
            self.released = true;
            self.handle.cluster().record_release();
            self.publish();
        } else if self.faults.first().is_some_and(|(at, _)| *at <= now()) {
            let (_, fault) = self.faults.remove(0);
            self.faults_injected += 1;
            self.inject(fault);
        } else if self.restarts_at.is_some_and(|at| at <= now()) {
            self.restarts_at = None;
            self.start_operator();
        } else if self.releases_read_at.take_if(|at| *at <= now()).is_some() {
            self.publish();
        } else if let Some(index) = self.operators.iter().position(|operator| operator.due <= now()) {
            self.run_pass(index).await;
        }
        if !std::mem::take(&mut self.handle.cluster().has_changes) {
            return;
        }
        let node = self.handle.cluster().node.to_object();
        for operator in &mut self.operators {
            operator.observe_node(node.clone());
            let requeue_time = now() + self.handle.cluster().seconds(0, 2);
            operator.requeue_at(requeue_time);
        }
    }

    /// Operators read the current upstream releases.
    fn publish(&mut self) {
        let snapshot = self.snapshot();
        for operator in &mut self.operators {
            operator.read_releases(&snapshot);
            operator.due = operator.due.min(now());
        }
    }

    fn snapshot(&self) -> Arc<crate::catalog::Snapshot> {
        let cluster = self.handle.cluster();
        if self.released && !self.withdrawn {
            cluster.scenario.new_catalog.clone()
        } else {
            cluster.scenario.old_catalog.clone()
        }
    }

    /// Starts an operator. The first one has read the upstreams when it begins, and a later one reads them while it leads.
    fn start_operator(&mut self) {
        self.start_operator_without_releases();
        if self.fence > 1 {
            self.releases_read_at = Some(now() + RELEASES_READ_AFTER);
            return;
        }
        let snapshot = self.snapshot();
        self.operators.last().expect("it was just started").read_releases(&snapshot);
    }

    /// Starts an operator that has not read the upstreams yet.
    fn start_operator_without_releases(&mut self) {
        self.fence += 1;
        let fence = self.fence;
        self.handle.cluster().take_lease(fence);
        let operator = Operator::start(&self.handle, fence);
        operator.init_nodes(self.handle.cluster().node.to_object());
        self.operators.push(operator);
    }

    /// A pass of this operator begins, or continues.
    async fn run_pass(&mut self, index: usize) {
        let operator = &mut self.operators[index];
        let pass = if let Some((pass, wake)) = operator.delayed_pass.take() {
            // The receiver exists, because its pass sleeps.
            let _ = wake.send(());
            Some(pass)
        } else {
            self.passes += 1;
            operator.begin(&self.handle)
        };
        if let Some(pass) = pass {
            self.drive_pass(index, pass).await;
        }
    }

    /// Runs the pass until it ends or sleeps.
    async fn drive_pass(&mut self, index: usize, mut pass: Pass) {
        tokio::select! {
            biased;
            outcome = &mut pass => self.operators[index].finish_pass(outcome),
            Some(interruption) = self.interruptions.recv() => match interruption {
                InterruptedPass::Delayed(delay) => {
                    let operator = &mut self.operators[index];
                    (operator.due, operator.delayed_pass) = (delay.until, Some((pass, delay.wake)));
                }
                // The newest process holds the Lease, so without it no process leads.
                InterruptedPass::Crashed => {
                    drop(self.operators.remove(index));
                    if index == self.operators.len() {
                        self.schedule_restart();
                    }
                }
            }
        }
    }

    /// Kubernetes starts an operator if none leads.
    fn schedule_restart(&mut self) {
        if self.restarts_at.is_none() {
            self.restarts_at = Some(self.handle.cluster().draw_operator_restart());
        }
    }

    fn inject(&mut self, fault: Fault) {
        self.handle.cluster().trace(format!("{fault:?}"));
        match fault {
            Fault::OperatorCrashes => {
                self.handle.cluster().stops.record_fault(now());
                self.operators.clear();
                self.schedule_restart();
            }
            // The earlier process has lost its Lease and does not know it yet.
            Fault::SecondLeader => {
                self.restarts_at = None;
                self.handle.cluster().stops.had_two_writers = true;
                self.handle.cluster().stops.record_fault(now());
                self.start_operator();
            }
            Fault::SingleLeader => {
                self.handle.cluster().stops.record_fault(now());
                // If another process is about to start, the existing ones have been replaced.
                let last = self.operators.pop().filter(|_| self.restarts_at.is_none());
                self.operators = last.into_iter().collect();
            }
            Fault::ReleaseWithdrawn | Fault::ReleaseRestored => {
                self.withdrawn = fault == Fault::ReleaseWithdrawn;
                self.handle.cluster().record_disturbance();
                self.publish();
            }
            Fault::ClocksJump => {
                self.handle.cluster().record_disturbance();
                self.jump_clocks();
            }
            Fault::User(action) => {
                let mut cluster = self.handle.cluster();
                cluster.record_disturbance();
                cluster.apply_user_action(action);
            }
            Fault::Injected(crash) => {
                let mut cluster = self.handle.cluster();
                cluster.record_disturbance();
                cluster.inject(crash);
            }
        }
    }

    /// Moves all wall clocks at the same time. Waits keep their length.
    fn jump_clocks(&mut self) {
        let mut cluster = self.handle.cluster();
        let seconds = cluster.seconds(5, 7_200);
        let offset = if cluster.rng.one_in(2) { seconds } else { -seconds };
        cluster.stops.record_fault(now());
        simulated::shift_wall_clock(offset);
        cluster.stops.record_fault(now());
        cluster.trace(format!("the clocks are put by {} s", offset.as_secs()));
        cluster.shift(offset);
        drop(cluster);
        let shift = |at: &mut Timestamp| *at += offset;
        self.operators.iter_mut().for_each(|operator| shift(&mut operator.due));
        self.faults.iter_mut().for_each(|(at, _)| shift(at));
        self.restarts_at.iter_mut().chain(&mut self.releases_read_at).for_each(shift);
        shift(&mut self.released_at);
        shift(&mut self.ends_at);
    }

    fn finish(self) -> RunResult {
        let mut cluster = self.handle.cluster();
        let final_state = cluster.check_final_state();
        RunResult {
            trace: std::mem::take(&mut cluster.trace),
            violations: std::mem::take(&mut cluster.violations).into_iter().collect(),
            passes: self.passes,
            faults: self.faults_injected + cluster.faults_injected,
            is_checked: !cluster.invariants.disturbed,
            is_restored: cluster.is_restored(),
            has_rolled_forward: cluster.invariants.rolled_forward > 0,
            migrations: (cluster.builds.migrations, cluster.builds.migrations_interrupted),
            final_state,
        }
    }
}
