//! Pure. Reports why `prepare` does not let the server start while it retries. No agent is reachable then.

use super::super::PassReport;
use super::refusal;

/// The last error of `prepare`, as a suffix. Empty once it has succeeded. Its current activity is only in its log.
pub(super) fn awaited(report: &PassReport<'_>) -> String {
    refusal(report)
        .map_or_else(String::new, |why| format!("; `prepare` has told of this, and is at it again since: {why}"))
}

/// Why the stable set does not start.
pub(super) fn why_down(report: &PassReport<'_>) -> String {
    let since = if report.plan.seen.is_restarted() { " since its restart" } else { "" };
    let why = refusal(report).map_or_else(
        || "; see the server's log".to_owned(),
        |why| format!(": `prepare` has told of this, and tries again by itself: {why}"),
    );
    format!("the settled set does not come up{since}{why}")
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
        pass.plan.seen.pod =
            pass.plan.seen.pod.map(|pod| PodView { life: PodPhase::Starting { gives_up_at: until }, ..pod });
        let pod = json!({"metadata": {"name": "lobby-0"}, "status": {"initContainerStatuses": [{
            "name": "prepare", "image": "", "imageID": "", "ready": false, "restartCount": 1, "state": state, "lastState": last_state,
        }]}});
        pass.seen.pod = Some(serde_json::from_value(pod).unwrap());
        pass
    }

    fn message(pass: &Pass, of: &str) -> String {
        pass.status().conditions.into_iter().find(|condition| condition.type_ == of).unwrap().message
    }

    #[test]
    fn init_container_failure_is_reported_until_start_succeeds() {
        let told = json!({"terminated": {"exitCode": 1, "message": WHY}});
        let mut pass = starting(&json!({"running": {}}), &told);
        assert_eq!(
            message(&pass, "Ready"),
            format!("the server is starting; `prepare` has told of this, and is at it again since: {WHY}")
        );
        pass.step = Step::Wait(WaitingOn::Start { until: Timestamp::UNIX_EPOCH });
        assert!(
            message(&pass, "Updating")
                .ends_with(&format!("to start; `prepare` has told of this, and is at it again since: {WHY}"))
        );
        pass.step = Step::Wait(WaitingOn::ServerDown);
        let down = message(&pass, "Updating");
        assert!(
            down.starts_with("the settled set does not come up: `prepare` has told of this, and tries again")
                && down.ends_with(WHY),
            "{down}"
        );

        let mut over = starting(&json!({"terminated": {"exitCode": 0}}), &told);
        assert_eq!(message(&over, "Ready"), "the server is starting");
        over.step = Step::Wait(WaitingOn::ServerDown);
        assert_eq!(message(&over, "Updating"), "the settled set does not come up; see the server's log");
    }
}
