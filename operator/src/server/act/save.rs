//! Pure. Bounds the time in which a server must confirm that its world is saved.

use jiff::SignedDuration;

/// Minimum in seconds. It is longer than the worst tick that a server survives.
const MIN_SECONDS: i64 = 60;
/// Maximum in seconds, enough for a large world on a slow disk. A longer stall would drive players away. The pass waits for it while the
/// maintenance window runs.
const MAX_SECONDS: i64 = 300;

/// The timeout in seconds. `save-all flush` is the larger part of a stop, so users with slow saves have already raised
/// `gracefulShutdown.timeout`.
pub(super) fn save_timeout_seconds(stop_timeout: SignedDuration) -> u32 {
    u32::try_from(stop_timeout.as_secs().clamp(MIN_SECONDS, MAX_SECONDS)).expect("the bounds fit into `u32`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn save_timeout_follows_stop_timeout_within_limits() {
        let of = |seconds| save_timeout_seconds(SignedDuration::from_secs(seconds));
        assert_eq!([of(30), of(60), of(150), of(300), of(1_800)], [60, 60, 150, 300, 300]);
    }
}
