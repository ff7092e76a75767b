//! Pure. Delays a newer version set while a failed one may still be rolled back, and tells whether the server waits for its admin.

use jiff::Timestamp;
use scheduler::rollout::{Step, WaitingOn, can_roll_forward, needs_admin};

use crate::server::backups::current_backups;
use crate::server::plan::Plan;
use crate::server::plan::constraint::{Constraint, ConstraintInput, Wait};
use crate::server::report::context::PassReport;

pub(crate) struct ManualRecovery;

impl Constraint for ManualRecovery {
    /// A roll-back is still possible if the backups could not be listed, or if a user has requested a restore.
    fn evaluate(&self, plan: &mut Plan, input: &ConstraintInput<'_>) -> bool {
        let is_unread = current_backups(input.pass.observed).is_some_and(|backups| backups.problem.is_some());
        needs_admin(&plan.observation) && (is_unread || plan.tasks.restores.is_open())
    }

    fn wait(&self, _report: &PassReport<'_>) -> Option<Wait> {
        let message = "It waits until the backups are listed, or until the requested restore has ended.".to_owned();
        Some(Wait { reason: "WaitingForBackups", message, short: None })
    }
}

impl Plan {
    /// Whether a newer set replaces the failed one once the gate opens, without a roll-back before.
    pub(crate) fn is_waiting_to_roll_forward(&self, step: Step) -> bool {
        step_needs_manual_recovery(step)
            && needs_admin(&self.observation)
            && can_roll_forward(&self.goal, &self.observation)
    }

    /// When the gate opens for a newer set that replaces the failed one.
    pub(crate) fn roll_forward_at(&self, step: Step) -> Option<Timestamp> {
        self.gate.opens().filter(|_| self.is_waiting_to_roll_forward(step))
    }
}

/// Whether this step requires manual recovery, unless another set can open the worlds.
pub(crate) fn step_needs_manual_recovery(step: Step) -> bool {
    matches!(step, Step::Wait(why) if why.is_rollback_decision() || why == WaitingOn::WorldRefused)
}
