//! Pure. A node is to be emptied: the server on it is made ready to be evicted, as before any other stop, and then it is let go.
//!
//! An eviction that is refused leaves no trace, and one that is let through stops a server within seconds. So nobody waits for the first:
//! the server is made ready as soon as its node is marked. Until then evictions are refused; [`WaitingOn::Eviction`] is what lets them
//! through. It is not us who stop the server: somebody who marks a node and evicts nobody has asked for no restart.
//!
//! Whatever else stops the server moves it as well, so that goes first: an update whose window is open, a restart that is due, a way back.

use jiff::Timestamp;

use super::stop_preconditions::{StopPreconditions, clear_to_stop};
use super::{DECISION_COUNTS, Step, WaitingOn};
use crate::maintenance::later;
use crate::observation::{Disruption, EvictionSeen, Goal, NodeState, Observation, PodPhase};

/// `step`, or what the server's node asks for instead.
pub(super) fn before_an_eviction(goal: &Goal, seen: &Observation, step: Step, now: Timestamp) -> Step {
    if is_at_rest(&step) { next(goal, seen, now).unwrap_or(step) } else { step }
}

/// Nothing is begun, and nothing that stops the server begins now. Files that cannot be staged, or images that cannot be pulled, may keep an update waiting
/// for ever, and players who stay keep it waiting for longer than a node does.
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
        // Nobody has to be told, or nobody could be asked.
        StopPreconditions::Asked | StopPreconditions::Unasked => Step::Wait(WaitingOn::Eviction),
        StopPreconditions::NotYet(step) => step,
    })
}

/// Whether a pod that is evicted now comes back as it runs, whatever else happens to the `StatefulSet`. An update may wait for players although
/// its template is written: nobody could be asked, and then somebody answered.
fn is_whole(seen: &Observation) -> bool {
    let (Some(set), Some(settled)) = (seen.set, seen.facts.settled) else { return false };
    set.template == settled.revision && set.current == settled.revision
}

/// Told and saved, however long ago: a server that waits to be evicted is not saved again and again, nor its door shut because its agent is
/// silent for a moment. The hook that stops it saves what is built since, and tells who has joined.
fn is_ready(seen: &Observation, act: Disruption, now: Timestamp) -> bool {
    let is_told = seen.told(act).is_some_and(|told| told.ends <= now);
    let saved = seen.facts.saved.filter(|it| it.act == act && seen.pod.is_some_and(|pod| pod.uid == it.pod));
    is_told && saved.is_some_and(|saved| saved.confirmed)
}
