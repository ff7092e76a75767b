//! Pure. What came of a step.

use jiff::{SignedDuration, Timestamp};

/// What a step did, for the Events of the pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StepOutcome {
    Created,
    StagingAsked,
    Announced {
        /// What is left.
        notice: SignedDuration,
        /// They were told a later end before, and have left.
        is_cut_short: bool,
    },
    ToldAgain {
        /// What is left.
        left: SignedDuration,
    },
    Saved {
        confirmed: bool,
        took_ms: u64,
        problem: Option<String>,
    },
    TemplateWritten,
    Committed {
        unasked: bool,
    },
    Restored,
    MarkedFailed,
    RestoreScheduled,
    DataOrdered,
    RolledBack {
        unasked: bool,
    },
    Closed(MarkedStable),
    Restarting {
        due: Timestamp,
        unasked: bool,
    },
    Restarted,
    DrainBegun,
    DrainEnded,
    CalledOff,
    Nothing,
}

/// What runs behind a door that was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MarkedStable {
    /// The first set of this server.
    First,
    /// Another one than before.
    Update,
    /// What had settled before: it was gone back to.
    Before,
}
