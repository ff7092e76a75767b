//! Pure. Determines when a server is reconciled again after a pass.

use jiff::Timestamp;
use scheduler::maintenance::Gate;
use scheduler::rollout::{Step, WaitingOn};

use super::act::StepOutcome;
use super::observe::Observed;
use super::plan::Plan;
use super::report::notifications::in_time_to_tell;
use super::staging::in_time_to_ask_again;
use crate::notify::Channel;
use crate::requeue::Outcome;

/// When to requeue, so that no scheduled event is found minutes late.
pub(super) fn in_time(
    channels: &[Channel],
    plan: &Plan,
    seen: &Observed,
    (step, done): (Step, &StepOutcome),
    at: Timestamp,
) -> Outcome {
    let is_staging = *done == StepOutcome::StagingAsked || plan.is_staging(seen);
    let outcome = in_time_for_another_opening(outcome_of(step, is_staging), step, plan.gate, at);
    let outcome = plan.in_time_to_go_forward(outcome, step, at);
    let outcome = in_time_to_ask_again(outcome, step, plan.staging_problem(seen), at);
    let outcome = in_time_to_tell(plan.in_time_for_images(outcome, at), channels, at);
    let outcome = plan.in_time_for_opportunity(plan.alone.in_time(outcome, plan.alone_until, at), at);
    plan.copies.in_time(plan.restarts.in_time(plan.in_time_for_followed(outcome, at), at), at)
}

/// Requeues at the end of an opening that is too short for the update. It may begin in an opening that follows directly: an opening at any
/// time of the day is cut at midnight.
fn in_time_for_another_opening(outcome: Outcome, step: Step, gate: Gate, now: Timestamp) -> Outcome {
    match (step, gate.until()) {
        (Step::Wait(WaitingOn::Window { opens: None }), Some(until)) => outcome.no_later_than(until, now),
        _ => outcome,
    }
}

fn outcome_of(step: Step, is_staging: bool) -> Outcome {
    match step {
        Step::Settled => Outcome::Settled,
        Step::Wait(waiting) => match waiting {
            // Staging is observed until it finishes, so that the status can report it.
            WaitingOn::Window { .. } if is_staging => Outcome::Under { until: None },
            WaitingOn::Window { opens } => Outcome::Waiting { until: opens },
            // Changes of pods and nodes wake the server.
            WaitingOn::Eviction
            | WaitingOn::Images
            | WaitingOn::NoImage
            | WaitingOn::Asleep
            | WaitingOn::Held { .. }
            | WaitingOn::BelowFloor { .. }
            | WaitingOn::NoBackup
            | WaitingOn::RollbackWouldLoseProgress
            | WaitingOn::FirstStartFailed
            | WaitingOn::NodeLost
            | WaitingOn::ServerDown
            | WaitingOn::WorldRefused => Outcome::Waiting { until: None },
            WaitingOn::Countdown { ends: until } | WaitingOn::Players { until } => Outcome::Counting { until },
            WaitingOn::Agent { .. }
            | WaitingOn::Controller
            | WaitingOn::PodMissing
            | WaitingOn::PodStopping { .. }
            | WaitingOn::Start { .. }
            | WaitingOn::Proof { .. }
            | WaitingOn::SaveRefused { .. } => Outcome::Under { until: waiting.until() },
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
            assert_eq!(outcome_of(Step::Wait(waiting), false), Outcome::Waiting { until: None });
        }
        let until = Timestamp::from_second(30).unwrap();
        let refused = Step::Wait(WaitingOn::SaveRefused { again: until });
        assert_eq!(outcome_of(refused, false), Outcome::Under { until: Some(until) }, "it is asked again by itself");
    }

    #[test]
    fn update_too_late_for_window_requeues_after_it() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let gate = Gate::Open { opened_at: at(0), until: at(45) };
        let shut = Gate::Shut { opens: None };
        let too_late = Step::Wait(WaitingOn::Window { opens: None });
        let then = |step, gate| in_time_for_another_opening(outcome_of(step, false), step, gate, at(10));
        assert_eq!(then(too_late, gate), Outcome::Waiting { until: Some(at(45)) });
        assert_eq!(then(too_late, shut), Outcome::Waiting { until: None });
        assert_eq!(then(Step::Settled, gate), Outcome::Settled);
        let opens = Step::Wait(WaitingOn::Window { opens: Some(at(99)) });
        assert_eq!(then(opens, gate), Outcome::Waiting { until: Some(at(99)) });
    }
}
