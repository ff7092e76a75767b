//! Pure. Delays an update until a user approves exactly its version set (`approval: Required`).

use crate::error_chain::cut;
use crate::k8s::events::EventText;
use crate::server::changes::format_changes;
use crate::server::plan::constraint::{ConditionText, Constraint, ConstraintInput, Wait};
use crate::server::plan::{PassInput, Plan};
use validate::CheckedServer;

pub(super) struct Approval;

/// Type of the condition, and reason of `Updating` and of the Event.
const APPROVAL_NEEDED: &str = "ApprovalNeeded";

impl Constraint for Approval {
    fn evaluate(&self, plan: &mut Plan, _input: &ConstraintInput<'_>) -> bool {
        plan.constraints.approval.needs_approval
    }

    fn wait(&self, plan: &Plan, _pass: &PassInput<'_>) -> Option<Wait> {
        let lock = &plan.target.record.files.lock;
        let message = format!("The version set {lock} is not approved. See {APPROVAL_NEEDED}.");
        Some(Wait { reason: APPROVAL_NEEDED, message, short: Some("needs approval".to_owned()) })
    }

    fn condition(&self, plan: &Plan, pass: &PassInput<'_>) -> Option<ConditionText> {
        let message = command_message(plan, pass)?;
        Some(ConditionText { type_: APPROVAL_NEEDED, reason: "NotApproved", message })
    }

    fn event(&self, plan: &Plan, pass: &PassInput<'_>) -> Option<EventText> {
        command_message(plan, pass).map(|text| EventText { reason: APPROVAL_NEEDED, warning: false, text })
    }
}

/// The changes that need approval, with the command.
fn command_message(plan: &Plan, pass: &PassInput<'_>) -> Option<String> {
    let CheckedServer { name, namespace, .. } = pass.checked;
    plan.constraints.approval.needs_approval.then(|| {
        format!(
            "{}: approve it with `kubectl -n {namespace} annotate papermcserver {name} --overwrite {}={}`",
            cut(&format_changes(&plan.target.changes), 640),
            crds::annotations::APPROVE,
            plan.target.record.files.lock
        )
    })
}
