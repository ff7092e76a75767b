//! Edge (writes). Looks for the releases of a server when its schedule or a user says so, and reports what happened.

use crds::annotations::RECONCILE;
use crds::paper_mc_server::HandledRequests;
use crds::{PaperMCServer, PaperMCServerStatus};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;

use super::error::PassError;
use super::plan::PassInput;
use super::report;
use super::request_time::{MAX_VALUE_LENGTH, not_a_time, parse_time};
use crate::catalog::{RefreshCause, RefreshKey, RefreshResult};
use crate::context::Context;
use crate::error_chain::cut;
use crate::k8s::events::EventText;
use validate::CheckedServer;

/// How long after an instant of the schedule the pages are read for it. Later they have been read anyway, as often as their age demands.
const READ_WITHIN: SignedDuration = SignedDuration::from_mins(10);

/// When releases were last looked for: by the schedule, or for a user. `None` if they are looked for continuously.
pub(super) fn checked_at(checked: &CheckedServer, before: &PaperMCServerStatus, now: Timestamp) -> Option<Timestamp> {
    let scheduled = checked.updates.checks.as_ref()?.last(now)?;
    let requested = before.last_handled.as_ref().and_then(|handled| handled.reconciled_at).filter(|at| *at <= now);
    Some(requested.map_or(scheduled, |requested| requested.max(scheduled)))
}

/// When releases are looked for next.
pub(super) fn next_check(checked: &CheckedServer, now: Timestamp) -> Option<Timestamp> {
    checked.updates.checks.as_ref()?.next(now)
}

/// Has the pages read that the server uses, if its schedule or a user says so. Returns `true` if it wrote the status: a user's request is served.
pub(super) async fn request_reading(ctx: &Context, pass: &PassInput<'_>) -> Result<bool, PassError> {
    let PassInput { server, checked, before, now, .. } = *pass;
    let key = (checked.namespace.clone(), checked.name.clone());
    let refresh = |cause| RefreshKey { server: key.clone(), cause };
    let scheduled = checked.updates.checks.as_ref().and_then(|checks| checks.last(now));
    if let Some(due) = scheduled.filter(|due| now.duration_since(*due) < READ_WITHIN) {
        // A changed catalog wakes the server. A page that could not be read is in a condition.
        ctx.catalog.request_refresh(&refresh(RefreshCause::Scheduled), &due.to_string());
    }
    let handled = before.last_handled.clone().unwrap_or_default();
    let Some(request) = new_request(server, &handled) else { return Ok(false) };
    let (event, reconciled_at) = match check_value(&request) {
        Ok(()) => match ctx.catalog.request_refresh(&refresh(RefreshCause::Requested), &request) {
            Some(result) => (result_event(&result), Some(now)),
            // The server is woken when the pages have been read.
            None => return Ok(false),
        },
        Err(why) => (EventText { reason: "RequestRefused", warning: true, text: why }, handled.reconciled_at),
    };
    ctx.events.publish(server, &event, now).await;
    let handled = HandledRequests { reconcile: Some(request), reconciled_at, ..handled };
    report::record_handled(ctx, server, before, handled).await.map_err(PassError::Report)?;
    Ok(true)
}

/// The value of the annotation, unless it was handled already.
fn new_request(server: &PaperMCServer, handled: &HandledRequests) -> Option<String> {
    let value = cut(server.annotations().get(RECONCILE)?.trim(), MAX_VALUE_LENGTH);
    (!value.is_empty() && handled.reconcile.as_ref() != Some(&value)).then_some(value)
}

/// Any time counts, because a request that is served late does no harm.
fn check_value(value: &str) -> Result<(), String> {
    parse_time(value).map(|_| ()).ok_or_else(|| not_a_time(RECONCILE, value))
}

fn result_event(result: &RefreshResult) -> EventText {
    if result.unread.is_empty() {
        let text = format!("Looked for new releases, as `{RECONCILE}` requests.");
        return EventText { reason: "ReleasesChecked", warning: false, text };
    }
    let text =
        format!("Not all releases could be looked for, as `{RECONCILE}` requests: {}.", result.unread.join("; "));
    EventText { reason: "ReleasesNotChecked", warning: true, text }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::server::test_server::server;

    fn handled(value: &str, reconciled_at: Option<Timestamp>) -> HandledRequests {
        HandledRequests { reconcile: Some(value.to_owned()), reconciled_at, ..HandledRequests::default() }
    }

    #[test]
    fn each_value_requests_one_reading() {
        let request = |value: &str, last: &str| {
            let mut server = server(json!({}));
            server.metadata.annotations = Some([(RECONCILE.to_owned(), value.to_owned())].into());
            new_request(&server, &handled(last, None))
        };
        assert_eq!(request(" 1767225600 ", "1767225599").as_deref(), Some("1767225600"));
        assert_eq!(request("1767225600", "1767225600"), None);
        assert_eq!(request("", "1767225600"), None);
        let long = "9".repeat(2_000);
        let recorded = request(&long, "").unwrap();
        assert_eq!(request(&long, &recorded), None, "a long value is refused once");
        assert!(check_value(&recorded).is_err() && check_value("soon").is_err() && check_value("1767225600").is_ok());
    }

    #[test]
    fn releases_count_until_last_check_or_request() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let checked = |spec| validate::check(&server(spec)).unwrap();
        let nightly = checked(json!({"updateSchedule": {
            "checkCron": "0 3 * * *", "maintenanceWindow": {"cron": "0 4 * * *"},
        }}));
        let (now, night) = (at("2026-01-11T12:00:00Z"), at("2026-01-11T03:00:00Z"));
        let since = |reconciled_at| {
            let last_handled = Some(handled("1", reconciled_at));
            checked_at(&nightly, &PaperMCServerStatus { last_handled, ..PaperMCServerStatus::default() }, now)
        };
        assert_eq!(since(None), Some(night));
        assert_eq!(since(Some(at("2026-01-11T10:00:00Z"))), Some(at("2026-01-11T10:00:00Z")));
        assert_eq!(since(Some(at("2026-01-10T10:00:00Z"))), Some(night));
        assert_eq!(next_check(&nightly, now), Some(at("2026-01-12T03:00:00Z")));
        assert_eq!(checked_at(&checked(json!({})), &PaperMCServerStatus::default(), now), None);
    }
}
