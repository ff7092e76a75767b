//! Pure. Measures how long the query for a maintenance window takes. The reference is one query of a cron expression with the `croner` crate.

use std::hint::black_box;

use chrono::{DateTime, Utc};
use criterion::{Criterion, criterion_group, criterion_main};
use jiff::{SignedDuration, Timestamp};
use scheduler::maintenance::{Window, Windows};

fn measure_windows(criterion: &mut Criterion) {
    let hours = SignedDuration::from_hours(2);
    let window = Window::parse("0 4 * * 0", "Europe/Berlin", hours).expect("a literal");
    let windows = Windows { windows: vec![window], enabled: true, blackouts: Vec::new() };
    let now: Timestamp = "2026-03-25T12:00:00Z".parse().expect("a literal");
    let cron: croner::Cron = "0 4 * * 0".parse().expect("a literal");
    let local_time: DateTime<chrono_tz::Tz> =
        "2026-03-25T12:00:00Z".parse::<DateTime<Utc>>().expect("a literal").with_timezone(&chrono_tz::Europe::Berlin);

    let mut group = criterion.benchmark_group("a window across the change of the clocks");
    group.bench_function("reference: croner, next occurrence", |bencher| {
        bencher.iter(|| cron.find_next_occurrence(black_box(&local_time), false).expect("the schedule continues"));
    });
    group.bench_function("gate", |bencher| bencher.iter(|| windows.gate(black_box(now))));
    group.bench_function("next opening", |bencher| bencher.iter(|| windows.next_opening(black_box(now))));
    group.finish();
}

criterion_group!(benches, measure_windows);
criterion_main!(benches);
