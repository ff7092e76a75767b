//! Pure. What is said of a server whose process ends again and again.

use crds::PaperMCServerStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::PassReport;
use crate::k8s::events::EventText;
use crate::server::check::CheckedServer;
use crate::server::crash_loop::stopped::stopped_in_words;
use crate::server::crash_loop::{CRASH_LOOP, loop_in_words};

/// The reason while the kubelet starts it again each time.
const PROCESS_ENDS: &str = "ProcessEnds";
/// The reason while it is stopped for that.
const STOPPED: &str = "Stopped";

/// Which loop the server is in: a reason, and it in words.
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

/// The loop, and its end by a stop, once for each time: the condition says all that comes after.
pub(super) fn note(server: &CheckedServer, report: &PassReport<'_>, before: &PaperMCServerStatus) -> Option<EventText> {
    let (reason, text) = in_words(server, report, &before.conditions)?;
    let tells = |it: &Condition| it.type_ == CRASH_LOOP && (reason == PROCESS_ENDS || it.reason == reason);
    let is_new = !before.conditions.iter().any(tells);
    is_new.then_some(EventText { reason: CRASH_LOOP, warning: true, text })
}

#[cfg(test)]
mod tests;
