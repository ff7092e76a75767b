//! Edge (reads). Decides about updates outside of windows (`spec.updateSchedule.opportunistic`), with a last check of the player list
//! before one starts. The rule is [`scheduler::rollout::opportunity`]. This file decides to which servers it applies.

use jiff::{SignedDuration, Timestamp};
use scheduler::announcement::in_words;
use scheduler::maintenance::Gate;
use scheduler::observation::{Disruption, Players};
use scheduler::rollout::{OpportunityReason, Step, WaitingOn, opportunity};
use tracing::info;

use super::changes::ServerChange;
use super::check::CheckedServer;
use super::observe::Observed;
use super::plan::Plan;
use super::update_slot;
use crate::context::Context;
use crate::error_chain::ErrorChain;
use crate::requeue::Outcome;

/// Minimum interval between two passes that only check whether players have left.
const APART: SignedDuration = SignedDuration::from_mins(1);

/// Whether the planned update may be applied outside of windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OpportunisticState {
    /// How long the server must have been empty. `None` if the update is applied in windows only.
    pub(crate) empty_for: Option<SignedDuration>,
    /// Whether that is because it contains a newer Minecraft version.
    pub(crate) is_one_way: bool,
    /// Why the gate is open now without an open window.
    pub(crate) occasion: Option<OpportunityReason>,
    /// The gate without the opportunity.
    otherwise: Gate,
}

impl OpportunisticState {
    /// For a plan that waits for its gate.
    pub(crate) fn none(gate: Gate) -> Self {
        Self { empty_for: None, is_one_way: false, occasion: None, otherwise: gate }
    }

    /// For the plan of this server. `gate` is the gate without an opportunity.
    fn of(server: &CheckedServer, changes: &[ServerChange], gate: Gate) -> Self {
        let wish = server.opportunistic.filter(|_| server.changes_by_itself());
        let is_one_way = changes.iter().any(|change| change.one_way);
        let is_held_back = wish.is_some() && is_one_way;
        Self { empty_for: wish.filter(|_| !is_one_way), is_one_way: is_held_back, ..Self::none(gate) }
    }

    /// When the server may have been empty for long enough, or the next check is due. `None` if the update does not wait for an empty
    /// server.
    fn next_look(&self, empty_since: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
        let empty_for = self.empty_for.filter(|_| self.occasion.is_none())?;
        let from = empty_since.unwrap_or(now).checked_add(empty_for).unwrap_or(Timestamp::MAX);
        // The server seemed empty for long enough, but its player list disagreed. The list is requested again after the same time.
        let from = if from > now { from } else { now.checked_add(empty_for).unwrap_or(Timestamp::MAX) };
        Some(from.max(now + APART))
    }

    /// When an update is applied, as text: in the given window, or when the server is empty.
    pub(crate) fn beside(&self, window: Option<String>) -> Option<String> {
        match (self.empty_for, window) {
            (None, window) => window,
            (Some(_), Some(window)) => Some(format!("{window} or when empty")),
            (Some(_), None) => Some("when empty".to_owned()),
        }
    }

    /// Text to append to the message about the window.
    pub(crate) fn instead_of_waiting(&self) -> String {
        match self.empty_for {
            Some(empty_for) => format!("; it also comes when nobody has been on for {}", in_words(empty_for)),
            None if self.is_one_way => {
                "; a newer Minecraft comes in a window only (`updateSchedule.opportunistic`)".to_owned()
            }
            None => String::new(),
        }
    }

    /// Why an update is applied outside of windows, as a prefix of its changes.
    pub(crate) fn why_now(&self) -> String {
        match self.occasion {
            Some(OpportunityReason::Asleep) => "while the server sleeps: ".to_owned(),
            Some(OpportunityReason::Empty) => {
                format!("nobody has been on for {}: ", in_words(self.empty_for.unwrap_or_default()))
            }
            Some(OpportunityReason::Restart) => "with the restart by the clock: ".to_owned(),
            None => String::new(),
        }
    }
}

impl Plan {
    /// Opens the gate at an opportunity. A missing approval, the followed server, a crash loop and a requested restore all prevent that.
    pub(crate) fn look_for_opportunity(&mut self, server: &CheckedServer, now: Timestamp) {
        self.opportunistic = OpportunisticState::of(server, &self.changes, self.gate);
        let Some(empty_for) = self.opportunistic.empty_for.filter(|_| !self.is_held()) else { return };
        if let Some(found) = opportunity(&self.goal, &self.seen, self.gate, &server.windows, empty_for, now) {
            (self.gate, self.goal.policy) = (found.gate, found.policy);
            self.opportunistic.occasion = Some(found.occasion);
        }
    }

    /// Whether only the players on the server block an opportunistic update.
    pub(crate) fn comes_when_empty(&self, server: &CheckedServer) -> bool {
        let wish = OpportunisticState::of(server, &self.changes, self.gate).empty_for;
        wish.is_some() && !self.is_held() && self.outlook.blackout.is_none()
    }

    fn is_held(&self) -> bool {
        self.consent.needs_approval
            || self.held_by_followed().is_some()
            || self.held_by_crashes
            || self.restores.due.is_some()
    }

    /// Requeues a server whose update waits for an opportunity at the instant at which it has been empty for long enough.
    pub(crate) fn in_time_for_opportunity(&self, outcome: Outcome, now: Timestamp) -> Outcome {
        let waits = self.is_update() && self.seen.pod.is_some();
        let next = self.opportunistic.next_look(self.seen.empty_since, now).filter(|_| waits);
        next.map_or(outcome, |next| outcome.no_later_than(next, now))
    }
}

/// The next step, with respect to the update slots. Before a step that requires an empty server, the server's player list must confirm
/// that. A ping is seconds old, and may hide players.
pub(crate) async fn next_step(
    ctx: &Context,
    server: &CheckedServer,
    seen: &Observed,
    plan: &mut Plan,
    by_hand: bool,
    now: Timestamp,
) -> Step {
    let step = update_slot::next_in_turn(ctx, server, seen, plan, by_hand, now);
    let is_alone = plan.opportunistic.occasion == Some(OpportunityReason::Empty);
    if is_alone && rests_on_nobody(step) {
        if list(ctx, seen).await == Some(Players::Nobody) {
            return step;
        }
        plan.gate = plan.opportunistic.otherwise;
        plan.opportunistic.occasion = None;
    } else if rests_on_the_count(step, plan.seen.players)
        && let Some(listed) = list(ctx, seen).await
    {
        plan.seen.players = listed;
    } else {
        return step;
    }
    update_slot::next_in_turn(ctx, server, seen, plan, by_hand, now)
}

/// Whether the step would be another one if the ping hid players, or if it hid that the server is empty.
fn rests_on_the_count(step: Step, players: Players) -> bool {
    match players {
        Players::Nobody => matches!(step, Step::Announce { .. }),
        Players::Hidden => matches!(step, Step::Announce { .. } | Step::Wait(WaitingOn::Players { .. })),
        Players::Some(_) | Players::Unknown { .. } => false,
    }
}

/// Whether the step warns or stops players.
fn rests_on_nobody(step: Step) -> bool {
    let tells = matches!(
        step,
        Step::Announce { act: Disruption::Update { .. }, .. } | Step::Reannounce { act: Disruption::Update { .. }, .. }
    );
    tells || matches!(step, Step::Commit { .. } | Step::RollForward { .. })
}

/// The players on the server's own list. `None` if the list is unavailable.
async fn list(ctx: &Context, seen: &Observed) -> Option<Players> {
    match seen.agent(ctx)?.players().await.map(Players::from) {
        Ok(listed @ (Players::Nobody | Players::Some(_))) => {
            info!(?listed, "the server's own list was asked");
            Some(listed)
        }
        Ok(Players::Unknown { .. } | Players::Hidden) => {
            info!("the server's own list does not say who is on");
            None
        }
        Err(error) => {
            info!(error = %ErrorChain(&error), "nobody could say who is on");
            None
        }
    }
}

#[cfg(test)]
mod tests;
