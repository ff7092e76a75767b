//! Pure. Records estimates for a backup before an update and for a restore. The agent is unreachable meanwhile, and another operator
//! process may need the estimate.

use jiff::{SignedDuration, Timestamp};
use scheduler::observation::{BackupEstimate, RecordedFacts};

use super::StepExecutor;
use crate::server::report::downtime_estimate::restore_takes;

impl StepExecutor<'_> {
    /// The facts, with the estimated time of the backup before the goal. Without a current estimate, an earlier one for the same goal is
    /// kept.
    pub(super) fn facts_of_goal(&self) -> RecordedFacts {
        let goal = self.goal.rendered.revision;
        let seconds = self.copy_takes.map(seconds);
        let known = self.seen.facts.copying.filter(|copying| copying.goal == goal);
        RecordedFacts {
            copying: seconds.map(|seconds| BackupEstimate { goal, seconds }).or(known),
            ..self.seen.facts.clone()
        }
    }

    /// The facts, with the estimated time of the restore that a user requested for the restart of this instant.
    pub(super) fn facts_of_restart(&self, due: Timestamp) -> RecordedFacts {
        let settled = self.seen.facts.settled.filter(|_| self.restore_at(due).is_some());
        let takes = settled.zip(restore_takes(self.seen));
        let copying = takes.map(|(settled, takes)| BackupEstimate { goal: settled.revision, seconds: seconds(takes) });
        RecordedFacts { copying, ..self.seen.facts.clone() }
    }
}

fn seconds(takes: SignedDuration) -> u32 {
    u32::try_from(takes.as_secs()).unwrap_or(u32::MAX)
}
