//! Pure. Holds the shared state that every pass receives.

use std::sync::Arc;

use crate::timer::Timer;
use crds::{PaperMCServer, Plugin};
use jiff::Timestamp;
use kube::runtime::reflector::{ObjectRef, Store as Reflector};
use kube::{Client, ResourceExt};
use resolver::model::compatibility_facts::CompatibilityFacts;
use tokio::sync::mpsc;

use crate::Config;
use crate::caches::Caches;
use crate::catalog::CatalogKeeper;
use crate::k8s::events::EventPublisher;
use crate::node_watch::Nodes;
use crate::notify::Notifier;
use crate::notify::backend::KubeBackend;
use crate::plugin::matched_servers::MatchedServers;
use crate::priority::Priority;
use crate::solver::Solver;
use crate::store::Store;
use crate::telemetry::metrics::Metrics;
use crate::update_slots::UpdateSlots;

/// The state of one process, shared by all passes.
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) config: Config,
    /// The compatibility facts of the cluster.
    pub(crate) facts: CompatibilityFacts,
    /// The client for agents: no proxy, no redirects.
    pub(crate) http: reqwest::Client,
    pub(crate) catalog: CatalogKeeper,
    pub(crate) solver: Solver,
    pub(crate) store: Arc<Store>,
    pub(crate) caches: Caches,
    pub(crate) events: EventPublisher,
    pub(crate) metrics: Metrics,
    /// Delivers notifications to chat channels.
    pub(crate) notifier: Notifier<KubeBackend>,
    /// All Plugins that are watched.
    pub(crate) plugins: Reflector<Plugin>,
    /// All servers that are watched.
    pub(crate) servers: Reflector<PaperMCServer>,
    /// The servers that each Plugin matches.
    pub(crate) matched_servers: MatchedServers,
    /// The nodes that are to be drained.
    pub(crate) nodes: Nodes,
    /// Limits how many servers are updated at the same time.
    pub(crate) update_slots: UpdateSlots,
    /// Passes that have not reached their action yet.
    pub(crate) priority: Priority,
    /// Wakes a server shortly before its window opens.
    pub(crate) timer: Timer,
    pub(crate) wake: mpsc::UnboundedSender<ObjectRef<PaperMCServer>>,
    /// The same, debounced ([`crate::debounce`]).
    pub(crate) wake_debounced: mpsc::UnboundedSender<ObjectRef<PaperMCServer>>,
    /// Grows with each leader. Agents refuse requests with a lower one than they have seen.
    pub(crate) fence: u64,
}

impl Context {
    /// Records that the namespace of this server is being deleted.
    pub(crate) fn record_terminating(&self, server: &PaperMCServer) {
        let Some(namespace) = server.namespace() else { return };
        let is_inside = |other: &PaperMCServer| other.namespace().as_ref() == Some(&namespace);
        let others = self.servers.state_filter(is_inside);
        let created = others.iter().map(AsRef::as_ref).chain([server]).filter_map(creation_time).max();
        if let Some(newest) = created {
            self.caches.terminating.put(namespace, newest);
        }
    }

    /// Whether the namespace of this server is being deleted, as far as a refused write has shown. The server is deleted with it, and
    /// every request for it would be in vain.
    pub(crate) fn is_terminating(&self, server: &PaperMCServer) -> bool {
        let newest = server.namespace().and_then(|namespace| self.caches.terminating.get(&namespace));
        newest.is_some_and(|newest| creation_time(server).is_some_and(|created| created <= newest))
    }

    /// Requeues this server soon, because of a change elsewhere.
    pub(crate) fn requeue(&self, namespace: &str, server: &str) {
        // Sending fails only when the process ends.
        drop(self.wake.send(ObjectRef::new(server).within(namespace)));
    }

    /// Requeues this server after the debounce time, once for all changes until then.
    pub(crate) fn requeue_debounced(&self, namespace: &str, server: &str) {
        drop(self.wake_debounced.send(ObjectRef::new(server).within(namespace)));
    }
}

fn creation_time(server: &PaperMCServer) -> Option<Timestamp> {
    server.creation_timestamp().map(|created| created.0)
}
