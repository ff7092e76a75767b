//! Pure. Reports a running server that does not answer the pings or the commands of its agent, or whose agent does not answer the operator.

use jiff::{SignedDuration, Timestamp};
use scheduler::observation::{Players, PodPhase};

use super::context::PassReport;
use crate::k8s::events::EventText;
use crate::server::hang::{Hang, HungPart, TOLERATED};
use crate::server::observe::{Observed, server_status};
use crate::server::plan::Plan;

/// The reason of `Ready` while the server does not answer. Also the reason of the Event.
pub(super) const NOT_RESPONDING: &str = "NotResponding";
/// The reason of `Ready` and `Updating` while the agent does not answer. Also the reason of the Event.
pub(super) const AGENT_UNREACHABLE: &str = "AgentUnreachable";
/// The reason of `Updating` and `Draining` while the players cannot be counted.
pub(crate) const PLAYERS_UNKNOWN: &str = "PlayersUnknown";

/// The part of a running server that does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SilentPart {
    /// The agent does not answer the operator.
    Agent,
    /// The server does not answer its agent.
    Hung(HungPart),
}

/// The time since the last answer, however short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Silence {
    part: SilentPart,
    /// By the clock of the operator for the agent, and by the clock of the node otherwise.
    since: Timestamp,
    lasts: SignedDuration,
}

impl Silence {
    /// `None` for a pod that is not up: another reason of `Ready` describes it.
    fn from_observed(plan: &Plan, observed: &Observed, now: Timestamp) -> Option<Self> {
        plan.observation.pod.filter(|pod| pod.phase == PodPhase::Up)?;
        if let Some(report) = observed.reply.report.as_deref() {
            let Hang { part, since, lasts } = Hang::from_report(report)?;
            return Some(Self { part: SilentPart::Hung(part), since, lasts });
        }
        let since = observed.reply.silent_since;
        Some(Self { part: SilentPart::Agent, since, lasts: now.duration_since(since) })
    }
}

/// When a silence that is still tolerated would be reported.
pub(crate) fn reported_at(plan: &Plan, observed: &Observed, now: Timestamp) -> Option<Timestamp> {
    let Silence { part, since: _, lasts } = Silence::from_observed(plan, observed, now)?;
    // The agent pings every few seconds, so a shorter time since the last answer is normal. The pod may be unready before that time is over.
    let is_unready = observed.pod.as_ref().and_then(server_status).is_some_and(|container| !container.ready);
    let is_silent = part == SilentPart::Hung(HungPart::MainThread)
        || is_unready
        || matches!(observed.players(), Players::Unknown { .. });
    (is_silent && lasts < TOLERATED).then(|| now + (TOLERATED - lasts))
}

/// Status, reason and message of `Ready` after a silence that lasted too long.
pub(super) fn condition_parts(report: &PassReport<'_>) -> Option<(Option<bool>, &'static str, String)> {
    let silence = Silence::from_observed(report.plan, report.pass.observed, report.pass.now)?;
    let Silence { part, since, lasts: _ } = Some(silence).filter(|silence| TOLERATED <= silence.lasts)?;
    Some(match part {
        SilentPart::Agent => {
            let message = format!(
                "The agent has not answered since {since}, so it is unknown whether the server does. See the log of \
                container `agent`, and whether the node is Ready."
            );
            (None, AGENT_UNREACHABLE, message)
        }
        SilentPart::Hung(HungPart::MainThread) => {
            let message = format!(
                "The server answers pings, but it has not answered a command since {since}: its main thread hangs. See \
                the log of container `papermc`.{}",
                restart_note(report)
            );
            (Some(false), NOT_RESPONDING, message)
        }
        SilentPart::Hung(HungPart::Server) => {
            let message = format!(
                "The server's process is running, but it has not answered a ping since {since}. See the log of \
                container `papermc`.{}",
                restart_note(report)
            );
            (Some(false), NOT_RESPONDING, message)
        }
    })
}

/// Says that the server is restarted for its hang. Empty otherwise.
fn restart_note(report: &PassReport<'_>) -> &'static str {
    let is_restarted = report.plan.constraints.hang.is_some() && !report.plan.observation.crash_loop;
    if is_restarted {
        " It is restarted when this has lasted for 2 minutes (`spec.onHang: Restart`). Its players cannot be warned."
    } else {
        ""
    }
}

/// The Event about such a silence.
pub(super) fn event(report: &PassReport<'_>) -> Option<EventText> {
    condition_parts(report).map(|(_, reason, text)| EventText { reason, warning: true, text })
}
