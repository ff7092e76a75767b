//! Pure. What is remembered of the copy that is taken before an update: nobody can be asked while it is under way, and whoever looks then may
//! be another operator than the one that began it.

use scheduler::seen::{Copying, Facts};

use super::Hand;

impl Hand<'_> {
    /// The facts, with how long the copy before the goal takes.
    pub(super) fn facts_of_goal(&self) -> Facts {
        let seconds = self.copy_takes.map(|takes| u32::try_from(takes.as_secs()).unwrap_or(u32::MAX));
        let copying = seconds.map(|seconds| Copying { goal: self.goal.rendered.revision, seconds });
        Facts { copying, ..self.seen.facts.clone() }
    }
}
