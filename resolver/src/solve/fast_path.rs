//! Pure. Computes an upper bound of the solution without a search.
//!
//! Most problems need no search: the requested plugins do not conflict, or one plugin has no release for a Paper
//! version in any case. A result found here is the one that the search would find. This module never produces a proof.

use pubgrub::VersionSet;

use super::provider::SolverProblem;
use crate::index::CandidateIndex;
use crate::index::chosen::Chosen;
use crate::index::index_set::IndexSet;

/// The releases that each mandatory plugin could have, considered alone.
pub(crate) struct BestCase<'x, 'a> {
    candidates: &'x CandidateIndex<'a>,
    problem: &'x SolverProblem,
    /// Positions of the mandatory plugins, and their usable releases that match the request.
    wanted: Vec<(usize, IndexSet)>,
}

impl<'x, 'a> BestCase<'x, 'a> {
    pub(super) fn new(candidates: &'x CandidateIndex<'a>, problem: &'x SolverProblem) -> Self {
        let mandatory = problem.mandatory_plugins().into_iter();
        let wanted = mandatory.map(|at| (at, problem.root[at].intersection(&candidates.plugins[at].usable)));
        Self { candidates, problem, wanted: wanted.collect() }
    }

    /// The Paper versions on which each of them has a release. Every solution has one of these.
    pub(super) fn open_papers(&self) -> IndexSet {
        let is_open = |paper: &usize| {
            let has_some = |(at, wanted): &(usize, IndexSet)| {
                let supports = &self.candidates.plugins[*at].supports[paper - 1];
                !wanted.is_disjoint(supports) || !wanted.is_disjoint(&self.problem.retained[*at])
            };
            let may_be_used = self.problem.any_paper || self.candidates.papers[paper - 1].unusable.is_none();
            may_be_used && self.wanted.iter().all(has_some)
        };
        IndexSet::from_indexes(self.problem.papers.members(1, self.candidates.papers.len()).filter(is_open))
    }

    /// The newest release of each of them on a Paper version (given by position), and no other plugin, if these are
    /// compatible. No solution on that Paper version is better.
    pub(super) fn newest_on(&self, paper: usize) -> Option<Chosen> {
        let mut releases: Vec<Option<usize>> = vec![None; self.candidates.plugins.len()];
        for (at, wanted) in &self.wanted {
            let plugin = &self.candidates.plugins[*at];
            let newest = |set: &IndexSet| wanted.intersection(set).highest(plugin.releases.len());
            let newest = newest(&plugin.supports[paper]).max(newest(&self.problem.retained[*at]))?;
            releases[*at] = newest.checked_sub(1);
        }
        let index = |at: usize| releases[at].map_or(0, |position| position + 1);
        let is_compatible = |at: usize| {
            let position = releases[at];
            position.is_none_or(|position| {
                self.candidates.plugins[at].edges[position].iter().all(|edge| edge.set.has(index(edge.to)))
            })
        };
        (0..releases.len()).all(is_compatible).then(|| Chosen { paper, releases: releases.clone() })
    }
}
