//! Pure. Resolves the versions that a `PaperMC` server should run, and explains why no newer ones are chosen.
//!
//! [`resolve`] is a pure function: the same catalog, request and instant give the same [`Resolution`], byte for byte.
//! It uses no network, clock, files or Kubernetes. The CPU time it has used can only end it ([`Budget`]). The features
//! add the edges: `upstream` fills the [`catalog`] and downloads files, and `jar` reads JAR descriptors. `manifest`
//! builds a [`request::Request`] from API objects, and `cli` is the `resolver` command.

#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "upstream")]
pub mod download;
pub mod explain;
pub mod explanation;
#[cfg(feature = "manifest")]
pub mod from_api;
mod index;
#[cfg(feature = "jar")]
pub mod jar;
#[cfg(feature = "cli")]
mod json_schema;
pub mod lock_check;
pub mod model;
#[cfg(all(test, feature = "cli"))]
#[path = "../tests/support/mutate.rs"]
mod mutate;
mod next_change;
pub mod partial;
pub mod render;
pub(crate) mod resolve;
mod solve;
#[cfg(feature = "upstream")]
pub mod upstream;

pub use crate::index::missing_projects::missing_projects;
pub use crate::model::budget::Budget;
pub use crate::model::budget::BudgetExceeded;
pub use crate::model::budget::Limit;
#[doc(hidden)]
pub use crate::resolve::PreparedTables;
pub use crate::resolve::Resolution;
pub use crate::resolve::Unsolvable;
pub use crate::resolve::fleet::resolve_fleet;
pub use crate::resolve::resolve;
pub use crate::resolve::resolve_within;
pub use crate::resolve::why_not;
pub use crate::resolve::why_not_within;
pub use next_change::next_change;
#[doc(hidden)]
pub use solve::group::naive_encoding::{NaiveProblem, NaiveTables, VersionRuns};
pub use solve::group::{DecidedFleet, Fleet, groups};
