//! Edge (writes). Applies the children of a server in the order of their dependencies. An unchanged child is not sent: a fleet without
//! changes writes nothing.

use std::fmt::Debug;

use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, PodTemplateSpec, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{Api, DeleteParams, Patch, Preconditions};
use kube::{Resource, ResourceExt};
use scheduler::observation::{Partition, RecordedFacts};
use scheduler::rollout::Step;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::agent_image::keep_agent_image;
use super::drain::DisruptionBudget;
use super::model::keys::ServerKeys;
use super::observe::Observed;
use super::render::Bundle;
use super::render::pod_disruption_budget::build_budget;
use super::render::secret::build_secret;
use super::render::stateful_set::build_stateful_set;
use super::render::template_defaults::{own_texts, with_placeholders, without_placeholders};
use super::server_keys::parse_keys;
use crate::caches::{AppliedObject, Key, KnownKeys, Rendered, is_fresh};
use crate::clock::now;
use crate::context::Context;
use crate::k8s::labels;
use crate::k8s::owned_api::{Creation, OwnedApi, OwnedError};
use crate::k8s::ownership::NameConflict;
use crate::k8s::server_side_apply::FieldManager;
use crate::random_secret::{GeneratedPassword, random_hex};
use crate::template_revision::{digest, revision_of};
use validate::CheckedServer;

/// Why a child could not be applied.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApplyError {
    #[error("an object of the server has the name of another object")]
    NameConflict(#[source] NameConflict),
    #[error("could not {verb} {kind} `{name}`")]
    Write {
        verb: &'static str,
        kind: String,
        name: String,
        #[source]
        source: kube::Error,
    },
    #[error("the API server rejects the pod template that results from `spec.podTemplate`")]
    Template {
        #[source]
        source: kube::Error,
    },
}

impl ApplyError {
    /// Whether the user has to fix the error. A rejected template is such an error. All others may disappear by themselves.
    pub(crate) fn is_user_error(&self) -> bool {
        match self {
            Self::Template { source: kube::Error::Api(status) } => status.code == 422 || status.code == 400,
            Self::Template { .. } | Self::Write { .. } | Self::NameConflict(_) => false,
        }
    }
}

/// Returns a template with the API server's defaults. It makes a dry run of a `StatefulSet` with a name that nobody can guess, so that no
/// field of another object becomes part of the goal. The template of the stable revision needs none: its record has it with the defaults. The server keeps
/// the image of its agent while the agent is the same.
pub(crate) async fn render(
    ctx: &Context,
    server: &CheckedServer,
    observed: &Observed,
    bundle: &Bundle,
) -> Result<Rendered, ApplyError> {
    Ok(keep_agent_image(render_with_defaults(ctx, server, observed, bundle).await?, observed))
}

async fn render_with_defaults(
    ctx: &Context,
    server: &CheckedServer,
    observed: &Observed,
    bundle: &Bundle,
) -> Result<Rendered, ApplyError> {
    let source = to_json(&bundle.template);
    let hash = digest(&source);
    if let Some(cached) = ctx.caches.rendered.get(&hash) {
        return Ok(cached);
    }
    let rendered = if let Some(rendered) = stable_rendering(observed, hash) {
        rendered
    } else {
        let template = add_defaults(ctx, server, bundle, source).await?;
        Rendered { revision: revision_of(&template), template: template.into(), source: Some(hash) }
    };
    ctx.caches.rendered.put(hash, rendered.clone());
    Ok(rendered)
}

/// The template with the API server's defaults. Equal servers share one dry run.
async fn add_defaults(
    ctx: &Context,
    server: &CheckedServer,
    bundle: &Bundle,
    source: Value,
) -> Result<PodTemplateSpec, ApplyError> {
    let own = own_texts(server, bundle);
    let shape = digest(&with_placeholders(source, &own));
    if let Some(defaulted) = ctx.caches.defaults.get(&shape)
        && let Ok(template) = serde_json::from_value(without_placeholders((*defaulted).clone(), &own))
    {
        return Ok(template);
    }
    let (template, facts) = (bundle.template.clone(), RecordedFacts::default());
    let mut stateful_set = build_stateful_set(server, template, Partition::Closed, &facts);
    stateful_set.metadata.name = Some(format!("{}-render-{}", server.name, random_hex::<8>()));
    let api: Api<StatefulSet> = Api::namespaced(ctx.client.clone(), &server.namespace);
    let made = FieldManager::SERVER_CHILDREN
        .dry_run(&api, &stateful_set)
        .await
        .map_err(|source| ApplyError::Template { source })?;
    let template = made.spec.map(|spec| spec.template).unwrap_or_default();
    ctx.caches.defaults.put(shape, with_placeholders(to_json(&template), &own).into());
    Ok(template)
}

/// The recorded template of the stable revision, if it was rendered from the template with this digest. An API server with other defaults
/// returns the `StatefulSet` with another revision, and then the record does not count.
fn stable_rendering(observed: &Observed, hash: [u8; 32]) -> Option<Rendered> {
    let stable = observed.stable.as_ref().filter(|stable| stable.source == Some(hash))?;
    let revision = revision_of(&stable.template);
    let is_current =
        observed.has_stable_template() && observed.facts.settled.is_some_and(|settled| settled.revision == revision);
    is_current.then(|| Rendered { revision, template: stable.template.clone().into(), source: Some(hash) })
}

/// Creates the Secret if it does not exist, and returns its keys. It is never changed afterwards. `None`: another operator has just created it.
pub(crate) async fn ensure_secret(
    ctx: &Context,
    server: &CheckedServer,
    observed: &Observed,
) -> Result<Option<ServerKeys>, ApplyError> {
    if let Some(keys) = &observed.reply.keys {
        return Ok(Some(keys.clone()));
    }
    let [agent_key, signing_key] = [(), ()].map(|()| GeneratedPassword(random_hex::<32>()));
    let secret = build_secret(server, &GeneratedPassword(random_hex::<16>()), &agent_key, &signing_key);
    ctx.metrics.api_writes.inc();
    let made = owned(ctx, server).create(FieldManager::SERVER_CHILDREN, &secret).await;
    if let Creation::Existing(_) = made.map_err(failed("create", &secret))? {
        return Ok(None);
    }
    let keys = parse_keys(&server.namespace, &server.name, &agent_key.0, &signing_key.0).ok();
    if let Some(keys) = keys.clone() {
        let cache_key = (server.namespace.clone(), secret.name_any());
        ctx.caches.keys.put(cache_key, KnownKeys { keys, read_at: now() });
    }
    Ok(keys)
}

/// Required age of the observation of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ObservedAge {
    /// The server has no `StatefulSet` yet, so its children are applied without a read.
    New,
    /// Recent enough according to [`is_fresh`].
    Recent,
    /// Not before this instant.
    Since(Timestamp),
}

impl ObservedAge {
    /// Whether a child that was last observed then need not be read at `at`.
    fn allows(self, verified_at: Timestamp, at: Timestamp) -> bool {
        match self {
            Self::New | Self::Recent => is_fresh(verified_at, at),
            Self::Since(since) => (since..=at).contains(&verified_at),
        }
    }
}

/// Whether the step creates a pod, or may create one. A pod never starts without the objects that its template names.
fn may_create_pod(step: Step) -> bool {
    match step {
        Step::Create { .. }
        | Step::WriteTemplate { .. }
        | Step::Commit { .. }
        | Step::Restore { .. }
        | Step::RequestRestore { .. }
        | Step::RequestPluginDataRestore { .. }
        | Step::RollBack { .. }
        | Step::RollForward { .. }
        | Step::Restart { .. } => true,
        Step::Stage
        | Step::Announce { .. }
        | Step::Reannounce { .. }
        | Step::Save { .. }
        | Step::MarkFailed { .. }
        | Step::MarkStable { .. }
        | Step::EndRestart
        | Step::BeginDrain { .. }
        | Step::EndDrain
        | Step::CancelAnnouncement { .. }
        | Step::UpToDate
        | Step::Wait(_) => false,
    }
}

/// Applies everything but the template, which only the rollout writes. A child that was observed recently is not read again.
pub(crate) async fn apply_children(
    ctx: &Context,
    server: &CheckedServer,
    observed: &Observed,
    bundle: &Bundle,
) -> Result<(), ApplyError> {
    let age = if observed.stateful_set.is_none() { ObservedAge::New } else { ObservedAge::Recent };
    apply_each(ctx, server, bundle, age).await
}

/// Applies the children again, right before a step that creates a pod: then all of them must exist. A child that this pass, which began at
/// `since`, has applied or read is not read again.
pub(crate) async fn apply_children_before(
    step: Step,
    ctx: &Context,
    server: &CheckedServer,
    bundle: &Bundle,
    since: Timestamp,
) -> Result<(), ApplyError> {
    if may_create_pod(step) { apply_each(ctx, server, bundle, ObservedAge::Since(since)).await } else { Ok(()) }
}

async fn apply_each(
    ctx: &Context,
    server: &CheckedServer,
    bundle: &Bundle,
    age: ObservedAge,
) -> Result<(), ApplyError> {
    // No `..`, so that a new kind of child does not compile until it is applied here.
    let Bundle { claim, backup_claim, service, lock, new_volume, template: _ } = bundle;
    for claim in [claim, backup_claim].into_iter().flatten() {
        apply::<PersistentVolumeClaim>(ctx, FieldManager::SERVER_CHILDREN, server, claim, age).await?;
    }
    apply::<Service>(ctx, FieldManager::SERVER_CHILDREN, server, service, age).await?;
    apply_new_volume_request(ctx, server, new_volume, age).await?;
    // The lock is last, and before any template that names it: a pod whose `ConfigMap` is missing never starts (measured).
    apply_lock(ctx, server, lock, age).await
}

/// Applies the lock. It is immutable, so one with other content was written by somebody else: it is replaced.
async fn apply_lock(
    ctx: &Context,
    server: &CheckedServer,
    lock: &ConfigMap,
    age: ObservedAge,
) -> Result<(), ApplyError> {
    let writer = FieldManager::SERVER_CHILDREN;
    match apply::<ConfigMap>(ctx, writer, server, lock, age).await {
        Err(ApplyError::Write { source: kube::Error::Api(status), .. }) if status.code == 422 => {}
        applied => return applied,
    }
    let api = owned::<ConfigMap>(ctx, server);
    if let Some(live) = api.get_opt(&lock.name_any()).await.map_err(failed("read", lock))? {
        ctx.metrics.api_writes.inc();
        api.delete(&live).await.map_err(failed("delete", lock))?;
    }
    ctx.caches.applied.remove(&key_of(&server.namespace, lock));
    apply(ctx, writer, server, lock, ObservedAge::New).await
}

/// Applies the restore request for a new volume before any pod that would otherwise create a new world. Removes it when the spec no longer
/// has it.
async fn apply_new_volume_request(
    ctx: &Context,
    server: &CheckedServer,
    request: &ConfigMap,
    age: ObservedAge,
) -> Result<(), ApplyError> {
    let key = key_of(&server.namespace, request);
    let ends = request.data.is_none();
    if ends && ctx.caches.applied.get(&key).is_none() {
        return Ok(());
    }
    apply::<ConfigMap>(ctx, FieldManager::NEW_VOLUME, server, request, age).await?;
    if ends {
        ctx.caches.applied.remove(&key);
    }
    Ok(())
}

fn key_of<K: Resource<DynamicType = ()>>(namespace: &str, object: &K) -> Key {
    (namespace.to_owned(), format!("{}/{}", K::kind(&()), object.name_any()))
}

/// Applies or deletes the budget that decides whether the pod may be evicted. This happens once the step is known, and before it is carried
/// out.
pub(crate) async fn apply_budget(
    ctx: &Context,
    server: &CheckedServer,
    observed: &Observed,
    budget: DisruptionBudget,
) -> Result<(), ApplyError> {
    let is_new = observed.stateful_set.is_none() && observed.facts.settled.is_none();
    let lets_through = match budget {
        DisruptionBudget::Unchanged => return Ok(()),
        // A server that never ran has no budget yet.
        DisruptionBudget::None if is_new => {
            ctx.caches.without_budget.put((server.namespace.clone(), server.name.clone()), ());
            return Ok(());
        }
        DisruptionBudget::None => return delete_budget(ctx, server).await,
        DisruptionBudget::Shut => false,
        DisruptionBudget::Open => true,
    };
    ctx.caches.without_budget.remove(&(server.namespace.clone(), server.name.clone()));
    let age = ObservedAge::Since(now());
    apply(ctx, FieldManager::SERVER_CHILDREN, server, &build_budget(server, lets_through), age).await
}

/// Deletes the budget. Each process looks for it once. A budget of somebody else is left alone.
async fn delete_budget(ctx: &Context, server: &CheckedServer) -> Result<(), ApplyError> {
    let key = (server.namespace.clone(), server.name.clone());
    if ctx.caches.without_budget.get(&key).is_some() {
        return Ok(());
    }
    let api = owned::<PodDisruptionBudget>(ctx, server);
    let budget = build_budget(server, true);
    match api.get_opt(&server.name).await {
        Ok(Some(existing)) => {
            ctx.metrics.api_writes.inc();
            api.delete(&existing).await.map_err(failed("delete", &budget))?;
        }
        Ok(None) | Err(OwnedError::NameConflict(_)) => {}
        Err(error) => return Err(failed("read", &budget)(error)),
    }
    ctx.caches.without_budget.put(key, ());
    Ok(())
}

/// Applies the object server-side, unless the last apply was identical and no field of it has changed since. The object carries the digest
/// of its last apply, so that this also holds for an apply by an earlier process.
async fn apply<K>(
    ctx: &Context,
    writer: FieldManager,
    server: &CheckedServer,
    desired: &K,
    age: ObservedAge,
) -> Result<(), ApplyError>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned,
{
    let key = key_of(&server.namespace, desired);
    let digest = digest(&to_json(desired));
    let at = now();
    let mut is_missing = age == ObservedAge::New;
    if let Some(last) = ctx.caches.applied.get(&key).filter(|last| last.digest == digest) {
        if age.allows(last.verified_at, at) {
            return Ok(());
        }
        let api: Api<K> = Api::namespaced(ctx.client.clone(), &server.namespace);
        let live = api.get_metadata_opt(&desired.name_any()).await;
        let live = live.map_err(|error| failed("read", desired)(error.into()))?;
        is_missing = live.is_none();
        if live.is_some_and(|live| live.metadata.resource_version == last.resource_version) {
            ctx.caches.applied.put(key, AppliedObject { verified_at: at, ..last });
            return Ok(());
        }
    }
    let mut marked = desired.clone();
    marked.annotations_mut().insert(labels::APPLIED.to_owned(), hex::encode(&digest[..8]));
    let live = write_if_changed(ctx, writer, server, &marked, is_missing).await?;
    ctx.caches.applied.put(key, AppliedObject { digest, resource_version: live.resource_version(), verified_at: at });
    Ok(())
}

/// Creates the object, or applies it if it differs from the existing one. Returns it as it is then.
async fn write_if_changed<K>(
    ctx: &Context,
    writer: FieldManager,
    server: &CheckedServer,
    desired: &K,
    is_missing: bool,
) -> Result<K, ApplyError>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned,
{
    let api = owned::<K>(ctx, server);
    let live =
        if is_missing { None } else { api.get_opt(&desired.name_any()).await.map_err(failed("read", desired))? };
    let live = if let Some(live) = live {
        live
    } else {
        ctx.metrics.api_writes.inc();
        match api.create(writer, desired).await.map_err(failed("create", desired))? {
            Creation::New(created) => return Ok(created),
            Creation::Existing(live) => live,
        }
    };
    if contains(&to_json(&live), &to_json(&api.fitted(desired.clone(), &live))) {
        return Ok(live);
    }
    ctx.metrics.api_writes.inc();
    api.apply(writer, desired, &live).await.map_err(failed("apply", desired))
}

/// The objects of one kind of the server.
pub(crate) fn owned<K>(ctx: &Context, server: &CheckedServer) -> OwnedApi<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned,
{
    OwnedApi::new(&ctx.client, server)
}

fn to_json(object: &impl Serialize) -> Value {
    serde_json::to_value(object).expect("a Kubernetes type serialises")
}

/// Whether `live` has every field of `applied` with the same value. Its other fields are defaults, or belong to others. A value that the API
/// server stores in another form counts as different, and is applied once by each process.
fn contains(live: &Value, applied: &Value) -> bool {
    match (live, applied) {
        (Value::Object(live), Value::Object(applied)) => applied
            .iter()
            .all(|(name, field)| live.get(name).map_or(field.is_null(), |live_field| contains(live_field, field))),
        (Value::Array(live), Value::Array(applied)) => {
            live.len() == applied.len() && live.iter().zip(applied).all(|(live, applied)| contains(live, applied))
        }
        (live, applied) => live == applied,
    }
}

/// Applies `spec.replicas`, which a user may set to 0 and a crash loop sets to 0 (`super::crash_loop::stopped`). All other fields of the
/// `StatefulSet` belong to the rollout. The write names the observed resourceVersion, so that no server is stopped because of outdated
/// data. Returns `true` if the replicas changed or the write conflicted: the caller observes again.
pub(crate) async fn apply_replicas(
    ctx: &Context,
    server: &CheckedServer,
    observed: &Observed,
) -> Result<bool, ApplyError> {
    let Some(stateful_set) = &observed.stateful_set else { return Ok(false) };
    if stateful_set.spec.as_ref().and_then(|spec| spec.replicas) == Some(server.pod.replicas) {
        return Ok(false);
    }
    let api: Api<StatefulSet> = Api::namespaced(ctx.client.clone(), &server.namespace);
    let preconditions =
        json!({"uid": stateful_set.metadata.uid, "resourceVersion": stateful_set.metadata.resource_version});
    let patch = json!({"metadata": preconditions, "spec": {"replicas": server.pod.replicas}});
    ctx.metrics.api_writes.inc();
    match api.patch(&server.name, &FieldManager::ROLLOUT.patch_params(), &Patch::Merge(&patch)).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.is_conflict() => Ok(true),
        Err(source) => Err(failed("scale", stateful_set)(source.into())),
    }
}

/// Deletes the observed object and no other of its name. An object that is gone or was recreated is left alone.
pub(crate) async fn delete_exactly<K>(
    ctx: &Context,
    api: &Api<K>,
    name: &str,
    uid: Option<String>,
) -> Result<(), kube::Error>
where
    K: Clone + Debug + DeserializeOwned,
{
    delete_exactly_with(ctx, api, name, uid, DeleteParams::default()).await
}

/// The same with delete parameters other than the defaults.
pub(super) async fn delete_exactly_with<K>(
    ctx: &Context,
    api: &Api<K>,
    name: &str,
    uid: Option<String>,
    how: DeleteParams,
) -> Result<(), kube::Error>
where
    K: Clone + Debug + DeserializeOwned,
{
    let preconditions = Preconditions { uid, resource_version: None };
    ctx.metrics.api_writes.inc();
    match api.delete(name, &DeleteParams { preconditions: Some(preconditions), ..how }).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => Ok(()),
        Err(source) => Err(source),
    }
}

fn failed<K: Resource<DynamicType = ()>>(verb: &'static str, object: &K) -> impl Fn(OwnedError) -> ApplyError {
    let (kind, name) = (K::kind(&()).into_owned(), object.name_any());
    move |error| match error {
        OwnedError::NameConflict(conflict) => ApplyError::NameConflict(conflict),
        OwnedError::Kube(source) => ApplyError::Write { verb, kind: kind.clone(), name: name.clone(), source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn applied_child_counts_as_unchanged_despite_defaults() {
        let applied = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"ports": [{"port": 1}], "class": null}});
        let with = |change: &dyn Fn(&mut Value)| {
            let mut live = json!({
                "metadata": {"labels": {"a": "b", "team": "x"}, "resourceVersion": "7"},
                "spec": {"ports": [{"port": 1, "nodePort": 30_000}], "clusterIP": "10.0.0.1"}, "status": {},
            });
            change(&mut live);
            contains(&live, &applied)
        };
        assert!(with(&|_| {}), "defaults and fields of others do not count");
        assert!(!with(&|live| live["metadata"]["labels"]["a"] = json!("c")));
        assert!(!with(&|live| drop(live["metadata"].as_object_mut().unwrap().remove("labels"))));
        assert!(!with(&|live| live["spec"]["ports"][0]["port"] = json!(2)));
        assert!(!with(&|live| live["spec"]["ports"].as_array_mut().unwrap().push(json!({"port": 3}))));
    }
}
