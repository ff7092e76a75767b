//! Pure. Defines the answers of a feature that can delay an update.

use jiff::Timestamp;

use super::{PassInput, Plan};
use crate::k8s::events::EventText;
use crate::server::follows::FollowState;
use crate::server::report::context::PassReport;

/// A feature that can delay an update although a window is open. The list of all of them is in `server/constraints.rs`. Each method that a
/// feature leaves out has the answer "nothing".
///
/// A constraint is pure. A feature that reads or writes has a file at the edge for that, which leaves the result in the plan.
///
/// A rollout in progress is never delayed: it is finished or rolled back.
pub(crate) trait Constraint: Sync {
    /// Evaluates the feature, and keeps its state in the plan if it has any. Returns whether the update has to wait for it: the gate is then
    /// shut. This runs in every pass that plans, also without an update and during a rollout. A constraint before this one in the list may
    /// have shut the gate already.
    ///
    /// A feature that delays the update by the version set, by the windows or by the next step leaves this out.
    fn evaluate(&self, _plan: &mut Plan, _input: &ConstraintInput<'_>) -> bool {
        false
    }

    /// Why the update waits. Called only for a constraint that has shut the gate.
    fn wait(&self, _report: &PassReport<'_>) -> Option<Wait> {
        None
    }

    /// The next instant at which the answer changes without a change in the cluster, after now. A pass runs then.
    fn wake_at(&self, _plan: &Plan) -> Option<Timestamp> {
        None
    }

    /// When the feature acts again without a change in the cluster, if that may be a few seconds late. No alarm is set for it.
    fn next_check(&self, _plan: &Plan, _now: Timestamp) -> Option<Timestamp> {
        None
    }

    /// The feature's own condition. It is absent if `None`.
    fn condition(&self, _report: &PassReport<'_>) -> Option<ConditionText> {
        None
    }

    /// The part of the conditions that has this one.
    fn section(&self) -> ConditionSection {
        ConditionSection::Delays
    }

    /// The Events of this pass. An Event with the same text as the last one is not published again.
    fn events(&self, _report: &PassReport<'_>) -> Vec<EventText> {
        Vec::new()
    }
}

/// The input of a constraint, besides the plan so far.
pub(crate) struct ConstraintInput<'a> {
    pub(crate) pass: PassInput<'a>,
    /// The server that this one follows, with its history. `None` if it follows none.
    pub(crate) followed: Option<&'a FollowState>,
    /// Whether a leader server or a crash loop delays the update. False if a user requested the update, or an urgent Plugin does not wait for the leader.
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

/// The condition of a constraint. Its message is cut at 1,024 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConditionText {
    pub(crate) type_: &'static str,
    /// `None` if it is unknown.
    pub(crate) status: Option<bool>,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// The part of the conditions that has the condition of a constraint. `report/conditions.rs` orders these parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConditionSection {
    /// The files and the images of the next version set.
    Files,
    /// What users have requested.
    Requests,
    /// Other reasons that delay an update, or an eviction from a node.
    Delays,
    /// The windows.
    Windows,
}

/// Ends a message about a delay that a user can override.
pub(crate) const APPLY_NOW_HINT: &str = "To apply the update anyway, annotate nightshift.dev/apply-now.";
