//! Pure. Lists all possible next moves: the operator and a delayed process, the controller, pods, players, clocks, users and faults.

mod actions;
mod controller;
mod faults;
mod pods;

use scheduler::rollout::{Step, WaitingOn};

use crate::action::{Action, DelayedStep, F, For};
use crate::state::{Agent, ByUs, Clock, L, Mark, Rev, Rule, Scenario, State, WindowNow};

/// The actor of a move. An end must be reachable with moves of the operator and the environment alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Operator,
    Environment,
    /// A helpful event, on which no progress may depend.
    Help,
    Fault,
    User,
}

/// The moves from one state, and the broken invariants and recorded events there.
pub(crate) struct Moves<'a> {
    pub(crate) s: &'a Scenario,
    pub(crate) successors: Vec<(Kind, &'static str, State)>,
    pub(crate) broken: Vec<&'static str>,
    pub(crate) events: Vec<&'static str>,
    /// The current action was decided some time ago.
    pub(crate) is_delayed: bool,
}

impl<'a> Moves<'a> {
    pub(crate) fn new(s: &'a Scenario) -> Self {
        Self { s, successors: Vec::new(), broken: Vec::new(), events: Vec::new(), is_delayed: false }
    }

    pub(crate) fn add(&mut self, kind: Kind, name: &'static str, to: State) {
        self.successors.push((kind, name, to.normalized(self.s)));
    }

    /// Time passes: a delayed decision is too old now.
    pub(crate) fn tick(&mut self, name: &'static str, mut to: State) {
        if let Some(delayed) = &mut to.delayed {
            delayed.in_time = false;
        }
        self.add(Kind::Environment, name, to);
    }

    pub(crate) fn check(&mut self, ok: bool, text: &'static str) {
        if !ok {
            self.broken.push(text);
        }
    }

    fn record_event(&mut self, text: &'static str) {
        self.events.push(text);
    }

    /// All moves from here, and the answer of `next_step` here.
    pub(crate) fn all_moves(&mut self, w: &State) -> Step {
        self.successors.clear();
        self.broken.clear();
        self.events.clear();
        let step = w.decide(self.s);
        self.check_answer(w, &step);
        self.operator(w, &step);
        self.delayed_action(w);
        self.controller(w);
        self.pod(w);
        self.clocks(w);
        if w.changes > 0 {
            for goal in [Rev::A, Rev::B, Rev::C] {
                if goal != w.goal {
                    let restarted = w.restarted & !goal.bit();
                    let to = State { goal, changes: w.changes - 1, restarted, images: State::unchecked(self.s), ..*w };
                    self.add(Kind::User, "the goal changes", to);
                }
            }
        }
        if w.scaled_to_zero {
            self.add(Kind::Help, "an admin scales to 1", State { scaled_to_zero: false, ..*w });
        }
        if w.refuses {
            self.add(Kind::Help, "an admin frees disk space", State { refuses: false, ..*w });
        }
        self.drain_node(w, &step);
        self.request_user_restore(w);
        self.node(w);
        self.crash_loop(w);
        if w.faults > 0 {
            self.faults(w);
        }
        step
    }

    /// An answer of rest requires a closed partition, and no other written template.
    fn check_answer(&mut self, w: &State, step: &Step) {
        let quiet = match step {
            Step::UpToDate => {
                let runs = w.pod.is_some_and(|p| p.rev == w.goal && p.phase == L::Up);
                self.check(Some(w.goal) == w.stable && runs, "9 up to date, but the goal does not run");
                true
            }
            Step::Wait(why) => {
                matches!(
                    why,
                    WaitingOn::Blocked { .. }
                        | WaitingOn::BelowFloor { .. }
                        | WaitingOn::NoImage
                        | WaitingOn::Window { .. }
                        | WaitingOn::Eviction
                )
            }
            Step::Create { .. }
            | Step::Stage
            | Step::Announce { .. }
            | Step::Reannounce { .. }
            | Step::Save { .. }
            | Step::WriteTemplate { .. }
            | Step::Commit { .. }
            | Step::Restore { .. }
            | Step::MarkFailed { .. }
            | Step::RequestRestore { .. }
            | Step::RequestPluginDataRestore { .. }
            | Step::RollBack { .. }
            | Step::RollForward { .. }
            | Step::MarkStable { .. }
            | Step::Restart { .. }
            | Step::EndRestart
            | Step::BeginDrain { .. }
            | Step::EndDrain
            | Step::CancelAnnouncement { .. } => false,
        };
        let counts_down = w.announced.is_some_and(|f| f.pod && f.is_confirmed && f.disruption != For::Drain);
        if quiet {
            let whole = Some(w.template) == w.stable && Some(w.current) == w.stable;
            self.check(!w.open && whole && !w.foreign, "9 at rest with an open partition or another template");
            let is_reachable = w.agent == Agent::Answers && *step != Step::Wait(WaitingOn::Eviction);
            self.check(!counts_down || !is_reachable, "1 players count down to a stop that does not happen");
        }
        let decides = matches!(
            step,
            Step::Wait(WaitingOn::NoBackup | WaitingOn::RollbackWouldLoseProgress | WaitingOn::WorldRefused)
        );
        let is_world_refused = *step == Step::Wait(WaitingOn::WorldRefused);
        self.check(
            !(decides && !is_world_refused && counts_down && w.agent == Agent::Answers),
            "1 players count down to a stop that does not happen",
        );
        self.check(!(decides && w.is_user_restore_confirmed()), "13 a user has chosen a backup, and is asked again");
        let whole = !w.open && Some(w.template) == w.stable && Some(w.current) == w.stable && !w.foreign;
        let stays_down = *step == Step::Wait(WaitingOn::ServerDown) && whole;
        self.check(
            !(stays_down && w.is_user_restore_confirmed()),
            "13 a user has chosen a backup, and the server stays down",
        );
        let waits = matches!(step, Step::Wait(WaitingOn::Countdown { .. }));
        let is_abandoned = waits && w.forgot && w.agent == Agent::Answers;
        self.check(!is_abandoned, "1 a restarted agent does not continue the countdown");
        let outside = w.window == WindowNow::Shut && !w.is_unobtrusive(self.s);
        let committed = w.by_operator == ByUs::Update && w.open && outside;
        if committed && *step == Step::Wait(WaitingOn::Controller) {
            let without_effect = w.active_pod().is_some_and(|p| Some(p.rev) == w.stable && w.template != p.rev);
            self.check(!without_effect, "2 a commit without effect is not reverted after the window");
        }
    }

    fn operator(&mut self, w: &State, step: &Step) {
        let Some(action) = Action::from_step(step, w) else { return };
        let to = self.perform(w, action);
        self.add(Kind::Operator, "operator", to);
        if w.faults > 0 && w.delayed.is_none() {
            let delayed = Some(DelayedStep { action, is_fresh: true, pod: true, in_time: true });
            let to = State { faults: w.faults - 1, delayed, ..*w };
            self.add(Kind::Fault, "the process is delayed before the step", to);
        }
    }

    fn delayed_action(&mut self, w: &State) {
        let Some(delayed) = w.delayed else { return };
        let to = State { delayed: None, ..*w };
        let in_time = delayed.in_time || !delayed.action.expires() || self.s.without == Some(Rule::NotAfter);
        let creates = matches!(delayed.action, Action::Create { .. });
        let is_received =
            !delayed.action.is_at_agent() || (delayed.pod && w.agent == Agent::Answers && w.active_pod().is_some());
        if in_time && is_received && delayed.is_fresh && creates != w.exists {
            self.is_delayed = true;
            let to = self.perform(&to, delayed.action);
            self.is_delayed = false;
            self.add(Kind::Environment, "the delayed process acts", to);
        } else {
            self.add(Kind::Environment, "the delayed process is refused", to);
        }
    }

    /// Marks the node, evicts where that is allowed, and removes the mark again.
    fn drain_node(&mut self, w: &State, step: &Step) {
        if *step == Step::Wait(WaitingOn::Eviction) {
            self.check(w.mark == Mark::Set, "12 evictions are allowed from a node without a mark");
            self.check_eviction(w);
            if let Some(p) = w.active_pod() {
                self.add(Kind::User, "evicted", State { pod: Some(p.stopping()), ..*w });
            }
        }
        match w.mark {
            Mark::Before => {
                let mark = if w.pod.is_some() { Mark::Set } else { Mark::Over };
                self.add(Kind::User, "the node is marked", State { mark, ..*w });
            }
            Mark::Set => self.add(Kind::User, "the mark is removed", State { mark: Mark::Over, ..*w }),
            Mark::Over => {}
        }
    }

    fn clocks(&mut self, w: &State) {
        if let Some(fact) = w.announced.filter(|fact| !fact.good) {
            self.tick("countdown over", State { announced: Some(F { good: true, is_short: false, ..fact }), ..*w });
        }
        // An admin evicts from a drained node at any time.
        if let Some(fact) = w.announced.filter(|fact| fact.good && fact.is_confirmed && fact.disruption != For::Drain) {
            self.tick(
                "the countdown ended long ago",
                State { announced: Some(F { is_confirmed: false, ..fact }), ..*w },
            );
        }
        if let Some(fact) = w.saved.filter(|fact| fact.good) {
            self.tick("the save expires", State { saved: Some(F { good: false, ..fact }), ..*w });
        }
        match w.clock {
            Clock::Before => self.tick("a restart is due", State { clock: Clock::Due, ..*w }),
            Clock::Due => self.tick("too late for the restart", State { clock: Clock::Over, ..*w }),
            Clock::Over => {}
        }
        if w.window == WindowNow::Shut {
            let mut to = State { window: WindowNow::Open, ..*w };
            // Its `opened_at` differs from that of the opening by emptiness before.
            for fact in [&mut to.announced, &mut to.saved].into_iter().flatten() {
                fact.window &= fact.of_restart;
            }
            self.tick("window opens", to);
            return;
        }
        if w.window == WindowNow::Open && self.s.policy == crate::state::Asking::EmptyFirst {
            self.tick("the limit for waiting on players is over", State { window: WindowNow::OpenForLong, ..*w });
        }
        if matches!(w.window, WindowNow::Open | WindowNow::OpenForLong) {
            self.tick("the last part of the window begins", State { window: WindowNow::Ending, ..*w });
        }
        if w.window == WindowNow::TooLateToBegin {
            let mut to = State { window: WindowNow::Shut, ..*w };
            for fact in [&mut to.announced, &mut to.saved].into_iter().flatten() {
                fact.window &= fact.of_restart;
            }
            self.tick("window shuts", to);
        } else {
            self.tick("window nearly over", State { window: WindowNow::TooLateToBegin, ..*w });
        }
    }
}
