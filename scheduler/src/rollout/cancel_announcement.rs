//! Pure. Players were told of a stop that does not come: a blackout began in their countdown, the server was suspended, the goal is another one.
//!
//! A countdown that ends in nothing is a lie, and whoever reads the next one thinks of it.

use jiff::Timestamp;

use super::{DECISION_COUNTS, Step, WaitingOn};
use crate::maintenance::later;
use crate::observation::{Announced, Disruption, Observation, Players};

/// `step`, or that players are told first that what they count down to does not come. A stop for which they are only waited for, or whose files
/// are on their way, still does.
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
    // A drain has an end of its own.
    let is_of_drain = |told: &Announced| matches!(told.act, Disruption::Drain { .. });
    let told = seen.facts.announced.filter(|told| seen.pod.is_some_and(|pod| pod.uid == told.pod));
    // Who cannot be asked cannot be told either: then it is called off when they answer.
    let can_be_told = !matches!(seen.players, Players::Unknown { .. });
    match told.filter(|told| rests && can_be_told && !is_of_drain(told) && !told.is_long_ago(now)) {
        Some(told) => Step::CancelAnnouncement { act: told.act, not_after: later(now, DECISION_COUNTS) },
        None => step,
    }
}
