//! Pure. A server that was stopped in its place: `/stop` in the game, which the kubelet answers with a start of the same files.
//! That is a restart by a person and no crash: it is no reason to go back to anything.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ContainerState, Pod};

use super::observe::server_of;

/// For how long after the start of its pod, or after what was done before its server could start, a stop by a person gives the proof its
/// time anew. A server that ends by itself without an error, again and again, must not be waited for without end.
const COUNTS_FOR: SignedDuration = SignedDuration::from_mins(45);

/// When the server's process ended last by itself and without an error, if that is how it ended last. Java ends so after
/// `/stop` and `/restart`; after a crash, a kill or a watchdog it does not.
pub(crate) fn stopped_at(pod: &Pod) -> Option<Timestamp> {
    let server = server_of(pod)?;
    let ended = |state: &Option<ContainerState>| state.as_ref()?.terminated.clone();
    let ended = ended(&server.state).or_else(|| ended(&server.last_state))?;
    if ended.exit_code == 0 { ended.finished_at.map(|at| at.0) } else { None }
}

/// When the time began in which this pod has to prove itself: its start, or the last stop by a person.
pub(crate) fn proof_began(pod: &Pod) -> Option<Timestamp> {
    Some(or_last_stop(pod, pod.status.as_ref()?.start_time.as_ref()?.0))
}

/// This start, or the last stop by a person after it.
pub(crate) fn or_last_stop(pod: &Pod, started: Timestamp) -> Timestamp {
    let stopped = stopped_at(pod).unwrap_or(started).min(started + COUNTS_FOR);
    started.max(stopped)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_second(60 * minute).unwrap()
    }

    /// A pod that started at minute 100, whose server's container is so.
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
    fn a_stop_by_a_person_is_told_from_a_crash_by_how_the_process_ended() {
        let runs = json!({"running": {"startedAt": at(115).to_string()}});
        let waits = json!({"waiting": {"reason": "CrashLoopBackOff"}});
        assert_eq!(stopped_at(&pod(&runs, &ended(0, 114))), Some(at(114)));
        assert_eq!(stopped_at(&pod(&waits, &ended(0, 114))), Some(at(114)));
        assert_eq!(stopped_at(&pod(&ended(0, 114), &json!({}))), Some(at(114)));
        assert_eq!(stopped_at(&pod(&runs, &ended(1, 114))), None, "a crash");
        assert_eq!(stopped_at(&pod(&runs, &ended(137, 114))), None, "killed for its memory");
        assert_eq!(stopped_at(&pod(&ended(1, 120), &ended(0, 114))), None, "the last end counts");
        assert_eq!(stopped_at(&pod(&runs, &json!({}))), None);
    }

    #[test]
    fn a_stop_by_a_person_gives_the_proof_its_time_anew_but_not_for_ever() {
        let waits = json!({"waiting": {}});
        let began = |last: &Value| proof_began(&pod(&waits, last)).unwrap();
        assert_eq!(began(&ended(1, 114)), at(100));
        assert_eq!(began(&ended(0, 114)), at(114));
        assert_eq!(began(&ended(0, 400)), at(145));
        assert_eq!(began(&ended(0, 90)), at(100), "the clock of the node is wrong");
    }
}
