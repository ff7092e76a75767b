use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::*;
use crate::server::crash_loop::process_of;
use crate::server::in_game_stop::proof_began;

#[test]
fn verification_fails_crashing_server_without_agent() {
    let (files, known) = (files(&["ViaVersion"]), baseline(&[], &[]));
    let settle = SignedDuration::from_secs(60);
    let stays = VerificationTarget {
        files: &files,
        before: None,
        baseline: &known,
        settle,
        began: at(90),
        asked_from: at(90),
        process: ProcessExit::Stays,
        other_image: None,
    };
    let ends = VerificationTarget { process: ProcessExit::Ends { times: 3 }, ..stays };
    let over = at(90) + ENDS_WITHIN;
    assert_eq!(prove(None, &stays, over).verdict, Verification::Unproven);
    assert_eq!(prove(None, &ends, over).verdict, Verification::Failed);
    let until = over + settle;
    let again = VerificationTarget { process: ProcessExit::Unsettled { until }, ..stays };
    assert_eq!(prove(None, &again, over).verdict, Verification::Pending { until }, "it was started again");
    let before = prove(None, &ends, over - SignedDuration::from_secs(1));
    assert_eq!(before.verdict, Verification::Pending { until: over }, "it may get well, and the agent may speak");
}

#[test]
fn verification_fails_after_five_exits_except_first_start() {
    let (files, known) = (files(&["ViaVersion"]), baseline(&[], &[]));
    let after = |times, before| VerificationTarget {
        files: &files,
        before,
        baseline: &known,
        settle: SignedDuration::from_secs(60),
        began: at(90),
        asked_from: at(90),
        process: ProcessExit::Ends { times },
        other_image: None,
    };
    let absent = AgentReport { server: Server::Absent, ..report(&[]) };
    for said in [Some(&absent), None] {
        let waits = Verification::Pending { until: at(90) + ENDS_WITHIN };
        let (soonest, before) = (at(90) + ENDS_SOONEST, Some(&files));
        assert_eq!(prove(said, &after(4, before), soonest).verdict, waits);
        assert_eq!(prove(said, &after(5, before), soonest - SignedDuration::from_secs(1)).verdict, waits);
        assert_eq!(prove(said, &after(5, None), soonest).verdict, waits, "there is nothing to go back to");
        let failed = prove(said, &after(5, before), soonest);
        assert_eq!(
            (failed.verdict, failed.problem.as_str()),
            (Verification::Failed, "the server's process has ended 5 times")
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

fn proof(pod: &Pod, report: Option<&AgentReport>, before: bool, now: i64) -> VerificationResult {
    let (files, known) = (files(&["ViaVersion"]), baseline(&["ViaVersion"], &[]));
    let expected = VerificationTarget {
        files: &files,
        before: before.then_some(&files),
        baseline: &known,
        settle: SETTLE,
        began: proof_began(pod).unwrap(),
        asked_from: asked_from(pod).unwrap(),
        process: process_of(pod, SETTLE, minute(now)),
        other_image: None,
    };
    prove(report, &expected, minute(now))
}

/// The result while the agent is unreachable.
fn unheard(pod: &Pod, now: i64) -> Verification {
    proof(pod, None, true, now).verdict
}

/// The result while the agent reports no process.
fn absent(pod: &Pod, now: i64) -> Verification {
    proof(pod, Some(&AgentReport { server: Server::Absent, ..report(&[]) }), true, now).verdict
}

fn until(of: i64) -> Verification {
    Verification::Pending { until: minute(of) }
}

#[test]
fn verification_waits_for_lost_report_after_long_backup() {
    let slow = pod(16, &up(16));
    assert_eq!([unheard(&slow, 17), unheard(&slow, 30)], [until(31); 2]);
    assert_eq!(unheard(&slow, 31), Verification::Unproven, "and that ends");
}

#[test]
fn verification_waits_for_lost_report_after_long_migration() {
    let moved = answered(16, &up(16), 600);
    assert_eq!([unheard(&moved, 601), unheard(&moved, 615)], [until(615), Verification::Unproven]);
}

#[test]
fn verification_forgives_one_crash_after_long_backup() {
    let (fast, slow) = (pod(0, &crashed(1, 1)), pod(16, &crashed(1, 17)));
    assert_eq!([absent(&fast, 2), absent(&fast, 14), absent(&fast, 15)], [until(15), until(15), Verification::Failed]);
    assert_eq!([absent(&slow, 18), absent(&slow, 30), absent(&slow, 31)], [until(31), until(31), Verification::Failed]);
}

#[test]
fn verification_forgives_one_crash_after_long_migration() {
    let moved = pod(16, &crashed(1, 600));
    assert_eq!([absent(&moved, 601), absent(&moved, 615)], [until(615), Verification::Failed]);
}

#[test]
fn verification_ends_for_crashing_server_after_late_answer() {
    for restarts in 1..4 {
        assert_eq!(absent(&pod(16, &crashed(restarts, 600)), 601), until(615), "{restarts}");
    }
    for restarts in 4..9 {
        let ended = pod(16, &crashed(restarts, 600));
        assert_eq!([absent(&ended, 601), unheard(&ended, 601)], [Verification::Failed; 2], "{restarts}");
    }
    // A first start has no roll-back, and is not waited for either.
    let gone = AgentReport { server: Server::Absent, ..report(&[]) };
    assert_eq!(proof(&pod(16, &crashed(4, 600)), Some(&gone), false, 601).problem, "the server does not stay up");
}

#[test]
fn verification_allows_same_crash_time_after_long_backup() {
    let (fast, slow) = (pod(0, &crashed(4, 3)), pod(16, &crashed(4, 19)));
    assert_eq!([absent(&fast, 4), absent(&fast, 5)], [until(15), Verification::Failed]);
    assert_eq!([absent(&slow, 20), absent(&slow, 21)], [until(31), Verification::Failed]);
}

#[test]
fn verification_deadline_of_fast_start_ignores_restarts() {
    assert_eq!([unheard(&pod(0, &up(0)), 14), unheard(&pod(0, &up(0)), 15)], [until(15), Verification::Unproven]);
    for restarts in 1..4 {
        let ended = pod(0, &crashed(restarts, 13));
        assert_eq!([absent(&ended, 14), absent(&ended, 15)], [until(15), Verification::Failed], "{restarts}");
    }
}
