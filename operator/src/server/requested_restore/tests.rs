use std::sync::Arc;

use crds::paper_mc_server::HandledRequests;
use scheduler::observation::{RecordedFacts, RestartStarted};
use serde_json::{Value, json};

use super::*;
use crate::server::check::check;
use crate::server::check::tests::server;
use crate::server::records::LockRecord;
use crate::server::render::init_orders::InitOrders;

pub(crate) mod way_back;

const GOOD: &str = "20261122T030000Z-aaaaaaaa";
const NEWEST: &str = "20261122T060000Z-aaaaaaaa";
const UNREAD: &str = "20261122T090000Z-aaaaaaaa";
const OLD_POD: &str = "00000000-0000-0000-0000-000000000007";
const NEW_POD: &str = "00000000-0000-0000-0000-000000000008";

fn at(minutes: i64) -> Timestamp {
    "2026-11-22T12:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_mins(minutes)
}

fn asks(what: &str) -> PaperMCServer {
    asks_of(what, json!({"backup": {}}))
}

fn asks_of(what: &str, spec: Value) -> PaperMCServer {
    let mut server = server(spec);
    server.metadata.annotations = Some([(RESTORE_FROM.to_owned(), what.to_owned())].into());
    server
}

/// Newest first: unreadable, settings only, damaged, of a newer Minecraft version, everything, and of unknown format.
fn shelf() -> Value {
    json!({"listed": [
        {"id": UNREAD, "contents": "worlds", "dataVersion": 4556, "problem": "could not be read when it was tried last"},
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
fn seen(backups: &Value) -> Observed {
    let report = json!({
        "at": "2026-11-22T12:00:00Z", "podUid": "u", "server": {"state": "absent"}, "players": {"who": "nobody"},
        "lock": null, "world": {"floor": null, "whole": true}, "backups": backups,
    });
    Observed {
        set: None,
        pod: Some(serde_json::from_value(json!({"metadata": {"name": "lobby-0", "uid": OLD_POD}})).unwrap()),
        facts: RecordedFacts::default(),
        shape: None,
        pod_revision: None,
        pod_lock: None,
        settled: None,
        settled_lock: Some(record("a", "1.21.10", 4556)),
        key: None,
        report: (!backups.is_null()).then(|| Arc::new(serde_json::from_value(report).unwrap())),
        heard: None,
        silent_since: Timestamp::UNIX_EPOCH,
        refusal: None,
        orders: InitOrders::default(),
    }
}

fn before(noted: Option<RestoreHandled>) -> PaperMCServerStatus {
    let handled = HandledRequests { restore_from: noted, ..HandledRequests::default() };
    PaperMCServerStatus { last_handled: Some(handled), ..PaperMCServerStatus::default() }
}

fn of(server: &PaperMCServer, seen: &Observed, noted: Option<RestoreHandled>, now: Timestamp) -> RestoreRequests {
    RestoreRequests::of(server, &check(server).unwrap(), seen, &before(noted), now)
}

/// The state of a new request after two passes.
fn looked_at(server: &PaperMCServer, backups: &Value) -> RestoreHandled {
    let first = of(server, &seen(backups), None, at(0));
    assert_eq!(first.due, None);
    let noted = first.noted.unwrap();
    assert_eq!(
        (noted.seen_at, &noted.copy, noted.result),
        (at(0), &None, None),
        "it stands there before anything is done"
    );
    let second = of(server, &seen(backups), Some(noted), at(0));
    assert_eq!(second.due, None);
    second.noted.unwrap()
}

/// The message of a rejected request.
fn refused(what: &str, backups: &Value) -> String {
    let noted = looked_at(&asks(what), backups);
    assert_eq!((noted.result, noted.copy), (Some(RestoreResult::Refused), None), "{what}");
    noted.message.unwrap()
}

fn chosen(what: &str) -> RestoreHandled {
    looked_at(&asks(what), &shelf())
}

#[test]
fn requested_restore_fixes_chosen_backup() {
    for (asked, copy) in [
        (format!("{GOOD};overwrite"), GOOD),
        (format!(" {GOOD} ; overwrite\n"), GOOD),
        ("latest;overwrite".to_owned(), NEWEST),
        (format!("{UNREAD};overwrite"), UNREAD),
    ] {
        let noted = chosen(&asked);
        assert_eq!((noted.copy.as_deref(), noted.result), (Some(copy), None), "{asked}");
    }
    let noted = chosen("latest;overwrite");
    let newer = json!({"listed": [{"id": "20261122T120000Z-aaaaaaaa", "contents": "worlds", "dataVersion": 4556}]});
    let later = of(&asks("latest;overwrite"), &seen(&newer), Some(noted.clone()), at(1));
    let due = later.due.unwrap();
    assert_eq!((due.order.copy.as_str(), due.order.overwrite), (NEWEST, true));
    assert_eq!((due.order.request, due.order.to), (format!("asked-{}", at(0).as_second()), "a".repeat(64)));
    assert_eq!((due.restart.due, due.restart.until, due.order.not_after), (at(0), at(30), at(120)));
    assert_eq!(later.noted, Some(noted));
}

#[test]
fn scheduled_restart_yields_to_requested_restore() {
    let asked = asks("latest;overwrite");
    let by_the_clock = Some(RestartDue {
        due: at(-5),
        until: at(25),
        policy: scheduler::observation::PlayerPolicy::Announce,
        only_empty: true,
        gives_way_until: at(-5),
    });
    let due = of(&asked, &seen(&shelf()), Some(chosen("latest;overwrite")), at(1));
    for clock in [by_the_clock, None] {
        let restart = due.restart(clock).unwrap();
        assert_eq!((restart.due, restart.only_empty), (at(0), false));
    }
    assert_eq!(RestoreRequests::default().restart(by_the_clock), by_the_clock);
}

#[test]
fn requested_restore_is_refused_with_reason() {
    let why = refused("latest", &shelf());
    assert!(why.contains("`latest;overwrite`"), "{why}");
    let why = refused("20200101T000000Z-aaaaaaaa;overwrite", &shelf());
    assert!(why.contains(&format!("the newest ones with worlds are: {NEWEST}, ")), "{why}");
    let of_hour = |copy: &str| refused(&format!("20261122T{copy};overwrite"), &shelf());
    let why = of_hour("070000Z-aaaaaaaa");
    assert!(why.contains("cannot be used: `archive.tar.gz` has 3 bytes"), "{why}");
    let why = of_hour("080000Z-aaaaaaaa");
    assert!(why.contains("holds no worlds"), "{why}");
    for newer_or_unknown in ["050000Z-bbbbbbbb", "040000Z-cccccccc"] {
        let why = of_hour(newer_or_unknown);
        assert!(why.contains("a world cannot go back"), "{why}");
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
        let why = refused(malformed, &shelf());
        assert!(why.contains("write `"), "{malformed}: {why}");
    }
    let why = refused("survival/latest;overwrite", &shelf());
    assert!(why.contains("write `spec.restoreFrom: {server: survival, copy: latest}`"), "{why}");
    let why = refused("latest;overwrite", &json!({"good": 1}));
    assert!(why.contains("next restart"), "an agent that knows no orders: {why}");
    let why = refused("latest;overwrite", &json!({"problem": "no such volume"}));
    assert!(why.contains("no such volume"), "{why}");
    let why = refused("latest;overwrite", &json!({"listed": []}));
    assert!(why.ends_with("the newest ones with worlds are: none"), "{why}");
    let noted = looked_at(&asks_of("latest;overwrite", json!({})), &shelf());
    assert!(noted.message.unwrap().contains("write `spec.backup` first"));
}

#[test]
fn requested_restore_of_everything_needs_backup_and_agent_support() {
    let with = |knows: bool| {
        let mut shelf = shelf();
        shelf["putsBackEverything"] = json!(knows);
        shelf
    };
    for asked in ["latest;overwrite;contents=Everything", "latest; contents=Everything ;overwrite"] {
        let noted = looked_at(&asks(asked), &with(true));
        assert_eq!(noted.copy.as_deref(), Some(GOOD), "the newest one that holds it all, {asked}");
        let due = of(&asks(asked), &seen(&with(true)), Some(noted), at(1));
        assert!(due.in_words().unwrap().2.starts_with("all that the copy"), "{asked}");
        let order = due.due.unwrap().order;
        assert!(order.everything && order.overwrite, "{asked}");
    }
    let everything = format!("{NEWEST};overwrite;contents=Everything");
    let why = refused(&everything, &with(true));
    assert!(why.contains("holds worlds and nothing else") && why.contains(&format!("plugins are: {GOOD}")), "{why}");
    let why = refused(&everything, &with(false));
    assert!(why.contains("next restart"), "its agent cannot do it: {why}");
    let why = refused("latest;contents=Everything", &with(true));
    assert!(why.contains("`latest;contents=Everything;overwrite`"), "{why}");
    let order =
        of(&asks("latest;overwrite"), &seen(&shelf()), Some(chosen("latest;overwrite")), at(1)).due.unwrap().order;
    let written = serde_json::to_string(&order).unwrap();
    assert!(!written.contains("everything"), "agents from before do not know the word: {written}");
}

#[test]
fn requested_restore_waits_for_silent_agent_within_limit() {
    let asked = asks("latest;overwrite");
    let noted = looked_at(&asked, &Value::Null);
    assert_eq!((&noted.copy, noted.result), (&None, None));
    let just = of(&asked, &seen(&Value::Null), Some(noted.clone()), at(29));
    assert_eq!((just.noted.as_ref(), just.in_words().unwrap().1), (Some(&noted), "Waiting"));
    let late = of(&asked, &seen(&shelf()), Some(noted), at(30)).noted.unwrap();
    assert_eq!(late.result, Some(RestoreResult::Refused));
    assert!(late.message.unwrap().contains("within 30 minutes"));
    let late = of(&asked, &seen(&shelf()), Some(chosen("latest;overwrite")), at(30));
    assert_eq!(
        (late.noted.unwrap().result, late.due),
        (Some(RestoreResult::Refused), None),
        "also one that was chosen"
    );
}

#[test]
fn requested_restore_is_refused_in_blackout_only() {
    let blackouts = json!([{"name": "finals", "from": "2026-11-22T11:00:00Z", "to": "2026-11-22T13:00:00Z"}]);
    let asked = asks_of("latest;overwrite", json!({"backup": {}, "updateSchedule": {"blackouts": blackouts}}));
    let noted = looked_at(&asked, &shelf());
    assert_eq!(noted.result, Some(RestoreResult::Refused));
    assert!(noted.message.unwrap().contains("blackout `finals`"));
    let asked = asks_of("latest;overwrite", json!({"backup": {}, "suspend": true}));
    let noted = looked_at(&asked, &shelf());
    assert!(of(&asked, &seen(&shelf()), Some(noted), at(1)).due.is_some());
}

/// A request with a selected backup, on a server whose pod was deleted for it. The agent of this pod (the old or the new one) reports these
/// backups.
fn restarted(pod: &str, backups: &Value) -> RestoreRequests {
    let mut seen = seen(backups);
    seen.pod.as_mut().unwrap().metadata.uid = Some(pod.to_owned());
    seen.facts.restarted = Some(RestartStarted { due: at(0), pod: OLD_POD.parse().unwrap() });
    of(&asks("latest;overwrite"), &seen, Some(chosen("latest;overwrite")), at(45))
}

#[test]
fn requested_restore_result_comes_from_agent() {
    let request = format!("asked-{}", at(0).as_second());
    let result = |restores: &RestoreRequests| (restores.noted.as_ref().unwrap().result, restores.due.is_some());
    assert_eq!(result(&restarted(NEW_POD, &Value::Null)), (None, false), "the copy is large");
    assert_eq!(result(&restarted(OLD_POD, &shelf())), (Some(RestoreResult::Refused), false), "it was never deleted");
    let restored = json!({"restored": {"at": at(40).to_string(), "id": NEWEST, "setAside": "x", "request": request}});
    let done = restarted(NEW_POD, &restored);
    assert_eq!(result(&done), (Some(RestoreResult::Restored), false));
    assert_eq!(done.in_words(), None);
    let another = json!({"restored": {"at": at(40).to_string(), "id": NEWEST, "setAside": "x", "request": "asked-1"}});
    let silent = restarted(NEW_POD, &another);
    assert_eq!(result(&silent), (Some(RestoreResult::Failed), false), "the server is not restarted again and again");
    let refused = json!({"restoreRefused": {"request": request, "at": at(40).to_string(), "why": "no room"}});
    let failed = restarted(NEW_POD, &refused);
    assert_eq!(result(&failed), (Some(RestoreResult::Failed), false));
    assert_eq!(failed.in_words(), Some((false, "Failed", "no room; all is as it was".to_owned())));
    // A pod that was lost for another reason found the request.
    let lost = of(&asks("latest;overwrite"), &seen(&restored), Some(chosen("latest;overwrite")), at(2));
    assert_eq!(result(&lost), (Some(RestoreResult::Restored), false));
}

#[test]
fn requested_restore_counts_again_only_if_rewritten() {
    let asked = asks("latest;overwrite");
    let over = RestoreHandled { result: Some(RestoreResult::Restored), ..chosen("latest;overwrite") };
    let same = of(&asked, &seen(&shelf()), Some(over.clone()), at(600));
    assert_eq!((same.noted, same.due), (Some(over.clone()), None));
    let gone = of(&server(json!({"backup": {}})), &seen(&shelf()), Some(over.clone()), at(600));
    assert_eq!(gone, RestoreRequests::default());
    let again = of(&asked, &seen(&shelf()), None, at(601)).noted.unwrap();
    assert_eq!((again.seen_at, again.result), (at(601), None));
    let other = of(&asks(&format!("{GOOD};overwrite")), &seen(&shelf()), Some(over), at(602)).noted.unwrap();
    assert_eq!((other.seen_at, other.result), (at(602), None));
}

#[test]
fn requested_restore_protects_named_backup_from_first_observation() {
    let by_name = format!("{GOOD};overwrite");
    let nobody_answers = of(&asks(&by_name), &seen(&Value::Null), None, at(0)).keeps;
    let order = nobody_answers.unwrap();
    assert_eq!((order.copy.as_str(), order.to.as_str(), order.not_after), (GOOD, NOBODY, at(120)));
    let latest = |noted| of(&asks("latest;overwrite"), &seen(&shelf()), noted, at(1));
    assert_eq!(latest(None).keeps, None, "nobody has said which one it is");
    let due = latest(Some(chosen("latest;overwrite")));
    let (kept, order) = (due.keeps.unwrap(), due.due.unwrap().order);
    assert_eq!((&kept.copy, &kept.request), (&order.copy, &order.request));
    assert_ne!(kept.to, order.to);

    let over = of(&asks(&by_name), &seen(&shelf()), Some(chosen(&by_name)), at(30));
    assert_eq!((over.noted.unwrap().result, over.keeps), (Some(RestoreResult::Refused), None));
    assert_eq!(of(&asks_of(&by_name, json!({})), &seen(&shelf()), None, at(0)).keeps, None, "it takes no copies");
    assert_eq!(of(&asks("yes"), &seen(&shelf()), None, at(0)).keeps, None);
}

#[test]
fn restore_request_is_removed_with_its_annotation() {
    let served = chosen("latest;overwrite");
    let ends = |noted: Option<RestoreHandled>| {
        RestoreRequests { noted, ..RestoreRequests::default() }.ends_order(Some(&served))
    };
    assert!(!ends(Some(served.clone())));
    assert!(ends(None), "it was taken away");
    assert!(ends(Some(RestoreHandled { result: Some(RestoreResult::Failed), ..served.clone() })));
    assert!(ends(Some(RestoreHandled { seen_at: at(9), ..served.clone() })), "written again");
    assert!(ends(Some(RestoreHandled { asked: "x".into(), ..served.clone() })));
    let by_name = RestoreHandled { asked: format!("{GOOD};overwrite"), copy: None, ..served.clone() };
    assert!(RestoreRequests::default().ends_order(Some(&by_name)), "the copy was kept for it");
    let never_given = RestoreHandled { copy: None, ..served };
    assert!(!RestoreRequests::default().ends_order(Some(&never_given)));
    assert!(!RestoreRequests::default().ends_order(None));
}
