//! Edge (writes). Groups logs, metrics and health endpoints of the operator.

pub(crate) mod health;
pub(crate) mod logs;
pub(crate) mod metrics;
