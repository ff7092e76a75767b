//! Pure. Detects a server that was stopped in the game with `/stop`. The kubelet starts it again with the same files, so this is a restart
//! by a user and no crash. It is no reason for a roll-back.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ContainerState, Pod};

use super::observe::server_status;

/// How long after the start of the pod, or after the work before its server could start, a `/stop` restarts the verification time. A server
/// that exits repeatedly without an error must not be waited for without end.
const RESTARTS_VERIFICATION_FOR: SignedDuration = SignedDuration::from_mins(45);

/// When the server's process last exited, if it exited by itself with code 0. Java does so after `/stop` and `/restart`, but not after a
/// crash, a kill or a watchdog.
pub(crate) fn stopped_at(pod: &Pod) -> Option<Timestamp> {
    let server = server_status(pod)?;
    let ended = |state: &Option<ContainerState>| state.as_ref()?.terminated.clone();
    let ended = ended(&server.state).or_else(|| ended(&server.last_state))?;
    if ended.exit_code == 0 { ended.finished_at.map(|at| at.0) } else { None }
}

/// When the verification time of this pod began: at its start, or at the last `/stop`.
pub(crate) fn verification_began(pod: &Pod) -> Option<Timestamp> {
    Some(start_or_last_stop(pod, pod.status.as_ref()?.start_time.as_ref()?.0))
}

/// This start, or the last `/stop` after it.
pub(crate) fn start_or_last_stop(pod: &Pod, started: Timestamp) -> Timestamp {
    let stopped = stopped_at(pod).unwrap_or(started).min(started + RESTARTS_VERIFICATION_FOR);
    started.max(stopped)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_second(60 * minute).unwrap()
    }

    /// A pod that started at minute 100, with these container states.
    fn pod(state: &Value, last_state: &Value) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "lobby-0"},
            "status": {"startTime": at(100).to_string(), "containerStatuses": [
                {"name": "papermc", "ready": false, "restartCount": 1, "image": "", "imageID": "",
                 "state": state, "lastState": last_state},
            ]},
        }))
        .unwrap()
    }

    fn ended(exit_code: i32, minute: i64) -> Value {
        json!({"terminated": {"exitCode": exit_code, "finishedAt": at(minute).to_string()}})
    }

    #[test]
    fn in_game_stop_differs_from_crash_by_exit_code() {
        let runs = json!({"running": {"startedAt": at(115).to_string()}});
        let waits = json!({"waiting": {"reason": "CrashLoopBackOff"}});
        assert_eq!(stopped_at(&pod(&runs, &ended(0, 114))), Some(at(114)));
        assert_eq!(stopped_at(&pod(&waits, &ended(0, 114))), Some(at(114)));
        assert_eq!(stopped_at(&pod(&ended(0, 114), &json!({}))), Some(at(114)));
        assert_eq!(stopped_at(&pod(&runs, &ended(1, 114))), None, "a crash");
        assert_eq!(stopped_at(&pod(&runs, &ended(137, 114))), None, "killed for lack of memory");
        assert_eq!(stopped_at(&pod(&ended(1, 120), &ended(0, 114))), None, "the last exit counts");
        assert_eq!(stopped_at(&pod(&runs, &json!({}))), None);
    }

    #[test]
    fn in_game_stop_restarts_verification_time_within_limit() {
        let waits = json!({"waiting": {}});
        let began = |last: &Value| verification_began(&pod(&waits, last)).unwrap();
        assert_eq!(began(&ended(1, 114)), at(100));
        assert_eq!(began(&ended(0, 114)), at(114));
        assert_eq!(began(&ended(0, 400)), at(145));
        assert_eq!(began(&ended(0, 90)), at(100), "the clock of the node is wrong");
    }
}
