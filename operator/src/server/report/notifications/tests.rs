//! Pure. Tests when notifications are created, and that each is created once.

use serde_json::json;

use super::*;
use crate::server::act::{MarkedStable, StepOutcome};
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

fn channel(name: &str, occasions: &[&str]) -> Channel {
    let written = json!({
        "name": name, "type": "Discord", "secret": {"name": "chat", "key": "address"}, "occasions": occasions,
    });
    Channel::of_a_server("games", serde_json::from_value(written).unwrap())
}

fn team() -> Vec<Channel> {
    vec![channel("team", &[])]
}

const OPENS: &str = "2026-11-22T03:00:00Z";

fn planned(revision: &str) -> NotificationInput {
    NotificationInput {
        planned: Some(Planned {
            revision: revision.to_owned(),
            what: "ViaVersion 5.6.0 -> 5.7.1".to_owned(),
            when: "Sun 22 Nov 04:00 CET".to_owned(),
            opens: Some(at(OPENS)),
            opens_at: "Sun 22 Nov 04:00 CET".to_owned(),
        }),
        ..NotificationInput::default()
    }
}

/// A pass between these facts.
fn between(before: (&str, &[&str]), after: (&str, &[&str])) -> NotificationInput {
    let facts = |(settled, failed): (&str, &[&str])| {
        Some(RolloutFacts {
            settled: Some(settled.to_owned()),
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
fn pending(notices: &[NotificationState]) -> Vec<(NotificationEvent, String)> {
    notices.iter().filter(|it| !it.pending.is_empty()).map(|it| (it.occasion, it.pending.join(" "))).collect()
}

fn to_team(occasions: &[NotificationEvent]) -> Vec<(NotificationEvent, String)> {
    occasions.iter().map(|&occasion| (occasion, "team".to_owned())).collect()
}

/// Marks all notifications as delivered.
fn told(mut notices: Vec<NotificationState>) -> Vec<NotificationState> {
    for notice in &mut notices {
        notice.pending.clear();
    }
    notices
}

#[test]
fn plan_is_notified_with_window_and_ten_minutes_before() {
    let first = next_notices(&[], &team(), &planned("a"), now());
    assert_eq!(pending(&first), to_team(&[NotificationEvent::Planned]));
    assert_eq!(first[0].when.as_deref(), Some("Sun 22 Nov 04:00 CET"));
    let mut status = told(first);
    for later in [minutes(5), hours(10)] {
        status = next_notices(&status, &team(), &planned("a"), now() + later);
        assert_eq!(pending(&status), []);
    }
    let early = next_notices(&status, &team(), &planned("a"), at(OPENS) - minutes(10) - SignedDuration::from_secs(1));
    assert_eq!(pending(&early), []);
    let soon = next_notices(&status, &team(), &planned("a"), at(OPENS) - minutes(10));
    assert_eq!(pending(&soon), to_team(&[NotificationEvent::Soon]));
    assert_eq!(soon.iter().find(|it| it.occasion == NotificationEvent::Soon).unwrap().until, at(OPENS));
    let after = next_notices(&told(soon), &team(), &planned("a"), at(OPENS) - minutes(3));
    assert_eq!(pending(&after), []);
}

#[test]
fn soon_notification_is_skipped_right_after_plan() {
    let channels = vec![channel("both", &[]), channel("late", &["Soon"])];
    let notices = next_notices(&[], &channels, &planned("a"), at(OPENS) - minutes(4));
    assert_eq!(
        pending(&notices),
        [(NotificationEvent::Planned, "both".to_owned()), (NotificationEvent::Soon, "late".to_owned())]
    );
    let open = next_notices(&[], &channels, &planned("a"), at(OPENS));
    assert_eq!(pending(&open), [(NotificationEvent::Planned, "both".to_owned())], "it has begun");
}

#[test]
fn changing_plan_is_notified_at_most_hourly() {
    let first = next_notices(&[], &team(), &planned("a"), now());
    let mut status = told(first.clone());
    for minute in 1..60 {
        status = next_notices(&status, &team(), &planned(&format!("b{minute}")), now() + minutes(minute));
        assert_eq!(pending(&status), [], "{minute}");
    }
    let last = next_notices(&status, &team(), &planned("c"), now() + hours(1));
    assert_eq!(pending(&last), to_team(&[NotificationEvent::Planned]));
    let untold = next_notices(&first, &team(), &planned("c"), now() + minutes(1));
    assert_eq!(pending(&untold).len(), 1, "the plan that nobody was told is not told any more");
    assert_eq!(untold.iter().find(|it| !it.pending.is_empty()).unwrap().about, "c");
}

#[test]
fn applied_update_allows_next_plan_notification_at_once() {
    let status = told(next_notices(&[], &team(), &planned("a"), now()));
    let mut done = between(("0", &[]), ("a", &[]));
    done.down = Some(SignedDuration::from_secs(130));
    let status = next_notices(&status, &team(), &done, now() + minutes(10));
    assert_eq!(pending(&status), to_team(&[NotificationEvent::Done]));
    let told_of = status.iter().find(|it| it.occasion == NotificationEvent::Done).unwrap();
    assert_eq!((told_of.down.as_deref(), told_of.what.as_str()), (Some("2 min 10 s"), "ViaVersion 5.6.0 -> 5.7.1"));
    let next = next_notices(&told(status), &team(), &planned("b"), now() + minutes(20));
    assert_eq!(pending(&next), to_team(&[NotificationEvent::Planned]));
}

#[test]
fn update_end_is_notified_once_except_first_start() {
    assert_eq!(pending(&next_notices(&[], &team(), &between(("a", &[]), ("a", &[])), now())), []);
    let mut first_start = between(("a", &[]), ("a", &[]));
    first_start.rollout_before = None;
    assert_eq!(pending(&next_notices(&[], &team(), &first_start, now())), []);
    first_start.rollout_before = Some(RolloutFacts::default());
    assert_eq!(pending(&next_notices(&[], &team(), &first_start, now())), []);
    // Updated and rolled back within a day: each is reported.
    let there = told(next_notices(&[], &team(), &between(("a", &[]), ("b", &[])), now()));
    let back = told(next_notices(&there, &team(), &between(("b", &[]), ("a", &[])), now() + hours(1)));
    let again = next_notices(&back, &team(), &between(("a", &[]), ("b", &[])), now() + hours(2));
    assert_eq!(pending(&again), to_team(&[NotificationEvent::Done]));
}

#[test]
fn failure_text_is_built_only_for_new_failures() {
    let mut pass = Pass::new();
    let problem =
        |pass: &Pass| NotificationInput::of(&pass.checked, &pass.report(), &pass.before, &pass.status()).problem;
    assert_eq!(problem(&pass), None, "nothing is known of what was before");
    pass = pass.next();
    assert_eq!(problem(&pass), None, "nothing failed");
    pass.seen.facts.failed.push(scheduler::observation::Revision(3));
    assert!(problem(&pass).is_some_and(|why| !why.is_empty()));
    assert_eq!(problem(&pass.next()), None, "it was told");
}

#[test]
fn failed_update_is_notified_as_rollback_or_manual_decision() {
    let mut failed = between(("a", &["x"]), ("a", &["x", "b"]));
    failed.problem = Some("CoreProtect 23.1 did not enable".to_owned());
    let back = next_notices(&[], &team(), &failed, now());
    assert_eq!(pending(&back), to_team(&[NotificationEvent::RolledBack]));
    assert_eq!(back[0].why.as_deref(), Some("CoreProtect 23.1 did not enable"));
    failed.is_stuck = true;
    assert_eq!(pending(&next_notices(&[], &team(), &failed, now())), to_team(&[NotificationEvent::Failed]));
    // The oldest entry is pruned from the list of ten. No revision has failed.
    let pushed = between(("a", &["x", "b"]), ("a", &["b"]));
    assert_eq!(pending(&next_notices(&[], &team(), &pushed, now())), []);
}

#[test]
fn rollback_that_needs_manual_recovery_is_notified_once() {
    let left = |since| NotificationInput {
        left_to_a_person: Some((since, "what ran before does not come up".to_owned())),
        ..between(("a", &["x", "b"]), ("a", &["x", "b"]))
    };
    let failed = between(("a", &["x"]), ("a", &["x", "b"]));
    let heard = told(next_notices(&[], &team(), &failed, now()));
    let since = now() + minutes(5);
    let first = next_notices(&heard, &team(), &left(since), now() + minutes(20));
    assert_eq!(pending(&first), to_team(&[NotificationEvent::Failed]));
    let notice = first.iter().find(|it| it.occasion == NotificationEvent::Failed).unwrap();
    assert_eq!(notice.why.as_deref(), Some("what ran before does not come up"));
    assert_eq!(notice.what, "ViaVersion 5.6.0 -> 5.7.1");
    let later = next_notices(&told(first), &team(), &left(since), now() + hours(48));
    assert_eq!(pending(&later), [], "it comes and goes with each start of its process");
    let anew = next_notices(&later, &team(), &left(now() + hours(72)), now() + hours(73));
    assert_eq!(pending(&anew), to_team(&[NotificationEvent::Failed]), "another update");
    // A channel that was notified of the required decision at the failure is not notified again.
    let left_to_a_person = left(now() - minutes(1)).left_to_a_person;
    let left_at_once = NotificationInput { is_stuck: true, left_to_a_person, ..failed };
    let first = next_notices(&[], &team(), &left_at_once, now());
    assert_eq!((pending(&first), first.len()), (to_team(&[NotificationEvent::Failed]), 1));
    let later = next_notices(&told(first), &team(), &left(now() - minutes(1)), now() + minutes(1));
    assert_eq!(pending(&later), []);
}

#[test]
fn server_down_is_blamed_on_update_only_during_rollback() {
    let down = Step::Wait(WaitingOn::ServerDown);
    let left = |pass: &Pass| NotificationInput::of_a_trial(&pass.report(), &pass.before).left_to_a_person;
    let mut pass = Pass::new();
    pass.step = down;
    assert_eq!(left(&pass), None, "nothing was updated");
    pass.done = StepOutcome::RolledBack { unasked: false };
    let mut pass = pass.next();
    let since = pass.report().now;
    for (step, why) in [(down, "does not come up"), (Step::Wait(WaitingOn::WorldRefused), "does not open the worlds")] {
        pass.step = step;
        let (at, told) = left(&pass).unwrap();
        assert!(at == since && told.starts_with("the server is down") && told.contains(why), "{told}");
    }
    pass.step = Step::Wait(WaitingOn::Start { until: since + minutes(9) });
    assert_eq!(left(&pass), None, "it may come up");
    pass.done = StepOutcome::Closed(MarkedStable::Before);
    let mut pass = pass.next();
    pass.step = down;
    assert_eq!(left(&pass), None, "it was up");

    // An expected roll-back that is no longer possible, because a player joined or the backups could not be read.
    pass.done = StepOutcome::MarkedFailed;
    let mut pass = pass.next();
    for waiting in [WaitingOn::NoBackup, WaitingOn::RollbackWouldLoseProgress] {
        pass.step = Step::Wait(waiting);
        assert!(left(&pass).is_some_and(|(at, why)| at == since && !why.is_empty()), "{waiting:?}");
    }
}

#[test]
fn blocked_update_is_notified_after_fourteen_days() {
    let held = |since| NotificationInput {
        blocked: Some((since, "Paper 26.2 is held by GriefPrevention".to_owned())),
        ..NotificationInput::default()
    };
    let since = now() - hours(14 * 24);
    assert_eq!(pending(&next_notices(&[], &team(), &held(since + minutes(1)), now())), []);
    let told_once = told(next_notices(&[], &team(), &held(since), now()));
    assert_eq!(told_once[0].what, "Paper 26.2 is held by GriefPrevention");
    // The record survives many other notifications.
    let mut status = told_once;
    for day in 1..40 {
        let done = between(("a", &[]), (&format!("b{day}"), &[]));
        status = told(next_notices(&status, &team(), &done, now() + hours(24 * day)));
        status = next_notices(&status, &team(), &held(since), now() + hours(24 * day + 1));
        assert_eq!(pending(&status), [], "{day}");
        assert!(status.len() <= 2, "{}", status.len());
    }
    let anew = next_notices(&status, &team(), &held(now()), now() + hours(15 * 24));
    assert_eq!(pending(&anew), to_team(&[NotificationEvent::Blocked]));
}

#[test]
fn missing_backup_is_notified_once_per_failure() {
    let missing = |since| NotificationInput {
        no_copy: Some((since, "the volume of the copies is full".to_owned())),
        ..NotificationInput::default()
    };
    let first = next_notices(&[], &team(), &missing(now()), now());
    assert_eq!(pending(&first), to_team(&[NotificationEvent::BackupFailed]));
    let later = next_notices(&told(first), &team(), &missing(now()), now() + hours(48));
    assert_eq!(pending(&later), []);
    let again = next_notices(&later, &team(), &missing(now() + hours(72)), now() + hours(72));
    assert_eq!(pending(&again), to_team(&[NotificationEvent::BackupFailed]));
}

#[test]
fn unverified_update_is_notified_as_unverified() {
    let mut kept = between(("a", &[]), ("b", &[]));
    kept.unproven = Some("the server's log could not be read".to_owned());
    let notices = next_notices(&[], &team(), &kept, now());
    assert_eq!(pending(&notices), to_team(&[NotificationEvent::Done]));
    assert_eq!(notices[0].why.as_deref(), Some("the server's log could not be read"));
    let proven = next_notices(&[], &team(), &between(("a", &[]), ("b", &[])), now());
    assert_eq!(proven[0].why, None);
}

#[test]
fn crash_loop_is_notified_once_per_occurrence() {
    let looping =
        |since| NotificationInput { crashes: Some((since, "3 times".to_owned())), ..NotificationInput::default() };
    let first = next_notices(&[], &team(), &looping(now()), now());
    assert_eq!(pending(&first), to_team(&[NotificationEvent::CrashLoop]));
    let later = next_notices(&told(first), &team(), &looping(now()), now() + hours(1));
    assert_eq!(pending(&later), []);
    let anew = next_notices(&later, &team(), &looping(now() + hours(9)), now() + hours(9));
    assert_eq!(pending(&anew), to_team(&[NotificationEvent::CrashLoop]));
}

#[test]
fn damaged_world_is_notified_once_per_occurrence() {
    let damaged = |since| NotificationInput {
        crashes: Some((now(), "3 times".to_owned())),
        damaged: Some((since, "Chunk [1, 2] is allocated, but stream is missing".to_owned())),
        ..NotificationInput::default()
    };
    let first = next_notices(&[], &team(), &damaged(now()), now());
    assert_eq!(pending(&first), to_team(&[NotificationEvent::CrashLoop, NotificationEvent::WorldDamaged]));
    let later = next_notices(&told(first), &team(), &damaged(now()), now() + hours(1));
    assert_eq!(pending(&later), []);
    let anew = next_notices(&later, &team(), &damaged(now() + hours(9)), now() + hours(9));
    assert_eq!(pending(&anew), to_team(&[NotificationEvent::WorldDamaged]));
}

#[test]
fn channel_gets_only_subscribed_events() {
    let channels = vec![channel("players", &["Soon", "Done"]), channel("team", &[]), channel("ops", &["Failed"])];
    let plan = next_notices(&[], &channels, &planned("a"), now());
    assert_eq!(pending(&plan), [(NotificationEvent::Planned, "team".to_owned())]);
    let done = next_notices(&[], &channels, &between(("a", &[]), ("b", &[])), now());
    assert_eq!(pending(&done), [(NotificationEvent::Done, "players team".to_owned())]);
    assert_eq!(next_notices(&[], &channels[2..], &planned("a"), now()), [], "nobody asks: nothing is kept");
    assert_eq!(next_notices(&plan, &[], &planned("a"), now()), []);
}

#[test]
fn expired_notification_and_removed_channel_are_dropped() {
    let plan = next_notices(&[], &team(), &planned("a"), now());
    let other = vec![channel("other", &[])];
    assert_eq!(pending(&next_notices(&plan, &other, &planned("a"), now() + minutes(1))), []);
    let kept = next_notices(&plan, &team(), &NotificationInput::default(), now() + hours(24) - minutes(1));
    assert_eq!(pending(&kept), to_team(&[NotificationEvent::Planned]));
    let old = next_notices(&plan, &team(), &NotificationInput::default(), now() + hours(24));
    assert_eq!((pending(&old), old[0].given_up.join(" ")), (Vec::new(), "team".to_owned()));
    let (reason, words) = what_is_in_the_way(&[], &old, now() + hours(24)).unwrap();
    assert_eq!((reason, words.as_str()), ("NotDelivered", "Planned was not told in `team`"));
    assert_eq!(what_is_in_the_way(&[], &old, now() + hours(48)), None, "a day later nobody needs to hear it");
}

#[test]
fn notification_list_is_capped_and_drops_oldest() {
    let mut status = Vec::new();
    for minute in 0..100 {
        let done = between(("a", &[]), (&format!("b{minute}"), &[]));
        status = next_notices(&status, &team(), &done, now() + minutes(minute));
        assert!(status.len() <= MOST);
    }
    assert_eq!(pending(&status).len(), MOST);
    assert!(status[0].about.starts_with("b90@") && status[9].about.starts_with("b99@"), "{status:?}");
}

#[test]
fn server_with_channels_requeues_for_soon_notification() {
    let wait = |until| Outcome::Waiting { until: Some(until) };
    let opens = at(OPENS);
    assert_eq!(in_time_to_tell(wait(opens), &team(), now()), wait(opens - SOON));
    assert_eq!(in_time_to_tell(wait(opens), &team(), opens - SOON), wait(opens));
    assert_eq!(in_time_to_tell(wait(opens), &[], now()), wait(opens));
    assert_eq!(in_time_to_tell(Outcome::Settled, &team(), now()), Outcome::Settled);
}
