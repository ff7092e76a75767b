//! Pure. Explains a result: builds the data of [`crate::explanation`], and finds hints by further solves.

use crate::index::CandidateIndex;
use crate::model::catalog::Catalog;
use crate::solve::budget::BudgetMeter;
use group_context::GroupContext;

mod blockers;
pub(crate) mod decision;
mod delisted;
pub(crate) mod group_context;
mod hints;
mod image;
mod inputs;
mod name_conflicts;
pub(crate) mod nearest;
mod shared_plugins;
pub(crate) mod solved;
pub(crate) mod unsolvable;
pub(crate) mod upstream_actions;
mod version_blockers;
pub(crate) mod why_not_release;
pub(crate) mod why_not_version;
mod why_older;

pub(crate) use crate::model::catalog::newest_listed;
pub(crate) use hints::apply_to_others;

/// The inputs that every part of an explanation reads.
pub(crate) struct ExplainContext<'x, 'a> {
    pub(crate) catalog: &'a Catalog,
    pub(crate) candidates: &'x CandidateIndex<'a>,
    pub(crate) meter: &'x BudgetMeter,
    /// The other servers that share a plugin with this one, if there are any.
    pub(crate) group: Option<&'x GroupContext<'x, 'a>>,
}
