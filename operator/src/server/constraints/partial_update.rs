//! Pure. Reports a partial update: everything else in the newest version set waits. `resolve.rs` selects it.

use jiff::Timestamp;

use crate::k8s::labels::APPLY_NOW;
use crate::server::partial::PartialSelection;
use crate::server::plan::Plan;
use crate::server::plan::constraint::{ConditionSection, ConditionText, Constraint};
use crate::server::report::context::PassReport;

pub(super) struct PartialUpdateRequested;

impl Constraint for PartialUpdateRequested {
    fn wake_at(&self, plan: &Plan) -> Option<Timestamp> {
        plan.selection.partial.ends_at(plan.selection.partial_until)
    }

    fn condition(&self, report: &PassReport<'_>) -> Option<ConditionText> {
        let (is_partial, reason, message) = match &report.plan.selection.partial {
            PartialSelection::Nothing | PartialSelection::UpToDate(_) => return None,
            PartialSelection::Requested(scope) => (true, "Asked", rest_waits(&format!("`{APPLY_NOW}` names {scope}"))),
            PartialSelection::Urgent(urgent) => {
                let (reason, message) = urgent.reason_and_message();
                (true, reason, rest_waits(&message))
            }
            PartialSelection::Refused(why) => (false, "Refused", why.clone()),
        };
        Some(ConditionText { type_: "PartialUpdate", status: Some(is_partial), reason, message })
    }

    fn section(&self) -> ConditionSection {
        ConditionSection::Requests
    }
}

fn rest_waits(message: &str) -> String {
    format!("{message}. Everything else keeps its running version.")
}
