//! Edge (reads). Measures the cost of all solver runs for one request, and records the plugins that caused it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

use pubgrub::PackageResolutionStatistics;

use super::index_set::words_taken;
use super::thread_cpu_time::computed;
use super::{Budget, BudgetExceeded, Limit};

/// More than this many plugins are rarely the cause of a long search, and users would not check them.
const MOST_CLASHING: usize = 3;

/// Steps between two reads of the clock. A step of a memory-heavy search takes a tenth of a millisecond, and any other
/// step far less. A read takes less than a microsecond.
const STEPS_A_LOOK: u64 = 64;

/// Counts the cost of all solver runs for one request.
#[derive(Debug)]
pub(crate) struct BudgetMeter {
    left: Cell<u64>,
    /// The value of [`words_taken`] at the start.
    words: u64,
    /// The value of [`computed`] at the start.
    began: Duration,
    /// Whether the time limit was reached.
    late: Cell<bool>,
    budget: Budget,
    /// Conflicts per plugin, by display name, over all completed searches.
    clashes: RefCell<BTreeMap<String, u64>>,
}

impl BudgetMeter {
    pub(crate) fn new(budget: Budget) -> Self {
        Self {
            left: Cell::new(budget.steps),
            words: words_taken(),
            began: computed(),
            late: Cell::new(false),
            budget,
            clashes: RefCell::default(),
        }
    }

    /// A meter with the full budget, for a search that does not pay for earlier ones.
    pub(crate) fn renewed(&self) -> Self {
        Self::new(self.budget)
    }

    /// Whether the budget is used up.
    pub(crate) fn is_spent(&self) -> bool {
        self.look_at_the_clock();
        self.is_over()
    }

    fn is_over(&self) -> bool {
        self.left.get() == 0 || self.takes_too_much() || self.late.get()
    }

    fn look_at_the_clock(&self) {
        self.late.set(computed().saturating_sub(self.began) >= self.budget.time);
    }

    fn takes_too_much(&self) -> bool {
        words_taken().wrapping_sub(self.words) > self.budget.words
    }

    /// Counts one step.
    pub(crate) fn step(&self) -> Result<(), BudgetExceeded> {
        if self.steps().is_multiple_of(STEPS_A_LOOK) {
            self.look_at_the_clock();
        }
        if self.is_over() {
            return Err(self.gave_up());
        }
        self.left.set(self.left.get() - 1);
        Ok(())
    }

    /// Steps taken so far.
    fn steps(&self) -> u64 {
        self.budget.steps - self.left.get()
    }

    /// Adds the conflicts of one search.
    pub(super) fn keep<'n>(&self, clashes: &Clashes, name: impl Fn(usize) -> &'n str) {
        let mut known = self.clashes.borrow_mut();
        let seen = clashes.0.iter().enumerate().filter(|(_, count)| count.get() > 0);
        for (plugin, count) in seen {
            match known.get_mut(name(plugin)) {
                Some(known) => *known += u64::from(count.get()),
                None => {
                    known.insert(name(plugin).to_owned(), u64::from(count.get()));
                }
            }
        }
    }

    /// The error for a search that ends here.
    pub(crate) fn gave_up(&self) -> BudgetExceeded {
        let clashes = self.clashes.borrow();
        let mut most: Vec<(&String, &u64)> = clashes.iter().collect();
        // The map is sorted by name, and the stable sort keeps that order for equal counts.
        most.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let limit = if self.takes_too_much() {
            Limit::Memory
        } else if self.late.get() {
            Limit::Time
        } else {
            Limit::Steps
        };
        let mut clashing: Vec<String> = most.into_iter().take(MOST_CLASHING).map(|(name, _)| name.clone()).collect();
        if limit == Limit::Time {
            // The ranking at the time limit differs between runs, and the report must not.
            clashing.sort();
        }
        BudgetExceeded { steps: self.steps(), limit, clashing }
    }
}

/// The number of conflicts of each plugin in one search.
pub(super) struct Clashes(Vec<Cell<u32>>);

impl Clashes {
    pub(super) fn none(plugins: usize) -> Self {
        Self(vec![Cell::new(0); plugins])
    }

    /// Stores the conflict count of pubgrub. pubgrub reports it when it asks for a rank, which is after each conflict
    /// of the plugin.
    pub(super) fn saw(&self, plugin: usize, statistics: &PackageResolutionStatistics) {
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
            meter.keep(&Clashes(counts.map(Cell::new).to_vec()), |plugin| names[plugin]);
            meter.gave_up().clashing
        };
        assert_eq!(search([0; 5]), [""; 0]);
        assert_eq!(search([2, 2, 0, 0, 1]), ["shop", "warps", "chat"]);
        assert_eq!(search([0, 0, 4, 0, 1]), ["claims", "chat", "shop"]);
    }
}
