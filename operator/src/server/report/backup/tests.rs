//! Pure. Tests the reports of existing, missing and unreadable backups.

use std::collections::BTreeMap;

use scheduler::rollout::{Step, WaitingOn};
use serde_json::json;

use super::*;
use crate::server::report::tests::Pass;
use crate::server::test_server::server;
use validate::check;

fn with_backups() -> CheckedServer {
    check(&server(json!({"backup": {}}))).unwrap()
}

fn agent(backups: &serde_json::Value) -> agent_api::AgentReport {
    serde_json::from_value(json!({
        "at": "2026-11-22T04:00:00Z", "podUid": "u", "server": {"state": "absent"}, "players": {"who": "nobody"},
        "lock": null, "world": {"floor": null, "whole": true}, "backups": backups,
    }))
    .unwrap()
}

fn backup() -> serde_json::Value {
    json!({
        "id": "20261122T030000Z-aaaaaaaa", "startedAt": "2026-11-22T03:00:00Z", "completedAt": "2026-11-22T03:03:10Z",
        "trigger": "beforeUpdate", "contents": "worlds", "lock": "aa", "before": "bb", "dataVersion": 4556,
        "bytes": 41_000_000_000_u64, "archiveBytes": 39_000_000_001_u64,
    })
}

#[test]
fn backup_status_keeps_last_backup_while_agent_is_silent() {
    let report = agent(&json!({"last": backup(), "good": 3, "damaged": 1}));
    let status = build_status(&with_backups(), Some(&report), &PaperMCServerStatus::default(), None).unwrap();
    let last = status.last_backup.as_ref().unwrap();
    assert_eq!((last.name.as_str(), last.size_bytes), ("20261122T030000Z-aaaaaaaa", 39_000_000_001));
    assert_eq!((last.contents, status.backup_count, status.damaged_count), (BackupContents::Worlds, 3, 1));
    let before = PaperMCServerStatus { backup: Some(status), ..PaperMCServerStatus::default() };
    assert_eq!(build_status(&with_backups(), None, &before, None), before.backup);
    let without = check(&server(json!({"backup": {"enabled": false}}))).unwrap();
    assert_eq!(build_status(&without, Some(&report), &before, None), None);
}

#[test]
fn backup_after_damage_is_marked_in_status_and_event() {
    let mut marked = backup();
    marked["afterDamage"] = json!(true);
    let of = |backup: serde_json::Value| {
        let report = agent(&json!({"last": backup, "good": 1}));
        let status = build_status(&with_backups(), Some(&report), &PaperMCServerStatus::default(), None).unwrap();
        let event = taken_message(&report.backups.unwrap().last.unwrap());
        (status.last_backup.unwrap().after_damage, event.ends_with("the log had reported damage to the worlds."))
    };
    assert_eq!((of(backup()), of(marked)), ((false, false), (true, true)));
}

#[test]
fn backup_status_gives_next_instant_without_agent() {
    let next: Timestamp = "2026-11-22T12:00:00Z".parse().unwrap();
    let nothing = PaperMCServerStatus::default();
    for agent in [None, Some(&agent(&json!(null))), Some(&agent(&json!({"good": 1})))] {
        let status = build_status(&with_backups(), agent, &nothing, Some(next)).unwrap();
        assert_eq!(status.next_backup, Some(next));
    }
    assert_eq!(build_status(&with_backups(), None, &nothing, None), None);
    let scheduled = BackupStatus { next_backup: Some(next), backup_count: 2, ..BackupStatus::default() };
    let before = PaperMCServerStatus { backup: Some(scheduled), ..nothing };
    let status = build_status(&with_backups(), None, &before, None).unwrap();
    assert_eq!((status.next_backup, status.backup_count), (None, 2), "the schedule was removed");
}

#[test]
fn backup_failure_outranks_good_backups() {
    let report = agent(&json!({
        "last": backup(), "good": 1, "damaged": 0,
        "failed": {"at": "2026-11-22T04:00:00Z", "before": "bb", "why": "no room"},
    }));
    let (status, reason, message) = reported_condition(report.backups.as_ref(), &OnlineBackups::default());
    assert_eq!((status, reason, message.as_str()), (Some(false), "BackupFailed", "no room"));
    let (status, reason, _) = reported_condition(agent(&json!(null)).backups.as_ref(), &OnlineBackups::default());
    assert_eq!((status, reason), (None, "NotMounted"));
    let good = agent(&json!({"last": backup(), "good": 1}));
    let (status, _, message) = reported_condition(good.backups.as_ref(), &OnlineBackups::default());
    assert_eq!(status, Some(true));
    assert_eq!(message, "The last backup is 20261122T030000Z-aaaaaaaa. It was read back when it was taken.");
}

/// The condition if the backup of 03:00 is the last one, and this was the last request.
fn request_condition(
    outcome: &serde_json::Value,
    at: &str,
    online: &OnlineBackups,
) -> (Option<bool>, &'static str, String) {
    let request = json!({"request": "asked-1", "at": at, "outcome": outcome});
    reported_condition(agent(&json!({"last": backup(), "good": 1, "online": request})).backups.as_ref(), online)
}

#[test]
fn online_backup_failure_is_reported_until_newer_success() {
    let failed = json!({"state": "failed", "why": "no room"});
    let of = |at: &str| request_condition(&failed, at, &OnlineBackups::default());
    let (status, reason, message) = of("2026-11-22T03:03:10Z");
    assert_eq!((status, reason), (Some(false), "BackupFailed"));
    assert_eq!(message, "The online backup `asked-1` was not taken: no room");
    assert_eq!(of("2026-11-22T03:03:09Z").0, Some(true), "the last good backup is newer");
}

#[test]
fn backup_progress_changes_message_only() {
    let taken = json!({"state": "taken", "id": "a"});
    let of = |online: OnlineBackups| {
        let (status, reason, message) = request_condition(&taken, "2026-11-22T03:03:10Z", &online);
        assert_eq!((status, reason), (Some(true), "Ready"));
        message.split_once(" The last backup is 20261122T030000Z-aaaaaaaa").unwrap().0.to_owned()
    };
    let running = OnlineBackups { is_running: true, ..OnlineBackups::default() };
    assert_eq!(of(running), "An online backup is being taken.");
    let refusal = Some("it is busy".to_owned());
    assert_eq!(
        of(OnlineBackups { refusal, ..OnlineBackups::default() }),
        "A backup is due and has to wait: it is busy."
    );
    let from_before = OnlineBackups { needs_restart: true, ..OnlineBackups::default() };
    let (status, reason, message) = request_condition(&taken, "2026-11-22T03:03:10Z", &from_before);
    assert_eq!((status, reason), (Some(false), NEEDS_RESTART));
    assert!(message.contains("next restart"), "{message}");
}

#[test]
fn backup_event_gives_contents_size_and_duration() {
    let last: BackupReport = serde_json::from_value(backup()).unwrap();
    assert_eq!(taken_message(&last), "20261122T030000Z-aaaaaaaa: the worlds, 39001 MB, taken and read back in 190 s.");
}

/// A set `cc` of this world format.
fn files(format: u32) -> FileSet {
    serde_json::from_value(json!({
        "lock": "cc", "minecraft": "1.21.10", "build": 130, "dataVersion": format,
        "server": {"path": "paper.jar", "hash": "sha256:00", "url": ""},
    }))
    .unwrap()
}

fn hint(backups: &serde_json::Value, format: u32) -> String {
    downgrade_hint(agent(backups).backups.as_ref(), &files(format))
}

const NO_OPENABLE_BACKUP: &str = "No backup is known that it could open.";

#[test]
fn older_lock_report_names_needed_backup_and_loss() {
    let report = json!({"lastOfWorlds": backup(), "good": 1});
    assert_eq!(
        hint(&report, 4556),
        "The backup `20261122T030000Z-aaaaaaaa` could be restored manually (docs/guides/backup.md). All progress \
        since 2026-11-22T03:00:00Z would be lost."
    );
    assert_eq!(hint(&report, 4555), NO_OPENABLE_BACKUP);
    assert_eq!(downgrade_hint(None, &files(4556)), NO_OPENABLE_BACKUP);
}

#[test]
fn older_lock_report_lists_all_usable_backups() {
    let listed = |id: &str, more: &serde_json::Value| {
        let mut backup = json!({"id": id, "contents": "worlds", "dataVersion": 4556});
        backup.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        backup
    };
    let online = json!({"lastOfWorlds": null, "last": {
        "id": "20261120T000000Z-bb", "startedAt": "2026-11-20T00:00:00Z", "completedAt": "2026-11-20T00:01:00Z",
        "trigger": "scheduled", "contents": "worlds", "dataVersion": 4556, "bytes": 1, "archiveBytes": 1,
    }});
    let with = |backups: &[serde_json::Value], more: &serde_json::Value| {
        let mut report = json!({"lastOfWorlds": backup(), "listed": backups, "good": 1});
        report.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        report
    };
    // All of these are newer, and none of them is usable.
    let mut backups = vec![
        listed("20261129T000000Z-aa", &json!({"dataVersion": 4671})),
        listed("20261128T000000Z-aa", &json!({"problem": "3 bytes are missing"})),
        listed("20261127T000000Z-aa", &json!({"contents": "serverFiles"})),
        listed("20261126T000000Z-aa", &json!({"dataVersion": null})),
    ];
    assert_eq!(hint(&with(&backups, &online), 4556), NO_OPENABLE_BACKUP);
    backups.push(listed("20261120T000000Z-bb", &json!({})));
    backups.push(listed("20261119T000000Z-bb", &json!({})));
    let message = hint(&with(&backups, &online), 4556);
    assert!(message.starts_with("The backup `20261120T000000Z-bb`, an online backup, could"), "{message}");
    assert!(message.ends_with("All progress since 2026-11-20T00:00:00Z would be lost."), "{message}");
    // A backup that is neither the last one nor the last one before an update has no known trigger.
    let message = hint(&with(&backups, &json!({"lastOfWorlds": null})), 4556);
    assert!(message.contains("`20261120T000000Z-bb`, possibly an online backup, could"), "{message}");
    assert!(message.ends_with("All progress since 2026-11-20T00:00:00Z would be lost."), "{message}");
    // A backup without a format was opened by the set itself. Its name contains no instant.
    let unlisted = [listed("by-hand", &json!({"dataVersion": null, "lock": "cc", "afterDamage": true}))];
    let message = hint(&with(&unlisted, &json!({"lastOfWorlds": null})), 4556);
    let marked = "since it was taken would be lost. It was taken after the log had reported damage to the worlds.";
    assert!(message.ends_with(marked), "{message}");
    let offline = hint(&with(&[listed("20261122T030000Z-aaaaaaaa", &json!({}))], &json!({})), 4556);
    assert!(offline.starts_with("The backup `20261122T030000Z-aaaaaaaa` could"), "{offline}");
}

#[test]
fn unreadable_backups_are_not_reported_as_missing() {
    let report = agent(&json!({"last": backup(), "good": 3, "damaged": 1, "restored": restored()}));
    let status = build_status(&with_backups(), Some(&report), &PaperMCServerStatus::default(), None);
    assert!(status.as_ref().is_some_and(|status| status.last_restore.is_some()));
    let before = PaperMCServerStatus { backup: status, ..PaperMCServerStatus::default() };
    let unread = json!({"problem": "could not list the backups"});
    assert_eq!(build_status(&with_backups(), Some(&agent(&unread)), &before, None), before.backup);
    let nothing = PaperMCServerStatus::default();
    assert_eq!(build_status(&with_backups(), Some(&agent(&unread)), &nothing, None), None, "the backups are unknown");
    assert!(hint(&unread, 4556).ends_with("a backup that it could open: could not list the backups"));

    // The record of the last restore is on another volume.
    let mut later = restored();
    later["id"] = json!("20261129T000000Z-bbbbbbbb");
    let unread = json!({"problem": "could not list the backups", "restored": later});
    let status = build_status(&with_backups(), Some(&agent(&unread)), &before, None).unwrap();
    assert_eq!(status.last_restore.unwrap().name, "20261129T000000Z-bbbbbbbb");
    assert_eq!(status.backup_count, 3);
}

fn restored() -> serde_json::Value {
    json!({"at": "2026-11-22T04:00:00Z", "id": "20261122T030000Z-aaaaaaaa", "setAside": ".nightshift/set-aside/a"})
}

#[test]
fn backup_events_are_not_repeated_after_unreadable_volume() {
    let report = json!({"last": backup(), "good": 1, "restored": restored()});
    let event_counts = |pass: &Pass| ["BackupTaken", "WorldRestored"].map(|reason| pass.event_texts(reason).len());
    let mut pass = Pass::new();
    pass.checked = with_backups();
    pass.extend_agent_report(&json!({"backups": report}));
    assert_eq!(event_counts(&pass), [1, 1]);
    let mut pass = pass.next();
    pass.extend_agent_report(&json!({"backups": {"problem": "could not list the backups"}}));
    assert_eq!(event_counts(&pass), [0, 0]);
    let mut pass = pass.next();
    pass.extend_agent_report(&json!({"backups": report}));
    assert_eq!(event_counts(&pass), [0, 0]);
}

#[test]
fn conditions_do_not_deny_backups_while_unreadable() {
    let mut pass = Pass::new();
    pass.checked = with_backups();
    pass.step = Step::Wait(WaitingOn::NoBackup);
    let mut condition_of = |backups: &serde_json::Value| {
        pass.extend_agent_report(&json!({"backups": backups, "damage": {
            "since": "2026-11-22T03:00:00Z", "last": "2026-11-22T03:00:00Z", "lines": 1, "first": "a chunk is missing",
        }}));
        let conditions = pass.status().conditions.into_iter();
        conditions.map(|condition| (condition.type_, condition.message)).collect::<BTreeMap<_, _>>()
    };
    let none = condition_of(&json!({"good": 0}));
    assert!(none["Updating"].contains("There is no backup from right before it. Action required"), "{none:?}");
    assert!(none["WorldDamaged"].contains("No earlier backup of the worlds is known"), "{none:?}");
    let unread = condition_of(&json!({"problem": "could not list the backups"}));
    let why = "is unknown, because the backups cannot be read (could not list the backups). They are read again";
    assert!(unread["Updating"].contains(why), "{unread:?}");
    assert!(unread["WorldDamaged"].contains("are unknown at the moment, see `BackupReady`"), "{unread:?}");
}
