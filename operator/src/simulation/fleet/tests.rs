//! Pure. Tests runs of several servers.

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::catch_unwind;
use std::sync::{Mutex, PoisonError};

use super::{FleetRunResult, run_seed};
use crate::simulation::{Violations, is_thorough, next_address, run_on_all_cores, run_on_this_thread};

const SEED_VARIABLE: &str = "NIGHTSHIFT_FLEET";

/// Totals of all runs.
#[derive(Default)]
struct FleetSummary {
    passes: u32,
    faults: u32,
    /// Servers that had to wait for an update slot, and for the server that they follow.
    waited_for_slot: usize,
    waited_for_followed: usize,
    final_states: BTreeMap<String, u32>,
    violations: Violations,
}

impl FleetSummary {
    fn add(&mut self, number: u64, result: FleetRunResult) {
        let FleetRunResult { trace, violations, passes, faults, waited_for_slot, waited_for_followed, final_states } =
            result;
        println!(
            "{number}: {passes} passes, {faults} faults, {waited_for_slot} waited, {waited_for_followed} followed, {final_states:?}"
        );
        self.passes += passes;
        self.faults += faults;
        self.waited_for_slot += waited_for_slot;
        self.waited_for_followed += waited_for_followed;
        for final_state in final_states {
            *self.final_states.entry(final_state).or_default() += 1;
        }
        for rule in violations {
            self.violations.record(number, rule, &trace);
        }
    }
}

/// Runs these numbers and panics with the trace of the first run that breaks each invariant. `NIGHTSHIFT_FLEET=3`
/// selects one run.
fn run_all(numbers: Range<u64>) -> FleetSummary {
    let found = Mutex::new(FleetSummary::default());
    run_on_all_cores(SEED_VARIABLE, numbers, |number| {
        let addresses = [next_address(), next_address(), next_address(), next_address()];
        // The number is also printed for a run that panics.
        let result = catch_unwind(|| run_on_this_thread(run_seed(number, addresses)))
            .unwrap_or_else(|_| FleetRunResult::panicked());
        found.lock().unwrap_or_else(PoisonError::into_inner).add(number, result);
    });
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let FleetSummary { passes, faults, waited_for_slot, waited_for_followed, final_states, violations } = &found;
    println!(
        "{passes} passes, {faults} faults, {waited_for_slot} waited, {waited_for_followed} followed; {final_states:?}"
    );
    violations.assert_none();
    found
}

#[test]
fn update_slots_limit_holds_under_faults() {
    let FleetSummary { faults, waited_for_slot, waited_for_followed, .. } =
        run_all(0..if is_thorough() { 6 } else { 1 });
    // Runs in which no server waits verify nothing.
    let is_all = std::env::var_os(SEED_VARIABLE).is_none();
    assert!(!is_all || faults > 0, "{faults} faults");
    assert!(
        !is_all || !is_thorough() || (faults > 50 && waited_for_slot > 1 && waited_for_followed > 0),
        "{faults} faults, {waited_for_slot} waited, {waited_for_followed} followed"
    );
}

#[test]
#[ignore = "takes an hour: cargo test -p operator --release --lib -- --ignored thousands_of_runs"]
fn fleet_simulation_of_thousands_of_runs_keeps_invariants() {
    run_all(0..1_000);
}
