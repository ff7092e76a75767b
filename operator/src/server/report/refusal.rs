//! Pure. Reads the last message of the init container.

use agent_api::termination_message::WorldRefused;

use super::context::PassReport;
use super::{lock_rejection, volume_rejected};
use crate::error_chain::cut;

/// The message that the init container wrote when it refused the start.
pub(crate) fn init_message(report: &PassReport<'_>) -> Option<String> {
    let message = report.pass.observed.termination_message()?;
    if report.pass.observed.is_start_rejected() {
        return lock_rejection::message(report);
    }
    let rejected = volume_rejected::describe(message);
    let refused = || WorldRefused::parse(message).map_or_else(|| message.to_owned(), |refusal| refusal.why);
    Some(cut(&rejected.unwrap_or_else(refused), 1_024))
}
