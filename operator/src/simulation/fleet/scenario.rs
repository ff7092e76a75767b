//! Pure. Draws the scenario of a run with several servers by its seed.

use std::net::Ipv4Addr;

use fixtures::dice::Rng;
use jiff::{SignedDuration, Timestamp};

use crate::simulation::catalog::Releases;
use crate::simulation::faults::{Fault, plan_faults};
use crate::simulation::operator_process::Bounds;
use crate::simulation::scenario::{Scenario, ServerIndex};

/// No name is a prefix of another one, because the name of an object identifies its server.
const NAMES: [&str; 4] = ["arena", "build", "creative", "duels"];

/// Faults occur in the first window only. In the later ones all servers must end, one after the other.
const WINDOWS_WITH_FAULTS: usize = 1;

/// The servers of a run, and their faults.
pub(super) struct FleetScenario {
    pub(super) scenarios: Vec<Scenario>,
    pub(super) bounds: Bounds,
    /// The time, the server and the kind of each fault.
    pub(super) faults: Vec<(Timestamp, usize, Fault)>,
    pub(super) released_at: Timestamp,
}

impl FleetScenario {
    /// Three servers, or four. Their agents listen at these addresses.
    pub(super) fn draw(dice: &mut Rng, addresses: [Ipv4Addr; 4], begins: Timestamp) -> Self {
        let (together, on_a_node) = dice.one_of(&[(1, 0), (1, 0), (2, 0), (2, 1), (0, 1)]);
        let servers = 3 + dice.below(2);
        let nodes = 1 + dice.below(2);
        let pairs = [None, Some((0, 1)), Some((1, 0)), Some((2, 0))];
        let (pair, soak) = (dice.one_of(&pairs), SignedDuration::from_mins(dice.one_of(&[0, 10, 10, 120])));
        let mut scenarios: Vec<Scenario> = Vec::new();
        for (at, (name, address)) in NAMES.into_iter().zip(addresses).take(servers).enumerate() {
            let goes_first = pair.filter(|(follower, _)| *follower == at).map(|(_, followed)| NAMES[followed]);
            let seat = ServerIndex {
                name,
                number: u32::try_from(at).expect("below four"),
                // Replacements of a lost node have the numbers after it.
                node: 10 * u32::try_from(at % nodes).expect("below two"),
                follows: goes_first.map(|followed| (followed, soak)),
            };
            let drawn = Scenario { seat, ..Scenario::draw(dice, Releases::get(), address) };
            scenarios.push(beside(drawn, &scenarios));
        }
        let (mut faults, mut released_at) = (Vec::new(), Timestamp::MAX);
        for (at, scenario) in scenarios.iter().enumerate() {
            let (theirs, released) = plan_faults(dice, scenario, begins, WINDOWS_WITH_FAULTS);
            faults.extend(theirs.into_iter().map(|(when, fault)| (when, at, fault)));
            released_at = released_at.min(released);
        }
        faults.sort_by_key(|(when, ..)| *when);
        Self { scenarios, bounds: Bounds { together, on_a_node }, faults, released_at }
    }
}

/// The scenario in one cluster with the others: all have the same upstreams, and servers on one node have the same
/// clock.
fn beside(scenario: Scenario, others: &[Scenario]) -> Scenario {
    let Some(first) = others.first() else { return scenario };
    let neighbour = others.iter().find(|other| other.seat.node == scenario.seat.node);
    Scenario {
        before: first.before.clone(),
        after: first.after.clone(),
        one_way: first.one_way,
        node_ahead: neighbour.map_or(scenario.node_ahead, |neighbour| neighbour.node_ahead),
        ..scenario
    }
}
