//! Edge (reads). How long this thread has computed.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The time of the processor that this thread has taken since it began; only differences mean anything.
///
/// Not the time of day, which goes on while others have the processor: the same question would have an answer on a quiet
/// machine and none on a busy one.
pub(super) fn computed() -> Duration {
    #[expect(clippy::disallowed_methods, reason = "it is no time of day, and ends nothing but a search (ADR 7)")]
    let time = clock_gettime(ClockId::ThreadCPUTime);
    // Neither is ever negative or beyond its bound, so nothing is lost.
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
