//! Pure. Reports a drain of the server's node to its admin: why and until when evictions are refused, and how to move the server at once. An
//! update that begins is finished first. `server/drain.rs` observes the node.

use scheduler::announcement;
use scheduler::observation::{Disruption, EvictionPolicy};
use scheduler::rollout::{Step, WaitingOn};

use crate::k8s::events::EventText;
use crate::server::act::outcome::StepOutcome;
use crate::server::plan::constraint::{ConditionText, Constraint};
use crate::server::report::context::PassReport;
use crate::server::report::responsiveness::PLAYERS_UNKNOWN;
use validate::CheckedServer;

pub(super) struct NodeDrain;

/// Type of the condition. It is absent while the node is not marked.
const DRAINING: &str = "Draining";

/// The reasons that cause an Event when they begin.
const NEVER: &str = "EvictionNever";
const ALLOWED: &str = "EvictionAllowed";

impl Constraint for NodeDrain {
    fn condition(&self, report: &PassReport<'_>) -> Option<ConditionText> {
        let (reason, message) = reason_and_message(report)?;
        Some(ConditionText { type_: DRAINING, status: Some(true), reason, message })
    }

    /// Each Event is sent once per drain.
    fn events(&self, report: &PassReport<'_>) -> Vec<EventText> {
        let was = |reason: &str| {
            let mut conditions = report.pass.before.conditions.iter();
            conditions.any(|condition| condition.type_ == DRAINING && condition.reason == reason)
        };
        let now = report.pass.now;
        let mut events = Vec::new();
        if *report.done == StepOutcome::DrainEnded {
            let text = format!("At {now}: the server stays. Evictions are refused again.");
            events.push(EventText { reason: "DrainEnded", warning: false, text });
        }
        let Some((reason, message)) = reason_and_message(report) else { return events };
        let text = format!("At {now}: {message}");
        if *report.done == StepOutcome::DrainBegun {
            events.push(EventText { reason: "DrainBegun", warning: false, text });
        } else if reason == NEVER && !was(NEVER) {
            events.push(EventText { reason: "EvictionRefused", warning: true, text });
        } else if reason == ALLOWED && !was(ALLOWED) {
            events.push(EventText { reason: ALLOWED, warning: false, text });
        }
        events
    }
}

/// Reason and message of the condition.
fn reason_and_message(report: &PassReport<'_>) -> Option<(&'static str, String)> {
    let server = report.pass.checked;
    let drain = &report.plan.constraints.drain;
    let (node, mark) = drain.marked()?;
    let (reason, message) = match drain.eviction {
        EvictionPolicy::Always => return None,
        EvictionPolicy::Never => {
            (NEVER, format!("`spec.eviction` is `Never`, so evictions are refused. {}", move_command(server)))
        }
        EvictionPolicy::Announced => {
            let observation = &report.plan.observation;
            let is_announced = observation
                .draining_since()
                .is_some_and(|since| observation.announced(Disruption::Drain { since }).is_some());
            eviction_progress(server, report.step, is_announced)
        }
    };
    Some((reason, format!("Node `{node}` {}. {message}", mark.phrase())))
}

/// The progress of the server towards its eviction. `is_announced` is whether the countdown, if there is one, is for the drain.
fn eviction_progress(server: &CheckedServer, step: Step, is_announced: bool) -> (&'static str, String) {
    match step {
        Step::BeginDrain { .. }
        | Step::Announce { disruption: Disruption::Drain { .. }, .. }
        | Step::Save { disruption: Disruption::Drain { .. }, .. } => {
            ("PreparingEviction", "Evictions are refused until players are warned and the world is saved.".to_owned())
        }
        Step::Wait(WaitingOn::Players { until }) => {
            let notice = announcement::format_duration(server.players.notice);
            let message = format!(
                "Evictions are refused while players are online, until {until} at the latest. Then players are warned \
                for {notice}. {}",
                move_command(server)
            );
            ("WaitingForPlayers", message)
        }
        Step::Wait(WaitingOn::Countdown { ends }) | Step::Reannounce { ends, .. } if is_announced => {
            let message =
                format!("Players are warned. Evictions are refused until {ends} and until the world is then saved.");
            ("Countdown", message)
        }
        Step::Wait(WaitingOn::Agent { until }) => (
            PLAYERS_UNKNOWN,
            format!("The players cannot be counted. Evictions are refused until {until} at the latest."),
        ),
        Step::Wait(WaitingOn::SaveRefused { retry_at }) => {
            let retried = format!("evictions are refused. The save is retried at {retry_at}. {}", move_command(server));
            ("SaveRefused", format!("The server did not confirm its save, so {retried}"))
        }
        Step::Wait(WaitingOn::Eviction) => {
            (ALLOWED, "Players were warned and the world is saved. Evictions are allowed.".to_owned())
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
        | Step::UpToDate
        | Step::Wait(_) => {
            let message = "The change in progress is finished first (see Updating). A pod that is not ready may be evicted \
                meanwhile.";
            ("InProgress", message.to_owned())
        }
    }
}

/// The command that moves the server at once: the deleted pod runs its stop hook, and a new pod is scheduled to another node.
fn move_command(CheckedServer { name, namespace, .. }: &CheckedServer) -> String {
    format!(
        "To move the server now, after a warning of seconds and a save: `kubectl -n {namespace} delete pod {name}-0`."
    )
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use scheduler::observation::PodUid;
    use serde_json::json;

    use super::*;
    use crate::server::test_server::server;
    use validate::check;

    #[test]
    fn drain_message_gives_reason_limit_and_remedy() {
        let server = check(&server(json!({"players": {"notice": "90s"}}))).unwrap();
        let until = Timestamp::constant(1_795_348_800, 0);
        let message = |step| eviction_progress(&server, step, true);
        let command =
            "To move the server now, after a warning of seconds and a save: `kubectl -n games delete pod lobby-0`.";
        let players = format!(
            "Evictions are refused while players are online, until 2026-11-22T12:00:00Z at the latest. Then players \
            are warned for 1 minute 30 seconds. {command}"
        );
        assert_eq!(message(Step::Wait(WaitingOn::Players { until })), ("WaitingForPlayers", players));
        let refused = message(Step::Wait(WaitingOn::SaveRefused { retry_at: until }));
        assert!(refused.0 == "SaveRefused" && refused.1.ends_with(command), "{refused:?}");
        assert_eq!(message(Step::Wait(WaitingOn::Eviction)).0, "EvictionAllowed");
        let countdown = Step::Wait(WaitingOn::Countdown { ends: until });
        assert_eq!(message(countdown).0, "Countdown");
        assert_eq!(eviction_progress(&server, countdown, false).0, "InProgress", "it is the countdown of an update");
        let save = |disruption| Step::Save { disruption, pod: PodUid(7), not_after: until };
        assert_eq!(message(save(Disruption::Drain { since: until })).0, "PreparingEviction");
        assert_eq!(message(save(Disruption::Restart { due: until })).0, "InProgress");
    }
}
