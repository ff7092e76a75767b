//! Pure. Reads the last message of the init container.

use agent_api::termination_message::WorldRefused;

use super::context::PassReport;
use super::lock_rejection;
use crate::error_chain::cut;

/// The message that the init container wrote when it refused the start.
pub(crate) fn init_message(report: &PassReport<'_>) -> Option<String> {
    let message = report.pass.observed.termination_message()?;
    if report.pass.observed.is_start_rejected() {
        return lock_rejection::message(report);
    }
    Some(cut(&WorldRefused::parse(message).map_or_else(|| message.to_owned(), |refusal| refusal.why), 1_024))
}
