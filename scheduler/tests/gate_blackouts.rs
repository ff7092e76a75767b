//! Tests windows with blackouts and closed last parts against their definition as sets of minutes.
//!
//! `gate_oracle.rs` tests cron expressions and the clocks of a zone. All times here are UTC.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use scheduler::maintenance::{Blackout, Gate, Window, Windows};

/// 2026-03-02, a Monday, in minutes.
const START: i64 = 29_540_160;
const DAY: i64 = 24 * 60;
/// All queries are within three days, and the definition covers this long before and after.
const SPAN: i64 = 14 * DAY;

fn instant(minute: i64) -> Timestamp {
    Timestamp::from_second(minute * 60).expect("an instant near now is valid")
}

/// A schedule, as the definition reads it.
#[derive(Debug, Clone)]
struct Schedule {
    minute: i64,
    hours: Vec<i64>,
    /// Sunday is 0. `None`: every day.
    weekday: Option<i64>,
}

impl Schedule {
    /// The same schedule, as the gate reads it.
    fn cron(&self) -> String {
        let hours: Vec<String> = self.hours.iter().map(i64::to_string).collect();
        let weekday = self.weekday.map_or_else(|| "*".to_owned(), |day| day.to_string());
        format!("{} {} * * {weekday}", self.minute, hours.join(","))
    }

    /// The minutes at which it begins, from a span before to a span after.
    fn beginnings(&self) -> Vec<i64> {
        let days = (-SPAN..SPAN).step_by(usize::try_from(DAY).expect("1440 fits a usize"));
        let days = days.filter(|day| self.weekday.is_none_or(|weekday| (day / DAY + 1).rem_euclid(7) == weekday));
        days.flat_map(|day| self.hours.iter().map(move |hour| START + day + hour * 60 + self.minute)).collect()
    }
}

/// The minutes of all spans of this length that begin at one of these.
fn spans(beginnings: &[i64], length: i64) -> BTreeSet<i64> {
    beginnings.iter().flat_map(|begins| *begins..*begins + length).collect()
}

/// The definition of the gate: which minutes are open, and in which of them an update may begin.
struct Defined {
    open: BTreeSet<i64>,
    begin: BTreeSet<i64>,
}

impl Defined {
    fn gate(&self, now: i64) -> Gate {
        let opens = self.begin.range(now + 1..).next().map(|minute| instant(*minute));
        if !self.open.contains(&now) {
            return Gate::Shut { opens };
        }
        let midnight = now.div_euclid(DAY) * DAY;
        let mut began = now;
        while began > midnight - DAY - 1 && self.open.contains(&(began - 1)) {
            began -= 1;
        }
        let (opened_at, cut) = if began < midnight - DAY {
            (midnight, midnight + DAY)
        } else {
            (began, began.div_euclid(DAY) * DAY + 2 * DAY)
        };
        let until = (now..cut).find(|minute| !self.open.contains(minute)).unwrap_or(cut);
        let (opened_at, until) = (instant(opened_at), instant(until));
        if self.begin.contains(&now) {
            Gate::Open { opened_at, until }
        } else {
            Gate::NoNewStarts { opened_at, until, opens }
        }
    }
}

/// The definition does not cover later windows and blackouts.
fn within_span(gate: Gate) -> Gate {
    let near = |opens: Option<Timestamp>| opens.filter(|opens| *opens < instant(START + SPAN));
    match gate {
        Gate::Open { .. } => gate,
        Gate::NoNewStarts { opened_at, until, opens } => Gate::NoNewStarts { opened_at, until, opens: near(opens) },
        Gate::Shut { opens } => Gate::Shut { opens: near(opens) },
    }
}

fn schedule() -> impl Strategy<Value = Schedule> {
    let hours = prop_oneof![(0_i64..24).prop_map(|hour| vec![hour]), Just(vec![0, 6, 12, 18]), Just(vec![3, 4, 5])];
    let weekday = prop_oneof![3 => Just(None), 1 => (0_i64..7).prop_map(Some)];
    (0_i64..60, hours, weekday).prop_map(|(minute, hours, weekday)| Schedule { minute, hours, weekday })
}

/// A window: schedule, length, last part, all in minutes.
fn window() -> impl Strategy<Value = (Schedule, i64, i64)> {
    let length = proptest::sample::select(&[15_i64, 60, 180, 7 * 60, 30 * 60][..]);
    (schedule(), length, 0_i64..4).prop_map(|(schedule, length, part)| (schedule, length, length * part / 4))
}

fn recurring_blackout() -> impl Strategy<Value = (Schedule, i64)> {
    (schedule(), proptest::sample::select(&[1_i64, 30, 90, 26 * 60][..]))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn gate_equals_windows_minus_blackouts_and_closed_last_parts(
        windows in proptest::collection::vec(window(), 1..4),
        again in proptest::collection::vec(recurring_blackout(), 0..3),
        once in proptest::collection::vec((-DAY..4 * DAY, 1_i64..2 * DAY), 0..3),
        nows in proptest::collection::vec(0_i64..3 * DAY, 12),
        seconds in 0_i64..60,
    ) {
        let minutes = SignedDuration::from_mins;
        let mut defined = Defined { open: BTreeSet::new(), begin: BTreeSet::new() };
        let mut all = Windows { windows: Vec::new(), enabled: true, blackouts: Vec::new() };
        let mut edges = Vec::new();
        for (schedule, length, last_part) in &windows {
            let begins = schedule.beginnings();
            defined.open.extend(spans(&begins, *length));
            defined.begin.extend(spans(&begins, length - last_part));
            edges.extend(begins.iter().flat_map(|at| [*at, at + length, at + length - last_part]));
            let window = Window::parse(&schedule.cron(), "UTC", minutes(*length)).unwrap();
            all.windows.push(window.with_last_part(minutes(*last_part)).unwrap());
        }
        let mut dark = BTreeSet::new();
        for (schedule, length) in &again {
            let begins = schedule.beginnings();
            dark.extend(spans(&begins, *length));
            edges.extend(begins.iter().flat_map(|at| [*at, at + length]));
            all.blackouts.push(Blackout::recurring("again", &schedule.cron(), "UTC", minutes(*length)).unwrap());
        }
        for (from, length) in &once {
            let from = START + from;
            dark.extend(from..from + length);
            edges.extend([from, from + length]);
            all.blackouts.push(Blackout::once("once", instant(from), instant(from + length)).unwrap());
        }
        defined.open.retain(|minute| !dark.contains(minute));
        defined.begin.retain(|minute| !dark.contains(minute));

        let queried = START..START + 3 * DAY;
        let edges = edges.into_iter().flat_map(|at| [at - 1, at]).filter(|at| queried.contains(at)).take(60);
        for now in nows.into_iter().map(|at| START + at).chain(edges).collect::<Vec<_>>() {
            let at = instant(now) + SignedDuration::from_secs(seconds);
            let (gate, expected) = (all.gate(at), defined.gate(now));
            prop_assert_eq!(within_span(gate), within_span(expected), "{} {:?} {:?} {:?}", at, windows, again, once);
            prop_assert_eq!(all.blackout_at(at).is_some(), dark.contains(&now), "{}", at);
            if let Gate::Shut { opens: Some(opens) } | Gate::NoNewStarts { opens: Some(opens), .. } = gate {
                let begins = matches!(all.gate(opens), Gate::Open { .. });
                prop_assert!(begins, "the gate does not open at {opens}");
            }
        }
    }
}
