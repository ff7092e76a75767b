//! Pure. Reports a crash loop.

use crds::PaperMCServerStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::context::PassReport;
use crate::k8s::events::EventText;
use crate::server::check::CheckedServer;
use crate::server::crash_loop::stopped::stopped_message;
use crate::server::crash_loop::{CRASH_LOOP, loop_message};

/// The reason while the kubelet restarts the process.
const PROCESS_EXITS: &str = "ProcessEnds";
/// The reason while the server is stopped for its crashes.
const STOPPED: &str = "Stopped";

/// The crash loop of the server: reason and message.
pub(super) fn reason_and_message(
    server: &CheckedServer,
    report: &PassReport<'_>,
    before: &[Condition],
) -> Option<(&'static str, String)> {
    let crashes = report.plan.crashes.as_ref();
    match crashes.and_then(|crashes| stopped_message(server, crashes)) {
        Some(message) => Some((STOPPED, message)),
        None => loop_message(crashes, before, report.observed.pod.as_ref()).map(|message| (PROCESS_EXITS, message)),
    }
}

/// One Event for the loop, and one for the stop. The condition reports all later changes.
pub(super) fn event(
    server: &CheckedServer,
    report: &PassReport<'_>,
    before: &PaperMCServerStatus,
) -> Option<EventText> {
    let (reason, text) = reason_and_message(server, report, &before.conditions)?;
    let is_reported = |condition: &Condition| {
        condition.type_ == CRASH_LOOP && (reason == PROCESS_EXITS || condition.reason == reason)
    };
    let is_new = !before.conditions.iter().any(is_reported);
    is_new.then_some(EventText { reason: CRASH_LOOP, warning: true, text })
}

#[cfg(test)]
mod tests;
