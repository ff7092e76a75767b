//! Edge (reads). Reads the clocks.
//!
//! No other file of the operator reads a clock.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

/// The instant truncated to whole seconds: the gate always opens at a whole second.
pub(crate) fn truncate_to_second(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}

#[cfg(test)]
pub(crate) mod simulated;

/// The current time, for decisions. From here on it is passed down as an argument.
#[expect(clippy::disallowed_methods, reason = "only this file may read the clock")]
pub(crate) fn now() -> Timestamp {
    #[cfg(test)]
    if let Some(at) = simulated::wall() {
        return at;
    }
    Timestamp::now() + ahead()
}

/// Sleeps, by the clock that [`now`] reads.
pub(crate) async fn sleep(length: Duration) {
    #[cfg(test)]
    if simulated::sleep(length) {
        return;
    }
    tokio::time::sleep(length).await;
}

/// How long the process has run. Changes of the wall clock have no effect on it.
fn monotonic() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    #[cfg(test)]
    if let Some(elapsed) = simulated::monotonic() {
        return elapsed;
    }
    START.elapsed()
}

#[cfg(not(feature = "wrong-clock"))]
const fn ahead() -> SignedDuration {
    SignedDuration::ZERO
}

/// How far the clock of this process is wrong, for tests. The kernel gives no container a wall clock of its own.
#[cfg(feature = "wrong-clock")]
fn ahead() -> SignedDuration {
    static AHEAD: LazyLock<SignedDuration> = LazyLock::new(|| {
        let seconds = std::env::var("NIGHTSHIFT_CLOCK_AHEAD_SECONDS").ok().and_then(|text| text.parse().ok());
        SignedDuration::from_secs(seconds.unwrap_or(0))
    });
    *AHEAD
}

/// Measures the time since an observation by two clocks, because a process that was suspended must not carry out an old
/// decision. The monotonic clock still counts when a user sets the wall clock back. The wall clock still counts when
/// the machine was suspended and the monotonic clock was not running.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch {
    started: Duration,
    started_at: Timestamp,
}

impl Stopwatch {
    /// Starts now.
    pub(crate) fn start() -> Self {
        Self { started: monotonic(), started_at: now() }
    }

    /// When it was started, by the wall clock.
    pub(crate) fn started_at(self) -> Timestamp {
        self.started_at
    }

    /// Whether more than `age` has passed since the start, by either clock.
    pub(crate) fn is_older_than(self, age: SignedDuration) -> bool {
        self.is_past(self.started_at + age)
    }

    /// Whether `instant` has passed, by either clock.
    pub(crate) fn is_past(self, instant: Timestamp) -> bool {
        let allowed = Duration::try_from(instant.duration_since(self.started_at));
        let has_elapsed = allowed.is_ok_and(|allowed| monotonic().saturating_sub(self.started) >= allowed);
        has_elapsed || instant <= now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instant_is_past_when_either_clock_says_so() {
        let began: Timestamp = "2026-03-29T02:00:00Z".parse().unwrap();
        let minute = |minute| began + SignedDuration::from_mins(minute);
        let _clocks = simulated::start(began);
        let watch = Stopwatch::start();
        assert!(watch.is_past(minute(0)) && !watch.is_past(minute(1)));
        // A user sets the clock back, and a minute passes.
        simulated::shift_wall_clock(SignedDuration::from_hours(-1));
        simulated::advance_to(minute(-59));
        assert!(watch.is_past(minute(1)) && !watch.is_past(minute(2)));
        // The machine was suspended: only the wall clock advanced.
        simulated::shift_wall_clock(SignedDuration::from_mins(62));
        assert!(watch.is_past(minute(3)) && !watch.is_past(minute(4)));
    }
}
