//! Pure. Answers requests: solves them, and explains the result or why there is none.

pub(crate) mod fleet;

use jiff::Timestamp;

use crate::explain::group_context::GroupContext;
use crate::explanation::{Conflict, Explanation, Unanswerable, WhyNot};
use crate::index::CandidateIndex;
use crate::model::catalog::{Catalog, ProjectKey};
use crate::model::gap::Gap;
use crate::model::lock::Lock;
use crate::model::request::Request;
use crate::model::software::PaperName;
use crate::model::unverified_build::{announced_md5, catalog_key};
use crate::model::version::Minecraft;
use crate::render::short;
use crate::solve::budget::BudgetMeter;
use crate::solve::provider::{SolverProblem, prove_unsolvable};
use crate::solve::{Decision, allowed_papers, build_lock, decide};
use crate::{Budget, BudgetExceeded, explain};

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
    #[error("{}", short::gave_up(.0))]
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
            Self::Unanswerable(unanswerable) => &unanswerable.unverified,
            Self::NoSolution(_) | Self::GaveUp(_) => &[],
        }
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
/// running release, or is not installed if none runs. Both cases are reported as left behind.
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
    resolve_in_group(&catalog.with_unread_projects([request]), request, now, budget, None)
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
    let catalog = &*catalog.with_unread_projects([request]);
    let candidates = CandidateIndex::build(catalog, request, now).map_err(|gap| unanswerable(catalog, request, gap))?;
    let meter = BudgetMeter::new(budget);
    let context = explain::ExplainContext { catalog, candidates: &candidates, meter: &meter, group: None };
    explain::why_not_version::explain(&context, target).map_err(Unsolvable::GaveUp)
}

pub(crate) fn unanswerable(catalog: &Catalog, request: &Request, gap: Gap) -> Unsolvable {
    Unsolvable::Unanswerable(Box::new(Unanswerable::from_gap(catalog, request, gap)))
}

/// Refuses a version set with an unverified build.
pub(crate) fn reject_unverified(
    catalog: &Catalog,
    candidates: &CandidateIndex<'_>,
    decision: &Decision,
) -> Result<(), Unsolvable> {
    let position = decision.chosen.paper;
    let unverified = candidates.papers[position].build.filter(|build| announced_md5(&build.file).is_some());
    let Some(name) = unverified.and_then(|_| candidates.paper_name(position)) else { return Ok(()) };
    let (mut gap, mut unverified) = (Gap::default(), Vec::new());
    match catalog.unread.get(&catalog_key(&name)) {
        Some(because) => drop(gap.unread.insert((name.to_string(), because.clone()))),
        None => unverified.push(name),
    }
    let unanswerable = Unanswerable { unverified, ..Unanswerable::from_gap(catalog, candidates.request, gap) };
    Err(Unsolvable::Unanswerable(Box::new(unanswerable)))
}
