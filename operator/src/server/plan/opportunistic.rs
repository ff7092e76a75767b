//! Pure. Decides whether the update of this plan may start outside of windows.

use jiff::Timestamp;
use scheduler::rollout::opportunity;

use super::Plan;
use crate::server::opportunistic::OpportunisticState;
use validate::CheckedServer;

impl Plan {
    /// Opens the gate at an opportunity. A constraint, a requested restart or a requested restore prevents that.
    pub(crate) fn apply_opportunity(&mut self, server: &CheckedServer, now: Timestamp) {
        self.opportunistic = OpportunisticState::new(server, &self.target.changes, self.gate);
        let Some(empty_for) = self.opportunistic.empty_for.filter(|_| !self.is_opportunity_prevented()) else {
            return;
        };
        if let Some(found) =
            opportunity(&self.goal, &self.observation, self.gate, &server.updates.windows, empty_for, now)
        {
            (self.gate, self.goal.policy) = (found.gate, found.policy);
            self.opportunistic.reason = Some(found.reason);
        }
    }

    /// Whether only the players on the server block an opportunistic update.
    pub(crate) fn waits_for_empty_server(&self, server: &CheckedServer) -> bool {
        let empty_for = OpportunisticState::new(server, &self.target.changes, self.gate).empty_for;
        empty_for.is_some() && !self.is_opportunity_prevented() && self.next_window.blackout.is_none()
    }

    fn is_opportunity_prevented(&self) -> bool {
        !self.constraints.delaying.is_empty()
            || self.tasks.restores.due.is_some()
            || self.tasks.restart_request.due.is_some()
    }

    /// When a server whose update waits for an opportunity has been empty for long enough.
    pub(crate) fn opportunity_at(&self, now: Timestamp) -> Option<Timestamp> {
        let waits = self.is_update() && self.observation.pod.is_some();
        self.opportunistic.next_check(self.observation.empty_since, now).filter(|_| waits)
    }
}
