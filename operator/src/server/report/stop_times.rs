//! Pure. Determines when the server was stopped, how long it was down, and how many players it disconnected.

use jiff::{SignedDuration, Timestamp};

/// The number of players that the last stop disconnected.
pub(crate) fn disconnected_players(agent: Option<&agent_api::AgentReport>) -> Option<u32> {
    agent?.last_stop.as_ref()?.players
}

/// When the previous process exited.
pub(crate) fn last_exit_at(agent: Option<&agent_api::AgentReport>) -> Option<Timestamp> {
    Some(agent?.last_stop.as_ref()?.at)
}

/// Time from the exit of the old process to the first answer of the new one, both by the agent's clock.
pub(crate) fn downtime(agent: Option<&agent_api::AgentReport>) -> Option<SignedDuration> {
    let stopped = last_exit_at(agent)?;
    match &agent?.server {
        agent_api::Server::Up { since, .. } if *since > stopped => Some(since.duration_since(stopped)),
        agent_api::Server::Up { .. }
        | agent_api::Server::Absent
        | agent_api::Server::Starting { .. }
        | agent_api::Server::Stopping { .. } => None,
    }
}
