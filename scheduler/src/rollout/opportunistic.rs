//! Pure. Decides whether an update may begin outside of every window because no player would mind.
//!
//! The answer is a gate like any other. As with a window, an instant identifies the opening. It is the instant from which nobody had been online
//! for long enough, or the instant of a restart that the update replaces. When a player joins, the gate shuts, with the same results as for any
//! shut gate. An announcement does not count in the next opening, a written template is reverted, and a commit that has not stopped a server yet
//! is reverted.

use jiff::{SignedDuration, Timestamp};

use super::{has_begun, is_blocked_by_crash_loop};
use crate::maintenance::{Gate, Windows, saturating_add};
use crate::observation::{
    Disruption, Goal, ImagesOnNode, Observation, Partition, PlayerPolicy, Players, PodPhase, RestartDue,
};

/// Why no player would mind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpportunityReason {
    /// No server is running, and none is wanted.
    ScaledToZero,
    /// The server has been empty for long enough. A player who joins ends it.
    Empty,
    /// The server restarts on schedule anyway. Players are warned as before that restart, and can delay it as far.
    Restart,
}

/// An opening of the gate outside of every window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opportunity {
    /// The reason.
    pub reason: OpportunityReason,
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
    observation: &Observation,
    gate: Gate,
    windows: &Windows,
    empty_for: SignedDuration,
    now: Timestamp,
) -> Option<Opportunity> {
    let Gate::Shut { opens: _ } = gate else { return None };
    let (stateful_set, stable) = (observation.stateful_set?, observation.facts.settled?);
    let failed = observation.facts.failed.contains(&goal.revision);
    if goal.revision == stable.revision || failed || goal.world < observation.world_floor() || goal.world > stable.world
    {
        return None;
    }
    if is_blocked_by_crash_loop(goal, observation, gate) {
        return None;
    }
    // Another goal is already in progress. It is finished or reverted first.
    if stateful_set.partition == Partition::Open && stateful_set.template != goal.revision {
        return None;
    }
    let opening = |reason, since| match windows.without_windows(since, now) {
        gate @ Gate::Open { .. } => Some(Opportunity { reason, gate, policy: goal.policy }),
        Gate::NoNewStarts { .. } | Gate::Shut { .. } => None,
    };
    let Some(pod) = observation.pod else {
        // A lost pod is recreated as it was. With two changes at once, the cause of a failure would be unclear.
        return if stateful_set.scaled_to_zero {
            opening(OpportunityReason::ScaledToZero, Timestamp::MIN)
        } else {
            None
        };
    };
    if pod.phase != PodPhase::Up || pod.revision != stable.revision || !observation.staged {
        return None;
    }
    let restart = goal.restart.filter(|restart| can_join_restart(goal, observation, *restart));
    let with_restart = restart.map(|RestartDue { due, until, policy, only_empty: _, yields_until: _ }| Opportunity {
        reason: OpportunityReason::Restart,
        gate: Gate::Open { opened_at: due, until },
        policy,
    });
    // Players were warned before a restart. It happens as announced, also when they have left.
    if restart.is_some_and(|restart| has_begun(goal, observation, restart.due)) {
        return with_restart;
    }
    if matches!(observation.images, ImagesOnNode::Pulling | ImagesOnNode::Failed) {
        return None;
    }
    let empty_since = observation.empty_since.filter(|_| observation.players == Players::Nobody);
    let long_enough = empty_since.map(|since| saturating_add(since, empty_for)).filter(|from| *from <= now);
    long_enough.and_then(|from| opening(OpportunityReason::Empty, from)).or(with_restart)
}

/// Whether an update replaces a restart that is due. A restart that was announced as such stays a restart.
fn can_join_restart(goal: &Goal, observation: &Observation, restart: RestartDue) -> bool {
    let may_begin = match observation.players {
        Players::Nobody => true,
        Players::Some(_) | Players::Hidden => !restart.only_empty,
        Players::Unknown { .. } => return false,
    };
    let is_a_restart_already = observation.announced(Disruption::Restart { due: restart.due }).is_some();
    !is_a_restart_already && (may_begin || has_begun(goal, observation, restart.due))
}
