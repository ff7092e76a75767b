//! Pure. Defines the answers of a feature that can delay an update.

use jiff::Timestamp;

use super::{PassInput, Plan};
use crate::k8s::events::EventText;
use crate::server::follows::FollowState;

/// A feature that can delay an update although a window is open. The list of all of them is in `server/constraints.rs`.
///
/// A rollout in progress is never delayed: it is finished or rolled back.
pub(crate) trait Constraint: Sync {
    /// Evaluates the feature, and keeps its state in the plan if it has any. Returns whether the update has to wait for it: the gate is then
    /// shut. This runs in every pass that plans, also without an update and during a rollout. A constraint before this one in the list may
    /// have shut the gate already.
    fn evaluate(&self, plan: &mut Plan, input: &ConstraintInput<'_>) -> bool;

    /// Why the update waits. Called only for a constraint that delays it, after the plan is complete.
    fn wait(&self, plan: &Plan, pass: &PassInput<'_>) -> Option<Wait>;

    /// The next instant at which the answer changes without a change in the cluster, after now. A pass runs then.
    fn wake_at(&self, _plan: &Plan) -> Option<Timestamp> {
        None
    }

    /// The feature's own condition. It is absent if `None`.
    fn condition(&self, _plan: &Plan, _pass: &PassInput<'_>) -> Option<ConditionText> {
        None
    }

    /// The Event of this pass. An Event with the same text as the last one is not published again.
    fn event(&self, _plan: &Plan, _pass: &PassInput<'_>) -> Option<EventText> {
        None
    }
}

/// The input of a constraint, besides the plan so far.
pub(crate) struct ConstraintInput<'a> {
    pub(crate) pass: PassInput<'a>,
    /// The server that this one follows, with its history. `None` if it follows none.
    pub(crate) followed: Option<&'a FollowState>,
    /// Whether a leader server or a crash loop delays the update. They do not delay an update that a user has requested, or one that is urgent.
    pub(crate) is_automatic: bool,
}

/// Why an update waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wait {
    /// Reason of the condition `Updating`, in CamelCase.
    pub(crate) reason: &'static str,
    /// Message of that condition: what the update waits for and what a user can do. It is cut at 1,024 bytes.
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
