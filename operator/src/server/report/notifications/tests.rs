//! Pure. Tests when notifications are created, and that each is created once.

use serde_json::json;

use super::*;
use crate::server::act::outcome::{MarkedStable, StepOutcome};
use crate::server::report::tests::Pass;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn now() -> Timestamp {
    at("2026-11-21T12:00:00Z")
}

fn hours(count: i64) -> SignedDuration {
    SignedDuration::from_hours(count)
}

fn minutes(count: i64) -> SignedDuration {
    SignedDuration::from_mins(count)
}

fn channel(name: &str, events: &[&str]) -> Channel {
    let written = json!({
        "name": name, "type": "Discord", "secret": {"name": "chat", "key": "address"}, "events": events,
    });
    Channel::for_server("games", serde_json::from_value(written).unwrap())
}

fn team() -> Vec<Channel> {
    vec![channel("team", &[])]
}

const OPENS: &str = "2026-11-22T03:00:00Z";

fn planned(revision: &str) -> NotificationInput {
    NotificationInput {
        planned: Some(Planned {
            revision: revision.to_owned(),
            changes: "ViaVersion 5.6.0 -> 5.7.1".to_owned(),
            when: "Sun 22 Nov 04:00 CET".to_owned(),
            opens: Some(at(OPENS)),
            opens_at: "Sun 22 Nov 04:00 CET".to_owned(),
        }),
        ..NotificationInput::default()
    }
}

/// A pass between these facts.
fn between(before: (&str, &[&str]), after: (&str, &[&str])) -> NotificationInput {
    let facts = |(stable, failed): (&str, &[&str])| {
        Some(RolloutFacts {
            settled: Some(stable.to_owned()),
            settled_world: None,
            failed: failed.iter().map(|&it| it.to_owned()).collect(),
        })
    };
    NotificationInput {
        rollout_before: facts(before),
        rollout: facts(after),
        was_planned: Some("ViaVersion 5.6.0 -> 5.7.1".to_owned()),
        ..NotificationInput::default()
    }
}

/// The pending notifications with their channels.
fn pending(notifications: &[NotificationState]) -> Vec<(NotificationEvent, String)> {
    notifications
        .iter()
        .filter(|notification| !notification.pending.is_empty())
        .map(|notification| (notification.event, notification.pending.join(" ")))
        .collect()
}

fn to_team(events: &[NotificationEvent]) -> Vec<(NotificationEvent, String)> {
    events.iter().map(|&event| (event, "team".to_owned())).collect()
}

/// Marks all notifications as delivered.
fn delivered(mut notifications: Vec<NotificationState>) -> Vec<NotificationState> {
    for notification in &mut notifications {
        notification.pending.clear();
    }
    notifications
}

#[test]
fn plan_is_notified_with_window_and_ten_minutes_before() {
    let first = next_notifications(&[], &team(), &planned("a"), now());
    assert_eq!(pending(&first), to_team(&[NotificationEvent::Planned]));
    assert_eq!(first[0].when.as_deref(), Some("Sun 22 Nov 04:00 CET"));
    let mut status = delivered(first);
    for later in [minutes(5), hours(10)] {
        status = next_notifications(&status, &team(), &planned("a"), now() + later);
        assert_eq!(pending(&status), []);
    }
    let too_early =
        next_notifications(&status, &team(), &planned("a"), at(OPENS) - minutes(10) - SignedDuration::from_secs(1));
    assert_eq!(pending(&too_early), []);
    let soon = next_notifications(&status, &team(), &planned("a"), at(OPENS) - minutes(10));
    assert_eq!(pending(&soon), to_team(&[NotificationEvent::Soon]));
    assert_eq!(
        soon.iter().find(|notification| notification.event == NotificationEvent::Soon).unwrap().until,
        at(OPENS)
    );
    let after = next_notifications(&delivered(soon), &team(), &planned("a"), at(OPENS) - minutes(3));
    assert_eq!(pending(&after), []);
}

#[test]
fn soon_notification_is_skipped_right_after_plan() {
    let channels = vec![channel("both", &[]), channel("late", &["Soon"])];
    let notifications = next_notifications(&[], &channels, &planned("a"), at(OPENS) - minutes(4));
    assert_eq!(
        pending(&notifications),
        [(NotificationEvent::Planned, "both".to_owned()), (NotificationEvent::Soon, "late".to_owned())]
    );
    let open = next_notifications(&[], &channels, &planned("a"), at(OPENS));
    assert_eq!(pending(&open), [(NotificationEvent::Planned, "both".to_owned())], "the window is open already");
}

#[test]
fn changing_plan_is_notified_at_most_hourly() {
    let first = next_notifications(&[], &team(), &planned("a"), now());
    let mut status = delivered(first.clone());
    for minute in 1..60 {
        status = next_notifications(&status, &team(), &planned(&format!("b{minute}")), now() + minutes(minute));
        assert_eq!(pending(&status), [], "{minute}");
    }
    let last = next_notifications(&status, &team(), &planned("c"), now() + hours(1));
    assert_eq!(pending(&last), to_team(&[NotificationEvent::Planned]));
    let undelivered = next_notifications(&first, &team(), &planned("c"), now() + minutes(1));
    assert_eq!(pending(&undelivered).len(), 1, "the new plan replaces the pending one");
    assert_eq!(undelivered.iter().find(|notification| !notification.pending.is_empty()).unwrap().about, "c");
}

#[test]
fn applied_update_allows_next_plan_notification_at_once() {
    let status = delivered(next_notifications(&[], &team(), &planned("a"), now()));
    let mut done = between(("0", &[]), ("a", &[]));
    done.down = Some(SignedDuration::from_secs(130));
    let status = next_notifications(&status, &team(), &done, now() + minutes(10));
    assert_eq!(pending(&status), to_team(&[NotificationEvent::Done]));
    let done_notification = status.iter().find(|notification| notification.event == NotificationEvent::Done).unwrap();
    assert_eq!(
        (done_notification.down.as_deref(), done_notification.what.as_str()),
        (Some("2 min 10 s"), "ViaVersion 5.6.0 -> 5.7.1")
    );
    let next = next_notifications(&delivered(status), &team(), &planned("b"), now() + minutes(20));
    assert_eq!(pending(&next), to_team(&[NotificationEvent::Planned]));
}

#[test]
fn update_end_is_notified_once_except_first_start() {
    assert_eq!(pending(&next_notifications(&[], &team(), &between(("a", &[]), ("a", &[])), now())), []);
    let mut first_start = between(("a", &[]), ("a", &[]));
    first_start.rollout_before = None;
    assert_eq!(pending(&next_notifications(&[], &team(), &first_start, now())), []);
    first_start.rollout_before = Some(RolloutFacts::default());
    assert_eq!(pending(&next_notifications(&[], &team(), &first_start, now())), []);
    // Updated and rolled back within a day: each is reported.
    let verified = delivered(next_notifications(&[], &team(), &between(("a", &[]), ("b", &[])), now()));
    let rolled_back =
        delivered(next_notifications(&verified, &team(), &between(("b", &[]), ("a", &[])), now() + hours(1)));
    let again = next_notifications(&rolled_back, &team(), &between(("a", &[]), ("b", &[])), now() + hours(2));
    assert_eq!(pending(&again), to_team(&[NotificationEvent::Done]));
}

#[test]
fn failure_text_is_built_only_for_new_failures() {
    let mut pass = Pass::new();
    let problem =
        |pass: &Pass| NotificationInput::new(&pass.checked, &pass.report(), &pass.before, &pass.status()).problem;
    assert_eq!(problem(&pass), None, "there is no earlier status");
    pass = pass.next();
    assert_eq!(problem(&pass), None, "no update failed");
    pass.observed.facts.failed.push(scheduler::observation::Revision(3));
    assert!(problem(&pass).is_some_and(|why| !why.is_empty()));
    assert_eq!(problem(&pass.next()), None, "the failure was reported");
}

#[test]
fn failed_update_is_notified_as_rollback_or_manual_decision() {
    let mut failed = between(("a", &["x"]), ("a", &["x", "b"]));
    failed.problem = Some("CoreProtect 23.1 did not enable".to_owned());
    let rolled_back = next_notifications(&[], &team(), &failed, now());
    assert_eq!(pending(&rolled_back), to_team(&[NotificationEvent::RolledBack]));
    assert_eq!(rolled_back[0].why.as_deref(), Some("CoreProtect 23.1 did not enable"));
    failed.needs_manual_recovery = true;
    assert_eq!(pending(&next_notifications(&[], &team(), &failed, now())), to_team(&[NotificationEvent::Failed]));
    // The oldest entry is pruned from the list of ten. No revision has failed.
    let pushed = between(("a", &["x", "b"]), ("a", &["b"]));
    assert_eq!(pending(&next_notifications(&[], &team(), &pushed, now())), []);
}

#[test]
fn rollback_that_needs_manual_recovery_is_notified_once() {
    let unrecovered = |since| NotificationInput {
        manual_recovery: Some((since, "the previous version set does not start".to_owned())),
        ..between(("a", &["x", "b"]), ("a", &["x", "b"]))
    };
    let failed = between(("a", &["x"]), ("a", &["x", "b"]));
    let reported = delivered(next_notifications(&[], &team(), &failed, now()));
    let since = now() + minutes(5);
    let first = next_notifications(&reported, &team(), &unrecovered(since), now() + minutes(20));
    assert_eq!(pending(&first), to_team(&[NotificationEvent::Failed]));
    let notification = first.iter().find(|notification| notification.event == NotificationEvent::Failed).unwrap();
    assert_eq!(notification.why.as_deref(), Some("the previous version set does not start"));
    assert_eq!(notification.what, "ViaVersion 5.6.0 -> 5.7.1");
    let later = next_notifications(&delivered(first), &team(), &unrecovered(since), now() + hours(48));
    assert_eq!(pending(&later), [], "a restart of the process is not reported");
    let anew = next_notifications(&later, &team(), &unrecovered(now() + hours(72)), now() + hours(73));
    assert_eq!(pending(&anew), to_team(&[NotificationEvent::Failed]), "another update is reported");
    // A channel that was notified of the required decision at the failure is not notified again.
    let manual_recovery = unrecovered(now() - minutes(1)).manual_recovery;
    let failed_at_once = NotificationInput { needs_manual_recovery: true, manual_recovery, ..failed };
    let first = next_notifications(&[], &team(), &failed_at_once, now());
    assert_eq!((pending(&first), first.len()), (to_team(&[NotificationEvent::Failed]), 1));
    let later = next_notifications(&delivered(first), &team(), &unrecovered(now() - minutes(1)), now() + minutes(1));
    assert_eq!(pending(&later), []);
}

#[test]
fn server_down_is_blamed_on_update_only_during_rollback() {
    let down = Step::Wait(WaitingOn::ServerDown);
    let recovery = |pass: &Pass| NotificationInput::from_rollout(&pass.report(), &pass.before).manual_recovery;
    let mut pass = Pass::new();
    pass.step = down;
    assert_eq!(recovery(&pass), None, "no update was applied");
    pass.done = StepOutcome::RolledBack { agent_unreachable: false };
    let mut pass = pass.next();
    let since = pass.report().pass.now;
    for (step, why) in [(down, "does not start"), (Step::Wait(WaitingOn::WorldRefused), "does not open the worlds")] {
        pass.step = step;
        let (at, reason) = recovery(&pass).unwrap();
        assert!(at == since && reason.starts_with("the server is down") && reason.contains(why), "{reason}");
    }
    pass.step = Step::Wait(WaitingOn::Start { until: since + minutes(9) });
    assert_eq!(recovery(&pass), None, "the server may still start");
    pass.done = StepOutcome::MarkedStable(MarkedStable::Previous);
    let mut pass = pass.next();
    pass.step = down;
    assert_eq!(recovery(&pass), None, "the earlier set was up");

    // An expected roll-back that is no longer possible, because a player joined or the backups could not be read.
    pass.done = StepOutcome::MarkedFailed;
    let mut pass = pass.next();
    for waiting in [WaitingOn::NoBackup, WaitingOn::RollbackWouldLoseProgress] {
        pass.step = Step::Wait(waiting);
        assert!(recovery(&pass).is_some_and(|(at, why)| at == since && !why.is_empty()), "{waiting:?}");
    }
}

#[test]
fn blocked_update_is_notified_after_fourteen_days() {
    let held = |since| NotificationInput {
        lasting: [(NotificationEvent::Blocked, (since, "Paper 26.2 is blocked by GriefPrevention".to_owned()))].into(),
        ..NotificationInput::default()
    };
    let since = now() - hours(14 * 24);
    assert_eq!(pending(&next_notifications(&[], &team(), &held(since + minutes(1)), now())), []);
    let reported_once = delivered(next_notifications(&[], &team(), &held(since), now()));
    assert_eq!(reported_once[0].what, "Paper 26.2 is blocked by GriefPrevention");
    // The record survives many other notifications.
    let mut status = reported_once;
    for day in 1..40 {
        let done = between(("a", &[]), (&format!("b{day}"), &[]));
        status = delivered(next_notifications(&status, &team(), &done, now() + hours(24 * day)));
        status = next_notifications(&status, &team(), &held(since), now() + hours(24 * day + 1));
        assert_eq!(pending(&status), [], "{day}");
        assert!(status.len() <= 2, "{}", status.len());
    }
    let anew = next_notifications(&status, &team(), &held(now()), now() + hours(15 * 24));
    assert_eq!(pending(&anew), to_team(&[NotificationEvent::Blocked]));
}

#[test]
fn missing_backup_is_notified_once_per_failure() {
    let missing = |since| NotificationInput {
        lasting: [(NotificationEvent::BackupFailed, (since, "the backup volume is full".to_owned()))].into(),
        ..NotificationInput::default()
    };
    let first = next_notifications(&[], &team(), &missing(now()), now());
    assert_eq!(pending(&first), to_team(&[NotificationEvent::BackupFailed]));
    let later = next_notifications(&delivered(first), &team(), &missing(now()), now() + hours(48));
    assert_eq!(pending(&later), []);
    let again = next_notifications(&later, &team(), &missing(now() + hours(72)), now() + hours(72));
    assert_eq!(pending(&again), to_team(&[NotificationEvent::BackupFailed]));
}

#[test]
fn unverified_update_is_notified_as_unverified() {
    let mut input = between(("a", &[]), ("b", &[]));
    input.unverified = Some("the server's log could not be read".to_owned());
    let notifications = next_notifications(&[], &team(), &input, now());
    assert_eq!(pending(&notifications), to_team(&[NotificationEvent::Done]));
    assert_eq!(notifications[0].why.as_deref(), Some("the server's log could not be read"));
    let verified = next_notifications(&[], &team(), &between(("a", &[]), ("b", &[])), now());
    assert_eq!(verified[0].why, None);
}

#[test]
fn crash_loop_is_notified_once_per_occurrence() {
    let looping = |since| NotificationInput {
        lasting: [(NotificationEvent::CrashLoop, (since, "3 times".to_owned()))].into(),
        ..NotificationInput::default()
    };
    let first = next_notifications(&[], &team(), &looping(now()), now());
    assert_eq!(pending(&first), to_team(&[NotificationEvent::CrashLoop]));
    let later = next_notifications(&delivered(first), &team(), &looping(now()), now() + hours(1));
    assert_eq!(pending(&later), []);
    let anew = next_notifications(&later, &team(), &looping(now() + hours(9)), now() + hours(9));
    assert_eq!(pending(&anew), to_team(&[NotificationEvent::CrashLoop]));
}

#[test]
fn damaged_world_is_notified_once_per_occurrence() {
    let damaged = |since| NotificationInput {
        lasting: [
            (NotificationEvent::CrashLoop, (now(), "3 times".to_owned())),
            (NotificationEvent::WorldDamaged, (since, "Chunk [1, 2] is allocated, but stream is missing".to_owned())),
        ]
        .into(),
        ..NotificationInput::default()
    };
    let first = next_notifications(&[], &team(), &damaged(now()), now());
    assert_eq!(pending(&first), to_team(&[NotificationEvent::CrashLoop, NotificationEvent::WorldDamaged]));
    let later = next_notifications(&delivered(first), &team(), &damaged(now()), now() + hours(1));
    assert_eq!(pending(&later), []);
    let anew = next_notifications(&later, &team(), &damaged(now() + hours(9)), now() + hours(9));
    assert_eq!(pending(&anew), to_team(&[NotificationEvent::WorldDamaged]));
}

#[test]
fn channel_gets_only_subscribed_events() {
    let channels = vec![channel("players", &["Soon", "Done"]), channel("team", &[]), channel("ops", &["Failed"])];
    let plan = next_notifications(&[], &channels, &planned("a"), now());
    assert_eq!(pending(&plan), [(NotificationEvent::Planned, "team".to_owned())]);
    let done = next_notifications(&[], &channels, &between(("a", &[]), ("b", &[])), now());
    assert_eq!(pending(&done), [(NotificationEvent::Done, "players team".to_owned())]);
    assert_eq!(next_notifications(&[], &channels[2..], &planned("a"), now()), [], "no channel wants the event");
    assert_eq!(next_notifications(&plan, &[], &planned("a"), now()), []);
}

#[test]
fn expired_notification_and_removed_channel_are_dropped() {
    let plan = next_notifications(&[], &team(), &planned("a"), now());
    let other = vec![channel("other", &[])];
    assert_eq!(pending(&next_notifications(&plan, &other, &planned("a"), now() + minutes(1))), []);
    let notifications =
        next_notifications(&plan, &team(), &NotificationInput::default(), now() + hours(24) - minutes(1));
    assert_eq!(pending(&notifications), to_team(&[NotificationEvent::Planned]));
    let old = next_notifications(&plan, &team(), &NotificationInput::default(), now() + hours(24));
    assert_eq!((pending(&old), old[0].given_up.join(" ")), (Vec::new(), "team".to_owned()));
    let (reason, message) = delivery_errors(&[], &old, now() + hours(24)).unwrap();
    assert_eq!((reason, message.as_str()), ("NotDelivered", "Planned was not delivered to `team`"));
    assert_eq!(delivery_errors(&[], &old, now() + hours(48)), None, "the error is reported for a day");
}

#[test]
fn notification_list_is_capped_and_drops_oldest() {
    let mut status = Vec::new();
    for minute in 0..100 {
        let done = between(("a", &[]), (&format!("b{minute}"), &[]));
        status = next_notifications(&status, &team(), &done, now() + minutes(minute));
        assert!(status.len() <= MAX_NOTIFICATIONS);
    }
    assert_eq!(pending(&status).len(), MAX_NOTIFICATIONS);
    assert!(status[0].about.starts_with("b90@") && status[9].about.starts_with("b99@"), "{status:?}");
}

#[test]
fn server_with_channels_requeues_for_soon_notification() {
    let wait = |until| Outcome::Waiting { until: Some(until) };
    let opens = at(OPENS);
    assert_eq!(requeue_for_notification(wait(opens), &team(), now()), wait(opens - SOON));
    assert_eq!(requeue_for_notification(wait(opens), &team(), opens - SOON), wait(opens));
    assert_eq!(requeue_for_notification(wait(opens), &[], now()), wait(opens));
    assert_eq!(requeue_for_notification(Outcome::UpToDate, &team(), now()), Outcome::UpToDate);
}
