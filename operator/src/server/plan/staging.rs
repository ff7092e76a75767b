//! Pure. Tracks the staging of the goal's files on the volume, and its retries.

use agent_api::Staging;
use jiff::{SignedDuration, Timestamp};
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
    let retry_at = now + RETRY_INTERVAL;
    match (problem, step) {
        (Some(_), Step::Stage) => Outcome::Waiting { until: Some(retry_at) },
        // The window may open earlier.
        (Some(_), Step::Wait(WaitingOn::Window { .. })) => outcome.no_later_than(retry_at, now),
        _ => outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_staging_is_retried_after_half_a_minute() {
        let now = Timestamp::UNIX_EPOCH;
        let later = Outcome::Waiting { until: Some(now + SignedDuration::from_secs(30)) };
        let waits = Step::Wait(WaitingOn::Window { opens: None });
        let retried = |outcome, step, problem| requeue_for_staging_retry(outcome, step, problem, now);
        assert_eq!(retried(Outcome::Acted, Step::Stage, Some("full")), later);
        assert_eq!(retried(Outcome::Acted, Step::Stage, None), Outcome::Acted);
        assert_eq!(retried(Outcome::Acted, Step::EndRestart, Some("full")), Outcome::Acted);
        assert_eq!(retried(Outcome::Waiting { until: None }, waits, Some("full")), later);
        let opens_sooner = Outcome::Waiting { until: Some(now + SignedDuration::from_secs(5)) };
        assert_eq!(retried(opens_sooner, waits, Some("full")), opens_sooner);
    }
}
