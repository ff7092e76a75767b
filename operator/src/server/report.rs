//! Edge (writes). Reports observations and actions as status, conditions and Events. It computes the status first, writes it only when it
//! differs, and decides nothing.

use std::sync::Arc;

use crds::paper_mc_server::{AnswerBasis, CrashStatus, HandledRequests, LastUpdate};
use crds::{PaperMCServer, PaperMCServerStatus};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use kube::api::Api;
use resolver::explanation::Explanation;
use serde_json::{Value, json};

use super::act::outcome::{MarkedStable, StepOutcome};
use super::crash_loop::CRASH_LOOP;
use super::follows::followed_server::requeue_followers;
use super::observe::Observed;
use super::plan::{self, PassInput, RunningState};
use crate::caches::Key;
use crate::context::Context;
use crate::error_chain::cut;
use crate::k8s::events::EventText;
use crate::k8s::ownership::NameConflict;
use crate::k8s::server_side_apply::FieldManager;
use crate::requeue::{Outcome, RetryBlame};
use crate::telemetry::metrics::{Metrics, StopLabels};

mod agent_rejection;
mod backup;
mod backup_schedule;
mod conditions;
pub(crate) mod context;
mod displaced_jars;
pub(crate) mod downtime_estimate;
mod drift;
mod events;
mod failure;
pub(crate) mod format;
mod last_stop;
mod lock_rejection;
mod manual_recovery;
pub(crate) mod notifications;
pub(crate) mod pending;
mod plugin_data;
mod plugins_enabled;
mod refusal;
pub(crate) mod responsiveness;
mod seed_volume;
mod short_reason;
mod status;
mod stop_times;
mod update_blocked;
mod volume_rejected;
mod waiting;
mod world_damage;

use super::last_status::{key_of, status_before};
use context::{MAX_MESSAGE_LENGTH, PassReport, condition, explanation_message};
use notifications::{NotificationInput, delivery_errors, next_notifications};

/// Why a pass ended before a plan was possible. The running server is left unchanged.
#[derive(Debug, Clone)]
pub(crate) enum PlanningError {
    /// The spec is invalid. Holds the message.
    Spec(String),
    /// The EULA is not accepted.
    Eula(String),
    /// No upstream has answered yet.
    NoCatalog,
    /// The catalog is not sufficient for an answer: a page has not been read, or could not be.
    Unanswerable(Explanation),
    /// The claim of the backup for a new volume does not exist. Holds the message.
    NoClaim(String),
    /// A Secret that the spec names is missing, or does not allow its use. Holds the message.
    SecretNotAllowed(String),
    /// No lock satisfies the request, and no lock runs.
    Unsolvable(Explanation),
}

impl PlanningError {
    /// An explanation without a lock.
    pub(crate) fn no_lock(explanation: Explanation) -> Self {
        if plan::is_impossible(&explanation) { Self::Unsolvable(explanation) } else { Self::Unanswerable(explanation) }
    }

    pub(crate) fn outcome(&self) -> Outcome {
        match self {
            Self::Spec(_) | Self::Eula(_) => Outcome::Failed { blame: RetryBlame::User, attempt: 0 },
            // A changed catalog wakes all servers. Claims and Secrets are not watched, so a missing one is checked at the resync interval of
            // a server at rest.
            Self::NoCatalog
            | Self::NoClaim(_)
            | Self::SecretNotAllowed(_)
            | Self::Unanswerable(_)
            | Self::Unsolvable(_) => Outcome::Waiting { until: None },
        }
    }

    /// Whether a rollout in progress is finished despite the error. Without the accepted EULA it is not, because a roll-back starts a
    /// server. It is not while metadata is still being read either, because a temporary gap reverts nothing that has begun.
    pub(crate) fn allows_finishing_rollout(&self) -> bool {
        match self {
            Self::Spec(_) | Self::NoClaim(_) | Self::SecretNotAllowed(_) | Self::Unsolvable(_) => true,
            Self::Eula(_) | Self::NoCatalog | Self::Unanswerable(_) => false,
        }
    }

    /// The error as it is reported.
    pub(crate) fn to_pass_blocked(&self) -> PassBlocked {
        let (reason, message) = match self {
            Self::Spec(message) => ("SpecInvalid", message.clone()),
            Self::Eula(message) => ("EulaNotAccepted", message.clone()),
            Self::NoClaim(message) => ("ClaimMissing", message.clone()),
            Self::SecretNotAllowed(message) => ("SecretNotAllowed", message.clone()),
            Self::NoCatalog => ("CatalogNotRead", "The upstreams are being read for the first time.".to_owned()),
            Self::Unanswerable(explanation) => ("MetadataMissing", explanation_message(explanation)),
            Self::Unsolvable(explanation) => ("NoSolution", explanation_message(explanation)),
        };
        PassBlocked { condition_type: "Resolved", reason, message, needs_event: !self.is_transient() }
    }

    /// Whether the missing data is being read already. All other errors cause an Event and release the update slot.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Spec(_) | Self::Eula(_) | Self::NoClaim(_) | Self::SecretNotAllowed(_) | Self::Unsolvable(_) => false,
            Self::NoCatalog | Self::Unanswerable(_) => true,
        }
    }
}

/// The problem that prevents a plan, as it is reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PassBlocked {
    /// The type of the condition.
    condition_type: &'static str,
    reason: &'static str,
    message: String,
    needs_event: bool,
}

impl PassBlocked {
    /// A pass that failed midway, with its message.
    pub(crate) fn failure(why: &str) -> Self {
        Self { condition_type: "Reconciled", reason: "Failed", message: why.to_owned(), needs_event: false }
    }

    fn condition(&self, server: &PaperMCServer, now: Timestamp, before: &[Condition]) -> Condition {
        condition(
            server,
            self.condition_type,
            Some(false),
            self.reason,
            cut(&self.message, MAX_MESSAGE_LENGTH),
            now,
            before,
        )
    }
}

/// Reports a complete pass.
pub(crate) async fn report(ctx: &Context, report: &PassReport<'_>) -> Result<(), kube::Error> {
    let PassInput { server, checked, before, .. } = report.pass;
    let mut status = status::build_status(server, checked, report, before);
    status.basis = answer_basis(ctx, report.pass.observed);
    status.conditions = conditions::build_conditions(report);
    let input = NotificationInput::new(checked, report, before, &status);
    let channels = ctx.notifier.channels_of(server);
    status.notices = next_notifications(&before.notices, &channels, &input, report.pass.now);
    let channel_errors = ctx.notifier.check_channels(&key_of(server), &channels, report.pass.now).await;
    let mut events = events::build_events(checked, report, before);
    if let Some((reason, message)) = delivery_errors(&channel_errors, &status.notices, report.pass.now) {
        events.push(EventText { reason: "NotifyFailed", warning: true, text: message.clone() });
        let failed =
            condition(server, "NotifyFailed", Some(true), reason, message, report.pass.now, &before.conditions);
        status.conditions.push(failed);
    }
    record_stop_metrics(&ctx.metrics, report, before);
    ctx.events.publish_all(server, &events, report.pass.now).await;
    write(ctx, server, before, status).await
}

/// Reports why no plan was possible.
pub(crate) async fn report_planning_error(
    ctx: &Context,
    server: &PaperMCServer,
    observed: &Observed,
    error: &PlanningError,
    now: Timestamp,
) -> Result<(), kube::Error> {
    let before = status_before(ctx, server);
    if matches!(error, PlanningError::NoCatalog) && before.conditions.iter().any(|old| old.type_ == "Resolved") {
        // The answer of the process before stays until the upstreams are read.
        return Ok(());
    }
    let mut status = (*before).clone();
    status.observed_generation = server.metadata.generation;
    status.rollout = status::rollout_facts(&observed.facts).or(status.rollout);
    let input = NotificationInput::from_rollout_end(observed, &before);
    status.notices = next_notifications(&before.notices, &ctx.notifier.channels_of(server), &input, now);
    status.basis = answer_basis(ctx, observed);
    let why = error.to_pass_blocked();
    let is_rolling_out = observed.is_rollout_in_progress();
    status.conditions = conditions::build_blocked(server, &why, is_rolling_out, now, &before.conditions);
    publish_event(ctx, server, why, now).await;
    write(ctx, server, &before, status).await
}

/// Reports a pass without a plan that took a step of the rollout in progress. The last reported plan remains in the status.
pub(crate) async fn report_rollout(
    ctx: &Context,
    report: &PassReport<'_>,
    why: PassBlocked,
) -> Result<(), kube::Error> {
    let PassInput { server, checked, before, .. } = report.pass;
    let mut status = status::build_rollout(server, checked, report, before);
    status.basis = answer_basis(ctx, report.pass.observed);
    status.conditions = conditions::build_rollout(report, &why);
    let input = NotificationInput::from_rollout(report, before);
    status.notices = next_notifications(&before.notices, &ctx.notifier.channels_of(server), &input, report.pass.now);
    record_stop_metrics(&ctx.metrics, report, before);
    for event in events::server_events(checked, report, before) {
        ctx.events.publish(server, &event, report.pass.now).await;
    }
    publish_event(ctx, server, why, report.pass.now).await;
    write(ctx, server, before, status).await
}

/// Counts the disconnected players and the downtime of a stop, once the server is up again or the failed revision is rolled back.
fn record_stop_metrics(metrics: &Metrics, report: &PassReport<'_>, before: &PaperMCServerStatus) {
    let agent = report.pass.observed.reply.report.as_deref();
    if let Some(stop) = stop_reason(report, before) {
        let players = stop_times::disconnected_players(agent).unwrap_or(0);
        metrics.players_disconnected.get_or_create(&StopLabels { stop }).inc_by(players.into());
    }
    if let (StepOutcome::MarkedStable(MarkedStable::Update), Some(down)) = (report.done, stop_times::downtime(agent)) {
        metrics.update_downtime_seconds.observe(down.as_secs_f64());
    }
}

/// The reason of the last stop, reported once per stop. The roll-back of a set that never came up is not another stop.
fn stop_reason(report: &PassReport<'_>, before: &PaperMCServerStatus) -> Option<&'static str> {
    // A failed set that is replaced by a newer one was stopped as well. A stable set that refuses the worlds was not running.
    let runs_stable =
        report.pass.observed.facts.settled.map(|stable| stable.revision) == report.pass.observed.pod_revision;
    let runs_candidate = report.pass.observed.is_rollout_in_progress() && !runs_stable;
    let rolls_forward = matches!(report.done, StepOutcome::Committed { .. }) && runs_candidate;
    if rolls_forward
        || matches!(report.done, StepOutcome::MarkedStable(MarkedStable::Update) | StepOutcome::RolledBack { .. })
    {
        return Some("update");
    }
    let agent = report.pass.observed.reply.report.as_deref();
    let was_stopped = |last: &LastUpdate| last.going_back && status::was_stopped_again(last, agent);
    if *report.done == StepOutcome::MarkedStable(MarkedStable::Previous)
        && before.last_update.as_ref().is_some_and(was_stopped)
    {
        return Some("rollBack");
    }
    (*report.done == StepOutcome::Restarted).then_some("restart")
}

async fn publish_event(ctx: &Context, server: &PaperMCServer, why: PassBlocked, now: Timestamp) {
    if why.needs_event {
        ctx.events.publish(server, &EventText { reason: why.reason, warning: true, text: why.message }, now).await;
    }
}

/// Records a request in the status before the operator acts on it.
pub(crate) async fn record_handled(
    ctx: &Context,
    server: &PaperMCServer,
    before: &PaperMCServerStatus,
    handled: HandledRequests,
) -> Result<(), kube::Error> {
    write(ctx, server, before, PaperMCServerStatus { last_handled: Some(handled), ..before.clone() }).await
}

/// Records a stop for crashes in the status before the operator acts on it. With `None` it records that the server starts again, and
/// removes the condition, so that later crashes are counted from zero.
pub(crate) async fn record_crashes(
    ctx: &Context,
    server: &PaperMCServer,
    before: &PaperMCServerStatus,
    crashes: Option<CrashStatus>,
) -> Result<(), kube::Error> {
    let mut status = PaperMCServerStatus { crashes, ..before.clone() };
    if status.crashes.is_none() {
        status.conditions.retain(|condition| condition.type_ != CRASH_LOOP);
    }
    write(ctx, server, before, status).await
}

fn answer_basis(ctx: &Context, observed: &Observed) -> Option<AnswerBasis> {
    let snapshot = ctx.catalog.newest();
    plan::server_state(
        &RunningState::from_observed(observed),
        &ctx.config,
        snapshot.as_ref().map(|snapshot| &snapshot.catalog),
    )
    .basis()
}

/// Reports a pass that failed midway. The condition holds the error, and the rest of the status is unchanged.
pub(crate) async fn report_failure(
    ctx: &Context,
    server: &PaperMCServer,
    why: &str,
    name_conflict: Option<&NameConflict>,
    now: Timestamp,
) {
    let before = status_before(ctx, server);
    let mut status = (*before).clone();
    let why = cut(why, MAX_MESSAGE_LENGTH);
    status.conditions = conditions::build_failure(server, &why, name_conflict, now, &before.conditions);
    if let Some(conflict) = name_conflict {
        let event = EventText { reason: conditions::NAME_CONFLICT, warning: true, text: conflict.message.clone() };
        ctx.events.publish(server, &event, now).await;
    }
    if let Err(error) = write(ctx, server, &before, status).await {
        tracing::warn!(error = %crate::error_chain::ErrorChain(&error), "could not write the status either");
    }
}

/// Counts the servers that do not answer, by the last written status.
pub(crate) fn record_silent_servers(ctx: &Context, key: &Key, server: &PaperMCServer) {
    let status = status_before(ctx, server);
    if status.conditions.iter().any(|condition| condition.reason == responsiveness::NOT_RESPONDING) {
        ctx.caches.not_responding.put(key.clone(), ());
    } else {
        ctx.caches.not_responding.remove(key);
    }
    ctx.metrics.servers_not_responding.set(i64::try_from(ctx.caches.not_responding.count()).unwrap_or(i64::MAX));
}

/// Passes the notifications in the last written status to their channels.
pub(crate) fn offer_notifications(ctx: &Context, server: &PaperMCServer) {
    let channels = ctx.notifier.channels_of(server);
    ctx.notifier.enqueue(&key_of(server), &channels, &status_before(ctx, server).notices);
}

async fn write(
    ctx: &Context,
    server: &PaperMCServer,
    before: &PaperMCServerStatus,
    mut status: PaperMCServerStatus,
) -> Result<(), kube::Error> {
    ctx.notifier.record_deliveries(&key_of(server), &mut status.notices);
    // A changed number of players alone causes no write: on a busy fleet it changes each minute.
    let same = PaperMCServerStatus { players: before.players, ..status.clone() } == *before;
    let namespace = server.namespace().unwrap_or_default();
    let name = server.name_any();
    if same {
        return Ok(());
    }
    let api: Api<PaperMCServer> = Api::namespaced(ctx.client.clone(), &namespace);
    let object: Value = json!({
        "apiVersion": "nightshift.dev/v1alpha1", "kind": "PaperMCServer",
        "metadata": {"name": name, "namespace": namespace}, "status": status,
    });
    ctx.metrics.api_writes.inc();
    match FieldManager::STATUS.apply_status(&api, &name, &object).await {
        Ok(_) => {}
        // The server was deleted during the pass.
        Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(()),
        Err(source) => return Err(source),
    }
    let key = (namespace.clone(), name.clone());
    ctx.caches.status.put(key, (server.uid().unwrap_or_default(), Arc::new(status)));
    requeue_followers(ctx, &namespace, &name);
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests;
