//! Edge (writes). Finishes a rollout in progress while no new plan is possible, because the spec or its consequences are rejected. The
//! rules and deadlines are the usual ones: the revision is verified and marked stable, or rolled back. No other change begins, and no
//! change of the spec is applied.
//!
//! All inputs are stored in the cluster (template, facts, the record of the stable revision), so an operator that has just started acts the
//! same. Only the announcement settings are read from the spec, as far as they are valid.

use crds::{PaperMCServer, PaperMCServerStatus};
use jiff::Timestamp;
use resolver::explain::{Explanation, Unanswerable};
use scheduler::maintenance::Gate;
use scheduler::observation::Disruption;
use scheduler::rollout::{Step, WaitingOn, is_failure_left_to_a_person, is_left_to_a_person, is_way_forward};
use tracing::warn;

use super::act::StepExecutor;
use super::approval::ApprovalState;
use super::backups::{copies, look_at_world};
use super::check::CheckedServer;
use super::check::lenient::check_on_trial;
use super::crash_loop::stopped::still_stopped;
use super::error::PassError;
use super::observe::Observed;
use super::plan::{Plan, ResolvedLock, StartTimeout};
use super::report::{self, PassBlocked, PassReport, status_before};
use super::scheduled_restart::Restarts;
use super::{act, observe, requeue, update_slot};
use crate::caches::Rendered;
use crate::clock::Stopwatch;
use crate::context::Context;
use crate::error_chain::ErrorChain;
use crate::priority::PendingPass;
use crate::requeue::Outcome;

/// Takes the next step of a rollout in progress, if it may continue. `None` if there is only the problem to report.
pub(super) async fn see_through(
    ctx: &Context,
    server: &PaperMCServer,
    seen: &Observed,
    why: PassBlocked,
    ahead: &PendingPass<'_>,
    looked: Stopwatch,
) -> Result<Option<Outcome>, PassError> {
    let at = looked.started_at();
    let before = status_before(ctx, server);
    if !is_under_way(seen, &before) {
        return Ok(None);
    }
    let Some(checked) = read_with_consent(server).map(|checked| seen.as_it_runs(checked)) else { return Ok(None) };
    let Some(mut plan) = build_plan(&checked, seen, ctx.config.pace(), at) else { return Ok(None) };
    // A violation in the spec does not start a server that was stopped for crashes.
    plan.crashes = still_stopped(&before, seen);
    let step = update_slot::next_in_turn(ctx, &checked, seen, &mut plan, true, at);
    if matches!(step, Step::CancelAnnouncement { act: Disruption::Update { .. }, .. }) {
        // The next goal is unknown to this pass. Players still count down to it, and the next pass that can plan handles it.
        return Ok(None);
    }
    let hand = StepExecutor::of(ctx, &checked, seen, &plan, ahead, looked);
    let done = act(&hand, &plan, step).await?;
    let report = PassReport { seen, plan: &plan, step, done: &done, now: at };
    report::report_on_trial(ctx, server, &checked, &report, why).await.map_err(PassError::Report)?;
    Ok(Some(requeue::in_time(&ctx.messenger.channels_of(server), &plan, seen, (step, &done), at)))
}

/// The same for a pass that failed before its step. It observes again, because the failed pass may have taken long. Returns the error if no
/// rollout continues.
pub(super) async fn see_through_after(
    ctx: &Context,
    server: &PaperMCServer,
    error: PassError,
    ahead: &PendingPass<'_>,
) -> Result<Outcome, PassError> {
    let looked = Stopwatch::start();
    let seen = observe::observe(server, ctx, looked.started_at()).await?;
    let why = PassBlocked::failure(&ErrorChain(&error).to_string());
    match see_through(ctx, server, &seen, why, ahead, looked).await? {
        Some(outcome) => {
            warn!(error = %ErrorChain(&error), "nothing can be planned; what is on trial goes on");
            Ok(outcome)
        }
        None => Err(error),
    }
}

/// The readable part of the spec. It requires the accepted EULA even if another violation is reported, because a roll-back starts a server.
fn read_with_consent(server: &PaperMCServer) -> Option<CheckedServer> {
    check_on_trial(server).filter(|checked| checked.eula)
}

/// Whether a pass that failed with a temporary error continues the rollout anyway. Such an error ends no countdown and reverts no commit of
/// a second ago. Only a rollout that has really begun continues, and a finished one is reported.
pub(super) fn has_to_end(seen: &Observed, before: &PaperMCServerStatus) -> bool {
    let Some(settled) = seen.facts.settled.map(|settled| settled.revision) else { return false };
    let stands = seen.settled_stands();
    if Plan::is_on_trial(seen) {
        return stands || seen.pod_revision != Some(settled);
    }
    let facts = &seen.facts;
    let is_at_rest = facts.announced.is_none() && facts.draining.is_none() && facts.restarted.is_none();
    stands && is_at_rest && is_untold(seen, before)
}

impl Plan {
    /// Whether a newer set replaces the failed one once the gate opens, without a roll-back before.
    pub(crate) fn waits_to_go_forward(&self, step: Step) -> bool {
        is_left_to_a_person_by(step) && is_left_to_a_person(&self.seen) && is_way_forward(&self.goal, &self.seen)
    }

    /// Requeues the server at the opening of the gate, and not minutes later.
    pub(crate) fn in_time_to_go_forward(&self, outcome: Outcome, step: Step, now: Timestamp) -> Outcome {
        let opens = self.gate.opens().filter(|_| self.waits_to_go_forward(step));
        opens.map_or(outcome, |opens| outcome.no_later_than(opens, now))
    }

    /// Whether a roll-forward has to wait, because backups could not be listed, or because a user has requested a restore.
    pub(crate) fn may_go_back(&self, seen: &Observed) -> bool {
        let is_unread = copies(seen).is_some_and(|copies| copies.problem.is_some());
        is_left_to_a_person(&self.seen) && (is_unread || self.restores.is_open())
    }
}

/// Whether this step requires manual recovery, unless another set can open the worlds.
pub(crate) fn is_left_to_a_person_by(step: Step) -> bool {
    matches!(step, Step::Wait(why) if why.is_about_the_way_back() || why == WaitingOn::WorldRefused)
}

/// Whether a rollout is in progress and continues by itself. A failed revision, or a stable one that refuses the worlds, waits for a user
/// or for a new plan.
pub(super) fn goes_on(seen: &Observed, asks_for_copy: bool) -> bool {
    let has_failed = is_failure_left_to_a_person(seen.shape, seen.pod_revision, &look_at_world(seen), &seen.facts);
    // Once another template is written, the roll-back or roll-forward is in progress.
    let is_left = (has_failed || seen.settled_stands() && seen.world_refused().is_some()) && !asks_for_copy;
    Plan::is_on_trial(seen) && !is_left
}

/// Whether a rollout is in progress, or its end has not been reported yet. A first start is no rollout.
fn is_under_way(seen: &Observed, before: &PaperMCServerStatus) -> bool {
    seen.facts.settled.is_some() && (Plan::is_on_trial(seen) || is_untold(seen, before))
}

/// Whether the status still shows another stable revision or an update in progress.
fn is_untold(seen: &Observed, before: &PaperMCServerStatus) -> bool {
    let Some(settled) = seen.facts.settled.map(|settled| settled.revision.to_string()) else { return false };
    let told = before.rollout.as_ref().and_then(|rollout| rollout.settled.as_ref());
    let is_news = told.is_some_and(|told| *told != settled);
    let was_under_way = before.conditions.iter().any(|it| it.type_ == "Updating" && it.status == "True");
    is_news || was_under_way
}

/// A plan whose goal is the template in the cluster. `None` if the cluster does not tell which files it has.
fn build_plan(server: &CheckedServer, seen: &Observed, pace: StartTimeout, now: Timestamp) -> Option<Plan> {
    let template = &seen.set.as_ref()?.spec.as_ref()?.template;
    let record = seen.pod_lock.clone().or_else(|| seen.settled_lock.clone())?;
    let rendered = Rendered { revision: seen.shape?.template, template: template.clone().into() };
    let nothing_asked = Unanswerable {
        server: record.lock.server.clone(),
        fetch: vec![],
        unseen: vec![],
        unread: vec![],
        known: vec![],
    };
    let answer = ResolvedLock { lock: None, explanation: Explanation::Unanswerable(nothing_asked), solved: false };
    let consent = ApprovalState { needs_approval: false, apply_since: None, applies_another: None };
    // A commit that has not taken effect is reverted, because its reason is no longer valid.
    let shut = Gate::Shut { opens: None };
    let mut plan = Plan::new(server, seen, answer, record, rendered, shut, consent, pace, now);
    plan.restarts = Restarts::default();
    plan.goal.restart = None;
    Some(plan)
}

#[cfg(test)]
mod tests;
