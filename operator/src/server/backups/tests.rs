use std::sync::Arc;

use agent_api::AgentReport;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use scheduler::observation::{RecordedFacts, Revision, StableSet};
use serde_json::{Value, json};

use super::*;
use crate::server::model::baseline::Baseline;
use crate::server::model::records::{LockRecord, StableRecord};
use crate::server::observe::AgentReply;
use crate::server::render::init_requests::InitRequests;
use crate::server::requested_restore::tests::after_failed_update::refused;

fn record(digit: &str, minecraft: &str, data_version: u32) -> Arc<LockRecord> {
    let lock = serde_json::from_value(json!({
        "server": "games/lobby", "minecraft": minecraft, "build": 129, "java": 21,
        "paper": {"name": "paper.jar", "url": "", "hash": "sha256:00"}, "plugins": [], "facts": [],
    }))
    .unwrap();
    let files = serde_json::from_value(json!({
        "lock": digit.repeat(64), "minecraft": minecraft, "build": 129, "dataVersion": data_version,
        "server": {"path": ".nightshift/server/paper.jar", "hash": "sha256:00", "url": ""},
    }))
    .unwrap();
    Arc::new(LockRecord { lock, files })
}

/// `a` of 1.21.10 is stable, with or without the backup volume. `b` of 1.21.11 runs, and its agent reports these backups.
fn observed(has_volume: bool, backups: &Value) -> Observed {
    let env = if has_volume { json!([{"name": "NIGHTSHIFT_BACKUPS", "value": "/backups/lobby"}]) } else { json!([]) };
    let prepare = json!({"name": "prepare", "env": env});
    let template: PodTemplateSpec =
        serde_json::from_value(json!({"spec": {"containers": [], "initContainers": [prepare]}})).unwrap();
    let report: AgentReport = serde_json::from_value(json!({
        "at": "2026-11-22T04:00:00Z", "podUid": "u", "server": {"state": "absent"}, "players": {"who": "nobody"},
        "lock": null, "world": {"floor": {"minecraft": "1.21.11", "dataVersion": 4671}, "whole": true}, "backups": backups,
    }))
    .unwrap();
    let stable = StableSet { revision: Revision(1), world: DataVersion(4556) };
    Observed {
        stateful_set: None,
        pod: None,
        facts: RecordedFacts { settled: Some(stable), ..RecordedFacts::default() },
        stateful_set_view: None,
        pod_revision: None,
        pod_lock: Some(record("b", "1.21.11", 4671)),
        stable: Some(Arc::new(StableRecord {
            template,
            baseline: Baseline::default(),
            unverified: None,
            source: None,
        })),
        stable_lock: Some(record("a", "1.21.10", 4556)),
        init_requests: InitRequests::default(),
        rejected_maps: Vec::new(),
        reply: AgentReply { report: Some(Arc::new(report)), ..AgentReply::unreachable(Timestamp::UNIX_EPOCH) },
    }
}

fn backup(of: &str, before: &str, played_since: bool) -> Value {
    json!({"good": 1, "playedSince": played_since, "lastOfWorlds": {
        "id": "20261122T030000Z-aaaaaaaa", "startedAt": "2026-11-22T03:00:00Z", "completedAt": "2026-11-22T03:03:10Z",
        "trigger": "beforeUpdate", "contents": "worlds", "lock": of.repeat(64), "before": before.repeat(64),
        "dataVersion": 4556, "bytes": 1, "archiveBytes": 1,
    }})
}

#[test]
fn backup_before_this_lock_is_restored_and_needs_request() {
    let mut observed = observed(true, &backup("a", "b", false));
    let world = world_state(&observed);
    assert_eq!((world.floor, world.backup), (DataVersion(4671), Some(DataVersion(4556))));
    assert!(!world.played_since && !world.restore_requested);
    observed.init_requests.rollback = world_restore_request(&observed);
    assert_eq!(
        observed.init_requests.rollback,
        Some(RestoreRequest { to: "a".repeat(64), failed: "b".repeat(64), unless_played: false, worlds: true })
    );
    assert!(world_state(&observed).restore_requested);
    observed.init_requests.rollback =
        Some(RestoreRequest { to: "a".repeat(64), failed: "c".repeat(64), unless_played: false, worlds: true });
    assert!(!world_state(&observed).restore_requested, "a request for another failed set does not count");
}

#[test]
fn backup_without_space_to_restore_is_not_usable() {
    let world_and_space = |played, free: &Value| {
        let mut backups = backup("a", "b", played);
        backups["lastOfWorlds"]["bytes"] = json!(60_000_000_000_u64);
        backups["free"] = free.clone();
        let observed = observed(true, &backups);
        (world_state(&observed).backup, insufficient_space(&observed).map(|no_room| (no_room.needed, no_room.free)))
    };
    let (backup, needed) = (Some(DataVersion(4556)), space_needed(60_000_000_000));
    let free = 40_000_000_000_u64;
    assert_eq!(world_and_space(false, &json!(free)), (None, Some((needed, free))));
    assert_eq!(world_and_space(false, &json!(needed - 1)).0, None, "one byte less than needed is not enough");
    assert_eq!(world_and_space(false, &json!(needed)), (backup, None));
    assert_eq!(world_and_space(false, &json!(null)), (backup, None), "an older agent does not report free space");
    assert_eq!(world_and_space(true, &json!(free)).0, backup, "after play, missing space is not the reason to report");
}

#[test]
fn backup_of_other_update_is_not_usable() {
    assert_eq!(world_state(&observed(true, &backup("a", "c", false))).backup, None);
}

#[test]
fn backup_of_unverified_lock_is_usable_if_stable_reads_it() {
    let mut observed = observed(true, &backup("c", "b", false));
    assert_eq!(world_state(&observed).backup, Some(DataVersion(4556)));
    observed.facts.settled = Some(StableSet { revision: Revision(1), world: DataVersion(4555) });
    assert_eq!(world_state(&observed).backup, None);
}

#[test]
fn world_counts_as_played_when_agent_is_silent() {
    let played = observed(true, &backup("a", "b", true));
    assert!(world_state(&played).played_since && world_restore_request(&played).unwrap().unless_played);
    let mut silent = observed(true, &backup("a", "b", false));
    silent.reply.report = None;
    let world = world_state(&silent);
    assert!(world.played_since, "the agent is unreachable");
    assert_eq!((world.backup, world.floor), (None, DataVersion(4556)));
    let request = world_restore_request(&silent).unwrap();
    assert!(request.unless_played, "the init container checks for play");
    silent.init_requests.rollback = Some(request.clone());
    assert!(world_state(&silent).restore_requested);
    silent.init_requests.rollback = Some(RestoreRequest { unless_played: false, ..request });
    assert!(!world_state(&silent).restore_requested, "a request without a check for play does not count");
}

#[test]
fn world_report_of_silent_agent_still_counts() {
    let mut silent = observed(true, &backup("a", "b", true));
    silent.reply.cached_report = silent.reply.report.take();
    let world = world_state(&silent);
    assert_eq!((world.floor, world.backup), (DataVersion(4671), Some(DataVersion(4556))), "the last report counts");
    assert!(world.played_since, "the last report says that players have joined");
    let mut silent = observed(true, &backup("a", "b", false));
    silent.reply.cached_report = silent.reply.report.take();
    assert!(!world_state(&silent).played_since, "the last report knows of no play");
    assert!(world_restore_request(&silent).unwrap().unless_played, "the init container checks for play");
}

#[test]
fn world_counts_as_played_when_backups_are_unreadable() {
    let mut observed = observed(true, &json!({"good": 0, "problem": "could not list the backups"}));
    let world = world_state(&observed);
    assert_eq!((world.floor, world.backup), (DataVersion(4671), None));
    assert!(world.played_since && world_restore_request(&observed).unwrap().unless_played);
    observed.reply.cached_report = observed.reply.report.take();
    assert!(world_state(&observed).played_since, "the last report could not read the backups");
}

#[test]
fn world_counts_as_opened_without_report_or_backup() {
    let started = json!({"metadata": {"name": "lobby-0"}, "status": {"containerStatuses": [{
        "name": "papermc", "ready": false, "restartCount": 0, "image": "", "imageID": "", "state": {"running": {}},
    }]}});
    let floor_of = |has_backups, pod: &Value| {
        let mut observed = observed(has_backups, &json!(null));
        (observed.reply.report, observed.pod) = (None, serde_json::from_value(pod.clone()).unwrap());
        world_state(&observed).floor
    };
    assert_eq!(floor_of(false, &started), DataVersion(4671));
    assert_eq!(floor_of(true, &started), DataVersion(4556), "with backups, the init container inspects the worlds");
    assert_eq!(floor_of(false, &json!({"metadata": {"name": "lobby-0"}})), DataVersion(4556), "the server has not run");
}

#[test]
fn refused_world_format_comes_from_init_container() {
    let floor = |message: &str| world_state(&refused(message)).floor;
    let older = "REFUSED: Minecraft 1.21.10 must not open this world: Minecraft 1.21.11 has opened it, and a world \
    cannot go back. Choose 1.21.11";
    assert_eq!(floor(&format!("{older}\nFormat of the worlds (DataVersion): 4671")), DataVersion(4671));
    // The agent of an older pod does not report the format.
    assert_eq!(floor(older), DataVersion(4557));
    assert_eq!(floor("REFUSED: `world/level.dat` cannot be read"), DataVersion(4556));
    assert_eq!(floor("NO BACKUP: no room"), DataVersion(4556));
}

#[test]
fn restore_is_not_requested_without_stable_backup_volume() {
    let world = world_state(&observed(false, &backup("a", "b", false)));
    assert_eq!(world.backup, None);
    assert!(world.restore_requested, "no restore request is needed");
}

#[test]
fn restore_is_not_needed_for_revision_with_same_lock() {
    let mut same = observed(true, &backup("a", "b", false));
    same.pod_lock = same.stable_lock.clone();
    assert_eq!(world_restore_request(&same), None);
    assert!(world_state(&same).restore_requested);
}

/// As [`observed`], for a set that saves plugin data. The running agent reports this plugin data.
fn observed_with_data(plugin_data: &Value) -> Observed {
    let mut observed = observed(true, &json!(null));
    let template = json!({"spec": {"containers": [], "initContainers": [
        {"name": "prepare", "env": [{"name": "NIGHTSHIFT_KEEP_PLUGIN_DATA", "value": "1"}]},
    ]}});
    let template = serde_json::from_value(template).unwrap();
    observed.stable =
        Some(Arc::new(StableRecord { template, baseline: Baseline::default(), unverified: None, source: None }));
    let report = observed.reply.report.as_deref().unwrap();
    let plugin_data = serde_json::from_value(plugin_data.clone()).unwrap();
    observed.reply.report = Some(Arc::new(AgentReport { plugin_data, ..report.clone() }));
    observed
}

fn saved_data(before: &str, restored: &Value) -> Value {
    json!({"at": "2026-11-22T03:00:00Z", "lock": "a".repeat(64), "before": before.repeat(64), "kept": ["Demo"], "back": restored})
}

#[test]
fn plugin_data_restore_excludes_worlds() {
    let mut observed = observed_with_data(&saved_data("b", &json!(null)));
    assert!(!is_plugin_data_restore_requested(&observed));
    let request = plugin_data_restore_request(&observed).unwrap();
    assert_eq!(
        request,
        RestoreRequest { to: "a".repeat(64), failed: "b".repeat(64), unless_played: true, worlds: false }
    );
    observed.init_requests.rollback = Some(request);
    assert!(is_plugin_data_restore_requested(&observed));
    // The same request does not include a restore of the worlds. A request for the worlds includes the plugin data.
    observed.stable = super::tests::observed(true, &json!(null)).stable;
    assert!(!world_state(&observed).restore_requested);
    let mut observed = observed_with_data(&saved_data("b", &json!(null)));
    observed.init_requests.rollback =
        Some(RestoreRequest { to: "a".repeat(64), failed: "b".repeat(64), unless_played: true, worlds: true });
    assert!(is_plugin_data_restore_requested(&observed));
}

#[test]
fn plugin_data_restore_is_requested_if_data_may_exist() {
    for nothing in [
        json!(null),
        saved_data("c", &json!(null)),
        saved_data("b", &json!({"outcome": "somebodyPlayed", "at": "2026-11-22T03:00:00Z"})),
    ] {
        assert!(is_plugin_data_restore_requested(&observed_with_data(&nothing)), "{nothing}");
    }
    let mut silent = observed_with_data(&json!(null));
    silent.reply.report = None;
    assert!(!is_plugin_data_restore_requested(&silent));
    // An older template does not support restore requests.
    silent.stable = super::tests::observed(true, &json!(null)).stable;
    assert!(is_plugin_data_restore_requested(&silent));
}
