//! Pure. Draws the scenario of a run with several servers by its seed.

use std::net::Ipv4Addr;

use fixtures::rng::Rng;
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
    pub(super) fn draw(rng: &mut Rng, addresses: [Ipv4Addr; 4], begins: Timestamp) -> Self {
        let (total, per_node) = rng.choose(&[(1, 0), (1, 0), (2, 0), (2, 1), (0, 1)]);
        let servers = 3 + rng.number_below(2);
        let nodes = 1 + rng.number_below(2);
        let pairs = [None, Some((0, 1)), Some((1, 0)), Some((2, 0))];
        let (pair, soak) = (rng.choose(&pairs), SignedDuration::from_mins(rng.choose(&[0, 10, 10, 120])));
        let mut scenarios: Vec<Scenario> = Vec::new();
        for (index, (name, address)) in NAMES.into_iter().zip(addresses).take(servers).enumerate() {
            let followed_name = pair.filter(|(follower, _)| *follower == index).map(|(_, index)| NAMES[index]);
            let server_index = ServerIndex {
                name,
                number: u32::try_from(index).expect("a small number"),
                // Replacements of a lost node have the numbers after it.
                node: 10 * u32::try_from(index % nodes).expect("a small number"),
                follows: followed_name.map(|followed| (followed, soak)),
            };
            let drawn = Scenario { server_index, ..Scenario::draw(rng, Releases::get(), address) };
            scenarios.push(in_same_cluster(drawn, &scenarios));
        }
        let (mut faults, mut released_at) = (Vec::new(), Timestamp::MAX);
        for (index, scenario) in scenarios.iter().enumerate() {
            let (server_faults, released) = plan_faults(rng, scenario, begins, WINDOWS_WITH_FAULTS);
            faults.extend(server_faults.into_iter().map(|(time, fault)| (time, index, fault)));
            released_at = released_at.min(released);
        }
        faults.sort_by_key(|(time, ..)| *time);
        Self { scenarios, bounds: Bounds { total, per_node }, faults, released_at }
    }
}

/// The scenario in one cluster with the others: all have the same upstreams, and servers on one node have the same
/// clock.
fn in_same_cluster(scenario: Scenario, others: &[Scenario]) -> Scenario {
    let Some(first) = others.first() else { return scenario };
    let neighbour = others.iter().find(|other| other.server_index.node == scenario.server_index.node);
    Scenario {
        old_catalog: first.old_catalog.clone(),
        new_catalog: first.new_catalog.clone(),
        one_way: first.one_way,
        node_clock_offset: neighbour.map_or(scenario.node_clock_offset, |neighbour| neighbour.node_clock_offset),
        ..scenario
    }
}
