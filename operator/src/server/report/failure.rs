//! Pure. Determines why a set failed, for the Event, `status.lastUpdate` and the notifications.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use scheduler::observation::PodPhase;

use super::PassReport;
use super::backup::failed_for;
use super::conditions::refusal;
use crate::error_chain::cut;
use crate::server::crash_loop::end_in_words;
use crate::server::observe::{has_refused, last_end, prepare_of, server_of};

/// The reason, never empty. A pod whose init container refused the start has no verification, and one that never came up has no finished
/// one.
pub(super) fn why_it_failed(report: &PassReport<'_>) -> String {
    let proof = || report.plan.proof.unproven().map(str::to_owned);
    let said = refusal(report).map(|why| as_of_prepare(report, why)).or_else(|| failed_for(report)).or_else(proof);
    let life = report.plan.seen.pod.map(|pod| pod.life);
    said.unwrap_or_else(|| without_a_word(life, report.seen.pod.as_ref()))
}

/// The reason that `prepare` reported. If it did not refuse but is retrying, its last error may be solved, and another problem may have
/// caused the failure.
fn as_of_prepare(report: &PassReport<'_>, why: String) -> String {
    if report.seen.pod.as_ref().and_then(prepare_of).is_some_and(has_refused) {
        return why;
    }
    format!("the server did not come up by its deadline; the last that `prepare` told of was: {why}")
}

/// The reason for a pod that has reported none itself.
fn without_a_word(life: Option<PodPhase>, pod: Option<&Pod>) -> String {
    let seen = pod.and_then(server_of).and_then(by_the_kubelet).map(|seen| format!(": {seen}")).unwrap_or_default();
    match life {
        Some(PodPhase::Refused) => "the agent refused to open the world; see the log of container `prepare`".to_owned(),
        Some(PodPhase::Down) => format!("the server's process is gone{seen}; see the log of container `papermc`"),
        Some(PodPhase::Up) => {
            "it was well too late; what failed at first stands in the Event `UpdateFailed`".to_owned()
        }
        Some(PodPhase::Starting { .. } | PodPhase::Stopping { .. }) | None => {
            format!("the server did not come up by its deadline{seen}; see the log of container `papermc`")
        }
    }
}

/// The kubelet's message about a container that does not run, or its last exit.
fn by_the_kubelet(container: &ContainerStatus) -> Option<String> {
    let waiting = container.state.as_ref().and_then(|state| state.waiting.as_ref());
    // These reasons only mean that the container waits for the one before it, or for its next attempt.
    let reason = waiting.and_then(|waiting| {
        let reason = waiting
            .reason
            .as_deref()
            .filter(|it| !["PodInitializing", "ContainerCreating", "CrashLoopBackOff"].contains(it))?;
        let message = waiting.message.as_deref().map(|message| format!(" ({})", cut(message, 512))).unwrap_or_default();
        Some(format!("{reason}{message}"))
    });
    let ended = || last_end(container).map(|ended| format!("its process ended with {}", end_in_words(ended)));
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

    const LATE: Option<PodPhase> = Some(PodPhase::Starting { gives_up_at: Timestamp::UNIX_EPOCH });

    fn pod(state: &Value, last_state: &Value) -> Pod {
        serde_json::from_value(json!({"metadata": {"name": "lobby-0"}, "status": {"containerStatuses": [
            {"name": "papermc", "ready": false, "restartCount": 1, "image": "", "imageID": "", "state": state, "lastState": last_state},
        ]}}))
        .unwrap()
    }

    #[test]
    fn failure_reason_includes_kubelet_state() {
        let says = |state: Value, last_state: Value| without_a_word(LATE, Some(&pod(&state, &last_state)));
        let silent = "the server did not come up by its deadline; see the log of container `papermc`";
        assert_eq!(without_a_word(LATE, None), silent);
        assert_eq!(says(json!({"running": {}}), json!({})), silent);
        assert_eq!(says(json!({"waiting": {"reason": "PodInitializing"}}), json!({})), silent);
        assert_eq!(
            says(json!({"waiting": {"reason": "ImagePullBackOff", "message": "no such tag"}}), json!({})),
            "the server did not come up by its deadline: ImagePullBackOff (no such tag); see the log of container `papermc`"
        );
        let crashed = says(json!({"waiting": {"reason": "CrashLoopBackOff"}}), json!({"terminated": {"exitCode": 1}}));
        assert!(crashed.contains("deadline: its process ended with exit code 1; see"), "{crashed}");
    }

    #[test]
    fn failure_reason_is_never_empty() {
        for life in [LATE, Some(PodPhase::Up), Some(PodPhase::Down), Some(PodPhase::Refused), None] {
            assert!(!without_a_word(life, None).is_empty(), "{life:?}");
        }
    }

    #[test]
    fn failure_reason_prefers_refusal_then_verification() {
        let mut pass = Pass::new();
        pass.plan.seen.pod =
            pass.plan.seen.pod.map(|pod| scheduler::observation::PodView { life: LATE.unwrap(), ..pod });
        let pending = Verification::Pending { until: Timestamp::UNIX_EPOCH };
        pass.plan.proof = VerificationResult { verdict: pending, problem: String::new() };
        assert!(why_it_failed(&pass.report()).starts_with("the server did not come up by its deadline"));
        pass.plan.proof =
            VerificationResult { verdict: Verification::Failed, problem: "Shop did not enable".to_owned() };
        assert_eq!(why_it_failed(&pass.report()), "Shop did not enable");
        pass.seen.pod = Some(
            serde_json::from_value(json!({"status": {"initContainerStatuses": [{
                "name": "prepare", "ready": false, "restartCount": 0, "image": "", "imageID": "",
                "state": {"terminated": {"exitCode": 3, "message": "a world cannot go back"}},
            }]}}))
            .unwrap(),
        );
        assert_eq!(why_it_failed(&pass.report()), "a world cannot go back");
        pass.seen.pod = Some(
            serde_json::from_value(json!({"status": {"initContainerStatuses": [{
                "name": "prepare", "ready": false, "restartCount": 1, "image": "", "imageID": "", "state": {"running": {}},
                "lastState": {"terminated": {"exitCode": 1, "message": "could not fetch a.jar"}},
            }]}}))
            .unwrap(),
        );
        let late =
            "the server did not come up by its deadline; the last that `prepare` told of was: could not fetch a.jar";
        assert_eq!(why_it_failed(&pass.report()), late, "what it is at since nobody knows");
    }
}
