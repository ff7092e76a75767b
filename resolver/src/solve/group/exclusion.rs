//! Pure. Decides about one group, and excludes servers if there is no solution for all.
//!
//! * A server without a solution alone is excluded. If the remaining servers have no common solution, each server that
//!   is incompatible with those accepted before is excluded, too. Servers that are compatible with the most others are
//!   accepted first, then by name.
//! * An excluded server keeps its running releases and never holds back the Paper version of the others. When the Paper
//!   versions of the others are fixed, a shared plugin stays within the releases that work on the excluded servers, if
//!   any remain. So an excluded server can rejoin without a downgrade of the plugin on all others.

use std::collections::HashMap;

use jiff::Timestamp;
use pubgrub::VersionSet;

use super::problem::{DomainCache, JointProblem};
use super::provider::{self, SolvedVariables};
use super::solo_domains::SoloDomains;
use super::{Choice, MemberDecision};
use crate::index::CandidateIndex;
use crate::index::fleet_tables::{PluginView, ServerView, SharedTables};
use crate::index::index_set::IndexSet;
use crate::model::budget::{Budget, BudgetExceeded, Limit};
use crate::model::catalog::{Catalog, Release};
use crate::model::request::PaperRequest;
use crate::solve::budget::BudgetMeter;
use crate::solve::decide as decide_alone;

/// The decision about a group.
pub(crate) struct GroupDecision<'a> {
    /// Per server.
    pub(crate) decisions: Vec<MemberDecision<'a>>,
    /// Per server, its view after strategy `latest` left plugins behind or kept them at their running release. Usually
    /// `None`.
    pub(crate) changed_views: Vec<Option<ServerView<'a>>>,
    /// Per excluded server, whether the shared plugins stay within the releases that work on it.
    pub(crate) accommodated: Vec<bool>,
    /// The solutions that the members could have alone.
    pub(crate) solo_domains: SoloDomains,
}

impl<'a> GroupDecision<'a> {
    /// The server view that was used for the decision.
    pub(crate) fn view<'x>(&'x self, views: &'x [ServerView<'a>], at: usize) -> &'x ServerView<'a> {
        self.changed_views[at].as_ref().unwrap_or(&views[at])
    }

    /// The members of the group that are solved together.
    pub(crate) fn members(&self) -> Vec<usize> {
        let member = |at: &usize| matches!(self.decisions[*at], MemberDecision::Member(_));
        (0..self.decisions.len()).filter(member).collect()
    }
}

/// Decides about a group. The views are in the order of the server names. `budget` is that of one server.
///
/// If the group exceeds its budget, every server that exceeds the budget alone leaves the group, and the others are
/// decided without it. So one server with too many conflicts does not block the others.
pub(crate) fn decide<'a>(
    catalog: &'a Catalog,
    tables: &SharedTables<'a>,
    views: &[ServerView<'a>],
    now: Timestamp,
    budget: Budget,
) -> GroupDecision<'a> {
    let decide = |exceeded: &[Option<BudgetExceeded>]| {
        let meter = BudgetMeter::new(budget.for_group(exceeded.iter().filter(|exceeded| exceeded.is_none()).count()));
        decide_within(catalog, tables, views, now, &meter, exceeded)
    };
    let gave_up = match decide(&vec![None; views.len()]) {
        Ok(outcome) => return outcome,
        Err(gave_up) => gave_up,
    };
    let check_alone = |view| budget_exceeded_alone(catalog, tables, view, now, &BudgetMeter::new(budget));
    let exceeded: Vec<Option<BudgetExceeded>> = views.iter().map(check_alone).collect();
    let without = if exceeded.iter().all(Option::is_none) { Err(gave_up) } else { decide(&exceeded) };
    without.unwrap_or_else(|gave_up| GroupDecision {
        decisions: exceeded
            .into_iter()
            .map(|exceeded| MemberDecision::GaveUp(exceeded.unwrap_or_else(|| gave_up.clone())))
            .collect(),
        changed_views: vec![None; views.len()],
        accommodated: vec![false; views.len()],
        solo_domains: SoloDomains::default(),
    })
}

/// Returns the exceeded budget if a server alone is too hard.
fn budget_exceeded_alone(
    catalog: &Catalog,
    tables: &SharedTables<'_>,
    view: &ServerView<'_>,
    now: Timestamp,
    meter: &BudgetMeter,
) -> Option<BudgetExceeded> {
    if view.gap {
        return None;
    }
    match view.request.paper {
        PaperRequest::Latest => solve_latest_alone(catalog, tables, view, now, meter).err(),
        PaperRequest::Auto | PaperRequest::Pin { .. } | PaperRequest::BuildPin { .. } => {
            solve_group(tables, &[view], meter).err()
        }
    }
}

/// Decides within the budget of the meter, without the servers that are known to exceed their budget (`exceeded`).
pub(crate) fn decide_within<'a>(
    catalog: &'a Catalog,
    tables: &SharedTables<'a>,
    views: &[ServerView<'a>],
    now: Timestamp,
    meter: &BudgetMeter,
    exceeded: &[Option<BudgetExceeded>],
) -> Result<GroupDecision<'a>, BudgetExceeded> {
    let mut changed_views: Vec<Option<ServerView<'a>>> = vec![None; views.len()];
    let mut behind: Vec<Vec<(usize, Option<&'a Release>)>> = vec![Vec::new(); views.len()];
    let mut accommodated = vec![false; views.len()];
    let mut able: Vec<bool> =
        views.iter().zip(exceeded).map(|(view, exceeded)| !view.gap && exceeded.is_none()).collect();
    let mut left: Vec<usize> = (0..views.len()).filter(|&at| able[at]).collect();
    let first: Vec<&ServerView<'a>> = left.iter().map(|&at| &views[at]).collect();
    let mut found = solve_group(tables, &first, meter)?;
    if found.is_none() {
        for &at in left.iter().filter(|&&at| views[at].request.paper == PaperRequest::Latest) {
            match solve_latest_alone(catalog, tables, &views[at], now, meter)? {
                Some(followed) => (changed_views[at], behind[at]) = followed,
                None => able[at] = false,
            }
        }
        let current_views: Vec<&ServerView<'a>> =
            changed_views.iter().zip(views).map(|(view, first)| view.as_ref().unwrap_or(first)).collect();
        (left, found) = choose_compatible(tables, &current_views, &mut able, meter)?;
    }
    let decision = |(exceeded, able): (&Option<BudgetExceeded>, &bool)| match exceeded {
        Some(gave_up) => MemberDecision::GaveUp(gave_up.clone()),
        None if *able => MemberDecision::Excluded,
        None => MemberDecision::UnsolvableAlone,
    };
    let mut decisions: Vec<MemberDecision<'a>> = exceeded.iter().zip(&able).map(decision).collect();
    if let Some((problem, solution)) = found {
        let current_views: Vec<&ServerView<'a>> =
            changed_views.iter().zip(views).map(|(view, first)| view.as_ref().unwrap_or(first)).collect();
        let solution = accommodate_excluded(&current_views, &left, &problem, solution, meter, &mut accommodated)?;
        for (member, &at) in left.iter().enumerate() {
            decisions[at] = MemberDecision::Member(Choice {
                paper_index: solution.papers[member],
                releases: problem.releases(member, &solution),
                left_behind: std::mem::take(&mut behind[at]),
                keeps_dependencies: changed_views[at].is_some(),
            });
        }
    }
    Ok(GroupDecision { decisions, changed_views, accommodated, solo_domains: SoloDomains::default() })
}

/// Compatible servers, and their best solution.
type Subgroup<'x, 'a> = (JointProblem<'x, 'a>, SolvedVariables);

/// The best common solution for these servers, if there is one. `None` for an empty list.
fn solve_group<'x, 'a>(
    tables: &'x SharedTables<'a>,
    views: &[&'x ServerView<'a>],
    meter: &BudgetMeter,
) -> Result<Option<Subgroup<'x, 'a>>, BudgetExceeded> {
    if views.is_empty() {
        return Ok(None);
    }
    let problem = JointProblem::new(tables, views.to_vec());
    Ok(provider::solve(&problem, meter)?.map(|solution| (problem, solution)))
}

/// A server view that leaves plugins behind or keeps them at their running release (if any), with the plugins that are
/// left behind and the releases that stay.
type ServerExclusion<'a> = (Option<ServerView<'a>>, Vec<(usize, Option<&'a Release>)>);

/// Applies strategy `latest` to a server alone: a plugin that cannot follow leaves its group. `None` if there is no
/// solution.
fn solve_latest_alone<'a>(
    catalog: &'a Catalog,
    tables: &SharedTables<'a>,
    view: &ServerView<'a>,
    now: Timestamp,
    meter: &BudgetMeter,
) -> Result<Option<ServerExclusion<'a>>, BudgetExceeded> {
    let candidates =
        CandidateIndex::build(catalog, view.request, now).expect("a server view without a gap has an index");
    let Some(decision) = decide_alone(&candidates, meter)? else { return Ok(None) };
    // All requested plugins may follow even if dependencies stay at their running release.
    if decision.left_behind.is_empty()
        && decision.problem.retained.iter().all(|retained| *retained == IndexSet::empty())
    {
        return Ok(Some((None, Vec::new())));
    }
    let mut view = view.clone();
    for (plugin_view, (plugin, retained)) in
        view.plugins.iter_mut().zip(candidates.plugins.iter().zip(&decision.problem.retained))
    {
        let listing = &tables.projects[&plugin_view.project];
        let retained = retained.members(1, plugin.releases.len());
        let retained = retained.filter_map(|index| listing.index_of(plugin.releases[index - 1].release));
        plugin_view.retained = IndexSet::from_indexes(retained);
    }
    let mut behind = Vec::new();
    for (position, retained) in decision.left_behind {
        let plugin_view = &mut view.plugins[position];
        plugin_view.latest.clear();
        match retained {
            Some(_) => plugin_view.domain = plugin_view.retained.clone(),
            None => plugin_view.domain = plugin_view.domain.union(&IndexSet::absent()),
        }
        behind.push((position, retained.map(|retained| candidates.plugins[position].releases[retained].release)));
    }
    Ok(Some((Some(view), behind)))
}

/// Chooses the compatible servers among the `able` ones and solves them. Corrects `able` for servers without a solution
/// alone.
fn choose_compatible<'x, 'a>(
    tables: &'x SharedTables<'a>,
    views: &[&'x ServerView<'a>],
    able: &mut [bool],
    meter: &BudgetMeter,
) -> Result<(Vec<usize>, Option<Subgroup<'x, 'a>>), BudgetExceeded> {
    let views_at = |positions: &[usize]| -> Vec<&'x ServerView<'a>> { positions.iter().map(|&at| views[at]).collect() };
    let mut cache = DomainCache::default();
    let mut solo_problems: Vec<Option<JointProblem<'x, 'a>>> = Vec::with_capacity(views.len());
    for (view, able) in views.iter().zip(able.iter_mut()) {
        let mut problem = JointProblem::new(tables, vec![*view]);
        *able = *able && problem.propagate(&mut cache).is_some();
        solo_problems.push(able.then_some(problem));
    }
    // Narrowing alone usually finds the servers that do not fit, and is cheap. A server that it refuses does not fit.
    // So if the remaining servers have a common solution, they are the same as after a full solve for each.
    let order = acceptance_order(tables, views, &solo_problems);
    let accepted = compatible_servers(&order, &mut |members| {
        Ok(JointProblem::new(tables, views_at(members)).propagate(&mut cache).is_some())
    })?;
    if let Some(found) = solve_group(tables, &views_at(&accepted), meter)? {
        let mut all_able = true;
        for at in (0..views.len()).filter(|at| able[*at] && !accepted.contains(at)).collect::<Vec<_>>() {
            able[at] = solve_group(tables, &views_at(&[at]), meter)?.is_some();
            all_able &= able[at];
        }
        if all_able {
            return Ok((accepted, Some(found)));
        }
    }
    for at in 0..views.len() {
        able[at] = able[at] && solve_group(tables, &views_at(&[at]), meter)?.is_some();
        solo_problems[at].take_if(|_| !able[at]);
    }
    let order = acceptance_order(tables, views, &solo_problems);
    let accepted =
        compatible_servers(&order, &mut |members| Ok(solve_group(tables, &views_at(members), meter)?.is_some()))?;
    let found = solve_group(tables, &views_at(&accepted), meter)?;
    Ok((accepted, found))
}

/// The accepted servers, ascending: each server in this order that is compatible with those accepted before.
fn compatible_servers(order: &[usize], fits: &mut FitsTogether<'_>) -> Result<Vec<usize>, BudgetExceeded> {
    let mut accepted = Vec::new();
    let mut in_order = |accepted: &[usize]| {
        let mut positions = accepted.to_vec();
        positions.sort_unstable();
        fits(&positions)
    };
    accept(&mut accepted, order, &mut in_order)?;
    accepted.sort_unstable();
    Ok(accepted)
}

/// Whether these servers are compatible.
type FitsTogether<'x> = dyn FnMut(&[usize]) -> Result<bool, BudgetExceeded> + 'x;

/// Accepts one server after the other if it still fits. It tries many at once, because usually nearly all fit and the
/// others come last.
fn accept(accepted: &mut Vec<usize>, next: &[usize], fits: &mut FitsTogether<'_>) -> Result<(), BudgetExceeded> {
    if next.is_empty() {
        return Ok(());
    }
    accepted.extend_from_slice(next);
    if fits(accepted)? {
        return Ok(());
    }
    accepted.truncate(accepted.len() - next.len());
    if let [_] = next {
        return Ok(());
    }
    let (first, second) = next.split_at(next.len() - 1 - next.len() / 8);
    accept(accepted, first, fits)?;
    accept(accepted, second, fits)
}

/// The able servers, sorted by the number of others they are compatible with (most first), then by name.
///
/// The number of incompatible servers is computed per shared plugin and the maximum counts. For each plugin, take the
/// release (of those that the server could have alone) that most others could have, too. Count the servers that could
/// not have it.
fn acceptance_order(
    tables: &SharedTables<'_>,
    views: &[&ServerView<'_>],
    solo_problems: &[Option<JointProblem<'_, '_>>],
) -> Vec<usize> {
    let (positions, solo_problems): (Vec<usize>, Vec<&JointProblem<'_, '_>>) =
        solo_problems.iter().enumerate().filter_map(|(at, problem)| Some((at, problem.as_ref()?))).unzip();
    let problem = JointProblem::new(tables, positions.iter().map(|&at| views[at]).collect());
    let solo_domain = |&(server, plugin): &(usize, usize)| {
        &solo_problems[server].variables[solo_problems[server].variable_of[0][plugin]].domain
    };
    let mut conflicts = vec![0; positions.len()];
    for variable in problem.variables.iter().filter(|variable| variable.is_shared()) {
        let releases = tables.projects[&variable.project].releases.len();
        // Many servers could have the same releases.
        let mut same: HashMap<&IndexSet, usize> = HashMap::new();
        for at in &variable.members {
            *same.entry(solo_domain(at)).or_default() += 1;
        }
        let mut count = vec![0; releases + 1];
        for (domain, servers) in &same {
            domain.members(1, releases).for_each(|index| count[index] += servers);
        }
        let most = |domain: &IndexSet| domain.members(1, releases).map(|index| count[index]).max().unwrap_or(0);
        let most: HashMap<&IndexSet, usize> = same.keys().map(|domain| (*domain, most(domain))).collect();
        for at in &variable.members {
            conflicts[at.0] = conflicts[at.0].max(variable.members.len() - most[solo_domain(at)]);
        }
    }
    let mut order: Vec<(usize, usize)> = conflicts.into_iter().zip(positions).collect();
    order.sort_unstable();
    order.into_iter().map(|(_, at)| at).collect()
}

/// Keeps shared plugins within the releases that work on the excluded servers, as long as all other servers keep their
/// Paper version.
fn accommodate_excluded(
    views: &[&ServerView<'_>],
    left: &[usize],
    problem: &JointProblem<'_, '_>,
    solution: SolvedVariables,
    meter: &BudgetMeter,
    accommodated: &mut [bool],
) -> Result<SolvedVariables, BudgetExceeded> {
    let excluded = (0..views.len()).filter(|at| !left.contains(at));
    let bounds: Vec<Bounds> =
        excluded.map(|at| (at, bounds(problem, views[at]))).filter(|(_, bounds)| !bounds.is_empty()).collect();
    if bounds.is_empty() {
        return Ok(solution);
    }
    let mut held = problem.clone();
    held.papers = solution.papers.iter().map(|&paper| IndexSet::from_indexes([paper])).collect();
    if let Some((_, solution)) = solve_bounded(held.clone(), &bounds, meter)? {
        for (at, _) in &bounds {
            accommodated[*at] = true;
        }
        return Ok(solution);
    }
    let mut best = solution;
    for bound in &bounds {
        if let Some((problem, solution)) = solve_bounded(held.clone(), std::slice::from_ref(bound), meter)? {
            accommodated[bound.0] = true;
            (held, best) = (problem, solution);
        }
    }
    Ok(best)
}

/// Per excluded server, the variables that it bounds and their bounds.
type Bounds = (usize, Vec<(usize, IndexSet)>);

/// The joint problem within these bounds and its best solution, if any. A search that exceeds its budget counts as no
/// solution. An exceeded time limit is an error instead, because otherwise a slower machine would get another lock.
fn solve_bounded<'x, 'a>(
    mut problem: JointProblem<'x, 'a>,
    bounds: &[Bounds],
    meter: &BudgetMeter,
) -> Result<Option<Subgroup<'x, 'a>>, BudgetExceeded> {
    for (variable, bound) in bounds.iter().flat_map(|(_, bounds)| bounds) {
        problem.variables[*variable].domain = problem.variables[*variable].domain.intersection(bound);
    }
    match provider::solve(&problem, meter) {
        Ok(solution) => Ok(solution.map(|solution| (problem, solution))),
        Err(gave_up) if gave_up.limit == Limit::Time => Err(gave_up),
        Err(_) => Ok(None),
    }
}

/// Per variable of the joint problem, the releases that work on an excluded server: those listed for its running Paper
/// version, and the running ones.
fn bounds(problem: &JointProblem<'_, '_>, view: &ServerView<'_>) -> Vec<(usize, IndexSet)> {
    let mut found = Vec::new();
    for plugin_view in view.plugins.iter().filter(|plugin_view| !plugin_view.latest.is_empty()) {
        let bound = working_releases(problem.tables, view, plugin_view);
        let shares = |&(other, plugin): &(usize, usize)| {
            problem.views[other].plugins[plugin].latest.iter().any(|object| plugin_view.latest.contains(object))
        };
        let variables = problem.variables.iter().enumerate();
        let variable = variables
            .filter(|(_, variable)| variable.project == plugin_view.project && variable.members.iter().any(shares));
        found.extend(variable.filter(|_| bound != IndexSet::empty()).map(|(number, _)| (number, bound.clone())));
    }
    found
}

/// The releases of a plugin that work on the running Paper version of a server, including the running ones.
pub(crate) fn working_releases(
    tables: &SharedTables<'_>,
    view: &ServerView<'_>,
    plugin_view: &PluginView<'_>,
) -> IndexSet {
    let Some(running) = &view.request.running else { return IndexSet::empty() };
    let releases = tables.projects[&plugin_view.project].releases.iter().enumerate();
    let runs = releases.filter(|(_, release)| running.runs_release(release));
    let runs = IndexSet::from_indexes(runs.map(|(at, _)| at + 1));
    let paper = tables.papers[view.papers].iter().position(|paper| *paper == running.minecraft);
    let listed = paper.map(|paper| &tables.eligibilities[plugin_view.eligibility].supports[paper]);
    listed.map_or(runs.clone(), |listed| listed.union(&runs))
}

#[cfg(test)]
mod tests;
