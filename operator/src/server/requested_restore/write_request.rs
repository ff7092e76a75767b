//! Edge (writes). Records the progress of a user's restore request in the status, and writes and deletes the request for the init
//! container.

use crds::paper_mc_server::{HandledRequests, RestoreResult};
use crds::{PaperMCServer, PaperMCServerStatus};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch};
use scheduler::protocol::restore::{ASKED_ORDER, AskedRestore};
use scheduler::protocol::{HotCopyOutcome, KeepCopy};
use serde_json::json;

use super::RestoreRequests;
use crate::context::Context;
use crate::k8s::events::EventText;
use crate::k8s::server_side_apply::FieldManager;
use crate::server::PassError;
use crate::server::act::ActError;
use crate::server::backups::copies;
use crate::server::check::CheckedServer;
use crate::server::observe::Observed;
use crate::server::render::init_orders::{InitOrders, build_orders_map, in_json, orders_in, orders_map_name};
use crate::server::report;

/// Records the progress of the request if it changed. The next step is taken in another pass, based on the recorded state.
pub(crate) async fn note(
    ctx: &Context,
    server: &PaperMCServer,
    checked: &CheckedServer,
    seen: &Observed,
    before: &PaperMCServerStatus,
    restores: &RestoreRequests,
    now: Timestamp,
) -> Result<bool, PassError> {
    let handled = before.last_handled.clone().unwrap_or_default();
    if handled.restore_from == restores.noted {
        return Ok(false);
    }
    if restores.ends_order(handled.restore_from.as_ref()) {
        let failed = |source| PassError::Act { step: "endRestoreOrder", source };
        end_order(ctx, checked).await.map_err(failed)?;
    }
    let failed = |source| PassError::Act { step: "keepCopy", source };
    keep_copy(ctx, checked, restores.keeps.as_ref()).await.map_err(failed)?;
    keep_beside_hot_copy(ctx, seen, restores.keeps.as_ref()).await.map_err(failed)?;
    let told = restores.noted.as_ref().and_then(|noted| Some((noted.result?, noted.message.clone()?)));
    if let Some((result, text)) = told {
        let reason = if result == RestoreResult::Refused { "RequestRefused" } else { "RestoreFailed" };
        ctx.events.publish(server, &EventText { reason, warning: true, text }, now).await;
    }
    let handled = HandledRequests { restore_from: restores.noted.clone(), ..handled };
    report::note_handled(ctx, server, before, handled).await.map_err(PassError::Report)?;
    Ok(true)
}

/// Writes exactly these restore requests, before the pod is deleted or another template is written. The next pod's init container must find
/// them even if no agent and no operator runs.
pub(crate) async fn give_orders(ctx: &Context, server: &CheckedServer, orders: &InitOrders) -> Result<(), ActError> {
    let map = build_orders_map(server, orders);
    ctx.metrics.api_writes.inc();
    FieldManager::SERVER_CHILDREN.apply(&maps(ctx, server), &map).await.map(drop).map_err(failed("write", server))
}

/// Protects the backup that a user has named, whatever backups are taken before it is restored. It leaves other requests alone, and does
/// not replace the request to restore this backup.
pub(crate) async fn keep_copy(
    ctx: &Context,
    server: &CheckedServer,
    order: Option<&AskedRestore>,
) -> Result<(), ActError> {
    let Some(order) = order else { return Ok(()) };
    let (api, name) = (maps(ctx, server), orders_map_name(&server.name));
    let Some(there) = api.get_opt(&name).await.map_err(failed("read", server))? else {
        return give_orders(ctx, server, &InitOrders { back: None, asked: Some(order.clone()) }).await;
    };
    if orders_in(&there).asked.is_some_and(|asked| asked.request == order.request) {
        return Ok(());
    }
    // The write names the resourceVersion that was read, because another operator may have written the request meanwhile.
    let version = there.metadata.resource_version;
    let patch = json!({"metadata": {"resourceVersion": version}, "data": {ASKED_ORDER: in_json(order)}});
    ctx.metrics.api_writes.inc();
    let patched = api.patch(&name, &FieldManager::SERVER_CHILDREN.patch_params(), &Patch::Merge(&patch)).await;
    patched.map(drop).map_err(failed("write", server))
}

/// Tells a running online backup to keep the named backup, because it does not read the restore requests. This precedes the record in the
/// status, so that a failure is repeated in the next pass.
async fn keep_beside_hot_copy(ctx: &Context, seen: &Observed, order: Option<&AskedRestore>) -> Result<(), ActError> {
    let hot = copies(seen).and_then(|copies| copies.hot.as_ref());
    let is_running = hot.is_some_and(|hot| hot.outcome == HotCopyOutcome::Running);
    let (Some(order), Some(agent), true) = (order, seen.agent(ctx), is_running) else { return Ok(()) };
    agent.keep(&KeepCopy { copy: order.copy.clone(), until: order.not_after }).await.map_err(ActError::Agent)
}

/// Removes only this request. A request of a roll-back may exist beside it.
async fn end_order(ctx: &Context, server: &CheckedServer) -> Result<(), ActError> {
    let patch = json!({"data": {ASKED_ORDER: null}});
    let name = orders_map_name(&server.name);
    ctx.metrics.api_writes.inc();
    match maps(ctx, server).patch(&name, &FieldManager::SERVER_CHILDREN.patch_params(), &Patch::Merge(&patch)).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        Err(source) => Err(failed("end", server)(source)),
    }
}

fn maps(ctx: &Context, server: &CheckedServer) -> Api<ConfigMap> {
    Api::namespaced(ctx.client.clone(), &server.namespace)
}

fn failed(intent: &'static str, server: &CheckedServer) -> impl FnOnce(kube::Error) -> ActError {
    let name = orders_map_name(&server.name);
    move |source| ActError::Order { intent, name, source }
}
