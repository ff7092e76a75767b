//! Tests a restore request during a rollout, and while the stable set cannot open the worlds.

use scheduler::observation::{Announced, DataVersion, Disruption, Partition, Revision, StableSet, StatefulSetView};
use scheduler::protocol::last_words::WorldRefused;

use super::*;
use crate::server::records::SettledRecord;
use crate::server::verify::Baseline;

pub(crate) const SETTLED: Revision = Revision(0xa);
pub(crate) const FAILED: Revision = Revision(0xb);
const COMMITTED: StatefulSetView = StatefulSetView {
    template: FAILED,
    current: SETTLED,
    update: FAILED,
    observed: true,
    door: Partition::Open,
    asleep: false,
};
const GONE_BACK: StatefulSetView = StatefulSetView { template: SETTLED, update: SETTLED, ..COMMITTED };

/// The record of the stable revision, whose pods have the backup volume or not.
fn settled(has_volume: bool) -> Arc<SettledRecord> {
    let volumes = if has_volume { json!([{"name": "nightshift-backup"}]) } else { json!([]) };
    let template = serde_json::from_value(json!({"spec": {"containers": [], "volumes": volumes}})).unwrap();
    Arc::new(SettledRecord { template, baseline: Baseline::default(), unproven: None })
}

/// 1.21.11 is in rollout while 1.21.10 is stable. Its agent reports these backups.
pub(crate) fn on_trial(backups: &Value) -> Observed {
    let mut seen = seen(backups);
    seen.facts.settled = Some(StableSet { revision: SETTLED, world: DataVersion(4556) });
    seen.settled = Some(settled(true));
    seen.pod_lock = Some(record("b", "1.21.11", 4671));
    seen.shape = Some(COMMITTED);
    seen
}

/// 1.21.10 is running again, and its init container refuses the worlds with this message.
pub(crate) fn refused(said: &str) -> Observed {
    let mut seen = on_trial(&Value::Null);
    seen.shape = Some(GONE_BACK);
    seen.pod_lock = seen.settled_lock.clone();
    let ended = json!({"terminated": {"exitCode": 3, "message": said}});
    let prepare =
        json!({"name": "prepare", "image": "", "imageID": "", "ready": false, "restartCount": 4, "lastState": ended});
    let pod = json!({"metadata": {"name": "lobby-0", "uid": NEW_POD}, "status": {"initContainerStatuses": [prepare]}});
    seen.pod = Some(serde_json::from_value(pod).unwrap());
    seen
}

fn words(copies: Option<&[&str]>, not_obeyed: Option<&str>) -> String {
    let copies = copies.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
    let request = format!("asked-{}", at(0).as_second());
    let not_obeyed = not_obeyed.map(|why| (request, why.to_owned()));
    WorldRefused { why: "a world cannot go back".to_owned(), floor: None, copies, not_obeyed }.to_string()
}

/// The state of a new request after the second pass.
fn second_look(asked: &str, seen: &Observed) -> RestoreHandled {
    let first = of(&asks(asked), seen, None, at(0)).noted.unwrap();
    of(&asks(asked), seen, Some(first), at(0)).noted.unwrap()
}

fn request(copy: &str) -> RestoreHandled {
    let asked = format!("{copy};overwrite");
    RestoreHandled { asked, seen_at: at(0), copy: Some(copy.to_owned()), result: None, message: None }
}

/// The state of the request for the good backup, this many minutes after it was first observed.
fn later(seen: &Observed, minutes: i64) -> RestoreRequests {
    of(&asks(&format!("{GOOD};overwrite")), seen, Some(request(GOOD)), at(minutes))
}

#[test]
fn requested_restore_during_rollout_targets_stable_lock() {
    let due = later(&on_trial(&shelf()), 1);
    assert!(due.goes_with_the_way_back);
    assert_eq!(due.due.unwrap().order.to, "a".repeat(64));
    let newer = second_look("20261122T050000Z-bbbbbbbb;overwrite", &on_trial(&shelf()));
    assert_eq!(newer.result, Some(RestoreResult::Refused));
    let why = newer.message.unwrap();
    assert!(why.contains("newer Minecraft than 1.21.10, which would come back"), "{why}");
    assert!(why.ends_with(&format!("worlds are: {NEWEST}, {GOOD}")), "those that it could open: {why}");
    // The newest backup was taken of the failed set.
    let mut shelf = shelf();
    let of_what_failed = json!({"id": "20261122T090000Z-bbbbbbbb", "contents": "worlds", "dataVersion": 4671});
    shelf["listed"].as_array_mut().unwrap().insert(0, of_what_failed);
    assert_eq!(second_look("latest;overwrite", &on_trial(&shelf)).copy.as_deref(), Some(NEWEST));
    assert_eq!(newest(&on_trial(&shelf)).as_deref(), Some(NEWEST));
}

#[test]
fn requested_restore_is_refused_without_stable_backup_volume() {
    for mut seen in [on_trial(&shelf()), refused(&words(None, None))] {
        seen.settled = Some(settled(false));
        let noted = second_look("latest;overwrite", &seen);
        assert_eq!(noted.result, Some(RestoreResult::Refused));
        assert!(noted.message.unwrap().contains("(1.21.10-129) settled before `spec.backup`"));
        assert_eq!(newest(&seen), None);
    }
}

#[test]
fn rollback_checks_worlds_itself_while_agent_is_silent() {
    let silent = later(&on_trial(&Value::Null), 1);
    assert!(silent.due.is_some() && !silent.goes_with_the_way_back);
}

#[test]
fn announced_rollback_with_restore_outlasts_request_time() {
    let mut seen = on_trial(&shelf());
    seen.pod_revision = Some(FAILED);
    let act = Disruption::RollBack { failed: FAILED };
    seen.facts.announced = Some(Announced { act, pod: OLD_POD.parse().unwrap(), ends: at(45) });
    for minutes in [29, 44, 54] {
        assert!(later(&seen, minutes).goes_with_the_way_back, "{minutes}");
    }
    assert_eq!(later(&seen, 55).noted.unwrap().result, Some(RestoreResult::Refused), "and not for ever");
    for other in [
        Announced { act: Disruption::RollBack { failed: SETTLED }, ..seen.facts.announced.unwrap() },
        Announced { pod: NEW_POD.parse().unwrap(), ..seen.facts.announced.unwrap() },
    ] {
        seen.facts.announced = Some(other);
        assert_eq!(later(&seen, 31).noted.unwrap().result, Some(RestoreResult::Refused), "{other:?}");
    }
}

#[test]
fn requested_restore_waits_for_result_of_rollback() {
    let mut seen = on_trial(&shelf());
    seen.orders.asked = Some(later(&seen, 1).due.unwrap().order);
    assert!(later(&seen, 1).goes_with_the_way_back, "the order stands, and the write was refused");
    seen.shape = Some(GONE_BACK);
    for minutes in [1, 31] {
        let waits = later(&seen, minutes);
        assert_eq!((waits.noted.unwrap().result, waits.due), (None, None), "{minutes}");
    }
    // The pod is up and its agent is unreachable. It is not stopped for the same request again.
    seen.pod_lock = seen.settled_lock.clone();
    seen.report = None;
    seen.facts.restarted = Some(RestartStarted { due: at(0), pod: NEW_POD.parse().unwrap() });
    seen.orders.asked = None;
    assert_eq!(later(&seen, 2).due, None);
    let another = json!({"restored": {"at": at(1).to_string(), "id": GOOD, "setAside": "x", "request": "asked-1"}});
    let report = super::seen(&another).report;
    assert_eq!(later(&Observed { report, ..seen }, 2).noted.unwrap().result, Some(RestoreResult::Failed));
}

#[test]
fn requested_restore_uses_backups_named_by_init_container() {
    let seen = refused(&words(Some(&[NEWEST, GOOD]), None));
    assert_eq!(second_look("latest;overwrite", &seen).copy.as_deref(), Some(NEWEST));
    let old = "20200101T000000Z-aaaaaaaa";
    let named = second_look(&format!("{old};overwrite"), &seen);
    assert_eq!(named.copy.as_deref(), Some(old), "nothing runs, and the init container looks at it");
    let no = |asked: &str, said: &str| {
        let noted = second_look(asked, &refused(said));
        assert_eq!((noted.copy, noted.result), (None, Some(RestoreResult::Refused)), "{asked}");
        noted.message.unwrap()
    };
    let why = no("latest", &words(Some(&[GOOD]), None));
    assert!(why.contains("`latest;overwrite`"), "{why}");
    let why = no("latest;overwrite;contents=Everything", &words(Some(&[GOOD]), None));
    assert!(why.ends_with(&format!("With worlds there are: {GOOD}")), "{why}");
    let why = no("latest;overwrite", &words(Some(&[]), None));
    assert!(why.contains("no good copy"), "{why}");
    let why = no("latest;overwrite", &words(None, None));
    assert!(why.contains("write the name of one"), "an agent from before: {why}");
    // A message about another problem: the request waits until an agent answers.
    assert_eq!(second_look("latest;overwrite", &refused("NO BACKUP: no room")).result, None);
}

#[test]
fn requested_restore_ends_with_termination_message() {
    let mut seen = refused(&words(Some(&[GOOD]), None));
    let due = later(&seen, 1);
    assert!(due.goes_with_the_way_back, "it is to be ordered");
    seen.orders.asked = Some(due.due.unwrap().order);
    for minutes in [1, 31] {
        let waits = later(&seen, minutes);
        assert_eq!((waits.noted.unwrap().result, waits.due), (None, None), "{minutes}");
    }
    // The existing request only protects the backup.
    let asked = seen.orders.asked.clone();
    seen.orders.asked = later(&seen, 1).keeps;
    assert!(seen.orders.asked.is_some() && later(&seen, 1).goes_with_the_way_back);
    seen.orders.asked = asked;
    // The existing request belongs to another user request.
    let asked = seen.orders.asked.as_ref().map(|order| AskedRestore { request: "asked-1".to_owned(), ..order.clone() });
    seen.orders.asked = asked;
    assert!(later(&seen, 1).goes_with_the_way_back);
    let failed = later(&refused(&words(Some(&[]), Some("the copy is damaged"))), 1).noted.unwrap();
    assert_eq!(failed.result, Some(RestoreResult::Failed));
    let why = failed.message.unwrap();
    assert_eq!(why, "the copy is damaged; the worlds are as they were, and what settled cannot open them");
}
