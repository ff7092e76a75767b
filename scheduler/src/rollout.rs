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
mod crash_loop;
mod drain;
mod opportunistic;
mod roll_forward;
mod step;
mod stop_preconditions;

pub use crash_loop::is_held_by_crashes;
pub use opportunistic::{Opportunity, OpportunityReason, opportunity};
pub use roll_forward::{is_failure_left_to_a_person, is_left_to_a_person, is_way_forward};
pub use step::{Step, WaitingOn};

use crate::maintenance::{Gate, later};
use crate::observation::{
    Disruption, Goal, ImagesOnNode, Observation, Partition, PlayerPolicy, Players, PodPhase, PodView, RestartDue,
    Revision, StableSet, StatefulSetView, Verification,
};
use roll_forward::{go_forward, is_touched, refuses_newer_worlds, who_decides};
use stop_preconditions::{StopPreconditions, clear_to_stop, clear_to_update};

/// How much of the window must be left for a step that stops a server. The controller needs 0.2 s (measured). An overloaded control plane needs a
/// minute.
pub const LATEST_START: SignedDuration = SignedDuration::from_secs(60);

/// How long after the observation a decision may be executed. resourceVersion fences changed objects. Only a clock fences a process that slept
/// while nothing changed but the time. It is longer than a pass needs with an agent that never answers (10 s) and a slow API server. It is
/// shorter than the minimum of one minute that is left of a window, so that the window is still open after the write.
pub const DECISION_COUNTS: SignedDuration = SignedDuration::from_secs(45);

/// The next safe step from the observation towards the goal. The function is total: any combination of inputs has an answer.
pub fn next_step(goal: &Goal, seen: &Observation, gate: Gate, now: Timestamp) -> Step {
    let step = drain::before_an_eviction(goal, seen, towards_the_goal(goal, seen, gate, now), now);
    cancel_announcement::before_rest(seen, step, now)
}

/// The same, without regard to drains.
fn towards_the_goal(goal: &Goal, seen: &Observation, gate: Gate, now: Timestamp) -> Step {
    let settled = seen.facts.settled;
    let Some(set) = &seen.set else {
        return match settled {
            // Not the goal: the server may have been deleted outside the window, so it is recreated as it was.
            Some(settled) => Step::Create { revision: settled.revision, door: Partition::Closed },
            None => Step::Create { revision: goal.revision, door: Partition::Open },
        };
    };
    match settled {
        Some(settled) if is_proven(set, seen.pod, settled) => at_rest(goal, seen, set, settled, gate, now),
        // An open partition, or a pod that was never verified, for whatever reason it runs. This is finished first, whatever the goal is now.
        _ => on_trial(goal, seen, set, gate, now),
    }
}

/// The partition is closed, and the running revision is verified (or no pod exists). Decides whether any step is due.
fn at_rest(
    goal: &Goal,
    seen: &Observation,
    set: &StatefulSetView,
    settled: StableSet,
    gate: Gate,
    now: Timestamp,
) -> Step {
    let life = seen.pod.map(|pod| pod.life);
    if life == Some(PodPhase::Refused) && seen.copy_asked {
        return Step::RequestRestore { to: settled.revision, asked: true };
    }
    // The answer when no update begins. Any other template in the `StatefulSet` would run after a scale to 0 and back, or after a re-creation, so
    // it is reverted first. A server that is not up needs a more specific reason than the window.
    let rest = |quiet| match life {
        _ if set.template != settled.revision || set.current != settled.revision => restore(set, settled),
        Some(PodPhase::Up) => once_more(goal, seen, quiet, now).unwrap_or(quiet),
        // The worlds may be the reason why the server does not start, and a user has chosen a backup to restore.
        Some(life) if seen.copy_asked && is_down(life, now) => {
            let down = Step::Wait(not_up(life, now));
            once_more(goal, seen, down, now).unwrap_or(down)
        }
        Some(life) => Step::Wait(not_up(life, now)),
        None => Step::Wait(no_pod(set)),
    };
    if goal.revision == settled.revision {
        return rest(Step::Settled);
    }
    if seen.facts.failed.contains(&goal.revision) {
        return rest(Step::Wait(WaitingOn::Held { failed: goal.revision }));
    }
    let floor = seen.least_world();
    if goal.world < floor {
        return rest(Step::Wait(WaitingOn::BelowFloor { floor }));
    }
    let Some(opened_at) = lets_in(goal, seen, gate, now) else {
        return rest(Step::Wait(WaitingOn::Window { opens: gate.opens() }));
    };
    let not_after = later(now, DECISION_COUNTS);
    let unasked = match life {
        None if set.asleep => false,
        None => return Step::Wait(WaitingOn::PodMissing),
        Some(PodPhase::Starting { gives_up_at }) if now < gives_up_at => {
            return Step::Wait(WaitingOn::Start { until: gives_up_at });
        }
        Some(PodPhase::Refused) if refuses_newer_worlds(seen) => {
            return go_forward(goal, seen, gate, now).unwrap_or_else(|| rest(Step::Wait(WaitingOn::WorldRefused)));
        }
        Some(life @ (PodPhase::Stopping { .. } | PodPhase::Refused)) => return Step::Wait(not_up(life, now)),
        Some(PodPhase::Starting { .. } | PodPhase::Up | PodPhase::Down) if !seen.staged => {
            return stage(goal, seen, set, settled, now);
        }
        Some(PodPhase::Starting { .. } | PodPhase::Up | PodPhase::Down) if seen.images == ImagesOnNode::OnTheirWay => {
            return Step::Wait(WaitingOn::Images);
        }
        // No player is warned and no server is stopped for images that the node does not have. The server would be down until the images are
        // pulled or somebody fixes the pull. That may take weeks, and everything else continues meanwhile.
        Some(PodPhase::Starting { .. } | PodPhase::Up | PodPhase::Down) if seen.images == ImagesOnNode::Failed => {
            return rest(Step::Wait(WaitingOn::NoImage));
        }
        Some(PodPhase::Starting { .. } | PodPhase::Up | PodPhase::Down) => {
            match clear_to_update(goal, seen, (gate, opened_at), not_after, now) {
                Ok(unasked) => unasked,
                Err(first) => return first.unwrap_or_else(|| rest(Step::Wait(WaitingOn::Window { opens: None }))),
            }
        }
    };
    if set.template != goal.revision {
        return Step::WriteTemplate { revision: goal.revision, not_after };
    }
    if !set.observed || set.update != goal.revision {
        return Step::Wait(WaitingOn::Controller);
    }
    Step::Commit { unasked, not_after }
}

/// Since when the gate allows a goal that would stop a server now. `None`: it is shut, or too little is left of it.
fn lets_in(goal: &Goal, seen: &Observation, gate: Gate, now: Timestamp) -> Option<Timestamp> {
    let opened_at = match gate {
        Gate::Open { opened_at, .. } => opened_at,
        // Players were warned in this opening, and the announced update happens.
        Gate::NoNewStarts { opened_at, .. } if has_begun(goal, seen, opened_at) => opened_at,
        Gate::NoNewStarts { .. } | Gate::Shut { .. } => return None,
    };
    (!gate.shuts_before(later(now, LATEST_START))).then_some(opened_at)
}

/// The files of the goal are missing. If they never arrive, they must not block scheduled restarts for ever. A restart that itself waits for
/// players does not delay the staging.
fn stage(goal: &Goal, seen: &Observation, set: &StatefulSetView, settled: StableSet, now: Timestamp) -> Step {
    let is_up = seen.pod.is_some_and(|pod| pod.life == PodPhase::Up);
    let is_whole = set.template == settled.revision && set.current == settled.revision;
    let restart = once_more(goal, seen, Step::Stage, now).filter(|_| is_up && is_whole);
    restart.filter(|step| !matches!(step, Step::Wait(WaitingOn::Players { .. }))).unwrap_or(Step::Stage)
}

/// Whether a change has begun here that must be finished. That is so if players were warned in this opening, a template other than the stable one
/// is written, or a rollout is in progress. A first start does not count, because there was no earlier revision.
pub fn is_under_way(goal: &Goal, seen: &Observation, gate: Gate) -> bool {
    let (Some(set), Some(settled)) = (&seen.set, seen.facts.settled) else { return false };
    let is_on_trial = !is_proven(set, seen.pod, settled) || set.template != settled.revision;
    is_told(goal, seen, gate) || is_on_trial && !is_left_to_a_person(seen)
}

/// Whether exactly this goal has begun here, or a rollout is in progress. Any other template, written by a user or for an earlier goal, is not a
/// beginning of this goal. It is reverted.
pub fn has_goal_begun(goal: &Goal, seen: &Observation, gate: Gate) -> bool {
    let (Some(set), Some(settled)) = (&seen.set, seen.facts.settled) else { return false };
    let is_written = set.template == goal.revision && set.template != settled.revision;
    let is_on_trial = !is_proven(set, seen.pod, settled) && !is_left_to_a_person(seen);
    is_told(goal, seen, gate) || is_written || is_on_trial
}

/// Whether players were warned of the goal in this opening.
fn is_told(goal: &Goal, seen: &Observation, gate: Gate) -> bool {
    match gate {
        Gate::Open { opened_at, .. } | Gate::NoNewStarts { opened_at, .. } => has_begun(goal, seen, opened_at),
        Gate::Shut { .. } => false,
    }
}

/// Whether the partition is closed, and the running revision is the stable one, or no pod exists.
fn is_proven(set: &StatefulSetView, pod: Option<PodView>, settled: StableSet) -> bool {
    set.door == Partition::Closed && pod.is_none_or(|pod| pod.revision == settled.revision)
}

/// Decides whether to restart the running revision as it is, or whether it was just restarted and needs verification. No other change is in
/// progress. The operator deletes the pod and writes no template, so no other revision can start and there is none to roll back to. If the pod
/// does not start, it is handled like a lost server. An update that waits for its window (`quiet`) and begins in the same night replaces the
/// restart.
fn once_more(goal: &Goal, seen: &Observation, quiet: Step, now: Timestamp) -> Option<Step> {
    let pod = seen.pod?;
    // A pod that does not start cannot be verified, and the operator does not wait for it.
    if seen.is_restarted() && pod.life == PodPhase::Up {
        return Some(match seen.verdict {
            Verification::Pending { until } => Step::Wait(WaitingOn::Proof { until }),
            Verification::Passed | Verification::Unproven | Verification::Failed => Step::EndRestart,
        });
    }
    let RestartDue { due, until, policy, only_empty, gives_way_until } = goal.restart?;
    let is_in_time = |at: Timestamp| later(at, LATEST_START) <= until;
    if !is_in_time(now) {
        return None;
    }
    let act = Disruption::Restart { due };
    let is_told = seen.told(act).is_some_and(|told| !told.is_long_ago(now));
    let gives_way = if let Step::Wait(WaitingOn::Window { opens }) = quiet {
        is_the_restart(goal, seen, opens, gives_way_until)
    } else {
        quiet == Step::Stage && now < gives_way_until
    };
    if gives_way && !is_told {
        return None;
    }
    if only_empty && !is_told && seen.players != Players::Nobody {
        return Some(Step::Wait(WaitingOn::Players { until }));
    }
    let not_after = later(now, DECISION_COUNTS);
    match clear_to_stop(&Goal { policy, ..*goal }, seen, act, not_after, now) {
        StopPreconditions::Asked => Some(Step::Restart { due, pod: pod.uid, unasked: false, not_after }),
        StopPreconditions::Unasked => Some(Step::Restart { due, pod: pod.uid, unasked: true, not_after }),
        StopPreconditions::NotYet(Step::Announce { notice, .. }) if !is_in_time(later(now, notice)) => None,
        StopPreconditions::NotYet(step) => Some(step),
    }
}

/// Whether the update that waits for a window, which opens at `opens`, is sure to begin no later than `until`. A scheduled restart of the same
/// night is then left to it. An update that waits for players does not qualify, because they may stay all night. An update with missing files or
/// images does not qualify either. In both cases the restart would never happen.
pub fn is_the_restart(goal: &Goal, seen: &Observation, opens: Option<Timestamp>, until: Timestamp) -> bool {
    let waits_for_players = matches!(goal.policy, PlayerPolicy::WaitForEmpty { .. });
    let has_images = matches!(seen.images, ImagesOnNode::Here | ImagesOnNode::Unknown);
    opens.is_some_and(|opens| opens <= until) && !waits_for_players && seen.staged && has_images
}

/// Whether this update was announced to this pod in this opening. An update without an announcement begins with the stop itself.
fn has_begun(goal: &Goal, seen: &Observation, opened_at: Timestamp) -> bool {
    seen.told(Disruption::Update { goal: goal.revision, window_opened_at: opened_at }).is_some()
}

/// A rollout is in progress, or a revision runs that was never verified.
fn on_trial(goal: &Goal, seen: &Observation, set: &StatefulSetView, gate: Gate, now: Timestamp) -> Step {
    let settled = seen.facts.settled;
    let Some(pod) = seen.pod else { return Step::Wait(no_pod(set)) };
    if let PodPhase::Stopping { .. } = pod.life {
        return Step::Wait(not_up(pod.life, now));
    }
    if set.door == Partition::Open && pod.revision != set.template {
        return match (settled, gate) {
            // The gate shut before the controller acted, so the commit is reverted. A rollback is never reverted: its pod is not the stable one.
            (Some(settled), Gate::Shut { .. }) if pod.revision == settled.revision => restore(set, settled),
            _ => Step::Wait(WaitingOn::Controller),
        };
    }
    let trial = pod.revision;
    let known_good = settled.is_some_and(|settled| settled.revision == trial);
    let condemned = seen.facts.failed.contains(&trial) && !known_good;
    match pod.life {
        PodPhase::Starting { gives_up_at } if now < gives_up_at => {
            let way_back = condemned.then(|| go_back(goal, seen, pod, gate, now));
            // The kubelet has restarted it. The decision that an admin must make is the same before, during and after each start.
            let is_decided = |step: &Step| matches!(step, Step::Wait(why) if why.is_about_the_way_back());
            way_back.filter(is_decided).unwrap_or(Step::Wait(WaitingOn::Start { until: gives_up_at }))
        }
        PodPhase::Starting { .. } if known_good => Step::Wait(WaitingOn::ServerDown),
        PodPhase::Refused if known_good && seen.copy_asked => Step::RequestRestore { to: trial, asked: true },
        PodPhase::Refused if known_good => {
            let forward = if refuses_newer_worlds(seen) { go_forward(goal, seen, gate, now) } else { None };
            forward.unwrap_or(Step::Wait(WaitingOn::WorldRefused))
        }
        PodPhase::Starting { .. } | PodPhase::Refused => go_back(goal, seen, pod, gate, now),
        // A verification that improves after the failure was recorded is too late: half a rollback may have been done.
        PodPhase::Up | PodPhase::Down if condemned => go_back(goal, seen, pod, gate, now),
        PodPhase::Up | PodPhase::Down => match seen.verdict {
            _ if known_good => close(set, trial),
            Verification::Pending { until } => Step::Wait(WaitingOn::Proof { until }),
            Verification::Passed | Verification::Unproven => close(set, trial),
            // A first start that fails its verification has no revision to roll back to. It is kept, and the operator reports it.
            Verification::Failed if settled.is_none() => close(set, trial),
            Verification::Failed => go_back(goal, seen, pod, gate, now),
        },
        PodPhase::Stopping { .. } => Step::Wait(not_up(pod.life, now)),
    }
}

/// The candidate revision failed.
fn go_back(goal: &Goal, seen: &Observation, pod: PodView, gate: Gate, now: Timestamp) -> Step {
    let Some(settled) = seen.facts.settled else {
        // No revision was ever verified here, so no players rely on the server. A corrected goal needs no window.
        return if goal.revision == pod.revision {
            Step::Wait(WaitingOn::FirstStartFailed)
        } else {
            stop_for(goal, seen, pod, (goal.revision, false), now)
        };
    };
    // The failure is recorded first, and permanently: a server that recovers during the rollback must not leave the rollback half done.
    if !seen.facts.failed.contains(&pod.revision) {
        return Step::MarkFailed { revision: pod.revision };
    }
    // Includes changes that the server may still make to the world while it stops, and changes made by earlier revisions.
    let touched = is_touched(&seen.world, settled);
    // A user who chooses a backup has accepted the loss, and it is restored in whatever state the world is.
    if !seen.copy_asked && (touched || pod.world > settled.world) {
        if let Some(decides) = who_decides(&seen.world, settled) {
            return go_forward(goal, seen, gate, now).unwrap_or(Step::Wait(decides));
        }
        if !seen.world.restore_ordered {
            return Step::RequestRestore { to: settled.revision, asked: false };
        }
    }
    if !seen.data_ordered {
        return Step::RequestPluginDataRestore { to: settled.revision };
    }
    stop_for(goal, seen, pod, (settled.revision, seen.copy_asked), now)
}

/// Replaces the pod with `to`, after the same checks as any other stop. `asked` adds a user's restore request.
fn stop_for(goal: &Goal, seen: &Observation, pod: PodView, (to, asked): (Revision, bool), now: Timestamp) -> Step {
    let not_after = later(now, DECISION_COUNTS);
    match clear_to_stop(goal, seen, Disruption::RollBack { failed: pod.revision }, not_after, now) {
        StopPreconditions::Asked => Step::RollBack { to, asked, unasked: false, not_after },
        StopPreconditions::Unasked => Step::RollBack { to, asked, unasked: true, not_after },
        StopPreconditions::NotYet(step) => step,
    }
}

/// Waits until the controller reports the candidate as current. If the partition were closed earlier, a lost pod would be recreated with the old
/// revision.
fn close(set: &StatefulSetView, trial: Revision) -> Step {
    if set.door == Partition::Open && !(set.observed && set.update == trial && set.current == trial) {
        return Step::Wait(WaitingOn::Controller);
    }
    Step::MarkStable { settled: trial }
}

fn restore(set: &StatefulSetView, settled: StableSet) -> Step {
    let door = if set.current == settled.revision { Partition::Closed } else { Partition::Open };
    Step::Restore { revision: settled.revision, door }
}

/// Whether the server process has ended by itself, or has exceeded the time for a start.
fn is_down(life: PodPhase, now: Timestamp) -> bool {
    match life {
        PodPhase::Down => true,
        PodPhase::Starting { gives_up_at } => gives_up_at <= now,
        PodPhase::Up | PodPhase::Refused | PodPhase::Stopping { .. } => false,
    }
}

fn no_pod(set: &StatefulSetView) -> WaitingOn {
    if set.asleep { WaitingOn::Asleep } else { WaitingOn::PodMissing }
}

fn not_up(life: PodPhase, now: Timestamp) -> WaitingOn {
    match life {
        PodPhase::Stopping { lost_at } if now < lost_at => WaitingOn::PodStopping { until: lost_at },
        PodPhase::Stopping { .. } => WaitingOn::NodeLost,
        PodPhase::Starting { gives_up_at } if now < gives_up_at => WaitingOn::Start { until: gives_up_at },
        PodPhase::Refused => WaitingOn::WorldRefused,
        PodPhase::Starting { .. } | PodPhase::Up | PodPhase::Down => WaitingOn::ServerDown,
    }
}

#[cfg(test)]
mod tests;
