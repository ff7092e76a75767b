//! Tests a restore request during a rollout, and while the stable set cannot open the worlds.

use agent_api::termination_message::WorldRefused;
use scheduler::observation::{Announced, DataVersion, Disruption, Partition, Revision, StableSet, StatefulSetView};

use super::*;
use crate::server::model::baseline::Baseline;
use crate::server::model::records::StableRecord;

pub(crate) const STABLE: Revision = Revision(0xa);
pub(crate) const FAILED: Revision = Revision(0xb);
const COMMITTED: StatefulSetView = StatefulSetView {
    template: FAILED,
    current: STABLE,
    update: FAILED,
    observed: true,
    partition: Partition::Open,
    scaled_to_zero: false,
};
const ROLLED_BACK: StatefulSetView = StatefulSetView { template: STABLE, update: STABLE, ..COMMITTED };

/// The record of the stable revision, whose pods have the backup volume or not.
fn stable_record(has_volume: bool) -> Arc<StableRecord> {
    let env = if has_volume { json!([{"name": "NIGHTSHIFT_BACKUPS", "value": "/backups/lobby"}]) } else { json!([]) };
    let prepare = json!({"name": "prepare", "env": env});
    let template = serde_json::from_value(json!({"spec": {"containers": [], "initContainers": [prepare]}})).unwrap();
    Arc::new(StableRecord { template, baseline: Baseline::default(), unverified: None, source: None })
}

/// 1.21.11 is in rollout while 1.21.10 is stable. Its agent reports these backups.
pub(crate) fn rolling_out(backups: &Value) -> Observed {
    let mut observed = observed(backups);
    observed.facts.settled = Some(StableSet { revision: STABLE, world: DataVersion(4556) });
    observed.stable = Some(stable_record(true));
    observed.pod_lock = Some(record("b", "1.21.11", 4671));
    observed.stateful_set_view = Some(COMMITTED);
    observed
}

/// 1.21.10 is running again, and its init container refuses the worlds with this message.
pub(crate) fn refused(message: &str) -> Observed {
    let mut observed = rolling_out(&Value::Null);
    observed.stateful_set_view = Some(ROLLED_BACK);
    observed.pod_lock = observed.stable_lock.clone();
    let ended = json!({"terminated": {"exitCode": 3, "message": message}});
    let prepare =
        json!({"name": "prepare", "image": "", "imageID": "", "ready": false, "restartCount": 4, "lastState": ended});
    let pod = json!({"metadata": {"name": "lobby-0", "uid": NEW_POD}, "status": {"initContainerStatuses": [prepare]}});
    observed.pod = Some(serde_json::from_value(pod).unwrap());
    observed
}

fn termination_message(backups: Option<&[&str]>, not_obeyed: Option<&str>) -> String {
    let backups = backups.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
    let request = format!("asked-{}", at(0).as_second());
    let not_obeyed = not_obeyed.map(|why| (request, why.to_owned()));
    WorldRefused { why: "a world cannot go back".to_owned(), floor: None, backups, refused_request: not_obeyed }
        .to_string()
}

/// The state of a new request after the second pass.
fn after_second_pass(requested: &str, observed: &Observed) -> RestoreHandled {
    let first = evaluate(&requesting(requested), observed, None, at(0)).record.unwrap();
    evaluate(&requesting(requested), observed, Some(first), at(0)).record.unwrap()
}

fn request(backup: &str) -> RestoreHandled {
    let requested = format!("{backup};overwrite");
    RestoreHandled { asked: requested, seen_at: at(0), backup: Some(backup.to_owned()), result: None, message: None }
}

/// The state of the request for the good backup, this many minutes after it was first observed.
fn evaluate_after(observed: &Observed, minutes: i64) -> RestoreRequests {
    evaluate(&requesting(&format!("{GOOD};overwrite")), observed, Some(request(GOOD)), at(minutes))
}

#[test]
fn requested_restore_during_rollout_targets_stable_lock() {
    let due = evaluate_after(&rolling_out(&backups_json()), 1);
    assert!(due.can_join_rollback);
    assert_eq!(due.due.unwrap().request.to, "a".repeat(64));
    let newer = after_second_pass("20261122T050000Z-bbbbbbbb;overwrite", &rolling_out(&backups_json()));
    assert_eq!(newer.result, Some(RestoreResult::Refused));
    let why = newer.message.unwrap();
    assert!(why.contains("newer Minecraft than 1.21.10, which would be restored"), "{why}");
    assert!(why.ends_with(&format!("worlds are: {NEWEST}, {GOOD}")), "only backups that 1.21.10 can open: {why}");
    // The newest backup was taken of the failed set.
    let mut backups = backups_json();
    let of_failed_set = json!({"id": "20261122T090000Z-bbbbbbbb", "contents": "worlds", "dataVersion": 4671});
    backups["listed"].as_array_mut().unwrap().insert(0, of_failed_set);
    assert_eq!(after_second_pass("latest;overwrite", &rolling_out(&backups)).backup.as_deref(), Some(NEWEST));
    assert_eq!(newest_backup(&rolling_out(&backups)).as_deref(), Some(NEWEST));
}

#[test]
fn requested_restore_is_refused_without_stable_backup_volume() {
    for mut observed in [rolling_out(&backups_json()), refused(&termination_message(None, None))] {
        observed.stable = Some(stable_record(false));
        let record = after_second_pass("latest;overwrite", &observed);
        assert_eq!(record.result, Some(RestoreResult::Refused));
        assert!(record.message.unwrap().contains("(1.21.10-129) is older than `spec.backup`"));
        assert_eq!(newest_backup(&observed), None);
    }
}

#[test]
fn rollback_checks_worlds_itself_while_agent_is_silent() {
    let silent = evaluate_after(&rolling_out(&Value::Null), 1);
    assert!(silent.due.is_some() && !silent.can_join_rollback);
}

#[test]
fn announced_rollback_with_restore_outlasts_request_time() {
    let mut observed = rolling_out(&backups_json());
    observed.pod_revision = Some(FAILED);
    let disruption = Disruption::RollBack { failed: FAILED };
    observed.facts.announced = Some(Announced { act: disruption, pod: OLD_POD.parse().unwrap(), ends: at(45) });
    for minutes in [29, 44, 54] {
        assert!(evaluate_after(&observed, minutes).can_join_rollback, "{minutes}");
    }
    assert_eq!(evaluate_after(&observed, 55).record.unwrap().result, Some(RestoreResult::Refused), "the limit applies");
    for other in [
        Announced { act: Disruption::RollBack { failed: STABLE }, ..observed.facts.announced.unwrap() },
        Announced { pod: NEW_POD.parse().unwrap(), ..observed.facts.announced.unwrap() },
    ] {
        observed.facts.announced = Some(other);
        assert_eq!(evaluate_after(&observed, 31).record.unwrap().result, Some(RestoreResult::Refused), "{other:?}");
    }
}

#[test]
fn requested_restore_waits_for_result_of_rollback() {
    let mut observed = rolling_out(&backups_json());
    observed.init_requests.on_request = Some(evaluate_after(&observed, 1).due.unwrap().request);
    assert!(evaluate_after(&observed, 1).can_join_rollback, "the request is written, the roll-back is not");
    observed.stateful_set_view = Some(ROLLED_BACK);
    for minutes in [1, 31] {
        let waits = evaluate_after(&observed, minutes);
        assert_eq!((waits.record.unwrap().result, waits.due), (None, None), "{minutes}");
    }
    // The pod is up and its agent is unreachable. It is not stopped for the same request again.
    observed.pod_lock = observed.stable_lock.clone();
    observed.reply.report = None;
    observed.facts.restarted = Some(RestartStarted { due: at(0), pod: NEW_POD.parse().unwrap() });
    observed.init_requests.on_request = None;
    assert_eq!(evaluate_after(&observed, 2).due, None);
    let another = json!({"restored": {"at": at(1).to_string(), "id": GOOD, "setAside": "x", "request": "asked-1"}});
    observed.reply.report = super::observed(&another).reply.report;
    assert_eq!(evaluate_after(&observed, 2).record.unwrap().result, Some(RestoreResult::Failed));
}

#[test]
fn requested_restore_uses_backups_named_by_init_container() {
    let observed = refused(&termination_message(Some(&[NEWEST, GOOD]), None));
    assert_eq!(after_second_pass("latest;overwrite", &observed).backup.as_deref(), Some(NEWEST));
    let old = "20200101T000000Z-aaaaaaaa";
    let named = after_second_pass(&format!("{old};overwrite"), &observed);
    assert_eq!(named.backup.as_deref(), Some(old), "the init container inspects a named backup");
    let refusal = |requested: &str, message: &str| {
        let record = after_second_pass(requested, &refused(message));
        assert_eq!((record.backup, record.result), (None, Some(RestoreResult::Refused)), "{requested}");
        record.message.unwrap()
    };
    let why = refusal("latest", &termination_message(Some(&[GOOD]), None));
    assert!(why.contains("`latest;overwrite`"), "{why}");
    let why = refusal("latest;overwrite;contents=Everything", &termination_message(Some(&[GOOD]), None));
    assert!(why.ends_with(&format!("Backups with worlds: {GOOD}")), "{why}");
    let why = refusal("latest;overwrite", &termination_message(Some(&[]), None));
    assert!(why.contains("no good backup"), "{why}");
    let why = refusal("latest;overwrite", &termination_message(None, None));
    assert!(why.contains("write the name of one"), "an older init container lists no backups: {why}");
    // A message about another problem: the request waits until an agent answers.
    assert_eq!(after_second_pass("latest;overwrite", &refused("NO BACKUP: no room")).result, None);
}

#[test]
fn requested_restore_ends_with_termination_message() {
    let mut observed = refused(&termination_message(Some(&[GOOD]), None));
    let due = evaluate_after(&observed, 1);
    assert!(due.can_join_rollback, "the restore may join this start");
    observed.init_requests.on_request = Some(due.due.unwrap().request);
    for minutes in [1, 31] {
        let waits = evaluate_after(&observed, minutes);
        assert_eq!((waits.record.unwrap().result, waits.due), (None, None), "{minutes}");
    }
    // The existing request only protects the backup.
    let on_request = observed.init_requests.on_request.clone();
    observed.init_requests.on_request = evaluate_after(&observed, 1).protected;
    assert!(observed.init_requests.on_request.is_some() && evaluate_after(&observed, 1).can_join_rollback);
    observed.init_requests.on_request = on_request;
    // The existing request belongs to another user request.
    let on_request = observed
        .init_requests
        .on_request
        .as_ref()
        .map(|request| RequestedRestore { request: "asked-1".to_owned(), ..request.clone() });
    observed.init_requests.on_request = on_request;
    assert!(evaluate_after(&observed, 1).can_join_rollback);
    let failed =
        evaluate_after(&refused(&termination_message(Some(&[]), Some("the backup is damaged"))), 1).record.unwrap();
    assert_eq!(failed.result, Some(RestoreResult::Failed));
    let why = failed.message.unwrap();
    assert_eq!(why, "the backup is damaged. The worlds are unchanged, and the stable version set cannot open them");
}
