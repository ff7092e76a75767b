use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::*;
use crate::server::crash_loop::process_state;
use crate::server::in_game_stop::verification_began;

#[test]
fn verification_fails_crashing_server_without_agent() {
    let (files, earlier_baseline) = (files(&["ViaVersion"]), baseline(&[], &[]));
    let settle = SignedDuration::from_secs(60);
    let stays = VerificationTarget {
        files: &files,
        before: None,
        baseline: &earlier_baseline,
        settle,
        began: at(90),
        reachable_from: at(90),
        process: ProcessState::Running,
        other_image: None,
        bundled: &[],
    };
    let ends = VerificationTarget { process: ProcessState::Exited { times: 3 }, ..stays };
    let over = at(90) + VERIFICATION_TIMEOUT;
    assert_eq!(verify(None, &stays, over).result, Verification::Inconclusive);
    assert_eq!(verify(None, &ends, over).result, Verification::Failed);
    let until = over + settle;
    let again = VerificationTarget { process: ProcessState::Restarting { until }, ..stays };
    assert_eq!(verify(None, &again, over).result, Verification::Pending { until }, "the process was restarted");
    let before = verify(None, &ends, over - SignedDuration::from_secs(1));
    assert_eq!(before.result, Verification::Pending { until: over }, "server and agent may still recover");
}

#[test]
fn verification_fails_after_five_exits_except_first_start() {
    let (files, earlier_baseline) = (files(&["ViaVersion"]), baseline(&[], &[]));
    let after = |times, before| VerificationTarget {
        files: &files,
        before,
        baseline: &earlier_baseline,
        settle: SignedDuration::from_secs(60),
        began: at(90),
        reachable_from: at(90),
        process: ProcessState::Exited { times },
        other_image: None,
        bundled: &[],
    };
    let absent = AgentReport { server: Server::Absent, ..report(&[]) };
    for report in [Some(&absent), None] {
        let waits = Verification::Pending { until: at(90) + VERIFICATION_TIMEOUT };
        let (soonest, before) = (at(90) + MIN_TIME_BEFORE_FAILURE, Some(&files));
        assert_eq!(verify(report, &after(4, before), soonest).result, waits);
        assert_eq!(verify(report, &after(5, before), soonest - SignedDuration::from_secs(1)).result, waits);
        assert_eq!(verify(report, &after(5, None), soonest).result, waits, "a first start cannot be rolled back");
        let failed = verify(report, &after(5, before), soonest);
        assert_eq!(
            (failed.result, failed.problem.as_str()),
            (Verification::Failed, "the server's process exited 5 times")
        );
    }
}

const SETTLE: SignedDuration = SignedDuration::from_mins(1);

fn minute(of: i64) -> Timestamp {
    at(60 * of)
}

/// A pod created at minute 0 whose backup took until minute `prepared`, with this status of the server's container.
fn pod(prepared: i64, server: &Value) -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": "lobby-0"},
        "status": {
            "startTime": minute(0).to_string(),
            "conditions": [{"type": "Initialized", "status": "True", "lastTransitionTime": minute(prepared).to_string()}],
            "containerStatuses": [server],
        },
    }))
    .unwrap()
}

/// The pod of a server that first answered in this minute.
fn answered(prepared: i64, server: &Value, answered: i64) -> Pod {
    let mut pod = pod(prepared, server);
    let conditions = pod.status.as_mut().and_then(|status| status.conditions.as_mut()).unwrap();
    let ready =
        json!({"type": "ContainersReady", "status": "True", "lastTransitionTime": minute(answered).to_string()});
    conditions.push(serde_json::from_value(ready).unwrap());
    pod
}

fn server(restarts: u32, is_up: bool, state: &Value, last: &Value) -> Value {
    json!({
        "name": "papermc", "image": "", "imageID": "", "ready": is_up, "restartCount": restarts, "started": is_up,
        "state": state, "lastState": last,
    })
}

/// A server that has run since this minute and has answered.
fn up(since: i64) -> Value {
    server(0, true, &json!({"running": {"startedAt": minute(since).to_string()}}), &json!({}))
}

/// A server with this number of restarts, whose last process ran for a minute from this one on.
fn crashed(restarts: u32, began: i64) -> Value {
    let (began, ended) = (minute(began).to_string(), minute(began + 1).to_string());
    let last = json!({"terminated": {"exitCode": 1, "startedAt": began, "finishedAt": ended}});
    server(restarts, false, &json!({"waiting": {"reason": "CrashLoopBackOff"}}), &last)
}

fn result(pod: &Pod, report: Option<&AgentReport>, before: bool, now: i64) -> VerificationResult {
    let (files, earlier_baseline) = (files(&["ViaVersion"]), baseline(&["ViaVersion"], &[]));
    let expected = VerificationTarget {
        files: &files,
        before: before.then_some(&files),
        baseline: &earlier_baseline,
        settle: SETTLE,
        began: verification_began(pod).unwrap(),
        reachable_from: reachable_from(pod).unwrap(),
        process: process_state(pod, SETTLE, minute(now)),
        other_image: None,
        bundled: &[],
    };
    verify(report, &expected, minute(now))
}

/// The result while the agent is unreachable.
fn without_agent(pod: &Pod, now: i64) -> Verification {
    result(pod, None, true, now).result
}

/// The result while the agent reports no process.
fn without_process(pod: &Pod, now: i64) -> Verification {
    result(pod, Some(&AgentReport { server: Server::Absent, ..report(&[]) }), true, now).result
}

fn until(of: i64) -> Verification {
    Verification::Pending { until: minute(of) }
}

#[test]
fn verification_waits_for_lost_report_after_long_backup() {
    let slow = pod(16, &up(16));
    assert_eq!([without_agent(&slow, 17), without_agent(&slow, 30)], [until(31); 2]);
    assert_eq!(without_agent(&slow, 31), Verification::Inconclusive, "the wait is limited");
}

#[test]
fn verification_waits_for_lost_report_after_long_migration() {
    let moved = answered(16, &up(16), 600);
    assert_eq!([without_agent(&moved, 601), without_agent(&moved, 615)], [until(615), Verification::Inconclusive]);
}

#[test]
fn verification_forgives_one_crash_after_long_backup() {
    let (fast, slow) = (pod(0, &crashed(1, 1)), pod(16, &crashed(1, 17)));
    assert_eq!(
        [without_process(&fast, 2), without_process(&fast, 14), without_process(&fast, 15)],
        [until(15), until(15), Verification::Failed]
    );
    assert_eq!(
        [without_process(&slow, 18), without_process(&slow, 30), without_process(&slow, 31)],
        [until(31), until(31), Verification::Failed]
    );
}

#[test]
fn verification_forgives_one_crash_after_long_migration() {
    let moved = pod(16, &crashed(1, 600));
    assert_eq!([without_process(&moved, 601), without_process(&moved, 615)], [until(615), Verification::Failed]);
}

#[test]
fn verification_ends_for_crashing_server_after_late_answer() {
    for restarts in 1..4 {
        assert_eq!(without_process(&pod(16, &crashed(restarts, 600)), 601), until(615), "{restarts}");
    }
    for restarts in 4..9 {
        let ended = pod(16, &crashed(restarts, 600));
        assert_eq!([without_process(&ended, 601), without_agent(&ended, 601)], [Verification::Failed; 2], "{restarts}");
    }
    // A first start has no roll-back, and is not waited for either.
    let deleted = AgentReport { server: Server::Absent, ..report(&[]) };
    assert_eq!(
        result(&pod(16, &crashed(4, 600)), Some(&deleted), false, 601).problem,
        "the server does not keep \
    running"
    );
}

#[test]
fn verification_allows_same_crash_time_after_long_backup() {
    let (fast, slow) = (pod(0, &crashed(4, 3)), pod(16, &crashed(4, 19)));
    assert_eq!([without_process(&fast, 4), without_process(&fast, 5)], [until(15), Verification::Failed]);
    assert_eq!([without_process(&slow, 20), without_process(&slow, 21)], [until(31), Verification::Failed]);
}

#[test]
fn verification_deadline_of_fast_start_ignores_restarts() {
    assert_eq!(
        [without_agent(&pod(0, &up(0)), 14), without_agent(&pod(0, &up(0)), 15)],
        [until(15), Verification::Inconclusive]
    );
    for restarts in 1..4 {
        let ended = pod(0, &crashed(restarts, 13));
        assert_eq!(
            [without_process(&ended, 14), without_process(&ended, 15)],
            [until(15), Verification::Failed],
            "{restarts}"
        );
    }
}
