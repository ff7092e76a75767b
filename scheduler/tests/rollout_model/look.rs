//! Pure. Converts a state of the model into the inputs of `next_step`.

use jiff::{SignedDuration, Timestamp};
use scheduler::maintenance::{Gate, Windows};
use scheduler::observation::{
    AgentMemory, Announced, DataVersion, Disruption, DrainSeen, EvictionSeen, Goal, ImagesOnNode, NodeState,
    Observation, Partition, PlayerPolicy, Players, PodPhase, PodUid, PodView, RecordedFacts, RestartDue,
    RestartStarted, Revision, SavedWorld, StableSet, StatefulSetView, Verification, WorldState,
};
use scheduler::rollout::{Step, is_held_by_crashes, is_left_to_a_person, next_step, opportunity};

use crate::copies::{ColdCopy, Wish};
use crate::deed::{F, For};
use crate::world::{Agent, Asking, Clock, Judged, L, Mark, P, Rev, Rule, Scenario, State, WindowNow};

pub(crate) const NOTICE: SignedDuration = SignedDuration::from_mins(5);
const EMPTY_NOTICE: SignedDuration = SignedDuration::from_secs(10);

/// How long the server must have been empty.
const EMPTY_FOR: SignedDuration = SignedDuration::from_mins(10);

/// When the next window opens, in minutes.
const OPENS: i64 = 300;

/// Minutes from the instant at which `next_step` is always called.
fn at(minutes: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + 60 * minutes).expect("near 1970")
}

/// The instant of the scheduled restart.
pub(crate) fn due() -> Timestamp {
    at(-3)
}

/// The instant at which a user requested a backup's restore.
pub(crate) fn asked_at() -> Timestamp {
    at(-4)
}

/// Whether the rest is no longer than the countdown of an empty server.
pub(crate) fn is_short(ends: Timestamp) -> bool {
    ends <= at(0) + EMPTY_NOTICE
}

/// When the mark of the node was first observed: longer ago than the short limit for waiting on players, not than the long one.
fn marked_since() -> Timestamp {
    at(-20)
}

impl State {
    /// The answer of `next_step` in this state.
    pub(crate) fn answer(&self, s: &Scenario) -> Step {
        let (goal, seen, gate) = (self.goal(s), self.seen(s), self.gate());
        // No user requests an update here: all updates begin by themselves.
        let may_go_back = is_left_to_a_person(&seen) && self.wish == Wish::Asked;
        let is_held = may_go_back || is_held_by_crashes(&goal, &seen, gate);
        let gate = if is_held { Gate::Shut { opens: None } } else { gate };
        let without = Windows { windows: Vec::new(), enabled: true, blackouts: Vec::new() };
        let found = opportunity(&goal, &seen, gate, &without, EMPTY_FOR, at(0))
            .filter(|_| s.opportunistic && !self.copy_is_due());
        match found {
            Some(found) => next_step(&Goal { policy: found.policy, ..goal }, &seen, found.gate, at(0)),
            None => next_step(&goal, &seen, gate, at(0)),
        }
    }

    fn goal(&self, s: &Scenario) -> Goal {
        Goal {
            revision: self.goal.real(),
            world: format_of(s, self.goal),
            policy: self.policy(s),
            notice: NOTICE,
            empty_notice: EMPTY_NOTICE,
            patience: SignedDuration::from_mins(5),
            restart: self.restart(s),
            eviction: if s.drains { EvictionSeen::Announced } else { EvictionSeen::Always },
        }
    }

    /// A restart on a user's request is not also a scheduled one.
    fn restart(&self, s: &Scenario) -> Option<RestartDue> {
        let (due, gives_way_until) = match self.clock {
            _ if self.copy_is_due() => (asked_at(), asked_at()),
            Clock::Due if s.one_night => (due(), at(OPENS)),
            Clock::Due => (due(), due()),
            Clock::Before | Clock::Over => return None,
        };
        Some(RestartDue { due, until: at(60), policy: self.policy(s), only_empty: false, gives_way_until })
    }

    fn policy(&self, s: &Scenario) -> PlayerPolicy {
        let deadline = SignedDuration::from_mins(if self.window == WindowNow::OpenForLong { 10 } else { 45 });
        match s.policy {
            Asking::Announce => PlayerPolicy::Announce,
            Asking::EmptyFirst => PlayerPolicy::WaitForEmpty { deadline },
            Asking::Ignore => PlayerPolicy::Ignore,
        }
    }

    fn gate(&self) -> Gate {
        let until = match self.window {
            WindowNow::Shut => return Gate::Shut { opens: Some(at(OPENS)) },
            WindowNow::Ending => {
                return Gate::NoNewStarts { opened_at: at(-30), until: at(90), opens: Some(at(OPENS)) };
            }
            // Enough for the short countdown. A long one that cannot end is not begun.
            WindowNow::TooLateToBegin => at(3),
            WindowNow::Open | WindowNow::OpenForLong => at(90),
        };
        Gate::Open { opened_at: at(-30), until }
    }

    fn seen(&self, s: &Scenario) -> Observation {
        Observation {
            set: self.exists.then(|| StatefulSetView {
                template: if self.foreign { Revision(1000) } else { self.template.real() },
                current: self.current.real(),
                update: self.update.real(),
                observed: self.update == self.template,
                door: if self.open { Partition::Open } else { Partition::Closed },
                asleep: self.asleep,
            }),
            pod: self.pod.map(|p| seen_pod(s, p)),
            players: match self.agent {
                Agent::Answers if self.players => Players::Some(3),
                Agent::Answers => Players::Nobody,
                Agent::Silent => Players::Unknown { since: at(-1) },
                Agent::SilentBeyondPatience => Players::Unknown { since: at(-60) },
            },
            // Long enough to be over for the same time as the window is open. It is still another opening, and facts do not carry over.
            empty_since: (!self.players).then(|| at(if self.empty { -40 } else { -1 })),
            verdict: match self.pod.map_or(Judged::NotYet, |p| p.judged) {
                Judged::NotYet => Verification::Pending { until: at(5) },
                Judged::Passed => Verification::Passed,
                Judged::Failed => Verification::Failed,
                Judged::Unreadable => Verification::Unproven,
            },
            world: WorldState {
                floor: DataVersion(self.floor.into()),
                whole: !self.mixed,
                backup: self.copy_of_this_step(s).map(|copy| DataVersion(copy.format.into())),
                played_since: self.played,
                restore_ordered: match self.step_back(s) {
                    Some(step) => self.order.is_some_and(|order| {
                        let is_careful = order.unless_played || !self.may_have_played();
                        (order.to, order.failed) == step && is_careful
                    }),
                    None => true,
                },
            },
            node: if self.mark == Mark::There { NodeState::Leaves } else { NodeState::Stays },
            staged: true,
            images: if self.pod.is_some() { self.images } else { ImagesOnNode::Here },
            data_ordered: true,
            copy_asked: self.copy_is_asked(),
            crash_loop: self.crash_loop,
            agent_memory: match self.agent {
                Agent::Answers if self.forgot => AgentMemory::Lost,
                Agent::Answers | Agent::Silent | Agent::SilentBeyondPatience => AgentMemory::Kept,
            },
            facts: self.facts(s),
        }
    }

    fn facts(&self, s: &Scenario) -> RecordedFacts {
        let act = |f: F| {
            let a_week_ago = -30 - 7 * 24 * 60;
            match f.act {
                For::Update => {
                    let window_opened_at = match (f.window, f.clock) {
                        (true, true) => due(),
                        (true, false) => at(-30),
                        (false, _) => at(a_week_ago),
                    };
                    Disruption::Update { goal: f.about.real(), window_opened_at }
                }
                For::RollBack => Disruption::RollBack { failed: f.about.real() },
                For::Restart => Disruption::Restart { due: due() },
                For::Copy => Disruption::Restart { due: asked_at() },
                For::Drain => Disruption::Drain { since: marked_since() },
            }
        };
        let forgotten = s.without == Some(Rule::SaveOutlivesPlayers) && self.players;
        RecordedFacts {
            settled: self.settled.map(|rev| StableSet { revision: rev.real(), world: format_of(s, rev) }),
            failed: Rev::ALL.into_iter().filter(|rev| self.failed & rev.bit() > 0).map(Rev::real).collect(),
            announced: self.announced.map(|f| Announced {
                act: act(f),
                pod: uid(f.pod),
                ends: match (f.good, f.ok, f.short) {
                    (true, true, _) => at(-2),
                    (true, false, _) => at(-15),
                    (false, _, true) => at(0) + EMPTY_NOTICE,
                    (false, _, false) => at(4),
                },
            }),
            saved: self.saved.filter(|_| !forgotten).map(|f| SavedWorld {
                act: act(f),
                pod: uid(f.pod),
                at: at(if f.good { -1 } else { -60 }),
                confirmed: f.ok,
            }),
            restarted: self.again.map(|again| RestartStarted {
                due: if again.copy { asked_at() } else { due() },
                pod: uid(again.of_now),
            }),
            draining: self.draining.map(|of_now| DrainSeen { since: marked_since(), pod: uid(of_now) }),
            // No decision depends on it. It only limits how long a start may take.
            copying: None,
        }
    }

    /// The stable revision and the running one, between which a restore request applies: only if they differ.
    fn step_back(&self, s: &Scenario) -> Option<(Rev, Rev)> {
        let (to, failed) = (self.settled?, self.pod?.rev);
        (s.copies && to != failed).then_some((to, failed))
    }

    /// The backup that was taken before the running revision opened the worlds, if the stable revision can open it.
    fn copy_of_this_step(&self, s: &Scenario) -> Option<ColdCopy> {
        let (to, failed) = self.step_back(s)?;
        self.copy.filter(|copy| copy.before == failed && copy.format <= s.format[to.index()])
    }
}

fn format_of(s: &Scenario, rev: Rev) -> DataVersion {
    DataVersion(s.format[rev.index()].into())
}

fn uid(of_now: bool) -> PodUid {
    PodUid(if of_now { 7 } else { 6 })
}

fn seen_pod(s: &Scenario, p: P) -> PodView {
    let life = match p.life {
        L::Init | L::Starting | L::Migrating => PodPhase::Starting { gives_up_at: at(if p.late { -1 } else { 10 }) },
        L::Up => PodPhase::Up,
        L::Down => PodPhase::Down,
        L::Refused => PodPhase::Refused,
        L::Stopping => PodPhase::Stopping { lost_at: at(5) },
        L::Lost => PodPhase::Stopping { lost_at: at(if p.late { -5 } else { 5 }) },
    };
    PodView { uid: uid(true), revision: p.rev.real(), world: format_of(s, p.rev), life }
}
