//! Edge (reads). Tracks one server of a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::clock::now;
use crate::simulation::cluster_handle::ClusterHandle;

/// A server, and its state for the run in addition to its own cluster.
pub(super) struct Server {
    pub(super) name: &'static str,
    pub(super) shared: Arc<ClusterHandle>,
    /// An update is announced, or its template is written.
    pub(super) has_begun: bool,
    /// The version set that replaces the running one.
    pub(super) brought: Option<String>,
    /// Whether the leading operator has had a pass over it. Before that it knows only the status, which shows a running
    /// update.
    pub(super) is_looked_at: bool,
    pub(super) says_updating: bool,
    /// When a user, upstreams or a clock have last changed the next update.
    pub(super) meddled_at: Option<Timestamp>,
    /// When it last had to wait for an update slot.
    pub(super) waited_at: Option<Timestamp>,
    /// When it last had to wait for the server that it follows.
    pub(super) waited_for_followed_at: Option<Timestamp>,
    /// Version sets that have run here long enough, each with the first time. The next field has the last change of the
    /// running one.
    pub(super) ran: BTreeMap<String, Timestamp>,
    pub(super) runs: Option<(String, Timestamp)>,
}

impl Server {
    pub(super) fn new(name: &'static str, shared: Arc<ClusterHandle>) -> Self {
        Self {
            name,
            shared,
            has_begun: false,
            brought: None,
            is_looked_at: false,
            says_updating: false,
            meddled_at: None,
            waited_at: None,
            waited_for_followed_at: None,
            ran: BTreeMap::new(),
            runs: None,
        }
    }

    /// Whether the leading operator can know the state here.
    pub(super) fn is_known(&self) -> bool {
        self.is_looked_at || self.says_updating
    }

    /// Records the conditions of the server, and the version set that has run long enough.
    pub(super) fn note(&mut self) {
        let world = self.shared.world();
        if world.said("Updating").is_some_and(|(_, reason)| reason == "WaitingForUpdateSlot") {
            self.waited_at = Some(now());
        }
        if world.said("WaitingForLeaderServer").is_some_and(|(status, _)| status == "True") {
            self.waited_for_followed_at = Some(now());
        }
        let Some((set, since)) = world.proven_set() else { return };
        self.ran.entry(set.to_owned()).or_insert(since);
        if self.runs.as_ref().is_none_or(|(runs, _)| runs != set) {
            self.runs = Some((set.to_owned(), since));
        }
    }
}
