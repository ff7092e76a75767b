//! Edge (reads). Serves `/livez` and `/readyz`.
//!
//! They have no secrets and change nothing, so they need no authentication.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;

/// A stage of the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ReadyGate {
    /// The objects of both CRDs can be listed.
    Crds,
    /// This process holds the Lease.
    Leader,
    /// The first lists of both kinds are complete.
    Stores,
}

/// What the operator can do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Health {
    /// It cannot lead yet.
    WaitsForCrds,
    /// It leads as soon as the Lease is free. A standby is healthy.
    StandsBy,
    /// It leads, and reads the first lists.
    ReadsLists,
    /// It leads.
    Leads,
}

impl Health {
    fn response(self) -> (StatusCode, &'static str) {
        match self {
            Self::WaitsForCrds => {
                (StatusCode::SERVICE_UNAVAILABLE, "the CRDs cannot be listed yet: the log of the operator says why\n")
            }
            Self::StandsBy => (StatusCode::OK, "ok: standby, another replica leads\n"),
            Self::ReadsLists => (StatusCode::SERVICE_UNAVAILABLE, "the first lists have not been read yet\n"),
            Self::Leads => (StatusCode::OK, "ok\n"),
        }
    }
}

/// Which gates are open.
#[derive(Debug, Clone, Default)]
pub(crate) struct Readiness(Arc<Mutex<BTreeSet<ReadyGate>>>);

impl Readiness {
    /// Opens one gate.
    pub(crate) fn open(&self, gate: ReadyGate) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(gate);
    }

    /// What the operator can do now.
    pub(crate) fn health(&self) -> Health {
        let gates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_open = |gate| gates.contains(&gate);
        match (is_open(ReadyGate::Crds), is_open(ReadyGate::Leader), is_open(ReadyGate::Stores)) {
            (false, _, _) => Health::WaitsForCrds,
            (true, false, _) => Health::StandsBy,
            (true, true, false) => Health::ReadsLists,
            (true, true, true) => Health::Leads,
        }
    }
}

/// The routes.
pub(crate) fn router(readiness: Readiness) -> Router {
    Router::new().route("/livez", get(|| async { "ok\n" })).route("/readyz", get(ready)).with_state(readiness)
}

async fn ready(State(readiness): State<Readiness>) -> (StatusCode, &'static str) {
    readiness.health().response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standby_is_ready_and_leader_without_lists_is_not() {
        let readiness = Readiness::default();
        let answers = |health| (readiness.health() == health).then(|| readiness.health().response().0);
        assert_eq!(answers(Health::WaitsForCrds), Some(StatusCode::SERVICE_UNAVAILABLE));
        readiness.open(ReadyGate::Crds);
        assert_eq!(answers(Health::StandsBy), Some(StatusCode::OK));
        readiness.open(ReadyGate::Leader);
        assert_eq!(answers(Health::ReadsLists), Some(StatusCode::SERVICE_UNAVAILABLE));
        readiness.open(ReadyGate::Stores);
        assert_eq!(answers(Health::Leads), Some(StatusCode::OK));
    }
}
