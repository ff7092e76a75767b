//! Pure. Represents the joint problem: servers that are solved together, with one variable for each shared plugin.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use pubgrub::VersionSet;

use super::provider::SolvedVariables;
use crate::index::fleet_tables::{ServerView, SharedTables};
use crate::index::index_set::IndexSet;
use crate::model::budget::BudgetExceeded;
use crate::model::catalog::Release;
use crate::solve::budget::BudgetMeter;

/// Servers, by name, and their options.
#[derive(Clone)]
pub(crate) struct JointProblem<'x, 'a> {
    pub(crate) tables: &'x SharedTables<'a>,
    /// In the order of their names.
    pub(crate) views: Vec<&'x ServerView<'a>>,
    /// Per server, the remaining Paper versions.
    pub(crate) papers: Vec<IndexSet>,
    /// Every plugin, in rank order: requested plugins by object, then by server. The others follow by server, in its
    /// own order.
    pub(crate) variables: Vec<Variable>,
    /// Per server and plugin, the position in `variables`.
    pub(crate) variable_of: Vec<Vec<usize>>,
}

/// One plugin on one server, or on all servers that share it.
#[derive(Clone)]
pub(crate) struct Variable {
    /// Its position in the catalog.
    pub(crate) project: usize,
    /// Position of each server, and of the plugin on it.
    pub(crate) members: Vec<(usize, usize)>,
    /// The remaining releases. If it contains 0, the plugin need not be installed.
    pub(crate) domain: IndexSet,
}

impl Variable {
    /// Whether the plugin is mandatory.
    pub(crate) fn is_mandatory(&self) -> bool {
        !self.domain.has(0)
    }

    /// Whether it is one release for several servers.
    pub(crate) fn is_shared(&self) -> bool {
        self.members.len() > 1
    }
}

/// The sort key of variables: whether only other plugins need it, the Plugin object, the server, the plugin position.
type VariableOrder<'a> = (bool, &'a str, usize, usize);

/// Change counters of Paper versions and domains, and the counters at the last check of each plugin. A change of a
/// plugin that a thousand servers share causes a new check of all of them, and usually most of their other plugins did
/// not change.
pub(crate) struct PropagationMark {
    variables: Vec<u32>,
    papers: Vec<u32>,
    /// Per server and plugin, the counters of its variable and of the server's Paper versions.
    plugins: Vec<Vec<(u32, u32)>>,
}

/// Results that many servers share while domains are narrowed.
#[derive(Default)]
pub(crate) struct DomainCache {
    /// Per shared eligibility and releases, the Paper versions that one of them runs on.
    papers: HashMap<(usize, IndexSet), IndexSet>,
    /// Per shared eligibility and Paper versions, the releases that run on one of them.
    releases: HashMap<(usize, IndexSet), IndexSet>,
}

impl<'x, 'a> JointProblem<'x, 'a> {
    /// Combines these servers, which must be in the order of their names.
    pub(crate) fn new(tables: &'x SharedTables<'a>, views: Vec<&'x ServerView<'a>>) -> Self {
        let mut variables: Vec<(VariableOrder<'_>, Variable)> = Vec::new();
        // A plugin is shared by servers whose objects are linked: one object, or several objects that occur on the same
        // server.
        let mut shared: BTreeMap<(usize, &str), usize> = BTreeMap::new();
        for (server, view) in views.iter().enumerate() {
            for (plugin, plugin_view) in view.plugins.iter().enumerate() {
                let rank = (plugin_view.object.is_none(), plugin_view.object.unwrap_or_default(), server, plugin);
                let linked: Vec<usize> = (plugin_view.latest.iter())
                    .filter_map(|object| shared.get(&(plugin_view.project, *object)).copied())
                    .collect();
                let variable = if let Some(&first) = linked.first() {
                    for &other in &linked[1..] {
                        merge(&mut variables, &mut shared, first, other);
                    }
                    let (ranks, variable) = &mut variables[first];
                    *ranks = (*ranks).min(rank);
                    variable.members.push((server, plugin));
                    variable.domain = variable.domain.intersection(&plugin_view.domain);
                    first
                } else {
                    let variable = Variable {
                        project: plugin_view.project,
                        members: vec![(server, plugin)],
                        domain: plugin_view.domain.clone(),
                    };
                    variables.push((rank, variable));
                    variables.len() - 1
                };
                shared.extend(plugin_view.latest.iter().map(|object| ((plugin_view.project, *object), variable)));
            }
        }
        variables.retain(|(_, variable)| !variable.members.is_empty());
        variables.sort_by_key(|(rank, _)| *rank);
        let variables: Vec<Variable> = variables.into_iter().map(|(_, variable)| variable).collect();
        let mut variable_of: Vec<Vec<usize>> = views.iter().map(|view| vec![0; view.plugins.len()]).collect();
        for (number, variable) in variables.iter().enumerate() {
            for &(server, plugin) in &variable.members {
                variable_of[server][plugin] = number;
            }
        }
        let papers = views.iter().map(|view| view.open.clone()).collect();
        Self { tables, views, papers, variables, variable_of }
    }

    /// The releases of a plugin that are compatible with one Paper version (given by its index).
    pub(crate) fn releases_on_paper(&self, server: usize, plugin: usize, paper: usize) -> IndexSet {
        let plugin_view = &self.views[server].plugins[plugin];
        let supports =
            self.tables.eligibilities[plugin_view.eligibility].supports[paper - 1].union(&plugin_view.retained);
        let mandatory = self.variables[self.variable_of[server][plugin]].is_mandatory();
        if mandatory { supports } else { supports.union(&IndexSet::absent()) }
    }

    /// The chosen releases of a server, per plugin. `None` means not installed.
    pub(crate) fn releases(&self, server: usize, solution: &SolvedVariables) -> Vec<Option<&'a Release>> {
        let releases = self.variable_of[server].iter().map(|&variable| {
            let listing = &self.tables.projects[&self.variables[variable].project];
            solution.releases[variable].checked_sub(1).map(|position| listing.releases[position])
        });
        releases.collect()
    }

    /// Removes Paper versions and releases that no solution can contain, by checking each server's Paper with one
    /// plugin at a time (arc consistency). `None` if a domain is empty, so that there is no solution.
    pub(crate) fn propagate(&mut self, cache: &mut DomainCache) -> Option<PropagationMark> {
        let mut marks = PropagationMark {
            variables: vec![1; self.variables.len()],
            papers: vec![1; self.views.len()],
            plugins: self.views.iter().map(|view| vec![(0, 0); view.plugins.len()]).collect(),
        };
        let all = (0..self.views.len()).collect();
        (self.propagate_from(all, &mut marks, cache)
            && self.variables.iter().all(|variable| variable.domain != IndexSet::empty()))
        .then_some(marks)
    }

    /// Narrows these servers and all servers that their changes affect. Returns false if a domain is empty.
    fn propagate_from(
        &mut self,
        mut open: BTreeSet<usize>,
        marks: &mut PropagationMark,
        cache: &mut DomainCache,
    ) -> bool {
        while let Some(server) = open.pop_first() {
            let view = self.views[server];
            for (plugin, plugin_view) in view.plugins.iter().enumerate() {
                let number = self.variable_of[server][plugin];
                let variable = &self.variables[number];
                if marks.plugins[server][plugin].0 == marks.variables[number]
                    || !variable.is_mandatory()
                    || !variable.domain.is_disjoint(&plugin_view.retained)
                {
                    continue;
                }
                marks.plugins[server][plugin].0 = marks.variables[number];
                let runs = cache.papers(self.tables, view, plugin_view.eligibility, &variable.domain);
                if !self.papers[server].subset_of(runs) {
                    self.papers[server] = self.papers[server].intersection(runs);
                    marks.papers[server] += 1;
                }
            }
            if self.papers[server] == IndexSet::empty() {
                return false;
            }
            for (plugin, plugin_view) in view.plugins.iter().enumerate() {
                if marks.plugins[server][plugin].1 == marks.papers[server] {
                    continue;
                }
                marks.plugins[server][plugin].1 = marks.papers[server];
                let number = self.variable_of[server][plugin];
                let listed = cache.releases(self.tables, view, plugin_view.eligibility, &self.papers[server]);
                let with_stays =
                    (plugin_view.retained != IndexSet::empty()).then(|| listed.union(&plugin_view.retained));
                let runs = with_stays.as_ref().unwrap_or(listed);
                let variable = &mut self.variables[number];
                let left = if variable.is_mandatory() {
                    if variable.domain.subset_of(runs) {
                        continue;
                    }
                    variable.domain.intersection(runs)
                } else {
                    variable.domain.intersection(&runs.union(&IndexSet::absent()))
                };
                if left == variable.domain {
                    continue;
                }
                if left == IndexSet::empty() {
                    return false;
                }
                variable.domain = left;
                marks.variables[number] += 1;
                // With fewer releases, the other servers (and this one) may lose a Paper version.
                open.extend(variable.members.iter().map(|&(server, _)| server));
            }
        }
        true
    }

    /// Tries to find the best solution without backtracking: each Paper version and release in rank order is the newest
    /// that earlier choices do not exclude. `None` if that fails, which says nothing about solvability.
    ///
    /// Everything that is excluded on the way has no solution with the earlier choices, so a result is the best
    /// solution. Nearly every fleet is solved this way. A search costs several times as much.
    pub(crate) fn solve_greedily(
        &mut self,
        mut marks: PropagationMark,
        cache: &mut DomainCache,
        meter: &BudgetMeter,
    ) -> Result<Option<SolvedVariables>, BudgetExceeded> {
        let mut papers = Vec::new();
        for server in 0..self.views.len() {
            meter.step()?;
            let newest = self.papers[server].highest(self.tables.papers[self.views[server].papers].len());
            let Some(newest) = newest else { return Ok(None) };
            papers.push(newest);
            let only = IndexSet::from_indexes([newest]);
            if self.papers[server] != only {
                self.papers[server] = only;
                marks.papers[server] += 1;
                if !self.propagate_from([server].into(), &mut marks, cache) {
                    return Ok(None);
                }
            }
        }
        let mut releases = Vec::new();
        for variable in 0..self.variables.len() {
            meter.step()?;
            let listing = &self.tables.projects[&self.variables[variable].project];
            let domain = self.variables[variable].domain.clone();
            let absent = domain.has(0).then_some(0);
            let newest_first = (1..=listing.releases.len()).rev().filter(|&index| domain.has(index));
            let Some((index, left)) = absent
                .into_iter()
                .chain(newest_first)
                .find_map(|index| Some((index, self.remaining_domains(variable, index, &releases)?)))
            else {
                return Ok(None);
            };
            releases.push(index);
            for (other, left) in left {
                self.variables[other].domain = left;
            }
        }
        Ok(Some(SolvedVariables { papers, releases }))
    }

    /// The remaining releases of other variables after choosing this release. `None` if a domain becomes empty or an
    /// earlier choice conflicts.
    fn remaining_domains(&self, variable: usize, index: usize, chosen: &[usize]) -> Option<Vec<(usize, IndexSet)>> {
        let mut remaining: Vec<(usize, IndexSet)> = Vec::new();
        for &(server, plugin) in &self.variables[variable].members {
            for edge in self.tables.edges(&self.views[server].plugins[plugin], index) {
                // A project that is not used on that server can be neither required nor excluded.
                let Some(target) = self.views[server].position_of(edge.to) else { continue };
                let other = self.variable_of[server][target];
                if let Some(&chosen) = chosen.get(other) {
                    if !edge.set.has(chosen) {
                        return None;
                    }
                    continue;
                }
                let existing = remaining.iter_mut().find(|(existing, _)| *existing == other);
                let before = existing.as_ref().map_or(&self.variables[other].domain, |(_, set)| set);
                let left = before.intersection(&edge.set);
                if left == IndexSet::empty() {
                    return None;
                }
                match existing {
                    Some((_, set)) => *set = left,
                    None => remaining.push((other, left)),
                }
            }
        }
        Some(remaining)
    }
}

/// Merges two variables of one project after an object was found that both share.
fn merge(
    variables: &mut [(VariableOrder<'_>, Variable)],
    shared: &mut BTreeMap<(usize, &str), usize>,
    into: usize,
    from: usize,
) {
    if into == from {
        return;
    }
    let rank = variables[from].0;
    let at = std::mem::take(&mut variables[from].1.members);
    let domain = variables[from].1.domain.clone();
    let (ranks, variable) = &mut variables[into];
    *ranks = (*ranks).min(rank);
    variable.members.extend(at);
    variable.members.sort_unstable();
    variable.domain = variable.domain.intersection(&domain);
    for variable in shared.values_mut().filter(|variable| **variable == from) {
        *variable = into;
    }
}

impl DomainCache {
    fn papers(
        &mut self,
        tables: &SharedTables<'_>,
        view: &ServerView<'_>,
        eligibility: usize,
        releases: &IndexSet,
    ) -> &IndexSet {
        self.papers.entry((eligibility, releases.clone())).or_insert_with(|| {
            let supports = tables.eligibilities[eligibility].supports.iter().enumerate();
            let some = supports.take(tables.papers[view.papers].len()).filter(|(_, set)| !set.is_disjoint(releases));
            IndexSet::from_indexes(some.map(|(paper, _)| paper + 1))
        })
    }

    fn releases(
        &mut self,
        tables: &SharedTables<'_>,
        view: &ServerView<'_>,
        eligibility: usize,
        papers: &IndexSet,
    ) -> &IndexSet {
        self.releases.entry((eligibility, papers.clone())).or_insert_with(|| {
            let papers = papers.members(1, tables.papers[view.papers].len());
            papers
                .fold(IndexSet::empty(), |all, paper| all.union(&tables.eligibilities[eligibility].supports[paper - 1]))
        })
    }
}
