//! Pure. Builds `status.lastUpdate`: an update that was kept, failed or rolled back.

use crds::PaperMCServerStatus;
use crds::paper_mc_server::LastUpdate;
use jiff::{SignedDuration, Timestamp};

use crate::error_chain::cut;
use crate::server::act::outcome::{MarkedStable, StepOutcome};
use crate::server::model::records::LockRecord;
use crate::server::report::context::PassReport;
use crate::server::report::failure::failure_reason;
use crate::server::report::stop_times::{disconnected_players, downtime, last_exit_at};

/// The last update after this pass.
pub(crate) fn build_last_update(report: &PassReport<'_>, before: &PaperMCServerStatus) -> Option<LastUpdate> {
    let agent = report.pass.observed.reply.report.as_deref();
    let stable = report.pass.observed.stable_lock.as_deref().map(version);
    let candidate = report.pass.observed.pod_lock.as_deref().map(version);
    match report.done {
        // The failure and its reason remain readable.
        StepOutcome::MarkedStable(MarkedStable::First | MarkedStable::Previous) => before.last_update.clone().map(|last| {
            let down_seconds = if last.going_back { total_downtime(&last, agent) } else { last.down_seconds };
            LastUpdate { down_seconds, going_back: false, ..last }
        }),
        StepOutcome::MarkedStable(MarkedStable::Update) => Some(LastUpdate {
            applied_at: report.pass.now,
            previous_version: stable,
            version: candidate.unwrap_or_default(),
            successful: true,
            unverified: report.plan.verification.unverified_reason().is_some(),
            going_back: false,
            message: applied_message(report, before),
            down_seconds: downtime(agent).and_then(seconds),
            players: disconnected_players(agent),
        }),
        // The roll-back may wait for a user for days. Until then the status must not show the successful update before it. The downtime is
        // unknown while the server does not start.
        StepOutcome::MarkedFailed => {
            let versions = (stable, candidate.unwrap_or_default());
            Some(failed_update(report, versions, downtime(agent).and_then(seconds), false))
        }
        StepOutcome::RolledBack { .. } => {
            let versions = (candidate, stable.unwrap_or_default());
            Some(failed_update(report, versions, downtime_so_far(agent, report.pass.now), true))
        }
        StepOutcome::Created
        | StepOutcome::StagingRequested
        | StepOutcome::Announced { .. }
        | StepOutcome::Reannounced { .. }
        | StepOutcome::Saved { .. }
        | StepOutcome::TemplateWritten
        | StepOutcome::Committed { .. }
        | StepOutcome::Restored
        | StepOutcome::RestoreScheduled
        | StepOutcome::PluginDataRestoreRequested
        // A restart is no update.
        | StepOutcome::Restarting { .. }
        | StepOutcome::Restarted
        | StepOutcome::ScaledToZero { .. }
        // A drain is no update.
        | StepOutcome::DrainBegun
        | StepOutcome::DrainEnded
        | StepOutcome::AnnouncementCancelled
        | StepOutcome::Nothing => before.last_update.clone(),
    }
}

/// A failed update, between these two versions.
fn failed_update(
    report: &PassReport<'_>,
    (previous_version, version): (Option<String>, String),
    down_seconds: Option<u32>,
    going_back: bool,
) -> LastUpdate {
    LastUpdate {
        applied_at: report.pass.now,
        previous_version,
        version,
        successful: false,
        unverified: false,
        going_back,
        message: cut(&failure_reason(report), 1_024),
        down_seconds,
        players: disconnected_players(report.pass.observed.reply.report.as_deref()),
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
fn downtime_so_far(agent: Option<&agent_api::AgentReport>, now: Timestamp) -> Option<u32> {
    downtime(agent).or_else(|| Some(now.duration_since(last_exit_at(agent)?))).and_then(seconds)
}

/// The same once the earlier set is up again.
fn total_downtime(last: &LastUpdate, agent: Option<&agent_api::AgentReport>) -> Option<u32> {
    let before = last.down_seconds.filter(|_| was_stopped_again(last, agent));
    Some(before.unwrap_or(0) + downtime(agent).and_then(seconds)?)
}

/// Whether the roll-back stopped the server once more. That is the case for a failed set that was up, and not for one that never started.
pub(in super::super) fn was_stopped_again(last: &LastUpdate, agent: Option<&agent_api::AgentReport>) -> bool {
    last_exit_at(agent).is_some_and(|stopped| last.applied_at < stopped)
}

/// The changes of an update that was kept, after the reason why it is not verified.
fn applied_message(report: &PassReport<'_>, before: &PaperMCServerStatus) -> String {
    let changes = before.update.clone().unwrap_or_else(|| report.plan.target.describe_changes());
    let prefix =
        report.plan.verification.unverified_reason().map(|problem| format!("not verified: {}. ", cut(problem, 512)));
    cut(&format!("{}{changes}", prefix.unwrap_or_default()), 1_024)
}

#[cfg(test)]
mod tests {
    use scheduler::observation::{Revision, Verification};
    use scheduler::rollout::{Step, WaitingOn};
    use serde_json::json;

    use super::*;
    use crate::server::report::stop_reason;
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
        pass.observed.stable_lock = Some(record(129));
        pass.plan.verification = VerificationResult { result: Verification::Failed, problem: WHY.to_owned() };
        (pass.step, pass.done) = (Step::MarkFailed { revision: Revision(2) }, StepOutcome::MarkedFailed);
        pass
    }

    #[test]
    fn failed_update_stays_in_status_while_decision_is_pending() {
        let pass = marked_failed();
        let last = pass.status().last_update.unwrap();
        assert_eq!((last.version.as_str(), last.previous_version.as_deref()), ("1.21.10-130", Some("1.21.10-129")));
        assert_eq!((last.successful, last.unverified, last.going_back), (false, false, false));
        assert_eq!((last.message.as_str(), last.applied_at), (WHY, pass.report().pass.now));
        let mut pass = pass.next();
        pass.step = Step::Wait(WaitingOn::NoBackup);
        assert_eq!(pass.status().last_update, Some(last));
    }

    #[test]
    fn failed_update_stop_is_counted_at_rollback() {
        let pass = marked_failed();
        assert_eq!(stop_reason(&pass.report(), &pass.before), None);
        let mut pass = pass.next();
        pass.done = StepOutcome::RolledBack { agent_unreachable: false };
        assert_eq!(stop_reason(&pass.report(), &pass.before), Some("update"));
        let last = pass.status().last_update.unwrap();
        assert_eq!((last.version.as_str(), last.previous_version.as_deref()), ("1.21.10-129", Some("1.21.10-130")));
        assert_eq!((last.successful, last.going_back, last.message.as_str()), (false, true, WHY));
    }

    #[test]
    fn first_start_after_failed_one_is_no_rollback() {
        let mut pass = Pass::new();
        (pass.observed.facts.settled, pass.observed.stable_lock) = (None, None);
        pass.done = StepOutcome::RolledBack { agent_unreachable: false };
        let mut pass = pass.next();
        assert!(pass.before.last_update.as_ref().unwrap().going_back);
        pass.done = StepOutcome::MarkedStable(MarkedStable::First);
        assert!(!pass.status().last_update.unwrap().going_back);
    }
}
