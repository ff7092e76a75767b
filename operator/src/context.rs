//! Edge (clock). What every pass is given.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

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

/// How long whoever shares a plugin is left alone after one of them has changed.
const MOMENT: Duration = Duration::from_secs(3);

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
    /// Wakes a server at the instant its window opens.
    pub(crate) alarm: Alarm,
    pub(crate) wake: mpsc::UnboundedSender<ObjectRef<PaperMCServer>>,
    /// The same in a moment ([`in_a_moment`]).
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

/// Wakes whoever is asked for, a moment later: of two hundred servers that share a plugin each one that starts changes the answers of all.
pub(crate) async fn in_a_moment<K: Eq + Hash>(mut asked: mpsc::UnboundedReceiver<K>, wake: mpsc::UnboundedSender<K>) {
    while let Some(first) = asked.recv().await {
        tokio::time::sleep(MOMENT).await;
        let mut all = HashSet::from([first]);
        while let Ok(next) = asked.try_recv() {
            all.insert(next);
        }
        // Nobody listens any more only when the process ends.
        for one in all {
            drop(wake.send(one));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn whoever_is_asked_for_again_and_again_is_woken_once_a_moment_later() {
        let (ask, asked) = mpsc::unbounded_channel();
        let (wake, mut woken) = mpsc::unbounded_channel();
        tokio::spawn(in_a_moment(asked, wake));
        let began = tokio::time::Instant::now();
        for server in ["a", "b", "a", "b", "a"] {
            ask.send(server).unwrap();
        }
        let mut first = [woken.recv().await.unwrap(), woken.recv().await.unwrap()];
        first.sort_unstable();
        assert_eq!((first, began.elapsed()), (["a", "b"], MOMENT));
        ask.send("a").unwrap();
        assert_eq!((woken.recv().await, began.elapsed()), (Some("a"), 2 * MOMENT), "and again");
    }
}
