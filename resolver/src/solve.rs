//! Pure. Solves one request: from the catalog and the request to the single best version set.

use std::time::Duration;

use jiff::Timestamp;
use pubgrub::VersionSet;
use serde::{Deserialize, Serialize};

use crate::catalog::{Catalog, ProjectKey};
use crate::explain::{self, Conflict, Explanation, PaperName, Unanswerable, WhyNot};
use crate::index::paper_candidates::wished;
use crate::index::{CandidateIndex, Gap};
use crate::lock::Lock;
use crate::request::{PaperRequest, Request};
use crate::unverified_build::refuse_unseen;
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
use provider::{Chosen, SolverProblem, find, prove};

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
    pub fn builds_to_see(&self) -> &[PaperName] {
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
    pub(crate) fn of_a_group(self, servers: usize) -> Self {
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
    resolve_beside(catalog, request, now, budget, None)
}

/// Like [`resolve_within`], for a member of a group that has no solution alone. A hint is tried with the whole group,
/// because the server joins it again after the hint is applied.
pub(crate) fn resolve_beside(
    catalog: &Catalog,
    request: &Request,
    now: Timestamp,
    budget: Budget,
    company: Option<&GroupContext<'_, '_>>,
) -> Result<Resolution, Unsolvable> {
    let world = CandidateIndex::build(catalog, request, now).map_err(|gap| unanswerable(catalog, request, gap))?;
    let meter = BudgetMeter::new(budget);
    let asked = explain::ExplainContext { catalog, world: &world, meter: &meter, company: None };
    if let Some(decision) = decide(&world, &meter).map_err(Unsolvable::GaveUp)? {
        refuse_unseen(catalog, &world, &decision)?;
        return Ok(Resolution {
            lock: build_lock::lock(catalog, &world, &decision),
            explanation: Explanation::Solved(explain::solved::explain(&asked, &decision)),
        });
    }
    // Also with strategy `latest`: the proof of the whole request explains more than that of Paper alone.
    let question = SolverProblem::whole(&world, papers(&world));
    let proof = prove(&world, &question, &meter).map_err(Unsolvable::GaveUp)?;
    let asked = explain::ExplainContext { company, ..asked };
    Err(Unsolvable::NoSolution(Box::new(explain::unsolvable::explain(&asked, &question, &proof))))
}

/// A request whose tables are built, so that benchmarks can measure the solver without them.
#[doc(hidden)]
pub struct PreparedTables<'a>(CandidateIndex<'a>);

impl<'a> PreparedTables<'a> {
    /// Reads the same data as [`resolve`].
    pub fn of(catalog: &'a Catalog, request: &'a Request, now: Timestamp) -> Result<Self, Unsolvable> {
        CandidateIndex::build(catalog, request, now).map(Self).map_err(|gap| unanswerable(catalog, request, gap))
    }

    /// The Paper version that [`resolve`] would choose. Without one, the proof that there is none is still computed,
    /// but not explained.
    pub fn paper(&self) -> Result<Option<&'a Minecraft>, BudgetExceeded> {
        let Self(world) = self;
        let meter = BudgetMeter::new(Budget::default());
        if let Some(decision) = decide(world, &meter)? {
            return Ok(Some(&world.papers[decision.chosen.paper].version.minecraft));
        }
        prove(world, &SolverProblem::whole(world, papers(world)), &meter)?;
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
    let world = CandidateIndex::build(catalog, request, now).map_err(|gap| unanswerable(catalog, request, gap))?;
    let meter = BudgetMeter::new(budget);
    let asked = explain::ExplainContext { catalog, world: &world, meter: &meter, company: None };
    explain::why_not_version::explain(&asked, target).map_err(Unsolvable::GaveUp)
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
    world: impl FnOnce() -> Result<CandidateIndex<'w>, Gap>,
    meter: &BudgetMeter,
) -> Result<Option<SolveOutcome>, BudgetExceeded> {
    if meter.is_spent() {
        return Err(meter.gave_up());
    }
    let Ok(world) = world() else { return Ok(None) };
    let Some(decision) = decide(&world, meter)? else { return Ok(None) };
    let unfollowed = decision.unfollowed.iter().map(|&(shelf, _)| world.shelves[shelf].name().to_owned()).collect();
    let answer = |paper| SolveOutcome { paper, plugins: decision.plugins(&world), unfollowed };
    Ok(world.paper_name(decision.chosen.paper).map(answer))
}

fn unanswerable(catalog: &Catalog, request: &Request, gap: Gap) -> Unsolvable {
    Unsolvable::Unanswerable(Box::new(Unanswerable::lacking(catalog, request, gap)))
}

/// The solution of a request.
pub(crate) struct Decision {
    pub(crate) chosen: Chosen,
    /// The problem that it solves. With `latest`, the remaining part of the whole problem.
    pub(crate) question: SolverProblem,
    /// Plugins that strategy `latest` left behind, with the position of the release that stays.
    pub(crate) unfollowed: Vec<(usize, Option<usize>)>,
}

impl Decision {
    /// Names and versions of the chosen plugins.
    pub(crate) fn plugins(&self, world: &CandidateIndex<'_>) -> Vec<(String, String)> {
        let chosen = world.shelves.iter().zip(&self.chosen.releases);
        let named = chosen.filter_map(|(shelf, release)| {
            let release = shelf.releases[(*release)?].release;
            Some((shelf.name().to_owned(), release.version.clone()))
        });
        named.collect()
    }
}

/// Solves the request with its strategy. `None` if there is no solution.
pub(crate) fn decide(world: &CandidateIndex<'_>, meter: &BudgetMeter) -> Result<Option<Decision>, BudgetExceeded> {
    let question = SolverProblem::whole(world, papers(world));
    let follows = matches!(world.request.paper, PaperRequest::Latest);
    match find(world, &question, meter)? {
        Some(chosen) => Ok(Some(Decision { chosen, question, unfollowed: Vec::new() })),
        None if follows => follow(world, &question, meter),
        None => Ok(None),
    }
}

/// The Paper versions that the strategy allows.
pub(crate) fn papers(world: &CandidateIndex<'_>) -> IndexSet {
    wished(&world.papers, &world.request.paper)
}

/// Strategy `latest`: updates as many plugins as possible, in the order of their names. Other running plugins stay
/// (with their dependencies), and the rest is left out.
fn follow(
    world: &CandidateIndex<'_>,
    whole: &SolverProblem,
    meter: &BudgetMeter,
) -> Result<Option<Decision>, BudgetExceeded> {
    let mut question = whole.clone();
    let asked = whole.insisted();
    for &shelf in &asked {
        // Not installed at first, but never a release other than the pinned one.
        question.root[shelf] = whole.root[shelf].union(&IndexSet::absent());
    }
    question.keep_running_needs(world);
    // `None` means that Paper alone has no solution either.
    let Some(mut chosen) = find(world, &question, meter)? else { return Ok(None) };
    let mut unfollowed = Vec::new();
    for &shelf in &asked {
        let mut with = question.clone();
        with.root[shelf] = whole.root[shelf].clone();
        if let Some(better) = find(world, &with, meter)? {
            (question, chosen) = (with, better);
            continue;
        }
        let runs = world.shelves[shelf].runs(world).filter(|&runs| question.may_stay(world, shelf, runs));
        let stays = match runs {
            None => None,
            Some(runs) => {
                with.stays[shelf] = IndexSet::of([runs + 1]);
                with.root[shelf] = IndexSet::of([runs + 1]);
                find(world, &with, meter)?.map(|better| {
                    (question, chosen) = (with, better);
                    runs
                })
            }
        };
        unfollowed.push((shelf, stays));
    }
    Ok(Some(Decision { chosen, question, unfollowed }))
}

#[cfg(test)]
mod tests;
