//! Edge (writes). Each subcommand of `resolver`: from its arguments to its output.

pub(crate) mod adopt;
pub(crate) mod annotate;
pub(crate) mod diff;
pub(crate) mod explain;
pub(crate) mod lock;
pub(crate) mod man;
pub(crate) mod migrate;
pub(crate) mod outdated;
pub(crate) mod plan;
pub(crate) mod ready;
pub(crate) mod schema;
pub(crate) mod trust;
pub(crate) mod verify;
