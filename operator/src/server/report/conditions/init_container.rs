//! Pure. Reports why `prepare` does not let the server start while it retries. No agent is reachable then.

use crate::server::report::context::PassReport;
use crate::server::report::refusal::init_message;

/// The last error of `prepare`, as a suffix. Empty once it has succeeded. Its current activity is only in its log.
pub(super) fn error_suffix(report: &PassReport<'_>) -> String {
    init_message(report)
        .map_or_else(String::new, |why| format!(" `prepare` failed and is retrying. Its last error: {why}"))
}

/// Why the stable set does not start.
pub(super) fn down_reason(report: &PassReport<'_>) -> String {
    let since = if report.plan.observation.is_restarted() { " since its restart" } else { "" };
    let why = init_message(report).map_or_else(
        || ". See the server's log.".to_owned(),
        |why| format!(". `prepare` retries automatically. Its last error: {why}"),
    );
    format!("The stable version set does not start{since}{why}")
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use scheduler::observation::{PodPhase, PodView};
    use scheduler::rollout::{Step, WaitingOn};
    use serde_json::{Value, json};

    use crate::server::report::tests::Pass;

    const WHY: &str = "could not ask for the lock on `/data/world_old/session.lock`";

    /// A pod that has not started, with this status of `prepare`.
    fn starting(state: &Value, last_state: &Value) -> Pass {
        let mut pass = Pass::new();
        let until = Timestamp::UNIX_EPOCH;
        pass.plan.observation.pod =
            pass.plan.observation.pod.map(|pod| PodView { phase: PodPhase::Starting { deadline: until }, ..pod });
        let pod = json!({"metadata": {"name": "lobby-0"}, "status": {"initContainerStatuses": [{
            "name": "prepare", "image": "", "imageID": "", "ready": false, "restartCount": 1, "state": state, "lastState": last_state,
        }]}});
        pass.observed.pod = Some(serde_json::from_value(pod).unwrap());
        pass
    }

    fn message(pass: &Pass, of: &str) -> String {
        pass.status().conditions.into_iter().find(|condition| condition.type_ == of).unwrap().message
    }

    #[test]
    fn init_container_failure_is_reported_until_start_succeeds() {
        let terminated = json!({"terminated": {"exitCode": 1, "message": WHY}});
        let mut pass = starting(&json!({"running": {}}), &terminated);
        assert_eq!(
            message(&pass, "Ready"),
            format!("The server is starting. `prepare` failed and is retrying. Its last error: {WHY}")
        );
        pass.step = Step::Wait(WaitingOn::Start { until: Timestamp::UNIX_EPOCH });
        assert!(
            message(&pass, "Updating")
                .ends_with(&format!("to start. `prepare` failed and is retrying. Its last error: {WHY}"))
        );
        pass.step = Step::Wait(WaitingOn::ServerDown);
        let down = message(&pass, "Updating");
        assert!(
            down.starts_with("The stable version set does not start. `prepare` retries automatically.")
                && down.ends_with(WHY),
            "{down}"
        );

        let mut over = starting(&json!({"terminated": {"exitCode": 0}}), &terminated);
        assert_eq!(message(&over, "Ready"), "The server is starting.");
        over.step = Step::Wait(WaitingOn::ServerDown);
        assert_eq!(message(&over, "Updating"), "The stable version set does not start. See the server's log.");
    }
}
