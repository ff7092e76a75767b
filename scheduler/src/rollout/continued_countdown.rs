//! Pure. Lets a countdown go on when a user requests its update during it.

use jiff::Timestamp;

use crate::maintenance::Gate;
use crate::observation::{Disruption, PodUid, RecordedFacts, Revision};

/// The gate that a user's request opens, for this goal on this pod. If players already count down to the goal, it is the opening in which that
/// countdown began. Otherwise the request would begin another one, which ends later than the players were told.
pub fn continue_countdown(
    gate: Gate,
    goal: Revision,
    facts: &RecordedFacts,
    pod: Option<PodUid>,
    now: Timestamp,
) -> Gate {
    let Gate::Open { opened_at: _, until } = gate else { return gate };
    let announced = facts.announced.filter(|announced| Some(announced.pod) == pod && !announced.is_expired(now));
    match announced.map(|announced| announced.act) {
        Some(Disruption::Update { goal: announced, window_opened_at: opened_at }) if announced == goal => {
            Gate::Open { opened_at, until }
        }
        Some(
            Disruption::Update { .. }
            | Disruption::RollBack { .. }
            | Disruption::Restart { .. }
            | Disruption::Drain { .. },
        )
        | None => gate,
    }
}
