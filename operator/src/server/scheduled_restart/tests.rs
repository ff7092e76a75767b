use serde_json::{Value, json};

use super::*;
use crate::requeue::Outcome;
use crate::server::test_server::server;
use validate::check;

fn at(text: &str) -> Timestamp {
    format!("2026-01-{text}:00Z").parse().unwrap()
}

/// A server in the zone Europe/Berlin with this restart and these additional fields.
fn checked(more: &Value) -> CheckedServer {
    let mut spec = json!({"timeZone": "Europe/Berlin", "restart": {"cron": "0 5 * * *"}});
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    check(&server(spec)).unwrap()
}

/// A pod created at one instant, whose process started at another. `None` if it does not run.
fn pod(made: Timestamp, process: Option<Timestamp>) -> Pod {
    let state = match process {
        Some(began) => json!({"running": {"startedAt": began.to_string()}}),
        None => json!({"waiting": {"reason": "CrashLoopBackOff"}}),
    };
    serde_json::from_value(json!({
        "metadata": {"name": "lobby-0", "creationTimestamp": made.to_string()},
        "status": {"containerStatuses": [
            {"name": "beside", "ready": true, "restartCount": 0, "image": "", "imageID": "",
             "state": {"running": {"startedAt": "2020-01-01T00:00:00Z"}}},
            {"name": "papermc", "ready": true, "restartCount": 0, "image": "", "imageID": "", "state": state},
        ]},
    }))
    .unwrap()
}

fn of_yesterday() -> Pod {
    pod(at("10T04:01"), Some(at("10T04:02")))
}

#[test]
fn scheduled_restart_is_due_for_running_process() {
    let night = at("11T04:00");
    let due = |pod: &Pod| ScheduledRestarts::new(&checked(&json!({})), Some(pod), night).due.map(|restart| restart.due);
    assert_eq!(due(&of_yesterday()), Some(night));
    assert_eq!(due(&pod(at("10T04:01"), Some(at("11T03:30")))), None, "a user ran /stop half an hour ago");
    assert_eq!(due(&pod(at("11T03:30"), Some(at("10T04:02")))), None, "the clock of the node is wrong");
    assert_eq!(due(&pod(at("10T04:01"), None)), None, "the process is not running");
    assert_eq!(ScheduledRestarts::new(&checked(&json!({})), None, night), ScheduledRestarts::default());
}

#[test]
fn scheduled_restart_needs_field_and_no_suspend() {
    let of = |more: Value| ScheduledRestarts::new(&checked(&more), Some(&of_yesterday()), at("11T04:00"));
    assert_eq!(of(json!({"restart": null})), ScheduledRestarts::default());
    assert_eq!(of(json!({"suspend": true})), ScheduledRestarts::default());
    assert_eq!(of(json!({})).next, Some(at("12T04:00")));
}

#[test]
fn scheduled_restart_ignores_windows_and_approval() {
    for more in [
        json!({"updateSchedule": {"maintenanceWindow": {"enabled": false}}}),
        json!({"updateSchedule": {"maintenanceWindow": {"cron": "0 4 29 2 *"}}}),
        json!({"approval": "Required"}),
    ] {
        assert!(ScheduledRestarts::new(&checked(&more), Some(&of_yesterday()), at("11T04:00")).due.is_some(), "{more}");
    }
}

#[test]
fn scheduled_restart_skips_blackout() {
    let event = json!([{"name": "event", "from": "2026-01-11T00:00:00Z", "to": "2026-01-12T12:00:00Z"}]);
    let server = checked(&json!({"updateSchedule": {"blackouts": event}}));
    let restarts = ScheduledRestarts::new(&server, Some(&of_yesterday()), at("11T04:00"));
    assert_eq!((restarts.due, restarts.next), (None, Some(at("13T04:00"))));
}

#[test]
fn scheduled_restart_expires_after_half_an_hour_and_countdown() {
    let until = |restart: Value| {
        let server = checked(&json!({"restart": restart, "players": {"deadline": "20m", "notice": "10m"}}));
        ScheduledRestarts::new(&server, Some(&of_yesterday()), at("11T04:00")).due.unwrap().until
    };
    assert_eq!(until(json!({"cron": "0 5 * * *"})), at("11T04:40"));
    assert_eq!(until(json!({"cron": "0 5 * * *", "policy": "WaitForEmpty"})), at("11T05:00"));
}

#[test]
fn scheduled_restart_uses_own_policy_and_text_first() {
    let players = json!({"policy": "Ignore", "text": "Neustart in {in}"});
    let own_restart =
        json!({"cron": "0 5 * * *", "policy": "Announce", "text": "Gleich wieder da", "onlyIf": {"empty": true}});
    let of = |restart: &Value, players: &Value| {
        let players = checked(&json!({"restart": restart, "players": players})).players;
        (players.restart.unwrap(), players.restart_announcement.text)
    };
    let plain = json!({"cron": "0 5 * * *"});
    let (restart, text) = of(&plain, &players);
    assert_eq!((restart.policy, text.as_str()), (scheduler::observation::PlayerPolicy::Ignore, "Neustart in {in}"));
    assert!(!restart.only_empty);
    let (restart, text) = of(&own_restart, &players);
    assert_eq!((restart.policy, text.as_str()), (scheduler::observation::PlayerPolicy::Announce, "Gleich wieder da"));
    assert!(restart.only_empty);
    let (_, text) = of(&plain, &json!({}));
    assert!(text.contains("{in}") && !text.contains("update"), "{text}");
}

fn requeue(restarts: ScheduledRestarts, outcome: Outcome, now: Timestamp) -> Outcome {
    restarts.next.map_or(outcome, |next| outcome.no_later_than(next, now))
}

#[test]
fn scheduled_restart_requeues_at_its_instant() {
    let restarts = ScheduledRestarts { next: Some(at("11T04:00")), ..ScheduledRestarts::default() };
    let soon = at("11T03:56");
    let exactly = Outcome::Waiting { until: Some(at("11T04:00")) };
    assert_eq!(requeue(restarts, Outcome::UpToDate, soon), exactly);
    assert_eq!(requeue(restarts, Outcome::Waiting { until: None }, soon), exactly);
    assert_eq!(requeue(restarts, Outcome::Waiting { until: Some(at("20T04:00")) }, soon), exactly);
    assert_eq!(requeue(restarts, Outcome::UpToDate, at("11T03:00")), Outcome::UpToDate, "the usual requeue is earlier");
    assert_eq!(requeue(restarts, Outcome::Acted, soon), Outcome::Acted);
    assert_eq!(requeue(ScheduledRestarts::default(), Outcome::UpToDate, soon), Outcome::UpToDate);
}
