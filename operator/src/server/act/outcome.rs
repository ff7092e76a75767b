//! Pure. The outcomes of a step.

use jiff::{SignedDuration, Timestamp};

/// The outcome of a step, for the Events of the pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StepOutcome {
    Created,
    StagingRequested,
    Announced {
        /// Time left until the stop.
        notice: SignedDuration,
        /// An earlier announcement gave a later end, and all players have left since.
        is_cut_short: bool,
    },
    Reannounced {
        /// Time left until the stop.
        left: SignedDuration,
    },
    Saved {
        confirmed: bool,
        took_ms: u64,
        problem: Option<String>,
    },
    TemplateWritten,
    Committed {
        agent_unreachable: bool,
    },
    Restored,
    MarkedFailed,
    RestoreScheduled,
    PluginDataRestoreRequested,
    RolledBack {
        agent_unreachable: bool,
    },
    MarkedStable(MarkedStable),
    Restarting {
        due: Timestamp,
        agent_unreachable: bool,
    },
    Restarted,
    ScaledToZero {
        agent_unreachable: bool,
    },
    DrainBegun,
    DrainEnded,
    AnnouncementCancelled,
    Nothing,
}

/// How the revision relates to the stable revision before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MarkedStable {
    /// The first stable revision of this server.
    First,
    /// A new stable revision.
    Update,
    /// The stable revision from before, after a roll-back.
    Previous,
}
