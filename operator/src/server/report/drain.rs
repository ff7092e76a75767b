//! Pure. What a person reads who empties the server's node: why it waits, until when, and the way out.

use crds::PaperMCServerStatus;
use scheduler::countdown;
use scheduler::rollout::{Step, WaitingOn};
use scheduler::seen::{Act, Eviction};

use super::Report;
use crate::k8s::events::Note;
use crate::server::check::CheckedServer;
use crate::server::rollout::Done;

/// The condition. There is none while the node stays.
pub(super) const DRAINING: &str = "Draining";

/// Its reasons that an Event is worth, when they begin.
const NEVER: &str = "EvictionNever";
const ALLOWED: &str = "EvictionAllowed";

/// Reason and message.
pub(super) fn in_words(server: &CheckedServer, report: &Report<'_>) -> Option<(&'static str, String)> {
    let drain = &report.plan.drain;
    let (node, mark) = drain.marked()?;
    let (reason, what) = match drain.eviction {
        Eviction::Always => return None,
        Eviction::Never => (NEVER, format!("`spec.eviction` is `Never`, so evictions are refused. {}", way_out(server))),
        Eviction::Announced => what_is_waited_for(server, report),
    };
    Some((reason, format!("node `{node}` {}: {what}", mark.in_words())))
}

/// How far the server is on its way to being let go.
fn what_is_waited_for(server: &CheckedServer, report: &Report<'_>) -> (&'static str, String) {
    let seen = &report.plan.seen;
    let is_told = seen.draining_since().is_some_and(|since| seen.told(Act::Drain { since }).is_some());
    match report.step {
        Step::BeginDrain { .. }
        | Step::Announce { act: Act::Drain { .. }, .. }
        | Step::Save { act: Act::Drain { .. }, .. } => {
            ("MakingReady", "evictions are refused until players were told and the world is saved".to_owned())
        }
        Step::Wait(WaitingOn::Players { until }) => {
            let notice = countdown::in_words(server.notice);
            let words = format!(
                "evictions are refused while somebody is on, until {until} at most; then players are warned for {notice}. {}",
                way_out(server)
            );
            ("WaitingForPlayers", words)
        }
        Step::Wait(WaitingOn::Countdown { ends }) if is_told => {
            let words = format!("players are warned; evictions are refused until {ends}, and until the world is saved then");
            ("Countdown", words)
        }
        Step::Wait(WaitingOn::Agent { until }) => {
            ("AgentSilent", format!("nobody can be asked; evictions are refused until {until} at most"))
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
        | Step::Save { .. }
        | Step::WriteTemplate { .. }
        | Step::Commit { .. }
        | Step::Restore { .. }
        | Step::MarkFailed { .. }
        | Step::OrderRestore { .. }
        | Step::OrderData { .. }
        | Step::RollBack { .. }
        | Step::Close { .. }
        | Step::Restart { .. }
        | Step::EndRestart
        | Step::EndDrain
        | Step::Settled
        | Step::Wait(_) => {
            let words = "what is under way is finished first (see Updating); a pod that is not ready may be evicted meanwhile";
            ("UnderWay", words.to_owned())
        }
    }
}

/// What moves the server now: the stop of any pod that is deleted, and a new pod that finds another node.
fn way_out(CheckedServer { name, namespace, .. }: &CheckedServer) -> String {
    format!("To move it now, players warned for seconds and the world saved: `kubectl -n {namespace} delete pod {name}-0`")
}

/// Events, each once for each drain.
pub(super) fn notes(server: &CheckedServer, report: &Report<'_>, before: &PaperMCServerStatus) -> Vec<Note> {
    let was = |reason: &str| before.conditions.iter().any(|it| it.type_ == DRAINING && it.reason == reason);
    let now = report.now;
    let mut notes = Vec::new();
    if *report.done == Done::DrainEnded {
        let text = format!("at {now}: the server stays; evictions are refused again");
        notes.push(Note { reason: "DrainEnded", warning: false, text });
    }
    let Some((reason, message)) = in_words(server, report) else { return notes };
    let text = format!("at {now}, {message}");
    if *report.done == Done::DrainBegun {
        notes.push(Note { reason: "DrainBegun", warning: false, text });
    } else if reason == NEVER && !was(NEVER) {
        notes.push(Note { reason: "EvictionRefused", warning: true, text });
    } else if reason == ALLOWED && !was(ALLOWED) {
        notes.push(Note { reason: ALLOWED, warning: false, text });
    }
    notes
}
