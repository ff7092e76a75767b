//! Edge (reads). Waits for conditions, not for time to pass.

use std::time::{Duration, Instant};

/// The pause between two checks: short compared with every wait, and long compared with the cost of a check.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);

// A wait ends as soon as its condition is true, so a long limit costs nothing. A short one would fail when thirty
// servers wait at once.

pub(super) const SHORT_LIMIT: Duration = Duration::from_mins(2);
/// Several tests may share two cores, each with a server that starts.
pub(super) const START_LIMIT: Duration = Duration::from_mins(5);
/// The next minute, the countdown, a stop, a start and the verification.
pub(super) const UPDATE_LIMIT: Duration = Duration::from_mins(8);

/// Calls `check` until it returns `Ok`. The last `Err` is the message when the deadline is over.
pub(super) async fn wait_until<T>(
    goal: &str,
    deadline: Duration,
    mut check: impl AsyncFnMut() -> Result<T, String>,
) -> T {
    let start = Instant::now();
    loop {
        match check().await {
            Ok(found) => return found,
            Err(actual) => assert!(
                start.elapsed() < deadline,
                "after {} s still not: {goal}. Instead: {actual}",
                deadline.as_secs()
            ),
        }
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
}

/// Calls `check` repeatedly for this time. It panics when an assertion fails.
pub(super) async fn check_throughout(time: Duration, mut check: impl AsyncFnMut()) {
    let start = Instant::now();
    while start.elapsed() < time {
        check().await;
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
}
