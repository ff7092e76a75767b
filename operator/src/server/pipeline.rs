//! Edge (writes). The stages of a pass, from the observation of a server to the report.

use std::collections::BTreeMap;
use std::sync::Arc;

use crds::{PaperMCServer, Plugin};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use resolver::model::lock::{Lock, LockReason};
use resolver::model::request::Request;
use scheduler::maintenance::Gate;
use scheduler::rollout::{DECISION_VALID_FOR, Step, continue_countdown};

use super::act::StepExecutor;
use super::act::outcome::StepOutcome;
use super::agent_image::template_change;
use super::approval::ApprovalState;
use super::changes::diff_locks;
use super::crash_loop::stopped::{is_restart_requested, scaled_down_if_stopped};
use super::drain::{self, Drain};
use super::error::PassError;
use super::execute::execute_step;
use super::follows::{FollowState, followed_server};
use super::last_status::status_before;
use super::observe::Observed;
use super::online_backup::{OnlineBackups, request};
use super::partial::urgent::UrgentUpdate;
use super::pinned_catalog::PinnedInputs;
use super::pinned_set::PinnedSet;
use super::plan::constraint::ConstraintInput;
use super::plan::{
    self, ApplyRequest, ConstraintStates, OtherTasks, PassInput, Plan, ResolvedLock, RunningState, Selection, Target,
    gate,
};
use super::render::{self, Bundle};
use super::report::PlanningError;
use super::report::context::PassReport;
use super::requested_restart::RestartRequest;
use super::requested_restore::RestoreRequests;
use super::requested_restore::write_request::record_progress;
use super::resolve::{ResolveInput, choose_lock};
use super::scheduled_restart::ScheduledRestarts;
use super::wake_at::set_alarm;
use super::window_barrier::{ObservedSince, wait_at_barrier};
use super::{
    apply, clean_up, constraints, finish_rollout, image_pull, lock_files, named_secrets, next_step, partial, peers,
    release_check, report, requeue, scale_down, seed_claim,
};
use crate::clock::Stopwatch;
use crate::context::Context;
use crate::priority::PendingPass;
use crate::requeue::Outcome;
use validate::{CheckedServer, join_messages};

/// Maximum age of an observation on which a step is decided. It is longer than the timeout for an agent that accepts a connection and never
/// answers. Otherwise every observation of such a server would be too old, and the pass would repeat for ever.
const OBSERVATION_MAX_AGE: SignedDuration = SignedDuration::from_secs(20);

/// Status message for a server whose EULA is not accepted.
const NO_EULA: &str =
    "Minecraft's EULA is not accepted: read https://aka.ms/MinecraftEULA and set `spec.eula: Accepted`";

/// Why a pass ends before its last stage.
pub(super) enum PassEnd {
    /// There is nothing more to do now.
    Done(Outcome),
    /// No plan is possible.
    NoPlan(Box<PlanningError>),
    /// A stage failed.
    Failed(PassError),
}

impl PassEnd {
    /// The server has to be observed again.
    const AGAIN: Self = Self::Done(Outcome::Acted);

    fn no_plan(error: PlanningError) -> Self {
        Self::NoPlan(Box::new(error))
    }
}

impl<E: Into<PassError>> From<E> for PassEnd {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Runs all stages: check, select a version set, apply its objects, plan, act, report.
pub(super) async fn reconcile_server(
    server: &PaperMCServer,
    ctx: &Context,
    observed: &Observed,
    pending: &PendingPass<'_>,
    since_observation: Stopwatch,
) -> Result<Outcome, PassEnd> {
    let (checked, drain) = check_spec_and_node(server, ctx, observed, since_observation.started_at()).await?;
    if let Some(until) = plan::too_new_until(server, observed, since_observation.started_at()) {
        return Ok(Outcome::Polling { until: Some(until) });
    }
    // `None`: the spec has changed meanwhile, or the clock was set back.
    let start = wait_at_barrier(ctx, server, &checked, observed, since_observation).await.ok_or(PassEnd::AGAIN)?;
    let before = status_before(ctx, server);
    let pass = PassInput { server, checked: &checked, observed, before: &before, now: start.decided.started_at() };

    let from = PinnedInputs::select(ctx, &checked, observed, pass.now);
    let inputs = select(ctx, &pass, &from).await?;
    let (target, bundle) = build_target(ctx, &pass, &inputs, start).await?;
    let mut plan = build_plan(ctx, &pass, inputs, target, drain).await?;
    set_alarm(ctx, server, &plan, pass.now).await;
    let step = next_step::next_step(ctx, &checked, observed, &mut plan, pass.now).await;
    // A pass that waited at the window barrier may hold an observation that is too old for the step. The plan may use a catalog that was
    // pinned for another goal.
    if !start.allows(step) || !from.update_pin(ctx, &checked, &plan, step) {
        ctx.requeue(&checked.namespace, &checked.name);
        return Err(PassEnd::AGAIN);
    }
    stop_for_crashes(ctx, &pass, &plan, step).await?;

    let done = act(ctx, &pass, &plan, step, &bundle, pending, start.decided).await?;
    request::request_backup(ctx, observed, &mut plan, step).await;
    let report = PassReport { pass, plan: &plan, step, done: &done };
    if has_new_stable_revision(&pass, &plan) {
        ctx.caches.uncleaned.put((checked.namespace.clone(), checked.name.clone()), ());
    }
    report::report(ctx, &report).await.map_err(PassError::Report)?;
    // Objects are cleaned up only when no rollout is in progress. During an update the next step may refer to an object that nothing refers
    // to now.
    if step == Step::UpToDate {
        // The report has written the history.
        let history = &status_before(ctx, server).history;
        clean_up::clean_up(ctx, &checked, observed, &bundle, history).await?;
    }
    Ok(requeue::next_outcome(&ctx.notifier.channels_of(server), &plan, observed, (step, &done), pass.now))
}

/// Whether the status still shows another stable revision. A later process finds this one there, and has nothing to clean up. Nothing was
/// replaced by the first one.
fn has_new_stable_revision(pass: &PassInput<'_>, plan: &Plan) -> bool {
    let reported = pass.before.rollout.as_ref().and_then(|rollout| rollout.settled.as_deref());
    reported.is_some_and(|reported| reported != plan.goal.revision.to_string())
}

/// The selected version set, and the user requests that count.
struct PlanInputs {
    runs: RunningState,
    lock: Lock,
    selection: Selection,
    restores: RestoreRequests,
    followed: Option<FollowState>,
    /// The gate that an apply-now request opens.
    manual_gate: Option<Gate>,
}

/// Returns the checked spec and the state of the server's node.
async fn check_spec_and_node(
    server: &PaperMCServer,
    ctx: &Context,
    observed: &Observed,
    now: Timestamp,
) -> Result<(CheckedServer, Drain), PassEnd> {
    let rejected = |message| PassEnd::no_plan(PlanningError::Spec(message));
    let checked = validate::check_with(server, ctx.config.pod_template_policy);
    let checked = checked.map_err(|violations| rejected(join_messages(&violations)))?;
    let checked = if observed.facts.settled.is_some() { checked.after_first_start() } else { checked };
    let checked = scaled_down_if_stopped(observed.adapt_to_pod(checked), &status_before(ctx, server), observed);
    if !checked.eula {
        return Err(PassEnd::no_plan(PlanningError::Eula(NO_EULA.to_owned())));
    }
    if let Some(message) = seed_claim::missing_claim(ctx, &checked, observed).await? {
        return Err(PassEnd::no_plan(PlanningError::NoClaim(message)));
    }
    if let Some(message) = named_secrets::refusal(ctx, &checked, now).await? {
        return Err(PassEnd::no_plan(PlanningError::SecretNotAllowed(message)));
    }
    let drain = drain::observe(ctx, &checked, observed).map_err(|violation| rejected(violation.to_string()))?;
    Ok((checked, drain))
}

/// Selects the version set, after new user requests were recorded.
async fn select(ctx: &Context, pass: &PassInput<'_>, from: &PinnedInputs) -> Result<PlanInputs, PassEnd> {
    let PassInput { server, checked, observed, before, now } = *pass;
    let plugins = namespace_plugins(ctx, server);
    let runs = RunningState::from_observed(observed);
    let manual_gate = gate::manual_gate(server, before.last_handled.as_ref(), &checked.updates.windows, now);
    let is_whole_manual = manual_gate.is_some()
        && partial::requested_scope(server).is_none()
        && !gate::is_announced_in_window(observed, &checked.updates.windows, now);
    let read = (&ctx.facts, from.catalog());
    let mut request = plan::build_request(server, &plugins, &runs, &ctx.config, read, is_whole_manual)
        .map_err(|message| PassEnd::no_plan(PlanningError::Spec(message)))?;
    if runs.lock.is_some() && !is_whole_manual {
        request.checked_at = release_check::checked_at(checked, before, now);
    }
    let group = peers::join(ctx, &checked.namespace, &checked.name, &request);
    if release_check::request_reading(ctx, pass).await? {
        return Err(PassEnd::AGAIN);
    }
    let restores = RestoreRequests::new(server, checked, observed, before, now);
    let rollout_continues = finish_rollout::continues_by_itself(observed, restores.is_open());
    if from.snapshot.is_none() && !rollout_continues {
        return Err(PassEnd::no_plan(PlanningError::NoCatalog));
    }
    // All servers are observed right after the operator starts. A server that was solved without its peers might get versions that they
    // cannot use.
    let unread = PinnedInputs::from_newest(None, now);
    let from = if peers::has_to_wait(ctx, &checked.namespace, &checked.name, &request) { &unread } else { from };
    if from.snapshot.is_none() && !rollout_continues {
        return Err(PassEnd::Done(Outcome::Polling { until: None }));
    }
    let pinned_set = PinnedSet::from_server(server, before, stable_digest(observed), now);
    if record_requests(ctx, pass, pinned_set.as_ref(), &restores).await? {
        return Err(PassEnd::AGAIN);
    }
    let followed = followed_server::observe(ctx, checked, now).await.map_err(PassError::Follow)?;
    let follows = followed.as_ref();
    let input = ResolveInput { solver: &ctx.solver, from, request: &request, group, runs: &runs, follows };
    let (resolved, pinned_set, partial) =
        choose_lock(ctx, pass, &plugins, &input, pinned_set, manual_gate.is_some()).await?;
    let ResolvedLock { lock, explanation, solved } = resolved;
    // No lock runs, and the solver found none to start with.
    let Some(lock) = lock else { return Err(PassEnd::no_plan(PlanningError::no_lock(explanation))) };
    let partial_until = manual_gate.and_then(Gate::until).or_else(|| checked.updates.windows.next_opening(now));
    let deciding = deciding_objects(&request, &lock);
    let selection = Selection { explanation, solved, deciding, pinned_set, partial, partial_until };
    Ok(PlanInputs { runs, lock, selection, restores, followed, manual_gate })
}

/// The Plugin whose fields apply, by the Plugins that request one project of the lock.
fn deciding_objects(request: &Request, lock: &Lock) -> BTreeMap<Vec<String>, String> {
    let decided = lock.plugins.iter().filter_map(|plugin| {
        let LockReason::RequestedBy(objects) = &plugin.reason else { return None };
        Some((objects.clone(), request.deciding_object(objects)?.to_owned()))
    });
    decided.collect()
}

/// Records a new user request in the status before the operator acts on it. Returns `true` if it wrote the status.
async fn record_requests(
    ctx: &Context,
    pass: &PassInput<'_>,
    pinned_set: Option<&PinnedSet>,
    restores: &RestoreRequests,
) -> Result<bool, PassError> {
    let PassInput { server, checked, observed, before, now } = *pass;
    if is_restart_requested(server, before) {
        report::record_crashes(ctx, server, before, None).await.map_err(PassError::Report)?;
        return Ok(true);
    }
    if let Some(record) = pinned_set.and_then(|pinned_set| pinned_set.to_record(server, before.last_handled.as_ref())) {
        report::record_handled(ctx, server, before, record).await.map_err(PassError::Report)?;
        return Ok(true);
    }
    if let Some(record) = scale_down::to_record(server, observed, before, now) {
        report::record_handled(ctx, server, before, record).await.map_err(PassError::Report)?;
        return Ok(true);
    }
    record_progress(ctx, server, checked, observed, before, restores, now).await
}

/// All Plugins of the server's namespace. Their label selectors decide later which of them apply to the server.
fn namespace_plugins(ctx: &Context, server: &PaperMCServer) -> Vec<Arc<Plugin>> {
    ctx.plugins.state().into_iter().filter(|plugin| plugin.namespace() == server.namespace()).collect()
}

/// The digest of the stable lock.
fn stable_digest(observed: &Observed) -> Option<&str> {
    observed.stable_lock.as_ref().map(|record| record.files.lock.as_str())
}

/// Fetches the files of the selected lock, and applies the server's objects for it. The template is only rendered: the rollout writes it.
async fn build_target(
    ctx: &Context,
    pass: &PassInput<'_>,
    inputs: &PlanInputs,
    start: ObservedSince,
) -> Result<(Target, Bundle), PassEnd> {
    let PassInput { checked, observed, .. } = *pass;
    let PlanInputs { lock, runs, .. } = inputs;
    // A first start and a rollout in progress are always completed, whatever JARs are beside the plugins.
    let may_wait = runs.lock.is_some() && !finish_rollout::continues_by_itself(observed, false);
    let report = observed.reply.report.as_deref().filter(|_| may_wait);
    let (record, files_problem) = lock_files::fetch_or_keep_running(ctx, checked, lock, runs, report).await?;
    if start.is_too_old(OBSERVATION_MAX_AGE) {
        // The downloads took so long that the observation is too old. The files are present now, so the next pass observes again.
        return Err(PassEnd::AGAIN);
    }
    if ctx.is_terminating(pass.server) {
        // Another pass has found out meanwhile.
        return Err(PassEnd::Done(Outcome::Waiting { until: None }));
    }
    let Some(keys) = apply::ensure_secret(ctx, checked, observed).await? else { return Err(PassEnd::AGAIN) };
    let bundle = render::build(checked, &record.lock, &record.files, &keys.signer, &ctx.config);
    apply::apply_children(ctx, checked, observed, &bundle).await?;
    ctx.caches.locks.put((checked.namespace.clone(), bundle.lock.name_any()), Arc::clone(&record));
    let rendered = apply::render(ctx, checked, observed, &bundle).await?;
    if !scale_down::is_announced(pass.server, observed) && apply::apply_replicas(ctx, checked, observed).await? {
        return Err(PassEnd::AGAIN);
    }
    let changes = diff_locks(observed.stable_lock.as_ref().map(|stable| &stable.lock), &record.lock);
    let template_change = template_change(observed.stable.as_ref().map(|stable| &stable.template), &rendered.template);
    Ok((Target { record, rendered, changes, template_change, files_problem }, bundle))
}

/// Determines the gate, and evaluates everything that can delay the update or allow it outside of windows.
async fn build_plan(
    ctx: &Context,
    pass: &PassInput<'_>,
    inputs: PlanInputs,
    target: Target,
    drain: Drain,
) -> Result<Plan, PassEnd> {
    let PassInput { server, checked, observed, before, now } = *pass;
    let PlanInputs { selection, restores, followed, manual_gate, .. } = inputs;
    let (windows, partial, pinned_set) = (&checked.updates.windows, &selection.partial, selection.pinned_set.as_ref());
    let (digest, handled) = (&target.record.files.lock, before.last_handled.as_ref());
    let approval = ApprovalState::new(server, handled, digest, stable_digest(observed), pinned_set, now);
    let manual_gate = manual_gate.filter(|_| partial.can_open_gate());
    let manual_gate = manual_gate.or_else(|| windows.on_request(approval.apply_since?, true, now));
    let available = before.available_update.as_ref().filter(|update| update.digest == *digest);
    let tries_another = observed.is_rolling_out_other(target.rendered.revision);
    let urgent_gate = gate::urgent_gate(windows, partial, available, tries_another, now);
    let needs_no_leader = urgent_gate.is_some() && partial.urgent().is_some_and(UrgentUpdate::is_independent_of_leader);
    let is_rollback = matches!(pinned_set, Some(PinnedSet::RollbackTo { .. }));
    // A request for one set that was not served in its time overrides nothing afterwards, although its annotation may stay for ever.
    let is_requested = manual_gate.is_some() || is_rollback;
    let is_automatic = checked.updates_automatically() && !is_requested && !needs_no_leader;
    let (goal, pod) = (target.rendered.revision, observed.pod_uid());
    let continued = manual_gate.map(|gate| continue_countdown(gate, goal, &observed.facts, pod, now));
    let gate = gate::gate(checked, continued.or(urgent_gate), now);

    // A requested roll-back is not refused: it waits for the end of the blackout.
    let set_requested_at = approval.apply_since.filter(|_| !is_rollback);
    let apply_request = ApplyRequest {
        requested_at: manual_gate.and_then(Gate::opened_at),
        rejected_at: gate::refused_by_blackout(server, handled, set_requested_at, windows, now),
    };
    let states = ConstraintStates::new(approval, apply_request, drain);
    let agent_is_too_old = request::is_too_old(ctx, observed);
    let tasks = OtherTasks {
        restarts: ScheduledRestarts::new(checked, observed.pod.as_ref(), now),
        restart_request: RestartRequest::new(server, checked, observed.pod.as_ref(), now),
        scale_down: scale_down::scale_down(server, checked, observed, before),
        backups: OnlineBackups::new(server, checked, observed, before, agent_is_too_old, now),
        restores,
        next_check: release_check::next_check(checked, now),
    };
    let mut plan = Plan::new(pass, target, selection, states, tasks, gate, ctx.config.start_timeout());
    let followed = followed.as_ref();
    constraints::evaluate(&mut plan, &ConstraintInput { pass: *pass, followed, is_automatic });
    image_pull::pull_images(ctx, checked, observed, &mut plan, now).await?;
    plan.apply_opportunity(checked, now);
    Ok(plan)
}

/// Ends the pass if the server is to be stopped for crashes, after it recorded that. The next pass deletes the pod, based on its own
/// observation.
async fn stop_for_crashes(ctx: &Context, pass: &PassInput<'_>, plan: &Plan, step: Step) -> Result<(), PassEnd> {
    let PassInput { server, checked, observed, before, now } = *pass;
    let Some(stopped) = plan.stop_for_crashes(server, checked, observed, step, now) else { return Ok(()) };
    report::record_crashes(ctx, server, before, Some(stopped)).await.map_err(PassError::Report)?;
    Err(PassEnd::AGAIN)
}

/// Carries out the step, and applies the objects that depend on it.
async fn act(
    ctx: &Context,
    pass: &PassInput<'_>,
    plan: &Plan,
    step: Step,
    bundle: &Bundle,
    pending: &PendingPass<'_>,
    decided: Stopwatch,
) -> Result<StepOutcome, PassEnd> {
    let PassInput { checked, observed, .. } = *pass;
    apply::apply_children_before(step, ctx, checked, bundle, decided.started_at()).await?;
    if decided.is_older_than(DECISION_VALID_FOR) {
        // A budget written from an old decision could let a node drain evict the pod.
        return Err(PassEnd::AGAIN);
    }
    apply::apply_budget(ctx, checked, observed, plan.constraints.drain.budget(step)).await?;
    let executor = StepExecutor::new(ctx, checked, observed, plan, pending, decided);
    Ok(execute_step(&executor, step).await?)
}
