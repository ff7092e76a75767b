//! Pure. Turns the outcome of a pass into the time of the next one.
//!
//! No other file decides that time.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::runtime::controller::Action;

/// After a step the state has changed, possibly without an event, because the agent is not watched.
const AFTER_A_STEP: Duration = Duration::from_secs(1);
/// Pause between requests to the agent during a disruption. A countdown, a start and a verification end within seconds.
const DURING_AN_ACT: Duration = Duration::from_secs(3);
/// During a warning to players or a drain, the pause is this fraction of the remaining time, within these bounds. A
/// pass can only find then that the last player has left. Hundreds of servers may warn at the same time.
const PART_OF_WHAT_IS_LEFT: u32 = 10;
const LONGEST_OF_A_COUNTDOWN: Duration = Duration::from_secs(15);
/// Pause of a server that is up to date and has no event. Its clock is the window, and its watch is the API server. The
/// pass only refreshes state that is not watched (players, drift) and costs one request to the agent.
const SETTLED: Duration = Duration::from_mins(5);
/// The longest pause. A longer wait is split, because a suspended machine wakes late.
const LONGEST: Duration = Duration::from_mins(15);
/// How long before an awaited time one pass reads everything, so that little is left to read and to decide at that
/// time. Hundreds of servers may wait for the same time.
const AHEAD: Duration = Duration::from_mins(1);
/// How long before that time the pass begins that waits at the barrier (`server/window_barrier.rs`). The passes over
/// two hundred servers take two seconds.
pub(crate) const AT_THE_LINE: SignedDuration = SignedDuration::from_secs(5);
/// Upper limit of the back-off of failures, which starts at 1 s and doubles each time.
const FAILURE_CAP: Duration = Duration::from_mins(5);

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
    Settled,
    /// One step was taken.
    Acted,
    /// A disruption is in progress. `until` is the time at which its cause ends by itself, if there is such a time.
    Under { until: Option<Timestamp> },
    /// The warning to players or the drain lasts until then at the latest.
    Counting { until: Timestamp },
    /// The operator waits for `until` (a window), or for a change if `until` is `None`.
    Waiting { until: Option<Timestamp> },
    /// The pass failed.
    Failed { blame: RetryBlame, attempt: u32 },
}

impl Outcome {
    /// The label in metrics, from a closed set.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Settled => "settled",
            Self::Acted => "acted",
            Self::Under { .. } => "under-way",
            Self::Counting { .. } => "counting",
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
            Self::Settled | Self::Waiting { until: None } if left(at, now) < SETTLED => {
                Self::Waiting { until: Some(at) }
            }
            Self::Waiting { until: Some(until) } => Self::Waiting { until: Some(until.min(at)) },
            Self::Settled
            | Self::Waiting { until: None }
            | Self::Acted
            | Self::Under { .. }
            | Self::Counting { .. }
            | Self::Failed { .. } => self,
        }
    }
}

/// The requeue action after this outcome.
pub(crate) fn again(outcome: Outcome, now: Timestamp) -> Action {
    pause(outcome, now).map_or_else(Action::await_change, Action::requeue)
}

/// The pause until the next pass without a change. `None`: until a change.
pub(crate) fn pause(outcome: Outcome, now: Timestamp) -> Option<Duration> {
    Some(match outcome {
        Outcome::Settled | Outcome::Waiting { until: None } => SETTLED,
        Outcome::Acted => AFTER_A_STEP,
        Outcome::Under { until } => until.map_or(DURING_AN_ACT, |at| left(at, now).min(DURING_AN_ACT)),
        Outcome::Counting { until } => {
            let left = left(until, now);
            let pause = (left / PART_OF_WHAT_IS_LEFT).clamp(DURING_AN_ACT, LONGEST_OF_A_COUNTDOWN);
            pause.min(left)
        }
        Outcome::Waiting { until: Some(at) } => {
            let left = left(at, now);
            let before = |ahead| left.checked_sub(ahead).filter(|rest| *rest > AFTER_A_STEP);
            before(AHEAD).or_else(|| before(AT_THE_LINE.unsigned_abs())).unwrap_or(left).min(LONGEST)
        }
        Outcome::Failed { blame: RetryBlame::User, attempt: _ } => return None,
        Outcome::Failed { blame: RetryBlame::Cluster | RetryBlame::Upstream, attempt } => {
            Duration::from_secs(1_u64 << attempt.min(8)).min(FAILURE_CAP)
        }
    })
}

/// Time left until `at`. Never zero, so that a clock that is slightly early does not cause a busy loop.
fn left(at: Timestamp, now: Timestamp) -> Duration {
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
        assert_eq!(again(now, at(100)), Action::requeue(Duration::from_secs(6)));
        let soon = Outcome::Waiting { until: Some(at(100 + 60)) };
        assert_eq!(again(soon, at(100)), Action::requeue(Duration::from_secs(55)));
        let later = Outcome::Waiting { until: Some(at(100 + 90)) };
        assert_eq!(again(later, at(100)), Action::requeue(Duration::from_secs(30)));
        let far = Outcome::Waiting { until: Some(at(100 + 86_400)) };
        assert_eq!(again(far, at(100)), Action::requeue(LONGEST));
    }

    #[test]
    fn requeue_awaits_user_fix_and_backs_off_other_failures() {
        let user = Outcome::Failed { blame: RetryBlame::User, attempt: 3 };
        assert_eq!(again(user, at(0)), Action::await_change());
        let first = Outcome::Failed { blame: RetryBlame::Upstream, attempt: 0 };
        assert_eq!(again(first, at(0)), Action::requeue(Duration::from_secs(1)));
        let hundredth = Outcome::Failed { blame: RetryBlame::Cluster, attempt: 100 };
        assert_eq!(again(hundredth, at(0)), Action::requeue(Duration::from_secs(256)));
    }

    #[test]
    fn requeue_gets_denser_towards_countdown_end() {
        let left = |seconds| again(Outcome::Counting { until: at(seconds) }, at(0));
        assert_eq!(left(3_600), Action::requeue(Duration::from_secs(15)));
        assert_eq!(left(100), Action::requeue(Duration::from_secs(10)));
        assert_eq!(left(20), Action::requeue(Duration::from_secs(3)));
        assert_eq!(left(2), Action::requeue(Duration::from_secs(2)));
        assert_eq!(left(-1), Action::requeue(Duration::from_millis(200)));
    }

    #[test]
    fn requeue_for_past_instant_does_not_spin() {
        let late = Outcome::Waiting { until: Some(at(1)) };
        assert_eq!(again(late, at(100)), Action::requeue(Duration::from_millis(200)));
    }
}
