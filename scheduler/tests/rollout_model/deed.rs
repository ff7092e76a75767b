//! Pure. What a step does to the world, what is remembered of it, and one that is carried out late.

use scheduler::observation::{Disruption, Partition};
use scheduler::rollout::Step;

use crate::look::{NOTICE, asked_at, due, is_short};
use crate::world::{Rev, State};

/// What a server is stopped for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum For {
    Update,
    RollBack,
    Restart,
    Copy,
    Drain,
}

/// A pod was deleted to come back as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Again {
    /// It is the pod of now.
    pub(crate) of_now: bool,
    /// It goes for a copy that a person has named, not by the clock.
    pub(crate) copy: bool,
}

/// A fact, with what it was true of.
#[expect(clippy::struct_excessive_bools, reason = "a state space: each of them is one dimension of it")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct F {
    pub(crate) act: For,
    pub(crate) about: Rev,
    /// Still the pod, and the opening, of now.
    pub(crate) pod: bool,
    pub(crate) window: bool,
    /// That opening is the restart's, which the update goes with.
    pub(crate) clock: bool,
    /// The countdown is over; the save is fresh.
    pub(crate) good: bool,
    /// What is left of the countdown is no more than that of an empty server.
    pub(crate) short: bool,
    /// The save was confirmed; the countdown did not end long ago.
    pub(crate) ok: bool,
}

/// What a step does, without the clock in it.
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
    /// What was seen when it was decided goes with it.
    pub(crate) fn of(step: &Step, seen: &State) -> Option<Self> {
        let act = |act: Disruption| match act {
            Disruption::Update { goal, window_opened_at } => (For::Update, Rev::of(goal), window_opened_at == due()),
            Disruption::RollBack { failed } => (For::RollBack, Rev::of(failed), false),
            // It is about whatever is settled, so it names nothing: one of them stands for all.
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
            // Nobody keeps plugins' data here, so they are never asked for.
            Step::Stage | Step::Settled | Step::RequestPluginDataRestore { .. } | Step::Wait(_) => return None,
        })
    }

    /// Done at the agent, bound to a pod; everything else is a write to the `StatefulSet`.
    pub(crate) fn at_the_agent(self) -> bool {
        matches!(self, Self::Announce { .. } | Self::Reannounce { .. } | Self::Save { .. })
    }

    /// Leaves a fact, or a change, on the `StatefulSet`.
    pub(crate) fn is_written(self) -> bool {
        !matches!(self, Self::Reannounce { .. })
    }

    /// Carries a `not_after`.
    pub(crate) fn expires(self) -> bool {
        self.at_the_agent()
            || matches!(self, Self::Write(_) | Self::Commit { .. } | Self::RollBack { .. } | Self::Restart { .. })
            || matches!(self, Self::RollForward { .. } | Self::CancelAnnouncement { .. })
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
