//! Edge (reads). Decides whether this server gets an update slot: [`crate::update_slots`] counts them, and this file determines what counts
//! as a begin.

use crds::PaperMCServer;
use jiff::Timestamp;
use kube::ResourceExt as _;
use scheduler::maintenance::Gate;
use scheduler::observation::{Announced, Disruption};
use scheduler::rollout::{Step, is_in_progress, next_step};

use super::constraints::update_slot::UpdateSlot;
use super::observe::Observed;
use super::plan::Plan;
use crate::caches::Key;
use crate::context::Context;
use validate::CheckedServer;

/// The next step. If an update would begin and no update slot is free, it returns the step without the update and sets `plan.constraints.slot_unavailable`.
pub(super) fn next_step_with_slot(
    ctx: &Context,
    server: &CheckedServer,
    observed: &Observed,
    plan: &mut Plan,
    now: Timestamp,
) -> Step {
    let step = next_step(&plan.goal, &plan.observation, plan.gate, now);
    // The second choice of a step after players were counted keeps the place in the queue.
    if !ctx.update_slots.has_limit() || plan.constraints.slot_unavailable.is_some() {
        return step;
    }
    let server = &(server.namespace.clone(), server.name.clone());
    let node = observed.pod.as_ref().and_then(|pod| pod.spec.as_ref()?.node_name.as_deref());
    // A server that waits for a user may wait for days and must not block others.
    let waits_for_admin = matches!(step, Step::Wait(why) if why.needs_admin());
    if !waits_for_admin && is_in_progress(&plan.goal, &plan.observation, plan.gate) {
        ctx.update_slots.occupy(server, node);
        return step;
    }
    match plan.gate {
        // A user's request does not wait for an update slot.
        Gate::Open { opened_at, until }
            if begins_update(step) && plan.constraints.apply_request.requested_at.is_none() =>
        {
            match ctx.update_slots.acquire(server, node, opened_at, unobserved_updates(ctx)) {
                Ok(()) => step,
                Err(unavailable) => {
                    plan.constraints.slot_unavailable = Some(unavailable);
                    plan.constraints.delaying.push(&UpdateSlot);
                    // The update would include the restart, so both wait for the slot together. A requested restart or restore does not wait. Outside
                    // of windows the restart is made alone, because the slot may become free only after the opportunity.
                    if plan.opportunistic.reason.is_none() {
                        plan.goal.restart = plan.tasks.restores.restart(plan.tasks.restart_request.due);
                    }
                    plan.gate = Gate::NoNewStarts { opened_at, until, opens: None };
                    next_step(&plan.goal, &plan.observation, plan.gate, now)
                }
            }
        }
        Gate::Open { .. } | Gate::NoNewStarts { .. } | Gate::Shut { .. } => {
            requeue(ctx, ctx.update_slots.release(server));
            step
        }
    }
}

/// Forgets a deleted server.
pub(super) fn evict(ctx: &Context, server: &Key) {
    requeue(ctx, ctx.update_slots.remove(server));
}

/// Releases the slot after a pass that ended before a plan. No update begins here until the problem is solved.
pub(super) fn release(ctx: &Context, server: &PaperMCServer) {
    if ctx.update_slots.has_limit() {
        let server = (server.namespace().unwrap_or_default(), server.name_any());
        requeue(ctx, ctx.update_slots.release(&server));
    }
}

/// Records a failed pass after `attempts` earlier failures.
pub(super) fn record_failure(ctx: &Context, server: &Key, attempts: u32) {
    if ctx.update_slots.has_limit() {
        requeue(ctx, ctx.update_slots.record_failures(server, attempts));
    }
}

/// Whether players await a stop, or a rollout is in progress. The server then keeps its slot despite a temporary failure.
pub(super) fn is_needed(observed: &Observed, now: Timestamp) -> bool {
    let is_announced = observed.facts.announced.is_some_and(|announced| now - Announced::VALID_FOR < announced.ends);
    is_announced || observed.is_rollout_in_progress()
}

/// Whether the step is the first one of an update that players or the cluster notice.
fn begins_update(step: Step) -> bool {
    match step {
        Step::Announce { disruption, .. } | Step::Save { disruption, .. } => {
            matches!(disruption, Disruption::Update { .. })
        }
        Step::WriteTemplate { .. } | Step::Commit { .. } | Step::RollForward { .. } => true,
        // These steps belong to an update that has begun, or to no update.
        Step::Reannounce { .. }
        | Step::Create { .. }
        | Step::Stage
        | Step::Restore { .. }
        | Step::MarkFailed { .. }
        | Step::RequestRestore { .. }
        | Step::RequestPluginDataRestore { .. }
        | Step::RollBack { .. }
        | Step::MarkStable { .. }
        | Step::Restart { .. }
        | Step::EndRestart
        | Step::BeginDrain { .. }
        | Step::EndDrain
        | Step::CancelAnnouncement { .. }
        | Step::UpToDate
        | Step::Wait(_) => false,
    }
}

/// Servers with an update in progress according to their status, for a leader that has not observed them yet.
fn unobserved_updates(ctx: &Context) -> impl Iterator<Item = Key> {
    let is_updating = |server: &PaperMCServer| {
        let conditions = server.status.as_ref().map_or(&[][..], |status| status.conditions.as_slice());
        conditions.iter().any(|condition| condition.type_ == "Updating" && condition.status == "True")
    };
    let key = |server: &PaperMCServer| (server.namespace().unwrap_or_default(), server.name_any());
    ctx.servers.state().into_iter().filter_map(move |server| is_updating(&server).then(|| key(&server)))
}

fn requeue(ctx: &Context, servers: Vec<Key>) {
    for (namespace, name) in servers {
        ctx.requeue(&namespace, &name);
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use scheduler::observation::{Partition, PodUid, StatefulSetView};
    use serde_json::json;

    use super::*;
    use crate::server::requested_restore::tests::after_failed_update::{FAILED, STABLE, rolling_out};

    #[test]
    fn failing_pass_keeps_update_slot_only_during_disruption() {
        let now: Timestamp = "2026-11-22T12:00:00Z".parse().unwrap();
        let mut observed = rolling_out(&json!(null));
        assert!(is_needed(&observed, now));
        observed.pod_revision = Some(STABLE);
        observed.stateful_set_view = observed.stateful_set_view.map(|set| StatefulSetView {
            template: STABLE,
            partition: Partition::Closed,
            ..set
        });
        assert!(!is_needed(&observed, now), "the update has not begun");
        let disruption = Disruption::Update { goal: FAILED, window_opened_at: now };
        let ends = now + SignedDuration::from_mins(5);
        observed.facts.announced = Some(Announced { act: disruption, pod: PodUid(7), ends });
        assert!(is_needed(&observed, now) && is_needed(&observed, ends));
        assert!(!is_needed(&observed, ends + Announced::VALID_FOR), "the announcement has expired");
    }
}
