//! Pure. What is remembered of the copy that is taken before an update, or put in place: nobody can be asked while that is under way, and whoever
//! looks then may be another operator than the one that began it.

use jiff::{SignedDuration, Timestamp};
use scheduler::observation::{BackupEstimate, RecordedFacts};

use super::StepExecutor;
use crate::server::report::downtime_estimate::restore_takes;

impl StepExecutor<'_> {
    /// The facts, with how long the copy before the goal takes. Where nobody says so any more, what was said before of the same goal stands.
    pub(super) fn facts_of_goal(&self) -> RecordedFacts {
        let goal = self.goal.rendered.revision;
        let seconds = self.copy_takes.map(seconds);
        let known = self.seen.facts.copying.filter(|copying| copying.goal == goal);
        RecordedFacts {
            copying: seconds.map(|seconds| BackupEstimate { goal, seconds }).or(known),
            ..self.seen.facts.clone()
        }
    }

    /// The facts, with how long it takes to put in place what a person wants at the restart of this instant.
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
