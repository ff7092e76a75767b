//! Edge (writes). Keeps the status at what is known of a person's request to restore, and gives and ends the order for it.

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

/// Writes down how far the request has come, if that is news. The next step is taken in another pass, by what stands there then.
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

/// These, and none beside them. Before the pod is deleted or another template written: the init container of the next pod must find them with no
/// agent and no operator alive.
pub(crate) async fn give_orders(ctx: &Context, server: &CheckedServer, orders: &InitOrders) -> Result<(), ActError> {
    let map = build_orders_map(server, orders);
    ctx.metrics.api_writes.inc();
    FieldManager::SERVER_CHILDREN.apply(&maps(ctx, server), &map).await.map(drop).map_err(failed("write", server))
}

/// The copy that a person has named stays from now on, whatever is copied before it is put in place. Beside what else stands there, and not in the
/// place of the order to put it in place.
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
    // As it was read: another operator may have given the order meanwhile.
    let version = there.metadata.resource_version;
    let patch = json!({"metadata": {"resourceVersion": version}, "data": {ASKED_ORDER: in_json(order)}});
    ctx.metrics.api_writes.inc();
    let patched = api.patch(&name, &FieldManager::SERVER_CHILDREN.patch_params(), &Patch::Merge(&patch)).await;
    patched.map(drop).map_err(failed("write", server))
}

/// The copy of the running server that is under way does not read orders. Before the request is noted: what it was not told is told in the next pass.
async fn keep_beside_hot_copy(ctx: &Context, seen: &Observed, order: Option<&AskedRestore>) -> Result<(), ActError> {
    let hot = copies(seen).and_then(|copies| copies.hot.as_ref());
    let is_running = hot.is_some_and(|hot| hot.outcome == HotCopyOutcome::Running);
    let (Some(order), Some(agent), true) = (order, seen.agent(ctx), is_running) else { return Ok(()) };
    agent.keep(&KeepCopy { copy: order.copy.clone(), until: order.not_after }).await.map_err(ActError::Agent)
}

/// This order alone: that of a roll-back may stand beside it.
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
