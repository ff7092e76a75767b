//! Edge (writes). Groups the Kubernetes helpers that every controller needs.

pub(crate) mod client;
pub(crate) mod events;
pub(crate) mod labels;
pub(crate) mod merged_watch;
pub(crate) mod namespace_scope;
pub(crate) mod owned_api;
pub(crate) mod ownership;
pub(crate) mod server_side_apply;
