//! Pure. Who is on, by what the agent says of the server's ping.

use jiff::{SignedDuration, Timestamp};
use scheduler::observation::Players;
use scheduler::protocol::{self, AgentReport, Server};

/// A server that has answered so lately answers: its agent pings every 5 s and waits for 3 s.
const ANSWERS_FOR: SignedDuration = SignedDuration::from_secs(9);

/// An agent that cannot be asked has said nothing since `silent_since`.
pub(super) fn players_of(report: Option<&AgentReport>, silent_since: Timestamp) -> Players {
    let Some(report) = report else { return Players::Unknown { since: silent_since } };
    match (report.players, &report.server) {
        // An agent does not count where there is no process, but nobody can be on what is not there.
        (protocol::PlayerCount::Unknown { since: _ }, Server::Absent) => Players::Nobody,
        // What answers can be told and asked, although its ping does not say how many are on (plugins may hide that).
        (protocol::PlayerCount::Unknown { since }, Server::Up { answered_at, .. }) if since < *answered_at => {
            let answers = report.at.duration_since(*answered_at) < ANSWERS_FOR;
            if answers { Players::Hidden } else { Players::Unknown { since: *answered_at } }
        }
        (players, _) => players.into(),
    }
}
