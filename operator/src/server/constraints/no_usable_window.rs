//! Pure. Reports that no update starts automatically, because blackouts cover all windows. `plan/gate.rs` shuts the gate for them.

use crate::k8s::events::EventText;
use crate::server::next_window::NO_USABLE_WINDOW;
use crate::server::plan::constraint::{ConditionSection, ConditionText, Constraint};
use crate::server::report::context::PassReport;

pub(super) struct NoUsableWindow;

/// Type of the condition, and reason of the Event.
const CONDITION: &str = "NoUsableWindow";

impl Constraint for NoUsableWindow {
    fn condition(&self, report: &PassReport<'_>) -> Option<ConditionText> {
        let message = message(report)?;
        Some(ConditionText { type_: CONDITION, status: Some(true), reason: "BlackoutsCoverWindows", message })
    }

    fn section(&self) -> ConditionSection {
        ConditionSection::Windows
    }

    fn events(&self, report: &PassReport<'_>) -> Vec<EventText> {
        let text = message(report);
        text.map(|text| EventText { reason: CONDITION, warning: true, text }).into_iter().collect()
    }
}

fn message(report: &PassReport<'_>) -> Option<String> {
    report.plan.next_window.has_no_usable_window.then(|| NO_USABLE_WINDOW.to_owned())
}
