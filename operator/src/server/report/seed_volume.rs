//! Pure. Reports the restore of a volume without a world as a condition and Events.

use agent_api::NOT_RESTORED;
use agent_api::restore::{SeedRequest, SeedResult};
use crds::PaperMCServerStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::context::PassReport;
use super::refusal::init_message;
use crate::error_chain::cut;
use crate::k8s::events::EventText;
use crate::server::requested_restore;
use validate::CheckedServer;

/// Type of the condition.
pub(super) const RESTORED_FROM: &str = "RestoredFrom";
/// The reason while no pod starts, also that of `Ready`.
pub(super) const NOT_RESTORED_YET: &str = "NotRestored";

/// The result of `spec.restoreFrom`: status, reason and message. `None` if it is not set, or the agent has not answered yet.
pub(super) fn condition_parts(server: &CheckedServer, report: &PassReport<'_>) -> Option<(bool, &'static str, String)> {
    let request = &server.data.restore_from.as_ref()?.request;
    if let Some(why) = start_refusal(report) {
        return Some((false, NOT_RESTORED_YET, why));
    }
    report.pass.observed.reply.report.as_deref().map(|agent| reported_result(server, request, agent))
}

/// Why the init container refuses to start a server on a volume without a world.
pub(super) fn start_refusal(report: &PassReport<'_>) -> Option<String> {
    init_message(report)?.strip_prefix(NOT_RESTORED).map(|why| cut(why, 1_024))
}

fn reported_result(
    server: &CheckedServer,
    request: &SeedRequest,
    agent: &agent_api::AgentReport,
) -> (bool, &'static str, String) {
    match agent.new_volume.as_ref().filter(|new_volume| new_volume.order == *request) {
        Some(SeedResult { order: _, at, backup: Some(id) }) => {
            let text = format!(
                "The volume had no world. It was filled from the backup {id} of `{}` at {at}. `spec.restoreFrom` is \
                no longer needed.",
                request.server
            );
            (true, "Restored", cut(&text, 1_024))
        }
        Some(SeedResult { order: _, at: _, backup: None }) | None => {
            (false, "VolumeInUse", in_use_message(server, request))
        }
    }
}

fn in_use_message(server: &CheckedServer, request: &SeedRequest) -> String {
    let hint = if request.apart || request.server != server.name {
        "See docs/guides/backup.md to restore the backup manually.".to_owned()
    } else {
        format!("To restore the backup, run `{}`.", requested_restore::restore_command(server, &request.backup))
    };
    format!(
        "The volume was not changed, because it already has a world. `spec.restoreFrom` is for a volume without one. \
        The server runs on the existing world. {hint}"
    )
}

/// The Event, once for each result.
pub(super) fn event(
    server: &CheckedServer,
    report: &PassReport<'_>,
    before: &PaperMCServerStatus,
) -> Option<EventText> {
    let (_, reason, text) = condition_parts(server, report)?;
    let is_reported = |condition: &Condition| {
        condition.type_ == RESTORED_FROM && condition.reason == reason && condition.message == text
    };
    if before.conditions.iter().any(is_reported) {
        return None;
    }
    let (reason, warning) = match reason {
        "Restored" => ("WorldRestored", false),
        NOT_RESTORED_YET => ("RestoreFailed", true),
        _ => ("RequestRefused", true),
    };
    Some(EventText { reason, warning, text })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::server::test_server::server;
    use validate::check;

    fn result_of(spec: Value, new_volume: &Value) -> (bool, &'static str, String) {
        let checked = check(&server(spec)).unwrap();
        let agent = serde_json::from_value(json!({
            "at": "2026-11-22T04:00:00Z", "podUid": "u", "server": {"state": "absent"}, "players": {"who": "nobody"},
            "lock": null, "world": {"floor": null, "whole": true}, "newVolume": new_volume,
        }))
        .unwrap();
        reported_result(&checked, &checked.data.restore_from.as_ref().unwrap().request, &agent)
    }

    fn record(backup: &str, got: Option<&str>) -> Value {
        let request = json!({"server": "lobby", "backup": backup, "claim": "backup-lobby-0", "apart": false});
        json!({"order": request, "at": "2026-11-22T03:00:00Z", "backup": got})
    }

    fn own_backup() -> Value {
        json!({"backup": {}, "restoreFrom": {}})
    }

    #[test]
    fn restored_volume_condition_stays_true() {
        let (status, reason, text) = result_of(own_backup(), &record("latest", Some("20261122T030000Z-aaaaaaaa")));
        assert_eq!((status, reason), (true, "Restored"));
        assert!(text.contains("the backup 20261122T030000Z-aaaaaaaa of `lobby`"), "{text}");
    }

    #[test]
    fn volume_in_use_condition_names_restore_command() {
        // A world that was there at the first start, a field that was set on a running server, and another backup than the restored one.
        for new_volume in [record("latest", None), json!(null), record("20261122T030000Z-aaaaaaaa", Some("x"))] {
            let (status, reason, text) = result_of(own_backup(), &new_volume);
            assert_eq!((status, reason), (false, "VolumeInUse"), "{new_volume}");
            assert!(text.ends_with("nightshift.dev/restore-from=\"latest;overwrite\"`."), "{text}");
        }
        let (_, _, text) = result_of(json!({"backup": {}, "restoreFrom": {"server": "survival"}}), &json!(null));
        assert!(
            text.ends_with("to restore the backup manually."),
            "the annotation restores only the server's own backups: {text}"
        );
    }
}
