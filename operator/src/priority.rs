//! Edge (reads). Gives priority to passes that have not acted yet.
//!
//! The windows of hundreds of servers may open at the same moment. Without priorities, a pass that writes down its
//! announcement would delay the announcement of another server.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, SemaphorePermit};
use tokio::time::timeout;

/// The longest time that a pass gives priority to others. Another pass may be waiting for a download.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Counts the passes that have not acted yet. One for the process.
#[derive(Debug)]
pub(crate) struct Priority {
    pending: AtomicUsize,
    all_acted: Notify,
    barrier: Semaphore,
}

/// A pass that has not acted yet. It stops counting when it has acted or ends.
pub(crate) struct PendingPass<'a> {
    priority: &'a Priority,
    has_acted: AtomicBool,
}

impl Priority {
    /// `passes` may run at the same time. At most half of them may wait at the barrier, so that the rest stay free for
    /// other work.
    pub(crate) fn for_passes(passes: u16) -> Self {
        let barrier = Semaphore::new(usize::from(passes / 2));
        Self { pending: AtomicUsize::new(0), all_acted: Notify::new(), barrier }
    }

    /// A place at the barrier, if one is free.
    pub(crate) fn try_enter_barrier(&self) -> Option<SemaphorePermit<'_>> {
        self.barrier.try_acquire().ok()
    }

    /// Registers a pass that begins.
    pub(crate) fn enter(&self) -> PendingPass<'_> {
        self.pending.fetch_add(1, Ordering::SeqCst);
        PendingPass { priority: self, has_acted: AtomicBool::new(false) }
    }
}

impl PendingPass<'_> {
    /// Marks the pass as having acted: others no longer wait for it.
    pub(crate) fn mark_acted(&self) {
        if !self.has_acted.swap(true, Ordering::SeqCst) && self.priority.pending.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.priority.all_acted.notify_waiters();
        }
    }

    /// Marks the pass as having acted, and waits until all other running passes have acted too, for at most a second.
    pub(crate) async fn yield_to_first_steps(&self) {
        self.mark_acted();
        // Created before the load, so that a notification in between is not lost.
        let all_acted = self.priority.all_acted.notified();
        if self.priority.pending.load(Ordering::SeqCst) > 0 {
            // The pass continues after a notification and after the timeout.
            drop(timeout(MAX_WAIT, all_acted).await);
        }
    }
}

impl Drop for PendingPass<'_> {
    fn drop(&mut self) {
        self.mark_acted();
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn low_priority_pass_waits_for_unfinished_others() {
        let priority = Priority::for_passes(4);
        let (first, second, third) = (priority.enter(), priority.enter(), priority.enter());
        let began = Instant::now();
        let others = async {
            tokio::time::sleep(MAX_WAIT / 4).await;
            second.mark_acted();
            second.mark_acted();
            tokio::time::sleep(MAX_WAIT / 4).await;
            drop(third);
        };
        tokio::join!(first.yield_to_first_steps(), others);
        assert_eq!(began.elapsed(), MAX_WAIT / 2);
        first.yield_to_first_steps().await;
        assert_eq!(began.elapsed(), MAX_WAIT / 2, "no pass is left to wait for");
    }

    #[test]
    fn barrier_never_holds_more_than_half_of_passes() {
        let priority = Priority::for_passes(5);
        let permits = [priority.try_enter_barrier(), priority.try_enter_barrier()];
        assert!(permits.iter().all(Option::is_some) && priority.try_enter_barrier().is_none());
        drop(permits);
        assert!(priority.try_enter_barrier().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn priority_wait_is_capped_at_one_second() {
        let priority = Priority::for_passes(4);
        let (first, _slow) = (priority.enter(), priority.enter());
        let began = Instant::now();
        first.yield_to_first_steps().await;
        assert_eq!(began.elapsed(), MAX_WAIT);
    }
}
