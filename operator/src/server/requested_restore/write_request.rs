//! Edge (writes). Records the progress of a user's restore request in the status, and writes and deletes the request for the init
//! container.

use std::collections::BTreeMap;

use agent_api::restore::RequestedRestore;
use agent_api::signed::Document;
use agent_api::{OnlineBackupOutcome, ProtectBackup};
use crds::paper_mc_server::{HandledRequests, RestoreResult};
use crds::{PaperMCServer, PaperMCServerStatus};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use super::RestoreRequests;
use crate::context::Context;
use crate::k8s::events::EventText;
use crate::k8s::owned_api::OwnedError;
use crate::k8s::server_side_apply::FieldManager;
use crate::server::act::error::ActError;
use crate::server::apply::owned;
use crate::server::backups::current_backups;
use crate::server::error::PassError;
use crate::server::observe::Observed;
use crate::server::render::init_requests::{
    InitRequests, build_init_requests_map, init_requests_map_name, keys_of, parse_init_requests, signed_entries,
};
use crate::server::report;
use validate::CheckedServer;

/// Records the progress of the request if it changed. The next step is taken in another pass, based on the recorded state.
pub(crate) async fn record_progress(
    ctx: &Context,
    server: &PaperMCServer,
    checked: &CheckedServer,
    observed: &Observed,
    before: &PaperMCServerStatus,
    restores: &RestoreRequests,
    now: Timestamp,
) -> Result<bool, PassError> {
    let handled = before.last_handled.clone().unwrap_or_default();
    if handled.restore_from == restores.record {
        return Ok(false);
    }
    if restores.ends_request(handled.restore_from.as_ref()) {
        let failed = |source| PassError::Act { step: "deleteRestoreRequest", source };
        delete_request(ctx, checked).await.map_err(failed)?;
    }
    let failed = |source| PassError::Act { step: "protectBackup", source };
    protect_backup(ctx, checked, observed, restores.protected.as_ref()).await.map_err(failed)?;
    protect_during_online_backup(ctx, observed, restores.protected.as_ref()).await.map_err(failed)?;
    let finished = restores.record.as_ref().and_then(|record| Some((record.result?, record.message.clone()?)));
    if let Some((result, text)) = finished {
        let reason = if result == RestoreResult::Refused { "RequestRefused" } else { "RestoreFailed" };
        ctx.events.publish(server, &EventText { reason, warning: true, text }, now).await;
    }
    let handled = HandledRequests { restore_from: restores.record.clone(), ..handled };
    report::record_handled(ctx, server, before, handled).await.map_err(PassError::Report)?;
    Ok(true)
}

/// Writes exactly these restore requests, before the pod is deleted or another template is written. The next pod's init container must find
/// them even if no agent and no operator runs.
pub(crate) async fn write_init_requests(
    ctx: &Context,
    server: &CheckedServer,
    observed: &Observed,
    requests: &InitRequests,
) -> Result<(), ActError> {
    let map = build_init_requests_map(server, requests, observed.signer().ok_or(ActError::NoKey)?);
    ctx.metrics.api_writes.inc();
    owned(ctx, server).write(FieldManager::SERVER_CHILDREN, &map).await.map(drop).map_err(failed("write", server))
}

/// Protects the backup that a user has named, whatever backups are taken before it is restored. It leaves other requests alone, and does
/// not replace the request to restore this backup.
pub(crate) async fn protect_backup(
    ctx: &Context,
    server: &CheckedServer,
    observed: &Observed,
    request: Option<&RequestedRestore>,
) -> Result<(), ActError> {
    let Some(request) = request else { return Ok(()) };
    let signer = observed.signer().ok_or(ActError::NoKey)?;
    let api = owned::<ConfigMap>(ctx, server);
    let Some(existing) = api.get_opt(&init_requests_map_name(&server.name)).await.map_err(failed("read", server))?
    else {
        let requests = InitRequests { rollback: None, on_request: Some(request.clone()) };
        return write_init_requests(ctx, server, observed, &requests).await;
    };
    if parse_init_requests(&existing, Some(&signer.verifier()))
        .on_request
        .is_some_and(|on_request| on_request.request == request.request)
    {
        return Ok(());
    }
    // Another operator may have written the request meanwhile.
    let patch = json!({"data": BTreeMap::from(signed_entries(Document::UserRestore, request, signer))});
    ctx.metrics.api_writes.inc();
    let merged = api.merge(FieldManager::SERVER_CHILDREN, &existing, patch).await;
    merged.map(drop).map_err(failed("write", server))
}

/// Tells a running online backup to keep the named backup, because it does not read the restore requests. This precedes the record in the
/// status, so that a failure is repeated in the next pass.
async fn protect_during_online_backup(
    ctx: &Context,
    observed: &Observed,
    request: Option<&RequestedRestore>,
) -> Result<(), ActError> {
    let online = current_backups(observed).and_then(|backups| backups.online.as_ref());
    let is_running = online.is_some_and(|online| online.outcome == OnlineBackupOutcome::Running);
    let (Some(request), Some(agent), true) = (request, observed.agent(ctx), is_running) else { return Ok(()) };
    agent
        .exclude_from_pruning(&ProtectBackup { backup: request.backup.clone(), until: request.not_after })
        .await
        .map_err(ActError::Agent)
}

/// Removes only this request. A request of a roll-back may exist beside it.
async fn delete_request(ctx: &Context, server: &CheckedServer) -> Result<(), ActError> {
    let api = owned::<ConfigMap>(ctx, server);
    let existing = api.get_opt(&init_requests_map_name(&server.name)).await.map_err(failed("read", server))?;
    let Some(existing) = existing else { return Ok(()) };
    ctx.metrics.api_writes.inc();
    let patch = json!({"data": BTreeMap::from(keys_of(Document::UserRestore).map(|key| (key, Value::Null)))});
    let merged = api.merge(FieldManager::SERVER_CHILDREN, &existing, patch).await;
    merged.map(drop).map_err(failed("delete", server))
}

fn failed(intent: &'static str, server: &CheckedServer) -> impl FnOnce(OwnedError) -> ActError {
    ActError::restore_request(intent, init_requests_map_name(&server.name))
}
