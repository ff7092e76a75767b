//! Pure. Determines why a set failed, for the Event, `status.lastUpdate` and the notifications.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use scheduler::observation::PodPhase;

use super::backup::missing_backup_reason;
use super::context::PassReport;
use super::refusal::init_message;
use crate::error_chain::cut;
use crate::server::crash_loop::format_exit;
use crate::server::observe::{has_refused, init_status, last_termination, server_status};

/// The reason, never empty. A pod whose init container refused the start has no verification, and one that never came up has no finished
/// one.
pub(super) fn failure_reason(report: &PassReport<'_>) -> String {
    let verification_problem = || report.plan.verification.unverified_reason().map(str::to_owned);
    let reported = init_message(report)
        .map(|why| init_failure_reason(report, why))
        .or_else(|| missing_backup_reason(report))
        .or_else(verification_problem);
    let phase = report.plan.observation.pod.map(|pod| pod.phase);
    reported.unwrap_or_else(|| reason_without_message(phase, report.pass.observed.pod.as_ref()))
}

/// The reason that `prepare` reported. If it did not refuse but is retrying, its last error may be solved, and another problem may have
/// caused the failure.
fn init_failure_reason(report: &PassReport<'_>, why: String) -> String {
    if report.pass.observed.pod.as_ref().and_then(init_status).is_some_and(has_refused) {
        return why;
    }
    format!("the server did not start by its deadline. The last error of `prepare`: {why}")
}

/// The reason for a pod that has reported none itself.
fn reason_without_message(phase: Option<PodPhase>, pod: Option<&Pod>) -> String {
    let kubelet_message = pod
        .and_then(server_status)
        .and_then(kubelet_reason)
        .map(|kubelet_message| format!(": {kubelet_message}"))
        .unwrap_or_default();
    match phase {
        Some(PodPhase::Refused) => "the agent refused to open the world: see the log of container `prepare`".to_owned(),
        Some(PodPhase::Down) => {
            format!("the server's process exited{kubelet_message}. See the log of container `papermc`")
        }
        Some(PodPhase::Up) => "it became healthy too late: the Event `UpdateFailed` has the first failure".to_owned(),
        Some(PodPhase::Pending | PodPhase::Starting { .. } | PodPhase::Stopping { .. }) | None => {
            format!("the server did not start by its deadline{kubelet_message}. See the log of container `papermc`")
        }
    }
}

/// The kubelet's message about a container that does not run, or its last exit.
fn kubelet_reason(container: &ContainerStatus) -> Option<String> {
    let waiting = container.state.as_ref().and_then(|state| state.waiting.as_ref());
    // These reasons only mean that the container waits for the one before it, or for its next attempt.
    let reason = waiting.and_then(|waiting| {
        let reason = waiting
            .reason
            .as_deref()
            .filter(|reason| !["PodInitializing", "ContainerCreating", "CrashLoopBackOff"].contains(reason))?;
        let message = waiting.message.as_deref().map(|message| format!(" ({})", cut(message, 512))).unwrap_or_default();
        Some(format!("{reason}{message}"))
    });
    let ended = || last_termination(container).map(|ended| format!("its process exited with {}", format_exit(ended)));
    reason.or_else(ended)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use scheduler::observation::Verification;
    use serde_json::{Value, json};

    use super::*;
    use crate::server::report::tests::Pass;
    use crate::server::verify::VerificationResult;

    const LATE: Option<PodPhase> = Some(PodPhase::Starting { deadline: Timestamp::UNIX_EPOCH });

    fn pod(state: &Value, last_state: &Value) -> Pod {
        serde_json::from_value(json!({"metadata": {"name": "lobby-0"}, "status": {"containerStatuses": [
            {"name": "papermc", "ready": false, "restartCount": 1, "image": "", "imageID": "", "state": state, "lastState": last_state},
        ]}}))
        .unwrap()
    }

    #[test]
    fn failure_reason_includes_kubelet_state() {
        let reason_of = |state: Value, last_state: Value| reason_without_message(LATE, Some(&pod(&state, &last_state)));
        let silent = "the server did not start by its deadline. See the log of container `papermc`";
        assert_eq!(reason_without_message(LATE, None), silent);
        assert_eq!(reason_of(json!({"running": {}}), json!({})), silent);
        assert_eq!(reason_of(json!({"waiting": {"reason": "PodInitializing"}}), json!({})), silent);
        assert_eq!(
            reason_of(json!({"waiting": {"reason": "ImagePullBackOff", "message": "no such tag"}}), json!({})),
            "the server did not start by its deadline: ImagePullBackOff (no such tag). See the log of container `papermc`"
        );
        let crashed =
            reason_of(json!({"waiting": {"reason": "CrashLoopBackOff"}}), json!({"terminated": {"exitCode": 1}}));
        assert!(crashed.contains("deadline: its process exited with exit code 1. See"), "{crashed}");
    }

    #[test]
    fn failure_reason_is_never_empty() {
        for phase in [LATE, Some(PodPhase::Up), Some(PodPhase::Down), Some(PodPhase::Refused), None] {
            assert!(!reason_without_message(phase, None).is_empty(), "{phase:?}");
        }
    }

    #[test]
    fn failure_reason_prefers_refusal_then_verification() {
        let mut pass = Pass::new();
        pass.plan.observation.pod =
            pass.plan.observation.pod.map(|pod| scheduler::observation::PodView { phase: LATE.unwrap(), ..pod });
        let pending = Verification::Pending { until: Timestamp::UNIX_EPOCH };
        pass.plan.verification = VerificationResult { result: pending, problem: String::new() };
        assert!(failure_reason(&pass.report()).starts_with("the server did not start by its deadline"));
        pass.plan.verification =
            VerificationResult { result: Verification::Failed, problem: "Shop did not enable".to_owned() };
        assert_eq!(failure_reason(&pass.report()), "Shop did not enable");
        pass.observed.pod = Some(
            serde_json::from_value(json!({"status": {"initContainerStatuses": [{
                "name": "prepare", "ready": false, "restartCount": 0, "image": "", "imageID": "",
                "state": {"terminated": {"exitCode": 3, "message": "a world cannot go back"}},
            }]}}))
            .unwrap(),
        );
        assert_eq!(failure_reason(&pass.report()), "a world cannot go back");
        pass.observed.pod = Some(
            serde_json::from_value(json!({"status": {"initContainerStatuses": [{
                "name": "prepare", "ready": false, "restartCount": 1, "image": "", "imageID": "", "state": {"running": {}},
                "lastState": {"terminated": {"exitCode": 1, "message": "could not fetch a.jar"}},
            }]}}))
            .unwrap(),
        );
        let late = "the server did not start by its deadline. The last error of `prepare`: could not fetch a.jar";
        assert_eq!(failure_reason(&pass.report()), late, "the last error of a retry is not the reason");
    }
}
