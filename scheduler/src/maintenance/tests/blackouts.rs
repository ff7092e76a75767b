//! Checks blackouts and closed last parts, by example.
//!
//! `tests/gate_blackouts.rs` checks them against their definition.

use super::*;

fn once(from: &str, to: &str) -> Blackout {
    Blackout::once("tournament", at(from), at(to)).unwrap()
}

fn recurring(cron: &str, zone: &str, length: SignedDuration) -> Blackout {
    Blackout::recurring("evenings", cron, zone, length).unwrap()
}

fn with_blackouts(blackouts: Vec<Blackout>) -> Windows {
    // Sundays, 04:00 to 05:00.
    Windows { blackouts, ..utc("0 4 * * 0") }
}

#[test]
fn blackout_cancels_window_and_next_window_lies_outside_it() {
    let christmas = with_blackouts(vec![once("2026-12-18T00:00:00Z", "2027-01-07T00:00:00Z")]);
    let opens = "2027-01-10T04:00:00Z";
    for now in ["2026-12-18T00:00:00Z", "2026-12-20T04:30:00Z", "2027-01-06T23:59:59.9Z", "2027-01-07T00:00:00Z"] {
        assert_eq!(christmas.gate(at(now)), shut(opens), "{now}");
        assert_eq!(christmas.next_opening(at(now)), Some(at(opens)), "{now}");
    }
    assert_eq!(christmas.gate(at("2026-12-14T12:00:00Z")), shut(opens), "also before the blackout begins");
    assert!(christmas.blackout_at(at("2027-01-07T00:00:00Z")).is_none(), "the end instant is excluded");
}

#[test]
fn blackout_within_window_leaves_two_openings() {
    let split = with_blackouts(vec![once("2026-01-11T04:20:00Z", "2026-01-11T04:30:00Z")]);
    let first = open("2026-01-11T04:00:00Z", "2026-01-11T04:20:00Z");
    assert_eq!(split.gate(at("2026-01-11T04:10:00Z")), first);
    assert_eq!(split.gate(at("2026-01-11T04:25:00Z")), shut("2026-01-11T04:30:00Z"));
    assert_eq!(split.gate(at("2026-01-11T04:45:00Z")), open("2026-01-11T04:30:00Z", "2026-01-11T05:00:00Z"));
    assert_eq!(split.next_opening(at("2026-01-11T04:10:00Z")), Some(at("2026-01-11T04:30:00Z")));
}

#[test]
fn urgent_update_ignores_windows_but_waits_for_blackouts() {
    let windows = with_blackouts(vec![once("2026-01-06T12:00:00Z", "2026-01-06T14:00:00Z")]);
    let found = at("2026-01-06T09:30:00Z");
    let urgent = |now: &str| windows.without_windows(found, at(now));
    let morning = open("2026-01-06T09:30:00Z", "2026-01-06T12:00:00Z");
    assert_eq!((urgent("2026-01-06T09:30:00Z"), urgent("2026-01-06T11:59:59Z")), (morning, morning));
    assert_eq!(urgent("2026-01-06T12:00:00Z"), shut("2026-01-06T14:00:00Z"));
    assert_eq!(urgent("2026-01-06T15:00:00Z"), open("2026-01-06T14:00:00Z", "2026-01-08T00:00:00Z"));
    assert_eq!(urgent("2026-01-08T00:00:00Z"), open("2026-01-08T00:00:00Z", "2026-01-09T00:00:00Z"));
    assert_eq!(urgent("2026-01-06T09:00:00Z"), open("2026-01-06T09:00:00Z", "2026-01-06T12:00:00Z"), "skewed clock");
}

#[test]
fn recurring_blackout_follows_its_time_zone() {
    let nights = single_window(window("0 2 * * *", "Europe/Berlin", SignedDuration::from_hours(3)));
    let evenings = recurring("0 18 * * 5-6", "Europe/Berlin", SignedDuration::from_hours(12));
    let windows = Windows { blackouts: vec![evenings], ..nights };
    // From Saturday 28 March until 06:00 on Sunday, an hour shorter in this night: 05:00 UTC.
    let saturday = at("2026-03-28T20:00:00Z");
    let (blackout, until) = windows.blackout_at(saturday).unwrap();
    assert_eq!((blackout.name(), until), ("evenings", at("2026-03-29T05:00:00Z")));
    assert_eq!(windows.gate(saturday), shut("2026-03-30T00:00:00Z"));
}

#[test]
fn consecutive_blackouts_are_skipped_to_their_end() {
    let days = (0..5).map(|day| {
        once(&format!("2026-01-{:02}T00:00:00Z", 11 + 7 * day - 3), &format!("2026-01-{:02}T12:00:00Z", 11 + 7 * day))
    });
    let windows = with_blackouts(days.take(3).collect());
    assert_eq!(windows.gate(at("2026-01-05T00:00:00Z")), shut("2026-02-01T04:00:00Z"));
}

#[test]
fn fully_blacked_out_windows_never_open_after_bounded_search() {
    let spoilt = with_blackouts(vec![recurring("0 3 * * *", "UTC", SignedDuration::from_hours(3))]);
    assert_eq!(spoilt.gate(at("2026-01-05T00:00:00Z")), Gate::Shut { opens: None });
    assert_eq!(spoilt.next_opening(at("2026-01-05T00:00:00Z")), None);
    // One whole year costs one lookup, however many windows are in it.
    let year = once("2026-01-01T00:00:00Z", "2066-01-01T00:00:00Z");
    let hourly = Windows { blackouts: vec![year], ..utc("@hourly") };
    assert_eq!(hourly.gate(at("2026-01-05T00:00:00Z")), shut("2066-01-01T00:00:00Z"));
}

#[test]
fn manual_request_does_not_override_blackout() {
    let windows = with_blackouts(vec![once("2026-01-10T15:10:00Z", "2026-01-10T15:12:00Z")]);
    let on_request = |requested, accepted, now| windows.on_request(at(requested), accepted, at(now));
    let before = "2026-01-10T15:00:00Z";
    assert_eq!(on_request(before, false, "2026-01-10T15:00:05Z"), Some(open(before, "2026-01-10T15:10:00Z")));
    assert_eq!(on_request(before, true, "2026-01-10T15:10:00Z"), None);
    assert_eq!(on_request(before, true, "2026-01-10T15:12:00Z"), None, "a request from before it is void");
    assert_eq!(on_request("2026-01-10T15:11:00Z", false, "2026-01-10T15:11:10Z"), None);
    assert_eq!(on_request("2026-01-10T15:11:00Z", false, "2026-01-10T15:12:10Z"), None);
    let after = "2026-01-10T15:12:00Z";
    assert_eq!(on_request(after, false, "2026-01-10T15:12:10Z"), Some(open(after, "2026-01-10T15:42:00Z")));
}

#[test]
fn no_update_begins_in_closed_last_part_of_window() {
    let window = |cron| window(cron, "UTC", HOUR).with_last_part(SignedDuration::from_mins(20)).unwrap();
    let sundays = single_window(window("0 4 * * 0"));
    assert_eq!(sundays.gate(at("2026-01-11T04:39:59Z")), open("2026-01-11T04:00:00Z", "2026-01-11T05:00:00Z"));
    let ending = |until, opens| Gate::NoNewStarts {
        opened_at: at("2026-01-11T04:00:00Z"),
        until: at(until),
        opens: Some(at(opens)),
    };
    assert_eq!(sundays.gate(at("2026-01-11T04:40:00Z")), ending("2026-01-11T05:00:00Z", "2026-01-18T04:00:00Z"));
    assert_eq!(sundays.gate(at("2026-01-11T05:00:00Z")), shut("2026-01-18T04:00:00Z"));
    // Another window that joins opens the gate again, and it is still the same opening.
    let joined = Windows { windows: vec![window("0 4 * * 0"), window("50 4 * * 0")], ..sundays };
    assert_eq!(joined.gate(at("2026-01-11T04:45:00Z")), ending("2026-01-11T05:50:00Z", "2026-01-11T04:50:00Z"));
    assert_eq!(joined.gate(at("2026-01-11T04:50:00Z")), open("2026-01-11T04:00:00Z", "2026-01-11T05:50:00Z"));
}

#[test]
fn invalid_blackout_or_latest_start_is_reported_with_correction() {
    let backwards = Blackout::once("x", at("2026-01-02T00:00:00Z"), at("2026-01-02T00:00:00Z")).unwrap_err();
    assert!(backwards.to_string().contains("write the later time as `to`"), "{backwards}");
    let length = |length| Blackout::recurring("x", "@daily", "UTC", length).unwrap_err().to_string();
    assert_eq!(length(SignedDuration::from_secs(59)), "a blackout of 59s is too short: write 1m to 366d");
    assert_eq!(length(SignedDuration::from_hours(367 * 24)), "a blackout of 8808h is too long: write 1m to 366d");
    let part = |minutes| window("@daily", "UTC", HOUR).with_last_part(SignedDuration::from_mins(minutes));
    assert!(part(59).is_ok());
    let error = part(60).unwrap_err();
    assert_eq!(error.field(), "latestStart");
    assert!(
        error.to_string().starts_with("no update could start in a window of 1h whose last 1h are closed"),
        "{error}"
    );
}
