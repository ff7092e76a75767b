//! Pure. Reports worlds that the init container refuses, and how to replace them.

use scheduler::protocol::termination_message::WorldRefused;

use super::context::PassReport;
use crate::error_chain::cut;
use crate::server::check::CheckedServer;
use crate::server::requested_restore;

/// The command with which a user replaces the worlds by a backup.
pub(crate) fn replace_worlds_hint(checked: &CheckedServer, backup: &str) -> String {
    format!(
        "To replace the worlds by the backup `{backup}`, and lose all progress since then, run `{}`",
        requested_restore::restore_command(checked, backup)
    )
}

/// The message that the init container wrote when it refused the start.
pub(crate) fn refusal_message(report: &PassReport<'_>) -> Option<String> {
    let message = report.observed.termination_message()?;
    Some(cut(&WorldRefused::parse(message).map_or_else(|| message.to_owned(), |refusal| refusal.why), 1_024))
}
