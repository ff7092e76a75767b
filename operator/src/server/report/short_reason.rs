//! Pure. Renders the reason that blocks the planned update, short enough for a printer column.

use scheduler::observation::ImagesOnNode;

use super::PassReport;

/// Why the update is not applied in the next window. `None` if it is not blocked.
pub(super) fn in_short(report: &PassReport<'_>) -> Option<String> {
    let plan = report.plan;
    if plan.consent.needs_approval {
        return Some("needs approval".to_owned());
    }
    if plan.held_by_crashes && plan.is_update() {
        return Some("crash loop".to_owned());
    }
    if let Some(waits) = plan.held_by_followed() {
        return Some(waits.in_short());
    }
    let waits = match plan.seen.images {
        ImagesOnNode::Failed => Some("waits for an image"),
        ImagesOnNode::Here | ImagesOnNode::OnTheirWay | ImagesOnNode::Unknown => None,
    };
    let waits = waits.or_else(|| plan.staging_problem(report.seen).map(|_| "waits for its files"));
    waits.filter(|_| plan.is_update()).map(ToOwned::to_owned)
}
