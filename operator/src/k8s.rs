//! Edge (writes). What every controller needs of Kubernetes.

pub(crate) mod events;
pub(crate) mod labels;
pub(crate) mod namespace_scope;
pub(crate) mod server_side_apply;
