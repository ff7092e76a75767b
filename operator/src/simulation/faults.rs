//! Edge (writes). Plans the faults of a run, and injects them.

use fixtures::dice::Rng;
use jiff::{SignedDuration, Timestamp};

use super::cluster::SimCluster;
use super::fake_kubelet::Phase;
use super::scenario::{EVERY, Extra, OPEN_FOR, Scenario, SetBehaviour};
use super::user_actions::UserAction;
use crate::clock::now;

/// A fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// kill -9, also in the middle of a pass.
    OperatorDies,
    /// Two processes believe that they lead.
    AnotherLeads,
    /// Only the newer one continues.
    OneLeads,
    /// All clocks are set forward or back.
    ClocksJump,
    /// Upstreams withdraw releases, and release them again.
    Withdrawn,
    ReleasedAgain,
    World(InjectedCrash),
    Person(UserAction),
}

/// A fault of any part except the operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InjectedCrash {
    /// The agent's process dies and is started again.
    AgentDies,
    /// The agent cannot be reached for a while.
    AgentUnreachable,
    /// The server's process dies.
    ServerCrashes,
    /// The server's main thread hangs for a while.
    ServerHangs,
    /// It carries out no command for a while.
    CommandsRefused,
    /// It crashes repeatedly for a while.
    ServerCrashesOn,
    /// A user deletes the pod.
    PodDeleted,
    /// A user deletes the pod by force. Its process still runs for a while.
    PodForced,
    /// Its node is drained, and may be used again.
    NodeDrained,
    NodeUncordoned,
    /// Its node is off, and on again.
    NodeLost,
    NodeFound,
    /// The `StatefulSet` is deleted with its history, and usually with its pod.
    SetDeleted,
}

const ALL: [Fault; 22] = [
    Fault::OperatorDies,
    Fault::OperatorDies,
    Fault::AnotherLeads,
    Fault::ClocksJump,
    Fault::Withdrawn,
    Fault::World(InjectedCrash::AgentDies),
    Fault::World(InjectedCrash::AgentUnreachable),
    Fault::World(InjectedCrash::ServerCrashes),
    Fault::World(InjectedCrash::ServerHangs),
    Fault::World(InjectedCrash::CommandsRefused),
    Fault::World(InjectedCrash::ServerCrashesOn),
    Fault::World(InjectedCrash::PodDeleted),
    Fault::World(InjectedCrash::PodForced),
    Fault::World(InjectedCrash::NodeDrained),
    Fault::World(InjectedCrash::NodeLost),
    Fault::World(InjectedCrash::SetDeleted),
    Fault::Person(UserAction::Down),
    Fault::Person(UserAction::Now),
    Fault::Person(UserAction::Back),
    Fault::Person(UserAction::Rest),
    Fault::Person(UserAction::Copy),
    Fault::Person(UserAction::Restore),
];

/// Faults that end after a while, each with its end.
const PASSES: [(Fault, Fault); 7] = [
    (Fault::AnotherLeads, Fault::OneLeads),
    (Fault::Withdrawn, Fault::ReleasedAgain),
    (Fault::World(InjectedCrash::NodeDrained), Fault::World(InjectedCrash::NodeUncordoned)),
    (Fault::World(InjectedCrash::NodeLost), Fault::World(InjectedCrash::NodeFound)),
    (Fault::Person(UserAction::Down), Fault::Person(UserAction::Up)),
    (Fault::Person(UserAction::Back), Fault::Person(UserAction::On)),
    (Fault::Person(UserAction::Rest), Fault::Person(UserAction::NoRest)),
];

/// Plans the times of the faults within the windows, and the time of the newer releases.
pub(super) fn plan_faults(
    dice: &mut Rng,
    scenario: &Scenario,
    begins: Timestamp,
    windows: usize,
) -> (Vec<(Timestamp, Fault)>, Timestamp) {
    let whole = EVERY.as_secs();
    let seconds = |seconds: i64| SignedDuration::from_secs(seconds);
    // The first opening after the run began.
    let opening = begins + seconds(whole - begins.as_second() % whole);
    let mut faults = Vec::new();
    for _ in 0..dice.below(7) {
        let window = i64::try_from(dice.below(windows)).expect("a few");
        // Usually while an update is in progress.
        let spread = if dice.once_in(4) { whole - 60 } else { OPEN_FOR.as_secs() };
        let within = i64::try_from(dice.below(usize::try_from(spread).expect("a few hours"))).expect("a few hours");
        let at = opening + seconds(window * whole + within);
        let fault = dice.one_of(&ALL);
        faults.push((at, fault));
        let later = seconds(30 + i64::try_from(dice.below(900)).expect("minutes"));
        faults.extend(PASSES.into_iter().filter(|(begins, _)| *begins == fault).map(|(_, ends)| (at + later, ends)));
    }
    if dice.once_in(3) {
        let at = opening + seconds(i64::try_from(dice.below(3_600)).expect("an hour"));
        faults.push((at, Fault::Person(UserAction::AnotherHeap)));
    }
    if scenario.has(Extra::Approval) && !dice.once_in(4) {
        let at = opening + seconds(i64::try_from(dice.below(9_000)).expect("hours"));
        faults.push((at, Fault::Person(UserAction::Approve)));
    }
    if scenario.copies.is_some() && dice.once_in(2) {
        let first = i64::try_from(dice.below(12_000)).expect("hours");
        let between = i64::try_from(60 + dice.below(6_000)).expect("hours");
        faults.push((opening + seconds(first), Fault::Person(UserAction::Copy)));
        faults.push((opening + seconds(first + between), Fault::Person(UserAction::Restore)));
    }
    if scenario.fate != SetBehaviour::Good && dice.once_in(2) {
        let at = opening + seconds(i64::try_from(dice.below(9_000)).expect("hours"));
        faults.push((at, Fault::Person(UserAction::Mend)));
    }
    faults.sort_by_key(|(at, _)| *at);
    let released_at = begins + seconds(300 + i64::try_from(dice.below(14_000)).expect("hours"));
    (faults, released_at)
}

impl SimCluster {
    /// Injects a fault of any part except the operators.
    pub(super) fn strike(&mut self, blow: InjectedCrash) {
        match blow {
            InjectedCrash::AgentDies | InjectedCrash::AgentUnreachable => {
                let takes =
                    if blow == InjectedCrash::AgentDies { self.seconds(1, 15) } else { self.seconds(30, 1_500) };
                let hangs = self.dice.once_in(2);
                if blow == InjectedCrash::AgentDies {
                    self.restart_agent(takes);
                } else {
                    self.silence_agent(takes, hangs);
                }
            }
            InjectedCrash::ServerCrashes if self.has_process() => {
                self.crash("server: the process dies");
            }
            InjectedCrash::ServerHangs => {
                let takes = self.seconds(20, 1_200);
                self.hang(takes);
            }
            InjectedCrash::CommandsRefused => {
                let takes = self.seconds(60, 1_500);
                self.refuse_commands(takes);
            }
            InjectedCrash::ServerCrashesOn => {
                let takes = self.seconds(60, 1_500);
                self.crash_on(takes);
            }
            InjectedCrash::PodDeleted => self.end_pod("admin: deletes the pod"),
            InjectedCrash::PodForced => self.force_pod(),
            InjectedCrash::NodeDrained => self.drain(),
            InjectedCrash::NodeUncordoned => self.uncordon(),
            InjectedCrash::NodeLost => self.lose_node(),
            InjectedCrash::NodeFound => self.find_node(),
            InjectedCrash::SetDeleted => {
                self.objects.remove(&self.key_of_set());
                self.note_taken_back();
                // Otherwise its pod stays, as with `--cascade=orphan`.
                if self.is_scripted() || self.dice.once_in(2) {
                    self.end_pod("garbage collector: deletes the pod of the StatefulSet");
                }
                let entries = self.objects.list("controllerrevisions", &[]);
                let names: Vec<_> =
                    entries.iter().filter_map(|entry| Some(entry["metadata"]["name"].as_str()?.to_owned())).collect();
                for name in names {
                    self.objects.remove(&super::objects::Key::new("controllerrevisions", &name));
                }
                self.changed();
            }
            InjectedCrash::ServerCrashes => {}
        }
    }

    fn has_process(&self) -> bool {
        self.pod.as_ref().is_some_and(|pod| matches!(pod.phase, Phase::Up | Phase::Booting))
    }

    /// The agent's process dies, and runs again after this time.
    pub(super) fn restart_agent(&mut self, takes: SignedDuration) {
        if let Some(pod) = self.pod.as_mut().filter(|pod| pod.agent.answers_from.is_some()) {
            pod.agent.begin(now() + takes);
        }
    }

    /// The agent answers no request for this time. With `hangs` it still accepts requests.
    pub(super) fn silence_agent(&mut self, takes: SignedDuration, hangs: bool) {
        if let Some(pod) = self.pod.as_mut().filter(|pod| pod.agent.answers_from.is_some()) {
            pod.agent.answers_from = Some(now() + takes);
            pod.agent.hangs = hangs;
        }
    }

    /// The server carries out no console command for this time.
    pub(super) fn refuse_commands(&mut self, takes: SignedDuration) {
        if let Some(pod) = &mut self.pod {
            pod.refuses_until = Some(now() + takes);
        }
    }

    /// The server crashes, and crashes in each start for this time.
    pub(super) fn crash_on(&mut self, takes: SignedDuration) {
        if let Some(pod) = &mut self.pod {
            pod.crashes_until = Some(now() + takes);
        }
        if self.has_process() {
            self.ledger.crashed_on = true;
            self.crash("server: the process dies");
        }
    }
}
