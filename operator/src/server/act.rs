//! Edge (writes). Carries out one step of the rollout. The step is decided elsewhere. This module only checks that the decision is still
//! fresh.
//!
//! Every write to the `StatefulSet` names its UID and the observed resourceVersion. A change by somebody else in between makes the write
//! fail, and the next pass observes again.

use agent_api::{RestoreRequest, Save};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, PodTemplateSpec};
use kube::ResourceExt;
use kube::api::{Api, Patch};
use scheduler::observation::{
    DataVersion, Disruption, ObservedDrain, Partition, PodUid, RecordedFacts, RestartStarted, Revision, SavedWorld,
    StableSet,
};
use scheduler::rollout::{DECISION_VALID_FOR, Step};
use serde_json::{Value, json};

use super::apply::{delete_exactly, owned};
use super::backups::{plugin_data_restore_request, world_restore_request};
use super::model::records::StableRecord;
use super::observe::Observed;
use super::plan::Plan;
use super::records::{self, stable_map_name};
use super::render::init_requests::{InitRequests, init_requests_map_name};
use super::render::stateful_set::{build_stateful_set, partition_number};
use super::report::downtime_estimate::backup_estimate;
use super::requested_restore::PendingRestore;
use super::requested_restore::write_request::{protect_backup, write_init_requests};
use crate::clock::{Stopwatch, now};
use crate::context::Context;
use crate::k8s::labels;
use crate::k8s::owned_api::{Creation, OwnedError};
use crate::k8s::server_side_apply::FieldManager;
use crate::priority::PendingPass;
use crate::template_revision::{revision_of, revision_without_agent, template_of};
use error::ActError;
use outcome::{MarkedStable, StepOutcome};
use validate::CheckedServer;

mod announce;
mod announcement;
mod cancel_announcement;
pub(crate) mod delete_request;
pub(crate) mod error;
pub(crate) mod outcome;
mod recorded_estimate;
mod save;

use delete_request::delete_if_fresh;

/// Executes one step for one server in one pass.
pub(crate) struct StepExecutor<'a> {
    pub(crate) ctx: &'a Context,
    pub(crate) server: &'a CheckedServer,
    pub(crate) observed: &'a Observed,
    pub(crate) plan: &'a Plan,
    /// Estimated time of the backup before the update to the goal. `None` if unknown.
    pub(crate) backup_estimate: Option<SignedDuration>,
    /// Runs since the observation on which the step was decided, or since the opening of the window for which that observation waited.
    pub(crate) decided: Stopwatch,
    /// The priority of this pass among all pending ones.
    pub(crate) pending: &'a PendingPass<'a>,
}

impl<'a> StepExecutor<'a> {
    /// Creates the executor for a plan that is based on an observation made at `decided`.
    pub(crate) fn new(
        ctx: &'a Context,
        server: &'a CheckedServer,
        observed: &'a Observed,
        plan: &'a Plan,
        pending: &'a PendingPass<'a>,
        decided: Stopwatch,
    ) -> Self {
        StepExecutor {
            ctx,
            server,
            observed,
            plan,
            backup_estimate: backup_estimate(server, plan, observed),
            decided,
            pending,
        }
    }
}

impl StepExecutor<'_> {
    /// Carries out `step`.
    pub(crate) async fn execute(&self, step: Step) -> Result<StepOutcome, ActError> {
        match step {
            Step::Create { revision, partition } => self.create(revision, partition).await,
            Step::Stage => self.stage().await,
            Step::Announce { disruption, pod, notice, not_after } => {
                self.announce(disruption, pod, notice, not_after).await
            }
            Step::Reannounce { disruption, pod: _, ends, not_after } => {
                self.reannounce(disruption, ends, not_after).await
            }
            Step::Save { disruption, pod, not_after } => self.save(disruption, pod, not_after).await,
            Step::WriteTemplate { revision, not_after } => {
                self.write_template(revision, Partition::Closed, not_after).await?;
                Ok(StepOutcome::TemplateWritten)
            }
            Step::Commit { agent_unreachable, not_after } => {
                self.commit(not_after).await?;
                Ok(StepOutcome::Committed { agent_unreachable })
            }
            Step::Restore { revision, partition } => self.restore_template(revision, partition).await,
            Step::MarkFailed { revision } => self.mark_failed(revision).await,
            Step::RequestRestore { to: _, requested_by_user: true } => {
                self.request_user_restore().await?;
                Ok(StepOutcome::RestoreScheduled)
            }
            Step::RequestRestore { to, requested_by_user: false } => {
                self.request_restore(world_restore_request(self.observed), to).await?;
                Ok(StepOutcome::RestoreScheduled)
            }
            Step::RequestPluginDataRestore { to } => {
                self.request_restore(plugin_data_restore_request(self.observed), to).await?;
                Ok(StepOutcome::PluginDataRestoreRequested)
            }
            Step::RollBack { to, requested_by_user, agent_unreachable, not_after } => {
                self.ensure_fresh("roll back", not_after)?;
                self.roll_back(to, requested_by_user, not_after).await?;
                Ok(StepOutcome::RolledBack { agent_unreachable })
            }
            Step::RollForward { to, agent_unreachable, not_after } => {
                self.write_template(to, Partition::Open, not_after).await?;
                Ok(StepOutcome::Committed { agent_unreachable })
            }
            Step::MarkStable { revision } => self.mark_stable(revision).await,
            Step::Restart { due, agent_unreachable, not_after, .. } if self.is_scale_down(due) => {
                self.scale_to_zero(agent_unreachable, not_after).await
            }
            Step::Restart { due, pod, agent_unreachable, not_after } => {
                self.restart(due, pod, not_after).await?;
                Ok(StepOutcome::Restarting { due, agent_unreachable })
            }
            Step::EndRestart => self.end_restart().await,
            Step::BeginDrain { pod, since } => self.begin_drain(ObservedDrain { since, pod }).await,
            Step::EndDrain => self.end_drain().await.map(|()| StepOutcome::DrainEnded),
            Step::CancelAnnouncement { disruption, not_after } => {
                self.ensure_fresh("cancel the announcement", not_after)?;
                self.cancel_announcement(disruption).await?;
                Ok(StepOutcome::AnnouncementCancelled)
            }
            Step::UpToDate | Step::Wait(_) => Ok(StepOutcome::Nothing),
        }
    }

    /// Writes back the template of a revision, because the one that was written no longer applies.
    async fn restore_template(&self, revision: Revision, partition: Partition) -> Result<StepOutcome, ActError> {
        let template = self.template(revision).await?;
        let changes = vec![replace_template(&template), replace_partition(partition)];
        self.write("restore", &self.observed.facts, changes).await?;
        Ok(StepOutcome::Restored)
    }

    async fn mark_failed(&self, revision: Revision) -> Result<StepOutcome, ActError> {
        let mut facts = self.observed.facts.clone();
        facts.mark_failed(revision, self.failed_version_set(revision).await);
        self.write("record the failure on", &facts, Vec::new()).await?;
        Ok(StepOutcome::MarkedFailed)
    }

    async fn end_restart(&self) -> Result<StepOutcome, ActError> {
        let facts = RecordedFacts { restarted: None, announced: None, saved: None, ..self.observed.facts.clone() };
        self.write("record the end of the restart on", &facts, Vec::new()).await?;
        Ok(StepOutcome::Restarted)
    }

    async fn begin_drain(&self, drain: ObservedDrain) -> Result<StepOutcome, ActError> {
        let facts = RecordedFacts { draining: Some(drain), ..self.observed.facts.clone() };
        self.write("record the mark of the node on", &facts, Vec::new()).await?;
        Ok(StepOutcome::DrainBegun)
    }

    /// Saves the world, and records the result.
    async fn save(&self, act: Disruption, pod: PodUid, not_after: Timestamp) -> Result<StepOutcome, ActError> {
        self.ensure_fresh("save", not_after)?;
        let request = Save { timeout_seconds: save::save_timeout_seconds(self.server.pod.stop_timeout) };
        let reply = self.agent()?.save(&request).await?;
        let saved = SavedWorld { act, pod, at: now(), confirmed: reply.confirmed };
        let facts = RecordedFacts { saved: Some(saved), ..self.observed.facts.clone() };
        self.write("record the save on", &facts, Vec::new()).await?;
        Ok(StepOutcome::Saved { confirmed: reply.confirmed, took_ms: reply.took_ms, problem: reply.problem })
    }

    /// Opens the partition, so that the StatefulSet controller replaces the pod.
    async fn commit(&self, not_after: Timestamp) -> Result<(), ActError> {
        self.ensure_fresh("commit", not_after)?;
        protect_backup(self.ctx, self.server, self.observed, self.plan.tasks.restores.protected.as_ref()).await?;
        self.ensure_fresh("commit", not_after)?;
        let changes = vec![replace_partition(Partition::Open)];
        self.write("set partition 0 on", &self.facts_with_backup_estimate(), changes).await
    }

    /// Writes the template of a new revision and the partition in one write. Before that it deletes a restore request, which belongs to a
    /// roll-back that no longer happens.
    async fn write_template(
        &self,
        revision: Revision,
        partition: Partition,
        not_after: Timestamp,
    ) -> Result<(), ActError> {
        self.ensure_fresh("write the template", not_after)?;
        self.delete_restore_request().await?;
        let template = self.template(revision).await?;
        self.ensure_fresh("write the template", not_after)?;
        let changes = vec![replace_template(&template), replace_partition(partition)];
        self.write("write the template of", &self.facts_with_backup_estimate(), changes).await
    }

    /// The revision of the failed version set, without Nightshift's own part of the template. `None` if the template is not kept anywhere,
    /// or if the version set is the stable one and only Nightshift's part was new.
    async fn failed_version_set(&self, revision: Revision) -> Option<Revision> {
        let version_set = revision_without_agent(&self.template(revision).await.ok()?);
        let stable = self.observed.stable.as_ref().map(|stable| revision_without_agent(&stable.template));
        (stable != Some(version_set)).then_some(version_set)
    }

    async fn restart(&self, due: Timestamp, pod: PodUid, not_after: Timestamp) -> Result<(), ActError> {
        self.ensure_fresh("restart", not_after)?;
        if let Some(restore) = self.restore_due_at(due) {
            let requests = InitRequests { rollback: None, on_request: Some(restore.request.clone()) };
            write_init_requests(self.ctx, self.server, self.observed, &requests).await?;
        }
        // The record is written before the pod is deleted. This write is rejected if the StatefulSet differs from the observation, in which
        // case the pod would be recreated with another template.
        let facts =
            RecordedFacts { restarted: Some(RestartStarted { due, pod }), ..self.facts_with_restore_estimate(due) };
        self.write("record the restart on", &facts, Vec::new()).await?;
        self.ensure_fresh("restart", not_after)?;
        self.delete_pod(pod).await
    }

    /// Whether the restart of this instant is the stop of a server that is scaled to zero.
    fn is_scale_down(&self, due: Timestamp) -> bool {
        self.plan.tasks.scale_down.is_some_and(|stop| stop.due == due)
    }

    async fn scale_to_zero(&self, agent_unreachable: bool, not_after: Timestamp) -> Result<StepOutcome, ActError> {
        self.ensure_fresh("scale", not_after)?;
        let facts = RecordedFacts { announced: None, saved: None, ..self.observed.facts.clone() };
        self.write("scale", &facts, vec![json!({"op": "replace", "path": "/spec/replicas", "value": 0})]).await?;
        Ok(StepOutcome::ScaledToZero { agent_unreachable })
    }

    async fn roll_back(&self, to: Revision, on_request: bool, not_after: Timestamp) -> Result<(), ActError> {
        let template = self.template(to).await?;
        // The restore request is written first. Without it the older version could not open the worlds.
        let restarted = if on_request { self.request_user_restore().await? } else { None };
        let facts = RecordedFacts { restarted, ..self.observed.facts.clone() };
        self.ensure_fresh("roll back", not_after)?;
        self.write("roll back", &facts, vec![replace_template(&template), replace_partition(Partition::Open)]).await
    }

    /// Requests staging of the goal's files from the agent. It is harmless at any time: it only fills the store on the volume.
    pub(crate) async fn stage(&self) -> Result<StepOutcome, ActError> {
        self.agent()?.stage(&self.plan.target.record.files).await?;
        Ok(StepOutcome::StagingRequested)
    }

    /// The restore for which the restart of this instant is due.
    fn restore_due_at(&self, due: Timestamp) -> Option<&PendingRestore> {
        self.plan.tasks.restores.due.as_ref().filter(|restore| restore.restart.due == due)
    }

    /// Deletes exactly this pod, with its whole grace period. Its stop hook saves once more.
    async fn delete_pod(&self, pod: PodUid) -> Result<(), ActError> {
        let api: Api<Pod> = Api::namespaced(self.ctx.client.clone(), &self.server.namespace);
        let name = format!("{}-0", self.server.name);
        // The pod may be deleted already. That is not an error: its successor is the restarted server.
        let deleted = delete_exactly(self.ctx, &api, &name, Some(pod.to_string())).await;
        deleted.map_err(|source| ActError::Delete { name, source })
    }

    async fn create(&self, revision: Revision, partition: Partition) -> Result<StepOutcome, ActError> {
        let template = self.template(revision).await?;
        let stateful_set = build_stateful_set(self.server, template, partition, &self.observed.facts);
        // An object that did not exist has no resourceVersion to guard the write.
        self.ensure_fresh("create", self.default_deadline())?;
        self.ctx.metrics.api_writes.inc();
        match owned(self.ctx, self.server).create(FieldManager::SERVER_CHILDREN, &stateful_set).await {
            Ok(Creation::New(_)) => Ok(StepOutcome::Created),
            // It was created since the observation, from a template that this pass does not know.
            Ok(Creation::Existing(_)) => Err(ActError::Stale { intent: "create" }),
            Err(OwnedError::NameConflict(conflict)) => Err(conflict.into()),
            Err(OwnedError::Kube(source)) => {
                Err(ActError::Write { intent: "create", name: self.server.name.clone(), source })
            }
        }
    }

    async fn request_restore(&self, request: Option<RestoreRequest>, to: Revision) -> Result<(), ActError> {
        let request = request.ok_or(ActError::RestoreNotSupported { revision: to })?;
        self.ensure_fresh("write", self.default_deadline())?;
        write_init_requests(
            self.ctx,
            self.server,
            self.observed,
            &InitRequests { rollback: Some(request), on_request: None },
        )
        .await
    }

    /// Writes a user's restore request beside the existing one. If the backup is damaged, the earlier request still applies. Returns the
    /// record of the pod that is replaced for it.
    async fn request_user_restore(&self) -> Result<Option<RestartStarted>, ActError> {
        let Some(PendingRestore { restart, request }) = &self.plan.tasks.restores.due else { return Ok(None) };
        // A restore of everything in the backup also restores the plugin data of that day.
        let rollback = self.observed.init_requests.rollback.clone().filter(|_| !request.everything);
        self.ensure_fresh("write", self.default_deadline())?;
        write_init_requests(
            self.ctx,
            self.server,
            self.observed,
            &InitRequests { rollback, on_request: Some(request.clone()) },
        )
        .await?;
        Ok(self.observed.pod_uid().map(|pod| RestartStarted { due: restart.due, pod }))
    }

    /// Deletes the restore request, because one that takes effect weeks later would be a disaster. The delete precedes the write that makes
    /// the request obsolete. It happens even if no request was observed, because requests are not read while the stable revision runs. It
    /// names exactly the current object, and happens only while the decision is fresh. A request that another operator has written since is
    /// still needed.
    async fn delete_restore_request(&self) -> Result<(), ActError> {
        let api = owned(self.ctx, self.server);
        let is_fresh = || self.ensure_fresh("remove", self.default_deadline());
        self.ctx.metrics.api_writes.inc();
        delete_if_fresh(&api, &init_requests_map_name(&self.server.name), is_fresh).await
    }

    async fn mark_stable(&self, stable: Revision) -> Result<StepOutcome, ActError> {
        self.delete_restore_request().await?;
        let template = self.template(stable).await?;
        let record = self.stable_record(template);
        let map = ConfigMap {
            metadata: kube::api::ObjectMeta {
                name: Some(stable_map_name(&self.server.name, stable)),
                namespace: Some(self.server.namespace.clone()),
                labels: Some(labels::child(&self.server.name)),
                owner_references: self.server.owner.clone().map(|owner| vec![owner]),
                ..kube::api::ObjectMeta::default()
            },
            ..ConfigMap::default()
        };
        let signer = self.observed.signer().ok_or(ActError::NoKey)?;
        records::write_stable(self.ctx, self.server, map, record, signer).await?;
        let world = self.observed.pod_lock.as_ref().map_or(DataVersion(0), |lock| lock.world());
        let marked = match self.observed.facts.settled {
            None => MarkedStable::First,
            Some(before) if before.revision == stable => MarkedStable::Previous,
            Some(_) => MarkedStable::Update,
        };
        let facts = RecordedFacts {
            settled: Some(StableSet { revision: stable, world }),
            announced: None,
            saved: None,
            // If the pod was stopped for a restart, its verification follows as after any other restart.
            restarted: self.observed.facts.restarted.filter(|_| marked == MarkedStable::Previous),
            draining: None,
            backup_estimate: None,
            failed: self.observed.facts.failed.clone(),
        };
        self.write("set partition 1 on", &facts, vec![replace_partition(Partition::Closed)]).await?;
        Ok(StepOutcome::MarkedStable(marked))
    }

    /// The record of the revision that becomes stable now.
    fn stable_record(&self, template: PodTemplateSpec) -> StableRecord {
        let Observed { pod_lock, stable_lock, stable, reply, .. } = self.observed;
        let runs = pod_lock.as_deref().map(|record| &record.files);
        let before = stable_lock.as_deref().map(|record| &record.files);
        let baseline = stable.as_ref().map(|record| record.baseline.clone()).unwrap_or_default();
        let baseline = baseline.next(reply.report.as_deref(), runs, before);
        let rendered = &self.plan.target.rendered;
        StableRecord {
            source: rendered.source.filter(|_| *rendered.template == template),
            template,
            baseline,
            unverified: self.plan.verification.unverified_reason().map(str::to_owned),
        }
    }

    /// The template of a revision, from whichever object holds it.
    async fn template(&self, revision: Revision) -> Result<PodTemplateSpec, ActError> {
        if self.plan.target.rendered.revision == revision {
            return Ok((*self.plan.target.rendered.template).clone());
        }
        if let (Some(stable), Some(record)) = (self.observed.facts.settled, &self.observed.stable)
            && stable.revision == revision
        {
            return Ok(record.template.clone());
        }
        if let Some(spec) = self.observed.stateful_set.as_ref().and_then(|stateful_set| stateful_set.spec.as_ref())
            && revision_of(&spec.template) == revision
        {
            return Ok(spec.template.clone());
        }
        let entry = self.observed.pod.as_ref().and_then(|pod| pod.labels().get("controller-revision-hash"));
        if let Some(entry) = entry {
            let api: Api<ControllerRevision> = Api::namespaced(self.ctx.client.clone(), &self.server.namespace);
            let history = api
                .get_opt(entry)
                .await
                .map_err(|source| ActError::History { name: self.server.name.clone(), source })?;
            if let Some(template) = history.as_ref().and_then(template_of)
                && revision_of(&template) == revision
            {
                return Ok(template);
            }
        }
        Err(ActError::NoTemplate { revision })
    }

    fn agent(&self) -> Result<crate::agent_client::Agent<'_>, ActError> {
        self.observed.agent(self.ctx).ok_or(ActError::NoAgent)
    }

    /// Deadline of a step that carries none itself.
    fn default_deadline(&self) -> Timestamp {
        self.decided.started_at() + DECISION_VALID_FOR
    }

    /// Checks the deadline. resourceVersion detects a changed object. Only a clock detects a process that slept while only the time
    /// changed.
    fn ensure_fresh(&self, intent: &'static str, not_after: Timestamp) -> Result<(), ActError> {
        if self.decided.is_past(not_after) { Err(ActError::Stale { intent }) } else { Ok(()) }
    }

    /// Writes the facts and the changes in one guarded write. The template is replaced as a whole by JSON Patch. An apply cannot restore a
    /// template byte for byte while another manager owns a field in it.
    async fn write(
        &self,
        intent: &'static str,
        facts: &RecordedFacts,
        mut changes: Vec<Value>,
    ) -> Result<(), ActError> {
        let stateful_set = self.observed.stateful_set.as_ref();
        let stateful_set =
            stateful_set.ok_or_else(|| ActError::NoStatefulSet { intent, name: self.server.name.clone() })?;
        let facts = serde_json::to_string(facts).expect("facts have string keys only");
        let mut patch = vec![
            json!({"op": "test", "path": "/metadata/uid", "value": stateful_set.metadata.uid}),
            // A `test` with a stale resourceVersion fails without a clear reason. A stale resourceVersion that is *written* is answered
            // with 409.
            json!({"op": "replace", "path": "/metadata/resourceVersion", "value": stateful_set.metadata.resource_version}),
        ];
        if stateful_set.metadata.annotations.is_none() {
            patch.push(json!({"op": "add", "path": "/metadata/annotations", "value": {}}));
        }
        let pointer = format!("/metadata/annotations/{}", labels::FACTS.replace('/', "~1"));
        patch.push(json!({"op": "add", "path": pointer, "value": facts}));
        patch.append(&mut changes);
        let patch = serde_json::from_value(Value::Array(patch)).expect("the operations above are JSON Patch");
        let api: Api<StatefulSet> = Api::namespaced(self.ctx.client.clone(), &self.server.namespace);
        self.ctx.metrics.api_writes.inc();
        api.patch(&self.server.name, &FieldManager::ROLLOUT.patch_params(), &Patch::<StatefulSet>::Json(patch))
            .await
            .map(drop)
            .map_err(|source| ActError::Write { intent, name: self.server.name.clone(), source })
    }
}

fn replace_template(template: &PodTemplateSpec) -> Value {
    json!({"op": "replace", "path": "/spec/template", "value": template})
}

fn replace_partition(partition: Partition) -> Value {
    json!({"op": "add", "path": "/spec/updateStrategy", "value": {
        "type": "RollingUpdate", "rollingUpdate": {"partition": partition_number(partition)},
    }})
}
