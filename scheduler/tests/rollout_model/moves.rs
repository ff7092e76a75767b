//! Pure. Lists all possible next moves: the operator and a delayed process, the controller, pods, players, clocks, users and faults.

mod controller;
mod deeds;
mod faults;
mod pods;

use scheduler::rollout::{Step, WaitingOn};

use crate::deed::{Deed, F, For, Held};
use crate::world::{Agent, ByUs, Clock, L, Mark, Rev, Rule, Scenario, State, WindowNow};

/// The actor of a move. An end must be reachable with moves of the operator and the environment alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Operator,
    World,
    /// A helpful event, on which no progress may depend.
    Help,
    Fault,
    Person,
}

/// The moves from one state, and the broken invariants and notes there.
pub(crate) struct Moves<'a> {
    pub(crate) s: &'a Scenario,
    pub(crate) out: Vec<(Kind, &'static str, State)>,
    pub(crate) broken: Vec<&'static str>,
    pub(crate) notes: Vec<&'static str>,
    /// The current action was decided some time ago.
    pub(crate) sleeper: bool,
}

impl<'a> Moves<'a> {
    pub(crate) fn new(s: &'a Scenario) -> Self {
        Self { s, out: Vec::new(), broken: Vec::new(), notes: Vec::new(), sleeper: false }
    }

    pub(crate) fn to(&mut self, kind: Kind, name: &'static str, to: State) {
        self.out.push((kind, name, to.folded(self.s)));
    }

    /// Time passes: a held decision is too old now.
    pub(crate) fn tick(&mut self, name: &'static str, mut to: State) {
        if let Some(held) = &mut to.held {
            held.in_time = false;
        }
        self.to(Kind::World, name, to);
    }

    pub(crate) fn must(&mut self, ok: bool, what: &'static str) {
        if !ok {
            self.broken.push(what);
        }
    }

    fn note(&mut self, what: &'static str) {
        self.notes.push(what);
    }

    /// All moves from here, and the answer of `next_step` here.
    pub(crate) fn all(&mut self, w: &State) -> Step {
        self.out.clear();
        self.broken.clear();
        self.notes.clear();
        let step = w.answer(self.s);
        self.check_answer(w, &step);
        self.operator(w, &step);
        self.sleeper_wakes(w);
        self.controller(w);
        self.pod(w);
        self.clocks(w);
        if w.changes > 0 {
            for goal in [Rev::A, Rev::B, Rev::C] {
                if goal != w.goal {
                    let restarted = w.restarted & !goal.bit();
                    let to = State { goal, changes: w.changes - 1, restarted, images: State::not_asked(self.s), ..*w };
                    self.to(Kind::Person, "the goal changes", to);
                }
            }
        }
        if w.asleep {
            self.to(Kind::Help, "somebody scales to 1", State { asleep: false, ..*w });
        }
        if w.refuses {
            self.to(Kind::Help, "somebody makes room on the disk", State { refuses: false, ..*w });
        }
        self.whoever_empties_the_node(w, &step);
        self.whoever_asks_for_a_copy(w);
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
            Step::Settled => {
                let runs = w.pod.is_some_and(|p| p.rev == w.goal && p.life == L::Up);
                self.must(Some(w.goal) == w.settled && runs, "9 settled, but the goal does not run");
                true
            }
            Step::Wait(why) => {
                matches!(
                    why,
                    WaitingOn::Held { .. }
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
        let counts_down = w.announced.is_some_and(|f| f.pod && f.ok && f.act != For::Drain);
        if quiet {
            let whole = Some(w.template) == w.settled && Some(w.current) == w.settled;
            self.must(!w.open && whole && !w.foreign, "9 quiet with the door open or another template behind it");
            let can_be_told = w.agent == Agent::Answers && *step != Step::Wait(WaitingOn::Eviction);
            self.must(!counts_down || !can_be_told, "1 players count down to what does not come");
        }
        let decides = matches!(
            step,
            Step::Wait(WaitingOn::NoBackup | WaitingOn::RollbackWouldLoseProgress | WaitingOn::WorldRefused)
        );
        let waits_for_a_copy = *step == Step::Wait(WaitingOn::WorldRefused);
        self.must(
            !(decides && !waits_for_a_copy && counts_down && w.agent == Agent::Answers),
            "1 players count down to what does not come",
        );
        self.must(!(decides && w.copy_is_asked()), "13 a person has named the copy, and is asked again");
        let whole = !w.open && Some(w.template) == w.settled && Some(w.current) == w.settled && !w.foreign;
        let stays_down = *step == Step::Wait(WaitingOn::ServerDown) && whole;
        self.must(
            !(stays_down && w.copy_is_asked()),
            "13 a person has named the copy, and the server stays down without",
        );
        let waits = matches!(step, Step::Wait(WaitingOn::Countdown { .. }));
        let left_alone = waits && w.forgot && w.agent == Agent::Answers;
        self.must(!left_alone, "1 the agent has died in the countdown, and players are left without another word");
        let outside = w.window == WindowNow::Shut && !w.nobody_minds(self.s);
        let committed = w.by_us == ByUs::Update && w.open && outside;
        if committed && *step == Step::Wait(WaitingOn::Controller) {
            let without_effect = w.busy().is_some_and(|p| Some(p.rev) == w.settled && w.template != p.rev);
            self.must(!without_effect, "2 a commit without effect is left standing after the window");
        }
    }

    fn operator(&mut self, w: &State, step: &Step) {
        let Some(deed) = Deed::of(step, w) else { return };
        let to = self.perform(w, deed);
        self.to(Kind::Operator, "operator", to);
        if w.faults > 0 && w.held.is_none() {
            let held = Some(Held { deed, set: true, pod: true, in_time: true });
            let to = State { faults: w.faults - 1, held, ..*w };
            self.to(Kind::Fault, "falls asleep with a step in its hand", to);
        }
    }

    fn sleeper_wakes(&mut self, w: &State) {
        let Some(held) = w.held else { return };
        let to = State { held: None, ..*w };
        let in_time = held.in_time || !held.deed.expires() || self.s.without == Some(Rule::NotAfter);
        let creates = matches!(held.deed, Deed::Create { .. });
        let heard = !held.deed.at_the_agent() || (held.pod && w.agent == Agent::Answers && w.busy().is_some());
        if in_time && heard && held.set && creates != w.exists {
            self.sleeper = true;
            let to = self.perform(&to, held.deed);
            self.sleeper = false;
            self.to(Kind::World, "the sleeper acts", to);
        } else {
            self.to(Kind::World, "the sleeper is refused", to);
        }
    }

    /// Marks the node, evicts where that is allowed, and removes the mark again.
    fn whoever_empties_the_node(&mut self, w: &State, step: &Step) {
        if *step == Step::Wait(WaitingOn::Eviction) {
            self.must(w.mark == Mark::There, "12 evictions are let through from a node that stays");
            self.check_eviction(w);
            if let Some(p) = w.busy() {
                self.to(Kind::Person, "evicted", State { pod: Some(p.stopping()), ..*w });
            }
        }
        match w.mark {
            Mark::Before => {
                let mark = if w.pod.is_some() { Mark::There } else { Mark::Over };
                self.to(Kind::Person, "the node is marked", State { mark, ..*w });
            }
            Mark::There => self.to(Kind::Person, "the mark is taken away", State { mark: Mark::Over, ..*w }),
            Mark::Over => {}
        }
    }

    fn clocks(&mut self, w: &State) {
        if let Some(fact) = w.announced.filter(|fact| !fact.good) {
            self.tick("countdown over", State { announced: Some(F { good: true, short: false, ..fact }), ..*w });
        }
        // An admin evicts from a drained node at any time.
        if let Some(fact) = w.announced.filter(|fact| fact.good && fact.ok && fact.act != For::Drain) {
            self.tick("the countdown ended long ago", State { announced: Some(F { ok: false, ..fact }), ..*w });
        }
        if let Some(fact) = w.saved.filter(|fact| fact.good) {
            self.tick("save grows old", State { saved: Some(F { good: false, ..fact }), ..*w });
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
                fact.window &= fact.clock;
            }
            self.tick("window opens", to);
            return;
        }
        if w.window == WindowNow::Open && self.s.policy == crate::world::Asking::EmptyFirst {
            self.tick("patience with players is over", State { window: WindowNow::OpenForLong, ..*w });
        }
        if matches!(w.window, WindowNow::Open | WindowNow::OpenForLong) {
            self.tick("the last part of the window begins", State { window: WindowNow::Ending, ..*w });
        }
        if w.window == WindowNow::TooLateToBegin {
            let mut to = State { window: WindowNow::Shut, ..*w };
            for fact in [&mut to.announced, &mut to.saved].into_iter().flatten() {
                fact.window &= fact.clock;
            }
            self.tick("window shuts", to);
        } else {
            self.tick("window nearly over", State { window: WindowNow::TooLateToBegin, ..*w });
        }
    }
}
