//! Pure. Decides whether an update may begin outside of every window because no player would mind.
//!
//! The answer is a gate like any other. As with a window, an instant identifies the opening. It is the instant from which nobody had been online
//! for long enough, or the instant of a restart that the update replaces. When a player joins, the gate shuts, with the same results as for any
//! shut gate. An announcement does not count in the next opening, a written template is reverted, and a commit that has not stopped a server yet
//! is reverted.

use jiff::{SignedDuration, Timestamp};

use super::{has_begun, is_held_by_crashes};
use crate::maintenance::{Gate, Windows, later};
use crate::observation::{
    Disruption, Goal, ImagesOnNode, Observation, Partition, PlayerPolicy, Players, PodPhase, RestartDue,
};

/// Why no player would mind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpportunityReason {
    /// No server is running, and none is wanted.
    Asleep,
    /// The server has been empty for long enough. A player who joins ends it.
    Empty,
    /// The server restarts on schedule anyway. Players are warned as before that restart, and can delay it as far.
    Restart,
}

/// An opening of the gate outside of every window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opportunity {
    /// The reason.
    pub occasion: OpportunityReason,
    /// Replaces the gate that is shut.
    pub gate: Gate,
    /// How far players can delay the stop.
    pub policy: PlayerPolicy,
}

/// The opening for a goal whose `gate` is shut. `None`: no opening exists, or the gate is not shut and the rules of the window apply.
///
/// Of the `windows` only the blackouts count. The server must have reported zero players for `empty_for`, and a server that cannot be reached
/// counts as occupied. A newer Minecraft is excluded: its players need another client, and the world cannot be converted back.
pub fn opportunity(
    goal: &Goal,
    seen: &Observation,
    gate: Gate,
    windows: &Windows,
    empty_for: SignedDuration,
    now: Timestamp,
) -> Option<Opportunity> {
    let Gate::Shut { opens: _ } = gate else { return None };
    let (set, settled) = (seen.set?, seen.facts.settled?);
    let failed = seen.facts.failed.contains(&goal.revision);
    if goal.revision == settled.revision || failed || goal.world < seen.least_world() || goal.world > settled.world {
        return None;
    }
    if is_held_by_crashes(goal, seen, gate) {
        return None;
    }
    // Another goal is already in progress. It is finished or reverted first.
    if set.door == Partition::Open && set.template != goal.revision {
        return None;
    }
    let opening = |occasion, since| match windows.without_windows(since, now) {
        gate @ Gate::Open { .. } => Some(Opportunity { occasion, gate, policy: goal.policy }),
        Gate::NoNewStarts { .. } | Gate::Shut { .. } => None,
    };
    let Some(pod) = seen.pod else {
        // A lost pod is recreated as it was. With two changes at once, the cause of a failure would be unclear.
        return if set.asleep { opening(OpportunityReason::Asleep, Timestamp::MIN) } else { None };
    };
    if pod.life != PodPhase::Up || pod.revision != settled.revision || !seen.staged {
        return None;
    }
    let restart = goal.restart.filter(|restart| is_taken_along(goal, seen, *restart));
    let with_restart = restart.map(|RestartDue { due, until, policy, only_empty: _, gives_way_until: _ }| {
        Opportunity { occasion: OpportunityReason::Restart, gate: Gate::Open { opened_at: due, until }, policy }
    });
    // Players were warned before a restart. It happens as announced, also when they have left.
    if restart.is_some_and(|restart| has_begun(goal, seen, restart.due)) {
        return with_restart;
    }
    if matches!(seen.images, ImagesOnNode::OnTheirWay | ImagesOnNode::Failed) {
        return None;
    }
    let empty_since = seen.empty_since.filter(|_| seen.players == Players::Nobody);
    let long_enough = empty_since.map(|since| later(since, empty_for)).filter(|from| *from <= now);
    long_enough.and_then(|from| opening(OpportunityReason::Empty, from)).or(with_restart)
}

/// Whether an update replaces a restart that is due. A restart that was announced as such stays a restart.
fn is_taken_along(goal: &Goal, seen: &Observation, restart: RestartDue) -> bool {
    let may_begin = match seen.players {
        Players::Nobody => true,
        Players::Some(_) | Players::Hidden => !restart.only_empty,
        Players::Unknown { .. } => return false,
    };
    let is_a_restart_already = seen.told(Disruption::Restart { due: restart.due }).is_some();
    !is_a_restart_already && (may_begin || has_begun(goal, seen, restart.due))
}
