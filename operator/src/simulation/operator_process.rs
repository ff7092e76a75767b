//! Edge (writes). Simulates an operator process: the real passes and plans, with the memory of one process.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use crds::{PaperMCServer, Plugin};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1;
use kube::runtime::reflector::{ObjectRef, store::Writer};
use kube::runtime::watcher::Event;
use resolver::compatibility_facts::CompatibilityFacts;
use scheduler::timer::Timer;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::catalog::Releases;
use super::cluster::identity;
use super::cluster_handle::ClusterHandle;
use super::fake_api_server::{NAMESPACE, client_of_all};
use crate::caches::Caches;
use crate::catalog::{CatalogKeeper, Snapshot};
use crate::clock::now;
use crate::context::Context;
use crate::k8s::events::EventPublisher;
use crate::node_watch::Nodes;
use crate::priority::Priority;
use crate::requeue::{Outcome, pause};
use crate::server::look;
use crate::solver::Solver;
use crate::telemetry::metrics::Metrics;
use crate::update_slots::UpdateSlots;

/// The pause of an outcome that waits for a change.
const NEVER: SignedDuration = SignedDuration::from_hours(24);
/// After this number of passes without a change, the next one is delayed.
const LOOKS_AT_WHAT_STANDS_STILL: u32 = 30;
const LATE: SignedDuration = SignedDuration::from_secs(40);

/// A pass in progress.
pub(super) type Pass = Pin<Box<dyn Future<Output = Outcome>>>;

/// Servers that another pass has requeued.
pub(super) type Requeued = mpsc::UnboundedReceiver<ObjectRef<PaperMCServer>>;

/// Limits of concurrent updates, in total and on one node. 0 means no limit.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Bounds {
    pub(super) together: u16,
    pub(super) on_a_node: u16,
}

/// The part of a process that manages one server.
pub(super) struct Operator {
    ctx: Arc<Context>,
    servers: Arc<Mutex<Writer<PaperMCServer>>>,
    plugins: Arc<Mutex<Writer<Plugin>>>,
    /// When its next pass begins, or the sleeping one continues.
    pub(super) due: Timestamp,
    /// Passes since the last change.
    idle: u32,
    /// Whether each pass begins when it is due, even long after the last change.
    pub(super) is_exact: bool,
    /// The pass that sleeps, and how it is woken.
    pub(super) asleep: Option<(Pass, oneshot::Sender<()>)>,
}

impl Operator {
    /// Starts a process that leads with this fence.
    pub(super) fn start(shared: &Arc<ClusterHandle>, fence: u64) -> Self {
        let (mut operators, _) =
            Self::start_over(std::slice::from_ref(shared), fence, Bounds::default(), two_plugins(), &[]);
        operators.pop().expect("one for the one world")
    }

    /// Starts a process that leads with this fence and manages the servers of all these simulated clusters, with one
    /// memory.
    pub(super) fn start_over(
        worlds: &[Arc<ClusterHandle>],
        fence: u64,
        bounds: Bounds,
        known: Vec<Plugin>,
        flags: &[String],
    ) -> (Vec<Self>, Requeued) {
        let releases = Releases::get();
        let http = crate::agent_http().expect("a client for agents");
        let client = client_of_all(worlds);
        let config = crate::Config {
            identity: identity(fence),
            max_concurrent_updates: bounds.together,
            max_concurrent_updates_per_node: bounds.on_a_node,
            ..releases.config_with(flags)
        };
        let metrics = Metrics::default();
        let (wake, woken) = mpsc::unbounded_channel();
        let messenger =
            crate::messenger(&client, &config, fence, &metrics, wake.clone(), Vec::new()).expect("no channels");
        let (servers, mut plugins) = (Writer::default(), Writer::default());
        for plugin in known {
            plugins.apply_watcher_event(&Event::Apply(plugin));
        }
        let catalog = CatalogKeeper::default();
        let ctx = Context {
            events: EventPublisher::new(client.clone(), identity(fence)),
            memory: Caches::default(),
            plugins: plugins.as_reader(),
            servers: servers.as_reader(),
            alarm: Timer::silent(now),
            nodes: Nodes::new(true),
            turns: UpdateSlots::new(config.limits(), metrics.turns.clone()),
            rush: Priority::among(config.concurrency),
            fence,
            client,
            config,
            facts: CompatibilityFacts::default(),
            http,
            solver: Solver::start(metrics.solves.clone()).expect("a thread"),
            catalog,
            store: releases.store.clone(),
            messenger,
            metrics,
            wake_soon: wake.clone(),
            wake,
        };
        let (ctx, servers, plugins) = (Arc::new(ctx), Arc::new(Mutex::new(servers)), Arc::new(Mutex::new(plugins)));
        let over_one = |_| Self {
            ctx: Arc::clone(&ctx),
            servers: Arc::clone(&servers),
            plugins: Arc::clone(&plugins),
            due: now(),
            idle: 0,
            is_exact: false,
            asleep: None,
        };
        (worlds.iter().map(over_one).collect(), woken)
    }

    /// How many servers hold an update slot, and how many wait for one, as the process counts them.
    pub(super) fn turns(&self) -> (i64, i64) {
        let turns = &self.ctx.metrics.turns;
        (turns.taken.get(), turns.waiting.get())
    }

    /// The process reads the upstream releases.
    pub(super) fn read(&self, snapshot: &Arc<Snapshot>) {
        self.ctx.catalog.set(snapshot.clone());
    }

    /// The process reads the nodes for the first time.
    pub(super) fn sees_first(&self, node: v1::Node) {
        for event in [Event::Init, Event::InitApply(node), Event::InitDone] {
            self.ctx.nodes.take(event);
        }
    }

    /// The watch reports a node.
    pub(super) fn sees(&self, node: v1::Node) {
        self.ctx.nodes.take(Event::Apply(node));
    }

    /// The watch reports a Plugin.
    pub(super) fn sees_plugin(&self, event: &Event<Plugin>) {
        self.plugins.lock().unwrap_or_else(PoisonError::into_inner).apply_watcher_event(event);
    }

    /// The watch reports the server.
    pub(super) fn watches(&self, shared: &ClusterHandle) -> Option<PaperMCServer> {
        let world = shared.world();
        let object = world.objects.get(&world.key_of_server()).ok().cloned()?;
        drop(world);
        let server: PaperMCServer = serde_json::from_value(object).expect("a server");
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        servers.apply_watcher_event(&Event::Apply(server.clone()));
        Some(server)
    }

    /// Begins a pass over the current server object.
    pub(super) fn begin(&self, shared: &ClusterHandle) -> Option<Pass> {
        let server = self.watches(shared)?;
        Some(Box::pin(look(Arc::new(server), self.ctx.clone())))
    }

    /// A pass has ended: its outcome determines the next one.
    pub(super) fn ended(&mut self, outcome: Outcome) {
        let pause = pause(outcome, now()).and_then(|pause| pause.try_into().ok()).unwrap_or(NEVER);
        self.idle += 1;
        // A pass every three seconds over an unchanged server finds nothing for hours, and takes most of the time of a
        // run.
        self.due =
            now() + if !self.is_exact && self.idle > LOOKS_AT_WHAT_STANDS_STILL { pause.max(LATE) } else { pause };
    }

    /// A watch reports a change.
    pub(super) fn hears(&mut self, at: Timestamp) {
        self.idle = 0;
        if self.asleep.is_none() {
            self.due = self.due.min(at);
        }
    }
}

/// Two Plugins for every server. One needs the other.
pub(super) fn two_plugins() -> Vec<Plugin> {
    ["viaversion", "viabackwards"].map(|project| plugin_of(project, &json!({}))).into()
}

/// A Plugin for every server, with these additional fields in its spec.
pub(super) fn plugin_of(project: &str, spec: &Value) -> Plugin {
    let mut plugin = json!({
        "apiVersion": "nightshift.dev/v1alpha1", "kind": "Plugin",
        "metadata": {"name": project, "namespace": NAMESPACE, "uid": project},
        "spec": {
            "source": {"type": "modrinth", "project": project},
            "instanceSelector": {"matchLabels": {"tier": "test"}},
        },
    });
    json_patch::merge(&mut plugin["spec"], spec);
    serde_json::from_value(plugin).expect("a Plugin")
}
