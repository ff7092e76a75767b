use serde_json::{Value, json};

use super::*;
use validate::image_contract::BACKUP_BEFORE;

#[test]
fn init_container_that_succeeded_on_retry_has_not_refused() {
    let refused = |state: Value, last_state: Value| {
        let status = json!({
            "name": "prepare", "image": "", "imageID": "", "ready": false, "restartCount": 1,
            "state": state, "lastState": last_state,
        });
        has_refused(&serde_json::from_value(status).unwrap())
    };
    let ended = |code: i32| json!({"terminated": {"exitCode": code}});
    assert!(refused(ended(3), json!({})));
    assert!(refused(json!({"waiting": {"reason": "CrashLoopBackOff"}}), ended(3)), "counts until the next attempt");
    assert!(refused(json!({"running": {}}), ended(3)), "counts during the attempt");
    assert!(!refused(ended(0), ended(3)));
    assert!(!refused(json!({"running": {}}), json!({})));
}

/// A pod created at `minute(0)`, with this status of the server's container.
fn pod(server: &Value) -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": "lobby-0", "creationTimestamp": "2026-03-29T02:00:00Z"},
        "spec": {"containers": []},
        "status": {"startTime": "2026-03-29T02:00:00Z", "containerStatuses": [server]},
    }))
    .unwrap()
}

/// The server's container, whose process started two minutes after the pod.
fn running() -> Value {
    json!({
        "name": "papermc", "image": "", "imageID": "", "ready": false, "restartCount": 0, "started": false,
        "state": {"running": {"startedAt": "2026-03-29T02:02:00Z"}},
    })
}

fn minute(of: i64) -> Timestamp {
    "2026-03-29T02:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_mins(of)
}

/// The report of a start that last wrote to log or world at `minute(of)`.
fn progressed(of: i64) -> AgentReport {
    let report = json!({
        "at": minute(of), "podUid": "00000000-0000-0000-0000-000000000007", "players": {"who": "nobody"}, "lock": null,
        "server": {"state": "starting", "progressAt": minute(of)}, "world": {"floor": null, "whole": true},
    });
    serde_json::from_value(report).unwrap()
}

const HALF_AN_HOUR: SignedDuration = SignedDuration::from_mins(30);

#[test]
fn start_with_progress_is_never_given_up() {
    let pod = pod(&running());
    let phase = |report: Option<&AgentReport>| pod_phase(&pod, report, HALF_AN_HOUR, BackupTime::None);
    for hours in 1..24 {
        let report = progressed(60 * hours);
        assert_eq!(phase(Some(&report)), PodPhase::Starting { deadline: minute(60 * hours + 30) });
    }
}

#[test]
fn start_without_progress_is_given_up_after_last_write() {
    let pod = pod(&running());
    let phase = |report: Option<&AgentReport>| pod_phase(&pod, report, HALF_AN_HOUR, BackupTime::None);
    let (progressing, silent) = (progressed(40), PodPhase::Starting { deadline: minute(32) });
    assert_eq!(
        phase(Some(&progressing)),
        PodPhase::Starting { deadline: minute(70) },
        "the deadline counts from the last write"
    );
    assert_eq!(phase(None), silent, "without a report, the deadline counts from the process start");
    assert_eq!(phase(Some(&progressed(-600))), silent, "files from before this start do not shorten its time");
}

#[test]
fn server_that_was_up_does_not_count_as_starting() {
    let mut up = running();
    up["started"] = json!(true);
    assert_eq!(pod_phase(&pod(&up), Some(&progressed(5)), HALF_AN_HOUR, BackupTime::None), PodPhase::Up);
    let crashed = json!({
        "name": "papermc", "image": "", "imageID": "", "ready": false, "restartCount": 3,
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
    });
    assert_eq!(pod_phase(&pod(&crashed), None, HALF_AN_HOUR, BackupTime::None), PodPhase::Down);
}

#[test]
fn players_are_unknown_when_agent_gives_no_state() {
    let counted = minute(3);
    let phase_of = |server: Value| {
        let mut report = progressed(5);
        report.server = serde_json::from_value(server).unwrap();
        report.players = agent_api::PlayerCount::Unknown { since: counted };
        players_of(Some(&report), minute(9))
    };
    assert_eq!(phase_of(json!({"state": "absent"})), Players::Nobody);
    for server in
        [json!({"state": "starting", "progressAt": minute(5)}), json!({"state": "stopping", "since": minute(5)})]
    {
        assert_eq!(phase_of(server), Players::Unknown { since: counted });
    }
    // Up, with a ping that hides the number of players: players may be online and can be warned. Without recent answers they cannot.
    let up = |answered| json!({"state": "up", "since": minute(1), "answeredAt": answered, "minecraft": "1.21.11"});
    assert_eq!(phase_of(up(minute(5))), Players::Hidden);
    assert_eq!(phase_of(up(minute(4))), Players::Unknown { since: minute(4) });
    assert_eq!(phase_of(up(counted)), Players::Unknown { since: counted }, "players were counted at the last answer");
    assert_eq!(players_of(Some(&progressed(5)), minute(9)), Players::Nobody);
    assert_eq!(players_of(None, minute(9)), Players::Unknown { since: minute(9) });
}

/// Its init container runs, and takes backups before these updates.
fn preparing_pod(before: &str) -> Pod {
    let env = json!([{"name": BACKUPS, "value": "/backups/lobby"}, {"name": BACKUP_BEFORE, "value": before}]);
    let pod = json!({
        "metadata": {"name": "lobby-0", "uid": "6f1c9f5e-0c3b-4c51-9a53-0b8f6c1f2d3e"},
        "spec": {"containers": [], "initContainers": [{"name": PREPARE_CONTAINER, "env": env}]},
        "status": {"startTime": minute(0), "initContainerStatuses": [{
            "name": "prepare", "image": "", "imageID": "", "ready": false, "restartCount": 0,
            "state": {"running": {"startedAt": minute(0)}},
        }]},
    });
    serde_json::from_value(pod).unwrap()
}

#[test]
fn start_deadline_has_backup_time_only_if_backup_may_be_due() {
    // 1.21.11 is in rollout, and 1.21.10 is stable.
    let mut observed = crate::server::requested_restore::tests::after_failed_update::rolling_out(&json!({}));
    observed.reply.report = None;
    let mut minutes = |before: &str, stable_world: u32| {
        observed.pod = Some(preparing_pod(before));
        observed.facts.settled = Some(StableSet { revision: Revision(0xa), world: DataVersion(stable_world) });
        let Some(PodPhase::Starting { deadline }) = observed.pod_view(HALF_AN_HOUR).map(|pod| pod.phase) else {
            panic!("the pod is starting")
        };
        deadline.duration_since(minute(0)).as_mins()
    };
    assert_eq!(minutes("OneWay", 4_556), 20 + 120 + 30, "a newer Minecraft");
    assert_eq!(minutes("OneWay", 4_671), 20 + 30, "plugins only");
    assert_eq!(minutes("Always", 4_671), 20 + 120 + 30);
}

#[test]
fn start_deadline_keeps_backup_estimate_across_operator_restart() {
    let mut observed = crate::server::online_backup::tests::observed(true, &json!(null));
    let revision = Revision(0xb);
    observed.reply.report = None;
    observed.pod_revision = Some(revision);
    observed.pod = Some(preparing_pod("OneWay"));
    let gives_up = |observed: &Observed| observed.pod_view(HALF_AN_HOUR).map(|pod| pod.phase);
    assert_eq!(gives_up(&observed), Some(PodPhase::Starting { deadline: minute(20 + 120 + 30) }));
    // As recorded on the StatefulSet: 300 GB at 25 MB a second.
    let facts = json!({"backupEstimate": {"goal": revision, "seconds": 12_000}});
    observed.facts = serde_json::from_value(facts).unwrap();
    assert_eq!(gives_up(&observed), Some(PodPhase::Starting { deadline: minute(20 + 600 + 30) }));
    observed.pod_revision = Some(Revision(0xc));
    assert_eq!(gives_up(&observed), Some(PodPhase::Starting { deadline: minute(20 + 120 + 30) }), "for another update");
}
