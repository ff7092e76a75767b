//! Pure. Defines the limits of a search, and the result of a search that reached one.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The search needed more than its budget. It is unknown whether a solution exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[error("the search reached its budget after {steps} steps")]
pub struct BudgetExceeded {
    /// Steps taken (choices and dependency look-ups).
    pub steps: u64,
    /// The limit that was reached.
    pub limit: Limit,
    /// The plugins with the most conflicts, at most three, by display name, most conflicts first. At the time limit
    /// they are sorted by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clashing: Vec<String>,
}

/// The resources that a search may use. See [`Budget`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Limit {
    /// The number of steps for one request.
    Steps,
    /// The memory for one request.
    Memory,
    /// The CPU time for one request.
    Time,
}

/// Limits for solving one request.
///
/// The countable limits apply first: a time limit alone would make the result depend on the machine. The time limit
/// ends searches that no count foresees, and searches that take long on a slow machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Choices and dependency look-ups, over all solver runs for the answer and its explanation.
    pub steps: u64,
    /// Words of 64 bits that version sets take, over the same runs. Steps alone do not limit memory: two conflicting
    /// plugins with 900 releases each produce 400,000 facts in a few thousand steps.
    pub words: u64,
    /// CPU time of the thread, so that other load on the machine does not count.
    pub time: Duration,
}

impl Default for Budget {
    /// 200,000 steps, 8 million words (64 MiB, most of it briefly) and 2 s. A real server takes about 100 steps a
    /// solver run, and the hardest known request reaches one of these limits in a third of that time.
    /// `benches/README.md` names the machine.
    fn default() -> Self {
        Self { steps: 200_000, words: 8_000_000, time: Duration::from_secs(2) }
    }
}

impl Budget {
    /// The budget for servers that are solved together: for each further one 2,000 steps, 16,000 words and 20 ms of the
    /// default. A group of 1,000 on invented projects took 11,030 steps and 5.5 million words at most. So this leaves
    /// room, and a group of ten that is too hard ends as early as a single server.
    pub(crate) fn for_group(self, servers: usize) -> Self {
        let further = u64::try_from(servers.saturating_sub(1)).unwrap_or(u64::MAX);
        let more = |budget: u64, part: u64| budget.saturating_add((budget / part).saturating_mul(further));
        let time = (self.time / 100).saturating_mul(u32::try_from(further).unwrap_or(u32::MAX));
        Self { steps: more(self.steps, 100), words: more(self.words, 500), time: self.time.saturating_add(time) }
    }
}
