//! Edge (reads). Gives priority to passes that have not acted yet.
//!
//! The windows of hundreds of servers may open at the same moment. Without priorities, a pass that writes down its
//! announcement would delay the announcement of another server.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, SemaphorePermit};
use tokio::time::timeout;

/// The longest time that a pass gives priority to others. Another pass may be waiting for a download.
const AT_MOST: Duration = Duration::from_secs(1);

/// Counts the passes that have not acted yet. One for the process.
#[derive(Debug)]
pub(crate) struct Priority {
    ahead: AtomicUsize,
    nobody_left: Notify,
    line: Semaphore,
}

/// A pass that has not acted yet. It stops counting when it has acted or ends.
pub(crate) struct PendingPass<'a> {
    rush: &'a Priority,
    has_acted: AtomicBool,
}

impl Priority {
    /// `passes` may run at the same time. At most half of them may wait at the barrier, so that the rest stay free for
    /// other work.
    pub(crate) fn among(passes: u16) -> Self {
        let line = Semaphore::new(usize::from(passes / 2));
        Self { ahead: AtomicUsize::new(0), nobody_left: Notify::new(), line }
    }

    /// A place at the barrier, if one is free.
    pub(crate) fn place_at_the_line(&self) -> Option<SemaphorePermit<'_>> {
        self.line.try_acquire().ok()
    }

    /// Registers a pass that begins.
    pub(crate) fn enter(&self) -> PendingPass<'_> {
        self.ahead.fetch_add(1, Ordering::SeqCst);
        PendingPass { rush: self, has_acted: AtomicBool::new(false) }
    }
}

impl PendingPass<'_> {
    /// Marks the pass as having acted: others no longer wait for it.
    pub(crate) fn has_acted(&self) {
        if !self.has_acted.swap(true, Ordering::SeqCst) && self.rush.ahead.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.rush.nobody_left.notify_waiters();
        }
    }

    /// Marks the pass as having acted, and waits until all other running passes have acted too, for at most a second.
    pub(crate) async fn lets_others_go_first(&self) {
        self.has_acted();
        // Created before the load, so that a notification in between is not lost.
        let nobody_left = self.rush.nobody_left.notified();
        if self.rush.ahead.load(Ordering::SeqCst) > 0 {
            // The pass continues after a notification and after the timeout.
            drop(timeout(AT_MOST, nobody_left).await);
        }
    }
}

impl Drop for PendingPass<'_> {
    fn drop(&mut self) {
        self.has_acted();
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn low_priority_pass_waits_for_unfinished_others() {
        let rush = Priority::among(4);
        let (first, second, third) = (rush.enter(), rush.enter(), rush.enter());
        let began = Instant::now();
        let others = async {
            tokio::time::sleep(AT_MOST / 4).await;
            second.has_acted();
            second.has_acted();
            tokio::time::sleep(AT_MOST / 4).await;
            drop(third);
        };
        tokio::join!(first.lets_others_go_first(), others);
        assert_eq!(began.elapsed(), AT_MOST / 2);
        first.lets_others_go_first().await;
        assert_eq!(began.elapsed(), AT_MOST / 2, "nobody is left");
    }

    #[test]
    fn barrier_never_holds_more_than_half_of_passes() {
        let rush = Priority::among(5);
        let places = [rush.place_at_the_line(), rush.place_at_the_line()];
        assert!(places.iter().all(Option::is_some) && rush.place_at_the_line().is_none());
        drop(places);
        assert!(rush.place_at_the_line().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn priority_wait_is_capped_at_one_second() {
        let rush = Priority::among(4);
        let (first, _slow) = (rush.enter(), rush.enter());
        let began = Instant::now();
        first.lets_others_go_first().await;
        assert_eq!(began.elapsed(), AT_MOST);
    }
}
