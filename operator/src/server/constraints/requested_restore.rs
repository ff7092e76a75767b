//! Pure. Reports the restore that a user requested. An opportunistic update waits for it, and so does a set that replaces a failed one
//! (`manual_recovery.rs`). `server/requested_restore.rs` evaluates the request.

use crate::server::plan::constraint::{ConditionSection, ConditionText, Constraint};
use crate::server::report::context::PassReport;

pub(super) struct RestoreRequested;

impl Constraint for RestoreRequested {
    fn condition(&self, report: &PassReport<'_>) -> Option<ConditionText> {
        let (is_pending, reason, message) = report.plan.tasks.restores.condition_parts()?;
        Some(ConditionText { type_: "RestoreRequested", status: Some(is_pending), reason, message })
    }

    fn section(&self) -> ConditionSection {
        ConditionSection::Requests
    }
}
