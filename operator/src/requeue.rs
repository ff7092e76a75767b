//! Pure. Turns the outcome of a pass into the time of the next one.
//!
//! No other file decides that time.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::runtime::controller::Action;

/// After a step the state has changed, possibly without an event, because the agent is not watched.
const STEP_PAUSE: Duration = Duration::from_secs(1);
/// Pause between requests to the agent while it is polled. A start and a verification end within seconds.
const POLL_PAUSE: Duration = Duration::from_secs(3);
/// During a warning to players or a drain, the pause is this fraction of the remaining time, within these bounds. A
/// pass can only find then that the last player has left. Hundreds of servers may warn at the same time.
const COUNTDOWN_FRACTION: u32 = 10;
const LONGEST_COUNTDOWN_PAUSE: Duration = Duration::from_secs(15);
/// Pause of a server that is up to date and has no event. Its clock is the window, and its watch is the API server. The
/// pass only refreshes state that is not watched (players, drift) and costs one request to the agent.
const IDLE_PAUSE: Duration = Duration::from_mins(5);
/// The longest pause. A longer wait is split, because a suspended machine wakes late.
const LONGEST: Duration = Duration::from_mins(15);
/// How long before an awaited time one pass reads everything, so that little is left to read and to decide at that
/// time. Hundreds of servers may wait for the same time.
const PREPARE_BEFORE: Duration = Duration::from_mins(1);
/// How long before that time the pass begins that waits at the barrier (`server/window_barrier.rs`). The passes over
/// two hundred servers take two seconds.
pub(crate) const BARRIER_BEFORE: SignedDuration = SignedDuration::from_secs(5);
/// The back-off of failures starts at 1 s and doubles at most this many times, to about four minutes.
const MAX_DOUBLINGS: u32 = 8;

/// The party that can fix a failure. It decides whether another try can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum RetryBlame {
    /// Only a change of the object helps.
    User,
    /// The API server, the node, the agent.
    Cluster,
    /// Hangar, Modrinth, PaperMC, Docker Hub.
    Upstream,
}

/// How a pass ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The object is up to date.
    UpToDate,
    /// One step was taken.
    Acted,
    /// State that no watch reports is about to change: a start, a verification, staging or a backup. `until` is the time at which it ends by
    /// itself, if there is such a time.
    Polling { until: Option<Timestamp> },
    /// The warning to players or the drain lasts until then at the latest.
    CountingDown { until: Timestamp },
    /// The operator waits for `until` (a window), or for a change if `until` is `None`.
    Waiting { until: Option<Timestamp> },
    /// The pass failed.
    Failed { blame: RetryBlame, attempt: u32 },
}

impl Outcome {
    /// The label in metrics, from a closed set.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::UpToDate => "settled",
            Self::Acted => "acted",
            Self::Polling { .. } => "polling",
            Self::CountingDown { .. } => "counting",
            Self::Waiting { .. } => "waiting",
            Self::Failed { .. } => "failed",
        }
    }
}

impl Outcome {
    /// The same outcome, but an object that is up to date or waiting is requeued for `at` at the latest, which is in
    /// the future.
    pub(crate) fn no_later_than(self, at: Timestamp, now: Timestamp) -> Self {
        match self {
            // For a later `at` the usual pause is shorter, so it needs no change.
            Self::UpToDate | Self::Waiting { until: None } if time_left(at, now) < IDLE_PAUSE => {
                Self::Waiting { until: Some(at) }
            }
            Self::Waiting { until: Some(until) } => Self::Waiting { until: Some(until.min(at)) },
            Self::UpToDate
            | Self::Waiting { until: None }
            | Self::Acted
            | Self::Polling { .. }
            | Self::CountingDown { .. }
            | Self::Failed { .. } => self,
        }
    }
}

/// The requeue action after this outcome.
pub(crate) fn requeue_action(outcome: Outcome, now: Timestamp) -> Action {
    pause(outcome, now).map_or_else(Action::await_change, Action::requeue)
}

/// The pause until the next pass without a change. `None`: until a change.
pub(crate) fn pause(outcome: Outcome, now: Timestamp) -> Option<Duration> {
    Some(match outcome {
        Outcome::UpToDate | Outcome::Waiting { until: None } => IDLE_PAUSE,
        Outcome::Acted => STEP_PAUSE,
        Outcome::Polling { until } => until.map_or(POLL_PAUSE, |at| time_left(at, now).min(POLL_PAUSE)),
        Outcome::CountingDown { until } => {
            let left = time_left(until, now);
            let pause = (left / COUNTDOWN_FRACTION).clamp(POLL_PAUSE, LONGEST_COUNTDOWN_PAUSE);
            pause.min(left)
        }
        Outcome::Waiting { until: Some(at) } => {
            let left = time_left(at, now);
            let before = |ahead| left.checked_sub(ahead).filter(|rest| *rest > STEP_PAUSE);
            before(PREPARE_BEFORE).or_else(|| before(BARRIER_BEFORE.unsigned_abs())).unwrap_or(left).min(LONGEST)
        }
        Outcome::Failed { blame: RetryBlame::User, attempt: _ } => return None,
        Outcome::Failed { blame: RetryBlame::Cluster | RetryBlame::Upstream, attempt } => {
            Duration::from_secs(1_u64 << attempt.min(MAX_DOUBLINGS))
        }
    })
}

/// Time left until `at`. Never zero, so that a clock that is slightly early does not cause a busy loop.
fn time_left(at: Timestamp, now: Timestamp) -> Duration {
    let left = Duration::try_from(at.duration_since(now)).unwrap_or(Duration::ZERO);
    left.max(Duration::from_millis(200))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn requeue_hits_window_exactly_and_is_capped() {
        let now = Outcome::Waiting { until: Some(at(100 + 6)) };
        assert_eq!(requeue_action(now, at(100)), Action::requeue(Duration::from_secs(6)));
        let soon = Outcome::Waiting { until: Some(at(100 + 60)) };
        assert_eq!(requeue_action(soon, at(100)), Action::requeue(Duration::from_secs(55)));
        let later = Outcome::Waiting { until: Some(at(100 + 90)) };
        assert_eq!(requeue_action(later, at(100)), Action::requeue(Duration::from_secs(30)));
        let far = Outcome::Waiting { until: Some(at(100 + 86_400)) };
        assert_eq!(requeue_action(far, at(100)), Action::requeue(LONGEST));
    }

    #[test]
    fn requeue_awaits_user_fix_and_backs_off_other_failures() {
        let user = Outcome::Failed { blame: RetryBlame::User, attempt: 3 };
        assert_eq!(requeue_action(user, at(0)), Action::await_change());
        let first = Outcome::Failed { blame: RetryBlame::Upstream, attempt: 0 };
        assert_eq!(requeue_action(first, at(0)), Action::requeue(Duration::from_secs(1)));
        let hundredth = Outcome::Failed { blame: RetryBlame::Cluster, attempt: 100 };
        assert_eq!(requeue_action(hundredth, at(0)), Action::requeue(Duration::from_secs(256)));
    }

    #[test]
    fn requeue_gets_denser_towards_countdown_end() {
        let left = |seconds| requeue_action(Outcome::CountingDown { until: at(seconds) }, at(0));
        assert_eq!(left(3_600), Action::requeue(Duration::from_secs(15)));
        assert_eq!(left(100), Action::requeue(Duration::from_secs(10)));
        assert_eq!(left(20), Action::requeue(Duration::from_secs(3)));
        assert_eq!(left(2), Action::requeue(Duration::from_secs(2)));
        assert_eq!(left(-1), Action::requeue(Duration::from_millis(200)));
    }

    #[test]
    fn requeue_for_past_instant_does_not_spin() {
        let late = Outcome::Waiting { until: Some(at(1)) };
        assert_eq!(requeue_action(late, at(100)), Action::requeue(Duration::from_millis(200)));
    }
}
