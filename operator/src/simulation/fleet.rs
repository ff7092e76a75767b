//! Edge (writes). Drives a run of several servers in one cluster.
//!
//! Each server has a volume, players and faults of its own. All share one API server, one operator, the same clocks and
//! windows, and the update slots.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Arc;

use crds::Plugin;
use fixtures::dice::Rng;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::mpsc;

use super::cluster::SimCluster;
use super::cluster_handle::{ClusterHandle, InterruptedPass};
use super::fake_agent;
use super::fake_kubelet::step;
use super::faults::{Fault, InjectedCrash};
use super::operator_process::{Bounds, Operator, Pass, Requeued, two_plugins};
use super::run::beginning;
use super::scenario::{EVERY, Scenario};
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
const MOST_PASSES: u32 = 20_000;
/// The number of windows in a run. There is one more for each server while servers had to wait in the last one.
const WINDOWS: usize = 3;
/// How long after its opening a window has ended, with all updates in progress.
const ENDED: SignedDuration = SignedDuration::from_mins(50);

/// The result of a run.
#[derive(Debug)]
struct FleetRunResult {
    story: Vec<String>,
    broken: BTreeSet<String>,
    passes: u32,
    faults: u32,
    /// How many servers waited for an update slot. The next field counts those that waited for the server that they
    /// follow.
    waited: usize,
    followed: usize,
    /// The final state of each server.
    ends: Vec<String>,
}

impl FleetRunResult {
    /// The result of a run that panicked.
    fn panicked() -> Self {
        Self {
            story: Vec::new(),
            broken: BTreeSet::from(["it panicked, as told above".to_owned()]),
            passes: 0,
            faults: 0,
            waited: 0,
            followed: 0,
            ends: Vec::new(),
        }
    }
}

/// An operator process: one pass over each server at a time.
struct Process {
    operators: Vec<Operator>,
    woken: Requeued,
}

/// The state of a run.
struct Fleet {
    servers: Vec<Server>,
    struck: mpsc::UnboundedReceiver<InterruptedPass>,
    bounds: Bounds,
    plugins: Vec<Plugin>,
    /// The flags of the operator.
    flags: Vec<String>,
    dice: Rng,
    /// The processes that take themselves for the leader, usually one.
    processes: Vec<Process>,
    /// When the next process starts, if none runs.
    restarts_at: Option<Timestamp>,
    /// When there were last two.
    two_led_at: Option<Timestamp>,
    fence: u64,
    faults: Vec<(Timestamp, usize, Fault)>,
    released_at: Timestamp,
    released: bool,
    /// The release was withdrawn.
    withdrawn: bool,
    passes: u32,
    met: u32,
    story: Vec<String>,
}

/// Runs one seed.
async fn walk(number: u64, addresses: [Ipv4Addr; 4]) -> FleetRunResult {
    let begins = beginning();
    let _clocks = simulated::start(begins);
    let mut dice = Rng::new(number);
    let scene = FleetScenario::draw(&mut dice, addresses, begins);
    let mut fleet = Fleet::begin(scene, dice).await;
    let most = WINDOWS + fleet.servers.len();
    for window in 1..=most {
        let opened_at = Scenario::opened_at(now());
        // The first one opens two hours after the run began.
        let ends = if now() < opened_at + ENDED { opened_at + ENDED } else { opened_at + EVERY + ENDED };
        fleet.go_until(ends).await;
        if WINDOWS <= window && !fleet.is_anybody_waiting() {
            break;
        }
    }
    let waits = fleet.is_anybody_waiting();
    fleet.must(!waits, "nobody waits for ever for a turn, or with one");
    fleet.end()
}

impl Fleet {
    async fn begin(scene: FleetScenario, mut dice: Rng) -> Self {
        let FleetScenario { scenarios, bounds, faults, released_at } = scene;
        let mut servers: Vec<Server> = Vec::new();
        let mut heard = None;
        for scenario in scenarios {
            let name = scenario.seat.name;
            let of_its_own = Rng::new(u64::try_from(dice.below(1 << 30)).expect("a small number"));
            let world = SimCluster::new(scenario, of_its_own);
            let shared = if let Some(first) = servers.first() {
                first.shared.beside(world)
            } else {
                let (shared, struck) = ClusterHandle::new(world);
                heard = Some(struck);
                shared
            };
            let shared = Arc::new(shared);
            fake_agent::listen(&shared).await;
            servers.push(Server::new(name, shared));
        }
        Self {
            servers,
            struck: heard.expect("there are servers"),
            bounds,
            plugins: two_plugins(),
            flags: Vec::new(),
            dice,
            processes: Vec::new(),
            restarts_at: Some(now()),
            two_led_at: None,
            fence: 0,
            faults,
            released_at,
            released: false,
            withdrawn: false,
            passes: 0,
            met: 0,
            story: vec![format!("{bounds:?}")],
        }
    }

    async fn go_until(&mut self, ends: Timestamp) {
        while self.passes < MOST_PASSES {
            let next = self.next();
            if next > ends {
                return simulated::pass_until(ends);
            }
            simulated::pass_until(next);
            self.happen().await;
            self.spread_news();
            self.note();
        }
        self.must(false, "a walk comes to its end");
    }

    fn next(&self) -> Timestamp {
        let operators = self.processes.iter().flat_map(|process| &process.operators).map(|operator| operator.due);
        let worlds = self.servers.iter().map(|server| server.shared.world().next());
        let faults = self.faults.first().map(|(at, ..)| *at);
        let release = (!self.released).then_some(self.released_at);
        let all = operators.chain(worlds).chain(faults).chain(release).chain(self.restarts_at);
        all.min().expect("players come and go")
    }

    /// Carries out one event that is due.
    async fn happen(&mut self) {
        if let Some(at) = self.servers.iter().position(|server| server.shared.world().next() <= now()) {
            step(&self.servers[at].shared).await;
        } else if !self.released && self.released_at <= now() {
            self.released = true;
            for server in &mut self.servers {
                server.meddled_at = Some(now());
                server.shared.world().note_release();
            }
            self.publish();
        } else if self.faults.first().is_some_and(|(at, ..)| *at <= now()) {
            let (_, at, fault) = self.faults.remove(0);
            self.met += 1;
            self.strike(at, fault);
        } else if self.restarts_at.is_some_and(|at| at <= now()) {
            self.restarts_at = None;
            self.start_operator();
        } else if let Some((process, at)) = self.due_pass() {
            self.pass(process, at).await;
            self.judge_pass(at);
        }
        if self.processes.len() > 1 {
            self.two_led_at = Some(now());
        }
    }

    /// The pass that has been due for the longest time, by the process and the server.
    fn due_pass(&self) -> Option<(usize, usize)> {
        let mut first: Option<(Timestamp, usize, usize)> = None;
        for (process, of) in self.processes.iter().enumerate() {
            for (at, operator) in of.operators.iter().enumerate() {
                let this = (operator.due, process, at);
                first = Some(first.map_or(this, |first| first.min(this)));
            }
        }
        first.filter(|(due, ..)| *due <= now()).map(|(_, process, at)| (process, at))
    }

    /// Notifies the watches of all changes, and requeues the servers that a pass over another one has woken.
    fn spread_news(&mut self) {
        let is_scripted = self.servers[0].shared.world().is_scripted();
        for (at, server) in self.servers.iter().enumerate() {
            let mut world = server.shared.world();
            if !std::mem::take(&mut world.news) {
                continue;
            }
            let node = world.node.object();
            for process in &mut self.processes {
                process.operators[at].sees(node.clone());
                process.operators[at].hears(now() + world.seconds(0, 2));
            }
        }
        for process in &mut self.processes {
            while let Ok(woken) = process.woken.try_recv() {
                let is_soon = is_scripted || self.dice.once_in(2);
                let soon = now() + SignedDuration::from_secs(i64::from(is_soon));
                if let Some(at) = self.servers.iter().position(|server| server.name == woken.name) {
                    process.operators[at].hears(soon);
                }
            }
        }
    }

    /// Records the state of the servers, and collects their traces.
    fn note(&mut self) {
        for server in &mut self.servers {
            server.note();
            let mut world = server.shared.world();
            self.story.extend(world.story.drain(..).map(|line| format!("{}: {line}", server.name)));
        }
    }

    /// Checks an invariant of all servers.
    fn must(&self, is_true: bool, rule: &str) {
        self.servers[0].shared.world().must(is_true, rule);
    }

    /// Operators read the current upstream releases.
    fn publish(&mut self) {
        let snapshot = self.snapshot();
        for operator in self.processes.iter_mut().flat_map(|process| &mut process.operators) {
            operator.read(&snapshot);
            operator.due = operator.due.min(now());
        }
    }

    fn snapshot(&self) -> Arc<Snapshot> {
        let world = self.servers[0].shared.world();
        if self.released && !self.withdrawn { world.scenario.after.clone() } else { world.scenario.before.clone() }
    }

    fn start_operator(&mut self) {
        self.fence += 1;
        let worlds: Vec<_> = self.servers.iter().map(|server| Arc::clone(&server.shared)).collect();
        for shared in &worlds {
            shared.world().take_lease(self.fence);
        }
        let (mut operators, woken) =
            Operator::start_over(&worlds, self.fence, self.bounds, self.plugins.clone(), &self.flags);
        operators[0].read(&self.snapshot());
        operators[0].sees_first(worlds[0].world().node.object());
        for operator in &mut operators {
            operator.is_exact = worlds[0].world().is_scripted();
        }
        for (operator, shared) in operators.iter().zip(&worlds) {
            operator.sees(shared.world().node.object());
            // All existing objects are read before the first pass.
            let _ = operator.watches(shared);
        }
        for server in &mut self.servers {
            let said = server.shared.world().said("Updating");
            server.says_updating = said.is_some_and(|(status, _)| status == "True");
            server.is_looked_at = false;
        }
        self.processes.push(Process { operators, woken });
    }

    /// A pass over this server begins, or continues.
    async fn pass(&mut self, process: usize, at: usize) {
        let operators = &mut self.processes[process].operators;
        let pass = if let Some((pass, wake)) = operators[at].asleep.take() {
            // The receiver exists, because its pass sleeps.
            let _ = wake.send(());
            Some(pass)
        } else {
            self.passes += 1;
            for (operator, server) in operators.iter().zip(&self.servers) {
                let _ = operator.watches(&server.shared);
            }
            operators[at].begin(&self.servers[at].shared)
        };
        if let Some(pass) = pass {
            self.see_through(process, at, pass).await;
        }
    }

    /// Runs the pass until it ends or sleeps.
    async fn see_through(&mut self, process: usize, at: usize, mut pass: Pass) {
        tokio::select! {
            biased;
            outcome = &mut pass => {
                self.processes[process].operators[at].ended(outcome);
                // Other outcomes may mean that the pass ended before it requested an update slot.
                self.servers[at].is_looked_at |= !matches!(outcome, Outcome::Acted | Outcome::Failed { .. });
            }
            Some(struck) = self.struck.recv() => match struck {
                InterruptedPass::Asleep(nap) => {
                    let operator = &mut self.processes[process].operators[at];
                    (operator.due, operator.asleep) = (nap.until, Some((pass, nap.wake)));
                }
                // The process dies with all its other passes. The newest process holds the Lease, so without it no
                // process leads.
                InterruptedPass::Dead => {
                    drop(self.processes.remove(process));
                    if process == self.processes.len() {
                        self.start_again();
                    }
                }
            }
        }
    }

    /// Kubernetes starts an operator if none leads.
    fn start_again(&mut self) {
        if self.restarts_at.is_none() {
            self.restarts_at = Some(self.servers[0].shared.world().operator_restarts_at());
        }
    }

    fn strike(&mut self, at: usize, fault: Fault) {
        let is_scripted = self.servers[at].shared.world().is_scripted();
        if !is_scripted {
            self.servers[at].shared.world().tell(format!("{fault:?}"));
        }
        match fault {
            Fault::OperatorDies => {
                self.processes.clear();
                self.start_again();
            }
            // The earlier process has lost its Lease and does not know it yet.
            Fault::AnotherLeads => {
                self.restarts_at = None;
                self.start_operator();
            }
            Fault::OneLeads => {
                // If another process is about to start, the existing ones have been replaced.
                let last = self.processes.pop().filter(|_| self.restarts_at.is_none());
                self.processes = last.into_iter().collect();
            }
            Fault::Withdrawn | Fault::ReleasedAgain => {
                self.withdrawn = fault == Fault::Withdrawn;
                self.disturb();
                self.publish();
            }
            Fault::ClocksJump => {
                self.disturb();
                self.jump();
            }
            Fault::Person(wish) => {
                let server = &mut self.servers[at];
                server.meddled_at = Some(now());
                let mut world = server.shared.world();
                world.note_disturbance();
                world.write(wish);
            }
            Fault::World(blow) => self.befall(at, blow),
        }
    }

    /// A fault of a node affects all servers on it. Its end affects all servers, because any of them may wait for it.
    fn befall(&self, at: usize, blow: InjectedCrash) {
        let node = self.servers[at].shared.world().node.name();
        for (of, server) in self.servers.iter().enumerate() {
            let mut world = server.shared.world();
            let is_hit = match blow {
                InjectedCrash::NodeDrained | InjectedCrash::NodeLost => world.node.name() == node,
                // By then a user may have moved the server of this fault to another node.
                InjectedCrash::NodeUncordoned | InjectedCrash::NodeFound => true,
                InjectedCrash::AgentDies
                | InjectedCrash::AgentUnreachable
                | InjectedCrash::ServerCrashes
                | InjectedCrash::ServerHangs
                | InjectedCrash::CommandsRefused
                | InjectedCrash::ServerCrashesOn
                | InjectedCrash::PodDeleted
                | InjectedCrash::PodForced
                | InjectedCrash::SetDeleted => of == at,
            };
            if is_hit {
                world.note_disturbance();
                world.strike(blow);
            }
        }
    }

    /// Records a change for all servers, which may change the update in progress.
    fn disturb(&mut self) {
        for server in &mut self.servers {
            server.meddled_at = Some(now());
            server.shared.world().note_disturbance();
        }
    }

    /// Moves all wall clocks at the same time. Waits keep their length.
    fn jump(&mut self) {
        let seconds = self.servers[0].shared.world().seconds(5, 7_200);
        let by = if self.dice.once_in(2) { seconds } else { -seconds };
        let before = now();
        simulated::put(by);
        let shift = |at: &mut Timestamp| *at += by;
        for server in &mut self.servers {
            // Earlier announcements no longer count, whatever the clock shows now.
            server.meddled_at = Some(before.max(now()));
            let mut world = server.shared.world();
            world.tell(format!("the clocks are put by {} s", by.as_secs()));
            world.shift(by);
        }
        let operators = self.processes.iter_mut().flat_map(|process| &mut process.operators);
        operators.for_each(|operator| shift(&mut operator.due));
        self.faults.iter_mut().for_each(|(at, ..)| shift(at));
        self.restarts_at.iter_mut().for_each(shift);
        shift(&mut self.released_at);
    }

    fn end(mut self) -> FleetRunResult {
        let ends = self.judge_end();
        self.note();
        let mut broken = BTreeSet::new();
        let mut faults = self.met;
        for server in &self.servers {
            let world = server.shared.world();
            broken.extend(world.broken.iter().cloned());
            faults += world.met;
        }
        FleetRunResult {
            broken,
            passes: self.passes,
            faults,
            waited: self.servers.iter().filter(|server| server.waited_at.is_some()).count(),
            followed: self.servers.iter().filter(|server| server.waited_for_followed_at.is_some()).count(),
            ends,
            story: self.story,
        }
    }
}
