//! Pure. Tracks the staging of the goal's files on the volume, and its retries.

use jiff::{SignedDuration, Timestamp};
use scheduler::protocol::Staging;
use scheduler::rollout::{Step, WaitingOn};

use super::Plan;
use crate::requeue::Outcome;
use crate::server::observe::Observed;

/// Interval between two attempts to stage files after a failure. A user frees space, and an upstream recovers at its own pace.
const RETRY_INTERVAL: SignedDuration = SignedDuration::from_secs(30);

impl Plan {
    /// Whether the files of the goal are missing on the volume and no staging is in progress.
    pub(crate) fn needs_staging(&self, observed: &Observed) -> bool {
        observed.reply.report.is_some() && !self.observation.staged && !self.is_staging(observed)
    }

    /// Whether the agent is staging the files of the goal.
    pub(crate) fn is_staging(&self, observed: &Observed) -> bool {
        self.staging(observed).is_some_and(|staging| staging.error.is_none())
    }

    /// Why the agent's last attempt to stage the files of the goal failed.
    pub(crate) fn staging_problem<'s>(&self, observed: &'s Observed) -> Option<&'s str> {
        self.staging(observed)?.error.as_deref()
    }

    fn staging<'s>(&self, observed: &'s Observed) -> Option<&'s Staging> {
        let staging = observed.reply.report.as_ref()?.staging.as_ref()?;
        (!self.observation.staged && staging.lock == self.target.record.files.lock).then_some(staging)
    }
}

/// Delays the next pass after failed staging: a retry every second would not help.
pub(crate) fn requeue_for_staging_retry(
    outcome: Outcome,
    step: Step,
    problem: Option<&str>,
    now: Timestamp,
) -> Outcome {
    match (problem, step) {
        (Some(_), Step::Stage | Step::Wait(WaitingOn::Window { .. })) => {
            Outcome::Waiting { until: Some(now + RETRY_INTERVAL) }
        }
        _ => outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_staging_is_retried_after_half_a_minute() {
        let now = Timestamp::UNIX_EPOCH;
        let retried = |step, problem| requeue_for_staging_retry(Outcome::Acted, step, problem, now);
        let later = Outcome::Waiting { until: Some(now + SignedDuration::from_secs(30)) };
        assert_eq!(retried(Step::Stage, Some("full")), later);
        assert_eq!(retried(Step::Wait(WaitingOn::Window { opens: None }), Some("full")), later);
        assert_eq!(retried(Step::Stage, None), Outcome::Acted);
        assert_eq!(retried(Step::EndRestart, Some("full")), Outcome::Acted);
    }
}
