//! Pure. Reports a crash loop.

use crds::PaperMCServerStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::PassReport;
use crate::k8s::events::EventText;
use crate::server::check::CheckedServer;
use crate::server::crash_loop::stopped::stopped_in_words;
use crate::server::crash_loop::{CRASH_LOOP, loop_in_words};

/// The reason while the kubelet restarts the process.
const PROCESS_ENDS: &str = "ProcessEnds";
/// The reason while the server is stopped for its crashes.
const STOPPED: &str = "Stopped";

/// The crash loop of the server: reason and message.
pub(super) fn in_words(
    server: &CheckedServer,
    report: &PassReport<'_>,
    before: &[Condition],
) -> Option<(&'static str, String)> {
    let crashes = report.plan.crashes.as_ref();
    match crashes.and_then(|crashes| stopped_in_words(server, crashes)) {
        Some(words) => Some((STOPPED, words)),
        None => loop_in_words(crashes, before, report.seen.pod.as_ref()).map(|words| (PROCESS_ENDS, words)),
    }
}

/// One Event for the loop, and one for the stop. The condition reports all later changes.
pub(super) fn note(server: &CheckedServer, report: &PassReport<'_>, before: &PaperMCServerStatus) -> Option<EventText> {
    let (reason, text) = in_words(server, report, &before.conditions)?;
    let tells = |it: &Condition| it.type_ == CRASH_LOOP && (reason == PROCESS_ENDS || it.reason == reason);
    let is_new = !before.conditions.iter().any(tells);
    is_new.then_some(EventText { reason: CRASH_LOOP, warning: true, text })
}

#[cfg(test)]
mod tests;
