//! Edge (writes). Deletes the objects of a server that nothing refers to any more.

use crds::paper_mc_server::HistoryEntry;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams};
use kube::{Resource as _, ResourceExt};
use validate::CheckedServer;

use super::apply::{ApplyError, delete_exactly};
use super::image_pull;
use super::observe::Observed;
use super::records::{lock_map_of, stable_map_name};
use super::render::Bundle;
use super::render::init_requests::init_requests_map_name;
use super::render::lock_config_map::lock_map_name;
use crate::context::Context;
use crate::k8s::labels;
use crate::k8s::ownership::Owner;

/// Deletes the managed `ConfigMap`s that are no longer referenced, if a revision has become stable since. References are templates, a pod's
/// history entry, the stable revision, the goal, and the sets to which a user can roll back. A pod whose lock is missing never starts. It
/// also deletes a pull pod that a dead operator left.
pub(crate) async fn clean_up(
    ctx: &Context,
    server: &CheckedServer,
    observed: &Observed,
    goal: &Bundle,
    history: &[HistoryEntry],
) -> Result<(), ApplyError> {
    let key = (server.namespace.clone(), server.name.clone());
    if ctx.caches.uncleaned.get(&key).is_none() {
        return Ok(());
    }
    let mut named: Vec<String> = vec![goal.lock.name_any()];
    named.extend(history.iter().map(|past| lock_map_name(&server.name, &past.lock)));
    let templates = [
        observed.stateful_set.as_ref().and_then(|stateful_set| stateful_set.spec.as_ref()).map(|spec| &spec.template),
        observed.stable.as_ref().map(|record| &record.template),
    ];
    let pods = templates.into_iter().flatten().map(|template| template.spec.as_ref());
    let pods = pods.chain([observed.pod.as_ref().and_then(|pod| pod.spec.as_ref())]).flatten();
    named.extend(pods.filter_map(lock_map_of).map(str::to_owned));
    named.extend(server.data.restore_from.is_some().then(|| init_requests_map_name(&server.name)));
    named.extend(observed.facts.settled.map(|stable| stable_map_name(&server.name, stable.revision)));
    let api: Api<ConfigMap> = Api::namespaced(ctx.client.clone(), &server.namespace);
    let selector = format!("{}={},{}={}", labels::SERVER, server.name, labels::MANAGED_BY.0, labels::MANAGED_BY.1);
    let listed = api.list_metadata(&ListParams::default().labels(&selector)).await.map_err(|source| {
        ApplyError::Write { verb: "list", kind: "ConfigMap".to_owned(), name: server.name.clone(), source }
    })?;
    let owner = Owner::from(server);
    for map in listed.items {
        let name = map.name_any();
        if named.contains(&name) || !owner.owns::<ConfigMap>(map.meta()) {
            continue;
        }
        delete_exactly(ctx, &api, &name, map.uid()).await.map_err(|source| ApplyError::Write {
            verb: "delete",
            kind: "ConfigMap".to_owned(),
            name,
            source,
        })?;
    }
    image_pull::delete_pull_pod(ctx, server).await?;
    ctx.caches.uncleaned.remove(&key);
    Ok(())
}
