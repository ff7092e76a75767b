//! Edge (reads). Chooses the next step. Counts the players right before a step that depends on their number.

use jiff::Timestamp;
use scheduler::observation::{Disruption, Players};
use scheduler::rollout::{OpportunityReason, Step, WaitingOn};
use tracing::info;

use super::observe::Observed;
use super::plan::Plan;
use super::update_slot;
use crate::context::Context;
use crate::error_chain::ErrorChain;
use validate::CheckedServer;

/// The next step, with respect to the update slots. Before a step that requires an empty server, the server's player list must confirm
/// that. A ping is seconds old, and may hide players.
pub(crate) async fn next_step(
    ctx: &Context,
    server: &CheckedServer,
    observed: &Observed,
    plan: &mut Plan,
    now: Timestamp,
) -> Step {
    let step = update_slot::next_step_with_slot(ctx, server, observed, plan, now);
    let requires_empty = plan.opportunistic.reason == Some(OpportunityReason::Empty);
    if requires_empty && warns_or_stops_for_update(step) {
        match list_players(ctx, observed).await {
            Some(Players::Nobody) => return step,
            Some(listed) => plan.observation.players = listed,
            None => {}
        }
        plan.gate = plan.opportunistic.normal_gate;
        plan.opportunistic.reason = None;
    } else if depends_on_player_count(step, plan.observation.players)
        && let Some(listed) = list_players(ctx, observed).await
    {
        plan.observation.players = listed;
    } else {
        return step;
    }
    update_slot::next_step_with_slot(ctx, server, observed, plan, now)
}

/// Whether the step would be another one if the ping hid players, or if it hid that the server is empty.
pub(crate) fn depends_on_player_count(step: Step, players: Players) -> bool {
    match players {
        Players::Nobody => matches!(step, Step::Announce { .. }),
        Players::Hidden => matches!(step, Step::Announce { .. } | Step::Wait(WaitingOn::Players { .. })),
        Players::Some(_) | Players::Unknown { .. } => false,
    }
}

/// Whether the step warns or stops players for an update.
pub(crate) fn warns_or_stops_for_update(step: Step) -> bool {
    let announces = matches!(
        step,
        Step::Announce { disruption: Disruption::Update { .. }, .. }
            | Step::Reannounce { disruption: Disruption::Update { .. }, .. }
    );
    announces || matches!(step, Step::Commit { .. } | Step::RollForward { .. })
}

/// The players on the server's own list. `None` if the list is unavailable.
pub(crate) async fn list_players(ctx: &Context, observed: &Observed) -> Option<Players> {
    match observed.agent(ctx)?.count_players().await.map(Players::from) {
        Ok(listed @ (Players::Nobody | Players::Some(_))) => {
            info!(?listed, "counted the players by the server's own list");
            Some(listed)
        }
        Ok(Players::Unknown { .. } | Players::Hidden) => {
            info!("the server's own list does not show the players");
            None
        }
        Err(error) => {
            info!(error = %ErrorChain(&error), "could not count the players");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use scheduler::observation::{PodUid, Revision};

    use super::*;

    #[test]
    fn server_counts_players_before_step_that_depends_on_ping() {
        let now = Timestamp::UNIX_EPOCH;
        let disruption = Disruption::Update { goal: Revision(1), window_opened_at: now };
        let announce =
            Step::Announce { disruption, pod: PodUid(7), notice: SignedDuration::from_mins(5), not_after: now };
        let waits = Step::Wait(WaitingOn::Players { until: now });
        let counts = |step| {
            [Players::Nobody, Players::Hidden, Players::Some(2)].map(|players| depends_on_player_count(step, players))
        };
        assert_eq!(counts(announce), [true, true, false]);
        assert_eq!(counts(waits), [false, true, false]);
        assert_eq!(counts(Step::UpToDate), [false, false, false]);
    }
}
