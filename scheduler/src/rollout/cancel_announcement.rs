//! Pure. Cancels an announced stop that does not happen, and informs the players.
//!
//! A stop is cancelled when a blackout began during its countdown, the server was suspended, or the goal has changed. Players who see a countdown
//! end without a stop do not trust the next one.

use jiff::Timestamp;

use super::{DECISION_VALID_FOR, Step, WaitingOn};
use crate::maintenance::saturating_add;
use crate::observation::{Announced, Disruption, Observation, Players};

/// `step`, or the step that first tells players that the announced disruption does not happen. A stop that only waits for players or for its
/// files still happens.
pub(super) fn cancel_stale_announcement(observation: &Observation, step: Step, now: Timestamp) -> Step {
    let rests = matches!(
        step,
        Step::UpToDate
            | Step::Wait(
                WaitingOn::Window { .. }
                    | WaitingOn::Blocked { .. }
                    | WaitingOn::BelowFloor { .. }
                    | WaitingOn::NoImage
                    | WaitingOn::NoBackup
                    | WaitingOn::RollbackWouldLoseProgress
            )
    );
    // A drain has its own end.
    let is_of_drain = |announced: &Announced| matches!(announced.act, Disruption::Drain { .. });
    let announced =
        observation.facts.announced.filter(|announced| observation.pod.is_some_and(|pod| pod.uid == announced.pod));
    // A cancellation cannot be sent while the agent is unreachable. It is sent when the agent answers again.
    let is_reachable = !matches!(observation.players, Players::Unknown { .. });
    match announced.filter(|announced| rests && is_reachable && !is_of_drain(announced) && !announced.is_expired(now)) {
        Some(announced) => {
            Step::CancelAnnouncement { disruption: announced.act, not_after: saturating_add(now, DECISION_VALID_FOR) }
        }
        None => step,
    }
}
