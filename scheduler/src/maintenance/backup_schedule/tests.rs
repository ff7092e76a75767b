//! Checks which instant is served, once, by which backup, and compares the result with a plain loop over the instants.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use proptest::prelude::*;

use super::*;

fn at(text: &str) -> Timestamp {
    format!("2026-11-22T{text}Z").parse().unwrap()
}

fn every_six_hours() -> BackupTimes {
    BackupTimes::parse("0 */6 * * *", "UTC").unwrap()
}

fn recorded(request: &str, outcome: OnlineBackupOutcome) -> OnlineBackupReport {
    OnlineBackupReport { request: request.to_owned(), at: at("12:00:10"), outcome }
}

fn failed() -> OnlineBackupOutcome {
    OnlineBackupOutcome::Failed { why: "no room".to_owned() }
}

/// The backup that is due for a schedule whose 12 o'clock was shown.
fn due(past: BackupHistory<'_>, now: &str) -> Option<DueBackup> {
    next_backup(Some(&every_six_hours()), None, &BackupHistory { last_shown: Some(at("12:00:00")), ..past }, at(now))
}

fn noon() -> DueBackup {
    DueBackup::Scheduled(at("12:00:00"))
}

#[test]
fn missed_backup_is_caught_up_within_half_the_interval() {
    let nothing = BackupHistory::default();
    assert_eq!(due(nothing, "11:59:59"), None);
    assert_eq!(due(nothing, "12:00:00"), Some(noon()));
    assert_eq!(due(nothing, "14:59:59"), Some(noon()));
    assert_eq!(due(nothing, "15:00:00"), None);
    assert_eq!(due(nothing, "18:00:00"), Some(DueBackup::Scheduled(at("18:00:00"))), "only the latest instant counts");
}

#[test]
fn new_schedule_catches_up_no_earlier_instant() {
    let owed = |last_shown| {
        every_six_hours().due_instant(&BackupHistory { last_shown, ..BackupHistory::default() }, at("13:00:00"))
    };
    assert_eq!(owed(None), None);
    assert_eq!(owed(Some(at("18:00:00"))), None);
    assert_eq!(owed(Some(at("06:00:00"))), Some(at("12:00:00")), "the schedule had this instant before");
}

#[test]
fn request_given_to_agent_is_served_whatever_its_outcome() {
    let noon = DueBackup::Scheduled(at("12:00:00")).request();
    assert_eq!(noon, "scheduled-2026-11-22T12:00:00Z");
    for outcome in [OnlineBackupOutcome::Running, OnlineBackupOutcome::Taken { id: "a".to_owned() }, failed()] {
        let last_request = recorded(&noon, outcome);
        assert_eq!(
            due(BackupHistory { last_request: Some(&last_request), ..BackupHistory::default() }, "12:01:00"),
            None
        );
    }
    let earlier = recorded("scheduled-2026-11-22T06:00:00Z", failed());
    assert!(due(BackupHistory { last_request: Some(&earlier), ..BackupHistory::default() }, "12:01:00").is_some());
}

#[test]
fn good_backup_begun_since_instant_serves_it() {
    let newest = |begun: &str| BackupHistory { newest: Some(at(begun)), ..BackupHistory::default() };
    assert_eq!(due(newest("12:00:00"), "12:30:00"), None);
    assert_eq!(due(newest("11:59:59"), "12:30:00"), Some(noon()));
}

#[test]
fn instant_without_players_is_skipped_under_played_only_policy() {
    let schedule = every_six_hours().only_if_played();
    let owed = |schedule: &BackupTimes, is_unplayed, now| {
        let newest = Some(at("06:00:00"));
        schedule.due_instant(
            &BackupHistory { last_shown: Some(at("12:00:00")), last_request: None, newest, is_unplayed },
            at(now),
        )
    };
    assert_eq!(owed(&schedule, true, "12:00:00"), None);
    assert_eq!(owed(&schedule, false, "12:00:00"), Some(at("12:00:00")));
    assert_eq!(owed(&every_six_hours(), true, "12:00:00"), Some(at("12:00:00")), "the policy is not set");
}

#[test]
fn manual_backup_comes_first_once_and_waits_for_running_one() {
    let now = at("12:04:00");
    let request = |at: Timestamp, accepted| Some(BackupRequest { at, accepted });
    let next = |request, last_request: Option<&OnlineBackupReport>| {
        let past = BackupHistory { last_shown: Some(at("12:00:00")), last_request, newest: None, is_unplayed: false };
        next_backup(Some(&every_six_hours()), request, &past, now)
    };
    let of_now = request(at("12:03:00"), false);
    let name = format!("asked-{}", at("12:03:00").as_second());
    assert_eq!(next(of_now, None).unwrap().request(), name);
    assert_eq!(next(of_now, Some(&recorded("another", OnlineBackupOutcome::Running))), None);
    assert_eq!(next(of_now, Some(&recorded(&name, failed()))), None, "noon waits until the request is recorded");
    // Requests that are old or from the future do not count. An accepted one counts for half an hour.
    for (text, accepted, counts) in
        [("11:59:00", false, false), ("11:59:01", false, true), ("12:05:01", false, false), ("11:34:01", true, true)]
    {
        let is_requested = matches!(next(request(at(text), accepted), None), Some(DueBackup::Requested(_)));
        assert_eq!(is_requested, counts, "{text}");
    }
    assert_eq!(next_backup(None, None, &BackupHistory::default(), now), None);
}

#[test]
fn backup_schedule_uses_its_time_zone() {
    let berlin = BackupTimes::parse("0 5 * * *", "Europe/Berlin").unwrap();
    assert_eq!(berlin.next(at("03:59:59")), Some(at("04:00:00")));
    assert!(BackupTimes::parse("0 5 * *", "UTC").is_err() && BackupTimes::parse("0 5 * * *", "Mars").is_err());
}

/// Schedules that are frequent, rare or irregular, and nights in which the clocks change.
fn schedules() -> impl Strategy<Value = BackupTimes> {
    let crons = ["* * * * *", "*/7 * * * *", "0 */6 * * *", "30 2 * * *", "0 0,1,9 * * *", "15 3 1,15 * 1"];
    let zones = ["UTC", "Europe/Berlin", "Australia/Lord_Howe"];
    (prop::sample::select(crons.to_vec()), prop::sample::select(zones.to_vec()))
        .prop_map(|(cron, zone)| BackupTimes::parse(cron, zone).unwrap())
}

/// The days on which both zones change their clocks.
fn days() -> impl Strategy<Value = Timestamp> {
    prop::sample::select(vec![
        "2026-03-27T00:00:00Z",
        "2026-04-03T00:00:00Z",
        "2026-10-02T00:00:00Z",
        "2026-10-23T00:00:00Z",
    ])
    .prop_map(|day| day.parse().unwrap())
}

fn minutes(count: i64) -> SignedDuration {
    SignedDuration::from_mins(count)
}

/// All instants from `from` up to the first one after `to`.
fn instants(schedule: &BackupTimes, from: Timestamp, to: Timestamp) -> Vec<Timestamp> {
    let just_before = from - SignedDuration::from_nanos(1);
    let step = |at: &Timestamp| schedule.next(*at).filter(|_| *at <= to);
    std::iter::successors(schedule.next(just_before), step).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn due_backup_matches_plain_loop_over_instants(
        schedule in schedules(), day in days(), last_shown in 0_i64..3_000, now in 0_i64..5_000,
        newest in prop::option::of(0_i64..5_000), named in prop::option::of(0_usize..40),
    ) {
        let (last_shown, now) = (day + minutes(last_shown), day + minutes(now));
        let newest = newest.map(|offset| day + minutes(offset));
        let all = instants(&schedule, last_shown, now);
        let last_request = named.and_then(|it| all.get(it)).map(|it| recorded(&DueBackup::Scheduled(*it).request(), failed()));
        let mut found = None;
        for pair in all.windows(2) {
            let (this, next) = (pair[0], pair[1]);
            let middle = this + (next.duration_since(this) / 2);
            let is_given = last_request.as_ref().is_some_and(|last_request| last_request.request == DueBackup::Scheduled(this).request());
            if this <= now && now < middle && !is_given && newest.is_none_or(|begun| begun < this) {
                found = Some(this);
            }
        }
        let past = BackupHistory { last_shown: Some(last_shown), last_request: last_request.as_ref(), newest, is_unplayed: false };
        prop_assert_eq!(schedule.due_instant(&past, now), found);
    }

    #[test]
    fn any_observation_sequence_serves_every_possible_instant_once(
        schedule in schedules(), day in days(),
        observations in prop::collection::vec((1_i64..600, any::<bool>(), any::<bool>()), 1..30),
    ) {
        let (mut now, mut last_shown, mut newest, mut latest) = (day, None, None, day);
        let mut last_request: Option<OnlineBackupReport> = None;
        let mut served = BTreeSet::new();
        for (gap, is_able, succeeds) in observations {
            now += minutes(gap);
            let is_first = last_shown.is_none();
            let past = BackupHistory { last_shown, last_request: last_request.as_ref(), newest, is_unplayed: false };
            let due = next_backup(Some(&schedule), None, &past, now);
            let owed = schedule.due_instant(&past, now);
            prop_assert!(!(is_first && due.is_some()), "no instant was shown yet");
            let shown_before = last_shown;
            last_shown = owed.or_else(|| schedule.next(now));
            if let Some(due) = due.filter(|_| is_able) {
                prop_assert!(served.insert(due.request()), "{} was served twice", due.request());
                let outcome = if succeeds { OnlineBackupOutcome::Taken { id: "a".to_owned() } } else { failed() };
                last_request = Some(OnlineBackupReport { request: due.request(), at: now, outcome });
                newest = if succeeds { Some(now) } else { newest };
            }
            // An instant that could have been served and was not is too late, or is older than the first pass.
            let next = loop {
                match schedule.next(latest).unwrap() {
                    passed if passed <= now => latest = passed,
                    next => break next,
                }
            };
            let is_young = now.duration_since(latest) < next.duration_since(latest) / 2;
            let was_shown = shown_before.is_some_and(|last_shown| last_shown <= latest);
            if is_able && is_young && was_shown {
                prop_assert!(served.contains(&DueBackup::Scheduled(latest).request()));
            }
        }
    }
}
