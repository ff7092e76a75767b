//! Edge (writes). Schedules a pass right before the next instant at which a scheduled change may begin.

use crds::PaperMCServer;
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use tracing::warn;

use super::constraints;
use super::plan::Plan;
use crate::context::Context;
use crate::error_chain::ErrorChain;

/// How long before an instant the alarm fires. From then on the requeue is punctual by itself. An alarm at the instant would only cause a
/// second pass while hundreds of servers have their first.
const ALARM_BEFORE: SignedDuration = SignedDuration::from_mins(1);

/// The instants at which the plan may change although nothing changes in the cluster, apart from the opening of its gate.
pub(super) fn scheduled_changes(plan: &Plan) -> impl Iterator<Item = Timestamp> {
    let tasks = [plan.tasks.restarts.next, plan.tasks.backups.upcoming, plan.tasks.next_check].into_iter().flatten();
    tasks.chain(constraints::wake_ups(plan))
}

/// Sets the alarm. The requeue is the guarantee, and the alarm makes it punctual.
pub(super) async fn set_alarm(ctx: &Context, server: &PaperMCServer, plan: &Plan, at: Timestamp) {
    let instants = plan.gate.opens().into_iter().chain(scheduled_changes(plan));
    let Some(rings) = instants.map(|next| next - ALARM_BEFORE).filter(|rings| *rings > at).min() else { return };
    let wake = ctx.wake.clone();
    let object = ObjectRef::from_obj(server);
    let key = format!("{}/{}", server.namespace().unwrap_or_default(), server.name_any());
    let ring = move || {
        // The receiver is gone only when the process exits.
        drop(wake.send(object));
    };
    if let Err(error) = ctx.timer.wake_at(key, rings, ring).await {
        warn!(error = %ErrorChain(&error), rings = %rings, now = %at, "could not set an alarm for the window, the \
        restart or the backup; the timer of this pass is used");
    }
}
