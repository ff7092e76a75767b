//! Tests the timer's state as data, and for a second or two of real time that alarms ring.

use tokio::sync::mpsc;

use super::*;

#[expect(clippy::disallowed_methods, reason = "the crate under test reads the real clock, so this test must")]
fn real_clock() -> Timestamp {
    Timestamp::now()
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn state(calls: &[(&str, i64)], armed: &[i64]) -> TimerState {
    TimerState {
        calls: calls.iter().map(|(key, second)| ((*key).to_owned(), (at(*second), Box::new(|| {}) as Wake))).collect(),
        armed: armed.iter().map(|second| at(*second)).collect(),
    }
}

#[test]
fn one_shot_is_shared_by_all_servers_due_next() {
    assert_eq!(state(&[("lobby", 500), ("creative", 500)], &[]).next_to_arm(at(0)), Some(at(500)));
    assert_eq!(state(&[("lobby", 500), ("creative", 500)], &[500]).next_to_arm(at(0)), None);
    assert_eq!(state(&[("lobby", 500), ("creative", 400)], &[500]).next_to_arm(at(0)), Some(at(400)));
    assert_eq!(state(&[], &[500]).next_to_arm(at(0)), None);
}

#[test]
fn one_shot_is_armed_for_at_most_six_hours() {
    let sunday = 5 * 86_400;
    assert_eq!(state(&[("lobby", sunday)], &[]).next_to_arm(at(0)), Some(at(6 * 3600)));
    assert_eq!(state(&[("lobby", sunday)], &[]).next_to_arm(at(sunday - 60)), Some(at(sunday)));
}

#[test]
fn one_shot_is_never_set_before_its_instant() {
    let mut state = state(&[], &[]);
    state.calls.insert("lobby".to_owned(), (at(10) + SignedDuration::from_millis(1), Box::new(|| {})));
    assert_eq!(state.next_to_arm(at(0)), Some(at(11)));
}

#[test]
fn lost_one_shot_is_not_awaited() {
    assert_eq!(state(&[("lobby", 500)], &[100]).next_to_arm(at(105)), None, "the earlier one-shot may still ring");
    assert_eq!(state(&[("lobby", 500)], &[100]).next_to_arm(at(106)), Some(at(500)));
}

#[test]
fn timer_wakes_only_servers_that_are_due() {
    let mut state = state(&[("lobby", 500), ("creative", 501), ("survival", 400)], &[]);
    assert_eq!(state.take_due(at(500)).len(), 2);
    assert_eq!(state.calls.keys().collect::<Vec<_>>(), ["creative"]);
}

#[tokio::test]
async fn timer_replaces_alarm_of_same_key_and_wakes_at_once_for_past() {
    let alarm = Timer::start(real_clock).await.unwrap();
    let (tx, mut rx) = mpsc::unbounded_channel();
    let wake = |key: &str, at, label: &'static str| {
        let tx = tx.clone();
        alarm.wake_at(key.to_owned(), at, move || tx.send(label).unwrap())
    };
    let start = real_clock();
    let second = SignedDuration::from_secs(1);
    wake("lobby", start + second, "the window of yesterday's spec").await.unwrap();
    wake("lobby", start + second * 2, "the window opens").await.unwrap();
    wake("late", start, "already open").await.unwrap();

    assert_eq!(rx.recv().await, Some("already open"));
    assert_eq!(rx.recv().await, Some("the window opens"));
    let rung = real_clock();
    assert!(rung >= start + second * 2, "an early alarm would find a closed window");
    assert!(rung < start + second * 10, "woken {rung}, set for {}", start + second * 2);

    // The woken caller sets the alarm again.
    wake("lobby", rung + second, "the next window opens").await.unwrap();
    assert_eq!(rx.recv().await, Some("the next window opens"));
}
