//! Pure. Records estimates for a backup before an update and for a restore. The agent is unreachable meanwhile, and another operator
//! process may need the estimate.

use jiff::{SignedDuration, Timestamp};
use scheduler::observation::{BackupEstimate, RecordedFacts};

use super::StepExecutor;
use crate::server::report::downtime_estimate::restore_estimate;

impl StepExecutor<'_> {
    /// The facts, with the estimated time of the backup before the goal. Without a current estimate, an earlier one for the same goal is
    /// kept.
    pub(super) fn facts_with_backup_estimate(&self) -> RecordedFacts {
        let goal = self.plan.target.rendered.revision;
        let seconds = self.backup_estimate.map(seconds);
        let recorded = self.observed.facts.backup_estimate.filter(|estimate| estimate.goal == goal);
        RecordedFacts {
            backup_estimate: seconds.map(|seconds| BackupEstimate { goal, seconds }).or(recorded),
            ..self.observed.facts.clone()
        }
    }

    /// The facts, with the estimated time of the restore that a user requested for the restart of this instant.
    pub(super) fn facts_with_restore_estimate(&self, due: Timestamp) -> RecordedFacts {
        let stable = self.observed.facts.settled.filter(|_| self.restore_due_at(due).is_some());
        let estimate = stable.zip(restore_estimate(self.observed));
        let backup_estimate =
            estimate.map(|(stable, estimate)| BackupEstimate { goal: stable.revision, seconds: seconds(estimate) });
        RecordedFacts { backup_estimate, ..self.observed.facts.clone() }
    }
}

fn seconds(estimate: SignedDuration) -> u32 {
    u32::try_from(estimate.as_secs()).unwrap_or(u32::MAX)
}
