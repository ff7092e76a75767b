//! Pure. The solve: from catalog and request to the one best set.

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

/// The chosen set, and why it is that one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolution {
    /// What should run.
    pub lock: Lock,
    /// Why this, and why nothing newer. Always [`Explanation::Solved`].
    pub explanation: Explanation,
}

/// Why there is no set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unsolvable {
    /// Nothing meets the request today: a definite no.
    #[error("the request for `{}` cannot be met today", .0.server)]
    NoSolution(Box<Conflict>),
    /// The metadata at hand cannot answer: fetch these projects, or wait until they can be read.
    #[error("the metadata at hand cannot answer the request for `{}`", .0.server)]
    Unanswerable(Box<Unanswerable>),
    /// The search was given up within its budget.
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

    /// The projects to fetch before asking again, if that is what is missing.
    pub fn projects_to_fetch(&self) -> &[ProjectKey] {
        match self {
            Self::Unanswerable(unanswerable) => &unanswerable.fetch,
            Self::NoSolution(_) | Self::GaveUp(_) => &[],
        }
    }

    /// The builds whose bytes somebody has to see before asking again, if that is what is missing.
    pub fn builds_to_see(&self) -> &[PaperName] {
        match self {
            Self::Unanswerable(unanswerable) => &unanswerable.unseen,
            Self::NoSolution(_) | Self::GaveUp(_) => &[],
        }
    }
}

/// The search took more than its budget allows. Says nothing about whether an answer exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[error("{}", explain::short_form::gave_up(self))]
pub struct BudgetExceeded {
    /// Steps taken (choices and dependency look-ups).
    pub steps: u64,
    /// What was used up.
    pub limit: Limit,
    /// The plugins that were in each other's way most often, at most three, by the names people know, worst first; in the
    /// order of the names where time was used up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clashing: Vec<String>,
}

/// What a search may use up. See [`Budget`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Limit {
    /// The steps that a question may take.
    Steps,
    /// The memory that a question may take.
    Memory,
    /// The time that a question may take to compute.
    Time,
}

/// How much a question may cost.
///
/// What can be counted ends it first: time alone would make the answer depend on the machine. Time ends what no count
/// foresees, and what a slow machine would be at for long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Choices and dependency look-ups, over all solves that the answer and its explanation take.
    pub steps: u64,
    /// Words of 64 bits that sets of versions take, over the same. Steps alone bound no memory: two plugins with 900
    /// releases each that chase each other make 400,000 facts in a few thousand steps.
    pub words: u64,
    /// What the thread may compute for it: time of the processor, so that what else the machine does counts nothing.
    pub time: Duration,
}

impl Default for Budget {
    /// 200,000 steps, 8 million words (64 MiB, most of it for a moment) and 2 s: a real server takes about 100 steps a
    /// solve, and the hardest question known uses up one of those in a third of that time. What it was measured on stands in
    /// `benches/README.md`.
    fn default() -> Self {
        Self { steps: 200_000, words: 8_000_000, time: Duration::from_secs(2) }
    }
}

impl Budget {
    /// What may be taken for servers that are decided about together: for each further one 2,000 steps, 16,000 words and
    /// 20 ms of the default. A group of 1,000 on invented projects took 11,030 steps and 5.5 million words at most, so this
    /// leaves room, and a group of ten that is too hard ends as soon as one server would.
    pub(crate) fn of_a_group(self, servers: usize) -> Self {
        let further = u64::try_from(servers.saturating_sub(1)).unwrap_or(u64::MAX);
        let more = |budget: u64, part: u64| budget.saturating_add((budget / part).saturating_mul(further));
        let time = (self.time / 100).saturating_mul(u32::try_from(further).unwrap_or(u32::MAX));
        Self { steps: more(self.steps, 100), words: more(self.words, 500), time: self.time.saturating_add(time) }
    }
}

/// The one best set for a server at an instant, and why it is that one.
///
/// Best is lexicographic: first the newest Paper, then the newest release of each plugin asked for, in the order of the
/// objects' names; then of each plugin that those need, dependents first, which is left out when nothing needs it. The
/// answer is unique and depends on no order in the input. Releases published after `now` do not exist.
///
/// Strategy `latest` of the server takes the newest Paper that may be used at all. A plugin that has nothing for it keeps
/// the release that runs now, if there is one, and is not installed otherwise; both are reported as unfollowed.
pub fn resolve(catalog: &Catalog, request: &Request, now: Timestamp) -> Result<Resolution, Unsolvable> {
    resolve_within(catalog, request, now, Budget::default())
}

/// As [`resolve`], with a budget of one's own. The hints are left out when they would exceed it.
pub fn resolve_within(
    catalog: &Catalog,
    request: &Request,
    now: Timestamp,
    budget: Budget,
) -> Result<Resolution, Unsolvable> {
    resolve_beside(catalog, request, now, budget, None)
}

/// As [`resolve_within`], of a server that has no part in what its group does as long as there is nothing for it: what is
/// hinted at is tried with the others, who are there again when it has been followed.
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
    // Also with strategy `latest`: the proof of the whole request says it better than that of Paper alone.
    let question = SolverProblem::whole(&world, papers(&world));
    let proof = prove(&world, &question, &meter).map_err(Unsolvable::GaveUp)?;
    let asked = explain::ExplainContext { company, ..asked };
    Err(Unsolvable::NoSolution(Box::new(explain::unsolvable::explain(&asked, &question, &proof))))
}

/// A question whose catalog has been read into tables, so that the solve can be measured without them.
#[doc(hidden)]
pub struct PreparedTables<'a>(CandidateIndex<'a>);

impl<'a> PreparedTables<'a> {
    /// Reads what [`resolve`] would read.
    pub fn of(catalog: &'a Catalog, request: &'a Request, now: Timestamp) -> Result<Self, Unsolvable> {
        CandidateIndex::build(catalog, request, now).map(Self).map_err(|gap| unanswerable(catalog, request, gap))
    }

    /// The Paper that [`resolve`] would choose, else the proof that there is none; nothing is explained.
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

/// Why the server does not run `target`: which plugins are ready for it and which are not.
pub fn why_not(catalog: &Catalog, request: &Request, target: &Minecraft, now: Timestamp) -> Result<WhyNot, Unsolvable> {
    why_not_within(catalog, request, target, now, Budget::default())
}

/// As [`why_not`], with a budget of one's own. The hints are left out when they would exceed it.
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

/// What a request comes down to, without the explanation. For proving hints.
pub(crate) struct SolveOutcome {
    pub(crate) paper: explain::PaperName,
    /// Names of the plugins that strategy `latest` leaves behind.
    pub(crate) unfollowed: Vec<String>,
    /// Names and versions of the plugins that are chosen.
    pub(crate) plugins: Vec<(String, String)>,
}

/// What a request comes down to; `None` when there is nothing. Its world is made while there are steps to ask it with.
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

/// What was decided.
pub(crate) struct Decision {
    pub(crate) chosen: Chosen,
    /// The question it answers: with `latest`, what is left of the whole one.
    pub(crate) question: SolverProblem,
    /// Plugins that strategy `latest` left behind, and the release (its place) that stays.
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

/// Answers the request, following its strategy; `None`: nothing answers it.
pub(crate) fn decide(world: &CandidateIndex<'_>, meter: &BudgetMeter) -> Result<Option<Decision>, BudgetExceeded> {
    let question = SolverProblem::whole(world, papers(world));
    let follows = matches!(world.request.paper, PaperRequest::Latest);
    match find(world, &question, meter)? {
        Some(chosen) => Ok(Some(Decision { chosen, question, unfollowed: Vec::new() })),
        None if follows => follow(world, &question, meter),
        None => Ok(None),
    }
}

/// The Papers that the strategy leaves open.
pub(crate) fn papers(world: &CandidateIndex<'_>) -> IndexSet {
    wished(&world.papers, &world.request.paper)
}

/// Strategy `latest`: as many plugins as can follow, in the order of their names; what runs stays (with what
/// it needs), the rest is left out.
fn follow(
    world: &CandidateIndex<'_>,
    whole: &SolverProblem,
    meter: &BudgetMeter,
) -> Result<Option<Decision>, BudgetExceeded> {
    let mut question = whole.clone();
    let asked = whole.insisted();
    for &shelf in &asked {
        // Not installed at first, but never another release than the pinned one.
        question.root[shelf] = whole.root[shelf].union(&IndexSet::absent());
    }
    question.keep_running_needs(world);
    // None: not even Paper alone.
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
