//! Pure. Prepares a server on a node that is drained for eviction, as before any other stop, and then allows the eviction.
//!
//! A refused eviction leaves no trace, and an allowed one stops a server within seconds. The operator therefore does not wait for the first
//! eviction: it prepares the server as soon as its node is marked. Until then evictions are refused. [`WaitingOn::Eviction`] allows them. The
//! operator does not stop the server itself: an admin who marks a node and evicts no pod has not asked for a restart.
//!
//! Any other stop also moves the server, so it has priority: an update whose window is open, a restart that is due, or a rollback.

use jiff::Timestamp;

use super::stop_preconditions::{StopPreconditions, clear_to_stop};
use super::{DECISION_COUNTS, Step, WaitingOn};
use crate::maintenance::later;
use crate::observation::{Disruption, EvictionSeen, Goal, NodeState, Observation, PodPhase};

/// `step`, or the step that the drain of the server's node requires instead.
pub(super) fn before_an_eviction(goal: &Goal, seen: &Observation, step: Step, now: Timestamp) -> Step {
    if is_at_rest(&step) { next(goal, seen, now).unwrap_or(step) } else { step }
}

/// Whether no change is in progress and no step that stops the server begins now. Files that cannot be staged, or images that cannot be pulled,
/// may delay an update for ever. Players who stay delay it for longer than a drain waits.
fn is_at_rest(step: &Step) -> bool {
    match step {
        Step::Settled
        | Step::Stage
        | Step::Wait(
            WaitingOn::Window { .. }
            | WaitingOn::Players { .. }
            | WaitingOn::Images
            | WaitingOn::NoImage
            | WaitingOn::Held { .. }
            | WaitingOn::BelowFloor { .. },
        ) => true,
        Step::Create { .. }
        | Step::Announce { .. }
        | Step::Reannounce { .. }
        | Step::Save { .. }
        | Step::WriteTemplate { .. }
        | Step::Commit { .. }
        | Step::Restore { .. }
        | Step::MarkFailed { .. }
        | Step::RequestRestore { .. }
        | Step::RequestPluginDataRestore { .. }
        | Step::RollBack { .. }
        | Step::RollForward { .. }
        | Step::MarkStable { .. }
        | Step::Restart { .. }
        | Step::EndRestart
        | Step::BeginDrain { .. }
        | Step::EndDrain
        | Step::CancelAnnouncement { .. }
        | Step::Wait(
            WaitingOn::Countdown { .. }
            | WaitingOn::Agent { .. }
            | WaitingOn::Controller
            | WaitingOn::PodMissing
            | WaitingOn::PodStopping { .. }
            | WaitingOn::Start { .. }
            | WaitingOn::Proof { .. }
            | WaitingOn::Eviction
            | WaitingOn::Asleep
            | WaitingOn::NodeLost
            | WaitingOn::SaveRefused { .. }
            | WaitingOn::WorldRefused
            | WaitingOn::NoBackup
            | WaitingOn::RollbackWouldLoseProgress
            | WaitingOn::ServerDown
            | WaitingOn::FirstStartFailed,
        ) => false,
    }
}

fn next(goal: &Goal, seen: &Observation, now: Timestamp) -> Option<Step> {
    let pod = seen.pod.filter(|pod| pod.life == PodPhase::Up && is_whole(seen))?;
    let begun = seen.draining_since();
    let since = match (goal.eviction, seen.node) {
        (_, NodeState::Unknown) => return None,
        (EvictionSeen::Always | EvictionSeen::Never, _) | (_, NodeState::Stays) => {
            return begun.map(|_| Step::EndDrain);
        }
        (EvictionSeen::Announced, NodeState::Leaves) => match begun {
            Some(since) => since,
            None => return Some(Step::BeginDrain { pod: pod.uid, since: now }),
        },
    };
    let act = Disruption::Drain { since };
    if is_ready(seen, act, now) {
        return Some(Step::Wait(WaitingOn::Eviction));
    }
    Some(match clear_to_stop(goal, seen, act, later(now, DECISION_COUNTS), now) {
        // Players need no warning, or the agent could not be reached.
        StopPreconditions::Asked | StopPreconditions::Unasked => Step::Wait(WaitingOn::Eviction),
        StopPreconditions::NotYet(step) => step,
    })
}

/// Whether an evicted pod is recreated as it runs now, whatever else happens to the `StatefulSet`. An update may wait for players although its
/// template is written. This happens when the agent was unreachable first and answered later.
fn is_whole(seen: &Observation) -> bool {
    let (Some(set), Some(settled)) = (seen.set, seen.facts.settled) else { return false };
    set.template == settled.revision && set.current == settled.revision
}

/// Whether players were warned and the world was saved, however long ago. A server that waits for eviction is not saved again and again, and
/// evictions stay allowed when its agent is silent for a moment. The pre-stop hook saves later changes and warns players who joined.
fn is_ready(seen: &Observation, act: Disruption, now: Timestamp) -> bool {
    let is_told = seen.told(act).is_some_and(|told| told.ends <= now);
    let saved = seen.facts.saved.filter(|it| it.act == act && seen.pod.is_some_and(|pod| pod.uid == it.pod));
    is_told && saved.is_some_and(|saved| saved.confirmed)
}
