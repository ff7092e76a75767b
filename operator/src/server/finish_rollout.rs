//! Edge (writes). A set that is on trial while nothing can be planned: the spec is refused, or what it leads to. What has begun is seen
//! through to its end all the same, by the same rules as ever: proven and closed or gone back from, with its deadlines. Nothing else is
//! begun, and of what the spec describes nothing is written.
//!
//! All that is acted upon stands in the cluster (template, facts, the record of what settled), so an operator that has just started does
//! the same. Of the spec only how players are told before a way back is read, as far as it can be.

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

/// Takes the next step of the trial, if one is under way that may go on. None: what is in the way is all there is to say.
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
    // It is not started by a mistake in its spec.
    plan.crashes = still_stopped(&before, seen);
    let step = update_slot::next_in_turn(ctx, &checked, seen, &mut plan, true, at);
    if matches!(step, Step::CancelAnnouncement { act: Disruption::Update { .. }, .. }) {
        // What comes forward is not known to this pass. Players count down to it, and the next one that can plan sees to it.
        return Ok(None);
    }
    let hand = StepExecutor::of(ctx, &checked, seen, &plan, ahead, looked);
    let done = act(&hand, &plan, step).await?;
    let report = PassReport { seen, plan: &plan, step, done: &done, now: at };
    report::report_on_trial(ctx, server, &checked, &report, why).await.map_err(PassError::Report)?;
    Ok(Some(requeue::in_time(&ctx.messenger.channels_of(server), &plan, seen, (step, &done), at)))
}

/// The same where a pass failed before its step, by a look of now: nobody knows how long it took to fail. The error again, if no trial goes on
/// for it.
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

/// What is read of the spec. Not without consent, also where a second mistake is what is told: a way back starts a server.
fn read_with_consent(server: &PaperMCServer) -> Option<CheckedServer> {
    check_on_trial(server).filter(|checked| checked.eula)
}

/// Whether a pass that fails for what may be over at the next try goes on with the trial all the same. It ends no countdown and takes no commit
/// back for that, which is a second old: only what another set has really begun goes on, and what is at rest is told of.
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
    /// Whether another set comes forward when the gate lets it in, and nothing goes back before.
    pub(crate) fn waits_to_go_forward(&self, step: Step) -> bool {
        is_left_to_a_person_by(step) && is_left_to_a_person(&self.seen) && is_way_forward(&self.goal, &self.seen)
    }

    /// When it does: the opening is not found minutes late.
    pub(crate) fn in_time_to_go_forward(&self, outcome: Outcome, step: Step, now: Timestamp) -> Outcome {
        let opens = self.gate.opens().filter(|_| self.waits_to_go_forward(step));
        opens.map_or(outcome, |opens| outcome.no_later_than(opens, now))
    }

    /// Whether nothing may come forward here for now: there may be a copy to go back to and nobody can say, or a person has named one.
    pub(crate) fn may_go_back(&self, seen: &Observed) -> bool {
        let is_unread = copies(seen).is_some_and(|copies| copies.problem.is_some());
        is_left_to_a_person(&self.seen) && (is_unread || self.restores.is_open())
    }
}

/// Whether a person has to decide by this answer, unless another set can open the worlds.
pub(crate) fn is_left_to_a_person_by(step: Step) -> bool {
    matches!(step, Step::Wait(why) if why.is_about_the_way_back() || why == WaitingOn::WorldRefused)
}

/// A set is on trial, and goes on by itself. One that has failed, or that settled and is refused the worlds, waits for a person and for what can be
/// planned, too.
pub(super) fn goes_on(seen: &Observed, asks_for_copy: bool) -> bool {
    let has_failed = is_failure_left_to_a_person(seen.shape, seen.pod_revision, &look_at_world(seen), &seen.facts);
    // Once another template stands there, that is under way.
    let is_left = (has_failed || seen.settled_stands() && seen.world_refused().is_some()) && !asks_for_copy;
    Plan::is_on_trial(seen) && !is_left
}

/// A set is on trial, or how that ended has not been told yet. A first start is none of it: nothing was there before.
fn is_under_way(seen: &Observed, before: &PaperMCServerStatus) -> bool {
    seen.facts.settled.is_some() && (Plan::is_on_trial(seen) || is_untold(seen, before))
}

/// By the status something else has settled, or an update is under way.
fn is_untold(seen: &Observed, before: &PaperMCServerStatus) -> bool {
    let Some(settled) = seen.facts.settled.map(|settled| settled.revision.to_string()) else { return false };
    let told = before.rollout.as_ref().and_then(|rollout| rollout.settled.as_ref());
    let is_news = told.is_some_and(|told| *told != settled);
    let was_under_way = before.conditions.iter().any(|it| it.type_ == "Updating" && it.status == "True");
    is_news || was_under_way
}

/// What stands in the cluster is all that is wanted. None: it does not say which files are on trial.
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
    // A commit that has not taken effect is taken back: what it was decided upon does not hold any more.
    let shut = Gate::Shut { opens: None };
    let mut plan = Plan::new(server, seen, answer, record, rendered, shut, consent, pace, now);
    plan.restarts = Restarts::default();
    plan.goal.restart = None;
    Some(plan)
}

#[cfg(test)]
mod tests;
