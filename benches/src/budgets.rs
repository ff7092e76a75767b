//! Edge (writes). Checks figures against the limits of the design. A figure beyond its limit ends the bench with an error, after all figures are
//! printed.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

/// How often a time is measured before it counts as too long. The machine is shared, and sometimes slower.
const TRIES: usize = 3;

/// The limits of one bench, and the figures that exceeded them so far.
pub struct Bounds {
    bench: &'static str,
    exceeded: Vec<String>,
}

impl Bounds {
    /// The limits of the bench with this name. Call it before anything is measured.
    pub fn new(bench: &'static str) -> Self {
        Self { bench, exceeded: Vec::new() }
    }

    /// Checks a measured time. If it is too long, it is measured `again`, and the shortest time counts.
    pub fn check_time(&mut self, label: &str, took: Duration, longest: Duration, mut again: impl FnMut() -> Duration) {
        let mut shortest = took;
        for _ in 1..TRIES {
            if shortest <= longest {
                return;
            }
            shortest = shortest.min(again());
        }
        self.check_max(label, to_ms(shortest), to_ms(longest), &format!("ms, the shortest of {TRIES}"));
    }

    /// Checks that a figure in this unit is not larger than `most`.
    pub fn check_max(&mut self, label: &str, measured: f64, most: f64, unit: &str) {
        if measured > most {
            self.record_failure(&format!("{label}: {measured:.3} {unit}; at most {most} is allowed"));
        }
    }

    /// Checks that a figure in this unit is not smaller than `least`.
    pub fn check_min(&mut self, label: &str, measured: f64, least: f64, unit: &str) {
        if measured < least {
            self.record_failure(&format!("{label}: {measured:.3} {unit}; at least {least} is asked for"));
        }
    }

    /// Records another failure, as text.
    pub fn record_failure(&mut self, failure: &str) {
        self.exceeded.push(format!("bench `{}`: {failure}", self.bench));
    }

    /// The exit code of the bench, after all its figures are printed.
    pub fn finish(self) -> ExitCode {
        for line in &self.exceeded {
            // A failed write to stderr cannot be reported.
            let _ = writeln!(std::io::stderr(), "error: {line}");
        }
        if self.exceeded.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

fn to_ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME_LIMIT: Duration = Duration::from_millis(60);

    #[test]
    fn time_bound_fails_when_all_three_tries_exceed_it() {
        for (tries, expected) in [
            (&[60][..], None),
            (&[61, 60], None),
            (&[90, 61, 60], None),
            (&[61, 90, 70], Some("bench `fleet`: decide: 61.000 ms, the shortest of 3; at most 60 is allowed")),
        ] {
            let mut bounds = Bounds::new("fleet");
            let mut times = tries.iter().map(|&time| Duration::from_millis(time));
            let first = times.next().unwrap_or_default();
            bounds.check_time("decide", first, TIME_LIMIT, || times.next().unwrap_or_default());
            assert_eq!((bounds.exceeded.first().map(String::as_str), times.next()), (expected, None), "{tries:?}");
        }
    }

    #[test]
    fn bound_includes_its_limit_and_lists_all_exceeded() {
        let mut bounds = Bounds::new("agent");
        bounds.check_max("memory", 12.0, 12.0, "MiB");
        bounds.check_min("plain encoding", 400.0, 400.0, "times");
        assert_eq!(bounds.exceeded, [""; 0]);
        bounds.check_max("memory", 12.5, 12.0, "MiB");
        bounds.check_min("plain encoding", 399.0, 400.0, "times");
        bounds.record_failure("tower of 6: gone");
        let all = [
            "bench `agent`: memory: 12.500 MiB; at most 12 is allowed",
            "bench `agent`: plain encoding: 399.000 times; at least 400 is asked for",
            "bench `agent`: tower of 6: gone",
        ];
        assert_eq!(bounds.exceeded, all);
    }
}
