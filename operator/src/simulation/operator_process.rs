//! Edge (writes). Simulates an operator process: the real passes and plans, with the memory of one process.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use crate::timer::Timer;
use crds::{PaperMCServer, Plugin};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::Event;
use resolver::model::compatibility_facts::CompatibilityFacts;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::catalog::Releases;
use super::cluster::identity;
use super::cluster_handle::ClusterHandle;
use super::fake_api_server::{NAMESPACE, client_for_all};
use crate::caches::Caches;
use crate::catalog::{CatalogKeeper, Snapshot};
use crate::clock::now;
use crate::context::Context;
use crate::k8s::events::EventPublisher;
use crate::node_watch::Nodes;
use crate::plugin::matched_servers::MatchedServers;
use crate::priority::Priority;
use crate::requeue::{Outcome, pause};
use crate::server::run_pass;
use crate::solver::Solver;
use crate::telemetry::metrics::Metrics;
use crate::update_slots::UpdateSlots;

/// The pause of an outcome that waits for a change.
const MAX_PAUSE: SignedDuration = SignedDuration::from_hours(24);
/// After this number of passes without a change, the next one is delayed.
const MAX_IDLE_PASSES: u32 = 30;
const IDLE_PAUSE: SignedDuration = SignedDuration::from_secs(40);
/// How long a process that takes over reads the upstreams.
pub(super) const RELEASES_READ_AFTER: SignedDuration = SignedDuration::from_secs(4);

/// A pass in progress.
pub(super) type Pass = Pin<Box<dyn Future<Output = Outcome>>>;

/// Servers that another pass has requeued.
pub(super) type Requeued = mpsc::UnboundedReceiver<ObjectRef<PaperMCServer>>;

/// Limits of concurrent updates, in total and on one node. 0 means no limit.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Bounds {
    pub(super) total: u16,
    pub(super) per_node: u16,
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
    pub(super) delayed_pass: Option<(Pass, oneshot::Sender<()>)>,
}

impl Operator {
    /// Starts a process that leads with this fence.
    pub(super) fn start(handle: &Arc<ClusterHandle>, fence: u64) -> Self {
        let (mut operators, _) =
            Self::start_for_all(std::slice::from_ref(handle), fence, Bounds::default(), default_plugins(), &[]);
        operators.pop().expect("one operator per cluster")
    }

    /// Starts a process that leads with this fence and manages the servers of all these simulated clusters, with one
    /// memory.
    pub(super) fn start_for_all(
        handles: &[Arc<ClusterHandle>],
        fence: u64,
        bounds: Bounds,
        initial_plugins: Vec<Plugin>,
        flags: &[String],
    ) -> (Vec<Self>, Requeued) {
        let releases = Releases::get();
        let http = crate::agent_http().expect("a client for agents");
        let client = client_for_all(handles);
        let config = crate::Config {
            identity: identity(fence),
            max_concurrent_updates: bounds.total,
            max_concurrent_updates_per_node: bounds.per_node,
            ..releases.config_with(flags)
        };
        let metrics = Metrics::default();
        let (wake, requeued) = mpsc::unbounded_channel();
        let notifier =
            crate::build_notifier(&client, &config, fence, &metrics, wake.clone(), Vec::new()).expect("a notifier");
        let (servers, mut plugins) = (Writer::default(), Writer::default());
        for plugin in initial_plugins {
            plugins.apply_watcher_event(&Event::Apply(plugin));
        }
        let catalog = CatalogKeeper::default();
        let ctx = Context {
            events: EventPublisher::new(client.clone(), identity(fence)),
            caches: Caches::default(),
            plugins: plugins.as_reader(),
            servers: servers.as_reader(),
            matched_servers: MatchedServers::default(),
            timer: Timer::silent(now),
            nodes: Nodes::new(true),
            update_slots: UpdateSlots::new(config.limits(), metrics.update_slots.clone()),
            priority: Priority::for_passes(config.concurrency),
            fence,
            client,
            config,
            facts: CompatibilityFacts::default(),
            http,
            solver: Solver::start(metrics.solves.clone()).expect("a thread"),
            catalog,
            store: releases.store.clone(),
            notifier,
            metrics,
            wake_debounced: wake.clone(),
            wake,
        };
        let (ctx, servers, plugins) = (Arc::new(ctx), Arc::new(Mutex::new(servers)), Arc::new(Mutex::new(plugins)));
        let for_one = |_| Self {
            ctx: Arc::clone(&ctx),
            servers: Arc::clone(&servers),
            plugins: Arc::clone(&plugins),
            due: now(),
            idle: 0,
            is_exact: false,
            delayed_pass: None,
        };
        (handles.iter().map(for_one).collect(), requeued)
    }

    /// How many servers hold an update slot, and how many wait for one, as the process counts them.
    pub(super) fn update_slots(&self) -> (i64, i64) {
        let slots = &self.ctx.metrics.update_slots;
        (slots.in_use.get(), slots.waiting.get())
    }

    /// The process reads the upstream releases.
    pub(super) fn read_releases(&self, snapshot: &Arc<Snapshot>) {
        self.ctx.catalog.set(snapshot.clone());
    }

    /// Whether a server of the process has requested that the upstreams are read.
    pub(super) fn has_open_refresh(&self) -> bool {
        self.ctx.catalog.has_open_refresh()
    }

    /// The process has read the upstreams for these requests.
    pub(super) fn serve_refreshes(&self) {
        let _ = self.ctx.catalog.serve_refreshes();
    }

    /// The process reads the nodes for the first time.
    pub(super) fn init_nodes(&self, node: v1::Node) {
        for event in [Event::Init, Event::InitApply(node), Event::InitDone] {
            self.ctx.nodes.handle_event(event);
        }
    }

    /// The watch reports a node.
    pub(super) fn observe_node(&self, node: v1::Node) {
        self.ctx.nodes.handle_event(Event::Apply(node));
    }

    /// The watch reports a Plugin.
    pub(super) fn observe_plugin(&self, event: &Event<Plugin>) {
        self.plugins.lock().unwrap_or_else(PoisonError::into_inner).apply_watcher_event(event);
    }

    /// The watch reports the server.
    pub(super) fn observe_server(&self, handle: &ClusterHandle) -> Option<PaperMCServer> {
        let cluster = handle.cluster();
        let object = cluster.objects.get(&cluster.server_key()).ok().cloned()?;
        drop(cluster);
        let server: PaperMCServer = serde_json::from_value(object).expect("a server");
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        servers.apply_watcher_event(&Event::Apply(server.clone()));
        Some(server)
    }

    /// Begins a pass over the current server object.
    pub(super) fn begin(&self, handle: &ClusterHandle) -> Option<Pass> {
        let server = self.observe_server(handle)?;
        Some(Box::pin(run_pass(Arc::new(server), self.ctx.clone())))
    }

    /// A pass has ended: its outcome determines the next one.
    pub(super) fn finish_pass(&mut self, outcome: Outcome) {
        let pause = pause(outcome, now()).and_then(|pause| pause.try_into().ok()).unwrap_or(MAX_PAUSE);
        self.idle += 1;
        // A pass every three seconds over an unchanged server finds nothing for hours, and takes most of the time of a
        // run.
        self.due = now() + if !self.is_exact && self.idle > MAX_IDLE_PASSES { pause.max(IDLE_PAUSE) } else { pause };
    }

    /// A watch reports a change.
    pub(super) fn requeue_at(&mut self, at: Timestamp) {
        self.idle = 0;
        if self.delayed_pass.is_none() {
            self.due = self.due.min(at);
        }
    }
}

/// Two Plugins for every server. One needs the other.
pub(super) fn default_plugins() -> Vec<Plugin> {
    ["viaversion", "viabackwards"].map(|project| new_plugin(project, &json!({}))).into()
}

/// A Plugin for every server, with these additional fields in its spec.
pub(super) fn new_plugin(project: &str, spec: &Value) -> Plugin {
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
