//! Edge (writes). Finishes a rollout in progress while no new plan is possible, because the spec or its consequences are rejected. The
//! rules and deadlines are the usual ones: the revision is verified and marked stable, or rolled back. No other change begins, and no
//! change of the spec is applied.
//!
//! All inputs are stored in the cluster (template, facts, the record of the stable revision), so an operator that has just started acts the
//! same. Only the announcement settings are read from the spec, as far as they are valid.

use std::collections::BTreeMap;

use crds::{PaperMCServer, PaperMCServerStatus};
use resolver::explanation::{Explanation, Unanswerable};
use scheduler::maintenance::Gate;
use scheduler::observation::Disruption;
use scheduler::rollout::{Step, failure_needs_admin, next_step};
use tracing::warn;

use super::act::StepExecutor;
use super::agent_image::template_change;
use super::approval::ApprovalState;
use super::backups::world_state;
use super::changes::diff_locks;
use super::crash_loop::stopped::active_stop;
use super::drain::Drain;
use super::error::PassError;
use super::execute::execute_step;
use super::last_status::status_before;
use super::observe::{self, Observed};
use super::partial::PartialSelection;
use super::plan::{ApplyRequest, ConstraintStates, OtherTasks, PassInput, Plan, Selection, StartTimeout, Target};
use super::report::context::PassReport;
use super::report::{self, PassBlocked};
use super::{requeue, update_slot};
use crate::caches::Rendered;
use crate::clock::Stopwatch;
use crate::context::Context;
use crate::error_chain::ErrorChain;
use crate::priority::PendingPass;
use crate::requeue::Outcome;
use validate::CheckedServer;
use validate::lenient::check_leniently;

/// Takes the next step of a rollout in progress, if it may continue. `None` if there is only the problem to report.
pub(super) async fn continue_rollout(
    ctx: &Context,
    server: &PaperMCServer,
    observed: &Observed,
    why: PassBlocked,
    pending: &PendingPass<'_>,
    since_observation: Stopwatch,
) -> Result<Option<Outcome>, PassError> {
    let at = since_observation.started_at();
    let before = status_before(ctx, server);
    if !has_unfinished_rollout(observed, &before) {
        return Ok(None);
    }
    let Some(checked) = check_with_eula(server).map(|checked| observed.adapt_to_pod(checked)) else { return Ok(None) };
    let pass = PassInput { server, checked: &checked, observed, before: &before, now: at };
    let Some(mut plan) = build_plan(&pass, ctx.config.start_timeout()) else { return Ok(None) };
    // A violation in the spec does not start a server that was stopped for crashes.
    plan.constraints.crashes = active_stop(&before, observed);
    let step = next_step(&plan.goal, &plan.observation, plan.gate, at);
    if matches!(step, Step::CancelAnnouncement { disruption: Disruption::Update { .. }, .. }) {
        // The next goal is unknown to this pass. Players still count down to it, and the next pass that can plan handles it. The server
        // keeps its update slot until then.
        return Ok(None);
    }
    let step = update_slot::next_step_with_slot(ctx, &checked, observed, &mut plan, at);
    let executor = StepExecutor::new(ctx, &checked, observed, &plan, pending, since_observation);
    let done = execute_step(&executor, step).await?;
    let report = PassReport { pass, plan: &plan, step, done: &done };
    report::report_rollout(ctx, &report, why).await.map_err(PassError::Report)?;
    Ok(Some(requeue::next_outcome(&ctx.notifier.channels_of(server), &plan, observed, (step, &done), at)))
}

/// The same for a pass that failed before its step. It observes again, because the failed pass may have taken long. Returns the error if no
/// rollout continues.
pub(super) async fn finish_rollout_after_error(
    ctx: &Context,
    server: &PaperMCServer,
    error: PassError,
    pending: &PendingPass<'_>,
) -> Result<Outcome, PassError> {
    let since_observation = Stopwatch::start();
    let observed = observe::observe(server, ctx, since_observation.started_at()).await?;
    let why = PassBlocked::failure(&ErrorChain(&error).to_string());
    match continue_rollout(ctx, server, &observed, why, pending, since_observation).await? {
        Some(outcome) => {
            warn!(error = %ErrorChain(&error), "could not plan; the rollout in progress continues");
            Ok(outcome)
        }
        None => Err(error),
    }
}

/// The readable part of the spec. It requires the accepted EULA even if another violation is reported, because a roll-back starts a server.
fn check_with_eula(server: &PaperMCServer) -> Option<CheckedServer> {
    check_leniently(server).filter(|checked| checked.eula)
}

/// Whether a pass that failed with a temporary error continues the rollout anyway. Such an error ends no countdown and reverts no commit of
/// a second ago. Only a rollout that has really begun continues, and a finished one is reported.
pub(super) fn has_to_continue(observed: &Observed, before: &PaperMCServerStatus) -> bool {
    let Some(stable) = observed.facts.settled.map(|stable| stable.revision) else { return false };
    let has_stable_template = observed.has_stable_template();
    if observed.is_rollout_in_progress() {
        return has_stable_template || observed.pod_revision != Some(stable);
    }
    let facts = &observed.facts;
    let is_at_rest = facts.announced.is_none() && facts.draining.is_none() && facts.restarted.is_none();
    has_stable_template && is_at_rest && status_is_outdated(observed, before)
}

/// Whether a rollout is in progress and continues by itself. A failed revision, or a stable one that refuses the worlds, waits for a user
/// or for a new plan.
pub(super) fn continues_by_itself(observed: &Observed, is_restore_requested: bool) -> bool {
    let has_failed =
        failure_needs_admin(observed.stateful_set_view, observed.pod_revision, &world_state(observed), &observed.facts);
    // Once another template is written, the roll-back or roll-forward is in progress.
    let is_left =
        (has_failed || observed.has_stable_template() && observed.world_refused().is_some()) && !is_restore_requested;
    observed.is_rollout_in_progress() && !is_left
}

/// Whether a rollout is in progress, or its end has not been reported yet. A first start is no rollout.
fn has_unfinished_rollout(observed: &Observed, before: &PaperMCServerStatus) -> bool {
    observed.facts.settled.is_some() && (observed.is_rollout_in_progress() || status_is_outdated(observed, before))
}

/// Whether the status still shows another stable revision or an update in progress.
fn status_is_outdated(observed: &Observed, before: &PaperMCServerStatus) -> bool {
    let Some(stable) = observed.facts.settled.map(|stable| stable.revision.to_string()) else { return false };
    let reported = before.rollout.as_ref().and_then(|rollout| rollout.settled.as_ref());
    let is_news = reported.is_some_and(|reported| *reported != stable);
    let was_updating =
        before.conditions.iter().any(|condition| condition.type_ == "Updating" && condition.status == "True");
    is_news || was_updating
}

/// A plan whose goal is the template in the cluster. `None` if the cluster does not tell which files it has.
fn build_plan(pass: &PassInput<'_>, start_timeout: StartTimeout) -> Option<Plan> {
    let observed = pass.observed;
    let template = &observed.stateful_set.as_ref()?.spec.as_ref()?.template;
    let record = observed.pod_lock.clone().or_else(|| observed.stable_lock.clone())?;
    let rendered =
        Rendered { revision: observed.stateful_set_view?.template, template: template.clone().into(), source: None };
    let unanswerable = Unanswerable {
        server: record.lock.server.clone(),
        fetch: vec![],
        unverified: vec![],
        unread: vec![],
        known: vec![],
    };
    let (explanation, partial) = (Explanation::Unanswerable(unanswerable), PartialSelection::Nothing);
    let (deciding, pinned_set) = (BTreeMap::new(), None);
    let selection = Selection { explanation, solved: false, deciding, pinned_set, partial, partial_until: None };
    let stable = observed.stable_lock.as_ref().map(|stable| &stable.lock);
    let changes = diff_locks(stable, &record.lock);
    let template_change = template_change(observed.stable.as_ref().map(|stable| &stable.template), &rendered.template);
    let target = Target { record, rendered, changes, template_change, files_problem: None };
    let approval = ApprovalState { needs_approval: false, apply_since: None, requests_other_set: None };
    // A commit that has not taken effect is reverted, because its reason is no longer valid.
    let shut = Gate::Shut { opens: None };
    let states = ConstraintStates::new(approval, ApplyRequest::default(), Drain::unknown());
    Some(Plan::new(pass, target, selection, states, OtherTasks::default(), shut, start_timeout))
}

#[cfg(test)]
mod tests;
