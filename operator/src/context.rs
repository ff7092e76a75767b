//! Pure. Holds the shared state that every pass receives.

use std::sync::Arc;

use crate::timer::Timer;
use crds::{PaperMCServer, Plugin};
use kube::Client;
use kube::runtime::reflector::{ObjectRef, Store as Reflector};
use resolver::model::compatibility_facts::CompatibilityFacts;
use tokio::sync::mpsc;

use crate::Config;
use crate::caches::Caches;
use crate::catalog::CatalogKeeper;
use crate::k8s::events::EventPublisher;
use crate::node_watch::Nodes;
use crate::notify::Notifier;
use crate::notify::backend::KubeBackend;
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
