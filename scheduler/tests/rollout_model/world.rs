//! Pure. A small world: what there is in it, how it looks to `next_step`, and which of its states nobody can tell apart.
//!
//! Time is abstracted: a clock is "not yet" or "over", and "over" may come at any moment. UIDs and openings of the window are
//! abstracted to "is it the one of now?"; a fact about an older one is kept, because only then a forgotten key is noticed.

use jiff::{SignedDuration, Timestamp};
use scheduler::gate::Gate;
use scheduler::rollout::{Step, next_step};
use scheduler::seen::{
    Act, Announced, DataVersion, Door, Facts, Goal, Life, Players, Pod, PodUid, Policy, Revision, Saved, Seen, Set,
    Settled, Verdict, World,
};

/// The revisions of the model. `M` is what a person wrote into the template by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Rev {
    A,
    B,
    C,
    M,
}

impl Rev {
    pub(crate) const ALL: [Self; 4] = [Self::A, Self::B, Self::C, Self::M];

    pub(crate) fn index(self) -> usize {
        match self {
            Self::A => 0,
            Self::B => 1,
            Self::C => 2,
            Self::M => 3,
        }
    }

    pub(crate) fn bit(self) -> u8 {
        1 << self.index()
    }

    fn real(self) -> Revision {
        Revision(u64::from(self.bit()))
    }

    /// Anything else was never in this world: the foreign template of a variant.
    fn of(real: Revision) -> Self {
        Self::ALL.into_iter().find(|rev| rev.real() == real).expect("next_step makes no revisions of its own")
    }
}

/// How a revision behaves once it is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Good,
    NeverReady,
    Bad,
    Unreadable,
    Flaky,
}

/// What is explored.
#[expect(clippy::struct_excessive_bools, reason = "a state space: each of them is one dimension of it")]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// By index of the revision.
    pub(crate) fate: [Fate; 4],
    /// The world format of each revision's Minecraft.
    pub(crate) format: [u8; 4],
    pub(crate) policy: Asking,
    /// The server confirms its saves.
    pub(crate) saves: bool,
    /// The init container takes cold copies.
    pub(crate) copies: bool,
    pub(crate) first_start: bool,
    /// How many things may go wrong, and how often the goal may change.
    pub(crate) faults: u8,
    pub(crate) changes: u8,
    /// A silent agent counts as a fault (the widest runs); else it is free at any time.
    pub(crate) agent_costs: bool,
    /// A rule of the design that is switched off, to see that it is needed.
    pub(crate) without: Option<Rule>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asking {
    Announce,
    EmptyFirst,
    Ignore,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// A decision counts for 30 seconds.
    NotAfter,
    /// A save counts whoever is on.
    SaveOutlivesPlayers,
    /// The template is written whole, foreign fields go.
    TemplateIsReplaced,
    /// The cold copy is taken when a revision first opens the volume, never again.
    OneColdCopy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum L {
    Init,
    Starting,
    Migrating,
    Up,
    Down,
    Refused,
    Stopping,
    Lost,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Judged {
    NotYet,
    Passed,
    Failed,
    Unreadable,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct P {
    pub(crate) rev: Rev,
    pub(crate) life: L,
    /// Its deadline is over.
    pub(crate) late: bool,
    pub(crate) judged: Judged,
}

impl P {
    pub(crate) fn is_starting(self) -> bool {
        matches!(self.life, L::Init | L::Starting | L::Migrating)
    }

    pub(crate) fn stopping(self) -> Self {
        Self { life: L::Stopping, late: false, ..self }
    }
}

/// A fact, with what it was true of.
#[expect(clippy::struct_excessive_bools, reason = "a state space: each of them is one dimension of it")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct F {
    /// For a roll-back, not for an update.
    pub(crate) back: bool,
    pub(crate) about: Rev,
    /// Still the pod, and the opening, of now.
    pub(crate) pod: bool,
    pub(crate) window: bool,
    /// The countdown is over; the save is fresh.
    pub(crate) good: bool,
    /// The save was confirmed.
    pub(crate) ok: bool,
}

/// What a step does, without the clock in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Deed {
    Create { rev: Rev, open: bool },
    Announce { back: bool, about: Rev, short: bool },
    Save { back: bool, about: Rev },
    Write(Rev),
    Commit { unasked: bool },
    Restore { rev: Rev, open: bool },
    MarkFailed(Rev),
    Order(Rev),
    RollBack { to: Rev, unasked: bool },
    Close(Rev),
}

impl Deed {
    pub(crate) fn of(step: &Step) -> Option<Self> {
        let act = |act: Act| match act {
            Act::Update { goal, .. } => (false, Rev::of(goal)),
            Act::RollBack { failed } => (true, Rev::of(failed)),
        };
        Some(match *step {
            Step::Create { revision, door } => Self::Create { rev: Rev::of(revision), open: door == Door::Open },
            Step::Announce { act: what, notice, .. } => {
                Self::Announce { back: act(what).0, about: act(what).1, short: notice < NOTICE }
            }
            Step::Save { act: what, .. } => Self::Save { back: act(what).0, about: act(what).1 },
            Step::WriteTemplate { revision, .. } => Self::Write(Rev::of(revision)),
            Step::Commit { unasked, .. } => Self::Commit { unasked },
            Step::Restore { revision, door } => Self::Restore { rev: Rev::of(revision), open: door == Door::Open },
            Step::MarkFailed { revision } => Self::MarkFailed(Rev::of(revision)),
            Step::OrderRestore { to } => Self::Order(Rev::of(to)),
            Step::RollBack { to, unasked, .. } => Self::RollBack { to: Rev::of(to), unasked },
            Step::Close { settled } => Self::Close(Rev::of(settled)),
            Step::Stage | Step::Settled | Step::Wait(_) => return None,
        })
    }

    /// Done at the agent, bound to a pod; everything else is a write to the `StatefulSet`.
    pub(crate) fn at_the_agent(self) -> bool {
        matches!(self, Self::Announce { .. } | Self::Save { .. })
    }

    /// Carries a `not_after`.
    pub(crate) fn expires(self) -> bool {
        self.at_the_agent() || matches!(self, Self::Write(_) | Self::Commit { .. } | Self::RollBack { .. })
    }
}

/// A step in the hand of somebody who was asleep: the second leader, a stale cache, a request that is still on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Held {
    pub(crate) deed: Deed,
    /// Set and pod are still what was seen, and `not_after` is not over.
    pub(crate) set: bool,
    pub(crate) pod: bool,
    pub(crate) in_time: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Agent {
    Answers,
    Silent,
    SilentBeyondPatience,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum WindowNow {
    Shut,
    Open,
    /// The patience with players is over.
    OpenForLong,
    /// What has begun may end (`latestStart`).
    Ending,
    TooLateToBegin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ByUs {
    Nothing,
    Update,
    RollBack,
}

/// One state of the world.
#[expect(clippy::struct_excessive_bools, reason = "a state space: each of them is one dimension of it")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) faults: u8,
    pub(crate) changes: u8,
    pub(crate) goal: Rev,
    // The StatefulSet.
    pub(crate) exists: bool,
    pub(crate) template: Rev,
    pub(crate) update: Rev,
    pub(crate) current: Rev,
    pub(crate) open: bool,
    pub(crate) asleep: bool,
    pub(crate) foreign: bool,
    // Pod and people.
    pub(crate) pod: Option<P>,
    pub(crate) players: bool,
    pub(crate) agent: Agent,
    pub(crate) window: WindowNow,
    // Facts.
    pub(crate) settled: Option<Rev>,
    pub(crate) failed: u8,
    pub(crate) announced: Option<F>,
    pub(crate) saved: Option<F>,
    // The volume.
    pub(crate) floor: u8,
    pub(crate) mixed: bool,
    pub(crate) last: Option<Rev>,
    pub(crate) backup: u8,
    pub(crate) order: Option<Rev>,
    pub(crate) played: bool,
    pub(crate) held: Option<Held>,
    // Ghosts: what the checker remembers and nobody in the world does.
    pub(crate) expect: Rev,
    pub(crate) restarted: u8,
    pub(crate) by_us: ByUs,
    pub(crate) tampered: bool,
    pub(crate) raced: bool,
}

const NOTICE: SignedDuration = SignedDuration::from_mins(5);

/// Minutes from the instant at which `next_step` is always asked.
fn at(minutes: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + 60 * minutes).expect("near 1970")
}

impl State {
    pub(crate) fn start(s: &Scenario) -> Self {
        let settled = State {
            faults: s.faults,
            changes: s.changes,
            goal: Rev::A,
            exists: true,
            template: Rev::A,
            update: Rev::A,
            current: Rev::A,
            open: false,
            asleep: false,
            foreign: false,
            pod: Some(P { rev: Rev::A, life: L::Up, late: false, judged: Judged::Passed }),
            players: false,
            agent: Agent::Answers,
            window: WindowNow::Shut,
            settled: Some(Rev::A),
            failed: 0,
            announced: None,
            saved: None,
            floor: 1,
            mixed: false,
            last: Some(Rev::A),
            backup: 0,
            order: None,
            played: false,
            held: None,
            expect: Rev::A,
            restarted: 0,
            by_us: ByUs::Nothing,
            tampered: false,
            raced: false,
        };
        if s.first_start {
            return State { exists: false, pod: None, settled: None, last: None, floor: 0, ..settled };
        }
        settled
    }

    /// What `next_step` answers here.
    pub(crate) fn answer(&self, s: &Scenario) -> Step {
        next_step(&self.goal(s), &self.seen(s), self.gate(), at(0))
    }

    fn goal(&self, s: &Scenario) -> Goal {
        let deadline = SignedDuration::from_mins(if self.window == WindowNow::OpenForLong { 10 } else { 45 });
        Goal {
            revision: self.goal.real(),
            world: format_of(s, self.goal),
            policy: match s.policy {
                Asking::Announce => Policy::Announce,
                Asking::EmptyFirst => Policy::WaitForEmpty { deadline },
                Asking::Ignore => Policy::Ignore,
            },
            notice: NOTICE,
            empty_notice: SignedDuration::from_secs(10),
            patience: SignedDuration::from_mins(5),
        }
    }

    fn gate(&self) -> Gate {
        let until = match self.window {
            WindowNow::Shut => return Gate::Shut { opens: Some(at(600)) },
            WindowNow::Ending => {
                return Gate::Ending { opened_at: at(-30), until: at(90), opens: Some(at(600)) };
            }
            // Enough for the short countdown: a long one that cannot end is not begun.
            WindowNow::TooLateToBegin => at(3),
            WindowNow::Open | WindowNow::OpenForLong => at(90),
        };
        Gate::Open { opened_at: at(-30), until }
    }

    fn seen(&self, s: &Scenario) -> Seen {
        Seen {
            set: self.exists.then(|| Set {
                template: if self.foreign { Revision(1000) } else { self.template.real() },
                current: self.current.real(),
                update: self.update.real(),
                observed: self.update == self.template,
                door: if self.open { Door::Open } else { Door::Closed },
                asleep: self.asleep,
            }),
            pod: self.pod.map(|p| seen_pod(s, p)),
            players: match self.agent {
                Agent::Answers if self.players => Players::Some(3),
                Agent::Answers => Players::Nobody,
                Agent::Silent => Players::Unknown { since: at(-1) },
                Agent::SilentBeyondPatience => Players::Unknown { since: at(-60) },
            },
            verdict: match self.pod.map_or(Judged::NotYet, |p| p.judged) {
                Judged::NotYet => Verdict::Pending { until: at(5) },
                Judged::Passed => Verdict::Passed,
                Judged::Failed => Verdict::Failed,
                Judged::Unreadable => Verdict::Unproven,
            },
            world: World {
                floor: DataVersion(self.floor.into()),
                whole: !self.mixed,
                backup: (self.backup > 0).then(|| DataVersion(self.backup.into())),
                played_since: self.played,
                restore_ordered: self.order.is_some() && self.order == self.settled,
            },
            staged: true,
            facts: self.facts(s),
        }
    }

    fn facts(&self, s: &Scenario) -> Facts {
        let act = |f: F| {
            if f.back {
                return Act::RollBack { failed: f.about.real() };
            }
            let a_week_ago = -30 - 7 * 24 * 60;
            Act::Update { goal: f.about.real(), window_opened_at: at(if f.window { -30 } else { a_week_ago }) }
        };
        let forgotten = s.without == Some(Rule::SaveOutlivesPlayers) && self.players;
        Facts {
            settled: self.settled.map(|rev| Settled { revision: rev.real(), world: format_of(s, rev) }),
            failed: Rev::ALL.into_iter().filter(|rev| self.failed & rev.bit() > 0).map(Rev::real).collect(),
            announced: self.announced.map(|f| Announced {
                act: act(f),
                pod: uid(f.pod),
                ends: at(if f.good { -15 } else { 4 }),
            }),
            saved: self.saved.filter(|_| !forgotten).map(|f| Saved {
                act: act(f),
                pod: uid(f.pod),
                at: at(if f.good { -1 } else { -60 }),
                confirmed: f.ok,
            }),
        }
    }

    /// The pod, unless it is on its way out.
    pub(crate) fn busy(&self) -> Option<P> {
        self.pod.filter(|p| !matches!(p.life, L::Stopping | L::Lost))
    }

    /// The pod is gone, for whatever reason: what was true of it is true of no pod of now.
    pub(crate) fn pod_gone(&mut self) {
        self.pod = None;
        self.players = false;
        self.agent = Agent::Answers;
        for fact in [&mut self.announced, &mut self.saved].into_iter().flatten() {
            fact.pod = false;
        }
        if let Some(held) = &mut self.held {
            held.pod = false;
        }
        self.set_written(); // the controller writes status
    }

    /// A new resourceVersion.
    pub(crate) fn set_written(&mut self) {
        if let Some(held) = &mut self.held {
            held.set = false;
        }
    }

    /// Somebody else had a hand in it: what we restarted before counts no more.
    pub(crate) fn third_party(&mut self) {
        self.restarted = 0;
        self.by_us = ByUs::Nothing;
        self.raced = false;
    }

    /// Folds together what nobody can tell apart: a sleeper who can only be refused, a dead fact's clock, the verdict on a
    /// proven pod.
    pub(crate) fn folded(mut self, s: &Scenario) -> Self {
        if let Some(held) = self.held {
            let late = held.deed.expires() && !held.in_time && s.without != Some(Rule::NotAfter);
            if !held.set || (held.deed.at_the_agent() && !held.pod) || late {
                self.held = None;
            }
        }
        for fact in [&mut self.announced, &mut self.saved].into_iter().flatten() {
            // Dead facts are kept at their most dangerous, so that a forgotten key is noticed.
            if !fact.pod || !(fact.window || fact.back) {
                (fact.good, fact.ok) = (true, true);
            }
        }
        if let Some(pod) = &mut self.pod {
            if Some(pod.rev) == self.settled {
                pod.judged = Judged::Passed;
            }
            if !pod.is_starting() && pod.life != L::Lost {
                pod.late = false;
            }
        }
        self.players &= self.pod.is_some();
        self
    }
}

fn format_of(s: &Scenario, rev: Rev) -> DataVersion {
    DataVersion(s.format[rev.index()].into())
}

fn uid(of_now: bool) -> PodUid {
    PodUid(if of_now { 7 } else { 6 })
}

fn seen_pod(s: &Scenario, p: P) -> Pod {
    let life = match p.life {
        L::Init | L::Starting | L::Migrating => Life::Starting { gives_up_at: at(if p.late { -1 } else { 10 }) },
        L::Up => Life::Up,
        L::Down => Life::Down,
        L::Refused => Life::Refused,
        L::Stopping => Life::Stopping { lost_at: at(5) },
        L::Lost => Life::Stopping { lost_at: at(if p.late { -5 } else { 5 }) },
    };
    Pod { uid: uid(true), revision: p.rev.real(), world: format_of(s, p.rev), life }
}
