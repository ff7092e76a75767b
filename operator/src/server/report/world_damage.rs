//! Pure. What is said of a server whose log tells of damage to its worlds: condition, Event.

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

/// The condition; there is none while nothing is told.
pub(super) const WORLD_DAMAGED: &str = "WorldDamaged";
/// Its reason.
const TOLD_BY_LOG: &str = "ReportedByLog";
/// As much of the log's own words as leaves room for what a person can do.
const OF_THE_LOG: usize = 240;

/// What the condition says, and its reason. While nobody can be asked, what was said last stands.
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

/// The damage, once for each time: its condition says all that comes after.
pub(super) fn note(server: &CheckedServer, report: &PassReport<'_>, before: &PaperMCServerStatus) -> Option<EventText> {
    let is_known = before.conditions.iter().any(|condition| condition.type_ == WORLD_DAMAGED);
    let text = in_words(server, report).filter(|_| !is_known)?;
    Some(EventText { reason: WORLD_DAMAGED, warning: true, text })
}

/// What the log has told since when, and what a person can do. How often it does is not said: each further line would be another message.
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
