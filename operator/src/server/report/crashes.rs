//! Pure. What is said of a server whose process ends again and again.

use crds::PaperMCServerStatus;

use super::Report;
use crate::k8s::events::Note;
use crate::server::crashes::loop_in_words;

/// The condition; there is none while its process stays.
pub(super) const CRASH_LOOP: &str = "CrashLoop";

/// Which loop the server is in.
pub(super) fn in_words(report: &Report<'_>) -> Option<String> {
    loop_in_words(report.plan.crashes.as_ref(), report.seen.pod.as_ref())
}

/// The loop, once for each time: its condition says all that comes after.
pub(super) fn note(report: &Report<'_>, before: &PaperMCServerStatus) -> Option<Note> {
    let is_known = before.conditions.iter().any(|condition| condition.type_ == CRASH_LOOP);
    in_words(report).filter(|_| !is_known).map(|text| Note { reason: CRASH_LOOP, warning: true, text })
}
