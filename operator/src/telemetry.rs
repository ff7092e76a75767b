//! Edge (writes). What the operator says about itself.

pub(crate) mod health;
pub(crate) mod logs;
pub(crate) mod metrics;
