//! Pure. Decides which revision replaces a failed one when only an admin can decide about a rollback, or a stable one that cannot open the
//! worlds.
//!
//! An admin must decide about the rollback when a newer Minecraft has converted the worlds, and no backup from before exists or players may have
//! been online since.
//!
//! No rollback of the worlds is needed if the new revision can open them: a corrected version set of the same Minecraft or of a newer one. It is
//! an update like any other, in a window or on a user's request. It cannot be rolled back either.

use jiff::Timestamp;

use super::stop_preconditions::clear_to_update;
use super::{DECISION_COUNTS, Step, WaitingOn, lets_in};
use crate::maintenance::{Gate, later};
use crate::observation::{
    Goal, ImagesOnNode, Observation, PodPhase, RecordedFacts, Revision, StableSet, StatefulSetView, WorldState,
};

/// The next step forward from the revision that runs or should run. `None`: no other revision is available, or not now.
pub(super) fn go_forward(goal: &Goal, seen: &Observation, gate: Gate, now: Timestamp) -> Option<Step> {
    let opened_at = lets_in(goal, seen, gate, now).filter(|_| is_way_forward(goal, seen))?;
    // A pod that refuses the worlds has no running process that could stage the files. The next start stages them, as after scaling to zero.
    if !seen.staged && !refuses_newer_worlds(seen) {
        return Some(Step::Stage);
    }
    match seen.images {
        ImagesOnNode::OnTheirWay => return Some(Step::Wait(WaitingOn::Images)),
        ImagesOnNode::Failed => return None,
        ImagesOnNode::Here | ImagesOnNode::Unknown => {}
    }
    let not_after = later(now, DECISION_COUNTS);
    match clear_to_update(goal, seen, (gate, opened_at), not_after, now) {
        Ok(unasked) => Some(Step::RollForward { to: goal.revision, unasked, not_after }),
        Err(first) => first,
    }
}

/// Whether a newer Minecraft than the stable revision's may have converted the worlds.
pub(super) fn is_touched(world: &WorldState, settled: StableSet) -> bool {
    world.floor > settled.world || !world.whole
}

/// The decision that an admin must make before a rollback to the stable revision. `None`: the rollback is automatic.
pub(super) fn who_decides(world: &WorldState, settled: StableSet) -> Option<WaitingOn> {
    match (is_touched(world, settled), world.backup, world.played_since) {
        (true, None, _) => Some(WaitingOn::NoBackup),
        (true, Some(_), true) => Some(WaitingOn::RollbackWouldLoseProgress),
        (true, Some(_), false) | (false, ..) => None,
    }
}

/// Whether the stable revision is not started because a newer Minecraft has converted the worlds. If the init container refuses them for another
/// reason (a backup that could not be taken or restored), another Minecraft does not help.
pub(super) fn refuses_newer_worlds(seen: &Observation) -> bool {
    let (Some(pod), Some(settled)) = (seen.pod, seen.facts.settled) else { return false };
    pod.life == PodPhase::Refused && pod.revision == settled.revision && seen.world.floor > settled.world
}

/// Whether the running revision has failed and an admin must decide about the rollback, or the stable revision cannot open the worlds. No change
/// is in progress then: a roll forward begins a new one.
pub fn is_left_to_a_person(seen: &Observation) -> bool {
    let runs = seen.pod.map(|pod| pod.revision);
    let has_failed = is_failure_left_to_a_person(seen.set, runs, &seen.world, &seen.facts);
    // Once another template is written, that change is in progress.
    let stands = seen.set.zip(seen.facts.settled).is_some_and(|(set, settled)| set.template == settled.revision);
    !seen.copy_asked && (has_failed || stands && refuses_newer_worlds(seen))
}

/// The same for the revision that `runs`, for callers that have not checked whether a user has chosen a backup.
pub fn is_failure_left_to_a_person(
    set: Option<StatefulSetView>,
    runs: Option<Revision>,
    world: &WorldState,
    facts: &RecordedFacts,
) -> bool {
    let (Some(set), Some(runs), Some(settled)) = (set, runs, facts.settled) else { return false };
    // Once another template is written, that change is in progress.
    let stands = set.template == runs && runs != settled.revision;
    stands && facts.failed.contains(&runs) && who_decides(world, settled).is_some()
}

/// Whether the goal can replace the pod's revision when the gate allows it. It must differ from the failed revision and from the rollback target.
/// It must never have failed here, and must be able to open the worlds as they are.
pub fn is_way_forward(goal: &Goal, seen: &Observation) -> bool {
    let Some(pod) = seen.pod else { return false };
    let is_back = seen.facts.settled.is_some_and(|settled| settled.revision == goal.revision);
    let has_failed = goal.revision == pod.revision || seen.facts.failed.contains(&goal.revision);
    let opens_worlds = seen.world.whole && goal.world >= seen.least_world();
    !is_back && !has_failed && opens_worlds
}
