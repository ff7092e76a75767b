//! Pure. Tests the reports of existing, missing and unreadable backups.

use std::collections::BTreeMap;

use scheduler::rollout::{Step, WaitingOn};
use serde_json::json;

use super::*;
use crate::server::check::check;
use crate::server::check::tests::server;
use crate::server::report::tests::Pass;

fn with_copies() -> CheckedServer {
    check(&server(json!({"backup": {}}))).unwrap()
}

fn agent(backups: &serde_json::Value) -> protocol::AgentReport {
    serde_json::from_value(json!({
        "at": "2026-11-22T04:00:00Z", "podUid": "u", "server": {"state": "absent"}, "players": {"who": "nobody"},
        "lock": null, "world": {"floor": null, "whole": true}, "backups": backups,
    }))
    .unwrap()
}

fn copy() -> serde_json::Value {
    json!({
        "id": "20261122T030000Z-aaaaaaaa", "startedAt": "2026-11-22T03:00:00Z", "completedAt": "2026-11-22T03:03:10Z",
        "trigger": "beforeUpdate", "contents": "worlds", "lock": "aa", "before": "bb", "dataVersion": 4556,
        "bytes": 41_000_000_000_u64, "archiveBytes": 39_000_000_001_u64,
    })
}

#[test]
fn backup_status_keeps_last_backup_while_agent_is_silent() {
    let said = agent(&json!({"last": copy(), "good": 3, "damaged": 1}));
    let status = build_status(&with_copies(), Some(&said), &PaperMCServerStatus::default(), None).unwrap();
    let last = status.last_backup.as_ref().unwrap();
    assert_eq!((last.name.as_str(), last.size_bytes), ("20261122T030000Z-aaaaaaaa", 39_000_000_001));
    assert_eq!((last.contents, status.backup_count, status.damaged_count), (BackupContents::Worlds, 3, 1));
    let before = PaperMCServerStatus { backup: Some(status), ..PaperMCServerStatus::default() };
    assert_eq!(build_status(&with_copies(), None, &before, None), before.backup);
    let without = check(&server(json!({}))).unwrap();
    assert_eq!(build_status(&without, Some(&said), &before, None), None);
}

#[test]
fn backup_after_damage_is_marked_in_status_and_event() {
    let mut marked = copy();
    marked["afterDamage"] = json!(true);
    let of = |copy: serde_json::Value| {
        let said = agent(&json!({"last": copy, "good": 1}));
        let status = build_status(&with_copies(), Some(&said), &PaperMCServerStatus::default(), None).unwrap();
        let event = taken(&said.backups.unwrap().last.unwrap());
        (status.last_backup.unwrap().after_damage, event.ends_with("the log had told of damage to the worlds"))
    };
    assert_eq!((of(copy()), of(marked)), ((false, false), (true, true)));
}

#[test]
fn backup_status_gives_next_instant_without_agent() {
    let next: Timestamp = "2026-11-22T12:00:00Z".parse().unwrap();
    let nothing = PaperMCServerStatus::default();
    for agent in [None, Some(&agent(&json!(null))), Some(&agent(&json!({"good": 1})))] {
        let status = build_status(&with_copies(), agent, &nothing, Some(next)).unwrap();
        assert_eq!(status.next_backup, Some(next));
    }
    assert_eq!(build_status(&with_copies(), None, &nothing, None), None);
    let promised = BackupStatus { next_backup: Some(next), backup_count: 2, ..BackupStatus::default() };
    let before = PaperMCServerStatus { backup: Some(promised), ..nothing };
    let status = build_status(&with_copies(), None, &before, None).unwrap();
    assert_eq!((status.next_backup, status.backup_count), (None, 2), "the schedule is gone");
}

#[test]
fn backup_failure_outranks_good_backups() {
    let said = agent(&json!({
        "last": copy(), "good": 1, "damaged": 0,
        "failed": {"at": "2026-11-22T04:00:00Z", "before": "bb", "why": "no room"},
    }));
    let (holds, reason, message) = of_the_agent(said.backups.as_ref(), &OnlineBackups::default());
    assert_eq!((holds, reason, message.as_str()), (Some(false), "BackupFailed", "no room"));
    let (holds, reason, _) = of_the_agent(agent(&json!(null)).backups.as_ref(), &OnlineBackups::default());
    assert_eq!((holds, reason), (None, "NotMounted"));
    let good = agent(&json!({"last": copy(), "good": 1}));
    let (holds, _, message) = of_the_agent(good.backups.as_ref(), &OnlineBackups::default());
    assert_eq!(holds, Some(true));
    assert_eq!(message, "the last copy is 20261122T030000Z-aaaaaaaa, read back when it was taken");
}

/// The condition if the backup of 03:00 is the last one, and this was the last request.
fn of_request(outcome: &serde_json::Value, at: &str, hot: &OnlineBackups) -> (Option<bool>, &'static str, String) {
    let request = json!({"request": "asked-1", "at": at, "outcome": outcome});
    of_the_agent(agent(&json!({"last": copy(), "good": 1, "hot": request})).backups.as_ref(), hot)
}

#[test]
fn online_backup_failure_is_reported_until_newer_success() {
    let failed = json!({"state": "failed", "why": "no room"});
    let of = |at: &str| of_request(&failed, at, &OnlineBackups::default());
    let (holds, reason, message) = of("2026-11-22T03:03:10Z");
    assert_eq!((holds, reason), (Some(false), "BackupFailed"));
    assert_eq!(message, "the copy `asked-1` of the running server was not taken: no room");
    assert_eq!(of("2026-11-22T03:03:09Z").0, Some(true), "the last one is newer");
}

#[test]
fn backup_progress_changes_message_only() {
    let taken = json!({"state": "taken", "id": "a"});
    let of = |hot: OnlineBackups| {
        let (holds, reason, message) = of_request(&taken, "2026-11-22T03:03:10Z", &hot);
        assert_eq!((holds, reason), (Some(true), "Ready"));
        message.split_once("; the last copy is 20261122T030000Z-aaaaaaaa").unwrap().0.to_owned()
    };
    let running = OnlineBackups { is_running: true, ..OnlineBackups::default() };
    assert_eq!(of(running), "a copy of the running server is being taken");
    let refusal = Some("it is busy".to_owned());
    assert_eq!(of(OnlineBackups { refusal, ..OnlineBackups::default() }), "a copy is due and has to wait: it is busy");
    let from_before = OnlineBackups { needs_restart: true, ..OnlineBackups::default() };
    let (holds, reason, message) = of_request(&taken, "2026-11-22T03:03:10Z", &from_before);
    assert_eq!((holds, reason), (Some(false), NEEDS_RESTART));
    assert!(message.contains("next restart"), "{message}");
}

#[test]
fn backup_event_gives_contents_size_and_duration() {
    let last: BackupSeen = serde_json::from_value(copy()).unwrap();
    assert_eq!(taken(&last), "20261122T030000Z-aaaaaaaa: the worlds, 39001 MB, taken and read back in 190 s");
}

/// A set `cc` of this world format.
fn set(format: u32) -> FileSet {
    serde_json::from_value(json!({
        "lock": "cc", "minecraft": "1.21.10", "build": 130, "dataVersion": format,
        "server": {"path": "paper.jar", "hash": "sha256:00", "url": ""},
    }))
    .unwrap()
}

fn way(backups: &serde_json::Value, format: u32) -> String {
    way_below(agent(backups).backups.as_ref(), &set(format))
}

const NO_WAY: &str = "and no copy is known that it could open";

#[test]
fn older_lock_report_names_needed_backup_and_loss() {
    let said = json!({"lastOfWorlds": copy(), "good": 1});
    assert_eq!(
        way(&said, 4556),
        "the copy `20261122T030000Z-aaaaaaaa` could be put back by hand (docs/guides/backup.md), and what was built \
         since 2026-11-22T03:00:00Z would be lost"
    );
    assert_eq!(way(&said, 4555), NO_WAY);
    assert_eq!(way_below(None, &set(4556)), NO_WAY);
}

#[test]
fn older_lock_report_lists_all_usable_backups() {
    let listed = |id: &str, more: &serde_json::Value| {
        let mut copy = json!({"id": id, "contents": "worlds", "dataVersion": 4556});
        copy.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        copy
    };
    let hot = json!({"lastOfWorlds": null, "last": {
        "id": "20261120T000000Z-bb", "startedAt": "2026-11-20T00:00:00Z", "completedAt": "2026-11-20T00:01:00Z",
        "trigger": "scheduled", "contents": "worlds", "dataVersion": 4556, "bytes": 1, "archiveBytes": 1,
    }});
    let with = |copies: &[serde_json::Value], more: &serde_json::Value| {
        let mut said = json!({"lastOfWorlds": copy(), "listed": copies, "good": 1});
        said.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        said
    };
    // All of these are newer, and none of them is usable.
    let mut copies = vec![
        listed("20261129T000000Z-aa", &json!({"dataVersion": 4671})),
        listed("20261128T000000Z-aa", &json!({"problem": "3 bytes are missing"})),
        listed("20261127T000000Z-aa", &json!({"contents": "serverFiles"})),
        listed("20261126T000000Z-aa", &json!({"dataVersion": null})),
    ];
    assert_eq!(way(&with(&copies, &hot), 4556), NO_WAY);
    copies.push(listed("20261120T000000Z-bb", &json!({})));
    copies.push(listed("20261119T000000Z-bb", &json!({})));
    let told = way(&with(&copies, &hot), 4556);
    assert!(told.starts_with("the copy `20261120T000000Z-bb`, which was taken of a running server, could"), "{told}");
    assert!(told.ends_with("what was built since 2026-11-20T00:00:00Z would be lost"), "{told}");
    // A backup that is neither the last one nor the last one before an update has no known trigger.
    let told = way(&with(&copies, &json!({"lastOfWorlds": null})), 4556);
    assert!(told.contains("`20261120T000000Z-bb`, which may have been taken of a running server, could"), "{told}");
    assert!(told.ends_with("what was built since 2026-11-20T00:00:00Z would be lost"), "{told}");
    // A backup without a format was opened by the set itself. Its name contains no instant.
    let own = [listed("by-hand", &json!({"dataVersion": null, "lock": "cc", "afterDamage": true}))];
    let told = way(&with(&own, &json!({"lastOfWorlds": null})), 4556);
    let marked = "since it was taken would be lost. It was taken after the log had told of damage to the worlds";
    assert!(told.ends_with(marked), "{told}");
    let cold = way(&with(&[listed("20261122T030000Z-aaaaaaaa", &json!({}))], &json!({})), 4556);
    assert!(cold.starts_with("the copy `20261122T030000Z-aaaaaaaa` could"), "{cold}");
}

#[test]
fn unreadable_backups_are_not_reported_as_missing() {
    let said = agent(&json!({"last": copy(), "good": 3, "damaged": 1, "restored": restored()}));
    let known = build_status(&with_copies(), Some(&said), &PaperMCServerStatus::default(), None);
    assert!(known.as_ref().is_some_and(|known| known.last_restore.is_some()));
    let before = PaperMCServerStatus { backup: known, ..PaperMCServerStatus::default() };
    let unread = json!({"problem": "could not look through the copies"});
    assert_eq!(build_status(&with_copies(), Some(&agent(&unread)), &before, None), before.backup);
    let nothing = PaperMCServerStatus::default();
    assert_eq!(build_status(&with_copies(), Some(&agent(&unread)), &nothing, None), None, "nobody knows");
    assert!(way(&unread, 4556).ends_with("is not known now: could not look through the copies"));

    // The record of the last restore is on another volume.
    let mut later = restored();
    later["id"] = json!("20261129T000000Z-bbbbbbbb");
    let unread = json!({"problem": "could not look through the copies", "restored": later});
    let status = build_status(&with_copies(), Some(&agent(&unread)), &before, None).unwrap();
    assert_eq!(status.last_restore.unwrap().name, "20261129T000000Z-bbbbbbbb");
    assert_eq!(status.backup_count, 3);
}

fn restored() -> serde_json::Value {
    json!({"at": "2026-11-22T04:00:00Z", "id": "20261122T030000Z-aaaaaaaa", "setAside": ".nightshift/set-aside/a"})
}

#[test]
fn backup_events_are_not_repeated_after_unreadable_volume() {
    let said = json!({"last": copy(), "good": 1, "restored": restored()});
    let told = |pass: &Pass| ["BackupTaken", "WorldRestored"].map(|reason| pass.said(reason).len());
    let mut pass = Pass::new();
    pass.checked = with_copies();
    pass.agent_says(&json!({"backups": said}));
    assert_eq!(told(&pass), [1, 1]);
    let mut pass = pass.next();
    pass.agent_says(&json!({"backups": {"problem": "could not look through the copies"}}));
    assert_eq!(told(&pass), [0, 0]);
    let mut pass = pass.next();
    pass.agent_says(&json!({"backups": said}));
    assert_eq!(told(&pass), [0, 0]);
}

#[test]
fn conditions_do_not_deny_backups_while_unreadable() {
    let mut pass = Pass::new();
    pass.checked = with_copies();
    pass.step = Step::Wait(WaitingOn::NoBackup);
    let mut says = |backups: &serde_json::Value| {
        pass.agent_says(&json!({"backups": backups, "damage": {
            "since": "2026-11-22T03:00:00Z", "last": "2026-11-22T03:00:00Z", "lines": 1, "first": "a chunk is missing",
        }}));
        let conditions = pass.status().conditions.into_iter();
        conditions.map(|condition| (condition.type_, condition.message)).collect::<BTreeMap<_, _>>()
    };
    let none = says(&json!({"good": 0}));
    assert!(none["Updating"].contains("and there is no copy from right before it; a person decides"), "{none:?}");
    assert!(none["WorldDamaged"].contains("No copy of the worlds from before is known"), "{none:?}");
    let unread = says(&json!({"problem": "could not look through the copies"}));
    let why = "is not known, because the copies cannot be read (could not look through the copies); they are looked for again";
    assert!(unread["Updating"].contains(why), "{unread:?}");
    assert!(unread["WorldDamaged"].contains("is not known now, see `BackupReady`"), "{unread:?}");
}
