use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use scheduler::observation::{RecordedFacts, Revision, StableSet};
use scheduler::protocol::AgentReport;
use serde_json::{Value, json};

use super::*;
use crate::server::records::{LockRecord, SettledRecord};
use crate::server::render::init_orders::InitOrders;
use crate::server::requested_restore::tests::way_back::refused;
use crate::server::verify::Baseline;

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
fn seen(has_volume: bool, backups: &Value) -> Observed {
    let volumes = if has_volume { json!([{"name": "nightshift-backup"}]) } else { json!([]) };
    let template: PodTemplateSpec =
        serde_json::from_value(json!({"spec": {"containers": [], "volumes": volumes}})).unwrap();
    let report: AgentReport = serde_json::from_value(json!({
        "at": "2026-11-22T04:00:00Z", "podUid": "u", "server": {"state": "absent"}, "players": {"who": "nobody"},
        "lock": null, "world": {"floor": {"minecraft": "1.21.11", "dataVersion": 4671}, "whole": true}, "backups": backups,
    }))
    .unwrap();
    let settled = StableSet { revision: Revision(1), world: DataVersion(4556) };
    Observed {
        set: None,
        pod: None,
        facts: RecordedFacts { settled: Some(settled), ..RecordedFacts::default() },
        shape: None,
        pod_revision: None,
        pod_lock: Some(record("b", "1.21.11", 4671)),
        settled: Some(Arc::new(SettledRecord { template, baseline: Baseline::default(), unproven: None })),
        settled_lock: Some(record("a", "1.21.10", 4556)),
        key: None,
        report: Some(Arc::new(report)),
        heard: None,
        silent_since: Timestamp::UNIX_EPOCH,
        refusal: None,
        orders: InitOrders::default(),
    }
}

fn copy(of: &str, before: &str, played_since: bool) -> Value {
    json!({"good": 1, "playedSince": played_since, "lastOfWorlds": {
        "id": "20261122T030000Z-aaaaaaaa", "startedAt": "2026-11-22T03:00:00Z", "completedAt": "2026-11-22T03:03:10Z",
        "trigger": "beforeUpdate", "contents": "worlds", "lock": of.repeat(64), "before": before.repeat(64),
        "dataVersion": 4556, "bytes": 1, "archiveBytes": 1,
    }})
}

#[test]
fn backup_before_this_lock_is_restored_and_needs_request() {
    let mut seen = seen(true, &copy("a", "b", false));
    let world = look_at_world(&seen);
    assert_eq!((world.floor, world.backup), (DataVersion(4671), Some(DataVersion(4556))));
    assert!(!world.played_since && !world.restore_ordered);
    seen.orders.back = restore_order(&seen);
    assert_eq!(
        seen.orders.back,
        Some(RestoreOrder { to: "a".repeat(64), failed: "b".repeat(64), unless_played: false, worlds: true })
    );
    assert!(look_at_world(&seen).restore_ordered);
    seen.orders.back =
        Some(RestoreOrder { to: "a".repeat(64), failed: "c".repeat(64), unless_played: false, worlds: true });
    assert!(!look_at_world(&seen).restore_ordered, "an order after another failure is another one");
}

#[test]
fn backup_without_space_to_restore_is_not_usable() {
    let look = |played, free: &Value| {
        let mut said = copy("a", "b", played);
        said["lastOfWorlds"]["bytes"] = json!(60_000_000_000_u64);
        said["free"] = free.clone();
        let seen = seen(true, &said);
        (look_at_world(&seen).backup, no_room(&seen).map(|no_room| (no_room.needed, no_room.free)))
    };
    let (copy, needed) = (Some(DataVersion(4556)), room_for(60_000_000_000));
    let free = 40_000_000_000_u64;
    assert_eq!(look(false, &json!(free)), (None, Some((needed, free))));
    assert_eq!(look(false, &json!(needed - 1)).0, None, "what must stay free counts");
    assert_eq!(look(false, &json!(needed)), (copy, None));
    assert_eq!(look(false, &json!(null)), (copy, None), "an agent from before");
    assert_eq!(look(true, &json!(free)).0, copy, "what may be lost is a person's to decide, first of all");
}

#[test]
fn backup_of_other_update_is_not_usable() {
    assert_eq!(look_at_world(&seen(true, &copy("a", "c", false))).backup, None);
}

#[test]
fn backup_of_unverified_lock_is_usable_if_stable_reads_it() {
    let mut seen = seen(true, &copy("c", "b", false));
    assert_eq!(look_at_world(&seen).backup, Some(DataVersion(4556)));
    seen.facts.settled = Some(StableSet { revision: Revision(1), world: DataVersion(4555) });
    assert_eq!(look_at_world(&seen).backup, None);
}

#[test]
fn world_counts_as_played_when_agent_is_silent() {
    let played = seen(true, &copy("a", "b", true));
    assert!(look_at_world(&played).played_since && restore_order(&played).unwrap().unless_played);
    let mut silent = seen(true, &copy("a", "b", false));
    silent.report = None;
    let world = look_at_world(&silent);
    assert!(world.played_since, "nobody can be asked");
    assert_eq!((world.backup, world.floor), (None, DataVersion(4556)));
    let order = restore_order(&silent).unwrap();
    assert!(order.unless_played, "the init container looks for itself");
    silent.orders.back = Some(order.clone());
    assert!(look_at_world(&silent).restore_ordered);
    silent.orders.back = Some(RestoreOrder { unless_played: false, ..order });
    assert!(!look_at_world(&silent).restore_ordered, "it was given when nobody had played, which nobody says any more");
}

#[test]
fn world_report_of_silent_agent_still_counts() {
    let mut silent = seen(true, &copy("a", "b", true));
    silent.heard = silent.report.take();
    let world = look_at_world(&silent);
    assert_eq!((world.floor, world.backup), (DataVersion(4671), Some(DataVersion(4556))), "they were opened");
    assert!(world.played_since, "it was said that somebody has played");
    let mut silent = seen(true, &copy("a", "b", false));
    silent.heard = silent.report.take();
    assert!(!look_at_world(&silent).played_since, "nobody has, as far as is known");
    assert!(restore_order(&silent).unwrap().unless_played, "and the init container looks for itself");
}

#[test]
fn world_counts_as_played_when_backups_are_unreadable() {
    let mut seen = seen(true, &json!({"good": 0, "problem": "could not look through the copies"}));
    let world = look_at_world(&seen);
    assert_eq!((world.floor, world.backup), (DataVersion(4671), None));
    assert!(world.played_since && restore_order(&seen).unwrap().unless_played);
    seen.heard = seen.report.take();
    assert!(look_at_world(&seen).played_since, "it fell silent with that");
}

#[test]
fn world_counts_as_opened_without_report_or_backup() {
    let started = json!({"metadata": {"name": "lobby-0"}, "status": {"containerStatuses": [{
        "name": "papermc", "ready": false, "restartCount": 0, "image": "", "imageID": "", "state": {"running": {}},
    }]}});
    let unheard = |copies, pod: &Value| {
        let mut seen = seen(copies, &json!(null));
        (seen.report, seen.pod) = (None, serde_json::from_value(pod.clone()).unwrap());
        look_at_world(&seen).floor
    };
    assert_eq!(unheard(false, &started), DataVersion(4671));
    assert_eq!(unheard(true, &started), DataVersion(4556), "who is ordered to put them back looks for itself");
    assert_eq!(unheard(false, &json!({"metadata": {"name": "lobby-0"}})), DataVersion(4556), "its server has not run");
}

#[test]
fn refused_world_format_comes_from_init_container() {
    let floor = |words: &str| look_at_world(&refused(words)).floor;
    let older = "REFUSED: Minecraft 1.21.10 must not open this world: Minecraft 1.21.11 has opened it, and a world cannot go back. Choose 1.21.11";
    assert_eq!(floor(&format!("{older}\nFormat of the worlds (DataVersion): 4671")), DataVersion(4671));
    // The agent of an older pod does not report the format.
    assert_eq!(floor(older), DataVersion(4557));
    assert_eq!(floor("REFUSED: `world/level.dat` cannot be read"), DataVersion(4556));
    assert_eq!(floor("NO BACKUP: no room"), DataVersion(4556));
}

#[test]
fn restore_is_not_requested_without_stable_backup_volume() {
    let world = look_at_world(&seen(false, &copy("a", "b", false)));
    assert_eq!(world.backup, None);
    assert!(world.restore_ordered, "there is nothing to wait for");
}

#[test]
fn restore_is_not_needed_for_revision_with_same_lock() {
    let mut same = seen(true, &copy("a", "b", false));
    same.pod_lock = same.settled_lock.clone();
    assert_eq!(restore_order(&same), None);
    assert!(look_at_world(&same).restore_ordered);
}

/// As [`seen`], for a set that saves plugin data. The running agent reports this plugin data.
fn seen_with_data(plugin_data: &Value) -> Observed {
    let mut seen = seen(true, &json!(null));
    let template = json!({"spec": {"containers": [], "initContainers": [
        {"name": "prepare", "env": [{"name": "NIGHTSHIFT_KEEP_PLUGIN_DATA", "value": "1"}]},
    ]}});
    let template = serde_json::from_value(template).unwrap();
    seen.settled = Some(Arc::new(SettledRecord { template, baseline: Baseline::default(), unproven: None }));
    let report = seen.report.as_deref().unwrap();
    let plugin_data = serde_json::from_value(plugin_data.clone()).unwrap();
    seen.report = Some(Arc::new(AgentReport { plugin_data, ..report.clone() }));
    seen
}

fn kept(before: &str, back: &Value) -> Value {
    json!({"at": "2026-11-22T03:00:00Z", "lock": "a".repeat(64), "before": before.repeat(64), "kept": ["Demo"], "back": back})
}

#[test]
fn plugin_data_restore_excludes_worlds() {
    let mut seen = seen_with_data(&kept("b", &json!(null)));
    assert!(!data_ordered(&seen));
    let order = data_order(&seen).unwrap();
    assert_eq!(order, RestoreOrder { to: "a".repeat(64), failed: "b".repeat(64), unless_played: true, worlds: false });
    seen.orders.back = Some(order);
    assert!(data_ordered(&seen));
    // The same request does not include a restore of the worlds. A request for the worlds includes the plugin data.
    seen.settled = super::tests::seen(true, &json!(null)).settled;
    assert!(!look_at_world(&seen).restore_ordered);
    let mut seen = seen_with_data(&kept("b", &json!(null)));
    seen.orders.back =
        Some(RestoreOrder { to: "a".repeat(64), failed: "b".repeat(64), unless_played: true, worlds: true });
    assert!(data_ordered(&seen));
}

#[test]
fn plugin_data_restore_is_requested_if_data_may_exist() {
    for nothing in [
        json!(null),
        kept("c", &json!(null)),
        kept("b", &json!({"outcome": "somebodyPlayed", "at": "2026-11-22T03:00:00Z"})),
    ] {
        assert!(data_ordered(&seen_with_data(&nothing)), "{nothing}");
    }
    let mut silent = seen_with_data(&json!(null));
    silent.report = None;
    assert!(!data_ordered(&silent));
    // An older template does not support restore requests.
    silent.settled = super::tests::seen(true, &json!(null)).settled;
    assert!(data_ordered(&silent));
}
