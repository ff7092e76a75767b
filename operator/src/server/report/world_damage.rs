//! Pure. Reports damage to worlds that the server's log mentions, as a condition and an Event.

use crds::PaperMCServerStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use scheduler::protocol::damage::DamageTold;

use super::backup::unreadable;
use super::conditions::in_its_place;
use super::status::for_people;
use super::{LONGEST_MESSAGE, PassReport};
use crate::error_chain::cut;
use crate::k8s::events::EventText;
use crate::server::backups::copies;
use crate::server::check::CheckedServer;

/// Type of the condition. It is absent while no damage is reported.
pub(super) const WORLD_DAMAGED: &str = "WorldDamaged";
/// Reason of the condition.
const TOLD_BY_LOG: &str = "ReportedByLog";
/// Maximum length of the quoted log line. It leaves room for the possible action.
const OF_THE_LOG: usize = 240;

/// The condition. While the agent is unreachable, the last one remains.
pub(super) fn condition(
    server: &CheckedServer,
    report: &PassReport<'_>,
    before: &[Condition],
    of: impl Fn(&'static str, &str, String) -> Condition,
) -> Option<Condition> {
    match report.seen.report {
        Some(_) => in_words(server, report).map(|message| of(WORLD_DAMAGED, TOLD_BY_LOG, message)),
        None => before.iter().find(|old| old.type_ == WORLD_DAMAGED).cloned(),
    }
}

/// One Event for each damage. The condition reports all later changes.
pub(super) fn note(server: &CheckedServer, report: &PassReport<'_>, before: &PaperMCServerStatus) -> Option<EventText> {
    let is_known = before.conditions.iter().any(|condition| condition.type_ == WORLD_DAMAGED);
    let text = in_words(server, report).filter(|_| !is_known)?;
    Some(EventText { reason: WORLD_DAMAGED, warning: true, text })
}

/// The reported damage, since when, and the possible action. The number of lines is left out, because each further line would change the
/// message.
fn in_words(server: &CheckedServer, report: &PassReport<'_>) -> Option<String> {
    let DamageTold { since, last: _, lines: _, first } = report.seen.report.as_deref()?.damage.as_ref()?;
    let people = |at| for_people(at, &server.zone, report.now);
    let copy = copies(report.seen).and_then(|copies| copies.last_before_damage.as_ref());
    let way = match copy {
        Some(copy) => {
            let of = people(copy.started_at);
            let place = in_its_place(server, &copy.id);
            format!("The newest copy from before that line is of {of}; the damage may be older than the line. {place}")
        }
        None if server.backup.is_none() => "This server takes no copies (`spec.backup`)".to_owned(),
        None if unreadable(report).is_some() => "Which copies there are is not known now, see `BackupReady`".to_owned(),
        None => "No copy of the worlds from before is known".to_owned(),
    };
    let text = format!(
        "the server's log tells of damage to its worlds, since {}: `{}`. {way}. Copies that are taken now take the place of none from before. \
         This ends with worlds from before, or 30 days after the last such line; see docs/guides/backup.md",
        people(*since),
        cut(&first.replace('`', "'"), OF_THE_LOG)
    );
    Some(cut(&text, LONGEST_MESSAGE))
}
