//! Pure. Determines who is online from the agent's report of the server ping.

use agent_api::{AgentReport, Server};
use jiff::{SignedDuration, Timestamp};
use scheduler::observation::Players;

/// A server whose last answer is at most this old counts as responsive. Its agent pings every 5 s with a timeout of 3 s.
const RESPONSIVE_FOR: SignedDuration = SignedDuration::from_secs(9);

/// The players online. An unreachable agent makes them unknown since `silent_since`.
pub(super) fn players_of(report: Option<&AgentReport>, silent_since: Timestamp) -> Players {
    let Some(report) = report else { return Players::Unknown { since: silent_since } };
    match (report.players, &report.server) {
        // The agent does not count players while no process runs, but then no player can be online.
        (agent_api::PlayerCount::Unknown { since: _ }, Server::Absent) => Players::Nobody,
        // A server that answers can be warned and saved, although its ping hides the number of players. Plugins can hide it.
        (agent_api::PlayerCount::Unknown { since }, Server::Up { answered_at, .. }) if since < *answered_at => {
            let is_responsive = report.at.duration_since(*answered_at) < RESPONSIVE_FOR;
            if is_responsive { Players::Hidden } else { Players::Unknown { since: *answered_at } }
        }
        (players, _) => players.into(),
    }
}
