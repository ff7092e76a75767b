//! Edge (writes). Reports observations and actions as status, conditions and Events. It computes the status first, writes it only when it
//! differs, and decides nothing.

use std::sync::Arc;

use crds::paper_mc_server::{AnswerBasis, CrashStatus, HandledRequests, LastUpdate};
use crds::{PaperMCServer, PaperMCServerStatus};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use kube::api::Api;
use resolver::explain::Explanation;
use scheduler::maintenance::Gate;
use scheduler::rollout::Step;
use serde_json::{Value, json};

use super::act::{MarkedStable, StepOutcome};
use super::check::CheckedServer;
use super::crash_loop::CRASH_LOOP;
use super::follows::followed_server::tell_followers;
use super::observe::Observed;
use super::plan::{self, Plan, WhatRuns};
use crate::caches::Key;
use crate::context::Context;
use crate::error_chain::cut;
use crate::k8s::events::EventText;
use crate::k8s::server_side_apply::FieldManager;
use crate::requeue::Outcome;
use crate::telemetry::metrics::{Metrics, StopLabels};

mod backup;
mod backup_schedule;
mod conditions;
mod crash_loop;
mod displaced_jars;
pub(crate) mod downtime_estimate;
mod drain;
mod drift;
mod events;
mod failure;
mod image_pull;
mod last_stop;
mod manual_recovery;
pub(crate) mod notifications;
mod plugin_data;
mod seed_volume;
mod short_reason;
mod status;
mod update_blocked;
mod waiting;
mod world_damage;

use notifications::{NotificationInput, next_notices, what_is_in_the_way};

/// Maximum length of a condition's message.
const LONGEST_MESSAGE: usize = 1_024;

/// The results of a whole pass.
pub(crate) struct PassReport<'a> {
    pub(crate) seen: &'a Observed,
    pub(crate) plan: &'a Plan,
    pub(crate) step: Step,
    pub(crate) done: &'a StepOutcome,
    pub(crate) now: Timestamp,
}

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
    /// No lock satisfies the request, and no lock runs.
    Unsolvable(Explanation),
}

impl PlanningError {
    /// An explanation without a lock.
    pub(crate) fn no_lock(explanation: Explanation) -> Self {
        if super::plan::is_impossible(&explanation) {
            Self::Unsolvable(explanation)
        } else {
            Self::Unanswerable(explanation)
        }
    }

    pub(crate) fn outcome(&self) -> Outcome {
        match self {
            Self::Spec(_) | Self::Eula(_) => Outcome::Failed { blame: crate::requeue::RetryBlame::User, attempt: 0 },
            // A changed catalog wakes all servers. Claims are not watched, so a missing one is checked at the resync interval of a server
            // at rest.
            Self::NoCatalog | Self::NoClaim(_) | Self::Unanswerable(_) | Self::Unsolvable(_) => {
                Outcome::Waiting { until: None }
            }
        }
    }
}

/// The problem that prevents a plan, as it is reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PassBlocked {
    /// The type of the condition.
    of: &'static str,
    reason: &'static str,
    message: String,
    is_worth_an_event: bool,
}

impl PassBlocked {
    /// A pass that failed midway, with its message.
    pub(crate) fn failure(why: &str) -> Self {
        Self { of: "Reconciled", reason: "Failed", message: why.to_owned(), is_worth_an_event: false }
    }

    fn condition(&self, server: &PaperMCServer, now: Timestamp, before: &[Condition]) -> Condition {
        condition(server, self.of, Some(false), self.reason, cut(&self.message, LONGEST_MESSAGE), now, before)
    }
}

impl PlanningError {
    /// Whether a rollout in progress is finished despite the error. Without the accepted EULA it is not, because a roll-back starts a
    /// server. It is not while metadata is still being read either, because a temporary gap reverts nothing that has begun.
    pub(crate) fn lets_a_trial_end(&self) -> bool {
        match self {
            Self::Spec(_) | Self::NoClaim(_) | Self::Unsolvable(_) => true,
            Self::Eula(_) | Self::NoCatalog | Self::Unanswerable(_) => false,
        }
    }

    /// The error as it is reported.
    pub(crate) fn in_the_way(&self) -> PassBlocked {
        let (reason, message) = match self {
            Self::Spec(words) => ("SpecInvalid", words.clone()),
            Self::Eula(words) => ("EulaNotAccepted", words.clone()),
            Self::NoClaim(words) => ("ClaimMissing", words.clone()),
            Self::NoCatalog => ("CatalogNotRead", "the upstreams are being read; nothing is known yet".to_owned()),
            Self::Unanswerable(explanation) => ("MetadataMissing", in_words(explanation)),
            Self::Unsolvable(explanation) => ("NoSolution", in_words(explanation)),
        };
        PassBlocked { of: "Resolved", reason, message, is_worth_an_event: !self.is_over_in_a_moment() }
    }

    /// Whether the missing data is being read already. All other errors cause an Event and release the update slot.
    pub(crate) fn is_over_in_a_moment(&self) -> bool {
        match self {
            Self::Spec(_) | Self::Eula(_) | Self::NoClaim(_) | Self::Unsolvable(_) => false,
            Self::NoCatalog | Self::Unanswerable(_) => true,
        }
    }
}

/// The explanation on one line, with a reference to the full text. Conditions, Events and messages use the same text.
pub(crate) fn in_words(explanation: &Explanation) -> String {
    cut(&explanation.summary(), LONGEST_MESSAGE)
}

/// Reports a complete pass.
pub(crate) async fn report(
    ctx: &Context,
    server: &PaperMCServer,
    checked: &CheckedServer,
    report: &PassReport<'_>,
) -> Result<(), kube::Error> {
    let before = status_before(ctx, server);
    let mut status = status::build_status(server, checked, report, &before);
    status.basis = basis(ctx, report.seen);
    status.conditions = conditions::build_conditions(server, checked, report, &before);
    let situation = NotificationInput::of(checked, report, &before, &status);
    let channels = ctx.messenger.channels_of(server);
    status.notices = next_notices(&before.notices, &channels, &situation, report.now);
    let troubles = ctx.messenger.look(&key_of(server), &channels, report.now).await;
    if let Some((reason, message)) = what_is_in_the_way(&troubles, &status.notices, report.now) {
        let note = EventText { reason: "NotifyFailed", warning: true, text: message.clone() };
        ctx.events.publish(server, &note, report.now).await;
        let failed = condition(server, "NotifyFailed", Some(true), reason, message, report.now, &before.conditions);
        status.conditions.push(failed);
    }
    count_cost(&ctx.metrics, report, &before);
    for note in events::build_notes(checked, report, &before) {
        ctx.events.publish(server, &note, report.now).await;
    }
    write(ctx, server, &before, status).await
}

/// Reports why no plan was possible.
pub(crate) async fn report_trouble(
    ctx: &Context,
    server: &PaperMCServer,
    seen: &Observed,
    trouble: &PlanningError,
    now: Timestamp,
) -> Result<(), kube::Error> {
    let before = status_before(ctx, server);
    let mut status = (*before).clone();
    status.observed_generation = server.metadata.generation;
    status.rollout = status::rollout_facts(&seen.facts).or(status.rollout);
    let situation = NotificationInput::of_the_end(seen, &before);
    status.notices = next_notices(&before.notices, &ctx.messenger.channels_of(server), &situation, now);
    status.basis = basis(ctx, seen);
    let why = trouble.in_the_way();
    let on_trial = Plan::is_on_trial(seen);
    status.conditions = conditions::build_trouble(server, &why, on_trial, now, &before.conditions);
    tell_of(ctx, server, why, now).await;
    write(ctx, server, &before, status).await
}

/// Reports a pass without a plan that took a step of the rollout in progress. The last reported plan remains in the status.
pub(crate) async fn report_on_trial(
    ctx: &Context,
    server: &PaperMCServer,
    checked: &CheckedServer,
    report: &PassReport<'_>,
    why: PassBlocked,
) -> Result<(), kube::Error> {
    let before = status_before(ctx, server);
    let mut status = status::build_on_trial(server, checked, report, &before);
    status.basis = basis(ctx, report.seen);
    status.conditions = conditions::build_on_trial(server, checked, report, &why, &before);
    let situation = NotificationInput::of_a_trial(report, &before);
    status.notices = next_notices(&before.notices, &ctx.messenger.channels_of(server), &situation, report.now);
    count_cost(&ctx.metrics, report, &before);
    for note in events::of_the_server(checked, report, &before) {
        ctx.events.publish(server, &note, report.now).await;
    }
    tell_of(ctx, server, why, report.now).await;
    write(ctx, server, &before, status).await
}

/// Counts the disconnected players and the downtime of a stop, once the server is up again or the failed revision is rolled back.
fn count_cost(metrics: &Metrics, report: &PassReport<'_>, before: &PaperMCServerStatus) {
    let agent = report.seen.report.as_deref();
    if let Some(stop) = counted_stop(report, before) {
        let players = events::interrupted(agent).unwrap_or(0);
        metrics.players_disconnected.get_or_create(&StopLabels { stop }).inc_by(players.into());
    }
    if let (StepOutcome::Closed(MarkedStable::Update), Some(down)) = (report.done, events::downtime(agent)) {
        metrics.update_downtime_seconds.observe(down.as_secs_f64());
    }
}

/// The reason of the last stop, reported once per stop. The roll-back of a set that never came up is not another stop.
fn counted_stop(report: &PassReport<'_>, before: &PaperMCServerStatus) -> Option<&'static str> {
    // A failed set that is replaced by a newer one was stopped as well. A stable set that refuses the worlds was not running.
    let runs_settled = report.seen.facts.settled.map(|settled| settled.revision) == report.seen.pod_revision;
    let is_on_trial = Plan::is_on_trial(report.seen) && !runs_settled;
    let goes_forward = matches!(report.done, StepOutcome::Committed { .. }) && is_on_trial;
    if goes_forward || matches!(report.done, StepOutcome::Closed(MarkedStable::Update) | StepOutcome::RolledBack { .. })
    {
        return Some("update");
    }
    let agent = report.seen.report.as_deref();
    let was_stopped = |last: &LastUpdate| last.going_back && status::was_stopped_again(last, agent);
    if *report.done == StepOutcome::Closed(MarkedStable::Before) && before.last_update.as_ref().is_some_and(was_stopped)
    {
        return Some("rollBack");
    }
    (*report.done == StepOutcome::Restarted).then_some("restart")
}

async fn tell_of(ctx: &Context, server: &PaperMCServer, why: PassBlocked, now: Timestamp) {
    if why.is_worth_an_event {
        ctx.events.publish(server, &EventText { reason: why.reason, warning: true, text: why.message }, now).await;
    }
}

/// Records a request in the status before the operator acts on it.
pub(crate) async fn note_handled(
    ctx: &Context,
    server: &PaperMCServer,
    before: &PaperMCServerStatus,
    handled: HandledRequests,
) -> Result<(), kube::Error> {
    write(ctx, server, before, PaperMCServerStatus { last_handled: Some(handled), ..before.clone() }).await
}

/// Records a stop for crashes in the status before the operator acts on it. With `None` it records that the server starts again, and
/// removes the condition, so that later crashes are counted from zero.
pub(crate) async fn note_crashes(
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

fn basis(ctx: &Context, seen: &Observed) -> Option<AnswerBasis> {
    let snapshot = ctx.catalog.newest();
    plan::known(&WhatRuns::of(seen), &ctx.config, snapshot.as_ref().map(|snapshot| &snapshot.catalog)).basis()
}

/// Reports a pass that failed midway. The condition holds the error, and the rest of the status is unchanged.
pub(crate) async fn report_failure(ctx: &Context, server: &PaperMCServer, why: &str, now: Timestamp) {
    let before = status_before(ctx, server);
    let mut status = (*before).clone();
    status.conditions = conditions::build_failure(server, &cut(why, LONGEST_MESSAGE), now, &before.conditions);
    if let Err(error) = write(ctx, server, &before, status).await {
        tracing::warn!(error = %crate::error_chain::ErrorChain(&error), "could not write the status either");
    }
}

fn key_of(server: &PaperMCServer) -> Key {
    (server.namespace().unwrap_or_default(), server.name_any())
}

/// Passes the notifications in the last written status to their channels.
pub(crate) fn tell(ctx: &Context, server: &PaperMCServer) {
    let channels = ctx.messenger.channels_of(server);
    ctx.messenger.offer(&key_of(server), &channels, &status_before(ctx, server).notices);
}

/// The status as this process wrote it last, which is newer than any cache.
pub(crate) fn status_before(ctx: &Context, server: &PaperMCServer) -> Arc<PaperMCServerStatus> {
    ctx.memory
        .status
        .get(&key_of(server))
        .filter(|(uid, _)| Some(uid) == server.uid().as_ref())
        .map_or_else(|| Arc::new(server.status.clone().unwrap_or_default()), |(_, status)| status)
}

async fn write(
    ctx: &Context,
    server: &PaperMCServer,
    before: &PaperMCServerStatus,
    mut status: PaperMCServerStatus,
) -> Result<(), kube::Error> {
    ctx.messenger.note(&key_of(server), &mut status.notices);
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
    ctx.memory.status.put(key, (server.uid().unwrap_or_default(), Arc::new(status)));
    tell_followers(ctx, &namespace, &name);
    Ok(())
}

/// Whether an update may begin now.
fn is_open(gate: Gate) -> bool {
    match gate {
        Gate::Open { .. } => true,
        Gate::NoNewStarts { .. } | Gate::Shut { .. } => false,
    }
}

/// A condition whose transition time changes only with its status.
fn condition(
    server: &PaperMCServer,
    of: &'static str,
    holds: Option<bool>,
    reason: &str,
    message: String,
    now: Timestamp,
    before: &[Condition],
) -> Condition {
    let status = match holds {
        Some(true) => "True",
        Some(false) => "False",
        None => "Unknown",
    };
    let since = before.iter().find(|old| old.type_ == of && old.status == status).map(|old| old.last_transition_time.0);
    Condition {
        type_: of.to_owned(),
        status: status.to_owned(),
        observed_generation: server.metadata.generation,
        last_transition_time: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(since.unwrap_or(now)),
        reason: reason.to_owned(),
        message,
    }
}

#[cfg(test)]
mod tests;
