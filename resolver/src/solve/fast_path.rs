//! Pure. The best case: what the answer to a question is at most, seen without a search.
//!
//! Most questions need no search: nothing that is asked for gets into the way of anything else, or one plugin has nothing
//! for a Paper whatever the others do. What is found here is what the search would find; a proof is never made here.

use pubgrub::VersionSet;

use super::index_set::IndexSet;
use super::provider::{Chosen, SolverProblem};
use crate::index::CandidateIndex;

/// What each plugin that has to be there could have, seen alone.
pub(super) struct BestCase<'x, 'a> {
    world: &'x CandidateIndex<'a>,
    question: &'x SolverProblem,
    /// Shelves of the plugins that have to be there, and their releases that may be used and are asked for.
    wanted: Vec<(usize, IndexSet)>,
}

impl<'x, 'a> BestCase<'x, 'a> {
    pub(super) fn of(world: &'x CandidateIndex<'a>, question: &'x SolverProblem) -> Self {
        let insisted = question.insisted().into_iter();
        let wanted = insisted.map(|at| (at, question.root[at].intersection(&world.shelves[at].usable)));
        Self { world, question, wanted: wanted.collect() }
    }

    /// The Papers on which each of them has a release. No answer has another one.
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

    /// The newest release of each of them on a Paper (by its place) and nothing else, if these go together: nothing is
    /// better on that Paper.
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
