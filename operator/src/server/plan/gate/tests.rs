//! Pure. Tests which requests open the gate.

use crds::paper_mc_server::{AvailableUpdate, HandledRequests};
use jiff::SignedDuration;
use scheduler::maintenance::Window;
use scheduler::observation::{PodUid, Revision};
use serde_json::{Value, json};

use super::*;
use crate::k8s::labels;
use crate::server::approval::ApprovalState;
use crate::server::partial::urgent::UrgentUpdate;

const REQUESTED: &str = "1767225600";

fn server(handled: &Value) -> PaperMCServer {
    serde_json::from_value(json!({
        "metadata": {"name": "lobby", "namespace": "games", "annotations": {"nightshift.dev/apply-now": REQUESTED}},
        "spec": {"eula": "Accepted", "updateStrategy": "auto", "updateSchedule": {"maintenanceWindow": {"cron": "@daily"}}},
        "status": {"lastHandled": handled},
    }))
    .unwrap()
}

fn handled(server: &PaperMCServer) -> Option<&HandledRequests> {
    server.status.as_ref()?.last_handled.as_ref()
}

fn manual_gate(server: &PaperMCServer, windows: &Windows, now: Timestamp) -> Option<Gate> {
    super::manual_gate(server, handled(server), windows, now)
}

fn refused_by_blackout(
    server: &PaperMCServer,
    approval: &ApprovalState,
    windows: &Windows,
    now: Timestamp,
) -> Option<Timestamp> {
    super::refused_by_blackout(server, handled(server), approval.apply_since, windows, now)
}

fn windows() -> Windows {
    Windows { windows: Vec::new(), enabled: true, blackouts: Vec::new() }
}

fn no_approval() -> ApprovalState {
    ApprovalState { needs_approval: false, apply_since: None, requests_other_set: None }
}

fn at(minutes: i64) -> Timestamp {
    requested_at(REQUESTED).unwrap() + SignedDuration::from_mins(minutes)
}

#[test]
fn apply_request_expires_after_five_minutes_unless_accepted() {
    let (fresh, accepted) = (server(&json!({})), server(&json!({"applyNowAccepted": REQUESTED})));
    assert!(manual_gate(&fresh, &windows(), at(4)).is_some());
    assert_eq!(manual_gate(&fresh, &windows(), at(6)), None);
    let gate = manual_gate(&accepted, &windows(), at(6)).unwrap();
    assert!(request_opens_gate(REQUESTED, gate, Some(at(0))));
    assert!(!request_opens_gate("1767225601", gate, Some(at(0))));
    assert_eq!(manual_gate(&accepted, &windows(), at(31)), None);
}

#[test]
fn apply_request_already_served_is_ignored() {
    assert_eq!(manual_gate(&server(&json!({"applyNow": REQUESTED})), &windows(), at(1)), None);
    assert_eq!(manual_gate(&server(&json!({"applyNowAccepted": "1767225000"})), &windows(), at(6)), None);
}

#[test]
fn apply_request_with_scope_is_known_by_whole_value() {
    let scoped = format!("{REQUESTED};only=plugin/vault");
    let requesting = |handled: &Value| {
        let mut server = server(handled);
        server.annotations_mut().insert(labels::APPLY_NOW.to_owned(), scoped.clone());
        server
    };
    let gate = manual_gate(&requesting(&json!({})), &windows(), at(4)).unwrap();
    assert!(request_opens_gate(&scoped, gate, Some(at(0))));
    assert!(manual_gate(&requesting(&json!({"applyNowAccepted": scoped})), &windows(), at(6)).is_some());
    for handled in [json!({"applyNowAccepted": REQUESTED}), json!({"applyNow": scoped})] {
        assert_eq!(manual_gate(&requesting(&handled), &windows(), at(6)), None);
    }
}

#[test]
fn urgent_gate_opens_only_without_rollout_in_progress() {
    let urgent = PartialSelection::Urgent(UrgentUpdate::Urgent(resolver::partial::Scope::default()));
    let available_update: AvailableUpdate = serde_json::from_value(json!({
        "digest": "00", "version": "1.21.10", "build": 1, "oneWay": false, "summary": "", "foundAt": at(3), "staged": true,
    }))
    .unwrap();
    let gate = |partial: &PartialSelection, tries_another| {
        urgent_gate(&windows(), partial, Some(&available_update), tries_another, at(10))
    };
    assert!(matches!(gate(&urgent, false), Some(Gate::Open { opened_at, .. }) if opened_at == at(3)));
    assert_eq!((gate(&urgent, true), gate(&PartialSelection::Nothing, false)), (None, None));
}

#[test]
fn request_gate_is_not_confused_with_window() {
    let open = Gate::Open { opened_at: at(0), until: at(30) };
    assert!(!request_opens_gate(REQUESTED, open, None), "a window opened at that instant");
    assert!(!request_opens_gate(REQUESTED, open, Some(at(1))));
    assert!(!request_opens_gate(REQUESTED, Gate::Shut { opens: None }, Some(at(0))));
    assert!(!request_opens_gate("soon", open, None));
}

#[test]
fn apply_request_during_blackout_is_reported_as_refused() {
    let blackout = scheduler::maintenance::Blackout::once("event", at(2), at(10)).unwrap();
    let dark = Windows { blackouts: vec![blackout], ..windows() };
    let (fresh, accepted) = (server(&json!({})), server(&json!({"applyNowAccepted": REQUESTED})));
    assert_eq!(manual_gate(&fresh, &dark, at(1)), Some(Gate::Open { opened_at: at(0), until: at(2) }));
    assert_eq!(refused_by_blackout(&fresh, &no_approval(), &dark, at(1)), None);
    for (server, now) in [(&fresh, at(3)), (&accepted, at(3)), (&accepted, at(11))] {
        assert_eq!(manual_gate(server, &dark, now), None);
        assert_eq!(refused_by_blackout(server, &no_approval(), &dark, now), Some(at(0)));
    }
    assert_eq!(refused_by_blackout(&fresh, &no_approval(), &dark, at(6)), None, "the request has expired anyway");
    assert_eq!(
        refused_by_blackout(&server(&json!({"applyNow": REQUESTED})), &no_approval(), &dark, at(3)),
        None,
        "the request was handled already"
    );
}

#[test]
fn apply_request_for_lock_is_refused_by_blackout_too() {
    let blackout = scheduler::maintenance::Blackout::once("event", at(2), at(10)).unwrap();
    let dark = Windows { blackouts: vec![blackout], ..windows() };
    let mut other = server(&json!({}));
    (other.metadata.annotations, other.metadata.uid) = (None, Some("uid".to_owned()));
    let applies = ApprovalState { apply_since: Some(at(1)), ..no_approval() };
    assert_eq!(refused_by_blackout(&other, &applies, &dark, at(3)), Some(at(1)));
    assert_eq!(refused_by_blackout(&other, &applies, &windows(), at(3)), None);
    let checked = validate::check(&other).unwrap();
    let manual_gate = windows().on_request(at(0), true, at(1));
    assert_eq!(Some(gate(&checked, manual_gate, at(1))), manual_gate);
}

#[test]
fn update_counts_as_announced_in_window_only_in_its_own_opening() {
    let midnight = Window::parse("0 0 * * *", "UTC", SignedDuration::from_mins(40)).unwrap();
    let window = Windows { windows: vec![midnight], ..windows() };
    assert_eq!(window.gate(at(5)), Gate::Open { opened_at: at(0), until: at(40) });
    let announced_at = |opened_at, pod| {
        let mut observed = crate::server::online_backup::tests::observed(false, &json!({}));
        observed.pod.as_mut().unwrap().metadata.uid = Some(PodUid(7).to_string());
        let act = Disruption::Update { goal: Revision(2), window_opened_at: opened_at };
        observed.facts.announced = Some(Announced { act, pod: PodUid(pod), ends: at(6) });
        observed
    };
    let counts = |observed: &Observed, minute| is_announced_in_window(observed, &window, at(minute));
    assert!(counts(&announced_at(at(0), 7), 5) && counts(&announced_at(at(0), 7), 8));
    assert!(!counts(&announced_at(at(0), 7), 16), "the countdown has expired");
    assert!(!counts(&announced_at(at(3), 7), 5), "announced for a request");
    assert!(!counts(&announced_at(at(0), 8), 5), "announced to another pod");
    assert!(!counts(&announced_at(at(0), 7), 41), "the window is shut");
}
