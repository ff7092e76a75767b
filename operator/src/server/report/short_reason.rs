//! Pure. Renders the reason that blocks the planned update, short enough for a printer column.

use scheduler::observation::ImagesOnNode;

use super::context::PassReport;

/// Why the update is not applied in the next window. `None` if it is not blocked.
pub(super) fn wait_reason(report: &PassReport<'_>) -> Option<String> {
    let plan = report.plan;
    if plan.approval.needs_approval {
        return Some("needs approval".to_owned());
    }
    if plan.held_by_crashes && plan.is_update() {
        return Some("crash loop".to_owned());
    }
    if let Some(waits) = plan.leader_wait() {
        return Some(waits.short());
    }
    let waits = match plan.observation.images {
        ImagesOnNode::Failed => Some("waits for an image"),
        ImagesOnNode::Present | ImagesOnNode::Pulling | ImagesOnNode::Unknown => None,
    };
    let waits = waits.or_else(|| plan.staging_problem(report.observed).map(|_| "waits for files"));
    waits.filter(|_| plan.is_update()).map(ToOwned::to_owned)
}
