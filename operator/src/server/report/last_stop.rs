//! Pure. Reports the last stop of the server, with an Event if no save was confirmed.

use agent_api::{LastStop, UNOBSERVED_STOP, UNREQUESTED_STOP};
use crds::PaperMCServerStatus;
use crds::paper_mc_server::ObservedStop;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;

use super::context::PassReport;
use crate::error_chain::cut;
use crate::k8s::events::EventText;
use crate::server::in_game_stop::stopped_at;

/// Age after which a stop is not reported any more, for an operator that sees the volume for the first time.
const REPORTED_FOR: SignedDuration = SignedDuration::from_hours(24);
/// Maximum length of the reason in the status.
const MAX_REASON_LENGTH: usize = 1_024;
/// Maximum difference between the instants at which kubelet and agent see the same exit: the agent polls every few seconds.
const SAME_EXIT_WITHIN: SignedDuration = SignedDuration::from_mins(1);

/// The last stop for the status. While the agent is unreachable, the previous value remains.
pub(super) fn build_status(
    agent: Option<&agent_api::AgentReport>,
    before: &PaperMCServerStatus,
) -> Option<ObservedStop> {
    let last = agent.and_then(|agent| agent.last_stop.as_ref());
    let last = last.map(|LastStop { at, saved, why, players, saved_at, started_at: _ }| ObservedStop {
        at: *at,
        saved: *saved,
        why: cut(why, MAX_REASON_LENGTH),
        players: *players,
        saved_at: *saved_at,
    });
    last.or_else(|| before.last_stop.clone())
}

/// An Event for a stop without a confirmed save, once. In a crash loop only the loop is reported.
pub(super) fn event(report: &PassReport<'_>, before: &PaperMCServerStatus) -> Option<EventText> {
    let last = report.pass.observed.reply.report.as_deref()?.last_stop.as_ref()?;
    let is_known = before.last_stop.as_ref().is_some_and(|reported| is_same(reported, last));
    let is_reported = is_known || report.plan.observation.crash_loop;
    let needs_event =
        !is_reported && is_recent(last, before, report.pass.now) && is_unsaved(last, report.pass.observed.pod.as_ref());
    needs_event.then(|| EventText { reason: "StoppedUnsaved", warning: true, text: message(last) })
}

/// The instant alone is not sufficient, because a later stop may be reported with the same one.
fn is_same(reported: &ObservedStop, last: &LastStop) -> bool {
    reported.at == last.at && reported.why == cut(&last.why, MAX_REASON_LENGTH)
}

/// Whether the stop is recent. An exit that was not observed is found when the next pod starts, which may be days later. It is reported if
/// the server was known before.
fn is_recent(last: &LastStop, before: &PaperMCServerStatus, now: Timestamp) -> bool {
    now < last.at + REPORTED_FOR || (last.why.starts_with(UNOBSERVED_STOP) && !before.conditions.is_empty())
}

fn is_unsaved(last: &LastStop, pod: Option<&Pod>) -> bool {
    let is_cause_unknown = [UNREQUESTED_STOP, UNOBSERVED_STOP].into_iter().any(|prefix| last.why.starts_with(prefix));
    !(last.saved || is_cause_unknown && was_user_stop(last, pod))
}

/// Whether a user typed `/stop` in the game: the process exited with code 0, and a server saves before it does.
fn was_user_stop(last: &LastStop, pod: Option<&Pod>) -> bool {
    let ended = pod.and_then(stopped_at);
    ended.is_some_and(|ended| ended.duration_since(last.at).abs() <= SAME_EXIT_WITHIN)
}

/// The message, with the last known save. That may be hours ago although the world is newer, because a server does not report its automatic
/// saves.
fn message(last: &LastStop) -> String {
    let to_the_second = |at: Timestamp| at.round(jiff::Unit::Second).unwrap_or(at);
    let last_save = match last.saved_at {
        Some(saved_at) => format!("The last known save was at {}", to_the_second(saved_at)),
        None => "No save since its start is known".to_owned(),
    };
    let or_later = if last.why.starts_with(UNOBSERVED_STOP) { " or later" } else { "" };
    format!(
        "The server stopped at {}{or_later} without a confirmed save: {}. {last_save}. The server's automatic saves \
        are not reported. Progress since its last save may be lost.",
        to_the_second(last.at),
        cut(last.why.trim_end_matches('.'), 640)
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const AT: &str = "2026-11-22T03:00:05.25Z";

    fn stop(saved: bool, why: &str) -> LastStop {
        serde_json::from_value(json!({"at": AT, "saved": saved, "why": why})).unwrap()
    }

    fn after(hours: i64) -> Timestamp {
        AT.parse::<Timestamp>().unwrap() + SignedDuration::from_hours(hours)
    }

    /// The status of a server that was observed before.
    fn observed_before() -> PaperMCServerStatus {
        let ready = json!({
            "type": "Ready", "status": "True", "reason": "Up", "message": "", "lastTransitionTime": AT,
        });
        PaperMCServerStatus {
            conditions: vec![serde_json::from_value(ready).unwrap()],
            ..PaperMCServerStatus::default()
        }
    }

    /// A pod whose server container exited with this code at that instant.
    fn ended(exit_code: i32, at: &str) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "lobby-0"},
            "status": {"containerStatuses": [{
                "name": "papermc", "ready": false, "restartCount": 1, "image": "", "imageID": "",
                "state": {"running": {}}, "lastState": {"terminated": {"exitCode": exit_code, "finishedAt": at}},
            }]},
        }))
        .unwrap()
    }

    #[test]
    fn unsaved_stop_is_reported_unless_saved_or_old() {
        let hung = stop(false, "stopped on request, but `save-all flush` was not confirmed: no answer within 45 s");
        assert!(is_unsaved(&hung, None) && !is_unsaved(&stop(true, "stopped on request"), None));
        let before = observed_before();
        assert!(is_recent(&hung, &before, after(23)) && !is_recent(&hung, &before, after(24)));
        assert_eq!(
            message(&hung),
            "The server stopped at 2026-11-22T03:00:05Z without a confirmed save: stopped on request, but `save-all \
            flush` was not confirmed: no answer within 45 s. No save since its start is known. The server's automatic \
            saves are not reported. Progress since its last save may be lost."
        );
    }

    #[test]
    fn unobserved_exit_is_reported_however_late() {
        let node_lost = stop(false, &format!("{UNOBSERVED_STOP}: its pod was deleted by force, or its node was lost"));
        assert!(is_unsaved(&node_lost, None));
        assert!(is_recent(&node_lost, &observed_before(), after(72)), "a lost node may return after days");
        assert!(
            !is_recent(&node_lost, &PaperMCServerStatus::default(), after(72)),
            "an old stop on the volume of a new server"
        );
        assert!(is_recent(&node_lost, &PaperMCServerStatus::default(), after(1)));
        let text = message(&node_lost);
        assert!(text.starts_with("The server stopped at 2026-11-22T03:00:05Z or later without a confirmed"), "{text}");
        assert!(
            text.contains("save: the exit of the process was not observed: its pod was deleted by force, or"),
            "{text}"
        );
        let same_end = "2026-11-22T03:00:41Z";
        assert!(!is_unsaved(&node_lost, Some(&ended(0, same_end))), "a player typed /stop without an agent");
        assert!(is_unsaved(&node_lost, Some(&ended(137, same_end))), "the process was killed");
    }

    #[test]
    fn unsaved_stop_event_keeps_last_save_time() {
        let saved_at = "2026-11-22T02:12:10.5Z".parse().unwrap();
        let crashed = LastStop { saved_at: Some(saved_at), ..stop(false, &"a long story. ".repeat(100)) };
        let text = message(&crashed);
        let end = ". The last known save was at 2026-11-22T02:12:11Z. The server's automatic saves are not reported. \
        Progress since its last save may be lost.";
        assert!(text.ends_with(end), "{text}");
        assert!(text.len() <= 1_024, "{}", text.len());
        assert!(text.contains("a long story. a long story"), "{text}");
    }

    #[test]
    fn in_game_stop_is_not_reported_as_crash() {
        let unasked = stop(false, &format!("{UNREQUESTED_STOP}: a crash, a kill, or /stop"));
        let same_end = "2026-11-22T03:00:01Z";
        assert!(!is_unsaved(&unasked, Some(&ended(0, same_end))), "a player typed /stop");
        assert!(is_unsaved(&unasked, Some(&ended(1, same_end))), "a crash");
        assert!(is_unsaved(&unasked, Some(&ended(0, "2026-11-22T01:00:00Z"))), "the exit of another process");
        assert!(is_unsaved(&unasked, None));
        // The pod is deleted and the server exits normally, but the save is still unconfirmed.
        let on_request = stop(false, "stopped on request; `save-all flush` was not confirmed: it hung");
        assert!(is_unsaved(&on_request, Some(&ended(0, same_end))));
    }

    #[test]
    fn last_stop_status_stands_while_agent_is_silent() {
        let agent: agent_api::AgentReport = serde_json::from_value(json!({
            "at": AT, "podUid": "u", "server": {"state": "absent"}, "players": {"who": "nobody"}, "lock": null,
            "world": {"floor": null, "whole": true}, "lastStop": {"at": AT, "saved": true, "why": "asked", "players": 3, "savedAt": AT},
        }))
        .unwrap();
        let status = build_status(Some(&agent), &PaperMCServerStatus::default()).unwrap();
        assert_eq!((status.saved, status.why.as_str(), status.players), (true, "asked", Some(3)));
        assert_eq!(status.saved_at, Some(AT.parse().unwrap()));
        assert!(is_same(&status, &stop(true, "asked")) && !is_same(&status, &stop(false, UNOBSERVED_STOP)));
        let before = PaperMCServerStatus { last_stop: Some(status.clone()), ..PaperMCServerStatus::default() };
        assert_eq!(build_status(None, &before), Some(status));
    }
}
