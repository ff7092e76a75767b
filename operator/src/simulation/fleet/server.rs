//! Edge (reads). Tracks one server of a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::clock::now;
use crate::simulation::cluster_handle::ClusterHandle;

/// A server, and its state for the run in addition to its own cluster.
pub(super) struct Server {
    pub(super) name: &'static str,
    pub(super) handle: Arc<ClusterHandle>,
    /// An update is announced, or its template is written.
    pub(super) has_update_begun: bool,
    /// The version set that replaces the running one.
    pub(super) target_lock: Option<String>,
    /// Whether the leading operator has had a pass over it. Before that it knows only the status, which shows a running
    /// update.
    pub(super) is_observed: bool,
    pub(super) reports_updating: bool,
    /// When a user, upstreams or a clock have last changed the next update.
    pub(super) disturbed_at: Option<Timestamp>,
    /// When it last had to wait for an update slot.
    pub(super) waited_for_slot_at: Option<Timestamp>,
    /// When it last had to wait for the server that it follows.
    pub(super) waited_for_followed_at: Option<Timestamp>,
    /// Version sets that have run here long enough, each with the first time. The next field has the last change of the
    /// running one.
    pub(super) verified_since: BTreeMap<String, Timestamp>,
    pub(super) running_since: Option<(String, Timestamp)>,
}

impl Server {
    pub(super) fn new(name: &'static str, handle: Arc<ClusterHandle>) -> Self {
        Self {
            name,
            handle,
            has_update_begun: false,
            target_lock: None,
            is_observed: false,
            reports_updating: false,
            disturbed_at: None,
            waited_for_slot_at: None,
            waited_for_followed_at: None,
            verified_since: BTreeMap::new(),
            running_since: None,
        }
    }

    /// Whether the leading operator can know the state here.
    pub(super) fn is_state_known(&self) -> bool {
        self.is_observed || self.reports_updating
    }

    /// Records the conditions of the server, and the version set that has run long enough.
    pub(super) fn record_state(&mut self) {
        let cluster = self.handle.cluster();
        if cluster.condition("Updating").is_some_and(|(_, reason)| reason == "WaitingForUpdateSlot") {
            self.waited_for_slot_at = Some(now());
        }
        if cluster.condition("WaitingForLeaderServer").is_some_and(|(status, _)| status == "True") {
            self.waited_for_followed_at = Some(now());
        }
        let Some((lock, since)) = cluster.verified_lock() else { return };
        self.verified_since.entry(lock.to_owned()).or_insert(since);
        if self.running_since.as_ref().is_none_or(|(running, _)| running != lock) {
            self.running_since = Some((lock.to_owned(), since));
        }
    }
}
