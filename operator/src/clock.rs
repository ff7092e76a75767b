//! Edge (reads). The only place of the operator that reads a clock.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

#[cfg(test)]
pub(crate) mod simulated;

/// The time now, for decisions: passed down as an argument from here on.
#[expect(clippy::disallowed_methods, reason = "this is the one file that may")]
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

/// How long the process has run, as no change of the wall clock bends it.
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

/// By how much the clock of this process is wrong: the kernel gives no container a wall clock of its own.
#[cfg(feature = "wrong-clock")]
fn ahead() -> SignedDuration {
    static AHEAD: LazyLock<SignedDuration> = LazyLock::new(|| {
        let seconds = std::env::var("NIGHTSHIFT_CLOCK_AHEAD_SECONDS").ok().and_then(|text| text.parse().ok());
        SignedDuration::from_secs(seconds.unwrap_or(0))
    });
    *AHEAD
}

/// A stretch of time that a changed wall clock cannot bend: a process that slept must not carry out an old decision.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch {
    started: Duration,
    decided_at: Timestamp,
}

impl Stopwatch {
    /// Starts with a decision made at `decided_at`, which is now.
    pub(crate) fn start(decided_at: Timestamp) -> Self {
        Self { started: monotonic(), decided_at }
    }

    /// When it was decided, by the wall clock.
    pub(crate) fn decided_at(self) -> Timestamp {
        self.decided_at
    }

    /// Whether `instant` has passed, by the monotonic clock since the decision.
    pub(crate) fn is_past(self, instant: Timestamp) -> bool {
        let allowed = instant.duration_since(self.decided_at);
        match Duration::try_from(allowed) {
            Ok(allowed) => monotonic().saturating_sub(self.started) >= allowed,
            Err(_) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_before_the_decision_is_past_and_one_far_after_it_is_not() {
        let decided: Timestamp = "2026-03-29T02:00:00Z".parse().unwrap();
        let watch = Stopwatch::start(decided);
        assert!(watch.is_past(decided - SignedDuration::from_secs(1)));
        assert!(!watch.is_past(decided + SignedDuration::from_hours(1)));
    }
}
