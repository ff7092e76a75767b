//! Pure. Tracks the staging of the goal's files on the volume, and its retries.

use jiff::{SignedDuration, Timestamp};
use scheduler::protocol::Staging;
use scheduler::rollout::{Step, WaitingOn};

use super::observe::Observed;
use super::plan::Plan;
use crate::requeue::Outcome;

/// Interval between two attempts to stage files after a failure. A user frees space, and an upstream recovers at its own pace.
const AGAIN: SignedDuration = SignedDuration::from_secs(30);

impl Plan {
    /// Whether the files of the goal are missing on the volume and no staging is in progress.
    pub(crate) fn wants_staging(&self, seen: &Observed) -> bool {
        seen.report.is_some() && !self.seen.staged && !self.is_staging(seen)
    }

    /// Whether the agent is staging the files of the goal.
    pub(crate) fn is_staging(&self, seen: &Observed) -> bool {
        self.staging(seen).is_some_and(|staging| staging.error.is_none())
    }

    /// Why the agent's last attempt to stage the files of the goal failed.
    pub(crate) fn staging_problem<'s>(&self, seen: &'s Observed) -> Option<&'s str> {
        self.staging(seen)?.error.as_deref()
    }

    fn staging<'s>(&self, seen: &'s Observed) -> Option<&'s Staging> {
        let staging = seen.report.as_ref()?.staging.as_ref()?;
        (!self.seen.staged && staging.lock == self.record.files.lock).then_some(staging)
    }
}

/// Delays the next pass after failed staging: a retry every second would not help.
pub(super) fn in_time_to_ask_again(outcome: Outcome, step: Step, problem: Option<&str>, now: Timestamp) -> Outcome {
    match (problem, step) {
        (Some(_), Step::Stage | Step::Wait(WaitingOn::Window { .. })) => Outcome::Waiting { until: Some(now + AGAIN) },
        _ => outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_staging_is_retried_after_half_a_minute() {
        let now = Timestamp::UNIX_EPOCH;
        let asked = |step, problem| in_time_to_ask_again(Outcome::Acted, step, problem, now);
        let later = Outcome::Waiting { until: Some(now + SignedDuration::from_secs(30)) };
        assert_eq!(asked(Step::Stage, Some("full")), later);
        assert_eq!(asked(Step::Wait(WaitingOn::Window { opens: None }), Some("full")), later);
        assert_eq!(asked(Step::Stage, None), Outcome::Acted);
        assert_eq!(asked(Step::EndRestart, Some("full")), Outcome::Acted);
    }
}
