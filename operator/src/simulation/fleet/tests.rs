//! Pure. Tests runs of several servers.

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::catch_unwind;
use std::sync::{Mutex, PoisonError};

use super::{FleetRunResult, walk};
use crate::simulation::{Violations, address, is_thorough, on_all_cores, on_this_thread};

const ONE_ALONE: &str = "NIGHTSHIFT_FLEET";

/// Totals of all runs.
#[derive(Default)]
struct FleetSummary {
    passes: u32,
    faults: u32,
    /// Servers that had to wait for an update slot, and for the server that they follow.
    waited: usize,
    followed: usize,
    ends: BTreeMap<String, u32>,
    broken: Violations,
}

impl FleetSummary {
    fn add(&mut self, number: u64, walked: FleetRunResult) {
        let FleetRunResult { story, broken, passes, faults, waited, followed, ends } = walked;
        println!("{number}: {passes} passes, {faults} faults, {waited} waited, {followed} followed, {ends:?}");
        self.passes += passes;
        self.faults += faults;
        self.waited += waited;
        self.followed += followed;
        for end in ends {
            *self.ends.entry(end).or_default() += 1;
        }
        for rule in broken {
            self.broken.note(number, rule, &story);
        }
    }
}

/// Runs these numbers and panics with the trace of the first run that breaks each invariant. `NIGHTSHIFT_FLEET=3`
/// selects one run.
fn walk_all(numbers: Range<u64>) -> FleetSummary {
    let found = Mutex::new(FleetSummary::default());
    on_all_cores(ONE_ALONE, numbers, |number| {
        let addresses = [address(), address(), address(), address()];
        // The number is also printed for a run that panics.
        let walked =
            catch_unwind(|| on_this_thread(walk(number, addresses))).unwrap_or_else(|_| FleetRunResult::panicked());
        found.lock().unwrap_or_else(PoisonError::into_inner).add(number, walked);
    });
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let FleetSummary { passes, faults, waited, followed, ends, broken } = &found;
    println!("{passes} passes, {faults} faults, {waited} waited, {followed} followed; {ends:?}");
    broken.must_be_none();
    found
}

#[test]
fn update_slots_limit_holds_under_faults() {
    let FleetSummary { faults, waited, followed, .. } = walk_all(0..if is_thorough() { 6 } else { 1 });
    // Runs in which no server waits verify nothing.
    let is_all = std::env::var_os(ONE_ALONE).is_none();
    assert!(!is_all || faults > 0, "{faults} faults");
    assert!(
        !is_all || !is_thorough() || (faults > 50 && waited > 1 && followed > 0),
        "{faults} faults, {waited} waited, {followed} followed"
    );
}

#[test]
#[ignore = "an hour, optimised: cargo test -p operator --release --lib -- --ignored walks"]
fn fleet_simulation_of_thousands_of_runs_keeps_invariants() {
    walk_all(0..1_000);
}
