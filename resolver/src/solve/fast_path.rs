//! Pure. Computes an upper bound of the solution without a search.
//!
//! Most problems need no search: the requested plugins do not conflict, or one plugin has no release for a Paper
//! version in any case. A result found here is the one that the search would find. This module never produces a proof.

use pubgrub::VersionSet;

use super::index_set::IndexSet;
use super::provider::{Chosen, SolverProblem};
use crate::index::CandidateIndex;

/// The releases that each mandatory plugin could have, considered alone.
pub(super) struct BestCase<'x, 'a> {
    world: &'x CandidateIndex<'a>,
    question: &'x SolverProblem,
    /// Positions of the mandatory plugins, and their usable releases that match the request.
    wanted: Vec<(usize, IndexSet)>,
}

impl<'x, 'a> BestCase<'x, 'a> {
    pub(super) fn of(world: &'x CandidateIndex<'a>, question: &'x SolverProblem) -> Self {
        let insisted = question.insisted().into_iter();
        let wanted = insisted.map(|at| (at, question.root[at].intersection(&world.shelves[at].usable)));
        Self { world, question, wanted: wanted.collect() }
    }

    /// The Paper versions on which each of them has a release. Every solution has one of these.
    pub(super) fn papers(&self) -> IndexSet {
        let is_open = |paper: &usize| {
            let has_some = |(at, wanted): &(usize, IndexSet)| {
                let supports = &self.world.shelves[*at].supports[paper - 1];
                !wanted.is_disjoint(supports) || !wanted.is_disjoint(&self.question.stays[*at])
            };
            let may_be_used = self.question.any_paper || self.world.papers[paper - 1].unusable.is_none();
            may_be_used && self.wanted.iter().all(has_some)
        };
        IndexSet::of(self.question.papers.members(1, self.world.papers.len()).filter(is_open))
    }

    /// The newest release of each of them on a Paper version (given by position), and no other plugin, if these are
    /// compatible. No solution on that Paper version is better.
    pub(super) fn on(&self, paper: usize) -> Option<Chosen> {
        let mut releases: Vec<Option<usize>> = vec![None; self.world.shelves.len()];
        for (at, wanted) in &self.wanted {
            let stock = &self.world.shelves[*at];
            let newest = |of: &IndexSet| wanted.intersection(of).highest(stock.releases.len());
            let newest = newest(&stock.supports[paper]).max(newest(&self.question.stays[*at]))?;
            releases[*at] = newest.checked_sub(1);
        }
        let index = |at: usize| releases[at].map_or(0, |place| place + 1);
        let goes = |at: usize| {
            let place = releases[at];
            place
                .is_none_or(|place| self.world.shelves[at].links[place].iter().all(|link| link.set.has(index(link.to))))
        };
        (0..releases.len()).all(goes).then(|| Chosen { paper, releases: releases.clone() })
    }
}
