//! Pure. Solves one request: from the catalog and the request to the single best version set.

use std::time::Duration;

use jiff::Timestamp;
use pubgrub::VersionSet;
use serde::{Deserialize, Serialize};

use crate::catalog::{Catalog, ProjectKey};
use crate::explain::{self, Conflict, Explanation, PaperName, Unanswerable, WhyNot};
use crate::index::paper_candidates::requested_indexes;
use crate::index::{CandidateIndex, Gap};
use crate::lock::Lock;
use crate::request::{PaperRequest, Request};
use crate::unverified_build::reject_unverified;
use crate::version::Minecraft;

pub(crate) mod budget;
pub(crate) mod build_lock;
mod fast_path;
pub(crate) mod group;
pub(crate) mod index_set;
pub(crate) mod provider;
mod thread_cpu_time;

use budget::BudgetMeter;
use group::group_context::GroupContext;
use index_set::IndexSet;
use provider::{Chosen, SolverProblem, find_solution, prove_unsolvable};

/// The chosen version set and the explanation of the choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolution {
    /// The versions that should run.
    pub lock: Lock,
    /// Why these versions were chosen and no newer ones. Always [`Explanation::Solved`].
    pub explanation: Explanation,
}

/// The reason why there is no version set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unsolvable {
    /// No version set satisfies the request today. This is definite.
    #[error("the request for `{}` cannot be met today", .0.server)]
    NoSolution(Box<Conflict>),
    /// The available metadata cannot answer: fetch these projects, or wait until they can be read.
    #[error("the metadata at hand cannot answer the request for `{}`", .0.server)]
    Unanswerable(Box<Unanswerable>),
    /// The search stopped at its budget.
    #[error("{0}")]
    GaveUp(BudgetExceeded),
}

impl Unsolvable {
    /// The explanation to render.
    pub fn explanation(&self) -> Explanation {
        match self {
            Self::NoSolution(impossible) => Explanation::Impossible((**impossible).clone()),
            Self::Unanswerable(unanswerable) => Explanation::Unanswerable((**unanswerable).clone()),
            Self::GaveUp(gave_up) => Explanation::GaveUp(gave_up.clone()),
        }
    }

    /// The projects to fetch before the next attempt, if those are missing.
    pub fn projects_to_fetch(&self) -> &[ProjectKey] {
        match self {
            Self::Unanswerable(unanswerable) => &unanswerable.fetch,
            Self::NoSolution(_) | Self::GaveUp(_) => &[],
        }
    }

    /// The builds that have to be downloaded for verification before the next attempt, if those are missing.
    pub fn builds_to_verify(&self) -> &[PaperName] {
        match self {
            Self::Unanswerable(unanswerable) => &unanswerable.unseen,
            Self::NoSolution(_) | Self::GaveUp(_) => &[],
        }
    }
}

/// The search needed more than its budget. It is unknown whether a solution exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[error("{}", explain::short_form::gave_up(self))]
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
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
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

/// Returns the single best version set for a server at an instant, and the explanation of the choice.
///
/// The order is lexicographic. The newest Paper version comes first, then the newest release of each requested plugin
/// in the order of the object names. Then follow the plugins that those need, dependents first. A plugin that no other
/// plugin needs is left out. The result is unique and does not depend on any order in the input. Releases published
/// after `now` are ignored.
///
/// Strategy `latest` of the server takes the newest usable Paper version. A plugin without a release for it keeps its
/// running release, or is not installed if none runs. Both cases are reported as unfollowed.
pub fn resolve(catalog: &Catalog, request: &Request, now: Timestamp) -> Result<Resolution, Unsolvable> {
    resolve_within(catalog, request, now, Budget::default())
}

/// Like [`resolve`], with a custom budget. Hints are left out if they would exceed it.
pub fn resolve_within(
    catalog: &Catalog,
    request: &Request,
    now: Timestamp,
    budget: Budget,
) -> Result<Resolution, Unsolvable> {
    resolve_in_group(catalog, request, now, budget, None)
}

/// Like [`resolve_within`], for a member of a group that has no solution alone. A hint is tried with the whole group,
/// because the server joins it again after the hint is applied.
pub(crate) fn resolve_in_group(
    catalog: &Catalog,
    request: &Request,
    now: Timestamp,
    budget: Budget,
    group: Option<&GroupContext<'_, '_>>,
) -> Result<Resolution, Unsolvable> {
    let candidates = CandidateIndex::build(catalog, request, now).map_err(|gap| unanswerable(catalog, request, gap))?;
    let meter = BudgetMeter::new(budget);
    let context = explain::ExplainContext { catalog, candidates: &candidates, meter: &meter, group: None };
    if let Some(decision) = decide(&candidates, &meter).map_err(Unsolvable::GaveUp)? {
        reject_unverified(catalog, &candidates, &decision)?;
        return Ok(Resolution {
            lock: build_lock::build_lock(catalog, &candidates, &decision),
            explanation: Explanation::Solved(explain::solved::explain(&context, &decision)),
        });
    }
    // Also with strategy `latest`: the proof of the whole request explains more than that of Paper alone.
    let problem = SolverProblem::new(&candidates, allowed_papers(&candidates));
    let proof = prove_unsolvable(&candidates, &problem, &meter).map_err(Unsolvable::GaveUp)?;
    let context = explain::ExplainContext { group, ..context };
    Err(Unsolvable::NoSolution(Box::new(explain::unsolvable::explain(&context, &problem, &proof))))
}

/// A request whose tables are built, so that benchmarks can measure the solver without them.
#[doc(hidden)]
pub struct PreparedTables<'a>(CandidateIndex<'a>);

impl<'a> PreparedTables<'a> {
    /// Reads the same data as [`resolve`].
    pub fn new(catalog: &'a Catalog, request: &'a Request, now: Timestamp) -> Result<Self, Unsolvable> {
        CandidateIndex::build(catalog, request, now).map(Self).map_err(|gap| unanswerable(catalog, request, gap))
    }

    /// The Paper version that [`resolve`] would choose. Without one, the proof that there is none is still computed,
    /// but not explained.
    pub fn paper(&self) -> Result<Option<&'a Minecraft>, BudgetExceeded> {
        let Self(candidates) = self;
        let meter = BudgetMeter::new(Budget::default());
        if let Some(decision) = decide(candidates, &meter)? {
            return Ok(Some(&candidates.papers[decision.chosen.paper].version.minecraft));
        }
        prove_unsolvable(candidates, &SolverProblem::new(candidates, allowed_papers(candidates)), &meter)?;
        Ok(None)
    }
}

/// Explains why the server does not run `target`: which plugins support it and which do not.
pub fn why_not(catalog: &Catalog, request: &Request, target: &Minecraft, now: Timestamp) -> Result<WhyNot, Unsolvable> {
    why_not_within(catalog, request, target, now, Budget::default())
}

/// Like [`why_not`], with a custom budget. Hints are left out if they would exceed it.
pub fn why_not_within(
    catalog: &Catalog,
    request: &Request,
    target: &Minecraft,
    now: Timestamp,
    budget: Budget,
) -> Result<WhyNot, Unsolvable> {
    let candidates = CandidateIndex::build(catalog, request, now).map_err(|gap| unanswerable(catalog, request, gap))?;
    let meter = BudgetMeter::new(budget);
    let context = explain::ExplainContext { catalog, candidates: &candidates, meter: &meter, group: None };
    explain::why_not_version::explain(&context, target).map_err(Unsolvable::GaveUp)
}

/// The result for a request without its explanation, for verifying hints.
pub(crate) struct SolveOutcome {
    pub(crate) paper: explain::PaperName,
    /// Names of the plugins that strategy `latest` leaves behind.
    pub(crate) unfollowed: Vec<String>,
    /// Names and versions of the chosen plugins.
    pub(crate) plugins: Vec<(String, String)>,
}

/// The result for a request. `None` if there is no solution. The index is only built if the budget has steps left.
pub(crate) fn outcome<'w>(
    candidates: impl FnOnce() -> Result<CandidateIndex<'w>, Gap>,
    meter: &BudgetMeter,
) -> Result<Option<SolveOutcome>, BudgetExceeded> {
    if meter.is_spent() {
        return Err(meter.exceeded());
    }
    let Ok(candidates) = candidates() else { return Ok(None) };
    let Some(decision) = decide(&candidates, meter)? else { return Ok(None) };
    let unfollowed =
        decision.unfollowed.iter().map(|&(plugin, _)| candidates.plugins[plugin].name().to_owned()).collect();
    let to_outcome = |paper| SolveOutcome { paper, plugins: decision.plugins(&candidates), unfollowed };
    Ok(candidates.paper_name(decision.chosen.paper).map(to_outcome))
}

fn unanswerable(catalog: &Catalog, request: &Request, gap: Gap) -> Unsolvable {
    Unsolvable::Unanswerable(Box::new(Unanswerable::from_gap(catalog, request, gap)))
}

/// The solution of a request.
pub(crate) struct Decision {
    pub(crate) chosen: Chosen,
    /// The problem that it solves. With `latest`, the remaining part of the whole problem.
    pub(crate) problem: SolverProblem,
    /// Plugins that strategy `latest` left behind, with the position of the release that stays.
    pub(crate) unfollowed: Vec<(usize, Option<usize>)>,
}

impl Decision {
    /// Names and versions of the chosen plugins.
    pub(crate) fn plugins(&self, candidates: &CandidateIndex<'_>) -> Vec<(String, String)> {
        let chosen = candidates.plugins.iter().zip(&self.chosen.releases);
        let named = chosen.filter_map(|(plugin, release)| {
            let release = plugin.releases[(*release)?].release;
            Some((plugin.name().to_owned(), release.version.clone()))
        });
        named.collect()
    }
}

/// Solves the request with its strategy. `None` if there is no solution.
pub(crate) fn decide(candidates: &CandidateIndex<'_>, meter: &BudgetMeter) -> Result<Option<Decision>, BudgetExceeded> {
    let problem = SolverProblem::new(candidates, allowed_papers(candidates));
    let is_latest = matches!(candidates.request.paper, PaperRequest::Latest);
    match find_solution(candidates, &problem, meter)? {
        Some(chosen) => Ok(Some(Decision { chosen, problem, unfollowed: Vec::new() })),
        None if is_latest => solve_latest(candidates, &problem, meter),
        None => Ok(None),
    }
}

/// The Paper versions that the strategy allows.
pub(crate) fn allowed_papers(candidates: &CandidateIndex<'_>) -> IndexSet {
    requested_indexes(&candidates.papers, &candidates.request.paper)
}

/// Strategy `latest`: updates as many plugins as possible, in the order of their names. Other running plugins stay
/// (with their dependencies), and the rest is left out.
fn solve_latest(
    candidates: &CandidateIndex<'_>,
    whole: &SolverProblem,
    meter: &BudgetMeter,
) -> Result<Option<Decision>, BudgetExceeded> {
    let mut problem = whole.clone();
    let mandatory = whole.mandatory_plugins();
    for &plugin in &mandatory {
        // Not installed at first, but never a release other than the pinned one.
        problem.root[plugin] = whole.root[plugin].union(&IndexSet::absent());
    }
    problem.retain_running_dependencies(candidates);
    // `None` means that Paper alone has no solution either.
    let Some(mut chosen) = find_solution(candidates, &problem, meter)? else { return Ok(None) };
    let mut unfollowed = Vec::new();
    for &plugin in &mandatory {
        let mut with = problem.clone();
        with.root[plugin] = whole.root[plugin].clone();
        if let Some(better) = find_solution(candidates, &with, meter)? {
            (problem, chosen) = (with, better);
            continue;
        }
        let runs = candidates.plugins[plugin]
            .running_release(candidates)
            .filter(|&runs| problem.can_stay(candidates, plugin, runs));
        let retained = match runs {
            None => None,
            Some(runs) => {
                with.retained[plugin] = IndexSet::from_indexes([runs + 1]);
                with.root[plugin] = IndexSet::from_indexes([runs + 1]);
                find_solution(candidates, &with, meter)?.map(|better| {
                    (problem, chosen) = (with, better);
                    runs
                })
            }
        };
        unfollowed.push((plugin, retained));
    }
    Ok(Some(Decision { chosen, problem, unfollowed }))
}

#[cfg(test)]
mod tests;
