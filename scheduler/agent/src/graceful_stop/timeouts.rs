//! Pure. Computes the timeout of each command of a stop from the remaining time of the hook.
//!
//! A server does nothing while a tick lasts, and then runs all pending commands in order. So no timeout is shorter than a stalled tick may last,
//! as far as the hook's time allows. Messages and the result of the save then stay true. A command that timed out is not withdrawn: the server
//! may still run it.

use std::time::Duration;

/// The longest tick that a server survives. By default Paper's own watchdog kills it then (`timeout-time: 60` in `spigot.yml`).
const STALL: Duration = Duration::from_mins(1);
/// The minimum, also when the hook's time is used up: the stop continues without the hook, in parallel with SIGTERM.
const MINIMUM: Duration = Duration::from_secs(5);
/// The part of the hook's time that is reserved for the steps after the save.
const RESERVED_AFTER_SAVE: Duration = Duration::from_secs(15);

/// For the warning: a quarter, because the later steps matter more.
pub(super) fn warn(left: Duration) -> Duration {
    share(left, 4)
}

/// For `save-all flush`: all but the time that is reserved for the kick message.
pub(super) fn save(left: Duration) -> Duration {
    left.saturating_sub(RESERVED_AFTER_SAVE).max(2 * MINIMUM)
}

/// For the kick message: the rest.
pub(super) fn kick(left: Duration) -> Duration {
    share(left, 1)
}

fn share(left: Duration, divisor: u32) -> Duration {
    (left / divisor).clamp(MINIMUM, STALL)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    /// Runs a stop in which each command takes the given seconds. Returns which commands were answered in time, and the time left.
    fn run_stop(hook: u64, stalls: [u64; 3]) -> ([bool; 3], Duration) {
        let mut left = seconds(hook);
        let mut answered = [false; 3];
        let commands = [warn as fn(Duration) -> Duration, save, kick];
        for ((command, stall), answered) in commands.into_iter().zip(stalls).zip(&mut answered) {
            let timeout = command(left);
            *answered = seconds(stall) < timeout;
            left = left.saturating_sub(timeout.min(seconds(stall)));
        }
        (answered, left)
    }

    #[test]
    fn command_timeout_exceeds_longest_survivable_tick() {
        for at in 0..3 {
            let mut stalls = [0; 3];
            stalls[at] = 59;
            assert_eq!(run_stop(300, stalls).0, [true; 3], "{stalls:?}");
        }
        assert_eq!(run_stop(300, [0, 280, 1]).0, [true; 3], "a flush may take all time but the reserve");
    }

    #[test]
    fn unresponsive_server_is_abandoned_at_hook_timeout() {
        for hook in [30, 60, 300, 1_800] {
            let (answered, left) = run_stop(hook, [9_999; 3]);
            assert_eq!((answered, left), ([false; 3], Duration::ZERO), "{hook}");
        }
    }

    #[test]
    fn shortest_hook_still_sends_every_command() {
        assert_eq!(run_stop(30, [5, 9, 5]).0, [true; 3]);
        assert!(kick(Duration::ZERO) >= MINIMUM && save(Duration::ZERO) >= MINIMUM);
    }
}
