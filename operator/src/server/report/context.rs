//! Pure. Defines the results of a pass that all reports read, and how a condition is built.

use std::borrow::Cow;

use crds::PaperMCServer;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use resolver::explanation::Explanation;
use resolver::model::untrusted_text::sanitize_text;
use scheduler::rollout::Step;

use crate::error_chain::cut;
use crate::server::act::outcome::StepOutcome;
use crate::server::plan::{PassInput, Plan};

/// Maximum length of a condition's message.
pub(crate) const MAX_MESSAGE_LENGTH: usize = 1_024;

/// The results of a whole pass.
pub(crate) struct PassReport<'a> {
    pub(crate) pass: PassInput<'a>,
    pub(crate) plan: &'a Plan,
    pub(crate) step: Step,
    pub(crate) done: &'a StepOutcome,
}

/// The explanation on one line, with a reference to the full text. Conditions, Events and messages use the same text.
pub(crate) fn explanation_message(explanation: &Explanation) -> String {
    cut(&explanation.summary(), MAX_MESSAGE_LENGTH)
}

/// A condition whose transition time changes only with its status.
pub(crate) fn condition(
    server: &PaperMCServer,
    of: &'static str,
    holds_true: Option<bool>,
    reason: &str,
    message: String,
    now: Timestamp,
    before: &[Condition],
) -> Condition {
    let status = match holds_true {
        Some(true) => "True",
        Some(false) => "False",
        None => "Unknown",
    };
    let since = before.iter().find(|old| old.type_ == of && old.status == status).map(|old| old.last_transition_time.0);
    Condition {
        type_: of.to_owned(),
        status: status.to_owned(),
        observed_generation: server.metadata.generation,
        last_transition_time: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(since.unwrap_or(now)),
        reason: reason.to_owned(),
        message: match sanitize_text(&message) {
            Cow::Borrowed(_) => message,
            Cow::Owned(sanitized) => sanitized,
        },
    }
}
