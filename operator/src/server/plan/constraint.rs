//! Pure. Defines what a feature that can delay an update answers about itself.

use crds::PaperMCServerStatus;
use jiff::Timestamp;

use super::{PassInput, Plan};
use crate::k8s::events::EventText;
use crate::server::check::CheckedServer;
use crate::server::follows::FollowState;
use crate::server::observe::Observed;

/// A feature that can delay an update although a window is open. The list of all of them is in `server/constraints.rs`.
///
/// An update that has begun is not delayed: a rollout in progress is finished or rolled back. A user's request to apply an update now may
/// override a constraint ([`ConstraintInput::is_automatic`]).
pub(crate) trait Constraint: Sync {
    /// Evaluates the feature, and keeps its state in the plan if it has any. Returns whether the update has to wait for it. The gate is then
    /// shut.
    fn evaluate(&self, plan: &mut Plan, input: &ConstraintInput<'_>) -> bool;

    /// Why the update waits, if it waits for this feature.
    fn wait(&self, report: &ConstraintReport<'_>) -> Option<Wait>;

    /// The next instant at which the answer changes without a change in the cluster. A pass runs then.
    fn wake_at(&self, _plan: &Plan) -> Option<Timestamp> {
        None
    }

    /// The feature's own condition. It is absent if `None`.
    fn condition(&self, _report: &ConstraintReport<'_>) -> Option<ConditionText> {
        None
    }

    /// The Event of this pass. An Event with the same text as the last one is not published again.
    fn event(&self, _report: &ConstraintReport<'_>) -> Option<EventText> {
        None
    }
}

/// What a constraint is evaluated on, besides the plan so far.
pub(crate) struct ConstraintInput<'a> {
    pub(crate) pass: PassInput<'a>,
    /// The server that this one follows, and what it has run. `None` if it follows none, or if a user's request overrides that.
    pub(crate) followed: Option<&'a FollowState>,
    /// Whether the update would begin without a user's request.
    pub(crate) is_automatic: bool,
}

/// What a constraint reports from, after the plan is complete.
pub(crate) struct ConstraintReport<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) checked: &'a CheckedServer,
    pub(crate) observed: &'a Observed,
    /// The last status.
    pub(crate) before: &'a PaperMCServerStatus,
    pub(crate) now: Timestamp,
}

/// Why an update waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wait {
    /// Reason of the condition `Updating`, in CamelCase.
    pub(crate) reason: &'static str,
    /// Message of that condition: what the update waits for and what a user can do, at most 1,024 bytes.
    pub(crate) message: String,
    /// A few words for the column `NEXT WINDOW`. `None` if the update is still expected in the window.
    pub(crate) short: Option<String>,
}

/// A condition with status `True`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConditionText {
    pub(crate) type_: &'static str,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// Ends a message about a delay that a user can override.
pub(crate) const APPLY_NOW_HINT: &str = "To apply the update anyway, annotate nightshift.dev/apply-now.";
