//! Pure. What comes instead of a set that failed, where going back is a person's to decide: a newer Minecraft has rewritten the worlds, and there is
//! no copy from before it, or somebody may have played since. And what comes instead of the set that settled, where that is the one which cannot open
//! the worlds.
//!
//! The worlds need no way back if what comes can open them: a corrected set of the same Minecraft, or of a newer one. It is an update like any other,
//! in a window or by a person's word, and of it there is as little a way back.

use jiff::Timestamp;

use super::stop_preconditions::clear_to_update;
use super::{DECISION_COUNTS, Step, WaitingOn, lets_in};
use crate::maintenance::{Gate, later};
use crate::observation::{
    Goal, ImagesOnNode, Observation, PodPhase, RecordedFacts, Revision, StableSet, StatefulSetView, WorldState,
};

/// The next step forward from what runs, or would. None: there is nothing else to bring, or not now.
pub(super) fn go_forward(goal: &Goal, seen: &Observation, gate: Gate, now: Timestamp) -> Option<Step> {
    let opened_at = lets_in(goal, seen, gate, now).filter(|_| is_way_forward(goal, seen))?;
    // In a pod that refuses the worlds nothing runs that could stage them: the start brings them, as after a sleep.
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

/// A newer Minecraft than what settled may have rewritten the worlds.
pub(super) fn is_touched(world: &WorldState, settled: StableSet) -> bool {
    world.floor > settled.world || !world.whole
}

/// What a person has to decide before anything goes back to what settled. None: it goes back by itself.
pub(super) fn who_decides(world: &WorldState, settled: StableSet) -> Option<WaitingOn> {
    match (is_touched(world, settled), world.backup, world.played_since) {
        (true, None, _) => Some(WaitingOn::NoBackup),
        (true, Some(_), true) => Some(WaitingOn::RollbackWouldLoseProgress),
        (true, Some(_), false) | (false, ..) => None,
    }
}

/// Whether what settled is not started, because a newer Minecraft has been in the worlds. Where it is refused for another reason (a copy that could not
/// be taken or put back), another Minecraft is no help.
pub(super) fn refuses_newer_worlds(seen: &Observation) -> bool {
    let (Some(pod), Some(settled)) = (seen.pod, seen.facts.settled) else { return false };
    pod.life == PodPhase::Refused && pod.revision == settled.revision && seen.world.floor > settled.world
}

/// Whether what runs has failed, and a person has to decide about the way back, or what settled cannot open the worlds. Nothing is under way then: what
/// comes forward begins something new.
pub fn is_left_to_a_person(seen: &Observation) -> bool {
    let runs = seen.pod.map(|pod| pod.revision);
    let has_failed = is_failure_left_to_a_person(seen.set, runs, &seen.world, &seen.facts);
    // Once another template stands there, that is under way.
    let stands = seen.set.zip(seen.facts.settled).is_some_and(|(set, settled)| set.template == settled.revision);
    !seen.copy_asked && (has_failed || stands && refuses_newer_worlds(seen))
}

/// The same, of the revision that `runs`, for who has not looked whether a person has named a copy.
pub fn is_failure_left_to_a_person(
    set: Option<StatefulSetView>,
    runs: Option<Revision>,
    world: &WorldState,
    facts: &RecordedFacts,
) -> bool {
    let (Some(set), Some(runs), Some(settled)) = (set, runs, facts.settled) else { return false };
    // Once another template stands there, that is under way.
    let stands = set.template == runs && runs != settled.revision;
    stands && facts.failed.contains(&runs) && who_decides(world, settled).is_some()
}

/// Whether the goal is a way on from the set of the pod, when the gate lets it in: another set than what failed and what would be gone back to, which
/// never failed here and can open the worlds as they are.
pub fn is_way_forward(goal: &Goal, seen: &Observation) -> bool {
    let Some(pod) = seen.pod else { return false };
    let is_back = seen.facts.settled.is_some_and(|settled| settled.revision == goal.revision);
    let has_failed = goal.revision == pod.revision || seen.facts.failed.contains(&goal.revision);
    let opens_worlds = seen.world.whole && goal.world >= seen.least_world();
    !is_back && !has_failed && opens_worlds
}
