//! Pure. What is not begun on a server whose process ends again and again.

use super::has_goal_begun;
use crate::maintenance::Gate;
use crate::observation::{Goal, Observation};

/// Whether nothing may begin by itself here, whatever the gate says: it would be judged by what was broken before, and a newer Minecraft could
/// not be taken back. What has begun goes on, and what a person asks for is not asked about.
pub fn is_held_by_crashes(goal: &Goal, seen: &Observation, gate: Gate) -> bool {
    seen.crash_loop && seen.set.is_some() && seen.facts.settled.is_some() && !has_goal_begun(goal, seen, gate)
}
