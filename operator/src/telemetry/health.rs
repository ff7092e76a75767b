//! Edge (reads). Serves `/livez`, `/readyz` and `/metrics`.
//!
//! They have no secrets and change nothing, so they need no authentication.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;

/// A condition for the operator to be ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ReadyGate {
    /// The objects of both CRDs can be listed.
    Crds,
    /// This process holds the Lease. A standby is live, but not ready.
    Leader,
    /// The first lists of both kinds are complete.
    Stores,
}

impl ReadyGate {
    fn message(self) -> &'static str {
        match self {
            Self::Crds => "the CRDs cannot be listed yet: the log of the operator says why",
            Self::Leader => "another replica leads",
            Self::Stores => "the first lists have not been read yet",
        }
    }
}

/// Which gates are still closed.
#[derive(Debug, Clone)]
pub(crate) struct Readiness(Arc<Mutex<BTreeMap<ReadyGate, bool>>>);

impl Default for Readiness {
    fn default() -> Self {
        let gates = [ReadyGate::Crds, ReadyGate::Leader, ReadyGate::Stores];
        Self(Arc::new(Mutex::new(gates.into_iter().map(|gate| (gate, false)).collect())))
    }
}

impl Readiness {
    /// Opens one gate.
    pub(crate) fn open(&self, gate: ReadyGate) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(gate, true);
    }

    /// The texts of the gates that are still closed.
    pub(crate) fn missing(&self) -> Vec<&'static str> {
        let gates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        gates.iter().filter(|(_, open)| !**open).map(|(gate, _)| gate.message()).collect()
    }
}

/// The routes.
pub(crate) fn router(readiness: Readiness, metrics: impl Fn() -> String + Clone + Send + Sync + 'static) -> Router {
    Router::new()
        .route("/livez", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .with_state(readiness)
        .route("/metrics", get(move || async move { metrics() }))
}

async fn ready(State(readiness): State<Readiness>) -> (StatusCode, String) {
    match readiness.missing().as_slice() {
        [] => (StatusCode::OK, "ok\n".to_owned()),
        missing => (StatusCode::SERVICE_UNAVAILABLE, format!("{}\n", missing.join("\n"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readiness_lists_closed_gates() {
        let readiness = Readiness::default();
        readiness.open(ReadyGate::Crds);
        readiness.open(ReadyGate::Stores);
        assert_eq!(readiness.missing(), ["another replica leads"]);
        readiness.open(ReadyGate::Leader);
        assert!(readiness.missing().is_empty());
    }
}
