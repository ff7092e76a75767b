use crate::server::next_step::warns_or_stops_for_update;
use scheduler::observation::Disruption;
use scheduler::rollout::Step;
use serde_json::{Value, json};

use super::*;
use crate::server::test_server::server;
use validate::check;

const SHUT: Gate = Gate::Shut { opens: None };

fn at(minutes: i64) -> Timestamp {
    Timestamp::from_second(60 * minutes).unwrap()
}

fn build(one_way: bool) -> ServerChange {
    ServerChange { package: "Paper".to_owned(), from: None, to: None, one_way }
}

fn evaluate(schedule: &Value, suspend: bool, one_way: bool) -> OpportunisticState {
    let spec = json!({"updateSchedule": schedule, "suspend": suspend});
    OpportunisticState::new(&check(&server(spec)).unwrap(), &[build(one_way)], SHUT)
}

fn nightly(opportunistic: &Value) -> Value {
    json!({"maintenanceWindow": {"cron": "@daily"}, "opportunistic": opportunistic})
}

#[test]
fn opportunistic_update_excludes_newer_minecraft_and_suspended_server() {
    let minutes = |found: OpportunisticState| (found.empty_for.map(|empty_for| empty_for.as_mins()), found.is_one_way);
    assert_eq!(minutes(evaluate(&nightly(&json!({})), false, false)), (Some(10), false));
    assert_eq!(minutes(evaluate(&nightly(&json!({"emptyFor": "25m"})), false, false)), (Some(25), false));
    assert_eq!(minutes(evaluate(&nightly(&json!({})), false, true)), (None, true));
    assert_eq!(minutes(evaluate(&nightly(&json!({})), true, false)), (None, false), "suspended");
    assert_eq!(minutes(evaluate(&nightly(&Value::Null), false, true)), (None, false));
    let off = json!({"maintenanceWindow": {"enabled": false, "cron": "@daily"}, "opportunistic": {}});
    assert_eq!(minutes(evaluate(&off, false, false)), (None, false), "automatic updates are disabled");
    assert_eq!(minutes(evaluate(&json!({"opportunistic": {}}), false, false)), (None, false), "no window is set");
    let wrong = server(json!({"updateSchedule": nightly(&json!({"emptyFor": "soon"}))}));
    let violations = check(&wrong).unwrap_err();
    assert_eq!(violations[0].path, "spec.updateSchedule.opportunistic.emptyFor");
}

#[test]
fn opportunistic_requeue_matches_empty_time() {
    let waits = evaluate(&nightly(&json!({})), false, false);
    assert_eq!(waits.next_check(Some(at(5)), at(7)), Some(at(15)));
    assert_eq!(waits.next_check(None, at(7)), Some(at(17)), "players are online");
    assert_eq!(waits.next_check(Some(at(0)), at(30)), Some(at(40)), "the player list disagreed");
    let at_once = evaluate(&nightly(&json!({"emptyFor": "0s"})), false, false);
    assert_eq!(at_once.next_check(None, at(7)), Some(at(8)));
    let begun = OpportunisticState { reason: Some(OpportunityReason::Empty), ..waits };
    assert_eq!((begun.next_check(None, at(7)), OpportunisticState::none(SHUT).next_check(None, at(7))), (None, None));
}

#[test]
fn window_text_mentions_opportunistic_update() {
    let sunday = || Some("Sun 22 Nov 04:00 CET".to_owned());
    let waits = evaluate(&nightly(&json!({})), false, false);
    assert_eq!(waits.format_when(sunday()).as_deref(), Some("Sun 22 Nov 04:00 CET or when empty"));
    assert_eq!(waits.format_when(None).as_deref(), Some("when empty"));
    assert_eq!(waits.window_suffix(), " It is also applied when no players have been online for 10 minutes.");
    let begun = OpportunisticState { reason: Some(OpportunityReason::Empty), ..waits };
    assert_eq!(begun.changes_prefix(), "No players have been online for 10 minutes: ");
    let one_way = evaluate(&nightly(&json!({})), false, true);
    assert_eq!((one_way.format_when(sunday()), one_way.format_when(None)), (sunday(), None));
    assert!(one_way.window_suffix().contains("A newer Minecraft is applied in a window only"));
    let off = OpportunisticState::none(SHUT);
    assert_eq!(
        (off.format_when(sunday()), off.window_suffix(), off.changes_prefix()),
        (sunday(), String::new(), String::new())
    );
}

#[test]
fn player_list_is_read_before_announcement_or_stop_only() {
    let (goal, pod, not_after) = (scheduler::observation::Revision(1), scheduler::observation::PodUid(7), at(1));
    let announce = |disruption| Step::Announce { disruption, pod, notice: SignedDuration::ZERO, not_after };
    assert!(warns_or_stops_for_update(announce(Disruption::Update { goal, window_opened_at: at(0) })));
    assert!(warns_or_stops_for_update(Step::Commit { agent_unreachable: false, not_after }));
    assert!(!warns_or_stops_for_update(announce(Disruption::Restart { due: at(0) })));
    assert!(!warns_or_stops_for_update(Step::WriteTemplate { revision: goal, not_after }), "it stops no server yet");
    assert!(!warns_or_stops_for_update(Step::UpToDate));
}
