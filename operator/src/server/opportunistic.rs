//! Edge (reads). Decides about updates outside of windows (`spec.updateSchedule.opportunistic`), with a last check of the player list
//! before one starts. The rule is [`scheduler::rollout::opportunity`]. This file decides to which servers it applies.

use jiff::{SignedDuration, Timestamp};
use scheduler::announcement::format_duration;
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
const MIN_CHECK_INTERVAL: SignedDuration = SignedDuration::from_mins(1);

/// Whether the planned update may be applied outside of windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OpportunisticState {
    /// How long the server must have been empty. `None` if the update is applied in windows only.
    pub(crate) empty_for: Option<SignedDuration>,
    /// Whether that is because it contains a newer Minecraft version.
    pub(crate) is_one_way: bool,
    /// Why the gate is open now without an open window.
    pub(crate) reason: Option<OpportunityReason>,
    /// The gate without the opportunity.
    normal_gate: Gate,
}

impl OpportunisticState {
    /// For a plan that waits for its gate.
    pub(crate) fn none(gate: Gate) -> Self {
        Self { empty_for: None, is_one_way: false, reason: None, normal_gate: gate }
    }

    /// For the plan of this server. `gate` is the gate without an opportunity.
    fn new(server: &CheckedServer, changes: &[ServerChange], gate: Gate) -> Self {
        let empty_for = server.opportunistic.filter(|_| server.updates_automatically());
        let is_one_way = changes.iter().any(|change| change.one_way);
        let is_restricted = empty_for.is_some() && is_one_way;
        Self { empty_for: empty_for.filter(|_| !is_one_way), is_one_way: is_restricted, ..Self::none(gate) }
    }

    /// When the server may have been empty for long enough, or the next check is due. `None` if the update does not wait for an empty
    /// server.
    fn next_check(&self, empty_since: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
        let empty_for = self.empty_for.filter(|_| self.reason.is_none())?;
        let from = empty_since.unwrap_or(now).checked_add(empty_for).unwrap_or(Timestamp::MAX);
        // The server seemed empty for long enough, but its player list disagreed. The list is requested again after the same time.
        let from = if from > now { from } else { now.checked_add(empty_for).unwrap_or(Timestamp::MAX) };
        Some(from.max(now + MIN_CHECK_INTERVAL))
    }

    /// When an update is applied, as text: in the given window, or when the server is empty.
    pub(crate) fn format_when(&self, window: Option<String>) -> Option<String> {
        match (self.empty_for, window) {
            (None, window) => window,
            (Some(_), Some(window)) => Some(format!("{window} or when empty")),
            (Some(_), None) => Some("when empty".to_owned()),
        }
    }

    /// Text to append to the message about the window.
    pub(crate) fn window_suffix(&self) -> String {
        match self.empty_for {
            Some(empty_for) => {
                format!(" It is also applied when no players have been online for {}.", format_duration(empty_for))
            }
            None if self.is_one_way => {
                " A newer Minecraft is applied in a window only (`updateSchedule.opportunistic`).".to_owned()
            }
            None => String::new(),
        }
    }

    /// Why an update is applied outside of windows, as a prefix of its changes.
    pub(crate) fn changes_prefix(&self) -> String {
        match self.reason {
            Some(OpportunityReason::ScaledToZero) => "While the server is scaled to zero: ".to_owned(),
            Some(OpportunityReason::Empty) => {
                format!("No players have been online for {}: ", format_duration(self.empty_for.unwrap_or_default()))
            }
            Some(OpportunityReason::Restart) => "With the scheduled restart: ".to_owned(),
            None => String::new(),
        }
    }
}

impl Plan {
    /// Opens the gate at an opportunity. A missing approval, the followed server, a crash loop and a requested restore all prevent that.
    pub(crate) fn apply_opportunity(&mut self, server: &CheckedServer, now: Timestamp) {
        self.opportunistic = OpportunisticState::new(server, &self.changes, self.gate);
        let Some(empty_for) = self.opportunistic.empty_for.filter(|_| !self.is_held()) else { return };
        if let Some(found) = opportunity(&self.goal, &self.observation, self.gate, &server.windows, empty_for, now) {
            (self.gate, self.goal.policy) = (found.gate, found.policy);
            self.opportunistic.reason = Some(found.reason);
        }
    }

    /// Whether only the players on the server block an opportunistic update.
    pub(crate) fn waits_for_empty_server(&self, server: &CheckedServer) -> bool {
        let empty_for = OpportunisticState::new(server, &self.changes, self.gate).empty_for;
        empty_for.is_some() && !self.is_held() && self.next_window.blackout.is_none()
    }

    fn is_held(&self) -> bool {
        self.approval.needs_approval
            || self.leader_wait().is_some()
            || self.held_by_crashes
            || self.restores.due.is_some()
    }

    /// Requeues a server whose update waits for an opportunity at the instant at which it has been empty for long enough.
    pub(crate) fn requeue_for_opportunity(&self, outcome: Outcome, now: Timestamp) -> Outcome {
        let waits = self.is_update() && self.observation.pod.is_some();
        let next = self.opportunistic.next_check(self.observation.empty_since, now).filter(|_| waits);
        next.map_or(outcome, |next| outcome.no_later_than(next, now))
    }
}

/// The next step, with respect to the update slots. Before a step that requires an empty server, the server's player list must confirm
/// that. A ping is seconds old, and may hide players.
pub(crate) async fn next_step(
    ctx: &Context,
    server: &CheckedServer,
    observed: &Observed,
    plan: &mut Plan,
    is_manual: bool,
    now: Timestamp,
) -> Step {
    let step = update_slot::next_step_with_slot(ctx, server, observed, plan, is_manual, now);
    let requires_empty = plan.opportunistic.reason == Some(OpportunityReason::Empty);
    if requires_empty && affects_players(step) {
        if list_players(ctx, observed).await == Some(Players::Nobody) {
            return step;
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
    update_slot::next_step_with_slot(ctx, server, observed, plan, is_manual, now)
}

/// Whether the step would be another one if the ping hid players, or if it hid that the server is empty.
fn depends_on_player_count(step: Step, players: Players) -> bool {
    match players {
        Players::Nobody => matches!(step, Step::Announce { .. }),
        Players::Hidden => matches!(step, Step::Announce { .. } | Step::Wait(WaitingOn::Players { .. })),
        Players::Some(_) | Players::Unknown { .. } => false,
    }
}

/// Whether the step warns or stops players.
fn affects_players(step: Step) -> bool {
    let announces = matches!(
        step,
        Step::Announce { disruption: Disruption::Update { .. }, .. }
            | Step::Reannounce { disruption: Disruption::Update { .. }, .. }
    );
    announces || matches!(step, Step::Commit { .. } | Step::RollForward { .. })
}

/// The players on the server's own list. `None` if the list is unavailable.
async fn list_players(ctx: &Context, observed: &Observed) -> Option<Players> {
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
mod tests;
