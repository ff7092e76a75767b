//! Pure. Decides whether the plan waits for the admin.

use jiff::Timestamp;
use scheduler::rollout::{Step, WaitingOn, can_roll_forward, needs_admin};

use super::Plan;
use crate::requeue::Outcome;
use crate::server::backups::current_backups;
use crate::server::observe::Observed;

impl Plan {
    /// Whether a newer set replaces the failed one once the gate opens, without a roll-back before.
    pub(crate) fn is_waiting_to_roll_forward(&self, step: Step) -> bool {
        step_needs_manual_recovery(step)
            && needs_admin(&self.observation)
            && can_roll_forward(&self.goal, &self.observation)
    }

    /// Requeues the server at the opening of the gate, and not minutes later.
    pub(crate) fn requeue_for_roll_forward(&self, outcome: Outcome, step: Step, now: Timestamp) -> Outcome {
        let opens = self.gate.opens().filter(|_| self.is_waiting_to_roll_forward(step));
        opens.map_or(outcome, |opens| outcome.no_later_than(opens, now))
    }

    /// Whether a roll-forward has to wait, because a roll-back is still possible: backups could not be listed, or a user has requested a restore.
    pub(crate) fn roll_forward_has_to_wait(&self, observed: &Observed) -> bool {
        let is_unread = current_backups(observed).is_some_and(|backups| backups.problem.is_some());
        needs_admin(&self.observation) && (is_unread || self.restores.is_open())
    }
}

/// Whether this step requires manual recovery, unless another set can open the worlds.
pub(crate) fn step_needs_manual_recovery(step: Step) -> bool {
    matches!(step, Step::Wait(why) if why.is_rollback_decision() || why == WaitingOn::WorldRefused)
}
