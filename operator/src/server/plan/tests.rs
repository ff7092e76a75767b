use jiff::SignedDuration;
use serde_json::{Value, json};

use super::*;

const ASKED: &str = "1767225600";

fn server(handled: &Value) -> PaperMCServer {
    serde_json::from_value(json!({
        "metadata": {"name": "lobby", "namespace": "games", "annotations": {"nightshift.dev/apply-now": ASKED}},
        "spec": {"eula": "Accepted", "updateStrategy": "auto", "updateSchedule": {"maintenanceWindow": {"cron": "@daily"}}},
        "status": {"lastHandled": handled},
    }))
    .unwrap()
}

fn handled(server: &PaperMCServer) -> Option<&HandledRequests> {
    server.status.as_ref()?.last_handled.as_ref()
}

fn requested_by_hand(server: &PaperMCServer, windows: &Windows, now: Timestamp) -> Option<Gate> {
    super::requested_by_hand(server, handled(server), windows, now)
}

fn refused_by_blackout(
    server: &PaperMCServer,
    consent: &ApprovalState,
    windows: &Windows,
    now: Timestamp,
) -> Option<Timestamp> {
    super::refused_by_blackout(server, handled(server), consent, windows, now)
}

fn windows() -> Windows {
    Windows { windows: Vec::new(), enabled: true, blackouts: Vec::new() }
}

fn silence() -> ApprovalState {
    ApprovalState { needs_approval: false, apply_since: None, applies_another: None }
}

fn at(minutes: i64) -> Timestamp {
    asked_at(ASKED).unwrap() + SignedDuration::from_mins(minutes)
}

#[test]
fn apply_request_expires_after_five_minutes_unless_accepted() {
    let (fresh, accepted) = (server(&json!({})), server(&json!({"applyNowAccepted": ASKED})));
    assert!(requested_by_hand(&fresh, &windows(), at(4)).is_some());
    assert_eq!(requested_by_hand(&fresh, &windows(), at(6)), None);
    let gate = requested_by_hand(&accepted, &windows(), at(6)).unwrap();
    assert!(opens(ASKED, gate));
    assert!(!opens("1767225601", gate));
    assert_eq!(requested_by_hand(&accepted, &windows(), at(31)), None);
}

#[test]
fn apply_request_already_served_is_ignored() {
    assert_eq!(requested_by_hand(&server(&json!({"applyNow": ASKED})), &windows(), at(1)), None);
    assert_eq!(requested_by_hand(&server(&json!({"applyNowAccepted": "1767225000"})), &windows(), at(6)), None);
}

#[test]
fn apply_request_with_scope_is_known_by_whole_value() {
    let scoped = format!("{ASKED};only=plugin/vault");
    let asks = |handled: &Value| {
        let mut server = server(handled);
        server.annotations_mut().insert(labels::APPLY_NOW.to_owned(), scoped.clone());
        server
    };
    let gate = requested_by_hand(&asks(&json!({})), &windows(), at(4)).unwrap();
    assert!(opens(&scoped, gate));
    assert!(requested_by_hand(&asks(&json!({"applyNowAccepted": scoped})), &windows(), at(6)).is_some());
    for handled in [json!({"applyNowAccepted": ASKED}), json!({"applyNow": scoped})] {
        assert_eq!(requested_by_hand(&asks(&handled), &windows(), at(6)), None);
    }
}

#[test]
fn urgent_gate_opens_only_without_rollout_in_progress() {
    let urgent = PartialSelection::Early(UrgentUpdate::Urgent(resolver::partial::Scope::default()));
    let known: AvailableUpdate = serde_json::from_value(json!({
        "digest": "00", "version": "1.21.10", "build": 1, "oneWay": false, "summary": "", "foundAt": at(3), "staged": true,
    }))
    .unwrap();
    let gate =
        |alone: &PartialSelection, tries_another| early_gate(&windows(), alone, Some(&known), tries_another, at(10));
    assert!(matches!(gate(&urgent, false), Some(Gate::Open { opened_at, .. }) if opened_at == at(3)));
    assert_eq!((gate(&urgent, true), gate(&PartialSelection::Nothing, false)), (None, None));
}

#[test]
fn request_gate_is_not_confused_with_window() {
    assert!(!opens(ASKED, Gate::Open { opened_at: at(1), until: at(30) }));
    assert!(!opens(ASKED, Gate::Shut { opens: None }));
}

#[test]
fn apply_request_during_blackout_is_reported_as_refused() {
    let blackout = scheduler::maintenance::Blackout::once("event", at(2), at(10)).unwrap();
    let dark = Windows { blackouts: vec![blackout], ..windows() };
    let (fresh, accepted) = (server(&json!({})), server(&json!({"applyNowAccepted": ASKED})));
    assert_eq!(requested_by_hand(&fresh, &dark, at(1)), Some(Gate::Open { opened_at: at(0), until: at(2) }));
    assert_eq!(refused_by_blackout(&fresh, &silence(), &dark, at(1)), None);
    for (server, now) in [(&fresh, at(3)), (&accepted, at(3)), (&accepted, at(11))] {
        assert_eq!(requested_by_hand(server, &dark, now), None);
        assert_eq!(refused_by_blackout(server, &silence(), &dark, now), Some(at(0)));
    }
    assert_eq!(refused_by_blackout(&fresh, &silence(), &dark, at(6)), None, "too old to count anyway");
    assert_eq!(
        refused_by_blackout(&server(&json!({"applyNow": ASKED})), &silence(), &dark, at(3)),
        None,
        "served already"
    );
}

#[test]
fn apply_request_for_lock_is_refused_by_blackout_too() {
    let blackout = scheduler::maintenance::Blackout::once("event", at(2), at(10)).unwrap();
    let dark = Windows { blackouts: vec![blackout], ..windows() };
    let mut other = server(&json!({}));
    (other.metadata.annotations, other.metadata.uid) = (None, Some("uid".to_owned()));
    let applies = ApprovalState { apply_since: Some(at(1)), ..silence() };
    assert_eq!(refused_by_blackout(&other, &applies, &dark, at(3)), Some(at(1)));
    assert_eq!(refused_by_blackout(&other, &applies, &windows(), at(3)), None);
    let checked = crate::server::check::check(&other).unwrap();
    let by_hand = windows().by_hand(at(0), true, at(1));
    let open = gate(&checked, &silence(), by_hand, at(1));
    assert_eq!(Some(open), by_hand);
    let unapproved = ApprovalState { needs_approval: true, ..silence() };
    assert_eq!(gate(&checked, &unapproved, by_hand, at(1)), Gate::Shut { opens: None });
}

#[test]
fn running_lock_needs_no_staging() {
    let lock = |build: u32, read_at: &str| -> Lock {
        serde_json::from_value(json!({
            "server": "games/lobby", "minecraft": "1.21.10", "build": build, "java": 21, "plugins": [],
            "paper": {"name": "paper.jar", "url": "", "hash": "sha256:00"},
            "facts": [{"about": "Paper", "readAt": read_at}],
        }))
        .unwrap()
    };
    let files = json!({
        "lock": "00", "minecraft": "1.21.10", "build": 130, "support": [], "plugins": [],
        "server": {"path": "paper.jar", "hash": "sha256:00", "url": ""},
    });
    let files = serde_json::from_value(files).unwrap();
    let record = Arc::new(LockRecord { lock: lock(130, "2026-11-20T12:00:00Z"), files });
    let runs = WhatRuns { lock: Some(record), floor: None, strangers: None };
    assert!(runs.record_of(&lock(130, "2026-11-21T12:00:00Z")).is_some(), "the same, read again later");
    assert!(runs.record_of(&lock(131, "2026-11-20T12:00:00Z")).is_none());
    let nothing = WhatRuns { lock: None, floor: None, strangers: None };
    assert!(nothing.record_of(&lock(130, "2026-11-20T12:00:00Z")).is_none());
}
