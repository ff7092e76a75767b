//! Pure. Converts a state of the model into the inputs of `next_step`.

use jiff::{SignedDuration, Timestamp};
use scheduler::maintenance::{Gate, Windows};
use scheduler::observation::{
    AgentMemory, Announced, DataVersion, Disruption, EvictionPolicy, Goal, ImagesOnNode, NodeState, Observation,
    ObservedDrain, Partition, PlayerPolicy, Players, PodPhase, PodUid, PodView, RecordedFacts, RestartDue,
    RestartStarted, Revision, SavedWorld, StableSet, StatefulSetView, Verification, WorldState,
};
use scheduler::rollout::{Step, is_blocked_by_crash_loop, needs_admin, next_step, opportunity};

use crate::action::{F, For};
use crate::backups::{OfflineBackup, RestoreChoice};
use crate::state::{Agent, Asking, Clock, Judged, L, Mark, P, Rev, Rule, Scenario, State, WindowNow};

pub(crate) const NOTICE: SignedDuration = SignedDuration::from_mins(5);
const EMPTY_NOTICE: SignedDuration = SignedDuration::from_secs(10);

/// How long the server must have been empty.
const EMPTY_FOR: SignedDuration = SignedDuration::from_mins(10);

/// When the next window opens, in minutes.
const OPENS: i64 = 300;

/// Minutes from the instant at which `next_step` is always called.
fn at(minutes: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + 60 * minutes).expect("an instant near 1970 is valid")
}

/// The instant of the scheduled restart.
pub(crate) fn due() -> Timestamp {
    at(-3)
}

/// The instant at which a user requested a backup's restore.
pub(crate) fn requested_at() -> Timestamp {
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
    pub(crate) fn decide(&self, s: &Scenario) -> Step {
        let (goal, observation, gate) = (self.goal(s), self.observation(s), self.gate());
        // No user requests an update here: all updates begin by themselves.
        let is_left_to_admin = needs_admin(&observation) && self.user_request == RestoreChoice::Requested;
        let is_delayed = is_left_to_admin || is_blocked_by_crash_loop(&goal, &observation, gate);
        let gate = if is_delayed { Gate::Shut { opens: None } } else { gate };
        let without = Windows { windows: Vec::new(), enabled: true, blackouts: Vec::new() };
        let found = opportunity(&goal, &observation, gate, &without, EMPTY_FOR, at(0))
            .filter(|_| s.opportunistic && !self.is_user_restore_due());
        match found {
            Some(found) => next_step(&Goal { policy: found.policy, ..goal }, &observation, found.gate, at(0)),
            None => next_step(&goal, &observation, gate, at(0)),
        }
    }

    fn goal(&self, s: &Scenario) -> Goal {
        Goal {
            revision: self.goal.to_revision(),
            world: format_of(s, self.goal),
            policy: self.policy(s),
            notice: NOTICE,
            empty_notice: EMPTY_NOTICE,
            stop_timeout: SignedDuration::from_mins(5),
            restart: self.restart(s),
            eviction: if s.drains { EvictionPolicy::Announced } else { EvictionPolicy::Always },
        }
    }

    /// A restart on a user's request is not also a scheduled one.
    fn restart(&self, s: &Scenario) -> Option<RestartDue> {
        let (due, yields_until) = match self.clock {
            _ if self.is_user_restore_due() => (requested_at(), requested_at()),
            Clock::Due if s.one_night => (due(), at(OPENS)),
            Clock::Due => (due(), due()),
            Clock::Before | Clock::Over => return None,
        };
        Some(RestartDue { due, until: at(60), policy: self.policy(s), only_empty: false, yields_until })
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

    fn observation(&self, s: &Scenario) -> Observation {
        Observation {
            stateful_set: self.exists.then(|| StatefulSetView {
                template: if self.foreign { Revision(1000) } else { self.template.to_revision() },
                current: self.current.to_revision(),
                update: self.update.to_revision(),
                observed: self.update == self.template,
                partition: if self.open { Partition::Open } else { Partition::Closed },
                scaled_to_zero: self.scaled_to_zero,
            }),
            pod: self.pod.map(|p| pod_view(s, p)),
            players: match self.agent {
                Agent::Answers if self.players => Players::Some(3),
                Agent::Answers => Players::Nobody,
                Agent::Silent => Players::Unknown { since: at(-1) },
                Agent::SilentBeyondTimeout => Players::Unknown { since: at(-60) },
            },
            // Long enough to be over for the same time as the window is open. It is still another opening, and facts do not carry over.
            empty_since: (!self.players).then(|| at(if self.empty { -40 } else { -1 })),
            verification: match self.pod.map_or(Judged::Pending, |p| p.verification) {
                Judged::Pending => Verification::Pending { until: at(5) },
                Judged::Passed => Verification::Passed,
                Judged::Failed => Verification::Failed,
                Judged::Unreadable => Verification::Inconclusive,
            },
            world: WorldState {
                floor: DataVersion(self.floor.into()),
                whole: !self.mixed,
                backup: self.rollback_backup(s).map(|backup| DataVersion(backup.format.into())),
                played_since: self.has_played,
                restore_requested: match self.rollback_pair(s) {
                    Some(step) => self.restore_request.is_some_and(|restore_request| {
                        let is_careful = restore_request.unless_played || !self.may_have_played();
                        (restore_request.to, restore_request.failed) == step && is_careful
                    }),
                    None => true,
                },
            },
            node: if self.mark == Mark::Set { NodeState::Draining } else { NodeState::NotDraining },
            staged: true,
            images: if self.pod.is_some() { self.images } else { ImagesOnNode::Present },
            data_restore_requested: true,
            user_restore_requested: self.is_user_restore_confirmed(),
            crash_loop: self.crash_loop,
            agent_memory: match self.agent {
                Agent::Answers if self.forgot => AgentMemory::Forgotten,
                Agent::Answers | Agent::Silent | Agent::SilentBeyondTimeout => AgentMemory::Known,
            },
            facts: self.facts(s),
        }
    }

    fn facts(&self, s: &Scenario) -> RecordedFacts {
        let disruption = |f: F| {
            let a_week_ago = -30 - 7 * 24 * 60;
            match f.disruption {
                For::Update => {
                    let window_opened_at = match (f.window, f.of_restart) {
                        (true, true) => due(),
                        (true, false) => at(-30),
                        (false, _) => at(a_week_ago),
                    };
                    Disruption::Update { goal: f.revision.to_revision(), window_opened_at }
                }
                For::RollBack => Disruption::RollBack { failed: f.revision.to_revision() },
                For::Restart => Disruption::Restart { due: due() },
                For::UserRestore => Disruption::Restart { due: requested_at() },
                For::Drain => Disruption::Drain { since: marked_since() },
            }
        };
        let forgotten = s.without == Some(Rule::SaveOutlivesPlayers) && self.players;
        RecordedFacts {
            settled: self.stable.map(|rev| StableSet { revision: rev.to_revision(), world: format_of(s, rev) }),
            failed: Rev::ALL.into_iter().filter(|rev| self.failed & rev.bit() > 0).map(Rev::to_revision).collect(),
            announced: self.announced.map(|f| Announced {
                act: disruption(f),
                pod: uid(f.pod),
                ends: match (f.good, f.is_confirmed, f.is_short) {
                    (true, true, _) => at(-2),
                    (true, false, _) => at(-15),
                    (false, _, true) => at(0) + EMPTY_NOTICE,
                    (false, _, false) => at(4),
                },
            }),
            saved: self.saved.filter(|_| !forgotten).map(|f| SavedWorld {
                act: disruption(f),
                pod: uid(f.pod),
                at: at(if f.good { -1 } else { -60 }),
                confirmed: f.is_confirmed,
            }),
            restarted: self.recreated.map(|again| RestartStarted {
                due: if again.for_backup { requested_at() } else { due() },
                pod: uid(again.is_current_pod),
            }),
            draining: self
                .draining
                .map(|is_current_pod| ObservedDrain { since: marked_since(), pod: uid(is_current_pod) }),
            // No decision depends on it. It only limits how long a start may take.
            backup_estimate: None,
        }
    }

    /// The stable revision and the running one, between which a restore request applies: only if they differ.
    fn rollback_pair(&self, s: &Scenario) -> Option<(Rev, Rev)> {
        let (to, failed) = (self.stable?, self.pod?.rev);
        (s.backups && to != failed).then_some((to, failed))
    }

    /// The backup that was taken before the running revision opened the worlds, if the stable revision can open it.
    fn rollback_backup(&self, s: &Scenario) -> Option<OfflineBackup> {
        let (to, failed) = self.rollback_pair(s)?;
        self.backup.filter(|backup| backup.before == failed && backup.format <= s.format[to.index()])
    }
}

fn format_of(s: &Scenario, rev: Rev) -> DataVersion {
    DataVersion(s.format[rev.index()].into())
}

fn uid(is_current_pod: bool) -> PodUid {
    PodUid(if is_current_pod { 7 } else { 6 })
}

fn pod_view(s: &Scenario, p: P) -> PodView {
    let phase = match p.phase {
        L::Init | L::Starting | L::Migrating => PodPhase::Starting { deadline: at(if p.late { -1 } else { 10 }) },
        L::Pending => PodPhase::Pending,
        L::Up => PodPhase::Up,
        L::Down => PodPhase::Down,
        L::Refused => PodPhase::Refused,
        L::Stopping => PodPhase::Stopping { overdue_at: at(5) },
        L::Lost => PodPhase::Stopping { overdue_at: at(if p.late { -5 } else { 5 }) },
    };
    PodView { uid: uid(true), revision: p.rev.to_revision(), world: format_of(s, p.rev), phase }
}
