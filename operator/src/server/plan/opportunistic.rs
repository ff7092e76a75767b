//! Pure. Decides whether the update of this plan may start outside of windows.

use jiff::Timestamp;
use scheduler::rollout::opportunity;

use super::Plan;
use crate::requeue::Outcome;
use crate::server::check::CheckedServer;
use crate::server::opportunistic::OpportunisticState;

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
