//! Edge (writes). Carries out one step of the rollout. The step is decided elsewhere. This module only checks that the decision is still
//! fresh.
//!
//! Every write to the `StatefulSet` names its UID and the observed resourceVersion. A change by somebody else in between makes the write
//! fail, and the next pass observes again.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, PodTemplateSpec};
use kube::ResourceExt;
use kube::api::{Api, Patch};
use scheduler::observation::{
    DataVersion, DrainSeen, Partition, PodUid, RecordedFacts, RestartStarted, Revision, SavedWorld, StableSet,
};
use scheduler::protocol::{FileSet, RestoreOrder, Save, restore::AskedRestore};
use scheduler::rollout::{DECISION_COUNTS, OpportunityReason, Step};
use serde_json::{Value, json};

use super::apply::delete_exactly;
use super::backups::{data_order, restore_order};
use super::check::CheckedServer;
use super::observe::Observed;
use super::plan::Plan;
use super::records::{self, SettledRecord, settled_map_name};
use super::render::init_orders::{InitOrders, orders_map_name};
use super::render::stateful_set::{build_stateful_set, partition};
use super::report::downtime_estimate::copy_takes;
use super::requested_restore::PendingRestore;
use super::requested_restore::write_request::{give_orders, keep_copy};
use super::verify::VerificationResult;
use crate::caches::Rendered;
use crate::clock::{Stopwatch, now};
use crate::context::Context;
use crate::k8s::labels;
use crate::k8s::server_side_apply::FieldManager;
use crate::priority::PendingPass;
use crate::template_revision::{revision_of, set_of, template_of};

mod announce;
mod cancel_announcement;
mod copying;
pub(crate) mod end_order;
mod error;
mod outcome;
mod save;
mod words;

use end_order::end_exactly;
pub(crate) use error::ActError;
pub(crate) use outcome::{MarkedStable, StepOutcome};

/// The files and the template of the goal.
pub(crate) struct GoalInput<'a> {
    pub(crate) files: &'a FileSet,
    pub(crate) rendered: &'a Rendered,
}

/// Executes one step for one server in one pass.
pub(crate) struct StepExecutor<'a> {
    pub(crate) ctx: &'a Context,
    pub(crate) server: &'a CheckedServer,
    pub(crate) seen: &'a Observed,
    pub(crate) goal: GoalInput<'a>,
    /// The verification result of the observed pod.
    pub(crate) proof: &'a VerificationResult,
    /// The restore for which a restart is due, if a user requested one.
    pub(crate) restore: Option<&'a PendingRestore>,
    /// The request that protects the backup it names until it is restored.
    pub(crate) keeps: Option<&'a AskedRestore>,
    /// Estimated time of the backup before the update to the goal. `None` if unknown.
    pub(crate) copy_takes: Option<SignedDuration>,
    /// Whether the update requires an empty server. It is cancelled when a player joins.
    pub(crate) only_empty: bool,
    /// Runs since the observation on which the step was decided, or since the opening of the window for which that observation waited.
    pub(crate) decided: Stopwatch,
    /// The priority of this pass among all pending ones.
    pub(crate) ahead: &'a PendingPass<'a>,
}

impl<'a> StepExecutor<'a> {
    /// Creates the executor for a plan that is based on an observation made at `decided`.
    pub(crate) fn of(
        ctx: &'a Context,
        server: &'a CheckedServer,
        seen: &'a Observed,
        plan: &'a Plan,
        ahead: &'a PendingPass<'a>,
        decided: Stopwatch,
    ) -> Self {
        StepExecutor {
            ctx,
            server,
            seen,
            goal: GoalInput { files: &plan.record.files, rendered: &plan.rendered },
            proof: &plan.proof,
            restore: plan.restores.due.as_ref(),
            keeps: plan.restores.keeps.as_ref(),
            copy_takes: copy_takes(server, plan, seen),
            only_empty: plan.opportunistic.occasion == Some(OpportunityReason::Empty),
            decided,
            ahead,
        }
    }
}

impl StepExecutor<'_> {
    /// Carries out `step`.
    pub(crate) async fn act(&self, step: Step) -> Result<StepOutcome, ActError> {
        match step {
            Step::Create { revision, door } => self.create(revision, door).await,
            Step::Stage => self.stage().await,
            Step::Announce { act, pod, notice, not_after } => {
                self.fresh("announce", not_after)?;
                self.announce(act, pod, notice).await
            }
            Step::Reannounce { act, pod: _, ends, not_after } => {
                self.fresh("announce once more", not_after)?;
                self.tell_again(act, ends).await
            }
            Step::Save { act, pod, not_after } => {
                self.fresh("save", not_after)?;
                let said =
                    self.agent()?.save(&Save { timeout_seconds: save::within(self.server.stop_timeout) }).await?;
                let saved = SavedWorld { act, pod, at: now(), confirmed: said.confirmed };
                let facts = RecordedFacts { saved: Some(saved), ..self.seen.facts.clone() };
                self.write("record the save on", &facts, Vec::new()).await?;
                Ok(StepOutcome::Saved { confirmed: said.confirmed, took_ms: said.took_ms, problem: said.problem })
            }
            Step::WriteTemplate { revision, not_after } => {
                self.bring_in(revision, Partition::Closed, not_after).await?;
                Ok(StepOutcome::TemplateWritten)
            }
            Step::Commit { unasked, not_after } => {
                self.fresh("commit", not_after)?;
                keep_copy(self.ctx, self.server, self.keeps).await?;
                self.fresh("commit", not_after)?;
                self.write("open the door of", &self.facts_of_goal(), vec![set_door(Partition::Open)]).await?;
                Ok(StepOutcome::Committed { unasked })
            }
            Step::Restore { revision, door } => {
                let template = self.template(revision).await?;
                self.write("restore", &self.seen.facts, vec![replace_template(&template), set_door(door)]).await?;
                Ok(StepOutcome::Restored)
            }
            Step::MarkFailed { revision } => {
                let mut facts = self.seen.facts.clone();
                facts.mark_failed(revision, self.failed_set(revision).await);
                self.write("record the failure on", &facts, Vec::new()).await?;
                Ok(StepOutcome::MarkedFailed)
            }
            Step::RequestRestore { to: _, asked: true } => {
                self.order_copy().await?;
                Ok(StepOutcome::RestoreScheduled)
            }
            Step::RequestRestore { to, asked: false } => {
                self.order_back(restore_order(self.seen), to).await?;
                Ok(StepOutcome::RestoreScheduled)
            }
            Step::RequestPluginDataRestore { to } => {
                self.order_back(data_order(self.seen), to).await?;
                Ok(StepOutcome::DataOrdered)
            }
            Step::RollBack { to, asked, unasked, not_after } => {
                self.fresh("roll back", not_after)?;
                self.roll_back(to, asked, not_after).await?;
                Ok(StepOutcome::RolledBack { unasked })
            }
            Step::RollForward { to, unasked, not_after } => {
                self.bring_in(to, Partition::Open, not_after).await?;
                Ok(StepOutcome::Committed { unasked })
            }
            Step::MarkStable { settled } => self.close(settled).await,
            Step::Restart { due, pod, unasked, not_after } => {
                self.restart(due, pod, not_after).await?;
                Ok(StepOutcome::Restarting { due, unasked })
            }
            Step::EndRestart => {
                let facts = RecordedFacts { restarted: None, announced: None, saved: None, ..self.seen.facts.clone() };
                self.write("record the end of the restart on", &facts, Vec::new()).await?;
                Ok(StepOutcome::Restarted)
            }
            Step::BeginDrain { pod, since } => {
                let facts = RecordedFacts { draining: Some(DrainSeen { since, pod }), ..self.seen.facts.clone() };
                self.write("record the mark of the node on", &facts, Vec::new()).await?;
                Ok(StepOutcome::DrainBegun)
            }
            Step::EndDrain => {
                self.end_drain().await?;
                Ok(StepOutcome::DrainEnded)
            }
            Step::CancelAnnouncement { act, not_after } => {
                self.fresh("call off", not_after)?;
                self.call_off(act).await?;
                Ok(StepOutcome::CalledOff)
            }
            Step::Settled | Step::Wait(_) => Ok(StepOutcome::Nothing),
        }
    }

    /// Writes the template of a new revision and the partition in one write. Before that it deletes a restore request, which belongs to a
    /// roll-back that no longer happens.
    async fn bring_in(&self, revision: Revision, door: Partition, not_after: Timestamp) -> Result<(), ActError> {
        self.fresh("write the template", not_after)?;
        self.end_order().await?;
        let template = self.template(revision).await?;
        self.fresh("write the template", not_after)?;
        let changes = vec![replace_template(&template), set_door(door)];
        self.write("write the template of", &self.facts_of_goal(), changes).await
    }

    /// The revision of the failed version set, without Nightshift's own part of the template. `None` if the template is not kept anywhere,
    /// or if the version set is the stable one and only Nightshift's part was new.
    async fn failed_set(&self, revision: Revision) -> Option<Revision> {
        let set = set_of(&self.template(revision).await.ok()?);
        let settled = self.seen.settled.as_ref().map(|settled| set_of(&settled.template));
        (settled != Some(set)).then_some(set)
    }

    async fn restart(&self, due: Timestamp, pod: PodUid, not_after: Timestamp) -> Result<(), ActError> {
        self.fresh("restart", not_after)?;
        if let Some(restore) = self.restore_at(due) {
            let orders = InitOrders { back: None, asked: Some(restore.order.clone()) };
            give_orders(self.ctx, self.server, &orders).await?;
        }
        // The record is written first. This write is rejected if the StatefulSet differs from the observation, in which case the pod would
        // be recreated with another template.
        let facts = RecordedFacts { restarted: Some(RestartStarted { due, pod }), ..self.facts_of_restart(due) };
        self.write("record the restart on", &facts, Vec::new()).await?;
        self.fresh("restart", not_after)?;
        self.delete_pod(pod).await
    }

    async fn roll_back(&self, to: Revision, asked: bool, not_after: Timestamp) -> Result<(), ActError> {
        let template = self.template(to).await?;
        // The restore request is written first. Without it the older version could not open the worlds.
        let restarted = if asked { self.order_copy().await? } else { None };
        let facts = RecordedFacts { restarted, ..self.seen.facts.clone() };
        self.fresh("roll back", not_after)?;
        self.write("roll back", &facts, vec![replace_template(&template), set_door(Partition::Open)]).await
    }

    /// Requests staging of the goal's files from the agent. It is harmless at any time: it only fills the store on the volume.
    pub(crate) async fn stage(&self) -> Result<StepOutcome, ActError> {
        self.agent()?.stage(self.goal.files).await?;
        Ok(StepOutcome::StagingAsked)
    }

    /// The restore for which the restart of this instant is due.
    fn restore_at(&self, due: Timestamp) -> Option<&PendingRestore> {
        self.restore.filter(|restore| restore.restart.due == due)
    }

    /// Deletes exactly this pod, with its whole grace period. Its stop hook saves once more.
    async fn delete_pod(&self, pod: PodUid) -> Result<(), ActError> {
        let api: Api<Pod> = Api::namespaced(self.ctx.client.clone(), &self.server.namespace);
        let name = format!("{}-0", self.server.name);
        // The pod may be deleted already. That is not an error: its successor is the restarted server.
        let deleted = delete_exactly(self.ctx, &api, &name, Some(pod.to_string())).await;
        deleted.map_err(|source| ActError::Delete { name, source })
    }

    async fn create(&self, revision: Revision, door: Partition) -> Result<StepOutcome, ActError> {
        let template = self.template(revision).await?;
        let set = build_stateful_set(self.server, template, door, &self.seen.facts);
        let api: Api<StatefulSet> = Api::namespaced(self.ctx.client.clone(), &self.server.namespace);
        // An object that did not exist has no resourceVersion to guard the write.
        self.fresh("create", self.counts_until())?;
        self.ctx.metrics.api_writes.inc();
        FieldManager::SERVER_CHILDREN.apply(&api, &set).await.map_err(|source| ActError::Write {
            intent: "create",
            name: self.server.name.clone(),
            source,
        })?;
        Ok(StepOutcome::Created)
    }

    async fn order_back(&self, order: Option<RestoreOrder>, to: Revision) -> Result<(), ActError> {
        let order = order.ok_or(ActError::NoTemplate { revision: to })?;
        self.fresh("give an order", self.counts_until())?;
        give_orders(self.ctx, self.server, &InitOrders { back: Some(order), asked: None }).await
    }

    /// Writes a user's restore request beside the existing one. If the backup is damaged, the earlier request still applies. Returns the
    /// record of the pod that is replaced for it.
    async fn order_copy(&self) -> Result<Option<RestartStarted>, ActError> {
        let Some(PendingRestore { restart, order }) = self.restore else { return Ok(None) };
        // A restore of everything in the backup also restores the plugin data of that day.
        let back = self.seen.orders.back.clone().filter(|_| !order.everything);
        self.fresh("give an order", self.counts_until())?;
        give_orders(self.ctx, self.server, &InitOrders { back, asked: Some(order.clone()) }).await?;
        Ok(self.seen.pod_uid().map(|pod| RestartStarted { due: restart.due, pod }))
    }

    /// Deletes the restore request, because one that takes effect weeks later would be a disaster. The delete precedes the write that makes
    /// the request obsolete. It happens even if no request was observed, because requests are not read while the stable revision runs. It
    /// names exactly the current object, and happens only while the decision is fresh. A request that another operator has written since is
    /// still needed.
    async fn end_order(&self) -> Result<(), ActError> {
        let api: Api<ConfigMap> = Api::namespaced(self.ctx.client.clone(), &self.server.namespace);
        let is_fresh = || self.fresh("end an order", self.counts_until());
        self.ctx.metrics.api_writes.inc();
        end_exactly(&api, &orders_map_name(&self.server.name), is_fresh).await
    }

    async fn close(&self, settled: Revision) -> Result<StepOutcome, ActError> {
        self.end_order().await?;
        let template = self.template(settled).await?;
        let record = self.settled_record(template);
        let map = ConfigMap {
            metadata: kube::api::ObjectMeta {
                name: Some(settled_map_name(&self.server.name, settled)),
                namespace: Some(self.server.namespace.clone()),
                labels: Some(labels::child(&self.server.name)),
                owner_references: Some(vec![self.server.owner.clone()]),
                ..kube::api::ObjectMeta::default()
            },
            ..ConfigMap::default()
        };
        records::write_settled(&self.ctx.client, map, &record).await?;
        let world = self.seen.pod_lock.as_ref().map_or(DataVersion(0), |lock| lock.world());
        let proven = match self.seen.facts.settled {
            None => MarkedStable::First,
            Some(before) if before.revision == settled => MarkedStable::Before,
            Some(_) => MarkedStable::Update,
        };
        let facts = RecordedFacts {
            settled: Some(StableSet { revision: settled, world }),
            announced: None,
            saved: None,
            // If the pod was stopped for a restart, its verification follows as after any other restart.
            restarted: self.seen.facts.restarted.filter(|_| proven == MarkedStable::Before),
            draining: None,
            copying: None,
            failed: self.seen.facts.failed.clone(),
        };
        self.write("close the door of", &facts, vec![set_door(Partition::Closed)]).await?;
        Ok(StepOutcome::Closed(proven))
    }

    /// The record of the revision that becomes stable now.
    fn settled_record(&self, template: PodTemplateSpec) -> SettledRecord {
        let Observed { pod_lock, settled_lock, settled, report, .. } = self.seen;
        let runs = pod_lock.as_deref().map(|record| &record.files);
        let before = settled_lock.as_deref().map(|record| &record.files);
        let known = settled.as_ref().map(|record| record.baseline.clone()).unwrap_or_default();
        let baseline = known.next(report.as_deref(), runs, before);
        SettledRecord { template, baseline, unproven: self.proof.unproven().map(str::to_owned) }
    }

    /// The template of a revision, from whichever object holds it.
    async fn template(&self, revision: Revision) -> Result<PodTemplateSpec, ActError> {
        if self.goal.rendered.revision == revision {
            return Ok((*self.goal.rendered.template).clone());
        }
        if let (Some(settled), Some(record)) = (self.seen.facts.settled, &self.seen.settled)
            && settled.revision == revision
        {
            return Ok(record.template.clone());
        }
        if let Some(spec) = self.seen.set.as_ref().and_then(|set| set.spec.as_ref())
            && revision_of(&spec.template) == revision
        {
            return Ok(spec.template.clone());
        }
        let entry = self.seen.pod.as_ref().and_then(|pod| pod.labels().get("controller-revision-hash"));
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
        self.seen.agent(self.ctx).ok_or(ActError::NoAgent)
    }

    /// Deadline of a step that carries none itself.
    fn counts_until(&self) -> Timestamp {
        self.decided.started_at() + DECISION_COUNTS
    }

    /// Checks the deadline. resourceVersion detects a changed object. Only a clock detects a process that slept while only the time
    /// changed.
    fn fresh(&self, intent: &'static str, not_after: Timestamp) -> Result<(), ActError> {
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
        let set = self.seen.set.as_ref().ok_or(ActError::NoTemplate { revision: Revision(0) })?;
        let facts = serde_json::to_string(facts).expect("facts have string keys only");
        let mut patch = vec![
            json!({"op": "test", "path": "/metadata/uid", "value": set.metadata.uid}),
            // A `test` with a stale resourceVersion fails without a clear reason. A stale resourceVersion that is *written* is answered
            // with 409.
            json!({"op": "replace", "path": "/metadata/resourceVersion", "value": set.metadata.resource_version}),
        ];
        if set.metadata.annotations.is_none() {
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

fn set_door(door: Partition) -> Value {
    json!({"op": "add", "path": "/spec/updateStrategy", "value": {
        "type": "RollingUpdate", "rollingUpdate": {"partition": partition(door)},
    }})
}
