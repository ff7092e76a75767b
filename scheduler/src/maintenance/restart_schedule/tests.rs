//! Checks which instant is served by which start, and what takes priority over it.

use super::super::Blackout;
use super::*;

const HALF_AN_HOUR: SignedDuration = SignedDuration::from_mins(30);

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn restarts(cron: &str) -> RestartSchedule {
    RestartSchedule::parse(cron, "Europe/Berlin", HALF_AN_HOUR).unwrap()
}

fn no_blackouts() -> Windows {
    Windows { windows: Vec::new(), enabled: true, blackouts: Vec::new() }
}

/// The instant that is due.
fn due(restarts: &RestartSchedule, started: &str, now: &str) -> Option<String> {
    no_blackouts().due_restart(restarts, at(started), at(now)).map(|found| found.due.to_string())
}

fn next(restarts: &RestartSchedule, started: &str, now: &str) -> String {
    no_blackouts().next_restart(restarts, at(started), at(now)).unwrap().to_string()
}

#[test]
fn restart_is_due_at_instant_unless_server_started_since() {
    let nightly = restarts("0 5 * * *");
    let of_yesterday = "2026-01-10T04:01:00Z";
    assert_eq!(due(&nightly, of_yesterday, "2026-01-11T03:59:59Z"), None);
    let found = no_blackouts().due_restart(&nightly, at(of_yesterday), at("2026-01-11T04:00:00Z"));
    let five = DueRestart {
        due: at("2026-01-11T04:00:00Z"),
        until: at("2026-01-11T04:30:00Z"),
        yields_until: at("2026-01-11T10:00:00Z"),
    };
    assert_eq!(found, Some(five));
    assert_eq!(due(&nightly, "2026-01-11T04:00:41Z", "2026-01-11T04:01:00Z"), None, "any restart serves it");
}

#[test]
fn missed_restart_is_caught_up_for_half_an_hour() {
    let nightly = restarts("0 5 * * *");
    let started = "2026-01-10T04:01:00Z";
    assert_eq!(due(&nightly, started, "2026-01-11T04:29:59Z").as_deref(), Some("2026-01-11T04:00:00Z"));
    assert_eq!(due(&nightly, started, "2026-01-11T04:30:00Z"), None);
    assert_eq!(next(&nightly, started, "2026-01-11T04:30:00Z"), "2026-01-12T04:00:00Z");
}

#[test]
fn server_updated_in_same_night_is_not_restarted() {
    let nightly = restarts("0 5 * * *");
    assert_eq!(due(&nightly, "2026-01-10T22:00:01Z", "2026-01-11T04:00:00Z"), None, "less than six hours");
    assert!(due(&nightly, "2026-01-10T22:00:00Z", "2026-01-11T04:00:00Z").is_some(), "six hours");
    assert_eq!(next(&nightly, "2026-01-10T22:00:01Z", "2026-01-11T03:00:00Z"), "2026-01-12T04:00:00Z");
}

#[test]
fn four_hourly_restart_requires_two_hours_of_uptime() {
    let often = restarts("0 */4 * * *");
    assert!(due(&often, "2026-01-11T03:05:00Z", "2026-01-11T07:00:00Z").is_some());
    assert_eq!(due(&often, "2026-01-11T05:00:01Z", "2026-01-11T07:00:00Z"), None, "less than two hours of uptime");
}

#[test]
fn update_within_the_same_night_replaces_the_restart() {
    let due = "2026-01-11T04:00:00Z";
    let until = |restarts: RestartSchedule, started: &str| restarts.yields_until(at(started), at(due)).to_string();
    assert_eq!(until(restarts("0 5 * * *"), "2026-01-10T04:01:00Z"), "2026-01-11T10:00:00Z");
    assert_eq!(until(restarts("0 5 * * 0"), "2026-01-10T04:01:00Z"), "2026-01-11T10:00:00Z");
    assert_eq!(until(restarts("0 1,5,9,13,17,21 * * *"), "2026-01-11T00:01:00Z"), "2026-01-11T06:00:00Z");
    // The night before had no restart: the update that should have replaced it did not happen.
    assert_eq!(until(restarts("0 5 * * *"), "2026-01-09T22:00:00Z"), due);
    assert_eq!(
        until(restarts("0 5 * * *"), "2026-01-09T22:00:01Z"),
        "2026-01-11T10:00:00Z",
        "the server had just been updated"
    );
    let every_other_night = restarts("0 5 * * *").with_least_uptime(SignedDuration::from_hours(36));
    assert_eq!(until(every_other_night.clone(), "2026-01-09T04:01:00Z"), "2026-01-11T10:00:00Z");
    assert_eq!(until(every_other_night, "2026-01-08T04:01:00Z"), due);
}

#[test]
fn minimum_uptime_before_restart_is_configurable() {
    let after_12 = restarts("0 5 * * *").with_least_uptime(SignedDuration::from_hours(12));
    assert!(due(&after_12, "2026-01-10T16:00:00Z", "2026-01-11T04:10:00Z").is_some(), "uptime at the instant counts");
    assert_eq!(due(&after_12, "2026-01-10T16:00:01Z", "2026-01-11T04:10:00Z"), None);
    let every_other_night = restarts("0 5 * * *").with_least_uptime(SignedDuration::from_hours(36));
    assert_eq!(next(&every_other_night, "2026-01-10T04:01:00Z", "2026-01-10T05:00:00Z"), "2026-01-12T04:00:00Z");
    let always = restarts("0 5 * * *").with_least_uptime(SignedDuration::ZERO);
    assert!(due(&always, "2026-01-11T03:59:59Z", "2026-01-11T04:00:00Z").is_some());
    assert_eq!(due(&always, "2026-01-11T04:00:00Z", "2026-01-11T04:00:01Z"), None, "it started at the instant itself");
}

#[test]
fn running_countdown_is_unchanged_by_next_instant() {
    let every_minute = restarts("* * * * *");
    let started = "2026-01-11T04:00:10Z";
    let first = Some("2026-01-11T04:01:00Z".to_owned());
    for now in ["2026-01-11T04:01:00Z", "2026-01-11T04:02:00Z", "2026-01-11T04:30:59Z"] {
        assert_eq!(due(&every_minute, started, now), first, "{now}");
    }
}

#[test]
fn clock_change_nights_have_one_restart_each() {
    let nightly = restarts("30 2 * * *");
    // Clocks set forward: 02:30 does not exist, and falls at 03:00, which is 01:00 UTC.
    assert_eq!(next(&nightly, "2026-03-28T01:30:00Z", "2026-03-28T12:00:00Z"), "2026-03-29T01:00:00Z");
    assert_eq!(next(&nightly, "2026-03-29T01:00:30Z", "2026-03-29T01:00:30Z"), "2026-03-30T00:30:00Z");
    // Clocks set back: 02:30 occurs twice, and counts the first time.
    assert_eq!(next(&nightly, "2026-10-24T00:31:00Z", "2026-10-24T12:00:00Z"), "2026-10-25T00:30:00Z");
    assert_eq!(next(&nightly, "2026-10-25T00:31:00Z", "2026-10-25T00:31:00Z"), "2026-10-26T01:30:00Z");
    assert_eq!(due(&nightly, "2026-10-25T00:31:00Z", "2026-10-25T01:30:00Z"), None);
}

#[test]
fn restart_schedule_uses_its_time_zone() {
    let utc = RestartSchedule::parse("0 5 * * *", "UTC", HALF_AN_HOUR).unwrap();
    assert_eq!(next(&utc, "2026-01-01T00:00:00Z", "2026-01-11T04:00:00Z"), "2026-01-11T05:00:00Z");
    assert!(RestartSchedule::parse("0 5 * *", "UTC", HALF_AN_HOUR).is_err());
    assert!(RestartSchedule::parse("0 5 * * *", "Berlin", HALF_AN_HOUR).is_err());
}

#[test]
fn blackout_skips_instants_within_and_unserved_ones_before() {
    let (nightly, started) = (restarts("0 5 * * *"), at("2026-01-10T04:01:00Z"));
    let dark = |from: &str, to: &str| {
        let from_to = (at(&format!("2026-01-11T{from}:00Z")), at(&format!("2026-01-11T{to}:00Z")));
        Windows { blackouts: vec![Blackout::once("event", from_to.0, from_to.1).unwrap()], ..no_blackouts() }
    };
    let due = |windows: &Windows, now: &str| windows.due_restart(&nightly, started, at(now));
    let during = dark("03:50", "04:10");
    assert_eq!(due(&during, "2026-01-11T04:00:00Z"), None);
    assert_eq!(due(&during, "2026-01-11T04:10:00Z"), None, "the skipped instant is not caught up");
    assert_eq!(during.next_restart(&nightly, started, at("2026-01-11T00:00:00Z")), Some(at("2026-01-12T04:00:00Z")));
    let after = dark("04:10", "04:20");
    let found = due(&after, "2026-01-11T04:05:00Z").unwrap();
    assert_eq!(found.until, at("2026-01-11T04:10:00Z"), "the stop must precede the blackout");
    assert_eq!((due(&after, "2026-01-11T04:15:00Z"), due(&after, "2026-01-11T04:25:00Z")), (None, None));
    let before = dark("03:00", "03:59");
    assert!(due(&before, "2026-01-11T04:00:00Z").is_some());
}

#[test]
fn start_time_out_of_range_is_handled() {
    let nightly = restarts("0 5 * * *").with_least_uptime(SignedDuration::from_hours(1));
    assert_eq!(no_blackouts().due_restart(&nightly, Timestamp::MAX, at("2026-01-11T04:00:00Z")), None);
    assert_eq!(no_blackouts().due_restart(&nightly, Timestamp::MIN, Timestamp::MIN), None);
    let always = nightly.with_least_uptime(SignedDuration::ZERO);
    assert_eq!(no_blackouts().due_restart(&always, Timestamp::MIN, Timestamp::MIN), None);
}
