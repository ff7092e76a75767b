//! Edge (writes). Drives a run: lets time pass until the next event, begins passes, delays them, and injects faults.

use std::net::Ipv4Addr;
use std::sync::Arc;

use fixtures::dice::Rng;
use jiff::Timestamp;
use tokio::sync::mpsc;

use super::catalog::Releases;
use super::cluster::SimCluster;
use super::cluster_handle::{ClusterHandle, InterruptedPass};
use super::fake_agent;
use super::fake_kubelet::step;
use super::faults::{Fault, plan_faults};
use super::operator_process::{Operator, Pass};
use super::scenario::{EVERY, Scenario};
use crate::clock::now;
use crate::clock::simulated;

pub(super) mod scripted;

/// The number of windows in a run. Faults occur in the first of them. In the later ones everything must end.
pub(super) const WINDOWS: i32 = 4;
const WINDOWS_WITH_FAULTS: usize = 2;
/// Upper limit of the passes of a run, so that a run that does not end is stopped.
const MOST_PASSES: u32 = 5_000;

/// The result of a run.
#[derive(Debug)]
pub(super) struct RunResult {
    pub(super) story: Vec<String>,
    pub(super) broken: Vec<String>,
    pub(super) passes: u32,
    pub(super) faults: u32,
    /// Whether no fault occurred during a rollout, so that its outcome was checked.
    pub(super) is_judged: bool,
    /// Whether a requested restore replaced other worlds.
    pub(super) is_restored: bool,
    pub(super) is_forward: bool,
    /// World migrations that ended, and that did not.
    pub(super) moves: (u32, u32),
    /// The final state, from a small set of texts.
    pub(super) end: String,
}

impl RunResult {
    /// The result of a run that panicked.
    pub(super) fn panicked() -> Self {
        let (story, broken) = (Vec::new(), vec!["it panicked, as told above".to_owned()]);
        Self {
            story,
            broken,
            passes: 0,
            faults: 0,
            is_judged: false,
            is_restored: false,
            is_forward: false,
            moves: (0, 0),
            end: "panic".to_owned(),
        }
    }
}

struct Run {
    shared: Arc<ClusterHandle>,
    struck: mpsc::UnboundedReceiver<InterruptedPass>,
    /// The processes that take themselves for the leader, usually one.
    operators: Vec<Operator>,
    /// When the next process starts, if none runs.
    restarts_at: Option<Timestamp>,
    fence: u64,
    faults: Vec<(Timestamp, Fault)>,
    released_at: Timestamp,
    released: bool,
    /// The release was withdrawn.
    withdrawn: bool,
    ends: Timestamp,
    passes: u32,
    met: u32,
}

/// The start of runs: fifty minutes after an opening, when the window is closed again, so that the first start is not
/// an update.
pub(super) fn beginning() -> Timestamp {
    #[expect(clippy::disallowed_methods, reason = "what lies on the volume has the real time, and lies in the past")]
    let real = Timestamp::now();
    let begins = real.as_second() / EVERY.as_secs() * EVERY.as_secs() + 2 * EVERY.as_secs() + 50 * 60;
    Timestamp::from_second(begins).expect("a time soon")
}

/// Runs one seed.
pub(super) async fn walk(number: u64, address: Ipv4Addr) -> RunResult {
    let begins = beginning();
    let _clocks = simulated::start(begins);
    let mut dice = Rng::new(number);
    let scenario = Scenario::draw(&mut dice, Releases::get(), address);
    let (faults, released_at) = plan_faults(&mut dice, &scenario, begins, WINDOWS_WITH_FAULTS);
    let mut walk = Run::begin(scenario, dice, faults, released_at).await;
    walk.go_until(begins + EVERY * WINDOWS).await;
    walk.end()
}

impl Run {
    async fn begin(scenario: Scenario, dice: Rng, faults: Vec<(Timestamp, Fault)>, released_at: Timestamp) -> Self {
        let (shared, struck) = ClusterHandle::new(SimCluster::new(scenario, dice));
        let shared = Arc::new(shared);
        fake_agent::listen(&shared).await;
        Self {
            operators: Vec::new(),
            shared,
            struck,
            restarts_at: Some(now()),
            fence: 0,
            faults,
            released_at,
            released: false,
            withdrawn: false,
            ends: now(),
            passes: 0,
            met: 0,
        }
    }

    async fn go_until(&mut self, ends: Timestamp) {
        self.ends = ends;
        while self.passes < MOST_PASSES {
            let next = self.next();
            if next > self.ends {
                return;
            }
            simulated::pass_until(next);
            self.happen().await;
        }
        self.shared.world().must(false, "a walk comes to its end");
    }

    fn next(&self) -> Timestamp {
        let operators = self.operators.iter().map(|operator| operator.due);
        let faults = self.faults.first().map(|(at, _)| *at);
        let release = (!self.released).then_some(self.released_at);
        let all = operators.chain(faults).chain(release).chain(self.restarts_at);
        all.fold(self.shared.world().next(), Timestamp::min)
    }

    /// One event that is due.
    async fn happen(&mut self) {
        if self.shared.world().next() <= now() {
            step(&self.shared).await;
        } else if !self.released && self.released_at <= now() {
            self.released = true;
            self.shared.world().note_release();
            self.publish();
        } else if self.faults.first().is_some_and(|(at, _)| *at <= now()) {
            let (_, fault) = self.faults.remove(0);
            self.met += 1;
            self.strike(fault);
        } else if self.restarts_at.is_some_and(|at| at <= now()) {
            self.restarts_at = None;
            self.start_operator();
        } else if let Some(at) = self.operators.iter().position(|operator| operator.due <= now()) {
            self.pass(at).await;
        }
        if !std::mem::take(&mut self.shared.world().news) {
            return;
        }
        let node = self.shared.world().node.object();
        for operator in &mut self.operators {
            operator.sees(node.clone());
            let heard = now() + self.shared.world().seconds(0, 2);
            operator.hears(heard);
        }
    }

    /// Operators read the current upstream releases.
    fn publish(&mut self) {
        let snapshot = self.snapshot();
        for operator in &mut self.operators {
            operator.read(&snapshot);
            operator.due = operator.due.min(now());
        }
    }

    fn snapshot(&self) -> Arc<crate::catalog::Snapshot> {
        let world = self.shared.world();
        if self.released && !self.withdrawn { world.scenario.after.clone() } else { world.scenario.before.clone() }
    }

    fn start_operator(&mut self) {
        self.fence += 1;
        let fence = self.fence;
        self.shared.world().take_lease(fence);
        let operator = Operator::start(&self.shared, fence);
        operator.read(&self.snapshot());
        operator.sees_first(self.shared.world().node.object());
        self.operators.push(operator);
    }

    /// A pass of this operator begins, or continues.
    async fn pass(&mut self, at: usize) {
        let operator = &mut self.operators[at];
        let pass = if let Some((pass, wake)) = operator.asleep.take() {
            // The receiver exists, because its pass sleeps.
            let _ = wake.send(());
            Some(pass)
        } else {
            self.passes += 1;
            operator.begin(&self.shared)
        };
        if let Some(pass) = pass {
            self.see_through(at, pass).await;
        }
    }

    /// Runs the pass until it ends or sleeps.
    async fn see_through(&mut self, at: usize, mut pass: Pass) {
        tokio::select! {
            biased;
            outcome = &mut pass => self.operators[at].ended(outcome),
            Some(struck) = self.struck.recv() => match struck {
                InterruptedPass::Asleep(nap) => {
                    let operator = &mut self.operators[at];
                    (operator.due, operator.asleep) = (nap.until, Some((pass, nap.wake)));
                }
                // The newest process holds the Lease, so without it no process leads.
                InterruptedPass::Dead => {
                    drop(self.operators.remove(at));
                    if at == self.operators.len() {
                        self.start_again();
                    }
                }
            }
        }
    }

    /// Kubernetes starts an operator if none leads.
    fn start_again(&mut self) {
        if self.restarts_at.is_none() {
            self.restarts_at = Some(self.shared.world().operator_restarts_at());
        }
    }

    fn strike(&mut self, fault: Fault) {
        self.shared.world().tell(format!("{fault:?}"));
        match fault {
            Fault::OperatorDies => {
                self.shared.world().ends.note_strike(now());
                self.operators.clear();
                self.start_again();
            }
            // The earlier process has lost its Lease and does not know it yet.
            Fault::AnotherLeads => {
                self.restarts_at = None;
                self.shared.world().ends.had_two_writers = true;
                self.shared.world().ends.note_strike(now());
                self.start_operator();
            }
            Fault::OneLeads => {
                self.shared.world().ends.note_strike(now());
                // If another process is about to start, the existing ones have been replaced.
                let last = self.operators.pop().filter(|_| self.restarts_at.is_none());
                self.operators = last.into_iter().collect();
            }
            Fault::Withdrawn | Fault::ReleasedAgain => {
                self.withdrawn = fault == Fault::Withdrawn;
                self.shared.world().note_disturbance();
                self.publish();
            }
            Fault::ClocksJump => {
                self.shared.world().note_disturbance();
                self.jump();
            }
            Fault::Person(wish) => {
                let mut world = self.shared.world();
                world.note_disturbance();
                world.write(wish);
            }
            Fault::World(blow) => {
                let mut world = self.shared.world();
                world.note_disturbance();
                world.strike(blow);
            }
        }
    }

    /// Moves all wall clocks at the same time. Waits keep their length.
    fn jump(&mut self) {
        let mut world = self.shared.world();
        let seconds = world.seconds(5, 7_200);
        let by = if world.dice.once_in(2) { seconds } else { -seconds };
        world.ends.note_strike(now());
        simulated::put(by);
        world.ends.note_strike(now());
        world.tell(format!("the clocks are put by {} s", by.as_secs()));
        world.shift(by);
        drop(world);
        let shift = |at: &mut Timestamp| *at += by;
        self.operators.iter_mut().for_each(|operator| shift(&mut operator.due));
        self.faults.iter_mut().for_each(|(at, _)| shift(at));
        self.restarts_at.iter_mut().for_each(shift);
        shift(&mut self.released_at);
        shift(&mut self.ends);
    }

    fn end(self) -> RunResult {
        let mut world = self.shared.world();
        let end = world.judge_end();
        RunResult {
            story: std::mem::take(&mut world.story),
            broken: std::mem::take(&mut world.broken).into_iter().collect(),
            passes: self.passes,
            faults: self.met + world.met,
            is_judged: !world.ledger.disturbed,
            is_restored: world.is_put_in_place(),
            is_forward: world.ledger.gone_forward > 0,
            moves: (world.marks.moves, world.marks.moves_broken_off),
            end,
        }
    }
}
