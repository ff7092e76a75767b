//! Pure. What every pass is given.

use std::sync::Arc;

use crds::{PaperMCServer, Plugin};
use kube::Client;
use kube::runtime::reflector::{ObjectRef, Store as Reflector};
use resolver::facts::Facts;
use scheduler::alarm::Alarm;
use tokio::sync::mpsc;

use crate::Config;
use crate::catalog_keeper::CatalogKeeper;
use crate::k8s::events::Publisher;
use crate::memory::Memory;
use crate::nodes::Nodes;
use crate::notify::Messenger;
use crate::notify::office::Cluster;
use crate::rush::Rush;
use crate::solver::Solver;
use crate::store::Store;
use crate::telemetry::metrics::Metrics;
use crate::turns::Turns;

/// One process, all passes.
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) config: Config,
    /// What the cluster knows about versions.
    pub(crate) facts: Facts,
    /// For agents: no proxy, no redirects.
    pub(crate) http: reqwest::Client,
    pub(crate) catalog: CatalogKeeper,
    pub(crate) solver: Solver,
    pub(crate) store: Arc<Store>,
    pub(crate) memory: Memory,
    pub(crate) events: Publisher,
    pub(crate) metrics: Metrics,
    /// Tells channels of a chat.
    pub(crate) messenger: Messenger<Cluster>,
    /// All Plugins that are watched.
    pub(crate) plugins: Reflector<Plugin>,
    /// All servers that are watched.
    pub(crate) servers: Reflector<PaperMCServer>,
    /// Nodes that are to be emptied.
    pub(crate) nodes: Nodes,
    /// How many servers are updated at the same time.
    pub(crate) turns: Turns,
    /// Passes that have not come to their act.
    pub(crate) rush: Rush,
    /// Wakes a server in time before its window opens.
    pub(crate) alarm: Alarm,
    pub(crate) wake: mpsc::UnboundedSender<ObjectRef<PaperMCServer>>,
    /// The same in a moment ([`crate::moment`]).
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
