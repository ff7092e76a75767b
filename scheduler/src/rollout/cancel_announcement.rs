//! Pure. Cancels an announced stop that does not happen, and informs the players.
//!
//! A stop is cancelled when a blackout began during its countdown, the server was suspended, or the goal has changed. Players who see a countdown
//! end without a stop do not trust the next one.

use jiff::Timestamp;

use super::{DECISION_COUNTS, Step, WaitingOn};
use crate::maintenance::later;
use crate::observation::{Announced, Disruption, Observation, Players};

/// `step`, or the step that first tells players that the announced disruption does not happen. A stop that only waits for players or for its
/// files still happens.
pub(super) fn before_rest(seen: &Observation, step: Step, now: Timestamp) -> Step {
    let rests = matches!(
        step,
        Step::Settled
            | Step::Wait(
                WaitingOn::Window { .. }
                    | WaitingOn::Held { .. }
                    | WaitingOn::BelowFloor { .. }
                    | WaitingOn::NoImage
                    | WaitingOn::NoBackup
                    | WaitingOn::RollbackWouldLoseProgress
            )
    );
    // A drain has its own end.
    let is_of_drain = |told: &Announced| matches!(told.act, Disruption::Drain { .. });
    let told = seen.facts.announced.filter(|told| seen.pod.is_some_and(|pod| pod.uid == told.pod));
    // A cancellation cannot be sent while the agent is unreachable. It is sent when the agent answers again.
    let can_be_told = !matches!(seen.players, Players::Unknown { .. });
    match told.filter(|told| rests && can_be_told && !is_of_drain(told) && !told.is_long_ago(now)) {
        Some(told) => Step::CancelAnnouncement { act: told.act, not_after: later(now, DECISION_COUNTS) },
        None => step,
    }
}
