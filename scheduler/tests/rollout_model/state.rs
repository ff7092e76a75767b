//! Pure. Defines the state of the model, and which of its states are equivalent.
//!
//! Time is abstracted: a clock is "not yet" or "over", and "over" may happen at any moment. UIDs and openings of the window are abstracted to "is
//! it the current one?". A fact about an earlier one is kept, because only then a forgotten key is noticed.

use scheduler::observation::{ImagesOnNode, Revision};

use crate::action::{Again, DelayedStep, F, For};
use crate::backups::{OfflineBackup, RestoreChoice, RollbackRequest};

/// The revisions of the model. `M` is a template that a user wrote directly.
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

    pub(crate) fn to_revision(self) -> Revision {
        Revision(u64::from(self.bit()))
    }

    /// Any other revision never existed in this model: the foreign template of a variant.
    pub(crate) fn from_revision(real: Revision) -> Self {
        Self::ALL.into_iter().find(|rev| rev.to_revision() == real).expect("next_step invents no revisions")
    }
}

/// How a revision behaves once it is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SetBehaviour {
    Good,
    NeverReady,
    Bad,
    Unreadable,
    Flaky,
}

/// A scenario to explore.
#[expect(clippy::struct_excessive_bools, reason = "each flag is one dimension of the state space")]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// By index of the revision.
    pub(crate) behaviour: [SetBehaviour; 4],
    /// The world format of each revision's Minecraft.
    pub(crate) format: [u8; 4],
    pub(crate) policy: Asking,
    /// The server confirms its saves. Otherwise it refuses them until somebody helps, because its disk is full.
    pub(crate) saves: bool,
    /// The init container takes offline backups.
    pub(crate) backups: bool,
    pub(crate) first_start: bool,
    /// A scheduled restart becomes due, once.
    pub(crate) restarts: bool,
    /// The next window opens in the same night.
    pub(crate) one_night: bool,
    /// Updates may begin outside of windows where no player minds.
    pub(crate) opportunistic: bool,
    /// The node is marked for draining, once, and its pods may be evicted only after players were warned.
    pub(crate) drains: bool,
    /// The goal runs an image that the node of the server has to pull.
    pub(crate) pulls: bool,
    /// A user requests the worlds of a backup with the oldest format, once.
    pub(crate) requests_restore: bool,
    /// The process of the stable revision may end repeatedly.
    pub(crate) loops: bool,
    /// The cluster may not run a new pod at first: no node, volume or image.
    pub(crate) waits: bool,
    /// How many faults may occur, and how often the goal may change.
    pub(crate) faults: u8,
    pub(crate) changes: u8,
    /// A silent agent counts as a fault (in the widest runs). Otherwise it may be silent at any time.
    pub(crate) agent_costs: bool,
    /// A rule of the design that is switched off, to show that it is needed.
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
    /// A decision is valid for 45 seconds after the observation.
    NotAfter,
    /// A save counts whoever is online.
    SaveOutlivesPlayers,
    /// The template is written whole, and foreign fields are removed.
    TemplateIsReplaced,
    /// The offline backup is taken when a revision first opens the volume, never again.
    OneOfflineBackup,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum L {
    Pending,
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
    Pending,
    Passed,
    Failed,
    Unreadable,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct P {
    pub(crate) rev: Rev,
    pub(crate) phase: L,
    /// Its deadline is over.
    pub(crate) late: bool,
    pub(crate) verification: Judged,
}

impl P {
    pub(crate) fn is_starting(self) -> bool {
        matches!(self.phase, L::Init | L::Starting | L::Migrating)
    }

    pub(crate) fn stopping(self) -> Self {
        Self { phase: L::Stopping, late: false, ..self }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Agent {
    Answers,
    Silent,
    SilentBeyondTimeout,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum WindowNow {
    Shut,
    Open,
    /// The limit for waiting on players is over.
    OpenForLong,
    /// A change that has begun may finish (`latestStart`).
    Ending,
    TooLateToBegin,
}

/// The instant of a scheduled restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Clock {
    /// Not reached yet, if the scenario includes restarts.
    Before,
    /// It was reached, and the current server has not started since.
    Due,
    /// The server has started since, or it is too late.
    Over,
}

/// The mark on the node of the first pod. Every later pod is on another node, or starts after the mark is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Mark {
    /// Not set yet, if the scenario includes drains.
    Before,
    /// The node of the current pod is to be drained.
    Set,
    /// The mark was removed, or the pod is elsewhere.
    Over,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ByUs {
    Nothing,
    Update,
    RollBack,
}

/// One state of the model.
#[expect(clippy::struct_excessive_bools, reason = "each flag is one dimension of the state space")]
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
    pub(crate) scaled_to_zero: bool,
    pub(crate) foreign: bool,
    // Pod, players and agent.
    pub(crate) pod: Option<P>,
    pub(crate) players: bool,
    /// The server has been empty for as long as it requires.
    pub(crate) empty: bool,
    pub(crate) agent: Agent,
    pub(crate) window: WindowNow,
    pub(crate) clock: Clock,
    pub(crate) mark: Mark,
    pub(crate) user_request: RestoreChoice,
    /// The images of the current goal, on the node of the current pod, as the operator knows.
    pub(crate) images: ImagesOnNode,
    /// The process of the stable revision, in the current pod, ends repeatedly.
    pub(crate) crash_loop: bool,
    /// The current agent does not know the running countdown, because the one that received it has restarted.
    pub(crate) forgot: bool,
    /// A save would be refused.
    pub(crate) refuses: bool,
    // Facts.
    pub(crate) stable: Option<Rev>,
    pub(crate) failed: u8,
    pub(crate) announced: Option<F>,
    pub(crate) saved: Option<F>,
    /// The current pod, or another one, was deleted for a restart.
    pub(crate) recreated: Option<Again>,
    /// The mark was recorded, for the node of the current pod, or of another pod.
    pub(crate) draining: Option<bool>,
    // The volume.
    pub(crate) floor: u8,
    pub(crate) mixed: bool,
    pub(crate) last: Option<Rev>,
    /// The newest offline backup of the worlds.
    pub(crate) backup: Option<OfflineBackup>,
    pub(crate) restore_request: Option<RollbackRequest>,
    /// A user's request is mounted, for this revision.
    pub(crate) user_restore_for: Option<Rev>,
    /// The volume's record shows that it was executed.
    pub(crate) user_restore_done: bool,
    /// Players were online since that backup.
    pub(crate) has_played: bool,
    pub(crate) delayed: Option<DelayedStep>,
    // Ghost state: known only to the checker.
    pub(crate) expect: Rev,
    pub(crate) restarted: u8,
    pub(crate) by_operator: ByUs,
    pub(crate) tampered: bool,
    pub(crate) raced: bool,
}

impl State {
    pub(crate) fn start(s: &Scenario) -> Self {
        let stable = State {
            faults: s.faults,
            changes: s.changes,
            goal: Rev::A,
            exists: true,
            template: Rev::A,
            update: Rev::A,
            current: Rev::A,
            open: false,
            scaled_to_zero: false,
            foreign: false,
            pod: Some(P { rev: Rev::A, phase: L::Up, late: false, verification: Judged::Passed }),
            players: false,
            empty: false,
            agent: Agent::Answers,
            window: WindowNow::Shut,
            clock: if s.restarts { Clock::Before } else { Clock::Over },
            mark: if s.drains { Mark::Before } else { Mark::Over },
            user_request: if s.requests_restore { RestoreChoice::Before } else { RestoreChoice::Over },
            images: Self::unchecked(s),
            crash_loop: false,
            forgot: false,
            refuses: !s.saves,
            stable: Some(Rev::A),
            failed: 0,
            announced: None,
            saved: None,
            recreated: None,
            draining: None,
            floor: 1,
            mixed: false,
            last: Some(Rev::A),
            backup: None,
            restore_request: None,
            user_restore_for: None,
            user_restore_done: false,
            has_played: false,
            delayed: None,
            expect: Rev::A,
            restarted: 0,
            by_operator: ByUs::Nothing,
            tampered: false,
            raced: false,
        };
        if s.first_start {
            return State { exists: false, pod: None, stable: None, last: None, floor: 0, ..stable };
        }
        stable
    }

    /// The pod, unless it is being deleted.
    pub(crate) fn active_pod(&self) -> Option<P> {
        self.pod.filter(|p| !matches!(p.phase, L::Stopping | L::Lost))
    }

    /// The pod is gone, for any reason. Facts about it apply to no current pod.
    pub(crate) fn remove_pod(&mut self) {
        self.pod = None;
        (self.players, self.crash_loop, self.forgot) = (false, false, false);
        self.agent = Agent::Answers;
        for fact in [&mut self.announced, &mut self.saved].into_iter().flatten() {
            fact.pod = false;
        }
        self.recreated = self.recreated.map(|again| Again { is_current_pod: false, ..again });
        self.draining = self.draining.map(|_| false);
        if self.mark == Mark::Set {
            self.mark = Mark::Over;
        }
        if self.clock == Clock::Due {
            // The next server counts as restarted, however it was started.
            self.clock = Clock::Over;
        }
        if let Some(delayed) = &mut self.delayed {
            delayed.pod = false;
        }
        self.bump_resource_version(); // the controller writes status
    }

    /// Whether, outside of a window, no player would be surprised by an update. This states the rule, not its computation.
    pub(crate) fn is_unobtrusive(&self, s: &Scenario) -> bool {
        let scaled_to_zero = self.scaled_to_zero && self.pod.is_none();
        let empty = self.empty && !self.players && self.agent == Agent::Answers;
        let restarts_anyway = self.clock == Clock::Due && self.agent == Agent::Answers;
        s.opportunistic && (scaled_to_zero || empty || restarts_anyway)
    }

    /// A new resourceVersion.
    pub(crate) fn bump_resource_version(&mut self) {
        if let Some(delayed) = &mut self.delayed {
            delayed.is_fresh = false;
        }
    }

    /// Another actor made a change, so earlier restarts by the operator do not count any more.
    pub(crate) fn third_party(&mut self) {
        self.restarted = 0;
        self.by_operator = ByUs::Nothing;
        self.raced = false;
    }

    /// Merges states that are equivalent. They differ in a delayed step that can only be refused, the clock of a dead fact, or the result of a
    /// verified pod.
    pub(crate) fn normalized(mut self, s: &Scenario) -> Self {
        if let Some(delayed) = self.delayed {
            let late = delayed.action.expires() && !delayed.in_time && s.without != Some(Rule::NotAfter);
            if !delayed.is_fresh || (delayed.action.is_at_agent() && !delayed.pod) || late {
                self.delayed = None;
            }
        }
        self.empty &= !self.players && self.pod.is_some_and(|p| p.phase == L::Up);
        for fact in [&mut self.announced, &mut self.saved].into_iter().flatten() {
            if fact.disruption == For::Update {
                // The opening is over: a player joined, or it is too late for the restart.
                let is_open = if fact.of_restart {
                    self.clock == Clock::Due
                } else {
                    self.window != WindowNow::Shut || self.empty
                };
                fact.window &= is_open;
            }
            // Dead facts are kept in their most dangerous form, so that a forgotten key is noticed.
            if !fact.pod || (!fact.window && fact.disruption == For::Update) {
                (fact.good, fact.is_short, fact.is_confirmed) = (true, false, true);
            }
        }
        if let Some(pod) = &mut self.pod {
            if Some(pod.rev) == self.stable {
                pod.verification = Judged::Passed;
            }
            if !pod.is_starting() && pod.phase != L::Lost {
                pod.late = false;
            }
        }
        self.players &= self.pod.is_some();
        self.forgot &= self.announced.is_some_and(|fact| fact.pod && !fact.good);
        self.crash_loop &= self.counts_crashes();
        self.images = self.normalized_images(s);
        self
    }
}
