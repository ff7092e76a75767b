//! Pure. Solves one request: from the catalog and the request to the single best version set.

use pubgrub::VersionSet;

use crate::index::CandidateIndex;
use crate::index::paper_candidates::requested_indexes;
use crate::model::gap::Gap;
use crate::model::request::PaperRequest;

pub(crate) mod budget;
pub(crate) mod build_lock;
mod fast_path;
pub(crate) mod group;
pub(crate) mod provider;
mod thread_cpu_time;

use crate::index::chosen::Chosen;
use crate::index::index_set::IndexSet;
use crate::model::budget::BudgetExceeded;
use budget::BudgetMeter;
use provider::{SolverProblem, find_solution};

/// The result for a request without its explanation, for verifying hints.
pub(crate) struct SolveOutcome {
    pub(crate) paper: crate::model::software::PaperName,
    /// Names of the plugins that strategy `latest` leaves behind.
    pub(crate) left_behind: Vec<String>,
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
    let left_behind =
        decision.left_behind.iter().map(|&(plugin, _)| candidates.plugins[plugin].name().to_owned()).collect();
    let to_outcome = |paper| SolveOutcome { paper, plugins: decision.plugins(&candidates), left_behind };
    Ok(candidates.paper_name(decision.chosen.paper).map(to_outcome))
}

/// The solution of a request.
pub(crate) struct Decision {
    pub(crate) chosen: Chosen,
    /// The problem that it solves. With `latest`, the remaining part of the whole problem.
    pub(crate) problem: SolverProblem,
    /// Plugins that strategy `latest` left behind, with the position of the release that stays.
    pub(crate) left_behind: Vec<(usize, Option<usize>)>,
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
        Some(chosen) => Ok(Some(Decision { chosen, problem, left_behind: Vec::new() })),
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
    let mut left_behind = Vec::new();
    for &plugin in &mandatory {
        let mut with = problem.clone();
        with.root[plugin] = whole.root[plugin].clone();
        if let Some(better) = find_solution(candidates, &with, meter)? {
            (problem, chosen) = (with, better);
            continue;
        }
        let runs = candidates.plugins[plugin]
            .running_release(candidates.request)
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
        left_behind.push((plugin, retained));
    }
    Ok(Some(Decision { chosen, problem, left_behind }))
}

#[cfg(test)]
mod tests;
