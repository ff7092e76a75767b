//! Pure. Models steps as actions: their effect, the recorded facts, and actions that are executed late.

use scheduler::observation::{Disruption, Partition};
use scheduler::rollout::Step;

use crate::observation::{NOTICE, due, is_short, requested_at};
use crate::state::{Rev, State};

/// Why a server is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum For {
    Update,
    RollBack,
    Restart,
    UserRestore,
    Drain,
}

/// A pod was deleted and is recreated with the same revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Again {
    /// It is the current pod.
    pub(crate) is_current_pod: bool,
    /// It was deleted for a backup that a user chose, not on schedule.
    pub(crate) for_backup: bool,
}

/// A fact, with the conditions that made it true.
#[expect(clippy::struct_excessive_bools, reason = "each flag is one dimension of the state space")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct F {
    pub(crate) disruption: For,
    pub(crate) revision: Rev,
    /// It is still about the current pod, and the current opening.
    pub(crate) pod: bool,
    pub(crate) window: bool,
    /// The opening is that of a restart, which the update replaces.
    pub(crate) of_restart: bool,
    /// The countdown has ended, or the save is recent.
    pub(crate) good: bool,
    /// The rest of the countdown is no longer than that of an empty server.
    pub(crate) is_short: bool,
    /// The save was confirmed, or the countdown did not end long ago.
    pub(crate) is_confirmed: bool,
}

/// The action of a step, without its times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    Create { rev: Rev, open: bool },
    Announce { disruption: For, revision: Rev, of_restart: bool, is_short: bool },
    Reannounce { disruption: For, revision: Rev, of_restart: bool, is_short: bool },
    Save { disruption: For, revision: Rev, of_restart: bool },
    WriteTemplate(Rev),
    Commit { agent_unreachable: bool },
    Restore { rev: Rev, open: bool },
    MarkFailed(Rev),
    RequestRestore { to: Rev, unless_played: bool },
    RequestUserRestore(Rev),
    RollBack { to: Rev, requested_by_user: bool, agent_unreachable: bool },
    RollForward { to: Rev, agent_unreachable: bool },
    MarkStable(Rev),
    Restart { for_backup: bool, agent_unreachable: bool },
    EndRestart,
    BeginDrain,
    EndDrain,
    CancelAnnouncement { disruption: For, revision: Rev },
}

impl Action {
    /// The action contains the observation with which it was decided.
    pub(crate) fn from_step(step: &Step, state: &State) -> Option<Self> {
        let disruption = |disruption: Disruption| match disruption {
            Disruption::Update { goal, window_opened_at } => {
                (For::Update, Rev::from_revision(goal), window_opened_at == due())
            }
            Disruption::RollBack { failed } => (For::RollBack, Rev::from_revision(failed), false),
            // It is about the stable revision, so it names none. One of them stands for all.
            Disruption::Restart { due } if due == requested_at() => (For::UserRestore, Rev::A, false),
            Disruption::Restart { .. } => (For::Restart, Rev::A, false),
            Disruption::Drain { .. } => (For::Drain, Rev::A, false),
        };
        Some(match *step {
            Step::Create { revision, partition } => {
                Self::Create { rev: Rev::from_revision(revision), open: partition == Partition::Open }
            }
            Step::Announce { disruption: announced, notice, .. } => {
                let (disruption, revision, of_restart) = disruption(announced);
                Self::Announce { disruption, revision, of_restart, is_short: notice < NOTICE }
            }
            Step::Reannounce { disruption: announced, ends, .. } => {
                let (disruption, revision, of_restart) = disruption(announced);
                Self::Reannounce { disruption, revision, of_restart, is_short: is_short(ends) }
            }
            Step::Save { disruption: announced, .. } => {
                let (disruption, revision, of_restart) = disruption(announced);
                Self::Save { disruption, revision, of_restart }
            }
            Step::WriteTemplate { revision, .. } => Self::WriteTemplate(Rev::from_revision(revision)),
            Step::Commit { agent_unreachable, .. } => Self::Commit { agent_unreachable },
            Step::Restore { revision, partition } => {
                Self::Restore { rev: Rev::from_revision(revision), open: partition == Partition::Open }
            }
            Step::MarkFailed { revision } => Self::MarkFailed(Rev::from_revision(revision)),
            Step::RequestRestore { to, requested_by_user: true } => Self::RequestUserRestore(Rev::from_revision(to)),
            Step::RequestRestore { to, requested_by_user: false } => {
                Self::RequestRestore { to: Rev::from_revision(to), unless_played: state.may_have_played() }
            }
            Step::RollBack { to, requested_by_user, agent_unreachable, .. } => {
                Self::RollBack { to: Rev::from_revision(to), requested_by_user, agent_unreachable }
            }
            Step::RollForward { to, agent_unreachable, .. } => {
                Self::RollForward { to: Rev::from_revision(to), agent_unreachable }
            }
            Step::MarkStable { revision } => Self::MarkStable(Rev::from_revision(revision)),
            Step::Restart { due, agent_unreachable, .. } => {
                Self::Restart { for_backup: due == requested_at(), agent_unreachable }
            }
            Step::EndRestart => Self::EndRestart,
            Step::BeginDrain { .. } => Self::BeginDrain,
            Step::EndDrain => Self::EndDrain,
            Step::CancelAnnouncement { disruption: announced, .. } => {
                let (disruption, revision, _) = disruption(announced);
                Self::CancelAnnouncement { disruption, revision }
            }
            // This model has no plugin data, so its restore is never requested.
            Step::Stage | Step::UpToDate | Step::RequestPluginDataRestore { .. } | Step::Wait(_) => return None,
        })
    }

    /// Executed at the agent, bound to a pod. All others are writes to the `StatefulSet`.
    pub(crate) fn is_at_agent(self) -> bool {
        matches!(self, Self::Announce { .. } | Self::Reannounce { .. } | Self::Save { .. })
    }

    /// Leaves a fact, or a change, on the `StatefulSet`.
    pub(crate) fn is_written(self) -> bool {
        !matches!(self, Self::Reannounce { .. })
    }

    /// Has a `not_after`.
    pub(crate) fn expires(self) -> bool {
        self.is_at_agent()
            || matches!(
                self,
                Self::WriteTemplate(_) | Self::Commit { .. } | Self::RollBack { .. } | Self::Restart { .. }
            )
            || matches!(self, Self::RollForward { .. } | Self::CancelAnnouncement { .. })
    }
}

/// A delayed step: that of a second leader, of a stale cache, or of a request that is still in transit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct DelayedStep {
    pub(crate) action: Action,
    /// `StatefulSet` and pod are unchanged since the observation, and `not_after` is not over.
    pub(crate) is_fresh: bool,
    pub(crate) pod: bool,
    pub(crate) in_time: bool,
}
