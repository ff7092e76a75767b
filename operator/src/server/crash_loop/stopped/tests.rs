//! Pure. Tests what stops a server in a crash loop, and what starts it again.

use scheduler::observation::{Partition, Revision, StatefulSetView};
use serde_json::{Value, json};

use super::*;
use crate::server::online_backup::tests::observed as observed_with;
use crate::server::test_server::server as server_of_spec;
use validate::check;

/// A server of this generation, with these annotations.
fn server(generation: i64, annotations: &[(&str, &str)]) -> PaperMCServer {
    let mut server = server_of_spec(json!({"onCrashLoop": "Stop"}));
    server.metadata.generation = Some(generation);
    server.metadata.annotations =
        Some(annotations.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect());
    server
}

/// The status of a server of generation 3 that was stopped while these requests existed.
fn stopped_with(requests: &[&str]) -> PaperMCServerStatus {
    let at = "2026-11-22T12:00:00Z";
    let stopped = json!({"at": at, "generation": 3, "last": "exit code 1", "requests": requests});
    serde_json::from_value(json!({"crashes": {"pod": "a", "at": [at, at, at], "stopped": stopped}})).unwrap()
}

/// A server with this number of replicas and this state of its container. `None` if it has no pod.
fn observed(replicas: usize, state: Option<&Value>) -> Observed {
    let mut observed = observed_with(false, &json!({}));
    let revision = Revision(1);
    let (template, current, update) = (revision, revision, revision);
    observed.stateful_set_view = Some(StatefulSetView {
        template,
        current,
        update,
        observed: true,
        partition: Partition::Closed,
        scaled_to_zero: replicas == 0,
    });
    observed.pod = state.map(|state| {
        serde_json::from_value(json!({
            "metadata": {"name": "lobby-0", "uid": "a"},
            "status": {"containerStatuses": [{
                "name": "papermc", "ready": false, "restartCount": 3, "image": "", "imageID": "", "state": state,
                "lastState": ended(1),
            }]},
        }))
        .unwrap()
    });
    observed
}

fn running() -> Value {
    json!({"running": {"startedAt": "2026-11-22T12:01:00Z"}})
}

fn ended(code: i32) -> Value {
    json!({"terminated": {"exitCode": code, "finishedAt": "2026-11-22T12:00:00Z"}})
}

#[test]
fn stopped_server_keeps_zero_replicas() {
    let replicas = |before: &PaperMCServerStatus, observed: &Observed| {
        scaled_down_if_stopped(check(&server(3, &[])).unwrap(), before, observed).pod.replicas
    };
    let stopped = stopped_with(&[]);
    let waiting = json!({"waiting": {"reason": "CrashLoopBackOff"}});
    let stays_down = |observed: &Observed| {
        assert_eq!(replicas(&stopped, observed), 0);
        assert_eq!(active_stop(&stopped, observed), stopped.crashes, "the crash count stays unchanged");
    };
    for (scaled_to, state) in
        [(1, Some(&waiting)), (1, Some(&ended(1))), (0, Some(&ended(143))), (0, Some(&running())), (0, None)]
    {
        stays_down(&observed(scaled_to, state));
    }
    stays_down(&Observed { stateful_set_view: None, ..observed(0, None) });
    let orphan = Observed { stateful_set_view: None, ..observed(1, Some(&running())) };
    assert_eq!(active_stop(&stopped, &orphan), None, "the StatefulSet was deleted without its pod");
    let mut another = observed(1, Some(&waiting));
    another.pod.as_mut().unwrap().metadata.uid = Some("b".to_owned());
    let later = json!({"terminated": {"exitCode": 1, "finishedAt": "2026-11-24T12:00:00Z"}});
    let assert_not_stopped = |observed: &Observed, why: &str| {
        assert_eq!((replicas(&stopped, observed), active_stop(&stopped, observed)), (1, None), "{why}");
    };
    assert_not_stopped(&observed(1, Some(&running())), "players may be online");
    assert_not_stopped(&observed(1, Some(&later)), "it had run for two days since");
    assert_not_stopped(&observed(1, None), "the node was lost before the stop");
    assert_not_stopped(&another, "the pod was replaced");
    let counted: PaperMCServerStatus =
        serde_json::from_value(json!({"crashes": {"pod": "a", "at": ["2026-11-22T12:00:00Z"]}})).unwrap();
    for before in [counted, PaperMCServerStatus::default()] {
        assert_eq!(replicas(&before, &observed(0, None)), 1);
    }
}

#[test]
fn stopped_server_starts_on_new_spec_or_request() {
    let (now, annotation) = ("1795348800", "nightshift.dev/apply-now=1795348800");
    let starts = |server: &PaperMCServer, requests: &[&str]| is_restart_requested(server, &stopped_with(requests));
    assert!(!starts(&server(3, &[]), &[]), "a restarted operator starts no server");
    assert!(starts(&server(4, &[]), &[]));
    for name in ["apply-now", "apply", "rollback-to", "restore-from"] {
        let (name, request) = (format!("nightshift.dev/{name}"), format!("nightshift.dev/{name}=previous"));
        let requesting = server(3, &[(name.as_str(), "previous")]);
        assert!(starts(&requesting, &[annotation]), "{name}");
        assert!(!starts(&requesting, &[annotation, request.as_str()]), "{name} existed before the stop");
    }
    assert!(starts(&server(3, &[(APPLY_NOW, "1795348801")]), &[annotation]), "a repeated request starts the server");
    assert!(!starts(&server(3, &[]), &[annotation]), "a removed request starts nothing");
    assert!(!starts(&server(3, &[(APPLY, " ")]), &[]));
    for other in ["nightshift.dev/approve", "nightshift.dev/backup-now", "example.com/look"] {
        assert!(!starts(&server(3, &[(other, now)]), &[]), "{other}");
    }
    assert!(!is_restart_requested(&server(4, &[]), &PaperMCServerStatus::default()), "the server is not stopped");
}

#[test]
fn players_are_absent_after_failed_process_without_restart() {
    let waits = |change: &dyn Fn(&mut Value)| {
        let mut pod = serde_json::to_value(observed(1, Some(&ended(1))).pod.unwrap()).unwrap();
        change(&mut pod);
        unrestarted_crash(&serde_json::from_value(pod).unwrap()).map(|ended| ended.exit_code)
    };
    let state = |state: Value, last: Value| {
        waits(&|pod| {
            pod["status"]["containerStatuses"][0]["state"] = state.clone();
            pod["status"]["containerStatuses"][0]["lastState"] = last.clone();
        })
    };
    let waiting = || json!({"waiting": {"reason": "CrashLoopBackOff"}});
    assert_eq!(waits(&|_| {}), Some(1));
    assert_eq!(state(waiting(), ended(137)), Some(137));
    assert_eq!(state(waiting(), ended(0)), None, "a user ran /stop");
    assert_eq!(state(waiting(), json!({})), None, "the process has not run yet");
    assert_eq!(state(running(), ended(1)), None, "the process runs again");
    assert_eq!(state(json!({}), ended(1)), None, "the state is unknown");
    assert_eq!(waits(&|pod| pod["metadata"]["deletionTimestamp"] = json!("2026-11-22T12:00:00Z")), None);
}
