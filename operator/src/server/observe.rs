//! Edge (reads). Observes one server: the `StatefulSet` first, then the pod, then the agent, always with live reads.
//!
//! Watches trigger a pass, but the data for its decisions is read here. A decision on cached data could commit a change that a user has
//! just reverted.

use std::sync::Arc;

use agent_api::signature::Key;
use agent_api::signed::{Signer, Verifier};
use agent_api::termination_message::{LockRejected, WorldRefused};
use agent_api::{AgentReport, Server};
use crds::PaperMCServer;
use crds::annotations::RESTORE_FROM;
use crds::paper_mc_server::RolloutFacts;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::{
    ConfigMap, ContainerStateTerminated, ContainerStatus, Pod, PodCondition, PodSpec, PodTemplateSpec,
};
use kube::api::Api;
use kube::{Client, ResourceExt};
use scheduler::observation::{
    self, AgentMemory, DataVersion, Partition, Players, PodPhase, PodUid, RecordedFacts, Revision, StableSet,
};

use super::model::keys::ServerKeys;
use super::model::records::{LockRecord, StableRecord};
use super::records::{self, RecordError, unless_rejected};
use super::render::init_requests::{InitRequests, init_requests_map_name, parse_init_requests};
use super::render::secret::secret_name;
use super::render::stateful_set::partition_from_number;
use super::server_keys::{KeysError, read_keys};
use super::template_variable::has_variable;
use crate::agent_client::{Agent, AgentError};
use crate::caches::{LastAgentReport, TemplateHistoryEntry};
use crate::context::Context;
use crate::k8s::labels;
use crate::k8s::ownership::{NameConflict, Owner};
use crate::leader_election::LeaseHolder;
use crate::template_revision::{revision_of, template_of};
use validate::CheckedServer;
use validate::image_contract::{BACKUPS, ENABLE_RCON, KEEP_PLUGIN_DATA, PREPARE_CONTAINER, SERVER_CONTAINER};

pub(crate) mod pending;
mod players;
mod start_deadline;

use pending::PendingPod;
use players::players_of;
use start_deadline::{BackupTime, start_counts_from};

/// Exit code of the agent's init container when it refuses to open the world.
const REFUSED_EXIT_CODE: i32 = 3;
/// A pod that still exists this long after its grace period is on a lost node.
const NODE_LOST_AFTER: SignedDuration = SignedDuration::from_secs(60);

/// The shortest pause before the agent is asked again for the plugins of a start.
const FIRST_START_READ: SignedDuration = SignedDuration::from_secs(3);

/// Why an observation failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ObserveError {
    #[error("could not read {kind} `{name}`")]
    Read {
        kind: &'static str,
        name: String,
        #[source]
        source: kube::Error,
    },
    #[error("the facts on StatefulSet `{name}` were not written by Nightshift (annotation {})", labels::FACTS)]
    Facts {
        name: String,
        #[source]
        source: serde_json::Error,
    },
    #[error("an object of the server has the name of another object")]
    NameConflict(#[from] NameConflict),
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// Another operator has taken over. To treat such an agent as unreachable would mean to act without its report.
    #[error("skipped a server whose agent obeys another operator")]
    Deposed(#[source] AgentError),
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// All data observed of one server in one pass.
pub(crate) struct Observed {
    pub(crate) stateful_set: Option<StatefulSet>,
    pub(crate) pod: Option<Pod>,
    pub(crate) facts: RecordedFacts,
    /// The revisions of the `StatefulSet`. `None` if it does not exist.
    pub(crate) stateful_set_view: Option<observation::StatefulSetView>,
    /// The revision from which the pod was created.
    pub(crate) pod_revision: Option<Revision>,
    /// The lock with which the pod was created.
    pub(crate) pod_lock: Option<Arc<LockRecord>>,
    pub(crate) stable: Option<Arc<StableRecord>>,
    pub(crate) stable_lock: Option<Arc<LockRecord>>,
    pub(crate) reply: AgentReply,
    /// The current restore requests. They are read only while the pod runs another lock than the stable one, or after a user requested a
    /// restore and no agent answers.
    pub(crate) init_requests: InitRequests,
    /// The `ConfigMap`s that this pass has ignored, because the operator did not write them.
    pub(crate) rejected_maps: Vec<String>,
}

/// The result of a request to the server's agent.
pub(crate) struct AgentReply {
    /// The keys of the server. `None` until the Secret exists.
    pub(crate) keys: Option<ServerKeys>,
    /// The agent's report of this pass. `None` if the agent did not answer: it has then been unreachable since `silent_since`.
    pub(crate) report: Option<Arc<AgentReport>>,
    /// The last report of the agent that this process received, and when.
    pub(crate) cached_report: Option<Arc<AgentReport>>,
    pub(crate) replied_at: Timestamp,
    /// When the first request without a reply since then was sent. The last reply itself may be much older.
    pub(crate) silent_since: Timestamp,
    /// Why a reachable agent gave no report: a reason and a message.
    pub(crate) refusal: Option<(&'static str, String)>,
}

impl AgentReply {
    /// No reply since this instant.
    pub(crate) fn unreachable(silent_since: Timestamp) -> Self {
        Self { keys: None, report: None, cached_report: None, replied_at: silent_since, silent_since, refusal: None }
    }
}

/// Reads the objects of the server and the report of its agent.
pub(crate) async fn observe(server: &PaperMCServer, ctx: &Context, now: Timestamp) -> Result<Observed, ObserveError> {
    let namespace = server.namespace().unwrap_or_default();
    let name = server.name_any();
    let stateful_sets: Api<StatefulSet> = Api::namespaced(ctx.client.clone(), &namespace);
    let owner = Owner::from(server);
    let stateful_set = stateful_sets.get_opt(&name).await.map_err(read_error("StatefulSet", &name))?;
    let stateful_set = stateful_set.map(|stateful_set| owner.check(stateful_set)).transpose()?;
    let pods: Api<Pod> = Api::namespaced(ctx.client.clone(), &namespace);
    let pod_name = format!("{name}-0");
    let pod = pods.get_opt(&pod_name).await.map_err(read_error("Pod", &pod_name))?;
    if let Some(pod) = pod.as_ref().filter(|pod| !owner.owns_pod(&pod.metadata)) {
        return Err(owner.conflict::<Pod>(&pod.metadata).into());
    }

    let facts = read_facts(server, stateful_set.as_ref())?;
    let stateful_set_view = match &stateful_set {
        Some(stateful_set) => Some(read_stateful_set_view(ctx, &namespace, stateful_set).await?),
        None => None,
    };
    let mut rejected_maps = Vec::new();
    let keys = read_keys(ctx, &owner, now).await?;
    let verifier = keys.as_ref().map(|keys| keys.signer.verifier());
    let (pod_revision, pod_lock) = match &pod {
        Some(pod) => read_pod_revision(ctx, &namespace, pod, verifier.as_ref(), &mut rejected_maps).await?,
        None => (None, None),
    };
    let (stable, stable_lock) =
        read_stable_set(ctx, &namespace, &name, &facts, verifier.as_ref(), &mut rejected_maps).await?;
    let reply = match (&pod, &keys) {
        (Some(pod), Some(keys)) => request_report(ctx, pod, &keys.agent, now).await?,
        _ => AgentReply::unreachable(now),
    };
    let report = reply.report.as_deref();
    if reply.refusal.is_some() {
        // The agent may have a new key by now.
        ctx.caches.keys.remove(&(namespace.clone(), secret_name(&name)));
    }
    let has_other_files =
        stable_lock.as_ref().zip(pod_lock.as_ref()).is_some_and(|(a, b)| a.files.lock != b.files.lock);
    let is_restore_requested = report.is_none() && server.annotations().contains_key(RESTORE_FROM);
    // The requests matter only for a roll-back to a set that supports them. A server without a rollout in progress needs no read here.
    let init_requests = match &stable {
        Some(stable) if supports_requests(stable) && (has_other_files || is_restore_requested) => {
            read_init_requests(&ctx.client, &namespace, &name, verifier.as_ref()).await?
        }
        Some(_) | None => InitRequests::default(),
    };
    let announced = report.and_then(|report| report.announced.as_ref()).zip(pod.as_ref().and_then(uid_of));
    let facts = match announced {
        Some((announced, pod)) => facts.with_announced_end(announced, pod),
        None => facts,
    };
    Ok(Observed {
        stateful_set,
        pod,
        facts,
        stateful_set_view,
        pod_revision,
        pod_lock,
        stable,
        stable_lock,
        init_requests,
        rejected_maps,
        reply: AgentReply { keys, ..reply },
    })
}

/// Reads the record of the stable revision, and its lock.
async fn read_stable_set(
    ctx: &Context,
    namespace: &str,
    name: &str,
    facts: &RecordedFacts,
    verifier: Option<&Verifier>,
    rejected: &mut Vec<String>,
) -> Result<(Option<Arc<StableRecord>>, Option<Arc<LockRecord>>), ObserveError> {
    let Some(settled) = facts.settled else { return Ok((None, None)) };
    let stable = records::read_stable(&ctx.client, &ctx.caches, namespace, name, settled.revision, verifier).await;
    let stable = unless_rejected(stable, rejected)?;
    let lock = match stable.as_ref().and_then(|record| records::mounted_lock_of(&record.template)) {
        Some(lock) => {
            let read = records::read_mounted_lock(&ctx.client, &ctx.caches, namespace, &lock, verifier).await;
            unless_rejected(read, rejected)?
        }
        None => None,
    };
    Ok((stable, lock))
}

/// Whether the init container of the stable set carries out restore requests.
fn supports_requests(stable: &StableRecord) -> bool {
    supports_backups(&stable.template) || saves_plugin_data(&stable.template)
}

impl Observed {
    /// Whether a revision is being rolled out or rolled back. That is finished whatever else is wrong.
    pub(crate) fn is_rollout_in_progress(&self) -> bool {
        let stable = self.facts.settled.map(|stable| stable.revision);
        let open = self.stateful_set_view.is_some_and(|stateful_set| stateful_set.partition == Partition::Open);
        stable.is_some() && (open || self.pod_revision.is_some_and(|revision| Some(revision) != stable))
    }

    /// Whether the revision in rollout differs from `revision`.
    pub(crate) fn is_rolling_out_other(&self, revision: Revision) -> bool {
        self.is_rollout_in_progress()
            && self.stateful_set_view.is_none_or(|stateful_set| stateful_set.template != revision)
    }

    /// The agent's report of this pass, or its last one while it is unreachable. Use it only for facts that stay true as long as the pod
    /// exists, such as that the server has opened the worlds.
    pub(crate) fn last_report(&self) -> Option<&AgentReport> {
        self.reply.report.as_deref().or(self.reply.cached_report.as_deref())
    }

    /// The pod in the rollout's types.
    pub(crate) fn pod_view(&self, start_within: SignedDuration) -> Option<observation::PodView> {
        let pod = self.pod.as_ref()?;
        Some(observation::PodView {
            uid: uid_of(pod)?,
            // A pod whose history entry was pruned has an unknown revision. It is treated as a rollout in progress.
            revision: self.pod_revision.unwrap_or(Revision(0)),
            world: self.pod_lock.as_ref().map_or(DataVersion(0), |lock| lock.world()),
            phase: pod_phase(pod, self.reply.report.as_deref(), start_within, self.backup_time(pod)),
        })
    }

    /// Estimated time for a backup or restore before this pod's server starts, as recorded when the rollout began.
    fn backup_estimate(&self) -> Option<SignedDuration> {
        self.pod_revision.and_then(|revision| self.facts.backup_duration(revision))
    }

    /// Whether the pod has an address, so that its agent may answer.
    pub(crate) fn has_pod_address(&self) -> bool {
        self.pod.as_ref().and_then(|pod| pod.status.as_ref()?.pod_ip.as_ref()).is_some()
    }

    /// The UID of the pod.
    pub(crate) fn pod_uid(&self) -> Option<PodUid> {
        uid_of(self.pod.as_ref()?)
    }

    /// Adapts the stop to the running pod: a server that was started without RCON is stopped without it, whatever the spec says now.
    pub(crate) fn adapt_to_pod(&self, checked: CheckedServer) -> CheckedServer {
        if self.runs_without_rcon() { checked.without_rcon() } else { checked }
    }

    /// Whether the server of this pod was started without RCON.
    pub(crate) fn runs_without_rcon(&self) -> bool {
        let containers = self.pod.iter().filter_map(|pod| pod.spec.as_ref()).flat_map(|spec| &spec.containers);
        let mut variables = containers
            .filter(|container| container.name == SERVER_CONTAINER)
            .flat_map(|container| container.env.iter().flatten());
        variables.any(|variable| variable.name == ENABLE_RCON && variable.value.as_deref() == Some("false"))
    }

    /// Whether the `StatefulSet` has the template of the stable revision.
    pub(crate) fn has_stable_template(&self) -> bool {
        self.stateful_set_view
            .zip(self.facts.settled)
            .is_some_and(|(stateful_set, stable)| stateful_set.template == stable.revision)
    }

    /// Whether the pod was created with the files of the stable revision.
    pub(crate) fn runs_stable_files(&self) -> bool {
        let both = self.stable_lock.as_ref().zip(self.pod_lock.as_ref());
        both.is_some_and(|(stable, pod)| stable.files.lock == pod.files.lock)
    }

    /// The termination message that the init container wrote when it refused the start.
    pub(crate) fn termination_message(&self) -> Option<&str> {
        self.init_termination().filter(|ended| ended.exit_code != 0)?.message.as_deref()
    }

    /// The files that the init container ignored, because the operator did not write them.
    pub(crate) fn lock_rejected(&self) -> Option<LockRejected> {
        LockRejected::parse(self.init_termination()?.message.as_deref()?)
    }

    /// Whether the init container refused the start because the operator did not write the files of its lock.
    pub(crate) fn is_start_rejected(&self) -> bool {
        self.termination_message().is_some_and(|message| LockRejected::parse(message).is_some())
    }

    fn init_termination(&self) -> Option<&ContainerStateTerminated> {
        self.pod.as_ref().and_then(init_status).and_then(last_termination)
    }

    /// The key that signs documents for later starts. `None` until the Secret exists.
    pub(crate) fn signer(&self) -> Option<&Signer> {
        Some(&self.reply.keys.as_ref()?.signer)
    }

    /// Why the stable revision refuses to open the worlds. Such a pod has no agent that answers.
    pub(crate) fn world_refused(&self) -> Option<WorldRefused> {
        self.termination_message().filter(|_| self.runs_stable_files()).and_then(WorldRefused::parse)
    }

    /// The players that are online.
    pub(crate) fn players(&self) -> Players {
        players_of(self.reply.report.as_deref(), self.reply.silent_since)
    }

    /// When to ask the agent again for the build and the plugins of a start that it has not read yet. The pause grows with the time since the start.
    pub(crate) fn reads_start_at(&self, now: Timestamp) -> Option<Timestamp> {
        let report = self.reply.report.as_deref()?;
        let Server::Up { since, plugins: None, .. } = report.server else { return None };
        Some(now + report.at.duration_since(since).max(FIRST_START_READ))
    }

    /// The announcement that the agent remembers.
    pub(crate) fn agent_memory(&self) -> AgentMemory {
        let reported = self.reply.report.as_ref().map(|report| report.announced.as_ref());
        reported.map_or(AgentMemory::Known, |announced| self.facts.agent_memory(announced))
    }

    /// A client for the agent of the observed pod.
    pub(crate) fn agent<'a>(&'a self, ctx: &'a Context) -> Option<Agent<'a>> {
        let pod = self.pod.as_ref()?;
        Some(Agent {
            http: &ctx.http,
            pod: pod.metadata.name.as_deref()?,
            address: pod.status.as_ref()?.pod_ip.as_deref()?,
            pod_uid: pod.metadata.uid.as_deref()?,
            key: &self.reply.keys.as_ref()?.agent,
            fence: ctx.fence,
        })
    }
}

fn uid_of(pod: &Pod) -> Option<PodUid> {
    pod.uid()?.parse().ok()
}

/// The phase of the pod. Readiness says nothing about players, so it is not used here.
fn pod_phase(
    pod: &Pod,
    report: Option<&AgentReport>,
    start_within: SignedDuration,
    backup_time: BackupTime,
) -> PodPhase {
    if let Some(deleted_at) = &pod.metadata.deletion_timestamp {
        // The API server has already added the grace period to this instant.
        return PodPhase::Stopping { overdue_at: deleted_at.0 + NODE_LOST_AFTER };
    }
    if init_status(pod).is_some_and(has_refused) {
        return PodPhase::Refused;
    }
    let server = server_status(pod);
    let was_up = server.is_some_and(|c| c.started == Some(true));
    let process = report.map(|report| &report.server);
    match process {
        Some(agent_api::Server::Up { .. } | agent_api::Server::Stopping { .. }) => PodPhase::Up,
        Some(agent_api::Server::Absent) if was_up => PodPhase::Down,
        _ if was_up => PodPhase::Up,
        // A server that crashed after it was up is restarted in place. The kubelet counts these restarts.
        _ if server.is_some_and(|c| c.restart_count > 0 && c.state.as_ref().is_some_and(|s| s.waiting.is_some())) => {
            PodPhase::Down
        }
        // A process that the agent observes is running, although the kubelet has not reported it yet.
        Some(agent_api::Server::Absent) | None if PendingPod::from_pod(pod).is_some() => PodPhase::Pending,
        _ => {
            let started_at = start_counts_from(pod, backup_time);
            let moved_at = match process {
                Some(agent_api::Server::Starting { progress_at }) => started_at.max(*progress_at),
                Some(agent_api::Server::Absent | agent_api::Server::Up { .. } | agent_api::Server::Stopping { .. })
                | None => started_at,
            };
            PodPhase::Starting { deadline: moved_at + start_within }
        }
    }
}

/// Whether pods of this template can take backups and restore them.
pub(crate) fn supports_backups(template: &PodTemplateSpec) -> bool {
    template.spec.as_ref().is_some_and(|spec| has_variable(spec, PREPARE_CONTAINER, BACKUPS))
}

/// The status of the server's container.
pub(crate) fn server_status(pod: &Pod) -> Option<&ContainerStatus> {
    pod.status.as_ref()?.container_statuses.iter().flatten().find(|container| container.name == SERVER_CONTAINER)
}

/// The condition of a pod that has this type.
pub(crate) fn pod_condition<'a>(pod: &'a Pod, of_type: &str) -> Option<&'a PodCondition> {
    pod.status.as_ref()?.conditions.iter().flatten().find(|condition| condition.type_ == of_type)
}

/// The status of the init container.
pub(crate) fn init_status(pod: &Pod) -> Option<&ContainerStatus> {
    pod.status.as_ref()?.init_container_statuses.iter().flatten().find(|container| container.name == PREPARE_CONTAINER)
}

/// Whether the server's process has run in this pod, according to the kubelet.
pub(crate) fn was_started(pod: &Pod) -> bool {
    let runs = |server: &ContainerStatus| server.state.as_ref().is_some_and(|state| state.running.is_some());
    server_status(pod).is_some_and(|server| runs(server) || last_termination(server).is_some())
}

/// Whether pods of this template save plugin data and restore it.
pub(crate) fn saves_plugin_data(template: &PodTemplateSpec) -> bool {
    template.spec.as_ref().is_some_and(|spec| has_variable(spec, PREPARE_CONTAINER, KEEP_PLUGIN_DATA))
}

fn mounts_volume(spec: &PodSpec, name: &str) -> bool {
    spec.volumes.iter().flatten().any(|volume| volume.name == name)
}

/// Whether the init container refused to let the server start.
pub(crate) fn has_refused(container: &ContainerStatus) -> bool {
    last_termination(container).is_some_and(|ended| ended.exit_code == REFUSED_EXIT_CODE)
}

/// The last termination of a container. After a successful retry the status still holds the earlier failure, which no longer matters: the
/// current state is used first.
pub(crate) fn last_termination(container: &ContainerStatus) -> Option<&ContainerStateTerminated> {
    [&container.state, &container.last_state].into_iter().flatten().find_map(|state| state.terminated.as_ref())
}

/// Reads the facts from the `StatefulSet`. If it is missing, the copy in the server's status is used. That copy becomes the stable
/// revision, never the goal.
fn read_facts(server: &PaperMCServer, stateful_set: Option<&StatefulSet>) -> Result<RecordedFacts, ObserveError> {
    let status_facts = || {
        let rollout = server.status.as_ref().and_then(|status| status.rollout.as_ref());
        rollout.map_or_else(RecordedFacts::default, facts_from_status)
    };
    match stateful_set.and_then(|stateful_set| stateful_set.annotations().get(labels::FACTS)) {
        Some(text) => {
            serde_json::from_str(text).map_err(|source| ObserveError::Facts { name: server.name_any(), source })
        }
        None => Ok(status_facts()),
    }
}

/// The facts in the status. A text that is not a revision is ignored.
fn facts_from_status(facts: &RolloutFacts) -> RecordedFacts {
    let stable = facts.settled.as_deref().and_then(|text| text.parse().ok());
    RecordedFacts {
        settled: stable.map(|revision| StableSet { revision, world: DataVersion(facts.settled_world.unwrap_or(0)) }),
        failed: facts.failed.iter().filter_map(|text| text.parse().ok()).collect(),
        announced: None,
        saved: None,
        restarted: None,
        draining: None,
        backup_estimate: None,
    }
}

async fn read_stateful_set_view(
    ctx: &Context,
    namespace: &str,
    stateful_set: &StatefulSet,
) -> Result<observation::StatefulSetView, ObserveError> {
    let spec = stateful_set.spec.as_ref();
    let status = stateful_set.status.as_ref();
    let template = spec.map_or(Revision(0), |spec| revision_of(&spec.template));
    let is_observed = status.and_then(|s| s.observed_generation) == stateful_set.metadata.generation;
    if let (true, Some(spec), Some(name)) = (is_observed, spec, status.and_then(|s| s.update_revision.as_deref())) {
        // The controller has seen this template, and keeps it in this entry. So the entry need not be read.
        remember_history(ctx, namespace, name, template, &spec.template);
    }
    let mut behind = [template; 2];
    let names = [status.and_then(|s| s.current_revision.as_deref()), status.and_then(|s| s.update_revision.as_deref())];
    for (revision, name) in behind.iter_mut().zip(names) {
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            *revision = read_history(ctx, namespace, name).await?.map_or(Revision(0), |entry| entry.revision);
        }
    }
    let strategy = spec.and_then(|s| s.update_strategy.as_ref()).and_then(|s| s.rolling_update.as_ref());
    Ok(observation::StatefulSetView {
        template,
        current: behind[0],
        update: behind[1],
        observed: is_observed,
        partition: partition_from_number(strategy.and_then(|rolling| rolling.partition)),
        scaled_to_zero: spec.and_then(|s| s.replicas) == Some(0),
    })
}

async fn read_pod_revision(
    ctx: &Context,
    namespace: &str,
    pod: &Pod,
    verifier: Option<&Verifier>,
    rejected: &mut Vec<String>,
) -> Result<(Option<Revision>, Option<Arc<LockRecord>>), ObserveError> {
    let Some(entry_name) = pod.labels().get("controller-revision-hash") else { return Ok((None, None)) };
    let Some(entry) = read_history(ctx, namespace, entry_name).await? else { return Ok((None, None)) };
    let lock = match &entry.lock {
        Some(lock) => {
            let read = records::read_mounted_lock(&ctx.client, &ctx.caches, namespace, lock, verifier).await;
            unless_rejected(read, rejected)?
        }
        None => None,
    };
    Ok((Some(entry.revision), lock))
}

/// One entry of the `StatefulSet`'s history. `None` if it was pruned or never existed.
async fn read_history(
    ctx: &Context,
    namespace: &str,
    name: &str,
) -> Result<Option<TemplateHistoryEntry>, ObserveError> {
    let key = (namespace.to_owned(), name.to_owned());
    if let Some(cached) = ctx.caches.history.get(&key) {
        return Ok(Some(cached));
    }
    let entries: Api<ControllerRevision> = Api::namespaced(ctx.client.clone(), namespace);
    let Some(entry) = entries.get_opt(name).await.map_err(read_error("ControllerRevision", name))? else {
        return Ok(None);
    };
    let Some(template) = template_of(&entry) else { return Ok(None) };
    Ok(Some(remember_history(ctx, namespace, name, revision_of(&template), &template)))
}

fn remember_history(
    ctx: &Context,
    namespace: &str,
    name: &str,
    revision: Revision,
    template: &PodTemplateSpec,
) -> TemplateHistoryEntry {
    let entry = TemplateHistoryEntry { revision, lock: records::mounted_lock_of(template) };
    ctx.caches.history.put((namespace.to_owned(), name.to_owned()), entry.clone());
    entry
}

async fn read_init_requests(
    client: &Client,
    namespace: &str,
    server: &str,
    verifier: Option<&Verifier>,
) -> Result<InitRequests, ObserveError> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let name = init_requests_map_name(server);
    let map = maps.get_opt(&name).await.map_err(read_error("ConfigMap", &name))?;
    Ok(map.as_ref().map(|map| parse_init_requests(map, verifier)).unwrap_or_default())
}

/// Whether this process is the leader according to the Lease.
async fn is_leader(ctx: &Context, now: Timestamp) -> Result<bool, ObserveError> {
    let lease_holder = LeaseHolder::new(&ctx.config, ctx.fence);
    lease_holder.is_held(&ctx.client, now).await.map_err(read_error("Lease", &ctx.config.lease))
}

/// Requests the agent's report and remembers since when the agent has been unreachable. That is not an error: it is seen as
/// [`Players::Unknown`]. The passes over a quiet server are minutes apart, so the silence begins with the first request without a reply, and
/// not with the last reply.
async fn request_report(ctx: &Context, pod: &Pod, key: &Key, now: Timestamp) -> Result<AgentReply, ObserveError> {
    let (Some(name), Some(uid)) = (pod.metadata.name.as_deref(), pod.metadata.uid.as_deref()) else {
        return Ok(AgentReply::unreachable(now));
    };
    let last = ctx.caches.agent_reports.get(&uid.to_owned());
    let first = LastAgentReport { replied_at: now, silent_since: None, report: None };
    let last = last.unwrap_or(first);
    let silent_since = last.silent_since.unwrap_or(now);
    let silent = || AgentReply {
        cached_report: last.report.clone(),
        replied_at: last.replied_at,
        ..AgentReply::unreachable(silent_since)
    };
    let Some(address) = pod.status.as_ref().and_then(|status| status.pod_ip.as_deref()) else { return Ok(silent()) };
    let agent = Agent { http: &ctx.http, pod: name, address, pod_uid: uid, key, fence: ctx.fence };
    let remember = |report: LastAgentReport| ctx.caches.agent_reports.put(uid.to_owned(), report);
    match agent.report().await {
        Ok(report) => {
            let report = Some(Arc::new(report));
            remember(LastAgentReport { replied_at: now, silent_since: None, report: report.clone() });
            Ok(AgentReply { cached_report: report.clone(), report, ..AgentReply::unreachable(now) })
        }
        Err(error @ AgentError::Deposed { .. }) if !is_leader(ctx, now).await? => Err(ObserveError::Deposed(error)),
        Err(error) => {
            tracing::debug!(pod = name, error = %crate::error_chain::ErrorChain(&error), "could not read the agent's \
            report");
            let reply = AgentReply { refusal: error.refusal(), ..silent() };
            remember(LastAgentReport { silent_since: Some(silent_since), ..last });
            Ok(reply)
        }
    }
}

pub(super) fn read_error(kind: &'static str, name: &str) -> impl FnOnce(kube::Error) -> ObserveError {
    let name = name.to_owned();
    move |source| ObserveError::Read { kind, name, source }
}

#[cfg(test)]
mod tests;
