//! Edge (writes). What every controller needs of Kubernetes.

pub(crate) mod events;
pub(crate) mod labels;
pub(crate) mod scope;
pub(crate) mod ssa;
