//! Pure. Defines what a process keeps of a server's objects between two passes that poll its agent.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;

/// The `StatefulSet` and the pod as the last pass has read them.
#[derive(Debug, Clone)]
pub(crate) struct KnownObjects {
    /// How many changes the watches had reported when they were read.
    pub(crate) changes: u64,
    pub(crate) read_at: Timestamp,
    pub(crate) stateful_set: Option<StatefulSet>,
    pub(crate) pod: Option<Pod>,
}
