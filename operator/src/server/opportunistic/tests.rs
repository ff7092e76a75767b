use serde_json::{Value, json};

use super::*;
use crate::server::check::check;
use crate::server::check::tests::server;

const SHUT: Gate = Gate::Shut { opens: None };

fn at(minutes: i64) -> Timestamp {
    Timestamp::from_second(60 * minutes).unwrap()
}

fn build(one_way: bool) -> ServerChange {
    ServerChange { what: "Paper".to_owned(), from: None, to: None, one_way }
}

fn of(schedule: &Value, suspend: bool, one_way: bool) -> OpportunisticState {
    let spec = json!({"updateSchedule": schedule, "suspend": suspend});
    OpportunisticState::of(&check(&server(spec)).unwrap(), &[build(one_way)], SHUT)
}

fn nightly(opportunistic: &Value) -> Value {
    json!({"maintenanceWindow": {"cron": "@daily"}, "opportunistic": opportunistic})
}

#[test]
fn opportunistic_update_excludes_newer_minecraft_and_suspended_server() {
    let minutes = |found: OpportunisticState| (found.empty_for.map(|it| it.as_mins()), found.is_one_way);
    assert_eq!(minutes(of(&nightly(&json!({})), false, false)), (Some(10), false));
    assert_eq!(minutes(of(&nightly(&json!({"emptyFor": "25m"})), false, false)), (Some(25), false));
    assert_eq!(minutes(of(&nightly(&json!({})), false, true)), (None, true));
    assert_eq!(minutes(of(&nightly(&json!({})), true, false)), (None, false), "suspended");
    assert_eq!(minutes(of(&nightly(&Value::Null), false, true)), (None, false));
    let off = json!({"maintenanceWindow": {"enabled": false, "cron": "@daily"}, "opportunistic": {}});
    assert_eq!(minutes(of(&off, false, false)), (None, false), "never by itself");
    assert_eq!(minutes(of(&json!({"opportunistic": {}}), false, false)), (None, false), "nobody said when");
    let wrong = server(json!({"updateSchedule": nightly(&json!({"emptyFor": "soon"}))}));
    let complaints = check(&wrong).unwrap_err();
    assert_eq!(complaints[0].path, "spec.updateSchedule.opportunistic.emptyFor");
}

#[test]
fn opportunistic_requeue_matches_empty_time() {
    let waits = of(&nightly(&json!({})), false, false);
    assert_eq!(waits.next_look(Some(at(5)), at(7)), Some(at(15)));
    assert_eq!(waits.next_look(None, at(7)), Some(at(17)), "somebody is on");
    assert_eq!(waits.next_look(Some(at(0)), at(30)), Some(at(40)), "the list did not say so");
    let at_once = of(&nightly(&json!({"emptyFor": "0s"})), false, false);
    assert_eq!(at_once.next_look(None, at(7)), Some(at(8)));
    let begun = OpportunisticState { occasion: Some(OpportunityReason::Empty), ..waits };
    assert_eq!((begun.next_look(None, at(7)), OpportunisticState::none(SHUT).next_look(None, at(7))), (None, None));
}

#[test]
fn window_text_mentions_opportunistic_update() {
    let sunday = || Some("Sun 22 Nov 04:00 CET".to_owned());
    let waits = of(&nightly(&json!({})), false, false);
    assert_eq!(waits.beside(sunday()).as_deref(), Some("Sun 22 Nov 04:00 CET or when empty"));
    assert_eq!(waits.beside(None).as_deref(), Some("when empty"));
    assert_eq!(waits.instead_of_waiting(), "; it also comes when nobody has been on for 10 minutes");
    let begun = OpportunisticState { occasion: Some(OpportunityReason::Empty), ..waits };
    assert_eq!(begun.why_now(), "nobody has been on for 10 minutes: ");
    let one_way = of(&nightly(&json!({})), false, true);
    assert_eq!((one_way.beside(sunday()), one_way.beside(None)), (sunday(), None));
    assert!(one_way.instead_of_waiting().contains("a newer Minecraft comes in a window only"));
    let off = OpportunisticState::none(SHUT);
    assert_eq!(
        (off.beside(sunday()), off.instead_of_waiting(), off.why_now()),
        (sunday(), String::new(), String::new())
    );
}

#[test]
fn player_list_is_read_before_announcement_or_stop_only() {
    let (goal, pod, not_after) = (scheduler::observation::Revision(1), scheduler::observation::PodUid(7), at(1));
    let announce = |act| Step::Announce { act, pod, notice: SignedDuration::ZERO, not_after };
    assert!(rests_on_nobody(announce(Disruption::Update { goal, window_opened_at: at(0) })));
    assert!(rests_on_nobody(Step::Commit { unasked: false, not_after }));
    assert!(!rests_on_nobody(announce(Disruption::Restart { due: at(0) })));
    assert!(!rests_on_nobody(Step::WriteTemplate { revision: goal, not_after }), "it changes nothing yet");
    assert!(!rests_on_nobody(Step::Settled));
}
