//! Pure. How long a server may take to confirm that its world is saved.

use jiff::SignedDuration;

/// Longer than the worst tick that a server outlives.
const LEAST: i64 = 60;
/// A large world on a slow disk. Longer would be a stall that drives away whoever plays; the pass waits for it, and the window runs.
const MOST: i64 = 300;

/// In seconds. `save-all flush` is the larger part of a stop, so who knows that theirs takes long has said so in `gracefulShutdown.timeout`.
pub(super) fn within(stop_timeout: SignedDuration) -> u32 {
    u32::try_from(stop_timeout.as_secs().clamp(LEAST, MOST)).expect("the bounds fit")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_save_has_as_long_as_the_stop_within_reason() {
        let of = |seconds| within(SignedDuration::from_secs(seconds));
        assert_eq!([of(30), of(60), of(150), of(300), of(1_800)], [60, 60, 150, 300, 300]);
    }
}
