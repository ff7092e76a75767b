//! Pure. Resolves the versions that a `PaperMC` server should run, and explains why no newer ones are chosen.
//!
//! [`resolve`] is a pure function: the same catalog, request and instant give the same [`Resolution`], byte for byte.
//! It uses no network, clock, files or Kubernetes. The CPU time it has used can only end it ([`Budget`]). The features
//! add the edges: `upstream` fills the [`catalog`] and downloads files, and `jar` reads JAR descriptors. `manifest`
//! builds a [`request::Request`] from API objects, and `cli` is the `resolver` command.

pub mod catalog;
#[cfg(feature = "cli")]
pub mod cli;
pub mod compatibility_facts;
mod did_you_mean;
#[cfg(feature = "upstream")]
pub mod download;
pub mod explain;
#[cfg(feature = "manifest")]
pub mod from_api;
mod ignore_unknown_fields;
mod index;
#[cfg(feature = "jar")]
pub mod jar;
pub mod jar_pattern;
#[cfg(feature = "cli")]
mod json_schema;
mod known_constraints;
pub mod lock;
pub mod lock_check;
mod missing_projects;
#[cfg(all(test, feature = "cli"))]
#[path = "../tests/support/mutate.rs"]
mod mutate;
pub mod name_conflict;
mod next_change;
pub mod partial;
pub mod request;
pub mod software;
mod solve;
pub mod unmanaged_jar;
mod untrusted_text;
pub mod unusable;
mod unverified_build;
#[cfg(feature = "upstream")]
pub mod upstream;
pub mod version;

pub use missing_projects::missing_projects;
pub use next_change::next_change;
#[doc(hidden)]
pub use solve::PreparedTables;
#[doc(hidden)]
pub use solve::group::naive_encoding::{NaiveProblem, NaiveTables, VersionRuns};
pub use solve::group::{DecidedFleet, Fleet, groups, resolve_fleet};
pub use solve::{
    Budget, BudgetExceeded, Limit, Resolution, Unsolvable, resolve, resolve_within, why_not, why_not_within,
};
