//! Pure. Reports a running server that does not answer the ping of its agent, or whose agent does not answer the operator.

use agent_api::Server;
use jiff::{SignedDuration, Timestamp};
use scheduler::observation::{Players, PodPhase};

use super::context::PassReport;
use crate::k8s::events::EventText;
use crate::server::observe::{Observed, server_status};
use crate::server::plan::Plan;

/// The reason of `Ready` while the server does not answer. Also the reason of the Event.
pub(super) const NOT_RESPONDING: &str = "NotResponding";
/// The reason of `Ready` and `Updating` while the agent does not answer. Also the reason of the Event.
pub(super) const AGENT_UNREACHABLE: &str = "AgentUnreachable";
/// The reason of `Updating` and `Draining` while the players cannot be counted.
pub(super) const PLAYERS_UNKNOWN: &str = "PlayersUnknown";

/// How long a silence is tolerated. A restarted agent answers within seconds, and so does a server after a long garbage collection.
const TOLERATED: SignedDuration = SignedDuration::from_mins(1);

/// Since when a part of the running server has not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Silence {
    /// The agent has not answered the operator since then, by the operator's clock.
    Agent { since: Timestamp, lasts: SignedDuration },
    /// The server has not answered its agent's ping since then, by the clock of the node.
    Server { since: Timestamp, lasts: SignedDuration },
}

impl Silence {
    /// The current silence, however short. `None` for a pod that is not up: another reason of `Ready` describes it.
    fn from_observed(plan: &Plan, observed: &Observed, now: Timestamp) -> Option<Self> {
        plan.observation.pod.filter(|pod| pod.phase == PodPhase::Up)?;
        let reply = &observed.reply;
        let Some(report) = reply.report.as_deref() else {
            let since = reply.silent_since;
            return Some(Self::Agent { since, lasts: now.duration_since(since) });
        };
        match report.server {
            Server::Up { answered_at: since, .. } => {
                Some(Self::Server { since, lasts: report.at.duration_since(since) })
            }
            Server::Absent | Server::Starting { .. } | Server::Stopping { .. } => None,
        }
    }

    fn lasts(self) -> SignedDuration {
        match self {
            Self::Agent { lasts, .. } | Self::Server { lasts, .. } => lasts,
        }
    }
}

/// When a silence that is still tolerated would be reported.
pub(crate) fn reported_at(plan: &Plan, observed: &Observed, now: Timestamp) -> Option<Timestamp> {
    let lasts = Silence::from_observed(plan, observed, now)?.lasts();
    let is_unready = observed.pod.as_ref().and_then(server_status).is_some_and(|container| !container.ready);
    let is_silent = is_unready || matches!(observed.players(), Players::Unknown { .. });
    (is_silent && lasts < TOLERATED).then(|| now + (TOLERATED - lasts))
}

/// Status, reason and message of `Ready` after a silence that lasted too long.
pub(super) fn condition_parts(report: &PassReport<'_>) -> Option<(Option<bool>, &'static str, String)> {
    let silence = Silence::from_observed(report.plan, report.pass.observed, report.pass.now)?;
    if silence.lasts() < TOLERATED {
        return None;
    }
    Some(match silence {
        Silence::Agent { since, .. } => {
            let message = format!(
                "The agent has not answered since {since}, so it is unknown whether the server does. See the log of \
                container `agent`, and whether the node is Ready."
            );
            (None, AGENT_UNREACHABLE, message)
        }
        Silence::Server { since, .. } => {
            let message = format!(
                "The server's process is running, but it has not answered a ping since {since}. See the log of \
                container `papermc`."
            );
            (Some(false), NOT_RESPONDING, message)
        }
    })
}

/// The Event about such a silence.
pub(super) fn event(report: &PassReport<'_>) -> Option<EventText> {
    condition_parts(report).map(|(_, reason, text)| EventText { reason, warning: true, text })
}
