//! Pure. Renders the reason that blocks the planned update, short enough for a printer column.

use scheduler::observation::ImagesOnNode;

use super::context::PassReport;
use crate::server::constraints;

/// Why the update is not applied in the next window. `None` if it is not blocked.
pub(super) fn wait_reason(report: &PassReport<'_>) -> Option<String> {
    if !report.plan.is_update() {
        return None;
    }
    if let Some(short) = constraints::wait(report).and_then(|wait| wait.short) {
        return Some(short);
    }
    if report.plan.observation.images == ImagesOnNode::Failed {
        return Some("waits for an image".to_owned());
    }
    report.plan.staging_problem(report.pass.observed).map(|_| "waits for files".to_owned())
}
