//! Pure. Decides which revision replaces a failed one when only an admin can decide about a rollback, or a stable one that cannot open the
//! worlds.
//!
//! An admin must decide about the rollback when a newer Minecraft has converted the worlds, and no backup from before exists or players may have
//! been online since.
//!
//! No rollback of the worlds is needed if the new revision can open them: a corrected version set of the same Minecraft or of a newer one. It is
//! an update like any other, in a window or on a user's request. It cannot be rolled back either.

use jiff::Timestamp;

use super::stop_preconditions::check_update;
use super::{DECISION_VALID_FOR, Step, WaitingOn, allowed_since};
use crate::maintenance::{Gate, saturating_add};
use crate::observation::{
    Goal, ImagesOnNode, Observation, PodPhase, RecordedFacts, Revision, StableSet, StatefulSetView, WorldState,
};

/// The next step forward from the revision that runs or should run. `None`: no other revision is available, or not now.
pub(super) fn roll_forward(goal: &Goal, observation: &Observation, gate: Gate, now: Timestamp) -> Option<Step> {
    let opened_at = allowed_since(goal, observation, gate, now).filter(|_| can_roll_forward(goal, observation))?;
    // A pod that refuses the worlds has no running process that could stage the files. The next start stages them, as after scaling to zero.
    if !observation.staged && !refuses_newer_worlds(observation) {
        return Some(Step::Stage);
    }
    match observation.images {
        ImagesOnNode::Pulling => return Some(Step::Wait(WaitingOn::Images)),
        ImagesOnNode::Failed => return None,
        ImagesOnNode::Present | ImagesOnNode::Unknown => {}
    }
    let not_after = saturating_add(now, DECISION_VALID_FOR);
    match check_update(goal, observation, (gate, opened_at), not_after, now) {
        Ok(agent_unreachable) => Some(Step::RollForward { to: goal.revision, agent_unreachable, not_after }),
        Err(first) => first,
    }
}

/// Whether a newer Minecraft than the stable revision's may have converted the worlds.
pub(super) fn may_be_converted(world: &WorldState, stable: StableSet) -> bool {
    world.floor > stable.world || !world.whole
}

/// The decision that an admin must make before a rollback to the stable revision. `None`: the rollback is automatic.
pub(super) fn needs_decision(world: &WorldState, stable: StableSet) -> Option<WaitingOn> {
    match (may_be_converted(world, stable), world.backup, world.played_since) {
        (true, None, _) => Some(WaitingOn::NoBackup),
        (true, Some(_), true) => Some(WaitingOn::RollbackWouldLoseProgress),
        (true, Some(_), false) | (false, ..) => None,
    }
}

/// Whether the stable revision is not started because a newer Minecraft has converted the worlds. If the init container refuses them for another
/// reason (a backup that could not be taken or restored), another Minecraft does not help.
pub(super) fn refuses_newer_worlds(observation: &Observation) -> bool {
    let (Some(pod), Some(stable)) = (observation.pod, observation.facts.settled) else { return false };
    pod.phase == PodPhase::Refused && pod.revision == stable.revision && observation.world.floor > stable.world
}

/// Whether the running revision has failed and an admin must decide about the rollback, or the stable revision cannot open the worlds. No change
/// is in progress then: a roll forward begins a new one.
pub fn needs_admin(observation: &Observation) -> bool {
    let runs = observation.pod.map(|pod| pod.revision);
    let has_failed = failure_needs_admin(observation.stateful_set, runs, &observation.world, &observation.facts);
    // Once another template is written, that change is in progress.
    let is_unchanged = observation
        .stateful_set
        .zip(observation.facts.settled)
        .is_some_and(|(stateful_set, stable)| stateful_set.template == stable.revision);
    !observation.user_restore_requested && (has_failed || is_unchanged && refuses_newer_worlds(observation))
}

/// The same for the revision that `runs`, for callers that have not checked whether a user has chosen a backup.
pub fn failure_needs_admin(
    stateful_set: Option<StatefulSetView>,
    runs: Option<Revision>,
    world: &WorldState,
    facts: &RecordedFacts,
) -> bool {
    let (Some(stateful_set), Some(runs), Some(stable)) = (stateful_set, runs, facts.settled) else { return false };
    // Once another template is written, that change is in progress.
    let is_unchanged = stateful_set.template == runs && runs != stable.revision;
    is_unchanged && facts.failed.contains(&runs) && needs_decision(world, stable).is_some()
}

/// Whether the goal can replace the pod's revision when the gate allows it. It must differ from the failed revision and from the rollback target.
/// It must never have failed here, and must be able to open the worlds as they are.
pub fn can_roll_forward(goal: &Goal, observation: &Observation) -> bool {
    let Some(pod) = observation.pod else { return false };
    let is_rollback = observation.facts.settled.is_some_and(|stable| stable.revision == goal.revision);
    let has_failed = goal.revision == pod.revision || observation.facts.failed.contains(&goal.revision);
    let opens_worlds = observation.world.whole && goal.world >= observation.world_floor();
    !is_rollback && !has_failed && opens_worlds
}
