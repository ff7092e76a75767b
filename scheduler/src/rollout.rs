//! Pure. Computes the next safe step of an update, or the reason why it waits.
//!
//! It takes one step per pass and stores no phase. Each pass observes the cluster and computes the answer again, so a crash between any two steps
//! needs no recovery. State that must be remembered is a fact, and a fact names every condition that makes it true. The edge executes a step only
//! with what it observed (uid, resourceVersion, pod UID), and not after the step's `not_after`.
//!
//! The function is small enough to be explored exhaustively. `tests/rollout_model` runs it against a model of the `StatefulSet` controller, pods,
//! players, users and faults, state by state.

use jiff::{SignedDuration, Timestamp};

mod cancel_announcement;
mod continued_countdown;
mod crash_loop;
mod drain;
mod opportunistic;
mod roll_forward;
mod step;
mod stop_preconditions;

pub use continued_countdown::continue_countdown;
pub use crash_loop::is_blocked_by_crash_loop;
pub use opportunistic::{Opportunity, OpportunityReason, opportunity};
pub use roll_forward::{can_roll_forward, failure_needs_admin, needs_admin};
pub use step::{Step, WaitingOn};

use crate::maintenance::{Gate, saturating_add};
use crate::observation::{
    Disruption, Goal, ImagesOnNode, Observation, Partition, PlayerPolicy, Players, PodPhase, PodView, RestartDue,
    Revision, StableSet, StatefulSetView, Verification,
};
use roll_forward::{may_be_converted, needs_decision, refuses_newer_worlds, roll_forward};
use stop_preconditions::{StopPreconditions, check_stop, check_update};

/// How much of the window must be left for a step that stops a server. The controller needs 0.2 s (measured). An overloaded control plane needs a
/// minute.
pub const LATEST_START: SignedDuration = SignedDuration::from_secs(60);

/// How long after the observation a decision may be executed. resourceVersion fences changed objects. Only a clock fences a process that slept
/// while nothing changed but the time. It is longer than a pass needs with an agent that never answers (10 s) and a slow API server. It is
/// shorter than the minimum of one minute that is left of a window, so that the window is still open after the write.
pub const DECISION_VALID_FOR: SignedDuration = SignedDuration::from_secs(45);

/// The next safe step from the observation towards the goal. The function is total: any combination of inputs has an answer.
pub fn next_step(goal: &Goal, observation: &Observation, gate: Gate, now: Timestamp) -> Step {
    let step = drain::apply_drain(goal, observation, next_rollout_step(goal, observation, gate, now), now);
    cancel_announcement::cancel_stale_announcement(observation, step, now)
}

/// The same, without regard to drains.
fn next_rollout_step(goal: &Goal, observation: &Observation, gate: Gate, now: Timestamp) -> Step {
    let stable = observation.facts.settled;
    let Some(stateful_set) = &observation.stateful_set else {
        return match stable {
            // Not the goal: the server may have been deleted outside the window, so it is recreated as it was.
            Some(stable) => Step::Create { revision: stable.revision, partition: Partition::Closed },
            None => Step::Create { revision: goal.revision, partition: Partition::Open },
        };
    };
    match stable {
        Some(stable) if is_stable(stateful_set, observation.pod, stable) => {
            begin_update(goal, observation, stateful_set, stable, gate, now)
        }
        // An open partition, or a pod that was never verified, for whatever reason it runs. This is finished first, whatever the goal is now.
        _ => continue_rollout(goal, observation, stateful_set, gate, now),
    }
}

/// The partition is closed, and the running revision is verified (or no pod exists). Decides whether any step is due.
fn begin_update(
    goal: &Goal,
    observation: &Observation,
    stateful_set: &StatefulSetView,
    stable: StableSet,
    gate: Gate,
    now: Timestamp,
) -> Step {
    let phase = observation.pod.map(|pod| pod.phase);
    if phase == Some(PodPhase::Refused) && observation.user_restore_requested {
        return Step::RequestRestore { to: stable.revision, requested_by_user: true };
    }
    // The answer when no update begins. Any other template in the `StatefulSet` would run after a scale to 0 and back, or after a re-creation, so
    // it is reverted first. A server that is not up needs a more specific reason than the window.
    let rest = |quiet| match phase {
        _ if stateful_set.template != stable.revision || stateful_set.current != stable.revision => {
            restore_stable(stateful_set, stable)
        }
        Some(PodPhase::Up) => restart_step(goal, observation, quiet, now).unwrap_or(quiet),
        // The worlds may be the reason why the server does not start, and a user has chosen a backup to restore.
        Some(phase) if observation.user_restore_requested && is_down(phase, now) => {
            let down = Step::Wait(not_up(phase, now));
            restart_step(goal, observation, down, now).unwrap_or(down)
        }
        Some(phase) => Step::Wait(not_up(phase, now)),
        None => Step::Wait(no_pod(stateful_set)),
    };
    if goal.revision == stable.revision {
        return rest(Step::UpToDate);
    }
    if observation.facts.failed.contains(&goal.revision) {
        return rest(Step::Wait(WaitingOn::Blocked { failed: goal.revision }));
    }
    let floor = observation.world_floor();
    if goal.world < floor {
        return rest(Step::Wait(WaitingOn::BelowFloor { floor }));
    }
    let Some(opened_at) = allowed_since(goal, observation, gate, now) else {
        return rest(Step::Wait(WaitingOn::Window { opens: gate.opens() }));
    };
    let not_after = saturating_add(now, DECISION_VALID_FOR);
    let agent_unreachable = match phase {
        None if stateful_set.scaled_to_zero => false,
        None => return Step::Wait(WaitingOn::PodMissing),
        Some(PodPhase::Starting { deadline }) if now < deadline => {
            return Step::Wait(WaitingOn::Start { until: deadline });
        }
        Some(PodPhase::Refused) if refuses_newer_worlds(observation) => {
            return roll_forward(goal, observation, gate, now)
                .unwrap_or_else(|| rest(Step::Wait(WaitingOn::WorldRefused)));
        }
        Some(phase @ (PodPhase::Stopping { .. } | PodPhase::Refused)) => return Step::Wait(not_up(phase, now)),
        Some(PodPhase::Starting { .. } | PodPhase::Up | PodPhase::Down) if !observation.staged => {
            return stage(goal, observation, stateful_set, stable, now);
        }
        Some(PodPhase::Starting { .. } | PodPhase::Up | PodPhase::Down)
            if observation.images == ImagesOnNode::Pulling =>
        {
            return Step::Wait(WaitingOn::Images);
        }
        // No player is warned and no server is stopped for images that the node does not have. The server would be down until the images are
        // pulled or somebody fixes the pull. That may take weeks, and everything else continues meanwhile.
        Some(PodPhase::Starting { .. } | PodPhase::Up | PodPhase::Down)
            if observation.images == ImagesOnNode::Failed =>
        {
            return rest(Step::Wait(WaitingOn::NoImage));
        }
        // The server is down already. Its next start fetches the files and pulls the images, as after scaling to zero.
        Some(PodPhase::Pending) => false,
        Some(PodPhase::Starting { .. } | PodPhase::Up | PodPhase::Down) => {
            match check_update(goal, observation, (gate, opened_at), not_after, now) {
                Ok(agent_unreachable) => agent_unreachable,
                Err(first) => return first.unwrap_or_else(|| rest(Step::Wait(WaitingOn::Window { opens: None }))),
            }
        }
    };
    if stateful_set.template != goal.revision {
        return Step::WriteTemplate { revision: goal.revision, not_after };
    }
    if !stateful_set.observed || stateful_set.update != goal.revision {
        return Step::Wait(WaitingOn::Controller);
    }
    Step::Commit { agent_unreachable, not_after }
}

/// Since when the gate allows a goal that would stop a server now. `None`: it is shut, or too little is left of it.
fn allowed_since(goal: &Goal, observation: &Observation, gate: Gate, now: Timestamp) -> Option<Timestamp> {
    let opened_at = match gate {
        Gate::Open { opened_at, .. } => opened_at,
        // Players were warned in this opening, and the announced update happens.
        Gate::NoNewStarts { opened_at, .. } if has_begun(goal, observation, opened_at) => opened_at,
        Gate::NoNewStarts { .. } | Gate::Shut { .. } => return None,
    };
    (!gate.shuts_before(saturating_add(now, LATEST_START))).then_some(opened_at)
}

/// The files of the goal are missing. If they never arrive, they must not block scheduled restarts for ever. A restart that itself waits for
/// players does not delay the staging.
fn stage(
    goal: &Goal,
    observation: &Observation,
    stateful_set: &StatefulSetView,
    stable: StableSet,
    now: Timestamp,
) -> Step {
    let is_up = observation.pod.is_some_and(|pod| pod.phase == PodPhase::Up);
    let is_whole = stateful_set.template == stable.revision && stateful_set.current == stable.revision;
    let restart = restart_step(goal, observation, Step::Stage, now).filter(|_| is_up && is_whole);
    restart.filter(|step| !matches!(step, Step::Wait(WaitingOn::Players { .. }))).unwrap_or(Step::Stage)
}

/// Whether a change has begun here that must be finished. That is so if players were warned in this opening, a template other than the stable one
/// is written, or a rollout is in progress. A first start does not count, because there was no earlier revision.
pub fn is_in_progress(goal: &Goal, observation: &Observation, gate: Gate) -> bool {
    let (Some(stateful_set), Some(stable)) = (&observation.stateful_set, observation.facts.settled) else {
        return false;
    };
    let has_begun_rollout =
        !is_stable(stateful_set, observation.pod, stable) || stateful_set.template != stable.revision;
    is_announced(goal, observation, gate) || has_begun_rollout && !needs_admin(observation)
}

/// Whether exactly this goal has begun here, or a rollout is in progress. Any other template, written by a user or for an earlier goal, is not a
/// beginning of this goal. It is reverted.
pub fn has_goal_begun(goal: &Goal, observation: &Observation, gate: Gate) -> bool {
    let (Some(stateful_set), Some(stable)) = (&observation.stateful_set, observation.facts.settled) else {
        return false;
    };
    let is_written = stateful_set.template == goal.revision && stateful_set.template != stable.revision;
    let has_begun_rollout = !is_stable(stateful_set, observation.pod, stable) && !needs_admin(observation);
    is_announced(goal, observation, gate) || is_written || has_begun_rollout
}

/// Whether players were warned of the goal in this opening.
fn is_announced(goal: &Goal, observation: &Observation, gate: Gate) -> bool {
    match gate {
        Gate::Open { opened_at, .. } | Gate::NoNewStarts { opened_at, .. } => has_begun(goal, observation, opened_at),
        Gate::Shut { .. } => false,
    }
}

/// Whether the partition is closed, and the running revision is the stable one, or no pod exists.
fn is_stable(stateful_set: &StatefulSetView, pod: Option<PodView>, stable: StableSet) -> bool {
    stateful_set.partition == Partition::Closed && pod.is_none_or(|pod| pod.revision == stable.revision)
}

/// Decides whether to restart the running revision as it is, or whether it was just restarted and needs verification. No other change is in
/// progress. The operator deletes the pod and writes no template, so no other revision can start and there is none to roll back to. If the pod
/// does not start, it is handled like a lost server. An update that waits for its window (`quiet`) and begins in the same night replaces the
/// restart.
fn restart_step(goal: &Goal, observation: &Observation, quiet: Step, now: Timestamp) -> Option<Step> {
    let pod = observation.pod?;
    // A pod that does not start cannot be verified, and the operator does not wait for it.
    if observation.is_restarted() && pod.phase == PodPhase::Up {
        return Some(match observation.verification {
            Verification::Pending { until } => Step::Wait(WaitingOn::Verification { until }),
            Verification::Passed | Verification::Inconclusive | Verification::Failed => Step::EndRestart,
        });
    }
    let RestartDue { due, until, policy, only_empty, yields_until } = goal.restart?;
    let is_in_time = |at: Timestamp| saturating_add(at, LATEST_START) <= until;
    if !is_in_time(now) {
        return None;
    }
    let disruption = Disruption::Restart { due };
    let is_announced = observation.announced(disruption).is_some_and(|announced| !announced.is_expired(now));
    let yields = if let Step::Wait(WaitingOn::Window { opens }) = quiet {
        will_replace_restart(goal, observation, opens, yields_until)
    } else {
        quiet == Step::Stage && now < yields_until
    };
    if yields && !is_announced {
        return None;
    }
    if only_empty && !is_announced && observation.players != Players::Nobody {
        return Some(Step::Wait(WaitingOn::Players { until }));
    }
    let not_after = saturating_add(now, DECISION_VALID_FOR);
    match check_stop(&Goal { policy, ..*goal }, observation, disruption, not_after, now) {
        StopPreconditions::Met => Some(Step::Restart { due, pod: pod.uid, agent_unreachable: false, not_after }),
        StopPreconditions::AgentUnreachable => {
            Some(Step::Restart { due, pod: pod.uid, agent_unreachable: true, not_after })
        }
        StopPreconditions::NotYet(Step::Announce { notice, .. }) if !is_in_time(saturating_add(now, notice)) => None,
        StopPreconditions::NotYet(step) => Some(step),
    }
}

/// Whether the update that waits for a window, which opens at `opens`, is sure to begin no later than `until`. A scheduled restart of the same
/// night is then left to it. An update that waits for players does not qualify, because they may stay all night. An update with missing files or
/// images does not qualify either. In both cases the restart would never happen.
pub fn will_replace_restart(
    goal: &Goal,
    observation: &Observation,
    opens: Option<Timestamp>,
    until: Timestamp,
) -> bool {
    let waits_for_players = matches!(goal.policy, PlayerPolicy::WaitForEmpty { .. });
    let has_images = matches!(observation.images, ImagesOnNode::Present | ImagesOnNode::Unknown);
    opens.is_some_and(|opens| opens <= until) && !waits_for_players && observation.staged && has_images
}

/// Whether this update was announced to this pod in this opening. An update without an announcement begins with the stop itself.
fn has_begun(goal: &Goal, observation: &Observation, opened_at: Timestamp) -> bool {
    observation.announced(Disruption::Update { goal: goal.revision, window_opened_at: opened_at }).is_some()
}

/// A rollout is in progress, or a revision runs that was never verified.
fn continue_rollout(
    goal: &Goal,
    observation: &Observation,
    stateful_set: &StatefulSetView,
    gate: Gate,
    now: Timestamp,
) -> Step {
    let stable = observation.facts.settled;
    let Some(pod) = observation.pod else { return Step::Wait(no_pod(stateful_set)) };
    if let PodPhase::Stopping { .. } = pod.phase {
        return Step::Wait(not_up(pod.phase, now));
    }
    if stateful_set.partition == Partition::Open && pod.revision != stateful_set.template {
        return match (stable, gate) {
            // The gate shut before the controller acted, so the commit is reverted. A rollback is never reverted: its pod is not the stable one.
            (Some(stable), Gate::Shut { .. }) if pod.revision == stable.revision => {
                restore_stable(stateful_set, stable)
            }
            _ => Step::Wait(WaitingOn::Controller),
        };
    }
    let candidate = pod.revision;
    let is_stable_revision = stable.is_some_and(|stable| stable.revision == candidate);
    let condemned = observation.facts.failed.contains(&candidate) && !is_stable_revision;
    match pod.phase {
        // A verification that improves after the failure was recorded is too late: half a rollback may have been done.
        PodPhase::Pending | PodPhase::Up | PodPhase::Down if condemned => roll_back(goal, observation, pod, gate, now),
        PodPhase::Pending => replace_pending(goal, observation, pod, gate, now),
        PodPhase::Starting { deadline } if now < deadline => {
            let rollback = condemned.then(|| roll_back(goal, observation, pod, gate, now));
            // The kubelet has restarted it. The decision that an admin must make is the same before, during and after each start.
            let is_decided = |step: &Step| matches!(step, Step::Wait(why) if why.is_rollback_decision());
            rollback.filter(is_decided).unwrap_or(Step::Wait(WaitingOn::Start { until: deadline }))
        }
        PodPhase::Starting { .. } if is_stable_revision => Step::Wait(WaitingOn::ServerDown),
        PodPhase::Refused if is_stable_revision && observation.user_restore_requested => {
            Step::RequestRestore { to: candidate, requested_by_user: true }
        }
        PodPhase::Refused if is_stable_revision => {
            let next =
                if refuses_newer_worlds(observation) { roll_forward(goal, observation, gate, now) } else { None };
            next.unwrap_or(Step::Wait(WaitingOn::WorldRefused))
        }
        PodPhase::Starting { .. } | PodPhase::Refused => roll_back(goal, observation, pod, gate, now),
        PodPhase::Up | PodPhase::Down => match observation.verification {
            _ if is_stable_revision => close_partition(stateful_set, candidate),
            Verification::Pending { until } => Step::Wait(WaitingOn::Verification { until }),
            Verification::Passed | Verification::Inconclusive => close_partition(stateful_set, candidate),
            // A first start that fails its verification has no revision to roll back to. It is kept, and the operator reports it.
            Verification::Failed if stable.is_none() => close_partition(stateful_set, candidate),
            Verification::Failed => roll_back(goal, observation, pod, gate, now),
        },
        PodPhase::Stopping { .. } => Step::Wait(not_up(pod.phase, now)),
    }
}

/// The candidate revision failed.
fn roll_back(goal: &Goal, observation: &Observation, pod: PodView, gate: Gate, now: Timestamp) -> Step {
    let Some(stable) = observation.facts.settled else {
        // No revision was ever verified here, so no players rely on the server. A corrected goal needs no window.
        return if goal.revision == pod.revision {
            Step::Wait(WaitingOn::FirstStartFailed)
        } else {
            replace_pod(goal, observation, pod, (goal.revision, false), now)
        };
    };
    // The failure is recorded first, and permanently: a server that recovers during the rollback must not leave the rollback half done.
    if !observation.facts.failed.contains(&pod.revision) {
        return Step::MarkFailed { revision: pod.revision };
    }
    // Includes changes that the server may still make to the world while it stops, and changes made by earlier revisions.
    let touched = may_be_converted(&observation.world, stable);
    // A user who chooses a backup has accepted the loss, and it is restored in whatever state the world is.
    if !observation.user_restore_requested && (touched || pod.world > stable.world) {
        if let Some(decision) = needs_decision(&observation.world, stable) {
            return roll_forward(goal, observation, gate, now).unwrap_or(Step::Wait(decision));
        }
        if !observation.world.restore_requested {
            return Step::RequestRestore { to: stable.revision, requested_by_user: false };
        }
    }
    if !observation.data_restore_requested {
        return Step::RequestPluginDataRestore { to: stable.revision };
    }
    replace_pod(goal, observation, pod, (stable.revision, observation.user_restore_requested), now)
}

/// The cluster does not run the pod of a rollout in progress. Its revision has neither failed nor passed, so it is neither recorded as failed nor
/// rolled back, however long that lasts. Only another goal replaces it, when the gate allows that: the pod may wait for a corrected spec. Before any
/// revision is stable, no gate applies. The pod has not opened the worlds, so its own format does not matter.
fn replace_pending(goal: &Goal, observation: &Observation, pod: PodView, gate: Gate, now: Timestamp) -> Step {
    let stable = observation.facts.settled;
    let is_stable_goal = stable.is_some_and(|stable| stable.revision == goal.revision);
    let may_run = is_stable_goal || !observation.facts.failed.contains(&goal.revision);
    let opens_worlds = observation.world.whole && goal.world >= observation.world.floor;
    let is_allowed = stable.is_none() || allowed_since(goal, observation, gate, now).is_some();
    if goal.revision == pod.revision || !may_run || !opens_worlds || !is_allowed {
        return Step::Wait(WaitingOn::Cluster);
    }
    let not_after = saturating_add(now, DECISION_VALID_FOR);
    Step::RollForward { to: goal.revision, agent_unreachable: false, not_after }
}

/// Replaces the pod with `to`, after the same checks as any other stop. `requested_by_user` adds a user's restore request.
fn replace_pod(
    goal: &Goal,
    observation: &Observation,
    pod: PodView,
    (to, requested_by_user): (Revision, bool),
    now: Timestamp,
) -> Step {
    let not_after = saturating_add(now, DECISION_VALID_FOR);
    match check_stop(goal, observation, Disruption::RollBack { failed: pod.revision }, not_after, now) {
        StopPreconditions::Met => Step::RollBack { to, requested_by_user, agent_unreachable: false, not_after },
        StopPreconditions::AgentUnreachable => {
            Step::RollBack { to, requested_by_user, agent_unreachable: true, not_after }
        }
        StopPreconditions::NotYet(step) => step,
    }
}

/// Waits until the controller reports the candidate as current. If the partition were closed earlier, a lost pod would be recreated with the old
/// revision.
fn close_partition(stateful_set: &StatefulSetView, candidate: Revision) -> Step {
    if stateful_set.partition == Partition::Open
        && !(stateful_set.observed && stateful_set.update == candidate && stateful_set.current == candidate)
    {
        return Step::Wait(WaitingOn::Controller);
    }
    Step::MarkStable { revision: candidate }
}

fn restore_stable(stateful_set: &StatefulSetView, stable: StableSet) -> Step {
    let partition = if stateful_set.current == stable.revision { Partition::Closed } else { Partition::Open };
    Step::Restore { revision: stable.revision, partition }
}

/// Whether the server process has ended by itself, or has exceeded the time for a start.
fn is_down(phase: PodPhase, now: Timestamp) -> bool {
    match phase {
        PodPhase::Down => true,
        PodPhase::Starting { deadline } => deadline <= now,
        PodPhase::Pending | PodPhase::Up | PodPhase::Refused | PodPhase::Stopping { .. } => false,
    }
}

fn no_pod(stateful_set: &StatefulSetView) -> WaitingOn {
    if stateful_set.scaled_to_zero { WaitingOn::ScaledToZero } else { WaitingOn::PodMissing }
}

fn not_up(phase: PodPhase, now: Timestamp) -> WaitingOn {
    match phase {
        PodPhase::Stopping { overdue_at } if now < overdue_at => WaitingOn::PodStopping { until: overdue_at },
        PodPhase::Stopping { .. } => WaitingOn::NodeLost,
        PodPhase::Pending => WaitingOn::Cluster,
        PodPhase::Starting { deadline } if now < deadline => WaitingOn::Start { until: deadline },
        PodPhase::Refused => WaitingOn::WorldRefused,
        PodPhase::Starting { .. } | PodPhase::Up | PodPhase::Down => WaitingOn::ServerDown,
    }
}

#[cfg(test)]
mod tests;
