//! Pure. Determines when the server was stopped, how long it was down, and how many players it disconnected.

use jiff::{SignedDuration, Timestamp};
use scheduler::protocol;

/// The number of players that the last stop disconnected.
pub(crate) fn disconnected_players(agent: Option<&protocol::AgentReport>) -> Option<u32> {
    agent?.last_stop.as_ref()?.players
}

/// When the previous process exited.
pub(crate) fn last_exit_at(agent: Option<&protocol::AgentReport>) -> Option<Timestamp> {
    Some(agent?.last_stop.as_ref()?.at)
}

/// Time from the exit of the old process to the first answer of the new one, both by the agent's clock.
pub(crate) fn downtime(agent: Option<&protocol::AgentReport>) -> Option<SignedDuration> {
    let stopped = last_exit_at(agent)?;
    match &agent?.server {
        protocol::Server::Up { since, .. } if *since > stopped => Some(since.duration_since(stopped)),
        protocol::Server::Up { .. }
        | protocol::Server::Absent
        | protocol::Server::Starting { .. }
        | protocol::Server::Stopping { .. } => None,
    }
}
