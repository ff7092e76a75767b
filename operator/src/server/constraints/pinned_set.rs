//! Pure. Reports that a user has pinned the server to a version set, so that no other one is applied. `server/pinned_set.rs` reads the request.

use super::suspension::resumed;
use crate::k8s::events::EventText;
use crate::server::pinned_set::PinnedSet;
use crate::server::plan::constraint::{ConditionSection, ConditionText, Constraint};
use crate::server::report::context::PassReport;

pub(super) struct PinnedToSet;

/// Type of the condition, and reason of the Event.
const PINNED_TO_SET: &str = "PinnedToSet";

impl Constraint for PinnedToSet {
    fn condition(&self, report: &PassReport<'_>) -> Option<ConditionText> {
        let (reason, message) = reason_and_message(report)?;
        Some(ConditionText { type_: PINNED_TO_SET, status: Some(true), reason, message })
    }

    fn section(&self) -> ConditionSection {
        ConditionSection::Requests
    }

    /// Begin and end of a pinned set.
    fn events(&self, report: &PassReport<'_>) -> Vec<EventText> {
        let Some((_, text)) = reason_and_message(report) else {
            let was_pinned = report.pass.before.conditions.iter().any(|old| old.type_ == PINNED_TO_SET);
            return was_pinned.then(resumed).into_iter().collect();
        };
        vec![match report.plan.selection.pinned_set {
            Some(PinnedSet::Unknown { .. }) => EventText { reason: "RequestRefused", warning: true, text },
            Some(PinnedSet::RollbackTo { .. } | PinnedSet::Held { .. }) | None => {
                EventText { reason: PINNED_TO_SET, warning: false, text }
            }
        }]
    }
}

/// The pinned set, and the command that ends it.
pub(crate) fn reason_and_message(report: &PassReport<'_>) -> Option<(&'static str, String)> {
    let pinned_set = report.plan.selection.pinned_set.as_ref()?;
    let (checked, history) = (report.pass.checked, &report.pass.before.history);
    Some((pinned_set.reason(), pinned_set.message(&checked.namespace, &checked.name, history)))
}
