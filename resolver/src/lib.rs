//! Pure. Resolves the versions that a `PaperMC` server should run, and explains why no newer ones are chosen.
//!
//! [`resolve`] is a pure function: the same catalog, request and instant give the same [`Resolution`], byte for byte.
//! It uses no network, clock, files or Kubernetes. The CPU time it has used can only end it ([`Budget`]).
//!
//! Other crates are its edges: `upstream` fills the [`model::catalog`], `artifacts` downloads files and reads JARs,
//! `from_api` builds a [`model::request::Request`] from API objects, and `cli` is the `resolver` command.
//!
//! The modules are layers. Each uses only those before it: [`model`], [`explanation`], `index`, `solve`, `explain`,
//! [`render`], `resolve`. The entry points [`lock_check`], [`partial`] and `next_change` are beside `resolve`.

mod explain;
pub mod explanation;
mod index;
pub mod lock_check;
pub mod model;
mod next_change;
pub mod partial;
pub mod render;
mod resolve;
mod solve;

pub use index::is_pinned;
pub use index::missing_projects::missing_projects;
pub use model::budget::{Budget, BudgetExceeded, Limit};
pub use next_change::next_change;
#[doc(hidden)]
pub use resolve::PreparedTables;
pub use resolve::fleet::resolve_fleet;
pub use resolve::{Resolution, Unsolvable, resolve, resolve_within, why_not, why_not_within};
#[doc(hidden)]
pub use solve::group::plain_encoding::{PlainProblem, PlainTables, VersionRuns};
pub use solve::group::{DecidedFleet, Fleet, groups, namespace};
