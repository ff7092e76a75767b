use std::sync::Arc;

use crds::paper_mc_server::HandledRequests;
use scheduler::observation::{RecordedFacts, RestartStarted};
use serde_json::{Value, json};

use super::*;
use crate::server::model::records::LockRecord;
use crate::server::observe::AgentReply;
use crate::server::render::init_requests::InitRequests;
use crate::server::test_server::server;
use validate::check;

pub(crate) mod after_failed_update;

const GOOD: &str = "20261122T030000Z-aaaaaaaa";
const NEWEST: &str = "20261122T060000Z-aaaaaaaa";
const UNREAD: &str = "20261122T090000Z-aaaaaaaa";
const OLD_POD: &str = "00000000-0000-0000-0000-000000000007";
const NEW_POD: &str = "00000000-0000-0000-0000-000000000008";

fn at(minutes: i64) -> Timestamp {
    "2026-11-22T12:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_mins(minutes)
}

fn requesting(requested: &str) -> PaperMCServer {
    requesting_with(requested, json!({"backup": {}}))
}

fn requesting_with(requested: &str, spec: Value) -> PaperMCServer {
    let mut server = server(spec);
    server.metadata.annotations = Some([(RESTORE_FROM.to_owned(), requested.to_owned())].into());
    server
}

/// Newest first: unreadable, settings only, damaged, of a newer Minecraft version, everything, and of unknown format.
fn backups_json() -> Value {
    json!({"listed": [
        {"id": UNREAD, "contents": "worlds", "dataVersion": 4556, "problem": "could not be read at the last attempt"},
        {"id": "20261122T080000Z-aaaaaaaa", "contents": "serverFiles", "dataVersion": 4556},
        {"id": "20261122T070000Z-aaaaaaaa", "problem": "`archive.tar.gz` has 3 bytes"},
        {"id": NEWEST, "contents": "worlds", "dataVersion": 4556},
        {"id": "20261122T050000Z-bbbbbbbb", "contents": "worlds", "dataVersion": 4671},
        {"id": "20261122T040000Z-cccccccc", "contents": "worlds"},
        {"id": GOOD, "contents": "everything", "dataVersion": 4556},
    ]})
}

fn record(digit: &str, minecraft: &str, data_version: u32) -> Arc<LockRecord> {
    let lock = json!({
        "server": "games/lobby", "minecraft": minecraft, "build": 129, "java": 21,
        "paper": {"name": "paper.jar", "url": "", "hash": "sha256:00"}, "plugins": [], "facts": [],
    });
    let files = json!({
        "lock": digit.repeat(64), "minecraft": minecraft, "build": 129, "dataVersion": data_version,
        "server": {"path": "paper.jar", "hash": "sha256:00", "url": ""}, "support": [], "plugins": [],
    });
    let (lock, files) = (serde_json::from_value(lock).unwrap(), serde_json::from_value(files).unwrap());
    Arc::new(LockRecord { lock, files })
}

/// A running server of 1.21.10 whose agent reports these backups. With null it reports nothing about them.
fn observed(backups: &Value) -> Observed {
    let report = json!({
        "at": "2026-11-22T12:00:00Z", "podUid": "u", "server": {"state": "absent"}, "players": {"who": "nobody"},
        "lock": null, "world": {"floor": null, "whole": true}, "backups": backups,
    });
    Observed {
        stateful_set: None,
        pod: Some(serde_json::from_value(json!({"metadata": {"name": "lobby-0", "uid": OLD_POD}})).unwrap()),
        facts: RecordedFacts::default(),
        stateful_set_view: None,
        pod_revision: None,
        pod_lock: None,
        stable: None,
        stable_lock: Some(record("a", "1.21.10", 4556)),
        init_requests: InitRequests::default(),
        rejected_maps: Vec::new(),
        reply: AgentReply {
            report: (!backups.is_null()).then(|| Arc::new(serde_json::from_value(report).unwrap())),
            ..AgentReply::unreachable(Timestamp::UNIX_EPOCH)
        },
    }
}

fn before(record: Option<RestoreHandled>) -> PaperMCServerStatus {
    let handled = HandledRequests { restore_from: record, ..HandledRequests::default() };
    PaperMCServerStatus { last_handled: Some(handled), ..PaperMCServerStatus::default() }
}

fn evaluate(
    server: &PaperMCServer,
    observed: &Observed,
    record: Option<RestoreHandled>,
    now: Timestamp,
) -> RestoreRequests {
    RestoreRequests::new(server, &check(server).unwrap(), observed, &before(record), now)
}

/// The state of a new request after two passes.
fn recorded_after_two_passes(server: &PaperMCServer, backups: &Value) -> RestoreHandled {
    let first = evaluate(server, &observed(backups), None, at(0));
    assert_eq!(first.due, None);
    let record = first.record.unwrap();
    assert_eq!(
        (record.seen_at, &record.backup, record.result),
        (at(0), &None, None),
        "the request is recorded before any other step"
    );
    let second = evaluate(server, &observed(backups), Some(record), at(0));
    assert_eq!(second.due, None);
    second.record.unwrap()
}

/// The message of a rejected request.
fn refused(requested: &str, backups: &Value) -> String {
    let record = recorded_after_two_passes(&requesting(requested), backups);
    assert_eq!((record.result, record.backup), (Some(RestoreResult::Refused), None), "{requested}");
    record.message.unwrap()
}

fn selected(requested: &str) -> RestoreHandled {
    recorded_after_two_passes(&requesting(requested), &backups_json())
}

#[test]
fn requested_restore_fixes_chosen_backup() {
    for (requested, backup) in [
        (format!("{GOOD};overwrite"), GOOD),
        (format!(" {GOOD} ; overwrite\n"), GOOD),
        ("latest;overwrite".to_owned(), NEWEST),
        (format!("{UNREAD};overwrite"), UNREAD),
    ] {
        let record = selected(&requested);
        assert_eq!((record.backup.as_deref(), record.result), (Some(backup), None), "{requested}");
    }
    let record = selected("latest;overwrite");
    let newer = json!({"listed": [{"id": "20261122T120000Z-aaaaaaaa", "contents": "worlds", "dataVersion": 4556}]});
    let later = evaluate(&requesting("latest;overwrite"), &observed(&newer), Some(record.clone()), at(1));
    let due = later.due.unwrap();
    assert_eq!((due.request.backup.as_str(), due.request.overwrite), (NEWEST, true));
    assert_eq!((due.request.request, due.request.to), (format!("asked-{}", at(0).as_second()), "a".repeat(64)));
    assert_eq!((due.restart.due, due.restart.until, due.request.not_after), (at(0), at(30), at(120)));
    assert_eq!(later.record, Some(record));
}

#[test]
fn scheduled_restart_yields_to_requested_restore() {
    let requesting = requesting("latest;overwrite");
    let by_the_clock = Some(RestartDue {
        due: at(-5),
        until: at(25),
        policy: scheduler::observation::PlayerPolicy::Announce,
        only_empty: true,
        yields_until: at(-5),
    });
    let due = evaluate(&requesting, &observed(&backups_json()), Some(selected("latest;overwrite")), at(1));
    for clock in [by_the_clock, None] {
        let restart = due.restart(clock).unwrap();
        assert_eq!((restart.due, restart.only_empty), (at(0), false));
    }
    assert_eq!(RestoreRequests::default().restart(by_the_clock), by_the_clock);
}

#[test]
fn requested_restore_is_refused_with_reason() {
    let why = refused("latest", &backups_json());
    assert!(why.contains("`latest;overwrite`"), "{why}");
    let why = refused("20200101T000000Z-aaaaaaaa;overwrite", &backups_json());
    assert!(why.contains(&format!("the newest backups with worlds are: {NEWEST}, ")), "{why}");
    let of_hour = |backup: &str| refused(&format!("20261122T{backup};overwrite"), &backups_json());
    let why = of_hour("070000Z-aaaaaaaa");
    assert!(why.contains("cannot be used: `archive.tar.gz` has 3 bytes"), "{why}");
    let why = of_hour("080000Z-aaaaaaaa");
    assert!(why.contains("has no worlds"), "{why}");
    for newer_or_unknown in ["050000Z-bbbbbbbb", "040000Z-cccccccc"] {
        let why = of_hour(newer_or_unknown);
        assert!(why.contains("a world cannot be downgraded"), "{why}");
    }
    for malformed in [
        "yes",
        "latest;now",
        "latest;",
        "latest;overwrite;overwrite",
        "latest;overwrite;contents=All",
        ";overwrite",
        "../x;overwrite",
        "other/latest;overwrite",
    ] {
        let why = refused(malformed, &backups_json());
        assert!(why.contains("write `"), "{malformed}: {why}");
    }
    let why = refused("survival/latest;overwrite", &backups_json());
    assert!(why.contains("write `spec.restoreFrom: {server: survival, backup: latest}`"), "{why}");
    let why = refused("latest;overwrite", &json!({"good": 1}));
    assert!(why.contains("next restart"), "an agent without restore support: {why}");
    let why = refused("latest;overwrite", &json!({"problem": "no such volume"}));
    assert!(why.contains("no such volume"), "{why}");
    let why = refused("latest;overwrite", &json!({"listed": []}));
    assert!(why.ends_with("the newest backups with worlds are: none"), "{why}");
    let disabled = json!({"backup": {"enabled": false}});
    let record = recorded_after_two_passes(&requesting_with("latest;overwrite", disabled), &backups_json());
    assert!(record.message.unwrap().contains("`spec.backup.enabled` is `false`"));
}

#[test]
fn requested_restore_of_everything_needs_backup_and_agent_support() {
    let with = |knows: bool| {
        let mut backups = backups_json();
        backups["putsBackEverything"] = json!(knows);
        backups
    };
    for requested in ["latest;overwrite;contents=Everything", "latest; contents=Everything ;overwrite"] {
        let record = recorded_after_two_passes(&requesting(requested), &with(true));
        assert_eq!(record.backup.as_deref(), Some(GOOD), "the newest backup with everything, {requested}");
        let due = evaluate(&requesting(requested), &observed(&with(true)), Some(record), at(1));
        assert!(due.condition_parts().unwrap().2.starts_with("All contents of the backup"), "{requested}");
        let request = due.due.unwrap().request;
        assert!(request.everything && request.overwrite, "{requested}");
    }
    let everything = format!("{NEWEST};overwrite;contents=Everything");
    let why = refused(&everything, &with(true));
    assert!(why.contains("has worlds only") && why.contains(&format!("plugins are: {GOOD}")), "{why}");
    let why = refused(&everything, &with(false));
    assert!(why.contains("next restart"), "the agent does not support it: {why}");
    let why = refused("latest;contents=Everything", &with(true));
    assert!(why.contains("`latest;contents=Everything;overwrite`"), "{why}");
    let request = evaluate(
        &requesting("latest;overwrite"),
        &observed(&backups_json()),
        Some(selected("latest;overwrite")),
        at(1),
    )
    .due
    .unwrap()
    .request;
    let written = serde_json::to_string(&request).unwrap();
    assert!(!written.contains("everything"), "older agents do not know the field: {written}");
}

#[test]
fn requested_restore_waits_for_silent_agent_within_limit() {
    let requesting = requesting("latest;overwrite");
    let record = recorded_after_two_passes(&requesting, &Value::Null);
    assert_eq!((&record.backup, record.result), (&None, None));
    let just = evaluate(&requesting, &observed(&Value::Null), Some(record.clone()), at(29));
    assert_eq!((just.record.as_ref(), just.condition_parts().unwrap().1), (Some(&record), "Waiting"));
    let late = evaluate(&requesting, &observed(&backups_json()), Some(record), at(30)).record.unwrap();
    assert_eq!(late.result, Some(RestoreResult::Refused));
    assert!(late.message.unwrap().contains("within 30 minutes"));
    let late = evaluate(&requesting, &observed(&backups_json()), Some(selected("latest;overwrite")), at(30));
    assert_eq!(
        (late.record.unwrap().result, late.due),
        (Some(RestoreResult::Refused), None),
        "a request with a selected backup expires, too"
    );
}

#[test]
fn requested_restore_is_refused_in_blackout_only() {
    let blackouts = json!([{"name": "finals", "from": "2026-11-22T11:00:00Z", "to": "2026-11-22T13:00:00Z"}]);
    let requesting =
        requesting_with("latest;overwrite", json!({"backup": {}, "updateSchedule": {"blackouts": blackouts}}));
    let record = recorded_after_two_passes(&requesting, &backups_json());
    assert_eq!(record.result, Some(RestoreResult::Refused));
    assert!(record.message.unwrap().contains("blackout `finals`"));
    let requesting = requesting_with("latest;overwrite", json!({"backup": {}, "suspend": true}));
    let record = recorded_after_two_passes(&requesting, &backups_json());
    assert!(evaluate(&requesting, &observed(&backups_json()), Some(record), at(1)).due.is_some());
}

/// A request with a selected backup, on a server whose pod was deleted for it. The agent of this pod (the old or the new one) reports these
/// backups.
fn restarted(pod: &str, backups: &Value) -> RestoreRequests {
    let mut observed = observed(backups);
    observed.pod.as_mut().unwrap().metadata.uid = Some(pod.to_owned());
    observed.facts.restarted = Some(RestartStarted { due: at(0), pod: OLD_POD.parse().unwrap() });
    evaluate(&requesting("latest;overwrite"), &observed, Some(selected("latest;overwrite")), at(45))
}

#[test]
fn requested_restore_result_comes_from_agent() {
    let request = format!("asked-{}", at(0).as_second());
    let result = |restores: &RestoreRequests| (restores.record.as_ref().unwrap().result, restores.due.is_some());
    assert_eq!(result(&restarted(NEW_POD, &Value::Null)), (None, false), "a large restore may take longer");
    assert_eq!(
        result(&restarted(OLD_POD, &backups_json())),
        (Some(RestoreResult::Refused), false),
        "the pod was never deleted"
    );
    let restored = json!({"restored": {"at": at(40).to_string(), "id": NEWEST, "setAside": "x", "request": request}});
    let done = restarted(NEW_POD, &restored);
    assert_eq!(result(&done), (Some(RestoreResult::Restored), false));
    assert_eq!(done.condition_parts(), None);
    let another = json!({"restored": {"at": at(40).to_string(), "id": NEWEST, "setAside": "x", "request": "asked-1"}});
    let silent = restarted(NEW_POD, &another);
    assert_eq!(result(&silent), (Some(RestoreResult::Failed), false), "the server is not restarted a second time");
    let refused = json!({"restoreRefused": {"request": request, "at": at(40).to_string(), "why": "no room"}});
    let failed = restarted(NEW_POD, &refused);
    assert_eq!(result(&failed), (Some(RestoreResult::Failed), false));
    assert_eq!(failed.condition_parts(), Some((false, "Failed", "no room. No files were changed".to_owned())));
    // A pod that was lost for another reason found the request.
    let outcome =
        evaluate(&requesting("latest;overwrite"), &observed(&restored), Some(selected("latest;overwrite")), at(2));
    assert_eq!(result(&outcome), (Some(RestoreResult::Restored), false));
}

#[test]
fn requested_restore_counts_again_only_if_rewritten() {
    let server_with_request = requesting("latest;overwrite");
    let over = RestoreHandled { result: Some(RestoreResult::Restored), ..selected("latest;overwrite") };
    let same = evaluate(&server_with_request, &observed(&backups_json()), Some(over.clone()), at(600));
    assert_eq!((same.record, same.due), (Some(over.clone()), None));
    let without_request =
        evaluate(&server(json!({"backup": {}})), &observed(&backups_json()), Some(over.clone()), at(600));
    assert_eq!(without_request, RestoreRequests::default());
    let again = evaluate(&server_with_request, &observed(&backups_json()), None, at(601)).record.unwrap();
    assert_eq!((again.seen_at, again.result), (at(601), None));
    let other = evaluate(&requesting(&format!("{GOOD};overwrite")), &observed(&backups_json()), Some(over), at(602))
        .record
        .unwrap();
    assert_eq!((other.seen_at, other.result), (at(602), None));
}

#[test]
fn requested_restore_protects_named_backup_from_first_observation() {
    let by_name = format!("{GOOD};overwrite");
    let without_agent = evaluate(&requesting(&by_name), &observed(&Value::Null), None, at(0)).protected;
    let request = without_agent.unwrap();
    assert_eq!((request.backup.as_str(), request.to.as_str(), request.not_after), (GOOD, NO_SET, at(120)));
    let latest = |record| evaluate(&requesting("latest;overwrite"), &observed(&backups_json()), record, at(1));
    assert_eq!(latest(None).protected, None, "no backup is selected yet");
    let due = latest(Some(selected("latest;overwrite")));
    let (protected, request) = (due.protected.unwrap(), due.due.unwrap().request);
    assert_eq!((&protected.backup, &protected.request), (&request.backup, &request.request));
    assert_ne!(protected.to, request.to);

    let over = evaluate(&requesting(&by_name), &observed(&backups_json()), Some(selected(&by_name)), at(30));
    assert_eq!((over.record.unwrap().result, over.protected), (Some(RestoreResult::Refused), None));
    assert_eq!(
        evaluate(
            &requesting_with(&by_name, json!({"backup": {"enabled": false}})),
            &observed(&backups_json()),
            None,
            at(0)
        )
        .protected,
        None,
        "the server takes no backups"
    );
    assert_eq!(evaluate(&requesting("yes"), &observed(&backups_json()), None, at(0)).protected, None);
}

#[test]
fn restore_request_is_removed_with_its_annotation() {
    let served = selected("latest;overwrite");
    let ends = |record: Option<RestoreHandled>| {
        RestoreRequests { record, ..RestoreRequests::default() }.ends_request(Some(&served))
    };
    assert!(!ends(Some(served.clone())));
    assert!(ends(None), "the annotation was removed");
    assert!(ends(Some(RestoreHandled { result: Some(RestoreResult::Failed), ..served.clone() })));
    assert!(ends(Some(RestoreHandled { seen_at: at(9), ..served.clone() })), "the annotation was set again");
    assert!(ends(Some(RestoreHandled { asked: "x".into(), ..served.clone() })));
    let by_name = RestoreHandled { asked: format!("{GOOD};overwrite"), backup: None, ..served.clone() };
    assert!(RestoreRequests::default().ends_request(Some(&by_name)), "the backup was protected for it");
    let unselected = RestoreHandled { backup: None, ..served };
    assert!(!RestoreRequests::default().ends_request(Some(&unselected)));
    assert!(!RestoreRequests::default().ends_request(None));
}
