//! Pure. Prepares a server on a node that is drained for eviction, as before any other stop, and then allows the eviction.
//!
//! A refused eviction leaves no trace, and an allowed one stops a server within seconds. The operator therefore does not wait for the first
//! eviction: it prepares the server as soon as its node is marked. Until then evictions are refused. [`WaitingOn::Eviction`] allows them. The
//! operator does not stop the server itself: an admin who marks a node and evicts no pod has not asked for a restart.
//!
//! Any other stop also moves the server, so it has priority: an update whose window is open, a restart that is due, or a rollback.

use jiff::Timestamp;

use super::stop_preconditions::{StopPreconditions, check_stop};
use super::{DECISION_VALID_FOR, Step, WaitingOn};
use crate::maintenance::saturating_add;
use crate::observation::{Disruption, EvictionPolicy, Goal, NodeState, Observation, PodPhase};

/// `step`, or the step that the drain of the server's node requires instead.
pub(super) fn apply_drain(goal: &Goal, observation: &Observation, step: Step, now: Timestamp) -> Step {
    if is_idle(&step) { next_drain_step(goal, observation, now).unwrap_or(step) } else { step }
}

/// Whether no change is in progress and no step that stops the server begins now. Files that cannot be staged, or images that cannot be pulled,
/// may delay an update for ever. Players who stay delay it for longer than a drain waits.
fn is_idle(step: &Step) -> bool {
    match step {
        Step::UpToDate
        | Step::Stage
        | Step::Wait(
            WaitingOn::Window { .. }
            | WaitingOn::Players { .. }
            | WaitingOn::Images
            | WaitingOn::NoImage
            | WaitingOn::Blocked { .. }
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
            | WaitingOn::Cluster
            | WaitingOn::Start { .. }
            | WaitingOn::Verification { .. }
            | WaitingOn::Eviction
            | WaitingOn::ScaledToZero
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

fn next_drain_step(goal: &Goal, observation: &Observation, now: Timestamp) -> Option<Step> {
    let pod = observation.pod.filter(|pod| pod.phase == PodPhase::Up && is_template_stable(observation))?;
    let begun = observation.draining_since();
    let since = match (goal.eviction, observation.node) {
        (_, NodeState::Unknown) => return None,
        (EvictionPolicy::Always | EvictionPolicy::Never, _) | (_, NodeState::NotDraining) => {
            return begun.map(|_| Step::EndDrain);
        }
        (EvictionPolicy::Announced, NodeState::Draining) => match begun {
            Some(since) => since,
            None => return Some(Step::BeginDrain { pod: pod.uid, since: now }),
        },
    };
    let disruption = Disruption::Drain { since };
    if is_ready_for_eviction(observation, disruption, now) {
        return Some(Step::Wait(WaitingOn::Eviction));
    }
    Some(match check_stop(goal, observation, disruption, saturating_add(now, DECISION_VALID_FOR), now) {
        // Players need no warning, or the agent could not be reached.
        StopPreconditions::Met | StopPreconditions::AgentUnreachable => Step::Wait(WaitingOn::Eviction),
        StopPreconditions::NotYet(step) => step,
    })
}

/// Whether an evicted pod is recreated as it runs now, whatever else happens to the `StatefulSet`. An update may wait for players although its
/// template is written. This happens when the agent was unreachable first and answered later.
fn is_template_stable(observation: &Observation) -> bool {
    let (Some(stateful_set), Some(stable)) = (observation.stateful_set, observation.facts.settled) else {
        return false;
    };
    stateful_set.template == stable.revision && stateful_set.current == stable.revision
}

/// Whether players were warned and the world was saved, however long ago. A server that waits for eviction is not saved again and again, and
/// evictions stay allowed when its agent is silent for a moment. The pre-stop hook saves later changes and warns players who joined.
fn is_ready_for_eviction(observation: &Observation, disruption: Disruption, now: Timestamp) -> bool {
    let is_announced = observation.announced(disruption).is_some_and(|announced| announced.ends <= now);
    let saved = observation
        .facts
        .saved
        .filter(|saved| saved.act == disruption && observation.pod.is_some_and(|pod| pod.uid == saved.pod));
    is_announced && saved.is_some_and(|saved| saved.confirmed)
}
