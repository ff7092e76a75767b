//! Pure. Reports that no update starts automatically, because `spec.suspend` is true. `plan/gate.rs` shuts the gate for it.

use crate::k8s::events::EventText;
use crate::server::next_window::SUSPENDED;
use crate::server::plan::constraint::{ConditionSection, ConditionText, Constraint};
use crate::server::report::context::PassReport;

pub(super) struct Suspension;

/// Type of the condition, and reason of the Event.
const CONDITION: &str = "Suspended";

impl Constraint for Suspension {
    fn condition(&self, report: &PassReport<'_>) -> Option<ConditionText> {
        let message = report.plan.next_window.is_suspended.then(|| SUSPENDED.to_owned())?;
        Some(ConditionText { type_: CONDITION, status: Some(true), reason: "SpecSuspend", message })
    }

    fn section(&self) -> ConditionSection {
        ConditionSection::Windows
    }

    /// Begin and end of a suspension.
    fn events(&self, report: &PassReport<'_>) -> Vec<EventText> {
        let was_suspended = report.pass.before.conditions.iter().any(|old| old.type_ == CONDITION);
        match (was_suspended, report.plan.next_window.is_suspended) {
            (false, true) => vec![EventText { reason: CONDITION, warning: false, text: SUSPENDED.to_owned() }],
            (true, false) => vec![resumed()],
            (true, true) | (false, false) => Vec::new(),
        }
    }
}

/// A suspension or pinned set has ended.
pub(super) fn resumed() -> EventText {
    let text = "Updates are applied in their windows again.".to_owned();
    EventText { reason: "Resumed", warning: false, text }
}
