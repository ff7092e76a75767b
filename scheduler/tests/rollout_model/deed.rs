//! Pure. Models steps as actions: their effect, the recorded facts, and actions that are executed late.

use scheduler::observation::{Disruption, Partition};
use scheduler::rollout::Step;

use crate::look::{NOTICE, asked_at, due, is_short};
use crate::world::{Rev, State};

/// Why a server is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum For {
    Update,
    RollBack,
    Restart,
    Copy,
    Drain,
}

/// A pod was deleted and is recreated with the same revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Again {
    /// It is the current pod.
    pub(crate) of_now: bool,
    /// It was deleted for a backup that a user chose, not on schedule.
    pub(crate) copy: bool,
}

/// A fact, with the conditions that made it true.
#[expect(clippy::struct_excessive_bools, reason = "a state space: each of them is one dimension of it")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct F {
    pub(crate) act: For,
    pub(crate) about: Rev,
    /// It is still about the current pod, and the current opening.
    pub(crate) pod: bool,
    pub(crate) window: bool,
    /// The opening is that of a restart, which the update replaces.
    pub(crate) clock: bool,
    /// The countdown has ended, or the save is recent.
    pub(crate) good: bool,
    /// The rest of the countdown is no longer than that of an empty server.
    pub(crate) short: bool,
    /// The save was confirmed, or the countdown did not end long ago.
    pub(crate) ok: bool,
}

/// The action of a step, without its times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Deed {
    Create { rev: Rev, open: bool },
    Announce { act: For, about: Rev, clock: bool, short: bool },
    Reannounce { act: For, about: Rev, clock: bool, short: bool },
    Save { act: For, about: Rev, clock: bool },
    Write(Rev),
    Commit { unasked: bool },
    Restore { rev: Rev, open: bool },
    MarkFailed(Rev),
    Order { to: Rev, unless_played: bool },
    OrderCopy(Rev),
    RollBack { to: Rev, asked: bool, unasked: bool },
    RollForward { to: Rev, unasked: bool },
    Close(Rev),
    Restart { copy: bool, unasked: bool },
    EndRestart,
    BeginDrain,
    EndDrain,
    CancelAnnouncement { act: For, about: Rev },
}

impl Deed {
    /// The action contains the observation with which it was decided.
    pub(crate) fn of(step: &Step, seen: &State) -> Option<Self> {
        let act = |act: Disruption| match act {
            Disruption::Update { goal, window_opened_at } => (For::Update, Rev::of(goal), window_opened_at == due()),
            Disruption::RollBack { failed } => (For::RollBack, Rev::of(failed), false),
            // It is about the stable revision, so it names none. One of them stands for all.
            Disruption::Restart { due } if due == asked_at() => (For::Copy, Rev::A, false),
            Disruption::Restart { .. } => (For::Restart, Rev::A, false),
            Disruption::Drain { .. } => (For::Drain, Rev::A, false),
        };
        Some(match *step {
            Step::Create { revision, door } => Self::Create { rev: Rev::of(revision), open: door == Partition::Open },
            Step::Announce { act: what, notice, .. } => {
                let (act, about, clock) = act(what);
                Self::Announce { act, about, clock, short: notice < NOTICE }
            }
            Step::Reannounce { act: what, ends, .. } => {
                let (act, about, clock) = act(what);
                Self::Reannounce { act, about, clock, short: is_short(ends) }
            }
            Step::Save { act: what, .. } => {
                let (act, about, clock) = act(what);
                Self::Save { act, about, clock }
            }
            Step::WriteTemplate { revision, .. } => Self::Write(Rev::of(revision)),
            Step::Commit { unasked, .. } => Self::Commit { unasked },
            Step::Restore { revision, door } => Self::Restore { rev: Rev::of(revision), open: door == Partition::Open },
            Step::MarkFailed { revision } => Self::MarkFailed(Rev::of(revision)),
            Step::RequestRestore { to, asked: true } => Self::OrderCopy(Rev::of(to)),
            Step::RequestRestore { to, asked: false } => {
                Self::Order { to: Rev::of(to), unless_played: seen.may_have_played() }
            }
            Step::RollBack { to, asked, unasked, .. } => Self::RollBack { to: Rev::of(to), asked, unasked },
            Step::RollForward { to, unasked, .. } => Self::RollForward { to: Rev::of(to), unasked },
            Step::MarkStable { settled } => Self::Close(Rev::of(settled)),
            Step::Restart { due, unasked, .. } => Self::Restart { copy: due == asked_at(), unasked },
            Step::EndRestart => Self::EndRestart,
            Step::BeginDrain { .. } => Self::BeginDrain,
            Step::EndDrain => Self::EndDrain,
            Step::CancelAnnouncement { act: what, .. } => {
                let (act, about, _) = act(what);
                Self::CancelAnnouncement { act, about }
            }
            // This model has no plugin data, so its restore is never requested.
            Step::Stage | Step::Settled | Step::RequestPluginDataRestore { .. } | Step::Wait(_) => return None,
        })
    }

    /// Executed at the agent, bound to a pod. All others are writes to the `StatefulSet`.
    pub(crate) fn at_the_agent(self) -> bool {
        matches!(self, Self::Announce { .. } | Self::Reannounce { .. } | Self::Save { .. })
    }

    /// Leaves a fact, or a change, on the `StatefulSet`.
    pub(crate) fn is_written(self) -> bool {
        !matches!(self, Self::Reannounce { .. })
    }

    /// Has a `not_after`.
    pub(crate) fn expires(self) -> bool {
        self.at_the_agent()
            || matches!(self, Self::Write(_) | Self::Commit { .. } | Self::RollBack { .. } | Self::Restart { .. })
            || matches!(self, Self::RollForward { .. } | Self::CancelAnnouncement { .. })
    }
}

/// A delayed step: that of a second leader, of a stale cache, or of a request that is still in transit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Held {
    pub(crate) deed: Deed,
    /// `StatefulSet` and pod are unchanged since the observation, and `not_after` is not over.
    pub(crate) set: bool,
    pub(crate) pod: bool,
    pub(crate) in_time: bool,
}
