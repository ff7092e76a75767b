//! Pure. Computes the wait before the next attempt: 1, 2, 4, 8 and then 15 seconds, for ever.
//!
//! The limit is low because an admin who fixes the cause watches the pod.

use std::time::Duration;

const MAX_WAIT: Duration = Duration::from_secs(15);

/// The waits between attempts.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    attempts: u32,
}

impl Backoff {
    /// The next wait.
    pub(super) fn next(&mut self) -> Duration {
        let wait = Duration::from_secs(1 << self.attempts.min(4)).min(MAX_WAIT);
        self.attempts += 1;
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_delay_doubles_up_to_fifteen_seconds() {
        let mut backoff = Backoff::default();
        let waits: Vec<u64> = (0..6).map(|_| backoff.next().as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 15, 15]);
    }
}
