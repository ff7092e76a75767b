//! Edge (writes). Requests the due backup from the agent. The pass continues whatever the answer is, because nothing depends on it.

use crds::PaperMCServer;
use crds::paper_mc_server::BackupSchedule;
use jiff::Timestamp;
use scheduler::rollout::Step;
use tracing::info;

use super::may_be_taken;
use crate::agent_client::AgentError;
use crate::caches::Key;
use crate::context::Context;
use crate::error_chain::ErrorChain;
use crate::server::last_status;
use crate::server::observe::Observed;
use crate::server::plan::Plan;

/// Whether the agent of the observed pod has rejected such requests as unknown. It then gets no further ones.
pub(crate) fn is_too_old(ctx: &Context, observed: &Observed) -> bool {
    pod_uid(observed).is_some_and(|uid| ctx.caches.without_online_backup.get(&uid).is_some())
}

/// Requests the due backup, if this pass may. The result is recorded in `plan`.
pub(crate) async fn request_backup(ctx: &Context, observed: &Observed, plan: &mut Plan, step: Step) {
    let may_be_taken = may_be_taken(&plan.goal, &plan.observation, observed.reply.report.as_deref(), plan.gate, step);
    // A new backup could push out the one that a user wants to restore.
    if plan.tasks.backups.needs_restart || !may_be_taken || plan.tasks.restores.is_open() {
        return;
    }
    let (Some(due), Some(agent)) = (&plan.tasks.backups.due, observed.agent(ctx)) else { return };
    match agent.back_up(due).await {
        Ok(()) => {
            info!(request = due.request, "requested an online backup");
            plan.tasks.backups.due = None;
            plan.tasks.backups.is_running = true;
        }
        Err(error) => {
            if let AgentError::TooOld { .. } = error {
                plan.tasks.backups.needs_restart = true;
                if let Some(uid) = pod_uid(observed) {
                    ctx.caches.without_online_backup.put(uid, ());
                }
            }
            let why = ErrorChain(&error).to_string();
            info!(request = due.request, error = why, "the online backup has to wait");
            plan.tasks.backups.refusal = Some(why);
        }
    }
}

/// Updates the metric for the oldest last backup of all servers, from the last written status. A server that is scaled to zero has no
/// changes to back up. Servers that are backed up only after play are excluded, because an old backup may be as good as a new one.
pub(crate) fn record_oldest_backup(ctx: &Context, key: &Key, server: &PaperMCServer) {
    let always = |schedule: &BackupSchedule| !schedule.is_skipped_if_unplayed();
    let backup =
        server.spec.backup.as_ref().filter(|backup| backup.enabled && backup.schedule.as_ref().is_some_and(always));
    let status = last_status::status_before(ctx, server);
    if backup.is_some() && status.replicas.is_some_and(|pods| pods > 0) {
        let last = status.backup.as_ref().and_then(|backup| backup.last_backup.as_ref()).map(|last| last.completed_at);
        let made = || server.metadata.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |made| made.0);
        ctx.caches.last_backups.put(key.clone(), last.unwrap_or_else(made));
    } else {
        ctx.caches.last_backups.remove(key);
    }
    let oldest = ctx.caches.last_backups.min_value().map_or(0, Timestamp::as_second);
    ctx.metrics.backup_oldest_at.set(oldest);
}

fn pod_uid(observed: &Observed) -> Option<String> {
    observed.pod.as_ref()?.metadata.uid.clone()
}
