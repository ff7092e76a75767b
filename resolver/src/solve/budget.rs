//! Edge (reads). What the solves of one question cost together, and who made them expensive.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

use pubgrub::PackageResolutionStatistics;

use super::index_set::words_taken;
use super::thread_cpu_time::computed;
use super::{Budget, BudgetExceeded, Limit};

/// Further plugins are rarely why a search is long, and nobody would look at them.
const MOST_CLASHING: usize = 3;

/// How many steps there are from one look at the clock to the next. A step of a search that takes much memory takes a tenth of a
/// millisecond, any other one far less; a look takes less than a microsecond.
const STEPS_A_LOOK: u64 = 64;

/// Counts what all solves of one question cost together.
#[derive(Debug)]
pub(crate) struct BudgetMeter {
    left: Cell<u64>,
    /// What [`words_taken`] gave at the start.
    words: u64,
    /// What [`computed`] gave at the start.
    began: Duration,
    /// Whether the time was found to be over.
    late: Cell<bool>,
    budget: Budget,
    /// How often plugins stood in a conflict, by the name people know, over all searches that have ended.
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

    /// One for a search that does not pay for those before it.
    pub(crate) fn renewed(&self) -> Self {
        Self::new(self.budget)
    }

    /// Whether nothing can be solved any more.
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

    /// One more step.
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

    /// Keeps what a search has seen of conflicts.
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

    /// That the search ends here, as far as is known.
    pub(crate) fn gave_up(&self) -> BudgetExceeded {
        let clashes = self.clashes.borrow();
        let mut most: Vec<(&String, &u64)> = clashes.iter().collect();
        // The map is in the order of the names, and this keeps it for equal counts.
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
            // Who was worst when it ended changes from one time to the next, and what is said of it is not to.
            clashing.sort();
        }
        BudgetExceeded { steps: self.steps(), limit, clashing }
    }
}

/// How often each plugin of one search stood in a conflict.
pub(super) struct Clashes(Vec<Cell<u32>>);

impl Clashes {
    pub(super) fn none(plugins: usize) -> Self {
        Self(vec![Cell::new(0); plugins])
    }

    /// What pubgrub has counted so far. It tells when it asks for a rank, which is after each conflict of the plugin.
    pub(super) fn saw(&self, plugin: usize, statistics: &PackageResolutionStatistics) {
        self.0[plugin].set(statistics.conflict_count());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_clashed_most_is_first_then_the_name_decides_over_all_searches() {
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
