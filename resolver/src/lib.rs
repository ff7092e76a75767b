//! Pure. Resolves the versions that a `PaperMC` server should run, and explains why no newer ones are chosen.
//!
//! [`resolve`] is a pure function: the same catalog, request and instant give the same [`Resolution`], byte for byte.
//! It uses no network, clock, files or Kubernetes. The CPU time it has used can only end it ([`Budget`]). The features
//! add the edges: `upstream` fills the [`model::catalog`] and downloads files, and `jar` reads JAR descriptors. `manifest`
//! builds a [`model::request::Request`] from API objects, and `cli` is the `resolver` command.
//!
//! The pure part has layers. Each uses only those before it: [`model`], [`explanation`], `index`, `solve`, `explain`,
//! [`render`], `resolve`. The entry points [`lock_check`], [`partial`] and `next_change` are beside `resolve`.

#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "upstream")]
pub mod download;
mod explain;
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
mod resolve;
mod solve;
#[cfg(feature = "upstream")]
pub mod upstream;

pub use index::missing_projects::missing_projects;
pub use model::budget::{Budget, BudgetExceeded, Limit};
pub use next_change::next_change;
#[doc(hidden)]
pub use resolve::PreparedTables;
pub use resolve::fleet::resolve_fleet;
pub use resolve::{Resolution, Unsolvable, resolve, resolve_within, why_not, why_not_within};
#[doc(hidden)]
pub use solve::group::naive_encoding::{NaiveProblem, NaiveTables, VersionRuns};
pub use solve::group::{DecidedFleet, Fleet, groups};
