//! Pure. What is remembered of the copy that is taken before an update: nobody can be asked while it is under way, and whoever looks then may
//! be another operator than the one that began it.

use scheduler::seen::{Copying, Facts};

use super::Hand;

impl Hand<'_> {
    /// The facts, with how long the copy before the goal takes. Where nobody says so any more, what was said before of the same goal stands.
    pub(super) fn facts_of_goal(&self) -> Facts {
        let goal = self.goal.rendered.revision;
        let seconds = self.copy_takes.map(|takes| u32::try_from(takes.as_secs()).unwrap_or(u32::MAX));
        let known = self.seen.facts.copying.filter(|copying| copying.goal == goal);
        Facts { copying: seconds.map(|seconds| Copying { goal, seconds }).or(known), ..self.seen.facts.clone() }
    }
}
