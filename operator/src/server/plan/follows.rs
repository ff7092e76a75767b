//! Pure. Decides whether the update of this plan waits for the server that it follows.

use jiff::Timestamp;
use scheduler::maintenance::Gate;
use scheduler::observation::{Goal, Observation};
use scheduler::rollout::has_goal_begun;

use super::Plan;
use crate::requeue::Outcome;
use crate::server::follows::{FollowState, FollowWait};
use crate::server::observe::Observed;

/// The remaining wait for this plan. An announced update and one that has begun otherwise continue.
pub(crate) fn remaining_wait(
    waits: FollowWait,
    goal: &Goal,
    observation: &Observation,
    gate: Gate,
) -> Option<FollowWait> {
    let blocks_update = waits.blocks_update && !has_goal_begun(goal, observation, gate);
    (blocks_update || waits.is_spec_error()).then_some(FollowWait { blocks_update, ..waits })
}

impl Plan {
    /// Closes the gate if the plan has to wait for the followed server. A first start never waits.
    pub(crate) fn hold_for_leader(&mut self, follows: Option<&FollowState>, observed: &Observed, now: Timestamp) {
        let waits = follows.zip(observed.stable_lock.as_ref());
        let waits = waits.and_then(|(follows, from)| follows.wait_for_update(&from.lock, &self.record.lock, now));
        self.follow_wait = waits.and_then(|waits| remaining_wait(waits, &self.goal, &self.observation, self.gate));
        if self.leader_wait().is_some() {
            self.gate = Gate::Shut { opens: None };
        }
    }

    /// The wait that blocks the planned update, if any.
    pub(crate) fn leader_wait(&self) -> Option<&FollowWait> {
        self.follow_wait.as_ref().filter(|waits| waits.blocks_update)
    }

    /// When the wait for the followed server ends, if that depends on the clock only.
    pub(crate) fn leader_wait_until(&self) -> Option<Timestamp> {
        self.follow_wait.as_ref().and_then(FollowWait::until)
    }

    /// Requeues the server when its wait is over, and not only at its next window.
    pub(crate) fn requeue_for_leader(&self, outcome: Outcome, now: Timestamp) -> Outcome {
        self.leader_wait_until().map_or(outcome, |until| outcome.no_later_than(until, now))
    }
}
