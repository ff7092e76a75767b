//! Edge (writes). Runs one reconcile pass over one server: observe, check, plan, apply, report. Each stage has a submodule of its own.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crds::PaperMCServer;
use kube::ResourceExt;
use kube::runtime::controller::Action;
use tracing::{Instrument as _, info, info_span, warn};

use crate::caches::Key;
use crate::clock::{Stopwatch, now};
use crate::context::Context;
use crate::error_chain::ErrorChain;
use crate::priority::PendingPass;
use crate::requeue::{Outcome, RetryBlame, requeue_action};
use crate::telemetry::metrics::PassLabels;
use error::PassError;

pub(crate) mod act;
pub(crate) mod agent_image;
pub(crate) mod apply;
pub(crate) mod approval;
pub(crate) mod backups;
pub(crate) mod changes;
mod clean_up;
pub(crate) mod constraints;
pub(crate) mod crash_loop;
pub(crate) mod drain;
pub(crate) mod error;
mod execute;
mod finish_rollout;
pub(crate) mod follows;
mod hang;
mod image_pull;
pub(crate) mod in_game_stop;
mod last_status;
pub(crate) mod lock_files;
pub(crate) mod model;
mod named_secrets;
mod next_step;
pub(crate) mod next_window;
pub(crate) mod observe;
pub(crate) mod online_backup;
mod opportunistic;
pub(crate) mod partial;
mod peers;
mod pinned_catalog;
pub(crate) mod pinned_set;
mod pipeline;
pub(crate) mod plan;
mod records;
mod release_check;
pub(crate) mod render;
pub(crate) mod report;
mod request_time;
mod requested_restart;
pub(crate) mod requested_restore;
mod requeue;
mod resolve;
pub(crate) mod scale_down;
pub(crate) mod scheduled_restart;
mod seed_claim;
pub(crate) mod server_keys;
pub(crate) mod template_variable;
#[cfg(test)]
pub(crate) mod test_server;
mod unmanaged_jars;
mod update_slot;
pub(crate) mod verify;
mod wake_at;
mod window_barrier;

use last_status::status_before;
use online_backup::request;
use pipeline::PassEnd;
use report::PlanningError;

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
        if ctx.is_terminating(&server) {
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
            Err(error) if error.is_namespace_terminating() => {
                ctx.record_terminating(&server);
                Outcome::Waiting { until: None }
            }
            Err(error) => report_failed_pass(&ctx, &server, &key, &error).await,
        }
    }
    .instrument(span)
    .await;
    if server.metadata.deletion_timestamp.is_none() {
        request::record_oldest_backup(&ctx, &key, &server);
        report::record_silent_servers(&ctx, &key, &server);
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

/// Records and reports a pass that failed.
async fn report_failed_pass(ctx: &Context, server: &PaperMCServer, key: &Key, error: &PassError) -> Outcome {
    ctx.catalog.requests.record_unknown(&key.0, &key.1);
    let attempt = ctx.caches.attempts.get(key).unwrap_or(0);
    ctx.caches.attempts.put(key.clone(), attempt.saturating_add(1));
    update_slot::record_failure(ctx, key, attempt);
    let blame = error.retry_blame();
    if let PassError::Files(error) = error {
        error.record(&ctx.metrics);
    }
    let why = ErrorChain(error).to_string();
    warn!(attempt, ?blame, error = why, "the pass failed");
    report::report_failure(ctx, server, &why, error.name_conflict(), now()).await;
    Outcome::Failed { blame, attempt }
}

/// Drops all cached state of a deleted server. Usually the object is already deleted, and the deletion of its children triggers this call.
pub(crate) fn evict(ctx: &Context, namespace: &str, name: &str, uid: Option<&str>) {
    ctx.caches.evict(namespace, name);
    ctx.solver.evict(&format!("{namespace}/{name}"));
    let key = (namespace.to_owned(), name.to_owned());
    ctx.catalog.evict_refreshes(&key);
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

/// Runs the pipeline. If no plan is possible, the problem is reported.
async fn reconcile_observed(
    server: &PaperMCServer,
    ctx: &Context,
    observed: observe::Observed,
    pending: &PendingPass<'_>,
    since_observation: Stopwatch,
) -> Result<Outcome, PassError> {
    let error = match Box::pin(pipeline::reconcile_server(server, ctx, &observed, pending, since_observation)).await {
        Ok(outcome) | Err(PassEnd::Done(outcome)) => return Ok(outcome),
        Err(PassEnd::Failed(error)) => return Err(error),
        Err(PassEnd::NoPlan(error)) => *error,
    };
    if let PlanningError::Spec(_)
    | PlanningError::Eula(_)
    | PlanningError::NoClaim(_)
    | PlanningError::SecretNotAllowed(_) = error
    {
        // A server without a request is in no solve group.
        peers::leave(ctx, &server.namespace().unwrap_or_default(), &server.name_any());
    }
    Box::pin(handle_planning_error(ctx, server, &observed, error, pending, since_observation)).await
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
    if !error.is_transient() && !update_slot::is_needed(observed, since_observation.started_at()) {
        update_slot::release(ctx, server);
    }
    report::report_planning_error(ctx, server, observed, &error, since_observation.started_at())
        .await
        .map_err(PassError::Report)?;
    Ok(error.outcome())
}
