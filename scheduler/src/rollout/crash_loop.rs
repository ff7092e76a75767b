//! Pure. Decides whether a crash-looping server blocks new changes.

use super::has_goal_begun;
use crate::maintenance::Gate;
use crate::observation::{Goal, Observation};

/// Whether no change may begin by itself here, whatever the gate allows. Its verification would fail on an existing problem, and a newer
/// Minecraft could not be rolled back. A change that has begun continues, and changes on a user's request are not subject to this.
pub fn is_blocked_by_crash_loop(goal: &Goal, observation: &Observation, gate: Gate) -> bool {
    observation.crash_loop
        && observation.stateful_set.is_some()
        && observation.facts.settled.is_some()
        && !has_goal_begun(goal, observation, gate)
}
