//! Edge (reads). Waits for conditions, not for time to pass.

use std::time::{Duration, Instant};

/// The pause between two checks: short compared with every wait, and long compared with the cost of a check.
const BETWEEN_LOOKS: Duration = Duration::from_millis(250);

// A wait ends as soon as its condition is true, so a long limit costs nothing. A short one would fail when thirty
// servers wait at once.

pub(super) const SOON: Duration = Duration::from_mins(2);
/// Several tests may share two cores, each with a server that starts.
pub(super) const A_START: Duration = Duration::from_mins(5);
/// The next minute, the countdown, a stop, a start and the verification.
pub(super) const AN_UPDATE: Duration = Duration::from_mins(8);

/// Calls `look` until it returns `Ok`. The last `Err` is the message when the deadline is over.
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

/// Calls `look` repeatedly for this time. It panics when an assertion fails.
pub(super) async fn all_the_while(time: Duration, mut look: impl AsyncFnMut()) {
    let start = Instant::now();
    while start.elapsed() < time {
        look().await;
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}
