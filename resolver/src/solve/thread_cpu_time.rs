//! Edge (reads). Reads the CPU time of this thread.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The CPU time that this thread has taken since its start. Only differences are meaningful.
///
/// The time of day continues while other processes use the CPU: the same request would be solved on an idle machine and
/// given up on a busy one.
pub(super) fn thread_cpu_time() -> Duration {
    #[expect(clippy::disallowed_methods, reason = "CPU time is no time of day, and it only ends a search (ADR 7)")]
    let time = clock_gettime(ClockId::ThreadCPUTime);
    // Both values are never negative or out of range, so the conversion loses no information.
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
