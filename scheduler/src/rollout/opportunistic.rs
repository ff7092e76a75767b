//! Pure. May an update come outside of every window, because nobody would mind?
//!
//! The answer is a gate like any other. It is named by an instant, as an opening of a window is: by that from which nobody has been on
//! for long enough, or by that of a restart which the update takes the place of. When somebody joins it is shut, and what follows is
//! what follows from every shut gate: what was announced counts for nothing in the next opening, a template that was
//! written goes back, and a commit that has stopped nothing yet is taken back.

use jiff::{SignedDuration, Timestamp};

use super::{has_begun, is_held_by_crashes};
use crate::maintenance::{Gate, Windows, later};
use crate::observation::{
    Disruption, Goal, ImagesOnNode, Observation, Partition, PlayerPolicy, Players, PodPhase, RestartDue,
};

/// Why nobody minds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpportunityReason {
    /// No server runs, and none is to.
    Asleep,
    /// Nobody has been on for long enough. Who joins ends it.
    Empty,
    /// It restarts by the clock anyway. Players are told as before that restart, and have the same say.
    Restart,
}

/// An opening of the gate outside of every window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opportunity {
    /// Why.
    pub occasion: OpportunityReason,
    /// In place of the gate that is shut.
    pub gate: Gate,
    /// How much the players have a say.
    pub policy: PlayerPolicy,
}

/// The opening for a goal whose `gate` is shut. None: there is none, and in a window everything is as the window has it.
///
/// Of the `windows` only the blackouts count. Nobody must have been on for `empty_for`, as the server says: who cannot be asked counts as
/// somebody. A newer Minecraft is not for this: its players need another client, and the world does not go back.
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
    // What is on its way already is not this goal: it is finished first, or taken back.
    if set.door == Partition::Open && set.template != goal.revision {
        return None;
    }
    let opening = |occasion, since| match windows.without_windows(since, now) {
        gate @ Gate::Open { .. } => Some(Opportunity { occasion, gate, policy: goal.policy }),
        Gate::NoNewStarts { .. } | Gate::Shut { .. } => None,
    };
    let Some(pod) = seen.pod else {
        // A pod that is lost comes back as it was: two changes at once would leave nobody knowing which of them it was.
        return if set.asleep { opening(OpportunityReason::Asleep, Timestamp::MIN) } else { None };
    };
    if pod.life != PodPhase::Up || pod.revision != settled.revision || !seen.staged {
        return None;
    }
    let restart = goal.restart.filter(|restart| is_taken_along(goal, seen, *restart));
    let with_restart = restart.map(|RestartDue { due, until, policy, only_empty: _, gives_way_until: _ }| {
        Opportunity { occasion: OpportunityReason::Restart, gate: Gate::Open { opened_at: due, until }, policy }
    });
    // What players were told before a restart happens as they were told, also when they have left.
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

/// Whether an update goes with a restart that is due. One that players were told of as a restart goes on as that.
fn is_taken_along(goal: &Goal, seen: &Observation, restart: RestartDue) -> bool {
    let may_begin = match seen.players {
        Players::Nobody => true,
        Players::Some(_) | Players::Hidden => !restart.only_empty,
        Players::Unknown { .. } => return false,
    };
    let is_a_restart_already = seen.told(Disruption::Restart { due: restart.due }).is_some();
    !is_a_restart_already && (may_begin || has_begun(goal, seen, restart.due))
}
