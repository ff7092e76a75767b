//! Pure. Builds `status.lastUpdate`: an update that was kept, failed or rolled back.

use crds::PaperMCServerStatus;
use crds::paper_mc_server::LastUpdate;
use jiff::{SignedDuration, Timestamp};
use scheduler::protocol;

use crate::error_chain::cut;
use crate::server::act::{MarkedStable, StepOutcome};
use crate::server::changes::in_words;
use crate::server::records::LockRecord;
use crate::server::report::PassReport;
use crate::server::report::events::{downtime, interrupted, stopped_at};
use crate::server::report::failure::why_it_failed;

/// The last update after this pass.
pub(super) fn build_last_update(report: &PassReport<'_>, before: &PaperMCServerStatus) -> Option<LastUpdate> {
    let agent = report.seen.report.as_deref();
    let settled = report.seen.settled_lock.as_deref().map(version);
    let on_trial = report.seen.pod_lock.as_deref().map(version);
    match report.done {
        // The failure and its reason remain readable.
        StepOutcome::Closed(MarkedStable::First | MarkedStable::Before) => before.last_update.clone().map(|last| {
            let down_seconds = if last.going_back { down_in_all(&last, agent) } else { last.down_seconds };
            LastUpdate { down_seconds, going_back: false, ..last }
        }),
        StepOutcome::Closed(MarkedStable::Update) => Some(LastUpdate {
            applied_at: report.now,
            previous_version: settled,
            version: on_trial.unwrap_or_default(),
            successful: true,
            unproven: report.plan.proof.unproven().is_some(),
            going_back: false,
            message: applied(report, before),
            down_seconds: downtime(agent).and_then(seconds),
            players: interrupted(agent),
        }),
        // The roll-back may wait for a user for days. Until then the status must not show the successful update before it.
        StepOutcome::MarkedFailed => Some(LastUpdate {
            applied_at: report.now,
            previous_version: settled,
            version: on_trial.unwrap_or_default(),
            successful: false,
            unproven: false,
            going_back: false,
            message: cut(&why_it_failed(report), 1_024),
            // Unknown while the server does not start.
            down_seconds: downtime(agent).and_then(seconds),
            players: interrupted(agent),
        }),
        StepOutcome::RolledBack { .. } => Some(LastUpdate {
            applied_at: report.now,
            previous_version: on_trial,
            version: settled.unwrap_or_default(),
            successful: false,
            unproven: false,
            going_back: true,
            message: cut(&why_it_failed(report), 1_024),
            down_seconds: down_so_far(agent, report.now),
            players: interrupted(agent),
        }),
        StepOutcome::Created
        | StepOutcome::StagingAsked
        | StepOutcome::Announced { .. }
        | StepOutcome::ToldAgain { .. }
        | StepOutcome::Saved { .. }
        | StepOutcome::TemplateWritten
        | StepOutcome::Committed { .. }
        | StepOutcome::Restored
        | StepOutcome::RestoreScheduled
        | StepOutcome::DataOrdered
        // A restart is no update.
        | StepOutcome::Restarting { .. }
        | StepOutcome::Restarted
        // A drain is no update.
        | StepOutcome::DrainBegun
        | StepOutcome::DrainEnded
        | StepOutcome::CalledOff
        | StepOutcome::Nothing => before.last_update.clone(),
    }
}

/// For example `1.21.10-130`.
fn version(record: &LockRecord) -> String {
    format!("{}-{}", record.lock.minecraft, record.lock.build)
}

fn seconds(span: SignedDuration) -> Option<u32> {
    u32::try_from(span.as_secs()).ok()
}

/// Downtime caused by a failed set right before its roll-back: until that set was up, or until now.
fn down_so_far(agent: Option<&protocol::AgentReport>, now: Timestamp) -> Option<u32> {
    downtime(agent).or_else(|| Some(now.duration_since(stopped_at(agent)?))).and_then(seconds)
}

/// The same once the earlier set is up again.
fn down_in_all(last: &LastUpdate, agent: Option<&protocol::AgentReport>) -> Option<u32> {
    let before = last.down_seconds.filter(|_| was_stopped_again(last, agent));
    Some(before.unwrap_or(0) + downtime(agent).and_then(seconds)?)
}

/// Whether the roll-back stopped the server once more. That is the case for a failed set that was up, and not for one that never started.
pub(in super::super) fn was_stopped_again(last: &LastUpdate, agent: Option<&protocol::AgentReport>) -> bool {
    stopped_at(agent).is_some_and(|stopped| last.applied_at < stopped)
}

/// The changes of an update that was kept, after the reason why it is not verified.
fn applied(report: &PassReport<'_>, before: &PaperMCServerStatus) -> String {
    let what = before.update.clone().unwrap_or_else(|| in_words(&report.plan.changes));
    let doubt = report.plan.proof.unproven().map(|problem| format!("not proven: {}; ", cut(problem, 512)));
    cut(&format!("{}{what}", doubt.unwrap_or_default()), 1_024)
}

#[cfg(test)]
mod tests {
    use scheduler::observation::{Revision, Verification};
    use scheduler::rollout::{Step, WaitingOn};
    use serde_json::json;

    use super::*;
    use crate::server::report::counted_stop;
    use crate::server::report::tests::{Pass, record};
    use crate::server::verify::VerificationResult;

    const WHY: &str = "Shop did not enable";

    /// Build 130 has failed its verification while 129 is stable. The update before was successful.
    fn marked_failed() -> Pass {
        let mut pass = Pass::new();
        let earlier = json!({
            "appliedAt": "2026-11-01T04:00:00Z", "previousVersion": "1.21.10-128", "version": "1.21.10-129", "successful": true,
            "message": "Paper 128 -> 129",
        });
        pass.before = serde_json::from_value(json!({"lastUpdate": earlier})).unwrap();
        pass.seen.settled_lock = Some(record(129));
        pass.plan.proof = VerificationResult { verdict: Verification::Failed, problem: WHY.to_owned() };
        (pass.step, pass.done) = (Step::MarkFailed { revision: Revision(2) }, StepOutcome::MarkedFailed);
        pass
    }

    #[test]
    fn failed_update_stays_in_status_while_decision_is_pending() {
        let pass = marked_failed();
        let last = pass.status().last_update.unwrap();
        assert_eq!((last.version.as_str(), last.previous_version.as_deref()), ("1.21.10-130", Some("1.21.10-129")));
        assert_eq!((last.successful, last.unproven, last.going_back), (false, false, false));
        assert_eq!((last.message.as_str(), last.applied_at), (WHY, pass.report().now));
        let mut pass = pass.next();
        pass.step = Step::Wait(WaitingOn::NoBackup);
        assert_eq!(pass.status().last_update, Some(last));
    }

    #[test]
    fn failed_update_stop_is_counted_at_rollback() {
        let pass = marked_failed();
        assert_eq!(counted_stop(&pass.report(), &pass.before), None);
        let mut pass = pass.next();
        pass.done = StepOutcome::RolledBack { unasked: false };
        assert_eq!(counted_stop(&pass.report(), &pass.before), Some("update"));
        let last = pass.status().last_update.unwrap();
        assert_eq!((last.version.as_str(), last.previous_version.as_deref()), ("1.21.10-129", Some("1.21.10-130")));
        assert_eq!((last.successful, last.going_back, last.message.as_str()), (false, true, WHY));
    }

    #[test]
    fn first_start_after_failed_one_is_no_rollback() {
        let mut pass = Pass::new();
        (pass.seen.facts.settled, pass.seen.settled_lock) = (None, None);
        pass.done = StepOutcome::RolledBack { unasked: false };
        let mut pass = pass.next();
        assert!(pass.before.last_update.as_ref().unwrap().going_back);
        pass.done = StepOutcome::Closed(MarkedStable::First);
        assert!(!pass.status().last_update.unwrap().going_back);
    }
}
