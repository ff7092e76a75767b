//! Pure. What should run on a `PaperMC` server, and why not something newer.
//!
//! [`resolve`] is a pure function: the same catalog, request and instant give the same [`Resolution`], byte for byte. It
//! knows no network, no time of day, no files and no Kubernetes; how long it has computed can only end it ([`Budget`]). The features add the edges: `upstream` fills the [`catalog`] and
//! downloads files, `jar` reads what JARs say about themselves, `manifest` makes a [`request::Request`] out of API objects, `cli` is the `resolver` command.

pub mod catalog;
#[cfg(feature = "cli")]
pub mod cli;
pub mod declared;
#[cfg(feature = "upstream")]
pub mod download;
pub mod explain;
pub mod facts;
pub mod file_pattern;
mod foreign;
#[cfg(all(test, feature = "cli"))]
#[path = "../tests/support/fuzzed.rs"]
mod fuzzed;
#[cfg(feature = "jar")]
pub mod jar;
pub mod lock;
#[cfg(feature = "manifest")]
pub mod manifest;
mod nearest;
mod needed;
mod overlay;
mod passing_over;
pub mod request;
mod ripening;
#[cfg(feature = "cli")]
mod schema;
pub mod scope;
mod shelf;
pub mod software;
mod solve;
pub mod unmanaged;
mod unseen;
pub mod unusable;
#[cfg(feature = "upstream")]
pub mod upstream;
pub mod verify;
pub mod version;

pub use needed::needed_projects;
pub use ripening::next_change;
#[doc(hidden)]
pub use solve::PreparedTables;
#[doc(hidden)]
pub use solve::joint::plain::{PlainQuestion, PlainTables, Runs};
pub use solve::joint::{Decided, Fleet, groups, resolve_fleet};
pub use solve::{
    Budget, BudgetExceeded, Limit, Resolution, Unsolvable, resolve, resolve_within, why_not, why_not_within,
};
