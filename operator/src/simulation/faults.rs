//! Edge (writes). Plans the faults of a run, and injects them.

use fixtures::rng::Rng;
use jiff::{SignedDuration, Timestamp};

use super::cluster::SimCluster;
use super::fake_kubelet::Phase;
use super::scenario::{Extra, Scenario, SetBehaviour, WINDOW_INTERVAL, WINDOW_LENGTH};
use super::user_actions::UserAction;
use crate::clock::now;

/// A fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// kill -9, also in the middle of a pass.
    OperatorCrashes,
    /// Two processes believe that they lead.
    SecondLeader,
    /// Only the newer one continues.
    SingleLeader,
    /// All clocks are set forward or back.
    ClocksJump,
    /// Upstreams withdraw releases, and release them again.
    ReleaseWithdrawn,
    ReleaseRestored,
    Injected(InjectedCrash),
    User(UserAction),
}

/// A fault of any part except the operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InjectedCrash {
    /// The agent's process dies and is started again.
    AgentCrashes,
    /// The agent cannot be reached for a while.
    AgentUnreachable,
    /// The server's process dies.
    ServerCrashes,
    /// The server's main thread hangs for a while.
    ServerHangs,
    /// It carries out no command for a while.
    CommandsRefused,
    /// It crashes repeatedly for a while.
    ServerCrashLoops,
    /// A user deletes the pod.
    PodDeleted,
    /// A user deletes the pod by force. Its process still runs for a while.
    PodForceDeleted,
    /// Its node is drained, and may be used again.
    NodeDrained,
    NodeUncordoned,
    /// Its node is off, and on again.
    NodeLost,
    NodeReturns,
    /// The `StatefulSet` is deleted with its history, and usually with its pod.
    StatefulSetDeleted,
}

const ALL: [Fault; 22] = [
    Fault::OperatorCrashes,
    Fault::OperatorCrashes,
    Fault::SecondLeader,
    Fault::ClocksJump,
    Fault::ReleaseWithdrawn,
    Fault::Injected(InjectedCrash::AgentCrashes),
    Fault::Injected(InjectedCrash::AgentUnreachable),
    Fault::Injected(InjectedCrash::ServerCrashes),
    Fault::Injected(InjectedCrash::ServerHangs),
    Fault::Injected(InjectedCrash::CommandsRefused),
    Fault::Injected(InjectedCrash::ServerCrashLoops),
    Fault::Injected(InjectedCrash::PodDeleted),
    Fault::Injected(InjectedCrash::PodForceDeleted),
    Fault::Injected(InjectedCrash::NodeDrained),
    Fault::Injected(InjectedCrash::NodeLost),
    Fault::Injected(InjectedCrash::StatefulSetDeleted),
    Fault::User(UserAction::ScaleDown),
    Fault::User(UserAction::ApplyNow),
    Fault::User(UserAction::RollBack),
    Fault::User(UserAction::Suspend),
    Fault::User(UserAction::BackUp),
    Fault::User(UserAction::Restore),
];

/// Faults that end after a while, each with its end.
const TEMPORARY: [(Fault, Fault); 7] = [
    (Fault::SecondLeader, Fault::SingleLeader),
    (Fault::ReleaseWithdrawn, Fault::ReleaseRestored),
    (Fault::Injected(InjectedCrash::NodeDrained), Fault::Injected(InjectedCrash::NodeUncordoned)),
    (Fault::Injected(InjectedCrash::NodeLost), Fault::Injected(InjectedCrash::NodeReturns)),
    (Fault::User(UserAction::ScaleDown), Fault::User(UserAction::ScaleUp)),
    (Fault::User(UserAction::RollBack), Fault::User(UserAction::EndRollBack)),
    (Fault::User(UserAction::Suspend), Fault::User(UserAction::Resume)),
];

/// Plans the times of the faults within the windows, and the time of the newer releases.
pub(super) fn plan_faults(
    rng: &mut Rng,
    scenario: &Scenario,
    begins: Timestamp,
    windows: usize,
) -> (Vec<(Timestamp, Fault)>, Timestamp) {
    let interval = WINDOW_INTERVAL.as_secs();
    let seconds = |seconds: i64| SignedDuration::from_secs(seconds);
    // The first opening after the run began.
    let opening = begins + seconds(interval - begins.as_second() % interval);
    let mut faults = Vec::new();
    for _ in 0..rng.number_below(7) {
        let window = i64::try_from(rng.number_below(windows)).expect("a small number");
        // Usually while an update is in progress.
        let spread = if rng.one_in(4) { interval - 60 } else { WINDOW_LENGTH.as_secs() };
        let within =
            i64::try_from(rng.number_below(usize::try_from(spread).expect("a small number"))).expect("a small number");
        let at = opening + seconds(window * interval + within);
        let fault = rng.choose(&ALL);
        faults.push((at, fault));
        let later = seconds(30 + i64::try_from(rng.number_below(900)).expect("a small number"));
        faults.extend(TEMPORARY.into_iter().filter(|(begins, _)| *begins == fault).map(|(_, ends)| (at + later, ends)));
    }
    if rng.one_in(3) {
        let at = opening + seconds(i64::try_from(rng.number_below(3_600)).expect("a small number"));
        faults.push((at, Fault::User(UserAction::ChangeHeap)));
    }
    if scenario.has_extra(Extra::Approval) && !rng.one_in(4) {
        let at = opening + seconds(i64::try_from(rng.number_below(9_000)).expect("a small number"));
        faults.push((at, Fault::User(UserAction::Approve)));
    }
    if scenario.backup_policy.is_some() && rng.one_in(2) {
        let first = i64::try_from(rng.number_below(12_000)).expect("a small number");
        let between = i64::try_from(60 + rng.number_below(6_000)).expect("a small number");
        faults.push((opening + seconds(first), Fault::User(UserAction::BackUp)));
        faults.push((opening + seconds(first + between), Fault::User(UserAction::Restore)));
    }
    if scenario.behaviour != SetBehaviour::Good && rng.one_in(2) {
        let at = opening + seconds(i64::try_from(rng.number_below(9_000)).expect("a small number"));
        faults.push((at, Fault::User(UserAction::FixCause)));
    }
    faults.sort_by_key(|(at, _)| *at);
    let released_at = begins + seconds(300 + i64::try_from(rng.number_below(14_000)).expect("a small number"));
    (faults, released_at)
}

impl SimCluster {
    /// Injects a fault of any part except the operators.
    pub(super) fn inject(&mut self, crash: InjectedCrash) {
        match crash {
            InjectedCrash::AgentCrashes | InjectedCrash::AgentUnreachable => {
                let duration =
                    if crash == InjectedCrash::AgentCrashes { self.seconds(1, 15) } else { self.seconds(30, 1_500) };
                let is_hanging = self.rng.one_in(2);
                if crash == InjectedCrash::AgentCrashes {
                    self.restart_agent(duration);
                } else {
                    self.silence_agent(duration, is_hanging);
                }
            }
            InjectedCrash::ServerCrashes if self.has_process() => {
                self.crash("server: the process dies");
            }
            InjectedCrash::ServerHangs => {
                let duration = self.seconds(20, 1_200);
                self.hang(duration);
            }
            InjectedCrash::CommandsRefused => {
                let duration = self.seconds(60, 1_500);
                self.refuse_commands(duration);
            }
            InjectedCrash::ServerCrashLoops => {
                let duration = self.seconds(60, 1_500);
                self.crash_repeatedly(duration);
            }
            InjectedCrash::PodDeleted => self.delete_pod("admin: deletes the pod"),
            InjectedCrash::PodForceDeleted => self.force_delete_pod(),
            InjectedCrash::NodeDrained => self.drain(),
            InjectedCrash::NodeUncordoned => self.uncordon(),
            InjectedCrash::NodeLost => self.lose_node(),
            InjectedCrash::NodeReturns => self.recover_node(),
            InjectedCrash::StatefulSetDeleted => {
                self.objects.remove(&self.stateful_set_key());
                self.allow_repeated_updates();
                // Otherwise its pod stays, as with `--cascade=orphan`.
                if self.is_scripted() || self.rng.one_in(2) {
                    self.delete_pod("garbage collector: deletes the pod of the StatefulSet");
                }
                let entries = self.objects.list("controllerrevisions", &[]);
                let names: Vec<_> =
                    entries.iter().filter_map(|entry| Some(entry["metadata"]["name"].as_str()?.to_owned())).collect();
                for name in names {
                    self.objects.remove(&super::objects::Key::new("controllerrevisions", &name));
                }
                self.mark_changed();
            }
            InjectedCrash::ServerCrashes => {}
        }
    }

    fn has_process(&self) -> bool {
        self.pod.as_ref().is_some_and(|pod| matches!(pod.phase, Phase::Up | Phase::Booting))
    }

    /// The agent's process dies, and runs again after this time.
    pub(super) fn restart_agent(&mut self, duration: SignedDuration) {
        if let Some(pod) = self.pod.as_mut().filter(|pod| pod.agent.reachable_from.is_some()) {
            pod.agent.start(now() + duration);
        }
    }

    /// The agent answers no request for this time. With `is_hanging` it still accepts requests.
    pub(super) fn silence_agent(&mut self, duration: SignedDuration, is_hanging: bool) {
        if let Some(pod) = self.pod.as_mut().filter(|pod| pod.agent.reachable_from.is_some()) {
            pod.agent.reachable_from = Some(now() + duration);
            pod.agent.is_hanging = is_hanging;
        }
    }

    /// The server carries out no console command for this time.
    pub(super) fn refuse_commands(&mut self, duration: SignedDuration) {
        if let Some(pod) = &mut self.pod {
            pod.refuses_until = Some(now() + duration);
        }
    }

    /// The server crashes, and crashes in each start for this time.
    pub(super) fn crash_repeatedly(&mut self, duration: SignedDuration) {
        if let Some(pod) = &mut self.pod {
            pod.crashes_until = Some(now() + duration);
        }
        if self.has_process() {
            self.invariants.crash_looped = true;
            self.crash("server: the process dies");
        }
    }
}
