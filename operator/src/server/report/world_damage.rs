//! Pure. Reports damage to worlds that the server's log mentions, as a condition and an Event.

use agent_api::world_damage::DamageReport;
use crds::PaperMCServerStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::backup::unreadable;
use super::context::{MAX_MESSAGE_LENGTH, PassReport};
use super::format::format_time;
use crate::error_chain::cut;
use crate::k8s::events::EventText;
use crate::server::backups::current_backups;
use crate::server::requested_restore::replace_worlds_hint;
use validate::CheckedServer;

/// Type of the condition. It is absent while no damage is reported.
pub(super) const WORLD_DAMAGED: &str = "WorldDamaged";
/// Reason of the condition.
const REPORTED_BY_LOG: &str = "ReportedByLog";
/// Maximum length of the quoted log line. It leaves room for the possible action.
const MAX_LOG_LENGTH: usize = 240;

/// The condition. While the agent is unreachable, the last one remains.
pub(super) fn condition(
    server: &CheckedServer,
    report: &PassReport<'_>,
    before: &[Condition],
    of: impl Fn(&'static str, &str, String) -> Condition,
) -> Option<Condition> {
    match report.pass.observed.reply.report {
        Some(_) => message(server, report).map(|message| of(WORLD_DAMAGED, REPORTED_BY_LOG, message)),
        None => before.iter().find(|old| old.type_ == WORLD_DAMAGED).cloned(),
    }
}

/// One Event for each damage. The condition reports all later changes.
pub(super) fn event(
    server: &CheckedServer,
    report: &PassReport<'_>,
    before: &PaperMCServerStatus,
) -> Option<EventText> {
    let is_reported = before.conditions.iter().any(|condition| condition.type_ == WORLD_DAMAGED);
    let text = message(server, report).filter(|_| !is_reported)?;
    Some(EventText { reason: WORLD_DAMAGED, warning: true, text })
}

/// The reported damage, since when, and the possible action. The number of lines is left out, because each further line would change the
/// message.
fn message(server: &CheckedServer, report: &PassReport<'_>) -> Option<String> {
    let DamageReport { since, last: _, lines: _, first } =
        report.pass.observed.reply.report.as_deref()?.damage.as_ref()?;
    let format_time = |at| format_time(at, &server.updates.zone, report.pass.now);
    let backup = current_backups(report.pass.observed).and_then(|backups| backups.last_before_damage.as_ref());
    let hint = match backup {
        Some(backup) => {
            let of = format_time(backup.started_at);
            let replace_hint = replace_worlds_hint(server, &backup.id);
            format!(
                "The newest backup from before that line is of {of}, but the damage may be older than the line. \
                {replace_hint}"
            )
        }
        None if server.data.backup.is_none() => "This server takes no backups (`spec.backup.enabled`)".to_owned(),
        None if unreadable(report).is_some() => {
            "The existing backups are unknown at the moment, see `BackupReady`".to_owned()
        }
        None => "No earlier backup of the worlds is known".to_owned(),
    };
    let text = format!(
        "The server's log reports damage to its worlds since {}: `{}`. {hint}. New backups replace none of the \
        earlier ones. The condition ends when earlier worlds are restored, or 30 days after the last such line. See \
        docs/guides/backup.md.",
        format_time(*since),
        cut(&first.replace('`', "'"), MAX_LOG_LENGTH)
    );
    Some(cut(&text, MAX_MESSAGE_LENGTH))
}
