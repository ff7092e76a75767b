//! Pure. Defines the chosen version set of one server, by positions in its index.

use super::CandidateIndex;
use crate::model::catalog::Release;

/// A solution, by position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chosen {
    /// The position of the Paper version.
    pub(crate) paper: usize,
    /// Per plugin. `None` means not installed.
    pub(crate) releases: Vec<Option<usize>>,
}

impl Chosen {
    /// A Paper version (given by position) with the releases that the group decision chose for a server, per plugin.
    pub(crate) fn from_group_choice(
        candidates: &CandidateIndex<'_>,
        paper: usize,
        releases: &[Option<&Release>],
    ) -> Self {
        let releases = candidates.plugins.iter().zip(releases);
        Self { paper, releases: releases.map(|(plugin, release)| plugin.position_of((*release)?)).collect() }
    }
}
