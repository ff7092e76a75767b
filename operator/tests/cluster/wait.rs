//! Edge (reads). Waiting for something to become true, never for time to pass.

use std::time::{Duration, Instant};

/// Between two looks: short beside everything that is waited for, long beside what a look costs.
const BETWEEN_LOOKS: Duration = Duration::from_millis(250);

// Whoever waits stops as soon as it is true, so that a long bound costs nothing; a short one fails when thirty servers do it at once.

pub(super) const SOON: Duration = Duration::from_mins(2);
/// Two cores may be shared by several tests, each with a server that starts.
pub(super) const A_START: Duration = Duration::from_mins(5);
/// The next minute, the countdown, a stop, a start and the proof.
pub(super) const AN_UPDATE: Duration = Duration::from_mins(8);

/// Looks until `look` answers `Ok`; its `Err` says what is there instead, and is the message when the deadline is over.
pub(super) async fn until<T>(what: &str, deadline: Duration, mut look: impl AsyncFnMut() -> Result<T, String>) -> T {
    let start = Instant::now();
    loop {
        match look().await {
            Ok(found) => return found,
            Err(instead) => assert!(
                start.elapsed() < deadline,
                "after {} s still not: {what}. Instead: {instead}",
                deadline.as_secs()
            ),
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}

/// Looks for as long as `time` lasts; `look` panics when it sees what must not be.
pub(super) async fn all_the_while(time: Duration, mut look: impl AsyncFnMut()) {
    let start = Instant::now();
    while start.elapsed() < time {
        look().await;
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}
