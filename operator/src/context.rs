//! Pure. What every pass is given.

use std::sync::Arc;

use crds::{PaperMCServer, Plugin};
use kube::Client;
use kube::runtime::reflector::{ObjectRef, Store as Reflector};
use resolver::compatibility_facts::CompatibilityFacts;
use scheduler::timer::Timer;
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

/// One process, all passes.
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) config: Config,
    /// What the cluster knows about versions.
    pub(crate) facts: CompatibilityFacts,
    /// For agents: no proxy, no redirects.
    pub(crate) http: reqwest::Client,
    pub(crate) catalog: CatalogKeeper,
    pub(crate) solver: Solver,
    pub(crate) store: Arc<Store>,
    pub(crate) memory: Caches,
    pub(crate) events: EventPublisher,
    pub(crate) metrics: Metrics,
    /// Tells channels of a chat.
    pub(crate) messenger: Notifier<KubeBackend>,
    /// All Plugins that are watched.
    pub(crate) plugins: Reflector<Plugin>,
    /// All servers that are watched.
    pub(crate) servers: Reflector<PaperMCServer>,
    /// Nodes that are to be emptied.
    pub(crate) nodes: Nodes,
    /// How many servers are updated at the same time.
    pub(crate) turns: UpdateSlots,
    /// Passes that have not come to their act.
    pub(crate) rush: Priority,
    /// Wakes a server in time before its window opens.
    pub(crate) alarm: Timer,
    pub(crate) wake: mpsc::UnboundedSender<ObjectRef<PaperMCServer>>,
    /// The same in a moment ([`crate::debounce`]).
    pub(crate) wake_soon: mpsc::UnboundedSender<ObjectRef<PaperMCServer>>,
    /// Grows with each leader; agents refuse a lower one than they have seen.
    pub(crate) fence: u64,
}

impl Context {
    /// Has a pass over this server begun soon, because of what happened elsewhere.
    pub(crate) fn look_again(&self, namespace: &str, server: &str) {
        // Nobody listens any more only when the process ends.
        drop(self.wake.send(ObjectRef::new(server).within(namespace)));
    }

    /// The same in a moment, and once for all that happens until then.
    pub(crate) fn look_again_in_a_moment(&self, namespace: &str, server: &str) {
        drop(self.wake_soon.send(ObjectRef::new(server).within(namespace)));
    }
}
