//! Pure. Determines when a server is reconciled again after a pass.

use jiff::Timestamp;
use scheduler::maintenance::Gate;
use scheduler::rollout::{Step, WaitingOn};

use super::act::outcome::StepOutcome;
use super::constraints;
use super::observe::Observed;
use super::plan::Plan;
use super::plan::staging::requeue_for_staging_retry;
use super::report::notifications::requeue_for_notification;
use super::report::{pending, responsiveness};
use super::wake_at::scheduled_changes;
use crate::notify::Channel;
use crate::requeue::Outcome;

/// When to requeue, so that no scheduled event is found minutes late.
pub(super) fn next_outcome(
    channels: &[Channel],
    plan: &Plan,
    observed: &Observed,
    (step, done): (Step, &StepOutcome),
    at: Timestamp,
) -> Outcome {
    let is_staging = *done == StepOutcome::StagingRequested || plan.is_staging(observed);
    let outcome = outcome_after_step(step, is_staging);
    let outcome = if observed.has_pod_address() { outcome } else { wait_for_watch(outcome) };
    let outcome = requeue_for_next_opening(outcome, step, plan.gate, at);
    let outcome = no_later_than_each(outcome, plan.roll_forward_at(step), at);
    let outcome = requeue_for_staging_retry(outcome, step, plan.staging_problem(observed), at);
    let outcome = no_later_than_each(outcome, constraints::next_checks(plan, at), at);
    let outcome = requeue_for_notification(outcome, channels, at);
    let outcome = no_later_than_each(outcome, scheduled_changes(plan).chain(plan.opportunity_at(at)), at);
    let reports =
        responsiveness::reported_at(plan, observed, at).into_iter().chain(pending::reported_at(plan, observed, at));
    let outcome = no_later_than_each(outcome, reports.chain(observed.reads_start_at(at)), at);
    plan.tasks.backups.requeue_while_running(outcome)
}

/// Polling is for the agent. Without an address it cannot answer, and the watches report changes of `StatefulSet` and pod.
fn wait_for_watch(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Polling { until } => Outcome::Waiting { until },
        Outcome::UpToDate
        | Outcome::Acted
        | Outcome::CountingDown { .. }
        | Outcome::Waiting { .. }
        | Outcome::Failed { .. } => outcome,
    }
}

fn no_later_than_each(outcome: Outcome, instants: impl IntoIterator<Item = Timestamp>, now: Timestamp) -> Outcome {
    instants.into_iter().fold(outcome, |outcome, at| outcome.no_later_than(at, now))
}

/// Requeues at the end of an opening that is too short for the update. It may begin in an opening that follows directly: an opening at any
/// time of the day is cut at midnight.
fn requeue_for_next_opening(outcome: Outcome, step: Step, gate: Gate, now: Timestamp) -> Outcome {
    match (step, gate.until()) {
        (Step::Wait(WaitingOn::Window { opens: None }), Some(until)) => outcome.no_later_than(until, now),
        _ => outcome,
    }
}

fn outcome_after_step(step: Step, is_staging: bool) -> Outcome {
    match step {
        Step::UpToDate => Outcome::UpToDate,
        Step::Wait(waiting) => match waiting {
            // Staging is observed until it finishes, so that the status can report it.
            WaitingOn::Window { .. } if is_staging => Outcome::Polling { until: None },
            WaitingOn::Window { opens } => Outcome::Waiting { until: opens },
            // Changes of pods and nodes wake the server.
            WaitingOn::Cluster
            | WaitingOn::Eviction
            | WaitingOn::Images
            | WaitingOn::NoImage
            | WaitingOn::ScaledToZero
            | WaitingOn::Blocked { .. }
            | WaitingOn::BelowFloor { .. }
            | WaitingOn::NoBackup
            | WaitingOn::RollbackWouldLoseProgress
            | WaitingOn::FirstStartFailed
            | WaitingOn::NodeLost
            | WaitingOn::ServerDown
            | WaitingOn::WorldRefused => Outcome::Waiting { until: None },
            WaitingOn::Countdown { ends: until } | WaitingOn::Players { until } => Outcome::CountingDown { until },
            WaitingOn::Agent { .. }
            | WaitingOn::Controller
            | WaitingOn::PodMissing
            | WaitingOn::PodStopping { .. }
            | WaitingOn::Start { .. }
            | WaitingOn::Verification { .. }
            | WaitingOn::SaveRefused { .. } => Outcome::Polling { until: waiting.until() },
        },
        Step::Create { .. }
        | Step::Stage
        | Step::Announce { .. }
        | Step::Reannounce { .. }
        | Step::Save { .. }
        | Step::WriteTemplate { .. }
        | Step::Commit { .. }
        | Step::Restore { .. }
        | Step::MarkFailed { .. }
        | Step::RequestRestore { .. }
        | Step::RequestPluginDataRestore { .. }
        | Step::RollBack { .. }
        | Step::RollForward { .. }
        | Step::MarkStable { .. }
        | Step::Restart { .. }
        | Step::EndRestart
        | Step::BeginDrain { .. }
        | Step::EndDrain
        | Step::CancelAnnouncement { .. } => Outcome::Acted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manual_recovery_is_not_requeued() {
        for waiting in [WaitingOn::ServerDown, WaitingOn::NodeLost, WaitingOn::NoBackup, WaitingOn::WorldRefused] {
            assert_eq!(outcome_after_step(Step::Wait(waiting), false), Outcome::Waiting { until: None });
        }
        let until = Timestamp::from_second(30).unwrap();
        let refused = Step::Wait(WaitingOn::SaveRefused { retry_at: until });
        assert_eq!(
            outcome_after_step(refused, false),
            Outcome::Polling { until: Some(until) },
            "the save is retried automatically"
        );
    }

    #[test]
    fn pod_without_address_is_not_polled() {
        let until = Timestamp::from_second(30).unwrap();
        let start = outcome_after_step(Step::Wait(WaitingOn::Start { until }), false);
        assert_eq!(start, Outcome::Polling { until: Some(until) });
        assert_eq!(wait_for_watch(start), Outcome::Waiting { until: Some(until) }, "its deadline is not missed");
        let missing = outcome_after_step(Step::Wait(WaitingOn::PodMissing), false);
        assert_eq!(wait_for_watch(missing), Outcome::Waiting { until: None });
        assert_eq!(wait_for_watch(Outcome::Acted), Outcome::Acted);
    }

    #[test]
    fn update_too_late_for_window_requeues_after_it() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let gate = Gate::Open { opened_at: at(0), until: at(45) };
        let shut = Gate::Shut { opens: None };
        let too_late = Step::Wait(WaitingOn::Window { opens: None });
        let then = |step, gate| requeue_for_next_opening(outcome_after_step(step, false), step, gate, at(10));
        assert_eq!(then(too_late, gate), Outcome::Waiting { until: Some(at(45)) });
        assert_eq!(then(too_late, shut), Outcome::Waiting { until: None });
        assert_eq!(then(Step::UpToDate, gate), Outcome::UpToDate);
        let opens = Step::Wait(WaitingOn::Window { opens: Some(at(99)) });
        assert_eq!(then(opens, gate), Outcome::Waiting { until: Some(at(99)) });
    }
}
