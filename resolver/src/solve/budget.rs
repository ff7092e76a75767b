//! Edge (reads). Measures the cost of all solver runs for one request, and records the plugins that caused it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

use pubgrub::PackageResolutionStatistics;

use super::thread_cpu_time::thread_cpu_time;
use crate::index::index_set::allocated_words;
use crate::model::budget::{Budget, BudgetExceeded, Limit};

/// More than this many plugins are rarely the cause of a long search, and users would not check them.
const MAX_CLASHING: usize = 3;

/// Steps between two reads of the clock. A step of a memory-heavy search takes a tenth of a millisecond, and any other
/// step far less. A read takes less than a microsecond.
const STEPS_PER_CLOCK_READ: u64 = 64;

/// Counts the cost of all solver runs for one request.
#[derive(Debug)]
pub(crate) struct BudgetMeter {
    steps_left: Cell<u64>,
    /// The value of [`allocated_words`] at the start.
    words_at_start: u64,
    /// The value of [`thread_cpu_time`] at the start.
    time_at_start: Duration,
    /// Whether the time limit was reached.
    out_of_time: Cell<bool>,
    budget: Budget,
    /// Conflicts per plugin, by display name, over all completed searches.
    conflicts: RefCell<BTreeMap<String, u64>>,
}

impl BudgetMeter {
    pub(crate) fn new(budget: Budget) -> Self {
        Self {
            steps_left: Cell::new(budget.steps),
            words_at_start: allocated_words(),
            time_at_start: thread_cpu_time(),
            out_of_time: Cell::new(false),
            budget,
            conflicts: RefCell::default(),
        }
    }

    /// A meter with the full budget, for a search that does not pay for earlier ones.
    pub(crate) fn renewed(&self) -> Self {
        Self::new(self.budget)
    }

    /// Whether the budget is used up.
    pub(crate) fn is_spent(&self) -> bool {
        self.check_time();
        self.is_exceeded()
    }

    fn is_exceeded(&self) -> bool {
        self.steps_left.get() == 0 || self.is_out_of_memory() || self.out_of_time.get()
    }

    fn check_time(&self) {
        self.out_of_time.set(thread_cpu_time().saturating_sub(self.time_at_start) >= self.budget.time);
    }

    fn is_out_of_memory(&self) -> bool {
        allocated_words().wrapping_sub(self.words_at_start) > self.budget.words
    }

    /// Counts one step.
    pub(crate) fn step(&self) -> Result<(), BudgetExceeded> {
        if self.steps().is_multiple_of(STEPS_PER_CLOCK_READ) {
            self.check_time();
        }
        if self.is_exceeded() {
            return Err(self.exceeded());
        }
        self.steps_left.set(self.steps_left.get() - 1);
        Ok(())
    }

    /// Steps taken so far.
    fn steps(&self) -> u64 {
        self.budget.steps - self.steps_left.get()
    }

    /// Adds the conflicts of one search.
    pub(super) fn record_conflicts<'n>(&self, conflicts: &Clashes, name: impl Fn(usize) -> &'n str) {
        let mut totals = self.conflicts.borrow_mut();
        let conflicting = conflicts.0.iter().enumerate().filter(|(_, count)| count.get() > 0);
        for (plugin, count) in conflicting {
            match totals.get_mut(name(plugin)) {
                Some(total) => *total += u64::from(count.get()),
                None => {
                    totals.insert(name(plugin).to_owned(), u64::from(count.get()));
                }
            }
        }
    }

    /// The error for a search that ends here.
    pub(crate) fn exceeded(&self) -> BudgetExceeded {
        let conflicts = self.conflicts.borrow();
        let mut most: Vec<(&String, &u64)> = conflicts.iter().collect();
        // The map is sorted by name, and the stable sort keeps that order for equal counts.
        most.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let limit = if self.is_out_of_memory() {
            Limit::Memory
        } else if self.out_of_time.get() {
            Limit::Time
        } else {
            Limit::Steps
        };
        let mut clashing: Vec<String> = most.into_iter().take(MAX_CLASHING).map(|(name, _)| name.clone()).collect();
        if limit == Limit::Time {
            // The ranking at the time limit differs between runs, and the report must not.
            clashing.sort();
        }
        BudgetExceeded { steps: self.steps(), limit, clashing }
    }
}

/// The number of conflicts of each plugin in one search.
pub(crate) struct Clashes(Vec<Cell<u32>>);

impl Clashes {
    pub(super) fn new(plugins: usize) -> Self {
        Self(vec![Cell::new(0); plugins])
    }

    /// Stores the conflict count of pubgrub. pubgrub reports it when it asks for a rank, which is after each conflict
    /// of the plugin.
    pub(super) fn record(&self, plugin: usize, statistics: &PackageResolutionStatistics) {
        self.0[plugin].set(statistics.conflict_count());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clashing_plugins_are_ordered_by_count_then_name() {
        let meter = BudgetMeter::new(Budget::default());
        let names = ["warps", "shop", "claims", "motd", "chat"];
        let search = |counts: [u32; 5]| {
            meter.record_conflicts(&Clashes(counts.map(Cell::new).to_vec()), |plugin| names[plugin]);
            meter.exceeded().clashing
        };
        assert_eq!(search([0; 5]), [""; 0]);
        assert_eq!(search([2, 2, 0, 0, 1]), ["shop", "warps", "chat"]);
        assert_eq!(search([0, 0, 4, 0, 1]), ["claims", "chat", "shop"]);
    }
}
