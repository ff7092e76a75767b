//! Pure. Reports a running server that does not answer the pings or the commands of its agent, or whose agent does not answer the operator.

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
pub(crate) const PLAYERS_UNKNOWN: &str = "PlayersUnknown";

/// How long a silence is tolerated. A restarted agent answers within seconds, and so does a server after a long garbage collection.
const TOLERATED: SignedDuration = SignedDuration::from_mins(1);

/// The part of a running server that does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SilentPart {
    /// The agent does not answer the operator.
    Agent,
    /// The server does not answer the ping of its agent.
    Server,
    /// The server answers pings, but no command.
    MainThread,
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
        let (part, since, at) = match observed.reply.report.as_deref() {
            None => (SilentPart::Agent, observed.reply.silent_since, now),
            Some(report) => match report.server {
                Server::Up { answered_at, hangs_since: Some(since), .. } if since <= answered_at => {
                    (SilentPart::MainThread, since, report.at)
                }
                Server::Up { answered_at, .. } => (SilentPart::Server, answered_at, report.at),
                Server::Absent | Server::Starting { .. } | Server::Stopping { .. } => return None,
            },
        };
        Some(Self { part, since, lasts: at.duration_since(since) })
    }
}

/// When a silence that is still tolerated would be reported.
pub(crate) fn reported_at(plan: &Plan, observed: &Observed, now: Timestamp) -> Option<Timestamp> {
    let Silence { part, since: _, lasts } = Silence::from_observed(plan, observed, now)?;
    // The agent pings every few seconds, so a shorter time since the last answer is normal. The pod may be unready before that time is over.
    let is_unready = observed.pod.as_ref().and_then(server_status).is_some_and(|container| !container.ready);
    let is_silent =
        part == SilentPart::MainThread || is_unready || matches!(observed.players(), Players::Unknown { .. });
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
        SilentPart::MainThread => {
            let message = format!(
                "The server answers pings, but it has not answered a command since {since}: its main thread hangs. See \
                the log of container `papermc`."
            );
            (Some(false), NOT_RESPONDING, message)
        }
        SilentPart::Server => {
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
