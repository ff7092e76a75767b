//! Checks how window expressions are read, and which error an invalid one gets.

use super::*;

const HOUR: SignedDuration = SignedDuration::from_hours(1);

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn window(cron: &str, zone: &str, length: SignedDuration) -> Window {
    Window::parse(cron, zone, length).unwrap_or_else(|error| panic!("{error}"))
}

fn single_window(window: Window) -> Windows {
    Windows { windows: vec![window], enabled: true, blackouts: Vec::new() }
}

fn utc(cron: &str) -> Windows {
    single_window(window(cron, "UTC", HOUR))
}

fn open(opened_at: &str, until: &str) -> Gate {
    Gate::Open { opened_at: at(opened_at), until: at(until) }
}

fn shut(opens: &str) -> Gate {
    Gate::Shut { opens: Some(at(opens)) }
}

fn error_message(cron: &str) -> String {
    Window::parse(cron, "UTC", HOUR).unwrap_err().to_string()
}

#[test]
fn gate_includes_start_instant_and_excludes_end_instant() {
    let sundays = utc("0 4 * * 0");
    assert_eq!(sundays.gate(at("2026-01-11T03:59:59.999999999Z")), shut("2026-01-11T04:00:00Z"));
    assert_eq!(sundays.gate(at("2026-01-11T04:00:00Z")), open("2026-01-11T04:00:00Z", "2026-01-11T05:00:00Z"));
    assert_eq!(sundays.gate(at("2026-01-11T04:59:59.999Z")), open("2026-01-11T04:00:00Z", "2026-01-11T05:00:00Z"));
    assert_eq!(sundays.gate(at("2026-01-11T05:00:00Z")), shut("2026-01-18T04:00:00Z"));
}

#[test]
fn sunday_is_0_7_or_name_but_never_1() {
    let monday = at("2026-01-05T00:00:00Z");
    for sunday in ["0", "7", "sun", "SUN", "7-7", "0,7"] {
        assert_eq!(utc(&format!("0 4 * * {sunday}")).gate(monday), shut("2026-01-11T04:00:00Z"), "{sunday}");
    }
    assert_eq!(utc("0 4 * * 1").gate(monday), shut("2026-01-05T04:00:00Z"));
    assert_eq!(utc("0 4 * * fri-sun").gate(monday), shut("2026-01-09T04:00:00Z"));
    assert_eq!(utc("0 4 * * 6-7").gate(at("2026-01-10T12:00:00Z")), shut("2026-01-11T04:00:00Z"));
}

#[test]
fn window_opens_on_either_day_of_month_or_week() {
    let either = utc("0 4 13 * fri");
    assert_eq!(either.gate(at("2026-01-10T00:00:00Z")), shut("2026-01-13T04:00:00Z")); // a Tuesday
    assert_eq!(either.gate(at("2026-01-13T12:00:00Z")), shut("2026-01-16T04:00:00Z")); // a Friday
    // A step is no restriction of this kind, as in Vixie's cron: odd days that are Fridays.
    assert_eq!(utc("0 4 */2 * fri").gate(at("2026-01-10T00:00:00Z")), shut("2026-01-23T04:00:00Z"));
}

#[test]
fn names_steps_ranges_and_lists_follow_vixie_cron() {
    let new_year = at("2026-01-01T00:00:00Z");
    assert_eq!(utc("30 */6 * * *").gate(at("2026-01-01T02:00:00Z")), shut("2026-01-01T06:30:00Z"));
    assert_eq!(utc("0 1-9/4,22 * * *").gate(at("2026-01-01T10:00:00Z")), shut("2026-01-01T22:00:00Z"));
    assert_eq!(utc("0 1-9/4,22 * * *").gate(at("2026-01-01T06:30:00Z")), shut("2026-01-01T09:00:00Z"));
    assert_eq!(utc("0 4 1 Feb-apr,DEC *").gate(new_year), shut("2026-02-01T04:00:00Z"));
    assert_eq!(utc(" 0\t4  * * mon ").gate(new_year), shut("2026-01-05T04:00:00Z"));
}

#[test]
fn nicknames_equal_their_five_fields() {
    let thursday = at("2026-01-01T12:30:00Z");
    let quarter = |cron| single_window(window(cron, "UTC", Window::SHORTEST)).gate(thursday);
    assert_eq!(quarter("@hourly"), shut("2026-01-01T13:00:00Z"));
    assert_eq!(quarter("@daily"), shut("2026-01-02T00:00:00Z"));
    assert_eq!(quarter("@weekly"), shut("2026-01-04T00:00:00Z"));
    assert_eq!(quarter("@monthly"), shut("2026-02-01T00:00:00Z"));
    assert_eq!(quarter("@yearly"), shut("2027-01-01T00:00:00Z"));
}

#[test]
fn local_start_hour_is_stable_across_clock_changes() {
    let daily = single_window(window("0 4 * * *", "Europe/Berlin", HOUR));
    assert_eq!(daily.gate(at("2026-03-27T12:00:00Z")), shut("2026-03-28T03:00:00Z"));
    assert_eq!(daily.gate(at("2026-03-28T12:00:00Z")), shut("2026-03-29T02:00:00Z"));
}

#[test]
fn nonexistent_local_start_opens_right_after_the_gap() {
    let night = single_window(window("30 2 * * *", "Europe/Berlin", HOUR));
    // From 02:00 the clocks went to 03:00, which is 01:00 UTC.
    assert_eq!(night.gate(at("2026-03-29T00:30:00Z")), shut("2026-03-29T01:00:00Z"));
    assert_eq!(night.gate(at("2026-03-29T01:00:00Z")), open("2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"));
    assert_eq!(night.gate(at("2026-03-29T02:00:00Z")), shut("2026-03-30T00:30:00Z"));
    // A gap of half an hour, and one over midnight.
    let lord_howe = single_window(window("15 2 * * *", "Australia/Lord_Howe", HOUR));
    assert_eq!(lord_howe.gate(at("2026-10-03T12:00:00Z")), shut("2026-10-03T15:30:00Z"));
    let cairo = single_window(window("0 0 * * 5", "Africa/Cairo", HOUR));
    assert_eq!(cairo.gate(at("2026-04-23T12:00:00Z")), shut("2026-04-23T22:00:00Z"));
}

#[test]
fn ambiguous_local_start_opens_once() {
    let night = single_window(window("30 2 * * *", "Europe/Berlin", SignedDuration::from_mins(30)));
    assert_eq!(night.gate(at("2026-10-25T00:00:00Z")), shut("2026-10-25T00:30:00Z"));
    assert_eq!(night.gate(at("2026-10-25T00:45:00Z")), open("2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z"));
    // 02:30 for the second time.
    assert_eq!(night.gate(at("2026-10-25T01:30:00Z")), shut("2026-10-26T01:30:00Z"));
    // Also for an instant before the second 02:30, and for a window that is still open then.
    let long = single_window(window("30 2 * * *", "Europe/Berlin", SignedDuration::from_hours(3)));
    for now in ["2026-10-25T00:30:00Z", "2026-10-25T01:10:00Z", "2026-10-25T01:40:00Z", "2026-10-25T03:29:59Z"] {
        assert_eq!(long.gate(at(now)), open("2026-10-25T00:30:00Z", "2026-10-25T03:30:00Z"), "{now}");
    }
}

#[test]
fn overlapping_or_adjacent_windows_form_one_opening() {
    let windows = Windows {
        windows: vec![
            window("0 4 * * *", "UTC", HOUR),
            window("30 4 * * *", "UTC", HOUR),
            window("30 5 * * *", "UTC", HOUR),
            window("0 7 * * *", "UTC", HOUR),
        ],
        enabled: true,
        blackouts: Vec::new(),
    };
    for now in ["04:00", "04:45", "05:10", "05:30", "06:29"] {
        let now = at(&format!("2026-01-10T{now}:00Z"));
        assert_eq!(windows.gate(now), open("2026-01-10T04:00:00Z", "2026-01-10T06:30:00Z"), "{now}");
    }
    assert_eq!(windows.gate(at("2026-01-10T06:30:00Z")), shut("2026-01-10T07:00:00Z"));
    assert_eq!(windows.next_opening(at("2026-01-10T04:00:00Z")), Some(at("2026-01-10T07:00:00Z")));
}

#[test]
fn endless_opening_restarts_at_midnight() {
    let always = single_window(window("*/15 * * * *", "Europe/Berlin", HOUR));
    for now in ["00:00:00", "11:37:12", "23:59:59"] {
        let now = at(&format!("2026-01-10T{now}Z"));
        assert_eq!(always.gate(now), open("2026-01-10T00:00:00Z", "2026-01-11T00:00:00Z"), "{now}");
    }
    // An opening that ends by itself within the second day stays whole, and a longer one is cut only after it.
    let weekend = single_window(window("0 18 * * fri", "UTC", SignedDuration::from_hours(54)));
    let first = open("2026-01-09T18:00:00Z", "2026-01-11T00:00:00Z");
    assert_eq!(weekend.gate(at("2026-01-09T18:00:00Z")), first);
    assert_eq!(weekend.gate(at("2026-01-10T23:59:59Z")), first);
    assert_eq!(weekend.gate(at("2026-01-11T00:00:00Z")), open("2026-01-11T00:00:00Z", "2026-01-12T00:00:00Z"));
    assert_eq!(weekend.gate(at("2026-01-12T00:00:00Z")), shut("2026-01-16T18:00:00Z"));
}

#[test]
fn server_without_windows_has_one_opening_per_day() {
    let none = Windows { windows: Vec::new(), enabled: true, blackouts: Vec::new() };
    let not_used = Windows { enabled: false, ..utc("0 4 * * 0") };
    for windows in [none, not_used] {
        let now = at("2026-01-10T15:00:00Z");
        assert_eq!(windows.gate(now), open("2026-01-10T00:00:00Z", "2026-01-11T00:00:00Z"));
        assert_eq!(windows.next_opening(now), Some(at("2026-01-11T00:00:00Z")));
    }
}

#[test]
fn exhausted_schedule_reports_no_next_opening() {
    assert_eq!(utc("0 4 * * 0").gate(at("2150-01-01T00:00:00Z")), Gate::Shut { opens: None });
}

#[test]
fn manual_request_opens_gate_for_half_an_hour() {
    let requested = at("2026-01-10T15:00:00Z");
    let opened = Some(open("2026-01-10T15:00:00Z", "2026-01-10T15:30:00Z"));
    let after = |seconds| requested + SignedDuration::from_secs(seconds);
    assert_eq!(Gate::on_request(requested, false, after(10)), opened);
    assert_eq!(Gate::on_request(requested, false, after(-20)), opened, "the requester's clock may be ahead");
    assert_eq!(Gate::on_request(requested, false, after(301)), None, "an old request starts no update");
    assert_eq!(Gate::on_request(requested, false, after(-61)), None);
    assert_eq!(Gate::on_request(requested, true, after(301)), opened, "an accepted request counts longer");
    assert_eq!(Gate::on_request(requested, true, after(1800)), None);
    assert_eq!(Gate::on_request(Timestamp::MAX, true, requested), None);
}

#[test]
fn invalid_field_is_reported_with_a_correction() {
    assert_eq!(error_message("0 25 * * 0"), "`25` is wrong as hour of a schedule: write 0 to 23",);
    assert_eq!(
        error_message("0 4 * * sunday"),
        "`sunday` is wrong as day of week of a schedule: write 0 to 7 or sun, mon, tue, wed, thu, fri, sat",
    );
    assert_eq!(
        error_message("0 22-2 * * *"),
        "`22-2` is wrong as hour of a schedule: a range has to ascend, write `22-23,0-2`"
    );
    assert_eq!(
        error_message("0 4 * * sat-mon"),
        "`sat-mon` is wrong as day of week of a schedule: a range has to ascend, write `sat-6,0-mon`"
    );
    assert_eq!(
        error_message("5/15 4 * * *"),
        "`5/15` is wrong as minute of a schedule: a step needs a range, write `5-59/15`"
    );
    assert_eq!(
        error_message("*/0 4 * * *"),
        "`*/0` is wrong as minute of a schedule: write a step of 1 to 59 after `/`"
    );
    assert_eq!(
        error_message("0 4 31,, * *"),
        "`31,,` is wrong as day of month of a schedule: a value is missing at a comma, write 1 to 31 there or remove the comma"
    );
    for nonsense in
        ["0 4 L * *", "0 4 ? * *", "0 4 * * 1#2", "+1 4 * * *", "0 4 * * 8", "0 4 0 * *", "60 4 * * *", "0 -1 * * *"]
    {
        assert!(matches!(Window::parse(nonsense, "UTC", HOUR), Err(WindowError::InvalidFields { .. })), "{nonsense}");
    }
}

#[test]
fn every_invalid_field_is_reported_with_its_range() {
    assert_eq!(
        error_message("60 24 * * 8"),
        "`60` is wrong as minute of a schedule: write 0 to 59; `24` is wrong as hour of a schedule: write 0 to 23; \
         `8` is wrong as day of week of a schedule: write 0 to 7 or sun, mon, tue, wed, thu, fri, sat"
    );
}

#[test]
fn zone_before_schedule_is_reported_with_its_field() {
    let expected = |prefix| {
        format!(
            "`{prefix}=Europe/Berlin` is not part of a schedule: write `0 4 * * *`, and `timeZone: Europe/Berlin` beside it"
        )
    };
    for prefix in ["CRON_TZ", "TZ"] {
        assert_eq!(error_message(&format!("{prefix}=Europe/Berlin  0 4 * * *")), expected(prefix));
    }
    assert!(error_message("TZ=UTC").starts_with("`TZ=UTC` has 1 fields"));
}

#[test]
fn valid_schedule_may_have_zeros_tabs_and_spaces() {
    let plain = utc("0 4 * * 0");
    for text in ["00 04 * * 00", "0\t4\t*\t*\t0", "0 4 * * 0  ", " 0 4 * * 7", "0 4 * * 0,0,0"] {
        assert_eq!(utc(text).gate(at("2026-01-01T00:00:00Z")), plain.gate(at("2026-01-01T00:00:00Z")), "{text}");
    }
}

#[test]
fn wrong_field_count_is_reported_with_an_example() {
    assert!(error_message("0 4 * *").starts_with("`0 4 * *` has 4 fields, a schedule has five: minute, hour,"));
    assert_eq!(
        error_message("0 0 4 * * 0"),
        "`0 0 4 * * 0` has 6 fields, a schedule has five and no seconds: try `0 4 * * 0`"
    );
    assert!(error_message("0 0 4 ? * SUN").ends_with("try `0 4 * * SUN`"));
    assert!(error_message("").starts_with("`` has 0 fields"));
    assert!(error_message("@reboot").starts_with("`@reboot` is unknown: write `@hourly`"));
}

#[test]
fn impossible_or_too_short_window_is_rejected() {
    assert_eq!(error_message("0 4 30 2 *"), "`0 4 30 2 *` never occurs: no month that it names has such a day");
    assert_eq!(utc("0 4 29 2 *").gate(at("2026-01-01T00:00:00Z")), shut("2028-02-29T04:00:00Z"));
    let length = |minutes| Window::parse("@daily", "UTC", SignedDuration::from_mins(minutes)).unwrap_err();
    assert_eq!(length(5).to_string(), "a window of 5m is too short: write 15m to 168h");
    assert_eq!(length(169 * 60).to_string(), "a window of 169h is too long: write 15m to 168h");
    assert_eq!(length(-60).field(), "duration");
}

#[test]
fn misspelled_time_zone_is_reported_with_its_correct_name() {
    let zone = |name: &str| Window::parse("@daily", name, HOUR).unwrap_err();
    assert_eq!(zone("europe/berlin").to_string(), "`europe/berlin` is not a time zone: write `Europe/Berlin`");
    assert_eq!(zone("America/New York").to_string(), "`America/New York` is not a time zone: write `America/New_York`");
    assert_eq!(
        zone("GMT+2").to_string(),
        "`GMT+2` is an offset and not a time zone: write the place, such as `Europe/Berlin`, whose clocks also change in summer, or \
         `Etc/GMT-2` for exactly this offset (its sign is reversed)"
    );
    for (offset, fixed) in [
        ("+02:00", Some("Etc/GMT-2")),
        ("-0500", Some("Etc/GMT+5")),
        ("utc+14", Some("Etc/GMT-14")),
        ("UTC -5", Some("Etc/GMT+5")),
        ("+00:00", Some("UTC")),
        ("GMT+5:30", None),
        ("+15", None),
    ] {
        assert_eq!(zone(offset), WindowError::Offset { name: offset.to_owned(), fixed: fixed.map(str::to_owned) });
        assert_eq!(zone(offset).field(), "timeZone");
        assert!(fixed.is_none_or(|fixed| check_zone(fixed).is_ok()), "{offset}");
    }
    for text in ["+", "GMT+", "+2x", "+-2", "+1:2:3", "\u{ff0b}2", "Local"] {
        assert!(matches!(zone(text), WindowError::Zone { .. }), "{text}");
    }
    assert_eq!(
        zone("CET+1").to_string(),
        "`CET+1` is not a time zone: write an IANA name such as `Europe/Berlin` or `UTC`",
    );
    assert_eq!(zone("Europe/Berlim").to_string(), "`Europe/Berlim` is not a time zone: write `Europe/Berlin`");
    assert_eq!(zone("").field(), "timeZone");
    assert_eq!(window("@daily", "Europe/Berlin", HOUR).zone(), "Europe/Berlin");
}

mod blackouts;
