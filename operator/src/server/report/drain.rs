//! Pure. Renders messages for an admin who drains the server's node: why and until when the server waits, and how to move it at once.

use crds::PaperMCServerStatus;
use scheduler::announcement;
use scheduler::observation::{Disruption, EvictionSeen};
use scheduler::rollout::{Step, WaitingOn};

use super::PassReport;
use crate::k8s::events::EventText;
use crate::server::act::StepOutcome;
use crate::server::check::CheckedServer;

/// Type of the condition. It is absent while the node is not marked.
pub(super) const DRAINING: &str = "Draining";

/// The reasons that cause an Event when they begin.
const NEVER: &str = "EvictionNever";
const ALLOWED: &str = "EvictionAllowed";

/// Reason and message of the condition.
pub(super) fn in_words(server: &CheckedServer, report: &PassReport<'_>) -> Option<(&'static str, String)> {
    let drain = &report.plan.drain;
    let (node, mark) = drain.marked()?;
    let (reason, what) = match drain.eviction {
        EvictionSeen::Always => return None,
        EvictionSeen::Never => {
            (NEVER, format!("`spec.eviction` is `Never`, so evictions are refused. {}", way_out(server)))
        }
        EvictionSeen::Announced => {
            let seen = &report.plan.seen;
            let is_told = seen.draining_since().is_some_and(|since| seen.told(Disruption::Drain { since }).is_some());
            what_is_waited_for(server, report.step, is_told)
        }
    };
    Some((reason, format!("node `{node}` {}: {what}", mark.in_words())))
}

/// The progress of the server towards its eviction. `is_told` is whether the countdown, if there is one, is for the drain.
fn what_is_waited_for(server: &CheckedServer, step: Step, is_told: bool) -> (&'static str, String) {
    match step {
        Step::BeginDrain { .. }
        | Step::Announce { act: Disruption::Drain { .. }, .. }
        | Step::Save { act: Disruption::Drain { .. }, .. } => {
            ("PreparingEviction", "evictions are refused until players were told and the world is saved".to_owned())
        }
        Step::Wait(WaitingOn::Players { until }) => {
            let notice = announcement::in_words(server.notice);
            let words = format!(
                "evictions are refused while somebody is on, until {until} at most; then players are warned for {notice}. {}",
                way_out(server)
            );
            ("WaitingForPlayers", words)
        }
        Step::Wait(WaitingOn::Countdown { ends }) | Step::Reannounce { ends, .. } if is_told => {
            let words =
                format!("players are warned; evictions are refused until {ends}, and until the world is saved then");
            ("Countdown", words)
        }
        Step::Wait(WaitingOn::Agent { until }) => {
            ("AgentUnreachable", format!("nobody can be asked; evictions are refused until {until} at most"))
        }
        Step::Wait(WaitingOn::SaveRefused { again }) => {
            let words = format!(
                "the server did not confirm its save, so evictions are refused; it is asked again at {again}. {}",
                way_out(server)
            );
            ("SaveRefused", words)
        }
        Step::Wait(WaitingOn::Eviction) => {
            (ALLOWED, "players were told and the world is saved: evictions are let through".to_owned())
        }
        Step::Create { .. }
        | Step::Stage
        | Step::Announce { .. }
        | Step::Reannounce { .. }
        | Step::Save { .. }
        | Step::WriteTemplate { .. }
        | Step::Commit { .. }
        | Step::Restore { .. }
        | Step::MarkFailed { .. }
        | Step::RequestRestore { .. }
        | Step::RequestPluginDataRestore { .. }
        | Step::RollBack { .. }
        | Step::RollForward { .. }
        | Step::MarkStable { .. }
        | Step::Restart { .. }
        | Step::EndRestart
        | Step::EndDrain
        | Step::CancelAnnouncement { .. }
        | Step::Settled
        | Step::Wait(_) => {
            let words =
                "what is under way is finished first (see Updating); a pod that is not ready may be evicted meanwhile";
            ("InProgress", words.to_owned())
        }
    }
}

/// The command that moves the server at once: the deleted pod runs its stop hook, and a new pod is scheduled to another node.
fn way_out(CheckedServer { name, namespace, .. }: &CheckedServer) -> String {
    format!(
        "To move it now, players warned for seconds and the world saved: `kubectl -n {namespace} delete pod {name}-0`"
    )
}

/// Events, each once per drain.
pub(super) fn notes(server: &CheckedServer, report: &PassReport<'_>, before: &PaperMCServerStatus) -> Vec<EventText> {
    let was = |reason: &str| before.conditions.iter().any(|it| it.type_ == DRAINING && it.reason == reason);
    let now = report.now;
    let mut notes = Vec::new();
    if *report.done == StepOutcome::DrainEnded {
        let text = format!("at {now}: the server stays; evictions are refused again");
        notes.push(EventText { reason: "DrainEnded", warning: false, text });
    }
    let Some((reason, message)) = in_words(server, report) else { return notes };
    let text = format!("at {now}, {message}");
    if *report.done == StepOutcome::DrainBegun {
        notes.push(EventText { reason: "DrainBegun", warning: false, text });
    } else if reason == NEVER && !was(NEVER) {
        notes.push(EventText { reason: "EvictionRefused", warning: true, text });
    } else if reason == ALLOWED && !was(ALLOWED) {
        notes.push(EventText { reason: ALLOWED, warning: false, text });
    }
    notes
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use scheduler::observation::PodUid;
    use serde_json::json;

    use super::*;
    use crate::server::check::check;
    use crate::server::check::tests::server;

    #[test]
    fn drain_message_gives_reason_limit_and_remedy() {
        let server = check(&server(json!({"players": {"notice": "90s"}}))).unwrap();
        let until = Timestamp::constant(1_795_348_800, 0);
        let words = |step| what_is_waited_for(&server, step, true);
        let way_out =
            "To move it now, players warned for seconds and the world saved: `kubectl -n games delete pod lobby-0`";
        let players = format!(
            "evictions are refused while somebody is on, until 2026-11-22T12:00:00Z at most; then players are warned for \
             1 minute 30 seconds. {way_out}"
        );
        assert_eq!(words(Step::Wait(WaitingOn::Players { until })), ("WaitingForPlayers", players));
        let refused = words(Step::Wait(WaitingOn::SaveRefused { again: until }));
        assert!(refused.0 == "SaveRefused" && refused.1.ends_with(way_out), "{refused:?}");
        assert_eq!(words(Step::Wait(WaitingOn::Eviction)).0, "EvictionAllowed");
        let countdown = Step::Wait(WaitingOn::Countdown { ends: until });
        assert_eq!(words(countdown).0, "Countdown");
        assert_eq!(what_is_waited_for(&server, countdown, false).0, "InProgress", "it is that of an update");
        let save = |act| Step::Save { act, pod: PodUid(7), not_after: until };
        assert_eq!(words(save(Disruption::Drain { since: until })).0, "PreparingEviction");
        assert_eq!(words(save(Disruption::Restart { due: until })).0, "InProgress");
    }
}
