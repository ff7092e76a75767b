//! Edge (writes). Runs one reconcile pass over one server: observe, check, plan, apply, report. Each stage has a submodule of its own.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crds::{PaperMCServer, PaperMCServerStatus, Plugin};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use kube::runtime::controller::Action;
use resolver::model::lock::Lock;
use scheduler::maintenance::Gate;
use scheduler::rollout::{DECISION_VALID_FOR, Step};
use tracing::{Instrument as _, info, info_span, warn};

use crate::caches::Rendered;
use crate::clock::{Stopwatch, now};
use crate::context::Context;
use crate::error_chain::ErrorChain;
use crate::priority::PendingPass;
use crate::requeue::{Outcome, RetryBlame, requeue_action};
use crate::server::plan::gate;
use crate::telemetry::metrics::{FetchLabels, PassLabels};
use error::PassError;

pub(crate) mod act;
pub(crate) mod apply;
pub(crate) mod approval;
pub(crate) mod artifacts;
pub(crate) mod backups;
pub(crate) mod changes;
pub(crate) mod check;
pub(crate) mod crash_loop;
pub(crate) mod drain;
pub(crate) mod error;
mod execute;
mod finish_rollout;
pub(crate) mod follows;
pub(crate) mod image_contract;
mod image_pull;
pub(crate) mod in_game_stop;
mod last_status;
pub(crate) mod model;
mod next_step;
pub(crate) mod next_window;
pub(crate) mod observe;
pub(crate) mod online_backup;
mod opportunistic;
pub(crate) mod partial;
mod peers;
mod pinned_catalog;
pub(crate) mod pinned_set;
pub(crate) mod plan;
mod records;
pub(crate) mod render;
pub(crate) mod report;
pub(crate) mod requested_restore;
mod requeue;
mod resolve;
pub(crate) mod scheduled_restart;
mod seed_claim;
mod unmanaged_jars;
mod update_slot;
pub(crate) mod verify;
mod wake_at;
mod window_barrier;

use act::StepExecutor;
use approval::ApprovalState;
use check::join_messages;
use crash_loop::stopped::{is_restart_requested, scaled_down_if_stopped};
use drain::Drain;
use execute::execute_step;
use last_status::status_before;
use online_backup::{OnlineBackups, request};
use partial::PartialSelection;
use partial::urgent::UrgentUpdate;
use pinned_catalog::PinnedInputs;
use pinned_set::PinnedSet;
use plan::{Plan, RunningState};
use report::PlanningError;
use report::context::PassReport;
use requested_restore::RestoreRequests;
use resolve::ResolveInput;
use wake_at::set_alarm;

/// Maximum age of an observation on which a step is decided. It is longer than the timeout for an agent that accepts a connection and never
/// answers. Otherwise every observation of such a server would be too old, and the pass would repeat for ever.
const OBSERVATION_MAX_AGE: SignedDuration = SignedDuration::from_secs(20);

/// Status message for a server whose EULA is not accepted.
const NO_EULA: &str =
    "Minecraft's EULA is not accepted: read https://aka.ms/MinecraftEULA and set `spec.eula: Accepted`";

/// Entry point for kube's runtime: runs one pass and returns when to requeue.
pub(crate) async fn reconcile(
    server: Arc<PaperMCServer>,
    ctx: Arc<Context>,
) -> Result<Action, std::convert::Infallible> {
    Ok(requeue_action(run_pass(server, ctx).await, now()))
}

/// Runs one pass and records its outcome in metrics and status.
pub(crate) async fn run_pass(server: Arc<PaperMCServer>, ctx: Arc<Context>) -> Outcome {
    let namespace = server.namespace().unwrap_or_default();
    let name = server.name_any();
    let span = info_span!("server", ns = namespace, name, generation = server.metadata.generation);
    let key = (namespace.clone(), name.clone());
    let started = std::time::Instant::now();
    let outcome = async {
        if server.metadata.deletion_timestamp.is_some() {
            // The garbage collector deletes the children with their owner. The operator has no finalizer, so there is nothing to wait for.
            evict(&ctx, &namespace, &name, server.uid().as_deref());
            return Outcome::Waiting { until: None };
        }
        // Boxed because the future of a pass is large, and a thousand of them may wait at once.
        match Box::pin(observe_and_reconcile(&server, &ctx, &ctx.priority.enter())).await {
            Ok(outcome) => {
                ctx.caches.attempts.remove(&key);
                outcome
            }
            Err(PassError::Act { step, source }) if source.is_stale() => {
                info!(step, why = %ErrorChain(&source), "the observation is outdated; the server is observed again");
                Outcome::Acted
            }
            Err(error) if error.is_deposed() => {
                warn!(error = %ErrorChain(&error), "this process is no longer the leader");
                Outcome::Waiting { until: None }
            }
            Err(error) => {
                if error.is_namespace_terminating() {
                    // The namespace is being deleted, and the server with it.
                    return Outcome::Waiting { until: None };
                }
                ctx.catalog.requests.record_unknown(&namespace, &name);
                let attempt = ctx.caches.attempts.get(&key).unwrap_or(0);
                ctx.caches.attempts.put(key.clone(), attempt.saturating_add(1));
                update_slot::record_failure(&ctx, &key, attempt);
                let blame = error.retry_blame();
                if let PassError::Files(artifacts::FilesError::Fetch { file: _, source }) = &error {
                    ctx.metrics.fetch_failures.get_or_create(&FetchLabels { category: source.category() }).inc();
                }
                let why = ErrorChain(&error).to_string();
                warn!(attempt, ?blame, error = why, "the pass failed");
                report::report_failure(&ctx, &server, &why, now()).await;
                Outcome::Failed { blame, attempt }
            }
        }
    }
    .instrument(span)
    .await;
    if server.metadata.deletion_timestamp.is_none() {
        request::record_oldest_backup(&ctx, &key, &server);
        report::offer_notifications(&ctx, &server);
    }
    peers::finish_pass(&ctx, &namespace);
    ctx.metrics.reconcile_total.get_or_create(&PassLabels { controller: "server", outcome: outcome.name() }).inc();
    ctx.metrics.reconcile_seconds.observe(started.elapsed().as_secs_f64());
    let held = ctx.store.counts();
    ctx.metrics.store_downloads.inner().store(held.downloads, Ordering::Relaxed);
    ctx.metrics.store_hits.inner().store(held.hits, Ordering::Relaxed);
    outcome
}

/// Drops all cached state of a deleted server. Usually the object is already deleted, and the deletion of its children triggers this call.
pub(crate) fn evict(ctx: &Context, namespace: &str, name: &str, uid: Option<&str>) {
    ctx.caches.evict(namespace, name);
    ctx.solver.evict(&format!("{namespace}/{name}"));
    let key = (namespace.to_owned(), name.to_owned());
    ctx.notifier.remove_server(&key);
    peers::remove(ctx, namespace, name);
    update_slot::evict(ctx, &key);
    follows::followed_server::requeue_followers(ctx, namespace, name);
    if let Some(uid) = uid {
        ctx.events.evict(uid);
    }
}

async fn observe_and_reconcile(
    server: &PaperMCServer,
    ctx: &Context,
    pending: &PendingPass<'_>,
) -> Result<Outcome, PassError> {
    let since_observation = Stopwatch::start();
    let at = since_observation.started_at();
    let observed = observe::observe(server, ctx, at).await?;
    let has_to_continue = finish_rollout::has_to_continue(&observed, &status_before(ctx, server));
    let keeps_update_slot = update_slot::is_needed(&observed, at);
    let ended = match Box::pin(reconcile_observed(server, ctx, observed, pending, since_observation)).await {
        // An error that the next attempt may clear does not end a countdown.
        Err(error) if error.is_before_step() && (has_to_continue || error.retry_blame() == RetryBlame::User) => {
            Box::pin(finish_rollout::finish_rollout_after_error(ctx, server, error, pending)).await
        }
        ended => ended,
    };
    if !keeps_update_slot && ended.as_ref().is_err_and(PassError::is_before_step) {
        update_slot::release(ctx, server);
    }
    ended
}

/// Runs the pass from the observation to the next step, or to the reason why no plan is possible.
async fn reconcile_observed(
    server: &PaperMCServer,
    ctx: &Context,
    observed: observe::Observed,
    pending: &PendingPass<'_>,
    since_observation: Stopwatch,
) -> Result<Outcome, PassError> {
    let report_error =
        |error| Box::pin(handle_planning_error(ctx, server, &observed, error, pending, since_observation));
    let (checked, drain) = match check_spec_and_node(server, ctx, &observed).await? {
        Ok(read) => read,
        Err(error) => return handle_unusable_spec(ctx, server, report_error(error)).await,
    };
    if let Some(until) = plan::too_new_until(server, &observed, since_observation.started_at()) {
        return Ok(Outcome::InDisruption { until: Some(until) });
    }
    // The spec has changed meanwhile, or the clock was set back, so the server is observed again.
    let Some(start) = window_barrier::wait_at_barrier(ctx, server, &checked, &observed, since_observation).await else {
        return Ok(Outcome::Acted);
    };
    let at = start.decided.started_at();
    let plugins = namespace_plugins(ctx, server);
    let runs = RunningState::from_observed(&observed);
    let before = status_before(ctx, server);
    let manual_gate = gate::manual_gate(server, before.last_handled.as_ref(), &checked.windows, at);
    let is_whole_manual = manual_gate.is_some() && partial::requested_scope(server).is_none();
    let from = PinnedInputs::select(ctx, &checked, &observed, at);
    let read = (&ctx.facts, from.catalog());
    let request = match plan::build_request(server, &plugins, &runs, &ctx.config, read, is_whole_manual) {
        Ok(request) => request,
        Err(message) => return handle_unusable_spec(ctx, server, report_error(PlanningError::Spec(message))).await,
    };
    let together = peers::join(ctx, &checked.namespace, &checked.name, &request);
    let restores = RestoreRequests::new(server, &checked, &observed, &before, at);
    let rollout_continues = finish_rollout::continues_by_itself(&observed, restores.is_open());
    if from.snapshot.is_none() && !rollout_continues {
        return report_error(PlanningError::NoCatalog).await;
    }
    if !rollout_continues && peers::has_to_wait(ctx, &checked.namespace, &checked.name, &request) {
        // All servers are observed right after the operator starts. A server that was solved without its peers might get versions that they
        // cannot use.
        return Ok(Outcome::InDisruption { until: None });
    }
    let stable_digest = observed.stable_lock.as_ref().map(|record| record.files.lock.as_str());
    let pinned_set = PinnedSet::from_server(server, &before, stable_digest, at);
    if record_requests(ctx, server, &checked, (&observed, &before), pinned_set.as_ref(), &restores, at).await? {
        return Ok(Outcome::Acted);
    }
    let followed = follows::followed_server::observe(ctx, &checked, at).await.map_err(PassError::Follow)?;
    let (solver, follows) = (&ctx.solver, followed.as_ref());
    let input = ResolveInput { solver, from: &from, request: &request, group: together, runs: &runs, follows };
    let (resolved, pinned_set, partial) =
        choose_lock(ctx, server, &checked, &plugins, &input, pinned_set, manual_gate.is_some()).await?;
    // No lock runs, and the solver found none to start with.
    let Some(lock) = &resolved.lock else { return report_error(PlanningError::no_lock(resolved.explanation)).await };

    let (goal, files_problem) = fetch_files(ctx, &checked, lock, &runs, &observed).await?;
    if start.is_too_old(OBSERVATION_MAX_AGE) {
        // The downloads took so long that the observation is too old. The files are present now, so the next pass observes again.
        return Ok(Outcome::Acted);
    }
    let applied = apply_objects(ctx, &checked, &goal, &observed).await?;
    let Some((bundle, rendered)) = applied else { return Ok(Outcome::Acted) };

    let handled = before.last_handled.as_ref();
    let approval = ApprovalState::new(server, handled, &goal.files.lock, stable_digest, pinned_set.as_ref(), at);
    let partial_until = manual_gate.and_then(Gate::until).or_else(|| checked.windows.next_opening(at));
    let manual_gate = manual_gate.filter(|_| partial.can_open_gate());
    let manual_gate = manual_gate.or_else(|| checked.windows.on_request(approval.apply_since?, true, at));
    let available = before.available_update.as_ref().filter(|update| update.digest == goal.files.lock);
    let tries_another = Plan::is_rolling_out_other(&observed, rendered.revision);
    let urgent_gate = gate::urgent_gate(&checked.windows, &partial, available, tries_another, at);
    let passes = urgent_gate.is_some() && partial.urgent().is_some_and(UrgentUpdate::is_independent_of_leader);
    let waits = checked.updates_automatically() && manual_gate.is_none() && approval.apply_since.is_none() && !passes;
    let (gate, follows) = (gate::gate(&checked, &approval, manual_gate.or(urgent_gate), at), follows.filter(|_| waits));
    let mut plan =
        Plan::new(&checked, &observed, resolved, goal, rendered, gate, approval, ctx.config.start_timeout(), at)
            .with_restores(restores)
            .with_partial(partial, partial_until)
            .with_drain(drain);
    (plan.files_problem, plan.pinned_set) = (files_problem, pinned_set);
    plan.rejected_at = gate::refused_by_blackout(server, handled, &plan.approval, &checked.windows, at);
    plan.backups = OnlineBackups::new(server, &checked, &observed, &before, request::is_too_old(ctx, &observed), at);
    plan.hold(&observed, &before, follows, waits, at);
    image_pull::pull_images(ctx, &checked, &observed, &mut plan, at).await?;
    plan.apply_opportunity(&checked, at);
    set_alarm(ctx, server, &plan, at).await;
    let step = next_step::next_step(ctx, &checked, &observed, &mut plan, manual_gate.is_some(), at).await;
    // A pass that waited at the window barrier may hold an observation that is too old for the step. Its plan may also use a catalog that
    // was pinned for another goal.
    if !start.allows(step) || !from.update_pin(ctx, &checked, &plan, step) {
        ctx.requeue(&checked.namespace, &checked.name);
        return Ok(Outcome::Acted);
    }
    if let Some(stopped) = plan.stop_for_crashes(server, &checked, &observed, step, at) {
        // The next pass deletes the pod, based on its own observation.
        report::record_crashes(ctx, server, &before, Some(stopped)).await.map_err(PassError::Report)?;
        return Ok(Outcome::Acted);
    }
    apply::apply_children_before(step, ctx, &checked, &bundle).await?;
    if start.decided.is_older_than(DECISION_VALID_FOR) {
        // A budget written from an old decision could let a node drain evict the pod.
        return Ok(Outcome::Acted);
    }
    apply::apply_budget(ctx, &checked, plan.drain.budget(step)).await?;
    let executor = StepExecutor::new(ctx, &checked, &observed, &plan, pending, start.decided);
    let done = execute_step(&executor, &plan, step).await?;
    request::request_backup(ctx, &observed, &mut plan, step).await;
    report::report(ctx, server, &checked, &PassReport { observed: &observed, plan: &plan, step, done: &done, now: at })
        .await
        .map_err(PassError::Report)?;
    // Objects are cleaned up only when no rollout is in progress. During an update the next step may refer to an object that nothing refers
    // to now.
    if step == Step::UpToDate {
        apply::clean_up(ctx, &checked, &observed, &bundle, plan.goal.revision, &status_before(ctx, server).history)
            .await?;
    }
    Ok(requeue::next_outcome(&ctx.notifier.channels_of(server), &plan, &observed, (step, &done), at))
}

/// Returns the checked spec and the state of the server's node, or the reason why no plan can begin.
async fn check_spec_and_node(
    server: &PaperMCServer,
    ctx: &Context,
    observed: &observe::Observed,
) -> Result<Result<(check::CheckedServer, Drain), PlanningError>, PassError> {
    let checked = match check::check(server) {
        Ok(checked) if observed.facts.settled.is_some() => checked.after_first_start(),
        Ok(checked) => checked,
        Err(violations) => return Ok(Err(PlanningError::Spec(join_messages(&violations)))),
    };
    let checked = scaled_down_if_stopped(observed.adapt_to_pod(checked), &status_before(ctx, server), observed);
    if !checked.eula {
        return Ok(Err(PlanningError::Eula(NO_EULA.to_owned())));
    }
    if let Some(message) = seed_claim::missing_claim(ctx, &checked, observed).await? {
        return Ok(Err(PlanningError::NoClaim(message)));
    }
    let drain = drain::observe(ctx, &checked, observed);
    Ok(drain.map(|drain| (checked, drain)).map_err(|violation| PlanningError::Spec(violation.to_string())))
}

/// Records a new user request in the status before the operator acts on it. Returns `true` if it wrote the status.
async fn record_requests(
    ctx: &Context,
    server: &PaperMCServer,
    checked: &check::CheckedServer,
    (observed, before): (&observe::Observed, &PaperMCServerStatus),
    pinned_set: Option<&PinnedSet>,
    restores: &RestoreRequests,
    at: Timestamp,
) -> Result<bool, PassError> {
    if is_restart_requested(server, before) {
        report::record_crashes(ctx, server, before, None).await.map_err(PassError::Report)?;
        return Ok(true);
    }
    if let Some(record) = pinned_set.and_then(|pinned_set| pinned_set.to_record(server, before.last_handled.as_ref())) {
        report::record_handled(ctx, server, before, record).await.map_err(PassError::Report)?;
        return Ok(true);
    }
    requested_restore::write_request::record_progress(ctx, server, checked, observed, before, restores, at).await
}

/// Selects the lock to run: the solved one, the pinned set that a user requested, or a partial update.
async fn choose_lock(
    ctx: &Context,
    server: &PaperMCServer,
    checked: &check::CheckedServer,
    plugins: &[Arc<Plugin>],
    input: &ResolveInput<'_>,
    pinned_set: Option<PinnedSet>,
    is_manual: bool,
) -> Result<(plan::ResolvedLock, Option<PinnedSet>, PartialSelection), PassError> {
    let mut resolved = plan::resolved_lock(input.solve_whole().await?, input.runs);
    if let Some(pinned_set) = pinned_set {
        let pinned_set = resolve::apply_pinned_set(ctx, checked, pinned_set, &mut resolved, input.runs).await?;
        let requested_scope = partial::requested_scope(server).filter(|_| is_manual);
        let partial = input.solve_partial(requested_scope, Some(&pinned_set), &mut resolved).await?;
        return Ok((resolved, Some(pinned_set), partial));
    }
    let partial = if is_manual {
        input.solve_partial(partial::requested_scope(server), None, &mut resolved).await?
    } else {
        let is_requested = |whole: &Lock| approval::is_requested(server, whole.digest().as_str());
        let waits = !resolved.lock.as_ref().is_some_and(is_requested) && input.whole_has_to_wait(&resolved);
        let is_meant = |whole: &Lock| !waits && approval::is_approved_or_requested(server, whole.digest().as_str());
        input.solve_urgent(checked, plugins, waits, is_meant, &mut resolved).await?
    };
    Ok((resolved, None, partial))
}

/// All Plugins of the server's namespace. Their label selectors decide later which of them apply to the server.
fn namespace_plugins(ctx: &Context, server: &PaperMCServer) -> Vec<Arc<Plugin>> {
    ctx.plugins.state().into_iter().filter(|plugin| plugin.namespace() == server.namespace()).collect()
}

/// Applies the server's objects for the goal and returns them with the template as the API server defaults it. The template itself is
/// written by the rollout only. `None` if the replicas were changed, and the server has to be observed again.
async fn apply_objects(
    ctx: &Context,
    server: &check::CheckedServer,
    goal: &crate::server::model::records::LockRecord,
    observed: &observe::Observed,
) -> Result<Option<(render::Bundle, Rendered)>, PassError> {
    apply::ensure_secret(ctx, server, observed).await?;
    let bundle = render::build(server, &goal.lock, &goal.files, &ctx.config);
    apply::apply_children(ctx, server, &bundle).await?;
    let rendered = apply::render(ctx, server, &bundle.template).await?;
    let is_scaled = apply::apply_replicas(ctx, server, observed).await?;
    Ok((!is_scaled).then_some((bundle, rendered)))
}

/// Fetches the files of the lock. If that fails and a lock runs already, the running lock stays the goal, and the reason is reported. A
/// release that is broken upstream must not stop the verification of a rollout or the end of a roll-back.
async fn fetch_files(
    ctx: &Context,
    server: &check::CheckedServer,
    lock: &Lock,
    runs: &RunningState,
    observed: &observe::Observed,
) -> Result<(Arc<crate::server::model::records::LockRecord>, Option<String>), PassError> {
    if let Some(running) = runs.record_of(lock) {
        // All files of the running lock are on the volume. An unmanaged JAR cannot block it either, because the server already runs beside
        // that JAR.
        artifacts::register_files(ctx, running);
        return Ok((running.clone(), None));
    }
    let fetched = artifacts::fetch_lock_files(ctx, &server.namespace, &server.name, lock, runs.lock.as_deref()).await;
    // A first start and a rollout in progress are always completed.
    let may_wait = runs.lock.is_some() && !finish_rollout::continues_by_itself(observed, false);
    let fetched = fetched.and_then(|record| match observed.report.as_deref().filter(|_| may_wait) {
        Some(report) => artifacts::check_unmanaged_conflicts(record, report),
        None => Ok(record),
    });
    match (fetched, &runs.lock) {
        (Ok(record), _) => Ok((record, None)),
        (Err(error), Some(running)) => {
            if let artifacts::FilesError::Fetch { file: _, source } = &error {
                ctx.metrics.fetch_failures.get_or_create(&FetchLabels { category: source.category() }).inc();
            }
            let why = ErrorChain(&error).to_string();
            warn!(error = why, "could not provide the newer version set; the running set stays");
            Ok((running.clone(), Some(why)))
        }
        (Err(error), None) => Err(error.into()),
    }
}

/// Handles a spec that yields no request. The server leaves its solve group.
async fn handle_unusable_spec(
    ctx: &Context,
    server: &PaperMCServer,
    report_error: impl Future<Output = Result<Outcome, PassError>>,
) -> Result<Outcome, PassError> {
    peers::leave(ctx, &server.namespace().unwrap_or_default(), &server.name_any());
    report_error.await
}

/// Continues the rollout in progress if the problem allows that. Otherwise it reports the problem.
async fn handle_planning_error(
    ctx: &Context,
    server: &PaperMCServer,
    observed: &observe::Observed,
    error: PlanningError,
    pending: &PendingPass<'_>,
    since_observation: Stopwatch,
) -> Result<Outcome, PassError> {
    if error.allows_finishing_rollout()
        && let Some(outcome) =
            finish_rollout::continue_rollout(ctx, server, observed, error.to_pass_blocked(), pending, since_observation)
                .await?
    {
        return Ok(outcome);
    }
    if !error.is_transient() {
        update_slot::release(ctx, server);
    }
    report::report_planning_error(ctx, server, observed, &error, since_observation.started_at())
        .await
        .map_err(PassError::Report)?;
    Ok(error.outcome())
}
