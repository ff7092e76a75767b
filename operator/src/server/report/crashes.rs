//! Pure. What is said of a server whose process ends again and again.

use crds::PaperMCServerStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::Report;
use crate::k8s::events::Note;
use crate::server::crashes::{CRASH_LOOP, loop_in_words, was_loop};

/// Which loop the server is in.
pub(super) fn in_words(report: &Report<'_>, before: &[Condition]) -> Option<String> {
    loop_in_words(report.plan.crashes.as_ref(), before, report.seen.pod.as_ref())
}

/// The loop, once for each time: its condition says all that comes after.
pub(super) fn note(report: &Report<'_>, before: &PaperMCServerStatus) -> Option<Note> {
    let is_new = !was_loop(&before.conditions);
    in_words(report, &before.conditions).filter(|_| is_new).map(|text| Note { reason: CRASH_LOOP, warning: true, text })
}
