//! Pure. Reports the restore of a volume without a world as a condition and Events.

use crds::PaperMCServerStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use scheduler::protocol::restore::{NewVolume, NewVolumeOrder};
use scheduler::protocol::{self, NOT_RESTORED};

use super::PassReport;
use super::conditions::refusal;
use crate::error_chain::cut;
use crate::k8s::events::EventText;
use crate::server::check::CheckedServer;
use crate::server::requested_restore;

/// Type of the condition.
pub(super) const RESTORED_FROM: &str = "RestoredFrom";
/// The reason while no pod starts, also that of `Ready`.
pub(super) const NOT_RESTORED_YET: &str = "NotRestored";

/// The result of `spec.restoreFrom`: status, reason and message. `None` if it is not set, or the agent has not answered yet.
pub(super) fn came_of(server: &CheckedServer, report: &PassReport<'_>) -> Option<(bool, &'static str, String)> {
    let order = &server.restore_from.as_ref()?.order;
    if let Some(why) = refused(report) {
        return Some((false, NOT_RESTORED_YET, why));
    }
    report.seen.report.as_deref().map(|agent| of_the_agent(server, order, agent))
}

/// Why the init container refuses to start a server on a volume without a world.
pub(super) fn refused(report: &PassReport<'_>) -> Option<String> {
    refusal(report)?.strip_prefix(NOT_RESTORED).map(|why| cut(why, 1_024))
}

fn of_the_agent(
    server: &CheckedServer,
    order: &NewVolumeOrder,
    agent: &protocol::AgentReport,
) -> (bool, &'static str, String) {
    match agent.new_volume.as_ref().filter(|known| known.order == *order) {
        Some(NewVolume { order: _, at, copy: Some(id) }) => {
            let text = format!(
                "the volume had no world and got what the copy {id} of `{}` holds, at {at}; `spec.restoreFrom` has done its work",
                order.server
            );
            (true, "Restored", cut(&text, 1_024))
        }
        Some(NewVolume { order: _, at: _, copy: None }) | None => (false, "VolumeInUse", in_use(server, order)),
    }
}

fn in_use(server: &CheckedServer, order: &NewVolumeOrder) -> String {
    let way = if order.apart || order.server != server.name {
        "docs/guides/backup.md says how to put the copy in its place by hand".to_owned()
    } else {
        format!("the copy takes its place by `{}`", requested_restore::command(server, &order.copy))
    };
    format!(
        "nothing was done, because the volume has a world already: `spec.restoreFrom` is for one that has none. The server runs on what is \
         there; {way}"
    )
}

/// The Event, once for each result.
pub(super) fn notes(
    server: &CheckedServer,
    report: &PassReport<'_>,
    before: &PaperMCServerStatus,
) -> Option<EventText> {
    let (_, reason, text) = came_of(server, report)?;
    let is_known = |condition: &Condition| {
        condition.type_ == RESTORED_FROM && condition.reason == reason && condition.message == text
    };
    if before.conditions.iter().any(is_known) {
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
    use crate::server::check::check;
    use crate::server::check::tests::server;

    fn said(spec: Value, new_volume: &Value) -> (bool, &'static str, String) {
        let checked = check(&server(spec)).unwrap();
        let agent = serde_json::from_value(json!({
            "at": "2026-11-22T04:00:00Z", "podUid": "u", "server": {"state": "absent"}, "players": {"who": "nobody"},
            "lock": null, "world": {"floor": null, "whole": true}, "newVolume": new_volume,
        }))
        .unwrap();
        of_the_agent(&checked, &checked.restore_from.as_ref().unwrap().order, &agent)
    }

    fn record(copy: &str, got: Option<&str>) -> Value {
        let order = json!({"server": "lobby", "copy": copy, "claim": "backup-lobby-0", "apart": false});
        json!({"order": order, "at": "2026-11-22T03:00:00Z", "copy": got})
    }

    fn own() -> Value {
        json!({"backup": {}, "restoreFrom": {}})
    }

    #[test]
    fn restored_volume_condition_stays_true() {
        let (holds, reason, text) = said(own(), &record("latest", Some("20261122T030000Z-aaaaaaaa")));
        assert_eq!((holds, reason), (true, "Restored"));
        assert!(text.contains("the copy 20261122T030000Z-aaaaaaaa of `lobby`"), "{text}");
    }

    #[test]
    fn volume_in_use_condition_names_restore_command() {
        // A world that was there at the first start, a field that was set on a running server, and another backup than the restored one.
        for known in [record("latest", None), json!(null), record("20261122T030000Z-aaaaaaaa", Some("x"))] {
            let (holds, reason, text) = said(own(), &known);
            assert_eq!((holds, reason), (false, "VolumeInUse"), "{known}");
            assert!(text.ends_with("nightshift.dev/restore-from=\"latest;overwrite\"`"), "{text}");
        }
        let (_, _, text) = said(json!({"backup": {}, "restoreFrom": {"server": "survival"}}), &json!(null));
        assert!(text.ends_with("by hand"), "the annotation knows the server's own copies alone: {text}");
    }
}
