//! Pure. What is not begun on a server whose process ends again and again.

use super::{is_proven, is_told};
use crate::gate::Gate;
use crate::seen::{Goal, Seen};

/// Whether nothing may begin by itself here, whatever the gate says: it would be judged by what was broken before, and a newer Minecraft could
/// not be taken back. What has begun goes on, and what a person asks for is not asked about.
pub fn is_held_by_crashes(goal: &Goal, seen: &Seen, gate: Gate) -> bool {
    let (Some(set), Some(settled)) = (&seen.set, seen.facts.settled) else { return false };
    // A template of something else, which a person wrote or a goal of before, is no beginning of this one: it goes back.
    let is_written = set.template == goal.revision && set.template != settled.revision;
    seen.crash_loop && !is_told(goal, seen, gate) && !is_written && is_proven(set, seen.pod, settled)
}
