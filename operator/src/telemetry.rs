//! Edge (writes). Groups logs, metrics and health endpoints of the operator.

use std::time::Duration;

use artifacts::http_server::Limits;

pub(crate) mod health;
pub(crate) mod logs;
pub(crate) mod metrics;

/// The bounds of the ports for probes and metrics. Each answer is ready at once.
pub(crate) const LIMITS: Limits =
    Limits { connections: 64, header_time: Duration::from_secs(10), total_time: Duration::from_secs(30) };
