//! Edge (reads). One of the servers of a walk, with what the walk knows of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::clock::now;
use crate::simulation::cluster_handle::ClusterHandle;

/// A server, and what the walk knows of it beside its own world.
pub(super) struct Server {
    pub(super) name: &'static str,
    pub(super) shared: Arc<ClusterHandle>,
    /// Players know of an update, or its template is written.
    pub(super) has_begun: bool,
    /// The set that it brings in the place of the one that runs.
    pub(super) brought: Option<String>,
    /// The operator that leads has looked at it. Before that it knows what the status says: whether it is being updated.
    pub(super) is_looked_at: bool,
    pub(super) says_updating: bool,
    /// When a person, upstreams or a clock have changed last what an update would be.
    pub(super) meddled_at: Option<Timestamp>,
    /// When it last had to wait for its turn.
    pub(super) waited_at: Option<Timestamp>,
    /// And for the one that goes first.
    pub(super) waited_for_followed_at: Option<Timestamp>,
    /// Sets that have run here for long enough, and since when they had first; and the one that did so last, since another one had before.
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

    /// Whether the operator that leads can know what goes on here.
    pub(super) fn is_known(&self) -> bool {
        self.is_looked_at || self.says_updating
    }

    /// What was said of it, and what has run for long enough.
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
