//! Pure. Tests when an update waits for room for the backup before it.

use std::sync::Arc;

use k8s_openapi::api::core::v1::PodTemplateSpec;
use scheduler::maintenance::Gate;
use scheduler::observation::{Announced, Disruption, PodPhase, Revision};
use serde_json::{Value, json};

use super::*;
use crate::server::changes::ServerChange;
use crate::server::constraints::{evaluate_all, events, wait, wake_ups};
use crate::server::report::tests::{Pass, record};
use crate::server::test_server::server;
use validate::check;

/// What the agent needs for the backup of 4 GB and what it has.
fn backups(worlds: u64, room: Option<u64>) -> Value {
    let sizes = json!({"at": "2026-11-22T04:00:00Z", "worlds": worlds, "serverFiles": 9_000_000_000_u64});
    json!({"backups": {"sizes": sizes, "room": room}})
}

fn template(path: &str, claim: Option<&str>) -> PodTemplateSpec {
    let volumes: Vec<Value> = claim
        .into_iter()
        .map(|claim| json!({"name": BACKUP_VOLUME, "persistentVolumeClaim": {"claimName": claim}}))
        .collect();
    let prepare = json!({"name": "prepare", "env": [{"name": BACKUPS, "value": path}]});
    serde_json::from_value(json!({"spec": {"containers": [], "initContainers": [prepare], "volumes": volumes}}))
        .unwrap()
}

/// A newer Minecraft is planned in an open window, on a server without `spec.backup`.
fn one_way(spec: Value) -> Pass {
    let mut pass = Pass::new();
    pass.checked = check(&server(spec)).unwrap();
    let own = template("/data/.nightshift/backups", None);
    pass.observed.pod.as_mut().unwrap().spec = own.spec.clone();
    pass.plan.target.rendered.template = Arc::new(own);
    pass.plan.target.record = record(131);
    pass.plan.target.changes = vec![ServerChange { one_way: true, ..change() }];
    pass.plan.goal.revision = Revision(0xb);
    pass.plan.observation.pod = pass.plan.observation.pod.map(|mut pod| {
        pod.phase = PodPhase::Up;
        pod
    });
    pass.plan.gate = Gate::Open { opened_at: Timestamp::UNIX_EPOCH, until: Timestamp::MAX };
    pass
}

fn change() -> ServerChange {
    let changes = crate::server::changes::diff_locks(Some(&record(130).lock), &record(131).lock);
    changes.into_iter().next().unwrap()
}

/// Whether the update waits, and its reason and message.
fn waits(pass: &mut Pass) -> Option<(&'static str, String)> {
    let Pass { server, checked, observed, plan, before, .. } = pass;
    plan.constraints.delaying.clear();
    let input = PassInput { server, checked, observed, before, now: Timestamp::UNIX_EPOCH };
    evaluate_all(&[&BackupRoom], plan, &ConstraintInput { pass: input, followed: None, is_automatic: false });
    wait(&pass.report()).map(|wait| (wait.reason, wait.message))
}

#[test]
fn update_waits_for_room_with_numbers_and_ways_out() {
    let mut pass = one_way(json!({}));
    pass.extend_agent_report(&backups(4_120_000_000, Some(2_380_000_000)));
    let (reason, message) = waits(&mut pass).unwrap();
    assert_eq!(reason, "NoRoomForBackup");
    let numbers =
        "The backup of the worlds before this update needs 4.2 GB, and the server's volume has 2.3 GB for it.";
    assert!(message.starts_with(numbers), "{message}");
    for way_out in ["`spec.storage.size`", "`spec.backup.storage`", "`spec.backup.beforeUpdate: Never`"] {
        assert!(message.contains(way_out), "{message}");
    }
    assert!(!pass.plan.gate.is_open(), "also a requested update waits");
    let texts: Vec<_> = events(&pass.report()).map(|event| event.reason).collect();
    assert_eq!(texts, ["NoRoomForBackup"]);
    pass.extend_agent_report(&backups(4_120_000_000, Some(4_121_000_000)));
    assert_eq!(waits(&mut pass), None);
}

#[test]
fn no_room_is_needed_without_backup_before_update() {
    let too_large = backups(u64::MAX, Some(1));
    for spec in [json!({"backup": {"beforeUpdate": "Never"}}), json!({"backup": {"enabled": false}})] {
        let mut pass = one_way(spec);
        pass.extend_agent_report(&too_large);
        assert_eq!(waits(&mut pass), None);
    }
    let mut plugins_only = one_way(json!({}));
    plugins_only.extend_agent_report(&too_large);
    plugins_only.plan.target.changes[0].one_way = false;
    assert_eq!(waits(&mut plugins_only), None, "the same Minecraft");
}

#[test]
fn announced_update_is_not_delayed_for_room() {
    let mut pass = one_way(json!({}));
    pass.extend_agent_report(&backups(4_000_000_000, Some(1)));
    assert!(waits(&mut pass).is_some());
    let act = Disruption::Update { goal: pass.plan.goal.revision, window_opened_at: Timestamp::UNIX_EPOCH };
    let pod = pass.plan.observation.pod.unwrap().uid;
    pass.plan.observation.facts.announced = Some(Announced { act, pod, ends: Timestamp::UNIX_EPOCH });
    assert_eq!(waits(&mut pass), None, "`prepare` checks again");
}

#[test]
fn other_volume_of_update_ends_wait_for_room() {
    let mut pass = one_way(json!({"backup": {}}));
    pass.extend_agent_report(&backups(4_000_000_000, Some(1)));
    pass.plan.target.rendered.template = Arc::new(template("/backups/lobby", Some("backup-lobby-0")));
    assert_eq!(waits(&mut pass), None, "the agent measures another volume");
    pass.observed.pod.as_mut().unwrap().spec = template("/backups/lobby", Some("backup-lobby-0")).spec;
    let (_, message) = waits(&mut pass).unwrap();
    assert!(
        message.contains("the backup volume has 0.0 GB") && message.contains("`spec.backup.storage.size`"),
        "{message}"
    );
}

#[test]
fn update_waits_two_minutes_for_size_of_backup() {
    let mut pass = one_way(json!({}));
    let up = |since: &str| {
        let server =
            json!({"state": "up", "since": since, "answeredAt": "2026-11-22T12:00:00Z", "minecraft": "1.21.10"});
        json!({"server": server, "backups": {"room": 1}})
    };
    pass.extend_agent_report(&up("2026-11-22T11:58:30Z"));
    assert_eq!(waits(&mut pass).unwrap().0, "MeasuringBackup");
    assert_eq!(wake_ups(&pass.plan).next(), Some(Timestamp::from_second(30).unwrap()));
    pass.extend_agent_report(&up("2026-11-22T11:58:00Z"));
    assert_eq!(waits(&mut pass), None, "it could not be measured: `prepare` checks the room");
    pass.extend_agent_report(&json!({"server": {"state": "absent"}}));
    assert_eq!(waits(&mut pass), None);
}
