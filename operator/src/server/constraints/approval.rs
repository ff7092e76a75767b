//! Pure. Delays an update until a user approves exactly its version set (`approval: Required`).

use crate::error_chain::cut;
use crate::k8s::events::EventText;
use crate::server::plan::Plan;
use crate::server::plan::constraint::{ConditionText, Constraint, ConstraintInput, Wait};
use crate::server::report::context::PassReport;
use validate::CheckedServer;

pub(super) struct RequiredApproval;

/// Type of the condition, and reason of `Updating` and of the Event.
const APPROVAL_NEEDED: &str = "ApprovalNeeded";

impl Constraint for RequiredApproval {
    fn evaluate(&self, plan: &mut Plan, _input: &ConstraintInput<'_>) -> bool {
        plan.constraints.approval.needs_approval
    }

    fn wait(&self, report: &PassReport<'_>) -> Option<Wait> {
        let lock = &report.plan.target.record.files.lock;
        let message = format!("The version set {lock} is not approved. See {APPROVAL_NEEDED}.");
        Some(Wait { reason: APPROVAL_NEEDED, message, short: Some("needs approval".to_owned()) })
    }

    fn condition(&self, report: &PassReport<'_>) -> Option<ConditionText> {
        let message = command_message(report)?;
        Some(ConditionText { type_: APPROVAL_NEEDED, status: Some(true), reason: "NotApproved", message })
    }

    fn events(&self, report: &PassReport<'_>) -> Vec<EventText> {
        let text = command_message(report);
        text.map(|text| EventText { reason: APPROVAL_NEEDED, warning: false, text }).into_iter().collect()
    }
}

/// The changes that need approval, with the command.
fn command_message(report: &PassReport<'_>) -> Option<String> {
    let plan = report.plan;
    let CheckedServer { name, namespace, .. } = report.pass.checked;
    plan.constraints.approval.needs_approval.then(|| {
        format!(
            "{}: approve it with `kubectl -n {namespace} annotate papermcserver {name} --overwrite {}={}`",
            cut(&plan.target.describe_changes(), 640),
            crds::annotations::APPROVE,
            plan.target.record.files.lock
        )
    })
}
