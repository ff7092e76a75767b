//! Pure. Computes the releases that the servers of a group could have alone.
//!
//! Explanations are made server by server, and each server is compared with all others. So each server is computed once
//! for all explanations, and servers with the same options are compared once.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use super::problem::{DomainCache, JointProblem};
use crate::index::fleet_tables::{ServerView, SharedTables};
use crate::index::index_set::IndexSet;

/// The solutions that the members of a group could have alone, computed on first use.
#[derive(Default)]
pub(crate) struct SoloDomains {
    /// On any Paper version that they can choose from.
    pub(crate) open: OnceCell<SharedDomains>,
    /// On the chosen Paper version.
    pub(crate) chosen: OnceCell<SharedDomains>,
}

/// The options of servers for the plugins that they share.
pub(crate) struct SharedDomains {
    /// By server, its remaining Paper versions. Servers without any are missing.
    papers: HashMap<usize, IndexSet>,
    by_project: BTreeMap<usize, Vec<SharedDomain>>,
}

/// The servers that share a plugin by the same objects and could have the same releases of it.
pub(crate) struct SharedDomain {
    /// The position of one of these servers, and of the plugin on it.
    pub(crate) representative: (usize, usize),
    pub(crate) releases: IndexSet,
    /// In ascending order.
    servers: Vec<usize>,
}

impl SharedDomain {
    /// The servers in a range of positions.
    pub(crate) fn within(&self, range: &Range<usize>) -> &[usize] {
        let before = |end: usize| self.servers.partition_point(|&server| server < end);
        &self.servers[before(range.start)..before(range.end)]
    }
}

impl SharedDomains {
    /// Computes these servers, in ascending order, on these Paper versions of each.
    pub(crate) fn from_views<'x, 'a: 'x>(
        tables: &'x SharedTables<'a>,
        views: impl Iterator<Item = (usize, &'x ServerView<'a>, IndexSet)>,
    ) -> Self {
        let mut cache = DomainCache::default();
        let mut all = Self { papers: HashMap::new(), by_project: BTreeMap::new() };
        let mut position_of: HashMap<(usize, &[&str], IndexSet), usize> = HashMap::new();
        for (at, view, papers) in views {
            let Some(problem) = solo_problem(tables, view, papers, &[], &mut cache) else { continue };
            let of_several = view.plugins.iter().enumerate().filter(|(_, plugin_view)| !plugin_view.latest.is_empty());
            for (plugin, plugin_view) in of_several {
                let releases = &problem.variables[problem.variable_of[0][plugin]].domain;
                let groups = all.by_project.entry(plugin_view.project).or_default();
                let key = (plugin_view.project, plugin_view.latest.as_slice(), releases.clone());
                let position = *position_of.entry(key).or_insert_with(|| {
                    groups.push(SharedDomain {
                        representative: (at, plugin),
                        releases: releases.clone(),
                        servers: Vec::new(),
                    });
                    groups.len() - 1
                });
                groups[position].servers.push(at);
            }
            all.papers.insert(at, problem.papers[0].clone());
        }
        all
    }

    /// The servers that share a project.
    pub(crate) fn for_project(&self, project: usize) -> &[SharedDomain] {
        self.by_project.get(&project).map_or(&[], Vec::as_slice)
    }

    /// The remaining Paper versions of a server.
    pub(crate) fn papers(&self, server: usize) -> &IndexSet {
        &self.papers[&server]
    }
}

/// A server alone on these Paper versions, without some of its plugins. `None` if there is no solution.
pub(crate) fn solo_problem<'x, 'a>(
    tables: &'x SharedTables<'a>,
    view: &'x ServerView<'a>,
    papers: IndexSet,
    ignored: &[usize],
    cache: &mut DomainCache,
) -> Option<JointProblem<'x, 'a>> {
    #[cfg(test)]
    COMPUTATIONS.set(COMPUTATIONS.get() + 1);
    let mut problem = JointProblem::new(tables, vec![view]);
    problem.papers[0] = papers;
    for &plugin in ignored {
        let variable = problem.variable_of[0][plugin];
        problem.variables[variable].domain = IndexSet::absent();
    }
    problem.propagate(cache)?;
    Some(problem)
}

#[cfg(test)]
thread_local! {
    /// The number of computations.
    pub(super) static COMPUTATIONS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}
