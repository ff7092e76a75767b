//! Edge (reads). Decides whether this server gets an update slot: [`crate::update_slots`] counts them, and this file determines what counts
//! as a begin.

use crds::PaperMCServer;
use jiff::Timestamp;
use kube::ResourceExt as _;
use scheduler::maintenance::Gate;
use scheduler::observation::{Announced, Disruption};
use scheduler::rollout::{Step, is_under_way, next_step};

use super::check::CheckedServer;
use super::observe::Observed;
use super::plan::Plan;
use crate::caches::Key;
use crate::context::Context;

/// The next step. If an update would begin and no update slot is free, it returns the step without the update and sets `plan.not_yet`.
pub(super) fn next_in_turn(
    ctx: &Context,
    server: &CheckedServer,
    seen: &Observed,
    plan: &mut Plan,
    by_hand: bool,
    now: Timestamp,
) -> Step {
    let step = next_step(&plan.goal, &plan.seen, plan.gate, now);
    if !ctx.turns.are_bounded() {
        return step;
    }
    let server = &(server.namespace.clone(), server.name.clone());
    let node = seen.pod.as_ref().and_then(|pod| pod.spec.as_ref()?.node_name.as_deref());
    // A server that waits for a user may wait for days and must not block others.
    let is_stuck = matches!(step, Step::Wait(why) if why.needs_a_person());
    if !is_stuck && is_under_way(&plan.goal, &plan.seen, plan.gate) {
        ctx.turns.is_at_it(server, node);
        return step;
    }
    match plan.gate {
        // A user's request does not wait for an update slot.
        Gate::Open { opened_at, until } if begins(step) && !by_hand => {
            match ctx.turns.begin(server, node, opened_at, unseen(ctx)) {
                Ok(()) => step,
                Err(not_yet) => {
                    plan.not_yet = Some(not_yet);
                    // The update would include the restart, so both wait for the slot together. A requested restore does not wait. Outside
                    // of windows the restart is made alone, because the slot may become free only after the opportunity.
                    if plan.opportunistic.occasion.is_none() {
                        plan.goal.restart = plan.restores.restart(None);
                    }
                    plan.gate = Gate::NoNewStarts { opened_at, until, opens: None };
                    next_step(&plan.goal, &plan.seen, plan.gate, now)
                }
            }
        }
        Gate::Open { .. } | Gate::NoNewStarts { .. } | Gate::Shut { .. } => {
            wake(ctx, ctx.turns.rests(server));
            step
        }
    }
}

/// Forgets a deleted server.
pub(super) fn leave(ctx: &Context, server: &Key) {
    wake(ctx, ctx.turns.forget(server));
}

/// Releases the slot after a pass that ended before a plan. No update begins here until the problem is solved.
pub(super) fn give_up(ctx: &Context, server: &PaperMCServer) {
    if ctx.turns.are_bounded() {
        let server = (server.namespace().unwrap_or_default(), server.name_any());
        wake(ctx, ctx.turns.rests(&server));
    }
}

/// Records a failed pass after `attempts` earlier failures.
pub(super) fn failed(ctx: &Context, server: &Key, attempts: u32) {
    if ctx.turns.are_bounded() {
        wake(ctx, ctx.turns.failed(server, attempts));
    }
}

/// Whether players await a stop, or a rollout is in progress. The server then keeps its slot despite a temporary failure.
pub(super) fn is_needed(seen: &Observed, now: Timestamp) -> bool {
    let is_told = seen.facts.announced.is_some_and(|told| now - Announced::COUNTS < told.ends);
    is_told || Plan::is_on_trial(seen)
}

/// Whether the step is the first one of an update that players or the cluster notice.
fn begins(step: Step) -> bool {
    match step {
        Step::Announce { act, .. } | Step::Save { act, .. } => matches!(act, Disruption::Update { .. }),
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
        | Step::Settled
        | Step::Wait(_) => false,
    }
}

/// Servers with an update in progress according to their status, for a leader that has not observed them yet.
fn unseen(ctx: &Context) -> impl Iterator<Item = Key> {
    let is_updating = |server: &PaperMCServer| {
        let conditions = server.status.as_ref().map_or(&[][..], |status| status.conditions.as_slice());
        conditions.iter().any(|condition| condition.type_ == "Updating" && condition.status == "True")
    };
    let key = |server: &PaperMCServer| (server.namespace().unwrap_or_default(), server.name_any());
    ctx.servers.state().into_iter().filter_map(move |server| is_updating(&server).then(|| key(&server)))
}

fn wake(ctx: &Context, servers: Vec<Key>) {
    for (namespace, name) in servers {
        ctx.look_again(&namespace, &name);
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use scheduler::observation::{Partition, PodUid, StatefulSetView};
    use serde_json::json;

    use super::*;
    use crate::server::requested_restore::tests::way_back::{FAILED, SETTLED, on_trial};

    #[test]
    fn failing_pass_keeps_update_slot_only_during_disruption() {
        let now: Timestamp = "2026-11-22T12:00:00Z".parse().unwrap();
        let mut seen = on_trial(&json!(null));
        assert!(is_needed(&seen, now));
        seen.pod_revision = Some(SETTLED);
        seen.shape = seen.shape.map(|set| StatefulSetView { template: SETTLED, door: Partition::Closed, ..set });
        assert!(!is_needed(&seen, now), "it only waits");
        let act = Disruption::Update { goal: FAILED, window_opened_at: now };
        let ends = now + SignedDuration::from_mins(5);
        seen.facts.announced = Some(Announced { act, pod: PodUid(7), ends });
        assert!(is_needed(&seen, now) && is_needed(&seen, ends));
        assert!(!is_needed(&seen, ends + Announced::COUNTS), "it is over");
    }
}
